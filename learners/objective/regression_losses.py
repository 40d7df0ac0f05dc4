"""Regression losses for outliers and quantiles."""

import numpy as np
from scipy.special import expit

from .base import Loss

# Minimum curvature that keeps Newton steps finite where the loss is linear (heuristic)
_MIN_MAJORISER = 0.001


class HuberLoss(Loss):
    """Huber loss, which is robust to outliers.

    For u = y - f, with target y and score f, the loss [1]_ is ``u^2 / 2`` if ``|u| <= delta``, and
    ``delta |u| - delta^2 / 2`` otherwise.

    ``FSARegressor`` subtracts the median from the targets and divides them by 1.4826 times their
    median absolute deviation, an estimate of the standard deviation.

    Parameters
    ----------
    delta : float, default 1.35
        Positive half-width of the quadratic part, in units of the scaled targets.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical
           Statistics 35 (1964).
    """

    name = "huber"
    tasks = frozenset({"regression"})
    target_scaling = "median"

    def __init__(self, delta: float = 1.35) -> None:
        self.delta = delta

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        u = np.abs(scores - y)
        inside = np.minimum(u, self.delta)
        return float(sample_weight @ (inside * (u - 0.5 * inside)).sum(axis=1))

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return np.clip(scores - y, -self.delta, self.delta) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        u = np.abs(scores - y)
        bend = np.where(
            u <= self.delta, 1.0, _MIN_MAJORISER * self.delta / np.maximum(u, self.delta)
        )
        return bend * sample_weight[:, None]


class QuantileLoss(Loss):
    """Smoothed check loss, whose minimiser approximates the quantile q.

    For u = y - f, with target y and score f, the loss is q u + width ln(1 + exp(-u / width)).

    This is the check loss convolved with a logistic density of scale ``width`` ([1]_). It tends to
    the check loss as the width tends to 0. ``FSARegressor`` subtracts the median from the targets
    and divides them by 1.4826 times their median absolute deviation, an estimate of the standard
    deviation.

    Parameters
    ----------
    quantile : float, default 0.5
        Quantile q, in (0, 1).
    width : float, default 0.02
        Positive scale of the smoothing, in units of the scaled targets. Smaller values approximate
        the check loss better but require more steps.

    References
    ----------
    .. [1] M. Fernandes, E. Guerre, E. Horta, "Smoothing quantile regressions", Journal of Business
           and Economic Statistics 39 (2021).
    """

    name = "quantile"
    tasks = frozenset({"regression"})
    default_step_size = 1.0
    target_scaling = "median"

    def __init__(self, quantile: float = 0.5, width: float = 0.02) -> None:
        self.quantile = quantile
        self.width = width

    @property
    def max_curvature(self) -> float:  # type: ignore[override]
        return 0.25 / self.width

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        u = y - scores
        return float(
            sample_weight
            @ (self.quantile * u + self.width * np.logaddexp(0.0, -u / self.width)).sum(axis=1)
        )

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return (expit((scores - y) / self.width) - self.quantile) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        # The loss is linear far from the kink, where a fraction of the curvature of the majorising
        # tangent parabola is used.
        u = np.abs(scores - y) / self.width
        p = expit(u)
        majoriser = np.where(u > 1e-4, np.tanh(0.5 * u) / (2.0 * np.maximum(u, 1e-4)), 0.25)
        return (
            np.maximum(p * (1.0 - p), _MIN_MAJORISER * majoriser)
            / self.width
            * sample_weight[:, None]
        )

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return np.array([weighted_quantile(column, sample_weight, self.quantile) for column in y.T])

    def surrogate(self, y: np.ndarray, sample_weight: np.ndarray) -> Loss:
        # Gradient steps of size 1 are safe for this loss, even with momentum
        return QuantileLoss(self.quantile, max(self.width, 0.25))


def weighted_quantile(values: np.ndarray, weight: np.ndarray, q: float) -> float:
    """Return the weighted quantile ``q``.

    This is the smallest value v such that the values up to v carry at least the fraction ``q`` of
    the total weight.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    return float(
        values[
            order[min(int(np.searchsorted(share, q * share[-1] * (1 - 1e-12))), len(values) - 1)]
        ]
    )
