"""After annealing: exchange features where the data can tell which is better, and fit the remaining
ones to the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..designs.base import Design
from ..model_selection.ridge import CHOSEN_OPTIMISM, LeftOut, choose_ridge, raw_units
from ..model_selection.size import ebic
from ..objective.losses import FlippedLogisticLoss, Loss
from ..objective.priors import Prior
from ..solvers.accelerated_gradient import accelerated_gradient
from ..solvers.annealing import Annealed
from ..solvers.discriminant import shrunken_discriminant
from ..solvers.exchanges import POOL, alternatives, exchange
from ..solvers.newton import SHRINKAGE, SupportProblem, bounded_fit, refit
from ..solvers.restarts import search
from ..sources.matrix import OutOfCoreMatrix
from .problem import FitProblem, Solution
from .settings import FitSettings

# Multiplications per round of exchanges up to which "auto" makes them: about a second, a choice
_SWAP_COST = 2e9
_PATH_SWAP_COST = 2e7  # the same for each size of a path: some ten milliseconds, a choice
_NEWTON_COST = 2e8  # the same for one step of Newton's method
# Coefficients that the rows support, from which on exchanges need no further reason: 1,000 rows, a
# choice
_MAX_DOUBTFUL = 200.0
_LOG_ODDS = ("logistic", "flipped_logistic", "multinomial")  # losses of which scores are such
# Share of training rows on the wrong side above which labels look noisy: a choice
_MIN_WRONG = 0.01


def few_rows(problem: FitProblem, settings: FitSettings, n_columns: float) -> bool:
    """Whether the rows cannot tell the coefficients of so many columns apart."""
    return problem.supported_coefficients < n_columns if settings.few_rows is None else settings.few_rows


def anneals_with_ridge(problem: FitProblem, settings: FitSettings, sizes: np.ndarray) -> np.ndarray:
    """Whether annealing to each of the sizes has a ridge of its own: rows are few, and the user
    gave none.

    With few rows the best subset of the training rows says little: a ridge makes correlated columns
    share their weight, so that what is common to them is selected. With enough rows it would blur
    which of them is the right one, and exchanges do better.
    """
    wanted = settings.refinement is not None and settings.refinement.exchange is not True and settings.chooses_ridge
    if not wanted or settings.response is not None or not problem.loss.pointwise:
        return np.zeros(len(sizes), bool)
    n_columns = sizes * (problem.n_features / problem.n_units)
    return n_columns > problem.supported_coefficients if settings.few_rows is None else np.full(len(sizes), settings.few_rows)


def choose_method(
    settings: FitSettings, *, has_curvature: bool, worth_exchanging: bool, newton_affordable: bool, bounded: bool = False
) -> str:
    """How one size is refined, by the first row that applies.

    ============ ======================================== ==========
    refinement   condition                                method
    ============ ======================================== ==========
    None                                                  "none"
    any          the loss has no curvature                "gradient"; with bounds "none"
    any          coefficients have bounds or directions   "newton"
    exchange     True                                     "exchange"
    exchange     "auto" or "cv", worth exchanging         "exchange"
    any          Newton's method is affordable            "newton"
    any                                                   "gradient"
    ============ ======================================== ==========

    Parameters
    ----------
    settings : FitSettings
    has_curvature : bool
        Whether the loss has second derivatives.
    worth_exchanging : bool
        Whether exchanges are affordable, and the rows can tell as many coefficients apart.
    newton_affordable : bool
    bounded : bool, default False
        Whether coefficients have bounds or directions, of which exchanges and gradient steps know
        nothing.

    Returns
    -------
    {"none", "gradient", "newton", "exchange"}
    """
    refinement = settings.refinement
    if refinement is None or (bounded and not has_curvature):
        return "none"
    if not has_curvature:
        return "gradient"
    if bounded:
        return "newton"
    if refinement.exchange is True or (refinement.exchange is not False and worth_exchanging):
        return "exchange"
    return "newton" if newton_affordable else "gradient"


def method_of(problem: FitProblem, settings: FitSettings, n_samples: int, n_kept: int, width: int, along_path: bool) -> str:
    """:func:`choose_method` for one size of a problem."""
    loss = problem.loss
    cost = _newton_cost(problem, n_samples, n_kept * width)
    newton_cost = _newton_cost(problem, n_samples, n_kept * width, _fits_sparse(problem, settings))
    affordable = POOL * cost <= _SWAP_COST
    if along_path:
        affordable = settings.exchange_along_path and POOL * cost <= _PATH_SWAP_COST
    return choose_method(
        settings,
        has_curvature=loss.has_curvature,
        worth_exchanging=affordable and not few_rows(problem, settings, n_kept * width),
        # Else no step of one length is safe
        newton_affordable=newton_cost <= _NEWTON_COST or not np.isfinite(loss.max_curvature),
        bounded=problem.bounded,
    )


def _newton_cost(problem: FitProblem, n_samples: int, n_columns: int, sparse: bool = False) -> float:
    """Multiplications of one step of Newton's method on so many columns, or what takes its time
    where they stay sparse."""
    if sparse:
        return n_samples * min(n_columns, problem.X.nnz / n_samples) ** 2 + n_columns**3 / 10.0
    return (n_samples + float(n_columns)) * float(n_columns) ** 2 * problem.y.shape[1]


def refine(
    design: Design,
    state: Annealed,
    problem: FitProblem,
    settings: FitSettings,
    solution: Solution,
    *,
    along_path: bool = False,
    previous: Solution | None = None,
) -> Solution:
    """Refine one size.

    Parameters
    ----------
    design : Design
        All features.
    state : Annealed
        What annealing left.
    problem : FitProblem
    settings : FitSettings
    solution : Solution
        The same, to be changed.
    along_path : bool, default False
        One of many sizes: no passes over all columns, and exchanges only on demand.
    previous : Solution or None, default None
        Of the size before, whose ridge is a good guess.
    """
    solution.few_rows = few_rows(problem, settings, len(state.kept) * design.width)
    numbers = not problem.classification and problem.loss.pointwise and settings.few_rows is None
    method = method_of(problem, settings, design.n_samples, len(state.kept), design.width, along_path)
    if method == "gradient":
        solution = _refined_by_gradient(problem, settings, solution)
    elif method == "exchange":
        solution = _exchanged(design, state, problem, settings, solution, along_path)
    n_columns = len(solution.kept) * design.width
    cost = _newton_cost(problem, design.n_samples, n_columns)
    if method == "newton" or (method == "exchange" and settings.chooses_ridge and cost <= _NEWTON_COST):
        solution = _refined_by_newton(problem, settings, solution, previous, along_path)
    scores = solution.design.scores(solution.coef) + solution.intercept
    solution.value, _ = problem.loss.value_and_gradient(problem.y, scores, problem.sample_weight)
    wanted = settings.names_alternatives and method != "none"
    if along_path:
        degrees = _degrees(solution.coef, problem.loss)
        solution.ebic = ebic(
            solution.value, problem.n_rows, solution.size, problem.n_units, degrees, squared=problem.loss.is_quadratic
        )
    elif wanted and problem.loss.has_curvature and cost <= _NEWTON_COST and not isinstance(problem.X, OutOfCoreMatrix):
        support = _support_problem(problem, settings, design, max(solution.ridge - settings.ridge, SHRINKAGE))
        refined = replace(state, kept=solution.kept, coef=solution.coef, intercept=solution.intercept)
        solution.alternatives = alternatives(support, design, refined, problem.groups)
    if method == "exchange" and numbers and settings.chooses_ridge and settings.refinement.exchange is not True:  # type: ignore[union-attr]
        solution.doubtful = problem.supported_coefficients < _MAX_DOUBTFUL
    return solution


def _support_problem(problem: FitProblem, settings: FitSettings, design: Design, shrinkage: float = SHRINKAGE) -> SupportProblem:
    return SupportProblem(
        problem.y, problem.loss, problem.sample_weight, settings.fit_intercept, settings.fit_prior, design.width, design.n_knots,
        shrinkage, n_rows=problem.n_copies,
    )  # fmt: skip


def _refined_by_gradient(problem: FitProblem, settings: FitSettings, solution: Solution) -> Solution:
    target, start = (problem.y, problem.loss, problem.sample_weight), (solution.coef, solution.intercept)
    prior = settings.fit_prior or Prior(shrinkage=SHRINKAGE)
    fitted = accelerated_gradient(solution.design, *target, *start, prior=prior, fit_intercept=settings.fit_intercept)
    ridge = settings.ridge or SHRINKAGE
    return replace(solution, coef=fitted[0], intercept=fitted[1], ridge=ridge, how=f"gradient steps with ridge {ridge:.2g}")


def _exchanged(
    design: Design, state: Annealed, problem: FitProblem, settings: FitSettings, solution: Solution, along_path: bool
) -> Solution:
    """Exchanges of features and, where labels look noisy, the longer search."""
    support = _support_problem(problem, settings, design)
    rounds = 0 if along_path else 10
    kept, coef, intercept = exchange(support, design, state, groups=problem.groups, fixed=problem.included, rounds=rounds)
    how = "exchanges"
    if not along_path and _worth_searching(design, problem, settings, kept, coef, intercept):
        flip = problem.loss.flip  # type: ignore[attr-defined]
        found = search(design, problem.y, problem.sample_weight, kept, n_rows=problem.n_rows, flip=flip, fixed=problem.included)
        how = "exchanges and the longer search"
        if not np.array_equal(found, kept):
            fit = refit(support, design.keep(found).matrix(), np.zeros((len(found), 1)), np.zeros(1), tol=1e-9)
            kept, coef, intercept = found, fit.theta[:, None], fit.intercept
    ridge = settings.ridge or SHRINKAGE
    return replace(
        solution, kept=kept, coef=coef, intercept=intercept, design=design.keep(kept), ridge=ridge, how=f"{how}, ridge {ridge:.2g}"
    )


def _worth_searching(
    design: Design, problem: FitProblem, settings: FitSettings, kept: np.ndarray, coef: np.ndarray, intercept: np.ndarray
) -> bool:
    """Whether labels are noisy, as far as the fit knows, in a problem that the longer search is
    made for."""
    plain = settings.fit_prior is None and settings.fit_intercept and design.width == 1 and problem.groups is None
    wanted = plain and settings.refinement is not None and settings.refinement.search == "auto"
    if not wanted or not isinstance(problem.loss, FlippedLogisticLoss) or problem.y.shape[1] > 1:
        return False
    if not 1 < len(kept) < design.n_features or float(design.n_samples) * design.n_features * len(kept) > _SWAP_COST:
        return False
    wrong = problem.y * (design.keep(kept).scores(coef) + intercept) <= 0
    return bool(problem.sample_weight @ wrong[:, 0] > _MIN_WRONG)


def _refined_by_newton(
    problem: FitProblem, settings: FitSettings, solution: Solution, previous: Solution | None, along_path: bool
) -> Solution:
    """Newton's method on the support, with the ridge that the user gave or that the data choose."""
    small, coef = solution.design, solution.coef
    support = _support_problem(problem, settings, small)
    theta, sparse = coef.reshape(-1, problem.y.shape[1]), _fits_sparse(problem, settings)
    A = small.uncentred() if sparse else small.matrix()  # type: ignore[attr-defined]
    # Centring moves the intercept alone
    shift = small.mean[:, 0] * small.inv if sparse else np.zeros(len(theta))
    intercept = solution.intercept - shift @ theta
    ridge, chosen = settings.ridge, ""
    if settings.chooses_ridge:
        unit = _ridge_units(small, problem, settings)
        scaled = A @ sp.diags_array(unit) if sparse else A * unit
        parts = problem.loss.parts(problem.weight) if not problem.loss.pointwise else None
        left_out = LeftOut(problem.n_copies, parts, CHOSEN_OPTIMISM if problem.mostly_zero else 1.0)
        near = previous.ridge if previous is not None and previous.few_rows == solution.few_rows else None
        fit, ridge, chosen = choose_ridge(
            support, scaled, theta / unit[:, None], intercept, left_out,
            few_rows=solution.few_rows, near=near, to_the_end=not along_path,
        )  # fmt: skip
        fit.theta = fit.theta * unit[:, None]
    else:
        fit = refit(support, A, theta, intercept)
    fit.intercept = fit.intercept + shift @ fit.theta
    if problem.bounded:
        basis, bounds = problem.factors(solution.kept, small)
        support, start = replace(support, shrinkage=max(ridge, SHRINKAGE)), replace(solution, coef=fit.theta.reshape(coef.shape))
        problem.project(start)
        fit = bounded_fit(support, A, start.coef.reshape(theta.shape), fit.intercept, bounds, basis)
    exchanges = solution.how.split(", ridge")[0] if solution.how.startswith("exchanges") else "no exchanges"
    how = f"{exchanges}, ridge {ridge:.2g}{chosen}"
    if exchanges == "no exchanges" and solution.few_rows and settings.few_rows is None:
        how += f"; {problem.n_rows:g} rows support {problem.supported_coefficients:.3g} coefficients"
    fitted = replace(solution, coef=fit.theta.reshape(coef.shape), intercept=fit.intercept, ridge=ridge, how=how)
    if problem.bounded:  # but for rounding it is there
        problem.project(fitted)
    elif settings.refinement.discriminant and problem.loss.name in _LOG_ODDS and small.width == 1:  # type: ignore[union-attr]
        _average_with_discriminant(problem, fitted)
    return fitted


