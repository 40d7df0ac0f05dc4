"""Conditional random field on selected units, with addition, removal and exchange of units.

A unit is a coefficient, a column, or a group of columns.
"""

from dataclasses import replace

import numpy as np

from ..objective.base import charges_of, effective_rows
from ..solvers.greedy import Step
from .problem import ChainFit, ChainProblem, column_deviations, minimise

SEARCH_TOLERANCE = 1e-7  # relative tolerance of refits in a search, far below the compared gains
_MIN_GAIN = 1e-6  # minimum relative gain of an exchange; smaller gains are rounding errors
_TRIAL_TOLERANCE = 1e-5  # relative tolerance of refits for trial exchanges
# Relative amount by which a trial exchange may miss its goal and still be refitted
_PROMISING = 2e-3
# Number of units of lowest cost to replace in a round, and number of steepest replacements to try
# for each, chosen on the homes in experiments/pages/sensors_results.md
N_LEAVING, N_ENTERING = 10, 2


class UnitModel:
    """Model that is refitted on the selected units, for greedy searches and exchanges.

    Parameters
    ----------
    problem : ChainProblem
        Problem on all columns.
    codes : ndarray of shape (n_features, n_classes), int
        Unit of each coefficient.
    units : list of int, default []
        Initial units.
    fit : ChainFit or None
        Fit on the columns of ``units`` in ascending order. If None, the fit is computed.
    """

    def __init__(
        self,
        problem: ChainProblem,
        codes: np.ndarray,
        units: list[int] | None = None,
        fit: ChainFit | None = None,
    ):
        self.problem, self.codes = problem, codes
        self.n_units = int(codes.max()) + 1
        self.deviations = column_deviations(problem.X)
        # For the sum of the sequence losses, which are log likelihoods; one class is redundant
        weights = np.repeat(problem.weights, np.diff(problem.offsets))
        dispersion = weights.sum() * (1.0 - 1.0 / problem.n_classes)
        self._charges = charges_of(np.bincount(codes.ravel()), effective_rows(weights), dispersion)
        self._use(units or [])
        self.fit = fit if fit is not None else minimise(self.part, tol=SEARCH_TOLERANCE)

    @property
    def value(self) -> float:
        """Objective of the current fit."""
        return self.fit.value

    def charges(self) -> np.ndarray:
        """Compute the penalty of each unit for having more coefficients than the smallest unit."""
        return self._charges

    def strengths(self) -> np.ndarray:
        """Compute the norm of each unit's gradient on standardised columns.

        Raw gradients would favour columns that are often non-zero. The ridge penalty has zero
        gradient for columns that are not selected.
        """
        gradient = self.problem.value_and_gradient(self.fit.with_coef(self.coef()))[1].coef
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = np.where(
                self.deviations[:, None] > 0, gradient / self.deviations[:, None], 0.0
            )
        return self._norms(scaled)

    def decreases(self, candidates: np.ndarray) -> np.ndarray:
        """Compute how much the objective decreases if only one candidate's coefficients change."""
        out = np.zeros(len(candidates))
        held = replace(
            self.problem,
            offset=self.part.scores(self.fit),
            fit_intercept=False,
            fit_transitions=False,
        )
        transitions = self.fit.transitions
        for unit in np.flatnonzero(candidates):
            alone = held.keep(self.codes == unit)[1]
            start = replace(alone.start(), transitions=transitions)
            out[unit] = (
                alone.value_and_gradient(start)[0]
                - minimise(alone, start, tol=SEARCH_TOLERANCE).value
            )
        return out

    def add(self, unit: int, tol: float = SEARCH_TOLERANCE) -> None:
        """Add a unit and refit."""
        self.keep([*self.units, unit], tol)

    def remove(self, unit: int, tol: float = SEARCH_TOLERANCE) -> None:
        """Remove a unit and refit."""
        self.keep([other for other in self.units if other != unit], tol)

    def value_without(self, unit: int) -> float:
        """Compute the objective with one unit set to zero and all other units held fixed."""
        coef = self.fit.coef.copy()
        coef[self.codes[self.columns] == unit] = 0.0
        return self.part.value_and_gradient(self.fit.with_coef(coef))[0]

    def costs(self) -> np.ndarray:
        """Compute the increase in the objective if each unit is removed.

        The penalty of the unit is subtracted.
        """
        return (
            np.array([self.value_without(unit) for unit in self.units])
            - self.value
            - self._charges[self.units]
        )

    def sizes(self) -> np.ndarray:
        """Compute the root mean square of the standardised coefficients of each selected unit."""
        return self._norms(self.coef() * self.deviations[:, None])[self.units]

    def coef(self) -> np.ndarray:
        """Coefficients of all columns, of shape (n_features, n_classes)."""
        coef = np.zeros(self.codes.shape)
        coef[self.columns] = self.fit.coef
        return coef

    def _norms(self, values: np.ndarray) -> np.ndarray:
        """Compute the root mean square (n_units,) over the coefficients of each unit."""
        codes = self.codes.ravel()
        return np.sqrt(
            np.bincount(codes, np.square(values).ravel()) / np.maximum(np.bincount(codes), 1)
        )

    def keep(self, units: list[int], tol: float = SEARCH_TOLERANCE, max_iter: int = 1000) -> None:
        """Refit on the given units; the coefficients of retained units are the starting point."""
        coef = self.coef()
        self._use(units)
        self.fit = minimise(
            self.part, self.fit.with_coef(coef[self.columns]), tol=tol, max_iter=max_iter
        )

    def restore(self, units: list[int], fit: ChainFit) -> None:
        """Restore an earlier fit and its units."""
        self._use(units)
        self.fit = fit

    def _use(self, units: list[int]) -> None:
        self.units = list(units)
        self.columns, self.part = self.problem.keep(np.isin(self.codes, self.units))


def exchange(model: UnitModel, max_exchanges: int = 100) -> list[Step]:
    """Exchange units one at a time as long as the refitted objective decreases.

    Each round removes the units of lowest cost, one at a time, and tries the replacements that then
    have the largest gradients. Each exchange adds two steps to the returned list: the unit that
    leaves and the unit that enters.
    """
    path: list[Step] = []
    for _ in range(max_exchanges):
        if len(model.units) == model.n_units:
            break
        start, goal = (list(model.units), model.fit), model.value * (1.0 - _MIN_GAIN)
        for leaving in [
            model.units[i] for i in np.argsort(model.costs(), kind="stable")[:N_LEAVING]
        ]:
            entering = _replacement(model, start, leaving, goal)
            if entering is not None:
                path += [Step("leave", leaving, float("nan"), len(start[0]) - 1)]
                path += [Step("enter", entering, model.value, len(start[0]))]
                break
        else:
            model.restore(*start)
            break
    return path


def _replacement(
    model: UnitModel, start: tuple[list[int], ChainFit], leaving: int, goal: float
) -> int | None:
    """Replace ``leaving`` by a unit that brings objective plus penalty below ``goal``, if any."""
    model.restore(*start)
    model.remove(leaving, _TRIAL_TOLERANCE)
    without = list(model.units), model.fit
    strength = model.strengths()
    strength[start[0]] = 0.0
    for entering in np.argsort(-strength, kind="stable")[:N_ENTERING].tolist():
        if strength[entering] == 0.0:
            break
        model.restore(*without)
        model.add(entering, _TRIAL_TOLERANCE)
        limit = goal - (model.charges()[entering] - model.charges()[leaving])
        if model.value < limit * (1.0 + _PROMISING):
            model.keep(model.units)
        if model.value < limit:
            return entering
    return None
