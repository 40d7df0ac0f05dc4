"""Losses as functions of the scores, with value, gradient and curvature.

The estimators encode targets ``y`` as real numbers (n, q) for regression, as -1 and +1 in an array
(n, 1) for binary losses, and as one-hot columns for multiclass losses. Scores have shape (n, q).
``sample_weight`` (n,) sums to one, so that every value is a weighted mean. A custom loss is a
subclass of :class:`Loss` with ``value`` and ``gradient``; feature exchanges also require
``curvature``. A binary loss is easier to define as a subclass of :class:`MarginLoss`, whose methods
are functions of the margin.

Solvers use the attributes of a loss and never its type. To add a loss, define a class in this
module and add it to ``LOSSES``; the tests discover it by its class.

References
----------
"Barbu et al. (2014)" is A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing
for Regression, Classification and Ranking", arXiv:1310.2880v2. "Barbu et al. (2017)" is A. Barbu,
Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer Vision and Big Data
Learning", IEEE TPAMI 39 (2017). "Ma (thesis)" is Y. Ma, "Flexible Sparse Learning of Feature
Subspaces", Columbia University.
"""

import numpy as np
from scipy.special import expit

from ..compilation import jit
from . import margin_kernels as kernels
from .base import Loss, MarginLoss, RowLoss, SecondOrder, diagonal_products
from .class_losses import MultinomialLoss, VapnikLoss
from .mean_losses import GammaLoss, NegativeBinomialLoss, PoissonLoss, TweedieLoss
from .pairwise import PairwiseLogisticLoss
from .regression_losses import HuberLoss, QuantileLoss
from .survival import CoxLoss

# Fraction of the majorising curvature that replaces a smaller or negative curvature (heuristic)
MIN_SHARE = 0.2


def _flipped_logistic_terms(
    y: np.ndarray,
    scores: np.ndarray,
    weight: np.ndarray,
    flip: float,
    gradient: np.ndarray,
    curvature: np.ndarray,
) -> float:
    u, w = y * scores, weight[:, None] * np.abs(y)
    right = expit(u)
    if flip == 0.0:
        down = w * expit(-u)  # negative slope
        gradient[:], curvature[:] = down * -y, down * right
        return float(np.vdot(w, np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)))
    clean = (1.0 - 2.0 * flip) * right
    likelihood = flip + clean
    down = (1.0 - right) * clean / likelihood
    curvature[:] = np.maximum(right + right + down - 1.0, MIN_SHARE * right) * (down * w)
    gradient[:] = -(down * w * y)
    return float(-np.vdot(w, np.log(likelihood)))


@jit(plain=_flipped_logistic_terms, error_model="numpy")
def flipped_logistic_terms(
    y: np.ndarray,
    scores: np.ndarray,
    weight: np.ndarray,
    flip: float,
    gradient: np.ndarray,
    curvature: np.ndarray,
) -> float:
    """Compute the value, gradient and curvature of the flipped logistic loss in one pass.

    If ``flip`` is 0, this is the logistic loss.
    """
    value = 0.0
    for i in range(scores.shape[0]):
        for q in range(scores.shape[1]):
            if y[i, q] == 0.0:
                gradient[i, q] = curvature[i, q] = 0.0
                continue
            u = y[i, q] * scores[i, q]
            e = np.exp(-abs(u))
            larger, smaller = 1.0 / (1.0 + e), e / (1.0 + e)
            right, wrong = (larger, smaller) if u > 0 else (smaller, larger)
            clean = (1.0 - 2.0 * flip) * right
            likelihood = flip + clean
            w = weight[i]
            value += w * (-np.log(likelihood) if flip > 0 else np.log1p(e) + max(-u, 0.0))
            part = clean / likelihood if flip > 0 else 1.0
            gradient[i, q] = -w * y[i, q] * part * wrong
            curvature[i, q] = (
                w * part * wrong * max(right - (1.0 - part) * wrong, MIN_SHARE * right)
            )
    return value


