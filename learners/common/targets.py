"""Encoding of class labels, scaling of targets, and integer codes of column groups."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from ..designs.factory import rowwise
from ..objective import (
    FlippedLogisticLoss,
    Loss,
    MultinomialLoss,
    loss_of_several_classes,
    pointwise_loss,
    weighted_quantile,
)
from ..sklearn_bases import ClassifierMixin
from ..types import ArrayLike, ClassWeight, Matrix
from .additive import class_probabilities
from .validation import check_sample_weight

# minimum rows of a class, if rarer than 1 in 10, for reliable probabilities (heuristic)
_MIN_ROWS_OF_CLASS = 10


def class_codes(y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in ascending order and the class index of each row.

    Raises
    ------
    ValueError
        If the labels are continuous numbers, cannot be ordered, or contain a single class.
    TypeError
        If the labels are bytes.
    """
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in np.ravel(y).tolist()})
        if len(kinds) == 1:  # scikit-learn raises the error for invalid labels
            raise
        raise ValueError(
            f"y mixes labels of type {' and '.join(kinds)}; expected labels of one type"
        ) from None
    if len(classes) < 2:
        raise ValueError(
            f"y contains only one class ({classes.tolist()[0]!r}); a classifier needs at least two"
        )
    return classes, codes


def stream_codes(estimator: Any, y: ArrayLike, classes: ArrayLike | None) -> np.ndarray:
    """Return the class index of each row in a batch; the first batch sets ``classes_``.

    Raises
    ------
    ValueError
        If ``classes`` is missing for the first batch, if it differs for a later batch, or if y
        contains a label that is not in ``classes``.
    """
    check_classification_targets(y)
    if not hasattr(estimator, "classes_"):
        if classes is None:
            raise ValueError(
                "classes=None is not valid in the first call to partial_fit; expected all class "
                "labels"
            )
        estimator.classes_, _ = class_codes(classes)
    elif classes is not None and not np.array_equal(estimator.classes_, unique_labels(classes)):
        raise ValueError(
            f"classes={np.asarray(classes).tolist()} differs from the classes of the first "
            f"call; expected {estimator.classes_.tolist()}"
        )
    unknown = np.setdiff1d(y, estimator.classes_)
    if len(unknown):
        raise ValueError(
            f"y contains the unknown label {unknown.tolist()[0]!r}; expected labels from "
            f"{estimator.classes_.tolist()}"
        )
    return np.searchsorted(estimator.classes_, y)


def check_two_classes(
    y: ArrayLike, weight: np.ndarray, rows: str = "rows with positive weights"
) -> None:
    """Check that the rows with positive weight belong to at least two classes.

    Raises
    ------
    ValueError
        If there is only one class; the message names it.
    """
    present = np.unique(np.asarray(y)[weight > 0]).tolist()
    if len(present) == 1:
        raise ValueError(
            f"the {rows} contain only one class ({present[0]!r}); a classifier needs at least two"
        )


def encode_classes(
    y: ArrayLike, loss: str | Loss, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, Loss]:
    """Encode classes as targets, and extend the loss to more than two classes.

    Two classes are encoded as -1 and +1 in one column. With more classes, ``"auto"`` and the
    logistic loss become the multinomial loss, and any other margin loss is applied to the
    differences between class scores (:class:`VapnikLoss`). A custom pointwise loss that is not a
    margin loss is applied to each class separately (one-vs-rest).

    Parameters
    ----------
    y : array of shape (n_samples,)
        Class labels of any type (at least two classes).
    loss : str or Loss
        Loss; ``"auto"`` is the flipped logistic loss for two classes and the multinomial loss for
        more.
    weight : ndarray of shape (n_samples,) or None, default None
        Row weights. Unless ``loss`` is an object, the assumed fraction of flipped labels depends on
        the weighted fraction of the rarest class.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Classes in ascending order.
    targets : ndarray of shape (n_samples, 1 or n_classes)
        One-hot columns for multiclass losses, otherwise -1 and +1.
    loss : Loss
        Loss for these classes.
    """
    classes, codes = class_codes(y)
    several = len(classes) > 2
    if isinstance(loss, str) and loss == "auto":
        loss = MultinomialLoss.name if several else FlippedLogisticLoss.name
    resolved = pointwise_loss(loss)
    if isinstance(loss, str) and isinstance(resolved, FlippedLogisticLoss):
        counts = np.bincount(codes, weight)
        resolved = FlippedLogisticLoss.of_shares(counts / max(counts.sum(), 1e-300))
    if several:
        resolved = loss_of_several_classes(resolved)
    if resolved.several_classes:
        targets = np.eye(len(classes))[codes]
    elif several:
        targets = 2.0 * np.eye(len(classes))[codes] - 1.0
    else:
        targets = np.where(codes == 1, 1.0, -1.0)[:, None]
    return classes, targets, resolved


