"""After annealing: fit the remaining features to the end, and exchange some of them where the data can tell which is better."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.accelerated_gradient import accelerated_gradient
from ..solvers.annealing import Annealed
from ..solvers.criteria import ebic
from ..solvers.newton import SHRINKAGE, SupportProblem, refit
from ..solvers.swapping import POOL, polish
from .problem import FitProblem, Solution

_SWAP_COST = 2e9  # multiplications per round of exchanges up to which polish="auto" makes them: about a second, a choice
_NEWTON_COST = 2e8  # the same for one step of Newton's method along a path
_FEW_ROWS_SHRINKAGE = 1e-3  # of a refit with too few rows to tell its columns apart; by cross-validation on the training parts of
# Arcene, Dexter, Leukemia and PCMAC, where 1e-4 to 1e-2 differ little


class RefinementSettings(NamedTuple):
    """The estimators' parameters that matter after annealing."""

    polish: str | None
    prior: Prior | None
    fit_intercept: bool


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


def refine(
    design: Design, state: Annealed, problem: FitProblem, settings: RefinementSettings, along_path: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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

    Returns
    -------
    kept, coef, intercept : ndarray
    """
    y, loss, weight = problem.y, problem.loss, problem.sample_weight
    n_columns = float(len(state.kept) * design.width)
    cost = (design.n_samples + n_columns) * n_columns**2 * y.shape[1]
    worth = POOL * cost <= _SWAP_COST and supported_coefficients(problem) >= n_columns
    how = choose_refinement(
        settings.polish,
        has_curvature=loss.has_curvature,
        worth_exchanging=worth,
        newton_affordable=cost <= _NEWTON_COST or not np.isfinite(loss.max_curvature),  # else no step of one length is safe
        along_path=along_path,
    )
    if how == "none":
        return state.kept, state.coef, state.intercept
    if how == "swap":
        return polish(
            design,
            y,
            loss,
            weight,
            state.kept,
            state.coef,
            state.intercept,
            state.dropped_at,
            fit_intercept=settings.fit_intercept,
            prior=settings.prior,
            groups=problem.groups,
            rounds=0 if along_path else 10,
        )
    if how == "newton":
        prior = settings.prior
        if prior is None and problem.classification and not worth:
            prior = Prior(shrinkage=_FEW_ROWS_SHRINKAGE)
        support = SupportProblem(y, loss, weight, settings.fit_intercept, prior, design.width, design.n_knots)
        fit = refit(support, state.design.matrix(), state.coef.reshape(-1, y.shape[1]), state.intercept)
        return state.kept, fit.theta.reshape(state.coef.shape), fit.intercept
    coef, intercept = accelerated_gradient(
        state.design,
        y,
        loss,
        weight,
        state.coef,
        state.intercept,
        prior=settings.prior or Prior(shrinkage=SHRINKAGE),
        fit_intercept=settings.fit_intercept,
    )
    return state.kept, coef, intercept


def refine_path(
    design: Design, states: dict[int, Annealed], problem: FitProblem, settings: RefinementSettings, patient: bool = True
) -> list[Solution]:
    """Refine every size that annealing passed through, smallest first.

    Unless ``patient``, it ends with sizes beyond twice that of the least information criterion so far (plus ten).
    """
    solutions: list[Solution] = []
    for k in sorted(states):
        if not patient and solutions and k > 10 + 2 * min(solutions, key=lambda s: s.ebic).size:
            break
        kept, coef, intercept = refine(design, states[k], problem, settings, along_path=len(states) > 1)
        small = design.keep(kept)
        value = problem.loss.value(problem.y, small.scores(coef) + intercept, problem.sample_weight)
        criterion = ebic(value, problem.n_rows, k, problem.n_units, _degrees(coef, problem.loss), squared=problem.loss.is_quadratic)
        solutions.append(Solution(kept, coef, intercept, small, k, value, criterion, np.array(states[k].loss_curve)))
    return solutions


def _degrees(coef: np.ndarray, loss: Loss) -> int:
    """Free coefficients: centring takes one knot, the losses of several classes one class."""
    k, width, q = coef.shape
    return k * max(1, width - 1) * (q - loss.redundant_outputs if q > 1 else q)
