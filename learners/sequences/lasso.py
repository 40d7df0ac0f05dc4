"""Paths of penalties that select: the l1 penalty on single coefficients, and on groups of columns,
by proximal gradient steps.

They are what Liu et al. (2014) compare with (L1-CRF): a sensor is selected if any of its
coefficients is not zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .problem import ChainFit, ChainProblem, column_deviations, minimise

_DECREASE = 0.75  # from one penalty of the path to the next: a choice


class LassoStep(NamedTuple):
    """One penalty of a path: its weight, the units with a coefficient that is not zero, and the fit
    of all columns.
    """

    penalty: float
    units: list[int]
    fit: ChainFit


def lasso_path(
    problem: ChainProblem,
    groups: np.ndarray,
    *,
    grouped: bool = True,
    most_units: int | None = None,
    max_penalties: int = 30,
    tol: float = 1e-5,
    max_iter: int = 150,
) -> list[LassoStep]:
    """Fit with falling penalties, from the one that leaves nothing, until more than ``most_units``
    are in.

    Parameters
    ----------
    problem : ChainProblem
        Its own penalty stays.
    groups : ndarray of shape (n_features,), int
        Unit of each column.
    grouped : bool, default True
        Penalise the norm of each unit's block of coefficients (times the root of its size) instead
        of single ones; either in units of the columns.
    most_units : int or None, default None
        None: all.
    max_penalties : int, default 30
    tol : float, default 1e-5
        End a fit when a step lowers the objective by less than this share.
    max_iter : int, default 150
        Most steps of each fit.

    Returns
    -------
    list of LassoStep
    """
    deviations = column_deviations(problem.X)
    scale = np.where(deviations > 0, deviations, np.inf)[:, None]  # a constant column stays at zero
    empty = minimise(problem.keep(np.empty(0, int)), tol=1e-7)
    fit = empty.with_coef(np.zeros((problem.X.shape[1], problem.n_classes)))
    prox = _GroupShrinkage(groups, problem.n_classes) if grouped else _Shrinkage()
    penalty = prox.largest(problem.value_and_gradient(fit)[1].coef / scale)
    most = int(groups.max()) + 1 if most_units is None else most_units
    path: list[LassoStep] = []
    step = 1.0 / len(problem.codes)
    for _ in range(max_penalties):
        penalty *= _DECREASE
        fit, step = _fit(problem, fit, scale, prox, penalty, step, tol, max_iter)
        units = np.unique(groups[np.any(fit.coef != 0.0, axis=1)]).tolist()
        path.append(LassoStep(penalty, units, fit))
        if len(units) > most:
            break
    return path


class _Shrinkage:
    """Soft thresholds of single coefficients."""

    def largest(self, gradient: np.ndarray) -> float:
        """Least penalty at which zero is the minimum."""
        return float(np.abs(gradient).max(initial=0.0))

    def value(self, coef: np.ndarray) -> float:
        return float(np.abs(coef).sum())

    def __call__(self, coef: np.ndarray, amount: float) -> np.ndarray:
        return np.sign(coef) * np.maximum(np.abs(coef) - amount, 0.0)


class _GroupShrinkage:
    """Soft thresholds of the norms of blocks."""

    def __init__(self, groups: np.ndarray, n_classes: int) -> None:
        self.groups, self.root = groups, np.sqrt(np.bincount(groups) * n_classes)

    def _norms(self, coef: np.ndarray) -> np.ndarray:
        return np.sqrt(np.bincount(self.groups, np.einsum("ij,ij->i", coef, coef), len(self.root)))

    def largest(self, gradient: np.ndarray) -> float:
        return float((self._norms(gradient) / self.root).max(initial=0.0))

    def value(self, coef: np.ndarray) -> float:
        return float(self.root @ self._norms(coef))

    def __call__(self, coef: np.ndarray, amount: float) -> np.ndarray:
        norms = self._norms(coef)
        kept = np.maximum(norms - amount * self.root, 0.0) / np.where(norms > 0, norms, 1.0)
        return coef * kept[self.groups, None]


def _fit(
    problem: ChainProblem,
    start: ChainFit,
    scale: np.ndarray,
    prox: _Shrinkage | _GroupShrinkage,
    penalty: float,
    step: float,
    tol: float,
    max_iter: int,
) -> tuple[ChainFit, float]:
    """Accelerated proximal gradient steps with backtracking, the momentum restarted when the
    objective rises.

    Coefficients are in units of the columns: ``coef * deviation``.
    """

    def evaluate(theta: tuple[np.ndarray, ...]) -> tuple[float, tuple[np.ndarray, ...]]:
        value, gradient = problem.value_and_gradient(ChainFit(theta[0] / scale, theta[1], theta[2]))
        return value, (gradient.coef / scale, gradient.transitions, gradient.intercept)

    finite = np.where(np.isfinite(scale), scale, 0.0)
    theta = (start.coef * finite, start.transitions, start.intercept)
    ahead, t, last = theta, 1.0, np.inf
    for _ in range(max_iter):
        value, gradient = evaluate(ahead)
        while True:
            moved = [a - step * g for a, g in zip(ahead, gradient, strict=True)]
            new = (prox(moved[0], step * penalty), moved[1], moved[2])
            change = [n - a for n, a in zip(new, ahead, strict=True)]
            new_value = evaluate(new)[0]
            bound = value + sum(float(np.vdot(g, c)) for g, c in zip(gradient, change, strict=True))
            if new_value <= bound + sum(float(np.vdot(c, c)) for c in change) / (2.0 * step) + 1e-9 * abs(value):
                break
            step *= 0.5
        total = new_value + penalty * prox.value(new[0])
        if total > last and t > 1.0:  # uphill: forget the momentum
            ahead, t = theta, 1.0
            continue
        done = abs(last - total) <= tol * abs(total)
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead = tuple(n + (t - 1.0) / t_next * (n - old) for n, old in zip(new, theta, strict=True))
        theta, t, last = new, t_next, total
        step *= 1.1
        if done:
            break
    return ChainFit(theta[0] / scale, theta[1], theta[2], last, converged=True), step
