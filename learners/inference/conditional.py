"""Distilled conditional randomisation test for the dependence of the target on a column.

The null hypothesis is independence given the other columns. The target and the column are both
predicted from the other columns. Under the null hypothesis, the products of the two residuals have
mean zero. The test is valid if at least one of the two predictions is accurate.
"""

from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from ..designs import Design, make_design
from ..fsa import (
    FitProblem,
    FitSettings,
    information_criterion,
    solve,
    solve_path,
    solving,
    support_problem,
)
from ..model_selection.size import default_sizes
from ..solvers import (
    SHRINKAGE,
    Fit,
    SupportProblem,
    Units,
    fit_at,
    hessian,
    refit,
    solve_positive,
    strengths,
    strongest,
)
from .column_models import column_residuals, standardised


def sizes_to_test(problem: FitProblem, settings: FitSettings) -> tuple[int, int]:
    """Return the number of units to test and the number of units in the model for the target.

    A unit is a column or a group of columns. Let n* be the size with the lowest extended Bayesian
    information criterion along a path of fits, and c the number of units whose coefficients can be
    estimated reliably from the available rows. The number of units to test is the larger of 2 n*
    and c / 2 (for classification, the larger of 2 n* and c). The model for the target has 1.5 n* +
    1 units. Larger models overfit, and the p-values of omitted null columns become too small.
    """
    size = size_by_criterion(problem, replace(settings, exchange_along_path=True))
    share = 1.0 if problem.classification else 0.5
    supported = problem.facts.supported_coefficients * share / problem.columns_per_unit
    return int(np.clip(max(supported, 2 * size), 1, problem.n_units)), round(1.5 * size) + 1


def size_by_criterion(problem: FitProblem, settings: FitSettings) -> int:
    """Return the size with the lowest extended Bayesian information criterion along a path.

    Size 0 denotes the best constant model.
    """
    sizes = np.append(0, default_sizes(problem.n_units, round(problem.n_rows)))
    path = solve_path(problem, settings, sizes)
    return min(path, key=lambda solution: information_criterion(problem, solution)).size


