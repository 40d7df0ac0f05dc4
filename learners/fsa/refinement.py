"""After annealing: fit the remaining features to the end, and exchange some of them where the data can tell which is better."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..designs.base import Design
from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.accelerated_gradient import accelerated_gradient
from ..solvers.annealing import Annealed
from ..model_selection.size import ebic
from ..solvers.exchanges import exchange_changes, nearly_as_good
from ..solvers.newton import SHRINKAGE, Fit, SupportProblem, bounded_fit, refit
from ..solvers.search import is_searchable, search
from ..model_selection.ridge import LeftOut, choose_ridge
from ..solvers.swapping import POOL, Pool, Units, columns_of, polish
from ..sources.matrix import OutOfCoreMatrix
from .problem import FitProblem, Solution

_SWAP_COST = 2e9  # multiplications per round of exchanges up to which polish="auto" makes them: about a second, a choice
_PATH_SWAP_COST = 2e7  # the same for each size of a path: some ten milliseconds, a choice
_MOST_ALTERNATIVES = 100  # features that may take the place of selected ones: a choice
_FEW_WRONG = 0.01  # share of training rows on the wrong side up to which labels count as clean: a choice
_NEWTON_COST = 2e8  # the same for one step of Newton's method along a path
# Ridge of annealing with too few rows to tell as many columns apart, for losses that are not quadratic and that are: by repeated
# cross-validation on eleven gene and face tables and four tables of regression; 0.003 to 0.03 differ little, 0.1 and 0.3 are worse.
_FEW_ROWS_SHRINKAGE, _FEW_ROWS_SHRINKAGE_SQUARED = 0.01, 0.1


class RefinementSettings(NamedTuple):
    """The estimators' parameters that matter after annealing.

    Attributes
    ----------
    polish : {"auto", "swap", "refit", None}
    prior : Prior or None
    fit_intercept : bool
    alpha : float or "auto"
    annealing_ridge : float or None
        Of annealing where rows count as few; None is the default.
    raw_units : bool
        Whether the ridge acts on sparse columns in their own units.
    few_rows : bool or None
        Whether rows count as few, as held-out rows have decided; None: by :func:`has_few_rows`.
    path_exchanges : bool
        Whether the sizes of a path are exchanged as single ones are, where that is cheap.
    """

    polish: str | None
    prior: Prior | None
    fit_intercept: bool
    alpha: float | str = "auto"
    annealing_ridge: float | None = None
    raw_units: bool = False
    few_rows: bool | None = None
    path_exchanges: bool = False

    @property
    def chooses_ridge(self) -> bool:
        """Whether the data choose the ridge: nobody named one."""
        return isinstance(self.alpha, str) and (self.prior is None or not self.prior.shrinkage)

    @property
    def penalty(self) -> Prior | None:
        """The prior, with the ridge that was named."""
        return with_ridge(self.prior, 0.0 if isinstance(self.alpha, str) else float(self.alpha))

    @property
    def ridge(self) -> float:
        """The ridge that was named."""
        return 0.0 if self.penalty is None else self.penalty.shrinkage


def with_ridge(prior: Prior | None, ridge: float) -> Prior | None:
    """A prior with ``ridge`` added to its shrinkage."""
    if not ridge:
        return prior
    if prior is None:
        return Prior(shrinkage=ridge)
    return Prior(prior.shrinkage + ridge, prior.second_order, prior.total_variation, prior.huber)


def choose_refinement(
    polish: str | None, *, has_curvature: bool, worth_exchanging: bool, newton_affordable: bool, along_path: bool
) -> str:
    """How one size is refined, by the first row that applies.

    ================== ======================================== ==========
    polish             condition                                refinement
    ================== ======================================== ==========
    None                                                        "none"
    any                the loss has no curvature                "gradient"
    "swap"                                                      "swap"
    "auto"             worth exchanging, not along a path       "swap"
    "auto", "refit"    Newton's method is affordable            "newton"
    "auto", "refit"                                             "gradient"
    ================== ======================================== ==========

    Parameters
    ----------
    polish : {"auto", "swap", "refit", None}
    has_curvature : bool
        Whether the loss has second derivatives.
    worth_exchanging : bool
        Whether exchanges are affordable, and the rows can tell as many coefficients apart.
    newton_affordable : bool
    along_path : bool
        Whether the size is one of many.

    Returns
    -------
    {"none", "gradient", "newton", "swap"}

    Examples
    --------
    >>> choose_refinement("auto", has_curvature=True, worth_exchanging=True, newton_affordable=True, along_path=False)
    'swap'
    """
    if polish is None:
        return "none"
    if not has_curvature:
        return "gradient"
    if polish == "swap" or (polish == "auto" and worth_exchanging and not along_path):
        return "swap"
    return "newton" if newton_affordable else "gradient"


def supported_coefficients(problem: FitProblem) -> float:
    """How many coefficients the rows can tell apart, by rules of thumb: beyond, a lower training loss says little about a support.

    Ten rows of the rarest class for each coefficient (P. Peduzzi et al., Journal of Clinical Epidemiology 49, 1996), or five rows
    where the targets are numbers.
    """
    if not problem.classification:
        return problem.loss.n_informative(problem.y, problem.weight) / 5.0
    counts = problem.weight @ (problem.y > 0)
    return float(min(counts.min(), problem.n_rows - counts.max())) / 10.0


def has_few_rows(problem: FitProblem, settings: RefinementSettings, n_columns: float) -> bool:
    """Whether the rows cannot tell the coefficients of so many columns apart."""
    return supported_coefficients(problem) < n_columns if settings.few_rows is None else settings.few_rows


def shrinks_while_annealing(problem: FitProblem, settings: RefinementSettings, k: int, width: int) -> bool:
    """Whether annealing to ``k`` features has a ridge of its own: rows are few, and nobody named a ridge."""
    few = settings.chooses_ridge and settings.polish in ("auto", "refit") and problem.loss.pointwise and width == 1
    return few and has_few_rows(problem, settings, k * width * problem.n_features / problem.n_units)


def annealing_prior(problem: FitProblem, settings: RefinementSettings, k: int, width: int) -> Prior | None:
    """The prior during annealing.

    With few rows the best subset of the training rows says little: a ridge makes correlated columns share their weight, so that
    what is common to them is selected. With enough rows it would blur which of them is the right one, and exchanges do better.
    """
    if shrinks_while_annealing(problem, settings, k, width):
        default = _FEW_ROWS_SHRINKAGE_SQUARED if problem.loss.is_quadratic else _FEW_ROWS_SHRINKAGE
        return with_ridge(settings.prior, default if settings.annealing_ridge is None else settings.annealing_ridge)
    return settings.penalty


def other_annealing_ridges(problem: FitProblem) -> tuple[float, ...]:
    """Ridges of annealing beside the default to choose from by cross-validation."""
    return (0.03,) if problem.loss.is_quadratic else (0.003, 0.03)


class Refined(NamedTuple):
    """The model of one size: columns ``kept``, ``coef``, ``intercept``, and the ``ridge`` of the fit."""

    kept: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    ridge: float


def refine(
    design: Design,
    state: Annealed,
    problem: FitProblem,
    settings: RefinementSettings,
    along_path: bool,
    near: tuple[bool, float] | None = None,
) -> Refined:
    """Refine one size.

    Parameters
    ----------
    design : Design
        All features.
    state : Annealed
        What annealing left.
    problem : FitProblem
    settings : RefinementSettings
    along_path : bool
        One of many sizes: no passes over all columns, and exchanges only on demand.
    near : (bool, float) or None, default None
        Whether rows were few at the size before, and the ridge that it took.

    Returns
    -------
    Refined
    """
    how = _refinement_of(design, problem, settings, len(state.kept), along_path)
    found = Refined(state.kept, state.coef, state.intercept, settings.ridge)
    if how == "none":
        return found
    if how == "gradient":
        return _refined_by_gradient(state, problem, settings)
    if how == "newton":
        return _refined_by_newton(state.design, found, problem, settings, near)
    found = _exchanged(design, state, problem, settings, along_path)
    if not settings.chooses_ridge or _newton_cost(design, problem, len(found.kept)) > _NEWTON_COST:
        return found
    return _refined_by_newton(design.keep(found.kept), found, problem, settings, near)


def _newton_cost(design: Design, problem: FitProblem, n_kept: int) -> float:
    """Multiplications of one step of Newton's method on so many features."""
    n_columns = float(n_kept * design.width)
    return (design.n_samples + n_columns) * n_columns**2 * problem.y.shape[1]


