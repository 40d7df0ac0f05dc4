"""Conditional random fields along a path of l1 or group penalties, by proximal gradient steps.

These are the baselines of Liu et al. (2014) (L1-CRF). A sensor is selected if any of its
coefficients is non-zero.
"""

from collections.abc import Iterator

import numpy as np

from .problem import ChainFit, ChainProblem, column_deviations, minimise

_TOLERANCE = 1e-5  # relative decrease in the objective below which a fit ends
_MAX_STEPS = 150  # maximum number of steps per fit


def lasso_path(
    problem: ChainProblem, codes: np.ndarray, *, decrease: float = 0.75, max_penalties: int = 30
) -> Iterator[ChainFit]:
    """Fit with decreasing lasso penalties.

    A penalty is the factor by which a sum is multiplied: the sum of the norms of the blocks of
    standardised coefficients, each weighted by the square root of the block size. The first penalty
    is ``decrease`` times the smallest one at which no column is selected.

    Parameters
    ----------
    problem : ChainProblem
        Problem to fit; its ridge penalty also applies.
    codes : ndarray of shape (n_features, n_classes), int
        Block of each coefficient. If every block contains a single coefficient, the penalty is the
        l1 norm.
    decrease : float, default 0.75
        Ratio of consecutive penalties.
    max_penalties : int, default 30
        Maximum number of penalties.

    Yields
    ------
    ChainFit
        Fit on all columns at the next penalty.
    """
    deviations = column_deviations(problem.X)
    scale = np.where(deviations > 0, deviations, np.inf)[:, None]  # constant columns stay at zero
    fit = minimise(problem.keep(np.zeros(codes.shape, bool))[1], tol=1e-7).with_coef(
        np.zeros(codes.shape)
    )
    prox = _Shrinkage(codes)
    penalty = prox.largest(problem.value_and_gradient(fit)[1].coef / scale)
    step = 1.0 / len(problem.codes)
    for _ in range(max_penalties):
        penalty *= decrease
        fit, step = _fit(problem, fit, scale, prox, penalty, step)
        yield fit


class _Shrinkage:
    """Soft thresholding of the norms of coefficient blocks."""

    def __init__(self, codes: np.ndarray) -> None:
        self.codes, self.root = codes, np.sqrt(np.bincount(codes.ravel()))

    def _norms(self, coef: np.ndarray) -> np.ndarray:
        return np.sqrt(np.bincount(self.codes.ravel(), np.square(coef).ravel(), len(self.root)))

    def largest(self, gradient: np.ndarray) -> float:
        """Return the smallest penalty at which all coefficients are zero."""
        return float((self._norms(gradient) / self.root).max(initial=0.0))

    def value(self, coef: np.ndarray) -> float:
        return float(self.root @ self._norms(coef))

    def __call__(self, coef: np.ndarray, amount: float) -> np.ndarray:
        norms = self._norms(coef)
        kept = np.maximum(norms - amount * self.root, 0.0) / np.where(norms > 0, norms, 1.0)
        return coef * kept[self.codes]


def _fit(
    problem: ChainProblem,
    start: ChainFit,
    scale: np.ndarray,
    prox: _Shrinkage,
    penalty: float,
    step: float,
) -> tuple[ChainFit, float]:
    """Fit by accelerated proximal gradient steps with backtracking.

    The momentum is restarted when the objective increases. Coefficients are standardised as ``coef
    * deviation``.
    """

    def evaluate(theta: tuple[np.ndarray, ...]) -> tuple[float, tuple[np.ndarray, ...]]:
        value, gradient = problem.value_and_gradient(ChainFit(theta[0] / scale, theta[1], theta[2]))
        return value, (gradient.coef / scale, gradient.transitions, gradient.intercept)

    finite = np.where(np.isfinite(scale), scale, 0.0)
    theta = (start.coef * finite, start.transitions, start.intercept)
    ahead, t, last = theta, 1.0, np.inf
    for _ in range(_MAX_STEPS):
        value, gradient = evaluate(ahead)
        while True:
            moved = [a - step * g for a, g in zip(ahead, gradient, strict=True)]
            new = (prox(moved[0], step * penalty), moved[1], moved[2])
            change = [n - a for n, a in zip(new, ahead, strict=True)]
            new_value = evaluate(new)[0]
            bound = value + sum(float(np.vdot(g, c)) for g, c in zip(gradient, change, strict=True))
            if new_value <= bound + sum(float(np.vdot(c, c)) for c in change) / (
                2.0 * step
            ) + 1e-9 * abs(value):
                break
            step *= 0.5
        total = new_value + penalty * prox.value(new[0])
        if total > last and t > 1.0:  # the objective increased: restart the momentum
            ahead, t = theta, 1.0
            continue
        done = abs(last - total) <= _TOLERANCE * abs(total)
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead = tuple(n + (t - 1.0) / t_next * (n - old) for n, old in zip(new, theta, strict=True))
        theta, t, last = new, t_next, total
        step *= 1.1
        if done:
            break
    return ChainFit(theta[0] / scale, theta[1], theta[2], last, converged=True), step
