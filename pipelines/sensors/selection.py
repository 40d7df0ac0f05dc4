"""Which sensors each method selects, at every size that it visits: the paper's methods, its comparators and annealing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...learners.sequences.lasso import lasso_path
from ...learners.sequences.problem import ChainFit, ChainProblem
from ...learners.sequences.units import UnitModel, exchange
from ...learners.solvers.greedy import Step, greedy_search

# Name -> what it is; "+swap" adds exchanges at each size.
METHODS = {
    "FoBa": "forward-backward by the gradient (FoBa-gdt-CRF)",
    "forward": "forward by the gradient (Forward-gdt-CRF)",
    "FoBa+swap": "FoBa, then exchanges",
    "annealed": "annealing, the smallest coefficients are dropped",
    "annealed-objective": "annealing, what raises the objective least is dropped",
    "annealed+swap": "annealed-objective, then exchanges: the default of FSACRF",
    "group lasso": "penalty on the norm of each sensor's coefficients",
    "L1": "penalty on single coefficients (L1-CRF)",
}
_STEPS_PER_CUT = 100  # of the fit of all sensors; those after each cut converge


@dataclass(frozen=True)
class Selection:
    """Sensors of one size.

    Attributes
    ----------
    units : list of int
        Ascending.
    shrunk : ChainFit or None
        The penalised fit of all columns; only of the methods that have a penalty.
    objective : float
        Of the refitted model on these units, where the search has it; else NaN.
    """

    units: list[int]
    shrunk: ChainFit | None = None
    objective: float = float("nan")


def check_methods(methods: Iterable[str]) -> None:
    """Complain unless all are in ``METHODS``; called before long work.

    Raises
    ------
    ValueError
        Names the first that is not.
    """
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"method {method!r} is unknown; expected one of {', '.join(METHODS)}")


def select_sensors(method: str, problem: ChainProblem, groups: np.ndarray, sizes: range) -> dict[int, Selection]:
    """Run a method once and return its selections of the given sizes.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.
    problem : ChainProblem
        Of all columns.
    groups : ndarray of shape (n_features,), int
        Sensor of each column.
    sizes : range
        Sizes wanted; a penalty may miss some.

    Returns
    -------
    dict of int to Selection

    Raises
    ------
    ValueError
        For an unknown method.
    """
    check_methods([method])
    name, _, swap = method.partition("+")
    if name in ("group lasso", "L1"):
        found: dict[int, Selection] = {}
        for step in lasso_path(problem, groups, grouped=name == "group lasso", most_units=max(sizes)):
            if len(step.units) in sizes:
                found[len(step.units)] = Selection(step.units, step.fit)
        return found
    if name.startswith("annealed"):
        by_size = _annealed(problem, groups, "objective" if swap or name == "annealed-objective" else "norm", sizes)
    else:
        _, path = greedy_search(UnitModel(problem, groups), max(sizes), backward=name == "FoBa")
        by_size = visited(path)
    return {size: _finished(problem, groups, units, bool(swap)) for size, units in by_size.items() if size in sizes}


def visited(path: list[Step]) -> dict[int, list[int]]:
    """Units at the last visit to each size, from a path that starts empty.

    Examples
    --------
    >>> visited([Step("enter", 4, 9.0, 1), Step("enter", 2, 5.0, 2), Step("leave", 4, 6.0, 1), Step("enter", 3, 4.0, 2)])
    {1: [2], 2: [2, 3]}
    """
    units: set[int] = set()
    found = {}
    for step in path:
        if step.action == "enter":
            units.add(step.feature)
        else:
            units.remove(step.feature)
        found[step.size] = sorted(units)
    return dict(sorted(found.items()))


def _annealed(problem: ChainProblem, groups: np.ndarray, criterion: str, sizes: range) -> dict[int, list[int]]:
    """One unit is dropped at a time, from all to the least size."""
    n_units = int(groups.max()) + 1
    model = UnitModel(problem, groups, list(range(n_units)), problem.start())
    model.keep(model.units, max_iter=_STEPS_PER_CUT)
    found = {}
    while len(model.units) >= min(sizes):
        found[len(model.units)] = sorted(model.units)
        if len(model.units) == 1:
            break
        weak = model.costs() if criterion == "objective" else model.sizes()
        model.remove(model.units[int(weak.argmin())])
    return found


def _finished(problem: ChainProblem, groups: np.ndarray, units: list[int], swap: bool) -> Selection:
    if not swap:
        return Selection(units)
    model = UnitModel(problem, groups, units)
    exchange(model)
    return Selection(sorted(model.units), objective=model.value)
