"""Step sizes from bounds on the curvature of the mean loss.

The gradient of the mean loss has a Lipschitz constant L <= max_curvature * lambda, where lambda is
the largest eigenvalue of the weighted covariance of the standardised columns. Power iteration
estimates lambda from below, so callers multiply it by a factor ``slack``.
"""

from collections.abc import Callable

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss, check_bounded

# Ten power iterations from the gradient come within a few percent of the eigenvalue (heuristic)
SLACK = 1.1


def largest_eigenvalue(
    design: Design, sample_weight: np.ndarray, direction: np.ndarray, n_iter: int = 10
) -> float:
    """Estimate the largest eigenvalue of the covariance of the standardised columns.

    Power iteration estimates the eigenvalue from below.

    Parameters
    ----------
    design : Design
        Design that contains all features.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    direction : ndarray of shape (n_features, width, 1)
        Initial vector. A gradient is suitable, since it contains the directions of the next steps
        and does not depend on the order of the columns.
    n_iter : int, default 10
        Number of products with the covariance, each of which reads the data once.

    Returns
    -------
    float
        Estimated eigenvalue; 0 if ``direction`` is 0.
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
    """Compute a step size for which plain gradient steps never increase the objective.

    The step size is the inverse of a bound on the curvature of the mean loss plus the penalty.

    Parameters
    ----------
    design, sample_weight, direction
        See :func:`largest_eigenvalue`.
    loss : Loss
        Loss with a finite ``max_curvature``.
    slack : float
        Factor by which the estimated curvature is multiplied.
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
    """Compute the gradient of the first output at zero coefficients, used as ``direction``."""
    return design.gradient(loss.gradient(y, np.zeros(y.shape) + intercept, sample_weight)[:, :1])


def annealing_step(
    loss: Loss,
    sample_weight: np.ndarray,
    step: float | None = None,
    bound: np.ndarray | None = None,
) -> float | Callable[[Design, np.ndarray], float]:
    """Return the ``learning_rate`` argument of :func:`anneal` for a loss.

    Parameters
    ----------
    loss : Loss
        Loss function.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    step : float or None
        Step size that replaces the default step size of the loss. A loss without a default always
        uses the Lipschitz step size, since larger steps diverge.
    bound : ndarray of shape (n_samples, n_outputs) or None
        Value of ``loss.curvature_bound(y)`` if the bounds differ between rows.

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
        # Three power iterations from the coefficients suffice, since steps are stable up to twice
        # this size, and nearly four times with momentum.
        direction = np.ascontiguousarray(coef[:, :, :1])
        return 1.0 / max(
            SLACK * curvature * largest_eigenvalue(design, weight, direction, n_iter=3), 1e-12
        )

    return rate


def limited_step(
    rate: float | Callable[[Design, np.ndarray], float], limit: float
) -> float | Callable[[Design, np.ndarray], float]:
    """Return a learning rate for :func:`anneal` that is at most ``limit``."""
    if callable(rate):
        return lambda design, coef: min(rate(design, coef), limit)
    return min(rate, limit)
