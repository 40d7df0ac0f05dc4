"""The search of forward-backward greedy selection, for every model that can gain and lose units
(Liu et al., 2014, Algorithm 1)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

# Gains below this share of the objective are rounding: no backward step follows them
_NEGLIGIBLE = 1e-10


class Step(NamedTuple):
    """One line of a path: which feature (or group) entered or left, and what that made of the
    objective."""

    action: str
    feature: int
    objective: float
    size: int


class GreedyModel(Protocol):
    """Model interface of the search; it is refitted whenever a unit (feature or group) enters or
    leaves."""

    @property
    def value(self) -> float:
        """The objective, refitted."""

    def charges(self) -> np.ndarray:
        """Penalty (n_units,) of each unit for coefficients beyond those of the smallest."""

    def strengths(self) -> np.ndarray:
        """Strength of the gradient of each unit (n_units,)."""

    def decreases(self, candidates: np.ndarray) -> np.ndarray:
        """How much each candidate (mask over the units) alone would lower the objective, all others
        held; 0 elsewhere."""

    def add(self, unit: int) -> None:
        """Add a unit."""

    def remove(self, unit: int) -> None:
        """Remove a unit."""

    def value_without(self, unit: int) -> float:
        """Objective with the coefficients of a unit at zero and all others held."""


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
    """Add the best unit, refit, and remove units worth less than half the last one. The worth of a
    unit is its decrease of the objective less its charge.

    The objective at each size falls from one visit to the next, so that the search ends.

    Parameters
    ----------
    model : GreedyModel
        Without units; it holds the chosen ones afterwards.
    size : int
        End with that many units.
    criterion : {"gradient", "objective"}
        Criterion of the best unit: the largest gradient (FoBa-gdt), or the largest decrease when it
        alone is fitted (FoBa-obj).
    delta, epsilon : float or None
        Stop when no unit lowers the objective by ``delta`` ("objective"), or has a gradient of
        ``epsilon`` ("gradient").
    backward : bool
        False leaves the backward steps out: orthogonal matching pursuit.
    fixed : sequence of int, default ()
        Units that enter first and stay; at most ``size``.

    Returns
    -------
    chosen : list of int
        In the order in which they entered.
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
        if strength[entering] == 0.0:  # only constant columns, or none, are left
            break
        enter(entering)
        charges = np.minimum(charges, model.charges())  # falls only, so that the search ends
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
