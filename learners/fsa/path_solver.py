"""Annealing along a path of sizes: one run of the loop that passes through all of them; and the choice of one of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..common.progress import progress_bar
from ..designs.base import Design
from ..objective.priors import Prior
from ..solvers.annealing import Annealed, anneal
from ..model_selection.size import default_sizes, ebic
from ..solvers.newton import SupportProblem, refit
from ..solvers.schedules import Counts, step_counts
from ..solvers.step_size import annealing_step
from ..sources.matrix import OutOfCoreMatrix
from .problem import FitProblem, Solution
from .refinement import RefinementSettings, exchanges, supported_coefficients

_STEPS_PER_SIZE = 5  # gradient steps before each further cut along a path: a choice

# Coefficients that the rows support, below which held-out rows choose: the criterion then keeps one to six features on gene tables,
# and errs twice as often as twenty do. The simulated tables of Barbu et al. (2017), where it is right, support 14 and 60 or more.
_FEW_COEFFICIENTS, _FEW_COEFFICIENTS_OF_NUMBERS = 10.0, 30.0
_FOLDS, _LEAST_FOLDS = 5, 3  # as many as the rarest class has rows, if that is less: choices
_MOST_HELD_OUT = 50  # greatest size that held-out rows choose: several classes take seconds there, a choice
_CLEAR_MARGIN = 2.0  # standard errors by which held-out rows have to speak for a size that the criterion rejects: a choice

StepCallback = Callable[[int, Annealed], None]


class PathRecorder:
    """Callback of the loop that keeps a copy of the state after the last step of each size."""

    def __init__(self, counts: np.ndarray, sizes: np.ndarray):
        self._size_after = {int(np.flatnonzero(counts == k)[-1]): int(k) for k in sizes}
        self.states: dict[int, Annealed] = {}

    def __call__(self, step: int, state: Annealed) -> None:
        """Keep the state if a size ends with this step."""
        if step in self._size_after:
            self.states[self._size_after[step]] = replace(
                state,
                coef=state.coef.copy(),
                intercept=state.intercept.copy(),
                dropped_at=state.dropped_at.copy(),
                loss_curve=list(state.loss_curve),
            )


def path_counts(schedule: Counts, n_units: int, sizes: np.ndarray, n_steps: int, all_steps: bool) -> np.ndarray:
    """Number of features after each step: down to the greatest size by the schedule, then on through the others.

    Unless ``all_steps``, the schedule ends with the step that reaches the greatest size: a refit does better than gradient steps.
    """
    counts = step_counts(schedule, n_units, int(sizes[-1]), n_steps)
    if not all_steps:
        counts = counts[: int(np.argmax(counts == sizes[-1])) + 1]
    return np.concatenate([counts, np.repeat(sizes[-2::-1], _STEPS_PER_SIZE)])


def _projection(problem: FitProblem) -> Callable[[Annealed], None]:
    """Moves coefficients to the nearest that respect the bounds."""

    def project(state: Annealed) -> None:
        np.clip(state.coef, *problem.bounds.of(state.kept, state.design, float(np.ravel(problem.scale)[0])), out=state.coef)

    return project


def anneal_path(
    design: Design,
    problem: FitProblem,
    sizes: np.ndarray,
    *,
    schedule: Counts,
    n_steps: int,
    learning_rate: float | str,
    momentum: float,
    prior: Prior | None = None,
    fit_intercept: bool = True,
    all_steps: bool = False,
    start: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    callbacks: Sequence[StepCallback] = (),
    progress: str | None = None,
) -> dict[int, Annealed]:
    """Anneal to the greatest of the ascending ``sizes``, then on through the others.

    Parameters
    ----------
    design : Design
        All features.
    problem : FitProblem
    sizes : ndarray of int
        Ascending.
    schedule : function
        See `as_schedule`.
    n_steps : int
        Length of the schedule.
    learning_rate : float or "auto"
    momentum : float
    prior : Prior or None
    fit_intercept : bool
    all_steps : bool
        Take the gradient steps of the schedule after the greatest size is reached, too.
    start : (coef, intercept)
        Where to begin; zero where None.
    callbacks : sequence of functions
        Called as ``callback(step, state)`` after each step.
    progress : str or None
        Title of a progress bar.

    Returns
    -------
    dict
        The state of the loop at each size.
    """
    loss, weight = problem.loss.surrogate(problem.y, problem.sample_weight), problem.sample_weight
    step = annealing_step(loss, weight, bound=loss.curvature_bound(problem.y)) if isinstance(learning_rate, str) else learning_rate
    counts = path_counts(schedule, problem.n_units, sizes, n_steps, all_steps)
    recorder = PathRecorder(counts, sizes)
    every: list[Callable[[int, Annealed], object]] = [recorder, *callbacks]
    with progress_bar(title=progress, total=len(counts), shown=progress is not None) as bar:

        def after_step(step: int, state: Annealed) -> None:
            bar.update()
            for callback in every:
                callback(step, state)

        anneal(
            design,
            problem.y,
            loss,
            counts,
            sample_weight=weight,
            learning_rate=step,
            prior=prior,
            momentum=momentum,
            fit_intercept=fit_intercept,
            groups=problem.groups,
            fixed=problem.included,
            project=None if problem.bounds is None else _projection(problem),
            coef=start[0],
            intercept=start[1],
            callback=after_step,
        )
    return recorder.states


def auto_size(estimator: Any, problem: FitProblem, design: Design) -> tuple[int, RefinementSettings]:
    """The size of the least extended Bayesian information criterion; with few rows that of the least loss of held-out rows.

    0 where no size is better than a constant: by the criterion, and with few rows on held-out rows either. With it how the size is
    refined, which with few rows the held-out rows decide together with the size.
    """
    sizes = np.unique(np.clip(default_sizes(problem.n_units, round(problem.n_rows)), max(1, problem.n_included), None))
    settings = estimator._refinement
    named = settings._replace(alpha=0.0) if settings.chooses_ridge else settings
    tried = estimator._solve_path(problem, design, sizes, settings=named, patient=False)
    best = min(tried, key=lambda solution: solution.ebic)
    value = without_features(problem, design, estimator.fit_intercept).value
    none = ebic(value, problem.n_rows, 0, problem.n_units, 0, squared=problem.loss.is_quadratic)
    useless = best.ebic >= none and not problem.n_included
    folds = [] if not _has_few(problem) or estimator._is_piecewise else _folds(problem, design)
    if not folds:
        return 0 if useless else best.size, settings
    return _cross_validated(estimator, problem, design, folds, doubtful=useless)


def settings_of_size(estimator: Any, problem: FitProblem, design: Design, k: int) -> RefinementSettings:
    """How ``k`` features are refined: where rows are few, held-out rows decide whether exchanges or shrinkage serve.

    Of numbers alone: the rule by the rows of the rarest class is stricter, and did not fail.
    """
    settings = estimator._refinement
    if problem.classification or not _has_few(problem) or estimator._is_piecewise:
        return settings
    if not exchanges(design, problem, settings, k) or not settings.chooses_ridge or settings.polish != "auto":
        return settings
    folds = _folds(problem, design)
    if not folds:
        return settings
    losses, _ = _held_out_losses(estimator, problem, folds, _treatments(design, problem, settings, np.array([k])))
    return settings._replace(few_rows=bool(losses[0].mean() < losses[1].mean()))


def without_features(problem: FitProblem, design: Design, fit_intercept: bool) -> Solution:
    """The best constant."""
    loss, weight, q = problem.loss, problem.sample_weight, problem.y.shape[1]
    nothing, intercept = design.keep(np.zeros(0, int)), np.zeros(q)
    if fit_intercept:
        intercept = loss.best_constant(problem.y, weight)
        if loss.has_curvature:  # not every loss has its constant in closed form
            support = SupportProblem(problem.y, loss, weight)
            intercept = refit(support, np.zeros((design.n_samples, 0)), np.zeros((0, q)), intercept).intercept
    value = loss.value(problem.y, np.broadcast_to(intercept, problem.y.shape), weight)
    coef = np.zeros((0, design.width, q))
    return Solution(np.zeros(0, int), coef, intercept, nothing, 0, value, np.nan, np.array([value]))


def _folds(problem: FitProblem, design: Design) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit to and rows to hold out, five times, or as often as the rarest class has rows; none where that is too seldom.

    Rows go to the folds in turn, by class (or target) and by the sum of their standardised values, equal ones together. So neither
    the order of the rows matters, nor whether a row is repeated or has a weight.
    """
    present = np.flatnonzero(problem.weight > 0)
    place = design.scores(np.ones((design.n_features, design.width, 1)))[present]
    scale = max(float(np.abs(place).max(initial=0.0)), np.finfo(float).tiny)
    place = np.round(place / scale, 9)  # sums of equal rows differ by rounding
    target = _labels(problem)[present] if problem.classification else problem.y[present]
    distinct, which = np.unique(np.column_stack([target, place]), axis=0, return_inverse=True)
    rarest = np.unique(distinct[:, 0], return_counts=True)[1].min() if problem.classification else len(distinct)
    n_folds = min(_FOLDS, int(rarest))
    fold = which.ravel() % n_folds
    return [(present[fold != i], present[fold == i]) for i in range(n_folds)] if n_folds >= _LEAST_FOLDS else []


