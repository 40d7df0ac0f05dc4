"""Annealing along a path of sizes: one run of the loop that passes through all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..common.progress import progress_bar
from ..designs.base import Design
from ..objective.priors import Prior
from ..solvers.annealing import Annealed, anneal
from ..solvers.schedules import Counts, step_counts
from ..solvers.step_size import annealing_step
from .problem import FitProblem

_STEPS_PER_SIZE = 5  # gradient steps before each further cut along a path: a choice

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