def weighted_classes(
    class_weight: ClassWeight, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Multiply the row weights by the class weights.

    "balanced" uses the total row weight of each class instead of its number of rows.

    Examples
    --------
    >>> labels, codes = np.array(["a", "b"]), np.array([0, 0, 1])
    >>> weighted_classes("balanced", labels, codes, np.array([1.0, 1.0, 4.0]))
    array([1.5, 1.5, 3. ])
    """
    counted = weight > 0
    present, factor = np.unique(codes[counted]), np.ones(len(classes))
    factor[present] = compute_class_weight(
        class_weight,
        classes=classes[present],
        y=classes[codes[counted]],
        sample_weight=weight[counted],
    )
    return weight * factor[codes]


class SparseClassifierMixin(ClassifierMixin):
    """Mixin with label encoding and prediction for classifiers that implement ``_scores(X)``."""

    classes_: np.ndarray
    class_weight: Any = None
    calibration_: tuple[float, float] | None = None  # slope and flip, from held-out rows
    _scores: Any

    def _encode_labels(
        self, y: ArrayLike, loss: str | Loss, sample_weight: ArrayLike | None, n_samples: int
    ) -> tuple[np.ndarray, Loss, np.ndarray]:
        """Set ``classes_``, and return the targets, the matching loss and the row weights."""
        weight = check_sample_weight(sample_weight, n_samples)
        if self.class_weight is not None:
            weight = weighted_classes(self.class_weight, *class_codes(y), weight)
        self.classes_, targets, resolved = encode_classes(y, loss, weight)
        check_two_classes(y, weight)
        _warn_of_rare_class(y, self.classes_, weight)
        return targets, resolved, weight

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Compute the class scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, one score per row, which is positive if ``classes_[1]`` is predicted;
            otherwise, one score per class.
        """
        return self._of_classes(self._scores(X))

    def _of_classes(self, scores: np.ndarray) -> np.ndarray:
        if len(self.classes_) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Matrix) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict labels.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        return rowwise(self.labels, self.decision_function(X), dtype=self.classes_.dtype)

    def labels(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores to labels.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            One score per class, or a single score per row for two classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            Label of each row.
        """
        one = scores.ndim == 1 or scores.shape[1] == 1
        return self.classes_[(scores > 0).ravel().astype(int) if one else scores.argmax(axis=1)]

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Predict class probabilities.

        The logistic and multinomial losses and, for two classes, the flipped logistic loss define
        probabilities. For other losses, the logistic function (two classes) or softmax (more) of
        the scores is returned, which is not calibrated. The flipped logistic loss yields the
        probabilities of the observed labels, flip + (1 - 2 flip) / (1 + exp(-score)), which range
        from 0.02 to 0.98 by default. Estimators that choose the number of features by
        cross-validation return calibrated probabilities for every loss.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return rowwise(self._probabilities, self.decision_function(X), len(self.classes_))

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        flip = getattr(getattr(self, "loss_", None), "flip", 0.0)
        return class_probabilities(scores, *(self.calibration_ or (1.0, flip)))


def _warn_of_rare_class(y: ArrayLike, classes: np.ndarray, weight: np.ndarray) -> None:
    """Warn if the rarest class has too few rows to estimate its probability reliably."""
    present = np.asarray(y)[weight > 0]
    counts = np.array([np.count_nonzero(present == label) for label in classes])
    rarest = int(counts.argmin())
    if counts[rarest] < _MIN_ROWS_OF_CLASS and counts[rarest] < len(present) / _MIN_ROWS_OF_CLASS:
        warnings.warn(
            f"class {classes.tolist()[rarest]!r} has only {counts[rarest]} of {len(present)} "
            f"rows, so its probabilities are unreliable; at least {_MIN_ROWS_OF_CLASS} rows are "
            "recommended",
            stacklevel=4,
        )


def unit_variance(y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale targets to mean 0 and variance 1 per output; also return the means and scales.

    The targets have shape (n, q), and the weights must sum to one.

    Without scaling, the output with the largest values would dominate the selection of shared
    columns.

    Raises
    ------
    ValueError
        If the squared targets overflow or underflow.
    """
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    mean = weight @ targets
    with np.errstate(over="ignore"):
        scale = np.sqrt(weight @ (targets - mean) ** 2)
    if not np.isfinite(scale).all():
        raise ValueError(
            f"y contains values up to {np.abs(targets).max():g}, whose squares overflow; rescale y"
        )
    small = (scale < 1e-150) & (np.ptp(targets[weight > 0], axis=0) > 0)
    if small.any():
        most = np.abs(targets[:, small]).max()
        raise ValueError(f"y contains values up to {most:g}, whose squares underflow; rescale y")
    scale[scale == 0] = 1.0
    return (targets - mean) / scale, mean, scale


def scaled_targets(
    y: np.ndarray, weight: np.ndarray, how: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale targets as the loss requires (``target_scaling``); also return the shift and scale.

    Raises
    ------
    ValueError
        If the squared targets overflow.
    """
    if how == "variance":
        return unit_variance(y, weight)
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    if how is None:
        return targets, np.zeros(targets.shape[1]), np.ones(targets.shape[1])
    _, _, spread = unit_variance(y, weight)
    middle = np.array([weighted_quantile(column, weight, 0.5) for column in targets.T])
    scale = 1.4826 * np.array(
        [weighted_quantile(column, weight, 0.5) for column in np.abs(targets - middle).T]
    )
    scale = np.where(scale > 0, scale, spread)  # more than half the targets are equal
    return (targets - middle) / scale, middle, scale


def group_codes(groups: ArrayLike | None, n_features: int) -> np.ndarray | None:
    """Convert the group labels of columns to 0, 1, ... in the order of first appearance.

    Raises
    ------
    ValueError
        If the number of labels differs from the number of features.
    """
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            f"groups has shape {labels.shape}; "
            f"expected one label for each of the {n_features} features"
        )
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]
