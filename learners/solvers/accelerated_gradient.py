"""Accelerated gradient method, for large supports and for losses without curvature."""

import numpy as np

from ..designs.base import Design
from ..objective import Loss, Prior
from .step_size import safe_step, start_direction

_SLACK = 1.05  # less than elsewhere, since a step that increases the objective is halved


def accelerated_gradient(
    design: Design,
    y: np.ndarray,
    loss: Loss,
    sample_weight: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    *,
    prior: Prior,
    n_steps: int = 100,
    fit_intercept: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Refit a support of any size by accelerated gradient steps with adaptive restarts.

    Parameters
    ----------
    design : Design
        Design of the columns to fit.
    y : ndarray of shape (n_samples, n_outputs)
        Targets encoded for the loss.
    loss : Loss
        Loss with a finite ``max_curvature``.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    coef : ndarray of shape (n_features, width, n_outputs)
        Initial coefficients.
    intercept : ndarray of shape (n_outputs,)
        Initial intercept.
    prior : Prior
        Prior on the coefficients.
    n_steps : int, default 100
        Number of steps.
    fit_intercept : bool, default True
        Whether to fit an intercept.

    Returns
    -------
    coef, intercept : ndarray
        Coefficients and intercept after the last step.

    References
    ----------
    Y. Nesterov, "A method of solving a convex programming problem with convergence rate O(1/k^2)",
    Soviet Math. Dokl. 27 (1983). B. O'Donoghue, E. Candes, "Adaptive restart for accelerated
    gradient schemes", Found. Comput. Math. 15 (2015).
    """
    penalty = float(np.linalg.norm(prior.curvature(design.n_knots, design.width), 2))
    rate = safe_step(
        design,
        loss,
        sample_weight,
        start_direction(design, y, loss, sample_weight, intercept),
        slack=_SLACK,
        penalty=penalty,
    )
    ahead, ahead_intercept, t = coef, intercept, 1.0
    last = np.inf
    for _ in range(n_steps):
        gradient, residual_sum, value = design.scores_and_gradient(
            ahead, ahead_intercept, loss, y, sample_weight
        )
        gradient += prior.gradient(ahead, design.n_knots)
        value += prior.value(ahead, design.n_knots)
        # A plain step increased the objective, so the bound, estimated from below, was too small
        if value > last and t == 1.0:
            rate *= 0.5
        last = value
        new = ahead - rate * gradient
        new_intercept = ahead_intercept - 0.5 * fit_intercept * (residual_sum / loss.max_curvature)
        if np.vdot(gradient, new - coef) > 0:  # the step points uphill: restart the momentum
            t = 1.0
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        speed = (t - 1.0) / t_next
        ahead = new + speed * (new - coef)
        ahead_intercept = new_intercept + speed * (new_intercept - intercept)
        coef, intercept, t = new, new_intercept, t_next
    return coef, intercept
