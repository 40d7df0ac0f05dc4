"""Losses with respect to the scores: value, gradient, curvature. They never see the features.

Targets ``y`` are encoded by the estimators: (n, q) real numbers for regression, -1 / +1 in (n, 1) for the binary losses, one column
of 0 / 1 per class for the losses of several classes. ``sample_weight`` (n,) sums to one, so that every value is a weighted mean.
Scores are (n, q). A loss of one's own is a subclass of :class:`Loss` with ``value`` and ``gradient``; ``curvature`` is needed for
exchanges of features (``polish="swap"``). A binary one is easier as a subclass of :class:`MarginLoss`: functions of the margin.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator

from .margin_kernels import flipped_logistic_terms

Weighing = Callable[[np.ndarray], np.ndarray]


def _diagonal(curvature: np.ndarray) -> list[Weighing]:
    """For each output the product with a diagonal matrix, in the precision of what it is applied to."""

    def weighing(column: np.ndarray) -> Weighing:
        return lambda A: A * column.astype(A.dtype, copy=False)[:, None]

    return [weighing(curvature[:, q]) for q in range(curvature.shape[1])]


class Loss(BaseEstimator):
    """A differentiable loss of scores.

    Attributes
    ----------
    max_curvature : float
        Bound on the second derivative with respect to one score: what a step size needs.
    pointwise : bool
        Whether row i of the gradient depends on row i of the scores alone, so that the rows can be read in blocks.
    """

    max_curvature: float = 1.0
    pointwise: bool = True

    def value(self, y, scores, sample_weight) -> float:
        """Weighted mean loss."""
        raise NotImplementedError

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        """Derivative of :meth:`value` with respect to the scores, (n, q)."""
        raise NotImplementedError

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        """Second derivative of :meth:`value` for each score alone, (n, q); never negative (see each loss)."""
        raise NotImplementedError

    def value_and_gradient(self, y, scores, sample_weight) -> tuple[float, np.ndarray]:
        """Both at once; override where that is cheaper."""
        return self.value(y, scores, sample_weight), self.gradient(y, scores, sample_weight)

    def expansion(self, y, scores, sample_weight) -> tuple[float, np.ndarray, list[Weighing]]:
        """Value, gradient and, for each output, the map A (n, p) -> W A.

        W is the Hessian of :meth:`value` over the scores of that output, or a bound on it.
        """
        curvature = self.curvature(y, scores, sample_weight)
        return *self.value_and_gradient(y, scores, sample_weight), _diagonal(curvature)

    def best_constant(self, y, sample_weight) -> np.ndarray:
        """Score (q,) that minimises the loss when no feature is used; 0 where there is no closed form."""
        return np.zeros(y.shape[1])


class SquaredLoss(Loss):
    """Half the squared error, eq. (9) of the arXiv text; several outputs add up."""

    def value(self, y, scores, sample_weight) -> float:
        return float(0.5 * sample_weight @ ((scores - y) ** 2).sum(axis=1))

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        return (scores - y) * sample_weight[:, None]

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        return np.repeat(sample_weight[:, None], scores.shape[1], axis=1)

    def best_constant(self, y, sample_weight) -> np.ndarray:
        return sample_weight @ y


class MarginLoss(Loss):
    """A loss of the margin u = y f with y in {-1, +1}; several columns add up, and y = 0 leaves a score out."""

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        """Loss of the margin."""
        raise NotImplementedError

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        """Its derivative."""
        raise NotImplementedError

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        """Its second derivative; where that is not positive, a majorising one."""
        raise NotImplementedError

    def value(self, y, scores, sample_weight) -> float:
        return float(sample_weight @ ((y != 0) * self.margin_value(y * scores)).sum(axis=1))

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        return y * self.margin_slope(y * scores) * sample_weight[:, None]

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        return y * y * self.margin_curvature(y * scores) * sample_weight[:, None]


class _Logistic(MarginLoss):
    """What the logistic losses share: everything in one compiled pass."""

    max_curvature = 0.25
    flip = 0.0

    def _terms(self, y, scores, sample_weight):
        gradient, curvature = np.empty(scores.shape), np.empty(scores.shape)
        value = flipped_logistic_terms(y, np.asarray(scores, dtype=np.float64), sample_weight, self.flip, gradient, curvature)
        return value, gradient, curvature

    def value_and_gradient(self, y, scores, sample_weight):
        return self._terms(y, scores, sample_weight)[:2]

    def expansion(self, y, scores, sample_weight):
        value, gradient, curvature = self._terms(y, scores, sample_weight)
        return value, gradient, _diagonal(curvature)


class LogisticLoss(_Logistic):
    """ln(1 + exp(-y f)), eq. (5) of the arXiv text."""

    def margin_value(self, u):
        return np.logaddexp(0.0, -u)

    def margin_slope(self, u):
        return -expit(-u)

    def margin_curvature(self, u):
        p = expit(-u)
        return p * (1.0 - p)

    def best_constant(self, y, sample_weight):
        positive = sample_weight @ (y > 0)
        negative = sample_weight @ (y < 0)
        both = (positive > 0) & (negative > 0)
        return np.where(both, np.log(np.where(both, positive, 1.0) / np.where(both, negative, 1.0)), 0.0)


class HuberisedHingeLoss(MarginLoss):
    """The smooth hinge of the SVM variant, eq. (8) of the arXiv text.

    Parameters
    ----------
    h : float
        Half width of the quadratic part around margin 1.
    """

    def __init__(self, h: float = 0.1):
        self.h = h

    @property
    def max_curvature(self) -> float:  # type: ignore[override]
        return 0.5 / self.h

    def margin_value(self, u):
        h = self.h
        return np.where(u > 1 + h, 0.0, np.where(u < 1 - h, 1.0 - u, (1 + h - u) ** 2 / (4 * h)))

    def margin_slope(self, u):
        return np.clip((u - 1.0 - self.h) / (2.0 * self.h), -1.0, 0.0)

    def margin_curvature(self, u):
        # On the linear part Newton needs a curvature: that of the parabola which touches at u and majorises.
        return np.where(u > 1.0 + self.h, 0.0, 1.0 / np.maximum(1.0 + self.h - u, 2.0 * self.h))


class LorenzLoss(MarginLoss):
    """ln(1 + (u - 1)^2) for u < 1 and 0 beyond: bounded influence, for noisy labels (PAMI text, FSL)."""

    max_curvature = 2.0

    def margin_value(self, u):
        return np.log1p(np.minimum(u - 1.0, 0.0) ** 2)

    def margin_slope(self, u):
        v = np.minimum(u - 1.0, 0.0)
        return 2.0 * v / (1.0 + v * v)

    def margin_curvature(self, u):
        # ln(1 + v^2) is concave in v^2: slope / v majorises it, and stays positive where the true curvature is not.
        v = u - 1.0
        return np.where(v < 0.0, 2.0 / (1.0 + v * v), 0.0)


class FlippedLogisticLoss(_Logistic):
    """Minus the log likelihood of labels of which a share was flipped: -ln(flip + (1 - 2 flip) / (1 + exp(-u))).

    Nearly the logistic loss for well-placed rows, and bounded by -ln(flip) for rows on the wrong side, so that a few wrong labels
    cost little. It needs no knowledge of the noise: any small ``flip`` serves clean labels as well (see docs/learners.md).

    Parameters
    ----------
    flip : float
        Share of flipped labels, in (0, 0.5).

    References
    ----------
    J. B. Copas, "Binary regression models for contaminated data", JRSS B 50 (1988): the same likelihood.
    """

    def __init__(self, flip: float = 0.02):
        self.flip = flip

    def margin_value(self, u):
        return -np.log(self.flip + (1.0 - 2.0 * self.flip) * expit(u))

    def margin_slope(self, u):
        p = expit(u)
        return -(1.0 - 2.0 * self.flip) * p * (1.0 - p) / (self.flip + (1.0 - 2.0 * self.flip) * p)

    def margin_curvature(self, u):
        # That of the clean likelihood times the chance that the label is not a coin toss (expectation-maximisation): it majorises.
        p = expit(u)
        clean = (1.0 - 2.0 * self.flip) * p
        return clean / (self.flip + clean) * p * (1.0 - p)


class ExponentialLoss(MarginLoss):
    """exp(-y f), eq. (2.5) of the thesis on sDist: boosting's loss. Its curvature has no bound, so no fixed step size is safe."""

    max_curvature = np.inf

    def margin_value(self, u):
        return np.exp(-np.maximum(u, -500.0))

    def margin_slope(self, u):
        return -np.exp(-np.maximum(u, -500.0))

    def margin_curvature(self, u):
        return np.exp(-np.maximum(u, -500.0))

    def best_constant(self, y, sample_weight):
        return 0.5 * LogisticLoss().best_constant(y, sample_weight)