class SquaredLoss(RowLoss):
    """Half the squared error, summed over the outputs; Barbu et al. (2014), eq. (9)."""

    name = "squared"
    tasks = frozenset({"binary", "multiclass", "regression", "online"})
    is_quadratic = True
    unknown_dispersion = True
    kernel = kernels.SQUARED

    def row_values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return 0.5 * ((scores - y) ** 2).sum(axis=1)

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return (scores - y) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return np.repeat(sample_weight[:, None], scores.shape[1], axis=1)

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return sample_weight @ y


class _Logistic(MarginLoss):
    """Base class for the logistic losses, with value, gradient and curvature in one pass."""

    tasks = frozenset({"binary", "multiclass", "online"})
    max_curvature = 0.25
    default_step_size = 3.0
    is_log_likelihood = True
    log_odds = True

    def _terms(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        gradient, curvature = np.empty(scores.shape), np.empty(scores.shape)
        value = flipped_logistic_terms(
            y, np.asarray(scores, dtype=np.float64), sample_weight, self.flip, gradient, curvature
        )
        return value, gradient, curvature

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        return self._terms(y, scores, sample_weight)[:2]

    def second_order(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> SecondOrder:
        value, gradient, curvature = self._terms(y, scores, sample_weight)
        return value, gradient, diagonal_products(curvature)

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        positive, negative = sample_weight @ (y > 0), sample_weight @ (y < 0)
        flipped = self.flip * (positive + negative)
        positive, negative = positive - flipped, negative - flipped
        both = (positive > 0) & (negative > 0)
        return np.where(
            both, np.log(np.where(both, positive, 1.0) / np.where(both, negative, 1.0)), 0.0
        )


class LogisticLoss(_Logistic):
    """Logistic loss ln(1 + exp(-y f)) for target y and score f; Barbu et al. (2014), eq. (5)."""

    name = "logistic"
    kernel = kernels.LOGISTIC

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -u)

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        return -expit(-u)

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        p = expit(-u)
        return p * (1.0 - p)


class HuberisedHingeLoss(MarginLoss):
    """Smooth hinge loss of a support vector machine; Barbu et al. (2014), eq. (8).

    For margin u, the loss is 0 if u > 1 + h, (1 + h - u)^2 / (4 h) if |u - 1| <= h, and 1 - u
    otherwise, as in [1]_.

    Parameters
    ----------
    h : float, default 0.1
        Positive half-width of the quadratic part around margin 1.

    References
    ----------
    .. [1] O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19
           (2007).
    """

    name = "huberised_hinge"
    tasks = frozenset({"binary", "multiclass", "online"})
    default_step_size = 1.0
    kernel, kernel_parameter = kernels.HUBERISED_HINGE, "h"

    def __init__(self, h: float = 0.1) -> None:
        self.h = h

    @property
    def max_curvature(self) -> float:  # type: ignore[override]
        return 0.5 / self.h

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        h = self.h
        return np.where(u > 1 + h, 0.0, np.where(u < 1 - h, 1.0 - u, (1 + h - u) ** 2 / (4 * h)))

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        return np.clip((u - 1.0 - self.h) / (2.0 * self.h), -1.0, 0.0)

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        # On the linear part, Newton's method uses the curvature of the majorising parabola tangent
        # at u.
        return np.where(u > 1.0 + self.h, 0.0, 1.0 / np.maximum(1.0 + self.h - u, 2.0 * self.h))


class LorenzLoss(MarginLoss):
    """Lorenz loss ln(1 + (u - 1)^2) for margins u < 1, else 0.

    The influence of a row is bounded, which suits noisy labels. See Barbu et al. (2017), eq. (8).
    """

    name = "lorenz"
    tasks = frozenset({"binary", "multiclass", "online"})
    max_curvature = 2.0
    exact_curvature = False
    default_step_size = 1.0
    kernel = kernels.LORENZ

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        return np.log1p(np.minimum(u - 1.0, 0.0) ** 2)

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        v = np.minimum(u - 1.0, 0.0)
        return 2.0 * v / (1.0 + v * v)

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        # ln(1 + v^2) is concave in v^2, so slope / v is a majorant, and positive where the true
        # curvature is not.
        return np.where(u < 1.0, 2.0 / (1.0 + (u - 1.0) ** 2), 0.0)


class FlippedLogisticLoss(_Logistic):
    """Logistic loss for flipped labels, -ln(flip + (1 - 2 flip) / (1 + exp(-u))) for margin u.

    The loss is close to the logistic loss for correctly classified rows and is bounded by -ln(flip)
    for misclassified rows. A few wrong labels therefore have little influence. The noise level need
    not be known, since any ``flip`` far below the fraction of the rarer class is also suitable for
    clean labels (see docs/losses.md). If ``flip`` exceeds that fraction, treating the whole class
    as flipped labels gives a lower loss.

    Parameters
    ----------
    flip : float, default 0.02
        Fraction of flipped labels, in (0, 0.5). If the loss is given by name, estimators use at
        most a tenth of the fraction of the rarest class; see :meth:`of_shares`.

    References
    ----------
    J. B. Copas, "Binary regression models for contaminated data", JRSS B 50 (1988), for the same
    likelihood.
    """

    name = "flipped_logistic"
    kernel, kernel_parameter = kernels.LOGISTIC, "flip"

    def __init__(self, flip: float = 0.02) -> None:
        self.flip = flip

    @classmethod
    def of_shares(cls, shares: np.ndarray) -> "FlippedLogisticLoss":
        """Return the loss for given class fractions.

        ``flip`` is 0.02, or a tenth of the smallest fraction if this is lower.

        Parameters
        ----------
        shares : ndarray of shape (n_classes,)
            Weighted class fractions, which sum to one. Classes with zero weight are ignored.
        """
        return cls(min(0.02, float(shares[shares > 0].min()) / 10.0))

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        return -np.log(self.flip + (1.0 - 2.0 * self.flip) * expit(u))

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        p = expit(u)
        return -(1.0 - 2.0 * self.flip) * p * (1.0 - p) / (self.flip + (1.0 - 2.0 * self.flip) * p)

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        # The true curvature is negative for misclassified rows. It is therefore at least a fraction
        # of the majorising curvature from expectation-maximisation: the curvature of the clean
        # likelihood times the probability that the label is not random.
        p = expit(u)
        clean = (1.0 - 2.0 * self.flip) * p
        part = clean / (self.flip + clean)
        return part * (1.0 - p) * np.maximum(p - (1.0 - part) * (1.0 - p), MIN_SHARE * p)


class HingeLoss(MarginLoss):
    """Hinge loss max(0, 1 - y f) of support vector machines, for target y and score f.

    It has no curvature and is therefore restricted to online learners.
    """

    name = "hinge"
    tasks = frozenset({"online"})
    max_curvature = np.inf
    kernel = kernels.HINGE

    @property
    def smooth(self) -> Loss:
        return HuberisedHingeLoss()

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        return np.maximum(1.0 - u, 0.0)

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        return np.where(u < 1.0, -1.0, 0.0)


class ExponentialLoss(MarginLoss):
    """Exponential loss exp(-y f) of boosting, for target y and score f; [1]_, eq. (2.5).

    The curvature is unbounded, so no fixed step size is safe.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University,
           2017.
    """

    name = "exponential"
    tasks = frozenset({"online"})
    max_curvature = np.inf
    kernel = kernels.EXPONENTIAL

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        return np.exp(-np.maximum(u, -500.0))

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        return -self.margin_value(u)

    margin_curvature = margin_value

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return 0.5 * LogisticLoss().best_constant(y, sample_weight)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        SquaredLoss,
        LogisticLoss,
        HuberisedHingeLoss,
        LorenzLoss,
        FlippedLogisticLoss,
        MultinomialLoss,
        HingeLoss,
        ExponentialLoss,
        PoissonLoss,
        GammaLoss,
        TweedieLoss,
        NegativeBinomialLoss,
        HuberLoss,
        QuantileLoss,
        CoxLoss,
        PairwiseLogisticLoss,
    )
}