def conditional_pvalues(
    problem: FitProblem, settings: FitSettings, *, candidates: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute a p-value for the conditional independence of the target and each unit [1]_, [2]_.

    A unit is a column or a group of columns. The null hypothesis is that the target does not depend
    on the unit, given the other units.

    Parameters
    ----------
    problem : FitProblem
        Problem with a dense X without NaN. All columns must be selectable, and none may be
        included.
    settings : FitSettings
        Settings of the fit.
    candidates : ndarray of int or None, default None
        Units to test; the model for the target has as many units. If None, the units to test are
        selected by a fit, and :func:`sizes_to_test` determines their number and the size of the
        model.

    Returns
    -------
    pvalues : ndarray of shape (n_units,)
        P-values; 1 for units that are not tested. For a unit with several columns or outputs, the
        smallest of their p-values is multiplied by their number (Bonferroni correction).
    statistics : ndarray of shape (n_units,)
        Largest absolute t statistic over the columns and outputs of the unit; 0 for units that are
        not tested.

    References
    ----------
    .. [1] M. Liu, E. Katsevich, L. Janson, A. Ramdas, "Fast and powerful conditional randomization
           testing via distillation", Biometrika 109 (2022).
    .. [2] R. Shah, J. Peters, "The hardness of conditional independence testing and the generalised
           covariance measure", Annals of Statistics 48 (2020), eq. (3).
    """
    with solving(problem, settings):
        design = make_design(
            problem.X, problem.sample_weight, settings.response or "linear", settings.random_state
        )
    units = Units.of_groups(problem.groups, problem.n_features)
    members = units.members or list(np.arange(problem.n_features)[:, None])
    if candidates is None:
        n_candidates, size = sizes_to_test(problem, settings)
        candidates = np.unique(
            units.of_feature[solve(problem, replace(settings, size=n_candidates)).kept]
        )
    else:
        size = len(candidates)
    support, fits = fits_without(problem, settings, design, units, candidates, size)
    blocks = [standardised(design.keep(members[unit]).matrix()) for unit in candidates]
    excluded = [
        members[unit] for unit, block in zip(candidates, blocks) for _ in range(block.shape[1])
    ]
    distilled = column_residuals(standardised(problem.X), np.hstack(blocks), excluded)
    ends = np.cumsum([block.shape[1] for block in blocks])
    pvalues, statistics = np.ones(problem.n_units), np.zeros(problem.n_units)
    for unit, fit, columns in zip(candidates, fits, np.split(distilled, ends[:-1], axis=1)):
        pvalues[unit], statistics[unit] = _mean_is_zero(
            _score_products(support, fit, columns), fit.A1.shape[1]
        )
    return pvalues, statistics


def _score_products(support: SupportProblem, fit: Fit, columns: np.ndarray) -> np.ndarray:
    """Compute products of target residuals and columns orthogonal to the fitted columns.

    Columns are orthogonal in the metric of the loss. The sum of the products is then the efficient
    score, since columns and residuals are adjusted for the fit in the same way.
    """
    penalty, products = support.penalty_hessian(fit.A1.shape[1] - support.fit_intercept), []
    for residual, product in zip(fit.residual.T, fit.hessian_products):
        WA = product(fit.A1)
        coef = solve_positive(hessian(support, fit.A1, WA, penalty), WA.T @ columns)
        products.append(residual[:, None] * (columns - fit.A1 @ coef))
    return np.hstack(products)


def _mean_is_zero(products: np.ndarray, n_fitted: int) -> tuple[float, float]:
    """Test whether all column means are zero; return the p-value and the largest statistic.

    Student's t-tests of the columns are combined with the Bonferroni correction. The residuals lose
    one degree of freedom per fitted coefficient.
    """
    degrees = max(len(products) - n_fitted, 1)
    spread = products.std(axis=0)
    sure = spread > 1e-12 * np.abs(products).max(initial=0.0)
    statistic = float(
        np.sqrt(degrees) * np.max(np.abs(products.mean(axis=0)[sure] / spread[sure]), initial=0.0)
    )
    return min(
        1.0, 2.0 * float(student.sf(statistic, degrees)) * max(1, int(sure.sum()))
    ), statistic


def fits_without(
    problem: FitProblem,
    settings: FitSettings,
    design: Design,
    units: Units,
    candidates: np.ndarray,
    size: int,
) -> tuple[SupportProblem, list[Fit]]:
    """Fit the target without each candidate, and return the problem and one fit per candidate.

    For a candidate that the fit to all units does not select, this fit is returned. For any other
    candidate, the weaker half of the selected units is replaced by the units with the steepest
    gradients in a fit without the candidate, since units selected together with a candidate would
    bias the test of the candidate.
    """
    solution = solve(problem, replace(settings, size=min(size, problem.n_units)))
    ridge = max(solution.ridge - settings.ridge, SHRINKAGE)
    support = support_problem(problem, settings, design, ridge)
    coef = np.zeros((design.n_features, *solution.coef.shape[1:]))
    coef[solution.kept] = solution.coef
    whole = fit_at(
        support,
        solution.design.matrix(),
        solution.coef.reshape(-1, coef.shape[2]),
        solution.intercept,
    )
    selected = np.unique(units.of_feature[solution.kept])
    return support, [
        _without(support, design, units, coef, whole.intercept, u) if u in selected else whole
        for u in candidates
    ]


def _without(
    problem: SupportProblem,
    design: Design,
    units: Units,
    coef: np.ndarray,
    intercept: np.ndarray,
    unit: int,
) -> Fit:
    """Compute a fit of :func:`fits_without` for a unit of the support.

    It starts from the coefficients of all features.
    """
    others = np.flatnonzero(units.of_feature != unit)
    rest, coef = design.keep(others), coef[others]
    left = Units.of_groups(units.of_feature[others], len(others))
    strength = strengths(coef, left.of_feature)
    n_columns = np.bincount(left.of_feature) * design.width
    size = min(int(np.count_nonzero(strength)) + 1, len(left))
    chosen = strongest(strength, size // 2)
    while True:
        features = np.sort(left.features(chosen)) if len(chosen) else chosen
        start = coef[features].reshape(-1, coef.shape[2])
        fit = refit(problem, rest.keep(features).matrix(), start, intercept)
        if len(chosen) >= size:
            return fit
        gradient = rest.gradient(fit.residual)
        steep = (
            np.bincount(left.of_feature, np.einsum("mwq,mwq->m", gradient, gradient)) / n_columns
        )
        steep[chosen] = -1.0
        chosen = np.union1d(chosen, strongest(steep, min(max(1, size // 8), size - len(chosen))))