def _refinement_of(design: Design, problem: FitProblem, settings: RefinementSettings, n_kept: int, along_path: bool) -> str:
    """:func:`choose_refinement` for one size; exchanges and long gradient steps know no bounds of coefficients."""
    loss = problem.loss
    cost = _newton_cost(design, problem, n_kept)
    enough_rows = not has_few_rows(problem, settings, n_kept * design.width)
    how = choose_refinement(
        settings.polish,
        has_curvature=loss.has_curvature,
        worth_exchanging=POOL * cost <= _SWAP_COST and enough_rows and problem.bounds is None,
        newton_affordable=cost <= _NEWTON_COST or not np.isfinite(loss.max_curvature),  # else no step of one length is safe
        along_path=along_path and not (settings.path_exchanges and POOL * cost <= _PATH_SWAP_COST),
    )
    if problem.bounds is not None and how in ("swap", "gradient"):
        return "newton" if loss.has_curvature else "none"
    return how


def exchanges(design: Design, problem: FitProblem, settings: RefinementSettings, k: int) -> bool:
    """Whether the fit of ``k`` features (or groups) alone makes exchanges."""
    n_kept = round(k * problem.n_features / problem.n_units)
    return k < problem.n_units and _refinement_of(design, problem, settings, n_kept, False) == "swap"