class MultinomialLoss(Loss):
    """Cross entropy of softmax scores; y has one column of 0 / 1 per class."""

    max_curvature = 0.5

    def value(self, y, scores, sample_weight) -> float:
        return float(-sample_weight @ (y * log_softmax(scores, axis=1)).sum(axis=1))

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        return (softmax(scores, axis=1) - y) * sample_weight[:, None]

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        # The diagonal alone can be half of what the full matrix asks for.
        p = softmax(scores, axis=1)
        return 2.0 * p * (1.0 - p) * sample_weight[:, None]

    def best_constant(self, y, sample_weight) -> np.ndarray:
        logs = np.log(np.maximum(sample_weight @ y, 1e-300))
        return logs - logs.mean()


class VapnikLoss(Loss):
    """Several classes on any binary loss: the mean of ``base`` over the differences f_y - f_c to all other classes c.

    ``y`` has one column of 0 / 1 per class. With two classes this is ``base`` of f_1 - f_0; with the hinge it is the
    multiclass machine of Vapnik (Statistical Learning Theory, 1998) and of Weston and Watkins.

    Parameters
    ----------
    base : MarginLoss
        Loss of one margin.
    """

    def __init__(self, base: MarginLoss):
        self.base = base

    @property
    def max_curvature(self) -> float:  # type: ignore[override]
        # Per row the Hessian is the Laplacian of a star with C nodes: its largest eigenvalue is C / (C - 1) <= 2 times base's.
        return 2.0 * self.base.max_curvature

    def _margins(self, y, scores):
        own = (y * scores).sum(axis=1, keepdims=True)
        return own - scores, 1.0 - y  # the second array masks the class itself

    def value(self, y, scores, sample_weight) -> float:
        u, others = self._margins(y, scores)
        return float(sample_weight @ (others * self.base.margin_value(u)).sum(axis=1) / (y.shape[1] - 1))

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        u, others = self._margins(y, scores)
        slope = others * self.base.margin_slope(u) * (sample_weight / (y.shape[1] - 1))[:, None]
        return y * slope.sum(axis=1, keepdims=True) - slope

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        # Twice the diagonal of a Laplacian majorises it.
        u, others = self._margins(y, scores)
        bend = others * self.base.margin_curvature(u) * (2.0 * sample_weight / (y.shape[1] - 1))[:, None]
        return y * bend.sum(axis=1, keepdims=True) + bend


