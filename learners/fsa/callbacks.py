"""scikit-learn's callbacks (1.9 and later) after each step of annealing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ..solvers.annealing import Annealed
from .problem import FitProblem, Solution, fitted_attributes

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):
        """Nothing to manage."""
        return method


class StepCallbacksMixin(CallbackSupportMixin):
    """Reports each step to the callbacks that were set."""

    @contextmanager
    def _reported_steps(self, problem: FitProblem, piecewise: bool) -> Iterator[list[Callable[[int, Annealed], None]]]:
        """Functions to be called after each step; none without callbacks, whose contexts would only cost time."""
        if not getattr(self, "_skl_callbacks", None):
            yield []
            return
        data = {"estimator": self, "X": problem.X, "y": problem.y}
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**data)

        def report(_, state: Annealed) -> None:
            step = context.subcontext(task_name="step")
            step.call_on_fit_task_begin(**data)
            so_far = Solution(state.kept, state.coef, state.intercept, state.design, 0, np.nan, np.array(state.loss_curve))
            step.call_on_fit_task_end(**data, reconstruction_attributes=lambda: fitted_attributes(problem, so_far, piecewise))

        yield [report]
        context.call_on_fit_task_end(**data)