def _refined_by_gradient(state: Annealed, problem: FitProblem, settings: RefinementSettings) -> Refined:
    coef, intercept = accelerated_gradient(
        state.design,
        problem.y,
        problem.loss,
        problem.sample_weight,
        state.coef,
        state.intercept,
        prior=settings.penalty or Prior(shrinkage=SHRINKAGE),
        fit_intercept=settings.fit_intercept,
    )
    return Refined(state.kept, coef, intercept, settings.ridge or SHRINKAGE)


def _exchanged(design: Design, state: Annealed, problem: FitProblem, settings: RefinementSettings, along_path: bool) -> Refined:
    """Exchanges of features and, where labels look noisy, the longer search."""
    ridge = settings.ridge or SHRINKAGE
    kept, coef, intercept = polish(
        design,
        problem.y,
        problem.loss,
        problem.sample_weight,
        state.kept,
        state.coef,
        state.intercept,
        state.dropped_at,
        fit_intercept=settings.fit_intercept,
        prior=settings.penalty,
        groups=problem.groups,
        fixed=problem.included,
        rounds=0 if along_path else 10,
    )
    if not along_path and _worth_searching(design, problem, settings, kept, coef, intercept):
        fixed = None if problem.included is None else np.flatnonzero(problem.included)
        found = search(design, problem.y, problem.sample_weight, kept, n_rows=problem.n_rows, flip=problem.loss.flip, fixed=fixed)
        if not np.array_equal(found, kept):
            kept, coef, intercept = _refitted(design, problem, settings, found)
    return Refined(kept, coef, intercept, ridge)


def _refined_by_newton(
    small: Design, start: Refined, problem: FitProblem, settings: RefinementSettings, near: tuple[bool, float] | None
) -> Refined:
    """Newton's method on the columns ``small`` of a support, with the ridge that was named or that the data choose."""
    kept, coef, intercept, _ = start
    support = SupportProblem(
        problem.y, problem.loss, problem.sample_weight, settings.fit_intercept, settings.penalty, small.width, small.n_knots
    )
    A, theta = small.matrix(), coef.reshape(-1, problem.y.shape[1])
    if settings.chooses_ridge:
        few_rows = has_few_rows(problem, settings, len(kept) * small.width)
        unit = _ridge_units(small, problem, settings)
        fit, ridge = choose_ridge(
            support,
            A * unit,
            theta / unit[:, None],
            intercept,
            LeftOut(copies(problem), problem.loss.parts(problem.weight)),
            few_rows=few_rows,
            near=near[1] if near is not None and near[0] == few_rows else None,
        )
        fit.theta = fit.theta * unit[:, None]
    else:
        fit, ridge = refit(support, A, theta, intercept), settings.ridge
    if problem.bounds is not None:
        bounds = problem.bounds.of(kept, small, float(np.ravel(problem.scale)[0]))
        fit = bounded_fit(replace(support, shrinkage=max(ridge, SHRINKAGE)), A, theta, fit.intercept, bounds)
    return Refined(kept, fit.theta.reshape(coef.shape), fit.intercept, ridge)


def _ridge_units(small: Design, problem: FitProblem, settings: RefinementSettings) -> np.ndarray:
    """Length of each column's unit for the ridge.

    With sparse columns it acts in raw units, relative to the mean variance of the columns: else rare words would be loud.
    """
    if not (settings.raw_units and sp.issparse(problem.X) and settings.penalty is None):
        return np.ones(small.n_features * small.width)
    unit = np.where(small.inv > 0, 1.0 / np.where(small.inv > 0, small.inv, 1.0), 1.0)
    return unit / np.sqrt(np.mean(unit**2))


