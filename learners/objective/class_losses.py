"""Multiclass losses with one score per class and one-hot targets."""

import numpy as np
from scipy.special import log_softmax, softmax

from .base import Loss, MarginLoss, RowLoss


class MultinomialLoss(RowLoss):
    """Cross-entropy of softmax scores with one-hot targets."""

    name = "multinomial"
    tasks = frozenset({"binary", "multiclass"})
    max_curvature = 0.5
    default_step_size = 3.0
    several_classes = True
    log_odds = True
    redundant_outputs = 1
    is_log_likelihood = True

    def row_values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return -(y * log_softmax(scores, axis=1)).sum(axis=1)

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return (softmax(scores, axis=1) - y) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        # The diagonal alone may be half of the bound that the full matrix requires.
        p = softmax(scores, axis=1)
        return 2.0 * p * (1.0 - p) * sample_weight[:, None]

    def row_hessians(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        p = softmax(scores, axis=1)
        hessians = p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]
        return hessians * sample_weight[:, None, None]

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        logs = np.log(np.maximum(sample_weight @ y, 1e-300))
        return logs - logs.mean()


class VapnikLoss(Loss):
    """Multiclass loss derived from a binary loss.

    The loss is the mean of ``base(f_y - f_c)`` over all classes c other than y. Targets are one-hot
    encoded. With two classes, the loss equals ``base`` applied to the score f_1 - f_0. For the
    hinge loss, this is the multiclass support vector machine of Vapnik [1]_ and of Weston and
    Watkins [2]_.

    Parameters
    ----------
    base : MarginLoss
        Binary loss of the margin.

    References
    ----------
    .. [1] V. Vapnik, "Statistical Learning Theory", Wiley (1998).
    .. [2] J. Weston, C. Watkins, "Support vector machines for multi-class pattern recognition",
           ESANN (1999).
    """

    several_classes = True
    redundant_outputs = 1
    exact_curvature = False

    def __init__(self, base: MarginLoss) -> None:
        self.base = base

    @property
    def default_step_size(self) -> float | None:  # type: ignore[override]
        return self.base.default_step_size

    @property
    def has_curvature(self) -> bool:  # type: ignore[override]
        return self.base.has_curvature

    @property
    def max_curvature(self) -> float:  # type: ignore[override]
        # The Hessian of a row is the Laplacian of a star with C nodes, whose largest eigenvalue is
        # C / (C - 1) <= 2 times the curvature of ``base``.
        return 2.0 * self.base.max_curvature

    def _margins(self, y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        true_score = (y * scores).sum(axis=1, keepdims=True)
        return true_score - scores, 1.0 - y  # the second array excludes the true class

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        u, others = self._margins(y, scores)
        return float(
            sample_weight @ (others * self.base.margin_value(u)).sum(axis=1) / (y.shape[1] - 1)
        )

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        u, others = self._margins(y, scores)
        slope = others * self.base.margin_slope(u) * (sample_weight / (y.shape[1] - 1))[:, None]
        return y * slope.sum(axis=1, keepdims=True) - slope

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        # Twice the diagonal of a Laplacian is a majorant.
        u, others = self._margins(y, scores)
        bend = (
            others
            * self.base.margin_curvature(u)
            * (2.0 * sample_weight / (y.shape[1] - 1))[:, None]
        )
        return y * bend.sum(axis=1, keepdims=True) + bend

    def row_hessians(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        # The graph of a row is a star that connects its true class to every other class.
        u, others = self._margins(y, scores)
        bend = others * self.base.margin_curvature(u) * (sample_weight / (y.shape[1] - 1))[:, None]
        hessians = bend[:, :, None] * np.eye(y.shape[1])
        hessians += y[:, :, None] * y[:, None, :] * bend.sum(axis=1)[:, None, None]
        return hessians - y[:, :, None] * bend[:, None, :] - bend[:, :, None] * y[:, None, :]