def _labels(problem: FitProblem) -> np.ndarray:
    return problem.y.argmax(axis=1) if problem.y.shape[1] > 1 else problem.y[:, 0] > 0


def _has_few(problem: FitProblem) -> bool:
    if not problem.loss.pointwise or isinstance(problem.X, OutOfCoreMatrix):
        return False
    return supported_coefficients(problem) < (_FEW_COEFFICIENTS if problem.classification else _FEW_COEFFICIENTS_OF_NUMBERS)


def _treatments(
    design: Design, problem: FitProblem, settings: RefinementSettings, sizes: np.ndarray
) -> list[tuple[RefinementSettings, np.ndarray]]:
    """Ways to refine, and the sizes to try each at: with shrinkage as for few rows, and with exchanges where these are made.

    Both are the same in the folds and in the fit of all rows, however many coefficients the rows of either support.
    """
    if not settings.chooses_ridge or settings.polish != "auto":
        return [(settings, sizes)]
    exchanged = np.array([exchanges(design, problem, settings, int(k)) for k in sizes])
    return [(settings._replace(few_rows=True), sizes), (settings._replace(few_rows=False), sizes[exchanged])]


def _held_out_losses(
    estimator: Any,
    problem: FitProblem,
    folds: list[tuple[np.ndarray, np.ndarray]],
    treatments: list[tuple[RefinementSettings, np.ndarray]],
) -> tuple[list[np.ndarray], np.ndarray]:
    """Mean loss of the held-out rows of each fold: (n_folds, n_sizes) for each treatment, and of a constant (n_folds,)."""
    estimator = copy.copy(estimator)  # these fits report no steps, and start from nothing
    estimator.verbose, estimator.warm_start, estimator._skl_callbacks = False, False, None
    losses, constants = [np.empty((len(folds), len(own))) for _, own in treatments], np.empty(len(folds))
    for fold, (train, test) in enumerate(folds):
        part = replace(problem, X=problem.X[train], y=problem.y[train], weight=problem.weight[train])
        design, weight = estimator._make_design(part), problem.sample_weight[test]
        constant = without_features(part, design, estimator.fit_intercept).intercept
        constants[fold] = problem.loss.value(problem.y[test], np.broadcast_to(constant, problem.y[test].shape), weight)
        for found, (settings, own) in zip(losses, treatments, strict=True):
            # Exchanges are made from the end of a run of annealing: one run for each size.
            runs = own[:, None] if settings.few_rows is False else [own]
            solutions = [s for sizes in runs for s in estimator._solve_path(part, design, sizes, settings=settings)]
            for i, solution in enumerate(solutions):
                found[fold, i] = problem.loss.value(problem.y[test], _scores(problem, solution, test), weight)
    return losses, constants