def _average_with_discriminant(problem: FitProblem, solution: Solution) -> None:
    """Make the scores the mean of those of the fit and of linear discriminant analysis."""
    several = problem.y.shape[1] > 1
    members = problem.y if several else np.hstack([problem.y < 0, problem.y > 0]).astype(float)
    coef, intercept = shrunken_discriminant(solution.design.matrix(), members, problem.sample_weight, problem.n_copies)
    if not several:
        coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
    solution.coef, solution.intercept = (solution.coef + coef[:, None]) / 2.0, (solution.intercept + intercept) / 2.0
    solution.how += ", mean with linear discriminant analysis"


def _fits_sparse(problem: FitProblem, settings: FitSettings) -> bool:
    """Whether Newton's method takes the columns as they are stored."""
    one = problem.loss.pointwise and problem.y.shape[1] == 1
    return one and problem.mostly_zero and settings.fit_intercept and not problem.bounded


def _ridge_units(small: Design, problem: FitProblem, settings: FitSettings) -> np.ndarray:
    """Length of each column's unit for the ridge: with sparse columns it acts in raw units, else
    rare words would dominate."""
    if not (settings.standardize and hasattr(problem.X, "nnz") and settings.fit_prior is None):
        return np.ones(small.n_features * small.width)
    return raw_units(small.inv)


def _degrees(coef: np.ndarray, loss: Loss) -> int:
    """Free coefficients: centring takes one knot, the losses of several classes one class."""
    k, width, q = coef.shape
    return k * max(1, width - 1) * (q - loss.redundant_outputs if q > 1 else q)
