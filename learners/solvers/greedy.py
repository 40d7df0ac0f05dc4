"""Forward-backward greedy search for any model, Liu et al. (2014), Algorithm 1."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

# Smaller relative gains are rounding errors, and are not followed by backward steps
_NEGLIGIBLE = 1e-10


class Step(NamedTuple):
    """Step of a search, with the feature or group added or removed and the resulting objective."""

    action: str
    feature: int
    objective: float
    size: int


class GreedyModel(Protocol):
    """Interface that a model provides for the greedy search.

    A model is refitted whenever a unit (a feature or group) is added or removed.
    """

    @property
    def value(self) -> float:
        """Objective after refitting."""

    def charges(self) -> np.ndarray:
        """Compute the penalty of each unit for its number of coefficients."""

    def strengths(self) -> np.ndarray:
        """Compute the gradient strength of each unit."""

    def decreases(self, candidates: np.ndarray) -> np.ndarray:
        """Compute how much the objective decreases if each candidate is fitted separately.

        ``candidates`` is a mask of units. The result is 0 for all other units.
        """

    def add(self, unit: int) -> None:
        """Add a unit."""

    def remove(self, unit: int) -> None:
        """Remove a unit."""

    def value_without(self, unit: int) -> float:
        """Compute the objective with one unit set to zero and all other units held fixed."""


def greedy_search(
    model: GreedyModel,
    size: int,
    *,
    criterion: str = "gradient",
    delta: float | None = None,
    epsilon: float | None = None,
    backward: bool = True,
    fixed: Sequence[int] = (),
) -> tuple[list[int], list[Step]]:
    """Repeatedly add the best unit, refit, and remove units that gain less than half as much.

    The gain of a unit is the decrease in the objective that it causes, minus its penalty. The
    search always ends, since the objective is lower each time the same number of units is reached.

    Parameters
    ----------
    model : GreedyModel
        Model that contains no units yet. The selected units are added to it.
    size : int
        Number of units to select.
    criterion : {"gradient", "objective"}
        Criterion for the best unit: the largest gradient (FoBa-gdt), or the largest decrease in the
        objective when only the unit is fitted (FoBa-obj).
    delta, epsilon : float or None
        Stopping thresholds. With the criterion "objective", the search stops when no unit lowers
        the objective by at least ``delta``. With the criterion "gradient", it stops when no unit
        has a gradient of at least ``epsilon``.
    backward : bool
        Whether to take backward steps. Without them, the search with the criterion "gradient" is
        Forward-gdt or, for the squared loss, orthogonal matching pursuit.
    fixed : sequence of int, default ()
        Units that are always selected, at most ``size``.

    Returns
    -------
    chosen : list of int
        Selected units in the order of their addition.
    path : list of Step
        Steps of the search.
    """
    chosen: list[int] = []
    path: list[Step] = []
    gains = {0: np.inf}
    charges = np.asarray(model.charges(), dtype=float)

    def enter(unit: int) -> None:
        before = model.value
        model.add(unit)
        chosen.append(unit)
        gains[len(chosen)] = before - model.value - charges[unit]
        path.append(Step("enter", unit, model.value, len(chosen)))

    for unit in fixed:
        enter(unit)
    while len(chosen) < size:
        strength = model.strengths()
        strength[chosen] = 0.0
        if epsilon is not None and strength.max() < epsilon:
            break
        entering = int(strength.argmax())
        if criterion == "objective" and strength[entering] > 0:
            decrease = np.where(strength > 0, model.decreases(strength > 0) - charges, -np.inf)
            entering = int(decrease.argmax())
            if delta is not None and decrease[entering] < delta:
                break
        if strength[entering] == 0.0:  # no columns remain, except for constants
            break
        enter(entering)
        charges = np.minimum(charges, model.charges())  # non-increasing, so that the search ends
        while backward and len(chosen) > 1 and gains[len(chosen)] > _NEGLIGIBLE * abs(model.value):
            worse = (
                np.array(
                    [np.inf if unit in fixed else model.value_without(unit) for unit in chosen]
                )
                - model.value
            )
            worse -= charges[chosen]
            leaving = int(worse.argmin())
            if worse[leaving] >= 0.5 * gains[len(chosen)]:
                break
            unit = chosen.pop(leaving)
            model.remove(unit)
            path.append(Step("leave", unit, model.value, len(chosen)))
    return chosen, path
