"""Step sizes: one over a bound on the curvature of the mean loss along the columns at hand, and the
step of the intercept.

The gradient of the mean loss has the Lipschitz constant L <= max_curvature * lambda, with lambda
the largest eigenvalue of the weighted covariance of the standardised columns. Power iteration
estimates lambda from below, so each caller multiplies it by a ``slack``.
"""

from collections.abc import Callable

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss, check_bounded

# A choice: ten power iterations from the gradient end within a few percent of the eigenvalue
SLACK = 1.1


def largest_eigenvalue(
    design: Design, sample_weight: np.ndarray, direction: np.ndarray, n_iter: int = 10
) -> float:
    """Largest eigenvalue of the weighted covariance of the standardised columns, by power
    iteration, from below.

    Parameters
    ----------
    design : Design
    sample_weight : ndarray of shape (n_samples,)
        Sums to one.
    direction : ndarray of shape (n_features, width, 1)
        Where the iteration starts. A gradient is a good start: it has the directions that the fit
        will move in, and does not depend on the order of the columns.
    n_iter : int, default 10
        Products with the covariance, each one read of the data.

    Returns
    -------
    float
        0 where ``direction`` is 0.
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
    """One over a bound on the curvature of mean loss plus penalty: plain gradient steps never go
    uphill.

    Parameters
    ----------
    design, sample_weight, direction
        See :func:`largest_eigenvalue`.
    loss : Loss
        With a finite ``max_curvature``.
    slack : float
        Factor on the estimated curvature.
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
    """Gradient over the coefficients of the first output where all of them are 0: the direction for
    :func:`safe_step`."""
    return design.gradient(loss.gradient(y, np.zeros(y.shape) + intercept, sample_weight)[:, :1])


def annealing_step(
    loss: Loss,
    sample_weight: np.ndarray,
    step: float | None = None,
    bound: np.ndarray | None = None,
) -> float | Callable[[Design, np.ndarray], float]:
    """Learning rate of :func:`anneal` for this loss.

    Parameters
    ----------
    loss : Loss
    sample_weight : ndarray of shape (n_samples,)
    step : float or None
        Instead of the default of a loss that has one. The others take the Lipschitz step: they
        diverge where a step overshoots.
    bound : ndarray of shape (n_samples, n_outputs) or None
        ``loss.curvature_bound(y)``, where rows differ.

    Raises
    ------
    ValueError
        If the loss has neither a default nor a bound.
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
        # It starts from the coefficients, and three power iterations do: steps stay stable up to
        # twice the length, with momentum up to nearly four times.
        direction = np.ascontiguousarray(coef[:, :, :1])
        return 1.0 / max(
            SLACK * curvature * largest_eigenvalue(design, weight, direction, n_iter=3), 1e-12
        )

    return rate
