"""Step sizes for the columns, the inverse of a bound on the curvature of the mean loss along them,
and for the intercept.

The gradient of the mean loss has the Lipschitz constant L <= max_curvature * lambda, with lambda
the largest eigenvalue of the weighted covariance of the standardised columns. Power iteration
estimates lambda from below, so each caller multiplies it by a ``slack``.
"""

from collections.abc import Callable

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss, check_bounded

# Ten power iterations from the gradient come within a few percent of the eigenvalue: a choice
SLACK = 1.1


def largest_eigenvalue(
    design: Design, sample_weight: np.ndarray, direction: np.ndarray, n_iter: int = 10
) -> float:
    """Estimate, from below, the largest eigenvalue of the weighted covariance of the standardised
    columns by power iteration.

    Parameters
    ----------
    design : Design
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    direction : ndarray of shape (n_features, width, 1)
        Initial vector. A gradient is suitable, since it contains the directions in which the fit
        will move and does not depend on the order of the columns.
    n_iter : int, default 10
        Number of products with the covariance; each reads the data once.

    Returns
    -------
    float
        Eigenvalue; 0 if ``direction`` is 0.
    """
    value = 0.0
    for _ in range(n_iter):
        norm = float(np.linalg.norm(direction))
        if norm == 0.0:
            break
        direction = design.covariance(direction / norm, sample_weight)
        value = float(np.linalg.norm(direction))
    return value


def safe_step(
    design: Design,
    loss: Loss,
    sample_weight: np.ndarray,
    direction: np.ndarray,
    slack: float = SLACK,
    penalty: float = 0.0,
) -> float:
    """Compute the inverse of a bound on the curvature of mean loss plus penalty, with which plain
    gradient steps never increase the objective.

    Parameters
    ----------
    design, sample_weight, direction
        See :func:`largest_eigenvalue`.
    loss : Loss
        Loss with a finite ``max_curvature``.
    slack : float
        Factor applied to the estimated curvature.
    penalty : float
        Largest curvature of the penalty.
    """
    return 1.0 / max(
        slack * loss.max_curvature * largest_eigenvalue(design, sample_weight, direction) + penalty,
        1e-12,
    )


def start_direction(
    design: Design, y: np.ndarray, loss: Loss, sample_weight: np.ndarray, intercept: np.ndarray
) -> np.ndarray:
    """Compute the gradient of the first output at zero coefficients, which is the direction for
    :func:`safe_step`."""
    return design.gradient(loss.gradient(y, np.zeros(y.shape) + intercept, sample_weight)[:, :1])


def annealing_step(
    loss: Loss,
    sample_weight: np.ndarray,
    step: float | None = None,
    bound: np.ndarray | None = None,
) -> float | Callable[[Design, np.ndarray], float]:
    """Return the learning rate of :func:`anneal` for this loss.

    Parameters
    ----------
    loss : Loss
    sample_weight : ndarray of shape (n_samples,)
    step : float or None
        Step size that replaces the default of the loss, if any. Losses without a default use the
        Lipschitz step, since they diverge if a step overshoots.
    bound : ndarray of shape (n_samples, n_outputs) or None
        Value of ``loss.curvature_bound(y)`` if the bounds of rows differ.

    Raises
    ------
    ValueError
        If the loss has neither a default step size nor bounded curvature.
    """
    if loss.default_step_size is not None:
        return loss.default_step_size if step is None else step
    if bound is None:
        check_bounded(loss)
    weight, curvature = (
        (sample_weight, loss.max_curvature)
        if bound is None
        else (sample_weight * bound.max(axis=1), 1.0)
    )

    def rate(design: Design, coef: np.ndarray) -> float:
        # Three power iterations from the coefficients are enough: steps are stable up to twice the
        # length, with momentum up to nearly four times.
        direction = np.ascontiguousarray(coef[:, :, :1])
        return 1.0 / max(
            SLACK * curvature * largest_eigenvalue(design, weight, direction, n_iter=3), 1e-12
        )

    return rate


def limited_step(
    rate: float | Callable[[Design, np.ndarray], float], limit: float
) -> float | Callable[[Design, np.ndarray], float]:
    """Return a learning rate of :func:`anneal` that is at most ``limit``."""
    if callable(rate):
        return lambda design, coef: min(rate(design, coef), limit)
    return min(rate, limit)
