"""Forward-backward greedy search (Liu et al., 2014, Algorithm 1) for any model that supports adding
and removing units."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

# Relative gains below this are rounding; no backward step follows them
_NEGLIGIBLE = 1e-10


class Step(NamedTuple):
    """Step of a path: the feature (or group) that was added or removed, and the resulting
    objective."""

    action: str
    feature: int
    objective: float
    size: int


class GreedyModel(Protocol):
    """Interface of models to the search. A model is refitted whenever a unit (feature or group) is
    added or removed."""

    @property
    def value(self) -> float:
        """Objective after refitting."""

    def charges(self) -> np.ndarray:
        """Compute the penalty (n_units,) of each unit for having more coefficients than the
        smallest unit."""

    def strengths(self) -> np.ndarray:
        """Compute the strength of the gradient of each unit (n_units,)."""

    def decreases(self, candidates: np.ndarray) -> np.ndarray:
        """Compute the decrease in the objective due to each candidate (mask over the units) alone,
        with all other units fixed; 0 elsewhere."""

    def add(self, unit: int) -> None:
        """Add a unit."""

    def remove(self, unit: int) -> None:
        """Remove a unit."""

    def value_without(self, unit: int) -> float:
        """Compute the objective with the coefficients of a unit set to zero and all others
        fixed."""


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
    """Repeatedly add the best unit, refit, and remove units worth less than half of the last one.
    The worth of a unit is its decrease in the objective minus its penalty.

    The objective at each size decreases from one visit to the next, so the search ends.

    Parameters
    ----------
    model : GreedyModel
        Model without units, to which the selected units are added.
    size : int
        Number of units to select.
    criterion : {"gradient", "objective"}
        Criterion for the best unit: the largest gradient (FoBa-gdt), or the largest decrease when
        it alone is fitted (FoBa-obj).
    delta, epsilon : float or None
        Thresholds: stop when no unit lowers the objective by ``delta`` ("objective"), or has a
        gradient of ``epsilon`` ("gradient").
    backward : bool
        Whether to take backward steps; False gives orthogonal matching pursuit.
    fixed : sequence of int, default ()
        Units that are always selected, at most ``size``.

    Returns
    -------
    chosen : list of int
        Selected units, in the order in which they were added.
    path : list of Step
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
        if strength[entering] == 0.0:  # only constant columns, or none, remain
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