def _cross_validated(
    estimator: Any, problem: FitProblem, design: Design, folds: list[tuple[np.ndarray, np.ndarray]], doubtful: bool
) -> tuple[int, RefinementSettings]:
    """Size and refinement of the least mean loss of held-out rows.

    The sizes go up to the training rows of a fold, as shrinkage allows, and to 50 at most. Where the choice is ``doubtful`` it has
    to be better than a constant by a clear margin; else one feature is selected, and none where it is no better at all.
    """
    n_training = round(problem.n_rows) * (_FOLDS - 1) // _FOLDS
    sizes = default_sizes(problem.n_units, 3 * min(n_training, _MOST_HELD_OUT))
    sizes = np.unique(np.clip(sizes, max(1, problem.n_included), None))
    treatments = _treatments(design, problem, estimator._refinement, sizes)
    losses, constants = _held_out_losses(estimator, problem, folds, treatments)
    every, at = np.hstack(losses), [(int(k), settings) for settings, own in treatments for k in own]
    least = int(np.argmin(every.mean(axis=0)))
    gain = constants - every[:, least]
    if not doubtful or gain.mean() > _CLEAR_MARGIN * gain.std(ddof=1) / np.sqrt(len(gain)):
        return at[least]
    return (int(sizes[0]) if gain.mean() > 0 else 0), estimator._refinement


def _scores(problem: FitProblem, solution: Solution, rows: np.ndarray) -> np.ndarray:
    """Scores of rows of X by a linear solution."""
    raw, offset = solution.design.unstandardise(solution.coef, solution.intercept)
    return problem.X[rows][:, problem.columns(solution.kept)] @ raw[:, 0] + offset