def _worth_searching(design, problem, settings, kept, coef, intercept) -> bool:
    """Whether labels are noisy, as far as the fit knows, in a problem that the longer search is made for."""
    simple = settings.penalty is None and settings.fit_intercept and design.width == 1 and problem.groups is None
    if not (simple and is_searchable(problem.loss, problem.y)) or not 1 < len(kept) < design.n_features:
        return False
    if float(design.n_samples) * design.n_features * len(kept) > _SWAP_COST:
        return False
    wrong = problem.y * (design.keep(kept).scores(coef) + intercept) <= 0
    return bool(problem.sample_weight @ wrong[:, 0] > _FEW_WRONG)


def _refitted(design, problem, settings, kept):
    """Another support, fitted from zero."""
    support = SupportProblem(problem.y, problem.loss, problem.sample_weight, settings.fit_intercept, settings.penalty)
    fit = refit(support, design.keep(kept).matrix(), np.zeros((len(kept), 1)), np.zeros(1), tol=1e-9)
    return kept, fit.theta[:, None], fit.intercept


def alternatives(
    design: Design, state: Annealed, problem: FitProblem, settings: RefinementSettings, solution: Solution
) -> dict[int, list[tuple[int, float]]]:
    """Features that could take the place of a selected one for little, by the quadratic model of exchanges.

    Groups of features stand as wholes, each by its first feature.
    """
    n_columns = float(len(solution.kept) * design.width)
    affordable = (design.n_samples + n_columns) * n_columns**2 * problem.y.shape[1] <= _NEWTON_COST
    if settings.polish is None or not problem.loss.has_curvature or not affordable:
        return {}
    if isinstance(problem.X, OutOfCoreMatrix):  # would read the file once more
        return {}
    units = Units.of_groups(problem.groups, design.n_features)
    chosen = np.unique(units.of_feature[solution.kept])
    dropped_at = np.zeros(len(units), int)
    dropped_at[units.of_feature] = state.dropped_at
    most = len(chosen) + min(POOL * len(chosen), _MOST_ALTERNATIVES)
    pool = Pool.read(design, units, np.union1d(np.argsort(-dropped_at, kind="stable")[:most], chosen))
    place = np.searchsorted(pool.units, chosen)
    support = SupportProblem(
        problem.y, problem.loss, problem.sample_weight, settings.fit_intercept, settings.penalty, design.width, design.n_knots,
        max(solution.alpha - settings.ridge, SHRINKAGE),
    )  # fmt: skip
    A = columns_of(pool.Z, pool.offsets, place)
    theta = solution.coef[np.searchsorted(solution.kept, units.features(chosen))].reshape(-1, problem.y.shape[1])
    fit = Fit(theta, solution.intercept, *support.second_order(A @ theta + solution.intercept, theta))
    found = nearly_as_good(exchange_changes(support, pool.Z, pool.offsets, place, A, fit), fit.value)
    first = units.of_feature if units.members is None else np.array([members.min() for members in units.members])
    return {int(first[i]): [(int(first[pool.units[j]]), share) for j, share in row] for i, row in zip(chosen, found, strict=True)}


def copies(problem: FitProblem) -> float:
    """Rows, each as often as its weight; weights that are all below one count no copies: the effective number stands in."""
    if problem.weight.max() >= 1.0:
        return problem.n_rows
    return float(1.0 / np.sum(problem.sample_weight**2))


def refine_path(
    design: Design, states: dict[int, Annealed], problem: FitProblem, settings: RefinementSettings, patient: bool = True
) -> list[Solution]:
    """Refine every size that annealing passed through, smallest first.

    Unless ``patient``, it ends with sizes beyond twice that of the least information criterion so far (plus ten).
    """
    solutions: list[Solution] = []
    near: tuple[bool, float] | None = None
    for k in sorted(states):
        if not patient and solutions and k > 10 + 2 * min(solutions, key=lambda s: s.ebic).size:
            break
        kept, coef, intercept, alpha = refine(design, states[k], problem, settings, len(states) > 1, near)
        near = has_few_rows(problem, settings, len(kept) * design.width), alpha
        small = design.keep(kept)
        value = problem.loss.value(problem.y, small.scores(coef) + intercept, problem.sample_weight)
        criterion = ebic(value, problem.n_rows, k, problem.n_units, _degrees(coef, problem.loss), squared=problem.loss.is_quadratic)
        solution = Solution(kept, coef, intercept, small, k, value, criterion, np.array(states[k].loss_curve), alpha)
        if len(states) == 1:
            solution.alternatives = alternatives(design, states[k], problem, settings, solution)
        solutions.append(solution)
    return solutions


def _degrees(coef: np.ndarray, loss: Loss) -> int:
    """Free coefficients: centring takes one knot, the losses of several classes one class."""
    k, width, q = coef.shape
    return k * max(1, width - 1) * (q - loss.redundant_outputs if q > 1 else q)