def losses_for(task: str) -> list[str]:
    """Return the names of the losses for a task, in the order of ``LOSSES``.

    Parameters
    ----------
    task : {"binary", "multiclass", "regression", "ranking", "online"}
        Type of estimator.

    Returns
    -------
    list of str
        Names of the losses.

    Examples
    --------
    >>> losses_for("multiclass")
    ['squared', 'logistic', 'huberised_hinge', 'lorenz', 'flipped_logistic', 'multinomial']
    """
    return [name for name, loss in LOSSES.items() if task in loss.tasks]


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss with a given name, or a given loss object itself.

    Parameters
    ----------
    loss : str or Loss
        Key in ``LOSSES``, or a loss object.

    Returns
    -------
    Loss
        Loss object.

    Raises
    ------
    ValueError
        If the name is not in ``LOSSES``, or the object is not a loss.
    """
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    if not isinstance(loss, Loss):
        raise ValueError(
            f"loss={loss!r} is unknown; expected one of {sorted(LOSSES)} or a Loss object"
        )
    return loss


def pointwise_loss(loss: str | Loss) -> Loss:
    """Return the result of :func:`get_loss` after checking that the loss is pointwise.

    Parameters
    ----------
    loss : str or Loss
        Key in ``LOSSES``, or a loss object.

    Returns
    -------
    Loss
        Loss object.

    Raises
    ------
    ValueError
        If the argument is not a valid loss, or the loss is not pointwise.
    """
    resolved = get_loss(loss)
    if not resolved.pointwise:
        raise ValueError(
            f"loss={loss!r} compares samples; expected a loss that is a sum over samples"
        )
    return resolved


def regression_loss(loss: str | Loss) -> Loss:
    """Return the result of :func:`get_loss` after checking that the loss suits regression.

    The targets of such a loss are numbers or censored times.

    Parameters
    ----------
    loss : str or Loss
        Key in ``LOSSES``, or a loss object.

    Returns
    -------
    Loss
        Loss object.

    Raises
    ------
    ValueError
        If the argument is not a valid loss, or is neither pointwise nor for censored times.
    """
    resolved = get_loss(loss)
    return resolved if resolved.censored else pointwise_loss(resolved)


def loss_of_several_classes(loss: Loss) -> Loss:
    """Return the multiclass version of a pointwise loss.

    Parameters
    ----------
    loss : Loss
        Pointwise loss.

    Returns
    -------
    Loss
        The multinomial loss if ``loss`` is logistic, a :class:`VapnikLoss` if it is another margin
        loss, and otherwise ``loss`` itself.
    """
    if type(loss) is LogisticLoss:
        return MultinomialLoss()
    return VapnikLoss(loss) if isinstance(loss, MarginLoss) else loss


def check_bounded(loss: Loss) -> None:
    """Check that the curvature of a loss is bounded, since fixed step sizes require this.

    Raises
    ------
    ValueError
        If ``max_curvature`` is infinite.
    """
    if not np.isfinite(loss.max_curvature):
        raise ValueError(
            f"loss={loss!r} has unbounded curvature; expected a loss with a finite "
            "max_curvature or, for FSA, with a curvature method"
        )


def check_curvature(loss: Loss) -> None:
    """Check that a loss has second derivatives.

    Raises
    ------
    ValueError
        If the loss has no second derivatives.
    """
    if not loss.has_curvature:
        raise ValueError(f"loss={loss!r} has no curvature; expected a loss with second derivatives")
