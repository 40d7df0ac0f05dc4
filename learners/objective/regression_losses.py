"""Losses of numbers besides the squared one: counts, outliers, quantiles."""

from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from .base import Loss

# Of the parabola that majorises: Newton's steps stay finite where the loss is straight. A choice.
_MIN_MAJORISER = 0.001


class PoissonLoss(Loss):
    """exp(f) - y f - y + y ln y: half the deviance of counts y with mean exp(f).

    Minus their log likelihood, up to a constant.

    Its curvature has no bound. Annealing, whose steps have one length, minimises the same loss
    continued by a parabola where the predicted mean is beyond e (y + mean of y); the selected
    columns are then fitted with the loss itself.

    References
    ----------
    P. McCullagh, J. A. Nelder, "Generalized Linear Models", Chapman and Hall (1989).
    """

    name = "poisson"
    tasks = frozenset({"regression"})
    max_curvature = np.inf
    target_scaling = None
    link = "log"

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        return float(sample_weight @ (_exp(scores) - y * scores + (xlogy(y, y) - y)).sum(axis=1))

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return (_exp(scores) - y) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return _exp(scores) * sample_weight[:, None]

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(sample_weight @ y, 1e-300))

    def surrogate(self, y: np.ndarray, sample_weight: np.ndarray) -> Loss:
        return _CappedPoissonLoss(sample_weight @ y)

    def encode_targets(self, y: Any) -> Any:
        values = np.asarray(y)
        if values.dtype.kind in "if" and (values < 0).any():
            raise ValueError(
                f"y holds {np.nanmin(values):g}; expected non-negative counts for loss='poisson'"
            )
        if values.dtype.kind in "if" and values.size and not (values != 0).any():
            raise ValueError(
                "y is 0 everywhere; expected at least one positive count for loss='poisson'"
            )
        return y

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        return _exp(scores)

    def quality(self, y: Any, prediction: np.ndarray, sample_weight: Any = None) -> float:
        # D^2: the share of the deviance that is explained, as of scikit-learn's PoissonRegressor.
        y, prediction = np.asarray(y, dtype=np.float64), np.maximum(prediction, 1e-300)
        weight = (
            np.ones(len(y))
            if sample_weight is None
            else np.asarray(sample_weight, dtype=np.float64)
        )
        mean = np.average(y, axis=0, weights=weight)

        def deviance(mu: np.ndarray) -> float:
            return float((weight @ (xlogy(y, y / mu) - y + mu)).sum())

        return 1.0 - deviance(prediction) / max(
            deviance(np.broadcast_to(np.maximum(mean, 1e-300), y.shape)), 1e-300
        )


class _CappedPoissonLoss(PoissonLoss):
    """The Poisson loss up to the score c = 1 + ln(y + mean), beyond it the parabola that touches:
    bounded curvature."""

    name = ""

    def __init__(self, mean: np.ndarray) -> None:
        self.mean = mean

    def _split(self, y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cap = 1.0 + np.log(np.maximum(y + self.mean, 1e-300))
        inside = np.minimum(scores, cap)
        return np.exp(inside), scores - inside

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        top, beyond = self._split(y, scores)
        continued = top * (1.0 + beyond + 0.5 * beyond**2)
        return float(sample_weight @ (continued - y * scores + (xlogy(y, y) - y)).sum(axis=1))

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        top, beyond = self._split(y, scores)
        return (top * (1.0 + beyond) - y) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return self._split(y, scores)[0] * sample_weight[:, None]

    def curvature_bound(self, y: np.ndarray) -> np.ndarray:
        return np.e * (y + self.mean)


class HuberLoss(Loss):
    """Huber's loss of the residual u = f - y: outliers have little influence.

    u^2 / 2 up to ``delta``, delta |u| - delta^2 / 2 beyond.

    ``FSARegressor`` gives it targets of median 0 and robust scale 1 (1.4826 times the median
    absolute deviation).

    Parameters
    ----------
    delta : float, default 1.35
        Half width, above 0, of the quadratic part.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35
    (1964).
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
    """A smooth check loss of the residual u = y - f, whose minimum is the quantile q.

    q u + width ln(1 + exp(-u / width)).

    It is the check loss blurred by a logistic density of scale ``width``, and tends to it as the
    width goes to 0. ``FSARegressor`` gives it targets of median 0 and robust scale 1 (1.4826 times
    the median absolute deviation).

    Parameters
    ----------
    quantile : float, default 0.5
        q, in (0, 1).
    width : float, default 0.02
        Scale of the smoothing, above 0. Less is closer to the check loss and takes more steps.

    References
    ----------
    M. Fernandes, E. Guerre, E. Horta, "Smoothing quantile regressions", Journal of Business and
    Economic Statistics 39 (2021).
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
        # Far from the kink the loss is straight: a share of the parabola that touches there and
        # majorises.
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
        # Gradient steps of length 1 are safe on it, also with momentum
        return QuantileLoss(self.quantile, max(self.width, 0.25))


def weighted_quantile(values: np.ndarray, weight: np.ndarray, q: float) -> float:
    """Smallest value with at least a fraction ``q`` of the weight at or below it.

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


def _exp(scores: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(scores, 500.0))  # beyond, squares of sums overflow
