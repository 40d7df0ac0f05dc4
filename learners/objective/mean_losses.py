"""Losses with a log link, for counts and non-negative amounts."""

from typing import Any

import numpy as np
from scipy.special import xlogy

from ..parameters import check_real
from .base import RowLoss


class MeanLoss(RowLoss):
    """Half the deviance of a target with mean exp(f) and variance exp(f) ** ``power`` for score f.

    This is the base class for losses with a log link. The loss is convex in f for powers from 1 to
    2.

    References
    ----------
    P. McCullagh, J. A. Nelder, "Generalized Linear Models", Chapman and Hall (1989).
    """

    tasks = frozenset({"regression"})
    max_curvature = np.inf
    target_scaling = None
    link = "log"
    power: float
    targets: str  # expected targets, for error messages

    def row_values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        p, mean = self.power, _exp((2.0 - self.power) * scores)
        ratio = y * _exp((1.0 - p) * scores)
        if p == 1.0:
            deviance = mean - y * scores + (xlogy(y, y) - y)
        elif p == 2.0:
            deviance = ratio + scores - 1.0 - np.log(np.maximum(y, 1e-300))
        else:
            best = y ** (2.0 - p) / ((2.0 - p) * (p - 1.0))
            deviance = mean / (2.0 - p) + ratio / (p - 1.0) - best
        return deviance.sum(axis=1)

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        p = self.power
        return (_exp((2.0 - p) * scores) - y * _exp((1.0 - p) * scores)) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        p = self.power
        bend = (2.0 - p) * _exp((2.0 - p) * scores) + (p - 1.0) * y * _exp((1.0 - p) * scores)
        return bend * sample_weight[:, None]

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(sample_weight @ y, 1e-300))

    def encode_targets(self, y: Any) -> Any:
        check_real("power", self.power, 1.0, 2.0)
        values = np.asarray(y)
        numbers = values.dtype.kind in "iuf" and values.size
        lowest = np.fmin.reduce(values, axis=None) if numbers else np.nan
        if lowest < 0 or (lowest == 0 and self.power >= 2.0):
            raise ValueError(
                f"y contains {lowest:g}; expected {self.targets} for loss={self.name!r}"
            )
        if lowest == 0 and not values.any():
            raise ValueError(
                f"y is 0 everywhere; expected at least one positive number for loss={self.name!r}"
            )
        return y

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        return _exp(scores)

    def quality(self, y: Any, prediction: np.ndarray, sample_weight: Any = None) -> float:
        # D^2, the fraction of deviance explained, as in scikit-learn's d2_tweedie_score
        y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        constant = np.broadcast_to(np.average(y, axis=0, weights=sample_weight), y.shape)
        logs = [np.log(np.maximum(m, 1e-300)).reshape(y.shape) for m in (prediction, constant)]
        left, whole = (np.average(self.row_values(y, f), weights=sample_weight) for f in logs)
        return 1.0 - float(left) / max(float(whole), 1e-300)


class PoissonLoss(MeanLoss):
    """Half the Poisson deviance exp(f) - y f - y + y ln y for counts y with mean exp(f).

    The loss equals the negative log likelihood up to a constant.
    """

    name = "poisson"
    power = 1.0
    targets = "non-negative counts"


class GammaLoss(MeanLoss):
    """Half the gamma deviance y exp(-f) + f - 1 - ln y for amounts y > 0 with mean exp(f).

    The variance is proportional to the squared mean.
    """

    name = "gamma"
    unknown_dispersion = True
    power = 2.0
    targets = "positive amounts"


class TweedieLoss(MeanLoss):
    """Half the Tweedie deviance of non-negative amounts, many of which may be 0.

    The mean is exp(f), and the variance is proportional to mean ** ``power``.

    Parameters
    ----------
    power : float, default 1.5
        Power of the mean, from 1 (Poisson loss) to 2 (gamma loss). For powers in between, an amount
        is the sum of a Poisson-distributed number of gamma variables ([1]_); an example is the
        total cost of insurance claims.

    References
    ----------
    .. [1] B. Jorgensen, "Exponential dispersion models", JRSS B 49 (1987).
    """

    name = "tweedie"
    unknown_dispersion = True
    targets = "non-negative amounts"

    def __init__(self, power: float = 1.5) -> None:
        self.power = power


class NegativeBinomialLoss(MeanLoss):
    """Half the deviance of counts with mean m = exp(f) and variance m + ``dispersion`` m^2.

    Parameters
    ----------
    dispersion : float, default 1.0
        Positive dispersion. The loss tends to the Poisson loss as the dispersion tends to 0.
    """

    name = "negative_binomial"
    power = 1.0
    targets = "non-negative counts"

    def __init__(self, dispersion: float = 1.0) -> None:
        self.dispersion = dispersion

    def row_values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        a = self.dispersion
        best = xlogy(y, y) - (y + 1.0 / a) * np.log1p(a * y)
        logs = np.logaddexp(0.0, np.log(a) + scores)  # log(1 + a m)
        return (best - y * scores + (y + 1.0 / a) * logs).sum(axis=1)

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        mean = _exp(scores)
        return (mean - y) / (1.0 + self.dispersion * mean) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        a, mean = self.dispersion, _exp(np.minimum(scores, 200.0))
        return mean * (1.0 + a * y) / (1.0 + a * mean) ** 2 * sample_weight[:, None]

    def encode_targets(self, y: Any) -> Any:
        check_real("dispersion", self.dispersion, 0.0, above=True)
        return super().encode_targets(y)


def _exp(scores: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(scores, 500.0))  # larger values would overflow in squared sums
