"""Support for scikit-learn's callbacks (version 1.9 and later), which are called after each
annealing step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..solvers.annealing import Annealed
from .problem import FitProblem, Solution, fitted_attributes


@contextmanager
def reported_steps(
    reporter: Any, problem: FitProblem
) -> Iterator[tuple[Callable[[int, Annealed], None], ...]]:
    """Return functions to call after each step, one per callback of the estimator ``reporter``."""
    data = {"estimator": reporter, "X": problem.X, "y": problem.y}
    context = reporter._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(**data)

    def report(_: int, state: Annealed) -> None:
        step = context.subcontext(task_name="step")
        step.call_on_fit_task_begin(**data)
        so_far = Solution.of(state, 0)
        step.call_on_fit_task_end(
            **data, reconstruction_attributes=lambda: fitted_attributes(problem, so_far)
        )

    yield (report,)
    context.call_on_fit_task_end(**data)
