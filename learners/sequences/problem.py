"""Objective of a conditional random field and its minimisation by L-BFGS.

The Hessian of a chain couples all rows of a sequence. Newton's method would require this Hessian,
whereas a quasi-Newton method requires only values and gradients. Scores are computed for one block
of whole sequences at a time, so memory use does not grow with the number of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from ..objective.chain import chain_terms
from ..types import Matrix

_BLOCK_ROWS = 1 << 14  # heuristic: the scores and gradient of a block stay in the cache
# Pairs stored by L-BFGS. On the homes in experiments/pages/sensors_results.md, this number halves
# the iterations compared with SciPy's default of 10.
_MEMORY = 40


@dataclass(frozen=True)
class ChainFit:
    """Parameters of a conditional random field, and the objective at these parameters.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_classes)
        Coefficients of each class.
    transitions : ndarray of shape (n_classes, n_classes)
        Transition scores, indexed [from, to].
    intercept : ndarray of shape (n_classes,)
        Intercept of each class.
    value : float
        Value of the objective.
    n_iter : int
        Number of L-BFGS iterations.
    converged : bool
        Whether the iterations converged.
    """

    coef: np.ndarray
    transitions: np.ndarray
    intercept: np.ndarray
    value: float = np.inf
    n_iter: int = 0
    converged: bool = False

    def with_coef(self, coef: np.ndarray) -> "ChainFit":
        """Return a copy with the given coefficients and an unknown objective."""
        return replace(self, coef=coef, value=np.inf)


@dataclass(frozen=True)
class ChainProblem:
    """Penalised negative log likelihood of labelled sequences.

    The penalty is ridge / 2 (||coef||^2 + ||transitions||^2), without the intercept.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Rows, grouped by sequence.
    codes : ndarray of shape (n_rows,), int
        Class codes.
    n_classes : int
        Number of classes.
    offsets : ndarray of shape (n_sequences + 1,), int
        First row of each sequence, followed by the number of rows.
    weights : ndarray of shape (n_sequences,)
        Weight of each sequence.
    ridge : float
        Factor of the ridge penalty.
    fit_intercept, fit_transitions : bool
        Whether to fit an intercept, and whether to fit transitions.
    offset : ndarray of shape (n_rows, n_classes) or None
        Fixed scores, which are added to those of the columns.
    free : ndarray of shape (n_features, n_classes), bool, or None
        Mask of the coefficients that may be non-zero; None means all coefficients.
    """

    X: Any
    codes: np.ndarray
    n_classes: int
    offsets: np.ndarray
    weights: np.ndarray
    ridge: float = 2.0
    fit_intercept: bool = True
    fit_transitions: bool = True
    offset: np.ndarray | None = None
    free: np.ndarray | None = None

    def keep(self, chosen: np.ndarray) -> "tuple[np.ndarray, ChainProblem]":
        """Return the columns with a chosen coefficient, and the problem restricted to them."""
        columns = np.flatnonzero(chosen.any(axis=1))
        return columns, replace(self, X=self.X[:, columns], free=chosen[columns])

    def scores(self, fit: ChainFit) -> np.ndarray:
        """Compute the scores of all rows and classes, excluding the offset."""
        return self.X @ fit.coef + fit.intercept

    def start(self) -> ChainFit:
        """Return initial parameters, which are all zero."""
        k = self.n_classes
        return ChainFit(np.zeros((self.X.shape[1], k)), np.zeros((k, k)), np.zeros(k))

    def value_and_gradient(self, fit: ChainFit) -> tuple[float, ChainFit]:
        """Compute the objective and its gradient, which is returned as a :class:`ChainFit`."""
        coef, transitions = self.ridge * fit.coef, self.ridge * fit.transitions
        intercept = np.zeros(self.n_classes)
        value = (
            0.5
            * self.ridge
            * (
                float(np.vdot(fit.coef, fit.coef))
                + float(np.vdot(fit.transitions, fit.transitions))
            )
        )
        for first, last in _blocks(self.offsets):
            rows = slice(self.offsets[first], self.offsets[last])
            X = self.X[rows]
            scores = X @ fit.coef + fit.intercept
            if self.offset is not None:
                scores += self.offset[rows]
            offsets = self.offsets[first : last + 1] - self.offsets[first]
            part, residual, moved = chain_terms(
                scores, self.codes[rows], fit.transitions, offsets, self.weights[first:last]
            )
            value += part
            coef += X.T @ residual
            transitions += moved
            intercept += residual.sum(axis=0)
        return value, ChainFit(coef, transitions, intercept)


def minimise(
    problem: ChainProblem, start: ChainFit | None = None, *, tol: float = 1e-9, max_iter: int = 1000
) -> ChainFit:
    """Minimise the objective by L-BFGS.

    Parameters
    ----------
    problem : ChainProblem
        Problem to solve.
    start : ChainFit or None
        Initial parameters; None means zeros.
    tol : float, default 1e-9
        Relative decrease in the objective below which the iterations end.
    max_iter : int, default 1000
        Maximum number of iterations.

    Returns
    -------
    ChainFit
        Fit at the minimum.
    """
    start = problem.start() if start is None else start
    k = problem.n_classes
    free_coef = np.ones(start.coef.shape, bool) if problem.free is None else problem.free
    ends = np.cumsum(
        [int(free_coef.sum()), k * k * problem.fit_transitions, k * problem.fit_intercept]
    )

    def pack(fit: ChainFit) -> np.ndarray:
        parts = (
            (fit.coef[free_coef], True),
            (fit.transitions, problem.fit_transitions),
            (fit.intercept, problem.fit_intercept),
        )
        return np.concatenate([part.ravel() for part, free in parts if free])

    def unpack(theta: np.ndarray) -> ChainFit:
        transitions = (
            theta[ends[0] : ends[1]].reshape(k, k) if problem.fit_transitions else start.transitions
        )
        intercept = theta[ends[1] : ends[2]] if problem.fit_intercept else start.intercept
        coef = np.zeros(start.coef.shape)
        coef[free_coef] = theta[: ends[0]]
        return ChainFit(coef, transitions, intercept)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.value_and_gradient(unpack(theta))
        return value, pack(gradient)

    options = {
        "maxiter": max_iter,
        "maxfun": 4 * max_iter,
        "maxcor": _MEMORY,
        "ftol": tol,
        "gtol": 0.0,
    }
    solution = minimize(objective, pack(start), jac=True, method="L-BFGS-B", options=options)
    fit = unpack(solution.x)
    return replace(
        fit, value=float(solution.fun), n_iter=int(solution.nit), converged=solution.status != 1
    )


def column_deviations(X: Matrix) -> np.ndarray:
    """Compute the standard deviation of each column."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = (
        np.asarray(X.multiply(X).mean(axis=0)).ravel()
        if sp.issparse(X)
        else np.einsum("ij,ij->j", X, X) / len(X)
    )
    return np.sqrt(np.maximum(square - mean**2, 0.0))


def _blocks(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Split the rows into ranges of whole sequences with about ``_BLOCK_ROWS`` rows each."""
    first = 0
    for last in range(1, len(offsets)):
        if offsets[last] - offsets[first] >= _BLOCK_ROWS or last == len(offsets) - 1:
            yield first, last
            first = last