LOSSES = {
    "squared": SquaredLoss,
    "logistic": LogisticLoss,
    "huberised_hinge": HuberisedHingeLoss,
    "lorenz": LorenzLoss,
    "flipped_logistic": FlippedLogisticLoss,
    "multinomial": MultinomialLoss,
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the object itself.

    Raises
    ------
    ValueError
        If the name is not one of ``LOSSES``, or the object is no loss.
    """
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    if not isinstance(loss, Loss):
        raise ValueError(f"loss={loss!r} is unknown; expected one of {sorted(LOSSES)} or a Loss object")
    return loss


def pointwise_loss(loss: str | Loss) -> Loss:
    """:func:`get_loss`, and of single samples.

    Raises
    ------
    ValueError
        If it is no loss, or one that compares samples.
    """
    found = get_loss(loss)
    if not found.pointwise:
        raise ValueError(f"loss={loss!r} compares samples; expected one of single samples")
    return found


def check_bounded(loss: Loss) -> None:
    """Complain about a loss whose curvature has no bound: no step size would be safe."""
    if not np.isfinite(loss.max_curvature):
        raise ValueError(f"loss={loss!r} has a curvature without bound; expected one whose max_curvature is finite")


_KINDS = {
    SquaredLoss: (0, None),
    LogisticLoss: (1, None),
    FlippedLogisticLoss: (1, "flip"),
    HuberisedHingeLoss: (2, "h"),
    LorenzLoss: (3, None),
}


def kernel_code(loss: Loss) -> tuple[int, float] | None:
    """Kind and parameter for :func:`loss_terms`; None for a loss without a compiled form (a subclass may have changed anything)."""
    if type(loss) not in _KINDS:
        return None
    kind, parameter = _KINDS[type(loss)]
    return kind, 0.0 if parameter is None else float(getattr(loss, parameter))
