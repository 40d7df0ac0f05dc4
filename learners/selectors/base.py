"""What the linear selectors share: their scikit-learn faces. Each algorithm adds ``_select`` on encoded targets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..common.targets import SparseClassifierMixin, unit_variance
from ..common.validation import check_sample_weight
from ..designs.base import Design
from ..objective.losses import Loss, pointwise_loss


class Selector(SelectorMixin, BaseEstimator):
    """A selector with linear scores; ``_select`` of each algorithm sets ``support_``, ``coef_`` and ``intercept_``.

    In ``_select(X, y, loss, weight)`` ``X`` is validated, ``y`` (n, q) encoded for the loss, and ``weight`` sums to one;
    ``coef_`` is (q, n_features), of regressions on one output at last (n_features,).
    """

    loss: str | Loss
    support_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def _validate(self, X, y: Any = "no_validation", **kwargs):
        sparse: Any = ("csr", "csc") if self.__sklearn_tags__().input_tags.sparse else False
        return validate_data(self, X, y, accept_sparse=sparse, dtype=[np.float64, np.float32], **kwargs)

    def _select(self, X, y: np.ndarray, loss: Loss, weight: np.ndarray) -> None:
        raise NotImplementedError

    def _store(self, design: Design, kept: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> None:
        """Keep a fit of the standardised columns ``kept`` (ascending), ``coef`` (k, q), in units of the raw columns."""
        raw, self.intercept_ = design.keep(kept).unstandardise(coef[:, None], intercept)
        self.support_ = np.zeros(design.n_features, bool)
        self.support_[kept] = True
        self.coef_ = np.zeros((coef.shape[1], design.n_features))
        self.coef_[:, kept] = raw[:, 0].T

    def _scores(self, X) -> np.ndarray:
        """Scores (n, q) of raw rows; (n,) where ``coef_`` is 1-D."""
        check_is_fitted(self)
        return self._validate(X, reset=False) @ self.coef_.T + self.intercept_


class SelectingClassifier(SparseClassifierMixin, Selector):
    """Labels in, labels out."""

    def _encode(self, X, y, sample_weight):
        """Validate; returns X, encoded targets (n, q), the loss that fits them, and weights."""
        X, y = self._validate(X, y)
        return X, *self._encode_labels(y, self.loss, sample_weight, X.shape[0])

    def fit(self, X, y, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any type, two classes or more.
        sample_weight : array of shape (n_samples,) or None

        Raises
        ------
        ValueError
            One class only, NaN, a parameter out of range.
        """
        X, encoded, loss, weight = self._encode(X, y, sample_weight)
        self._select(X, encoded, loss, weight / weight.sum())
        return self


class SelectingRegressor(RegressorMixin, Selector):
    """Numbers in, numbers out; several outputs share one support."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None

        Raises
        ------
        ValueError
            NaN, a parameter out of range.
        """
        X, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_sample_weight(sample_weight, len(y))
        weight = weight / weight.sum()
        targets, mean, scale = unit_variance(y, weight)
        self._select(X, targets, pointwise_loss(self.loss), weight)
        self.intercept_ = mean + scale * self.intercept_
        self.coef_ = self.coef_ * scale[:, None]
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def predict(self, X) -> np.ndarray:
        """Predictions, shaped like the ``y`` of :meth:`fit`."""
        return self._scores(X)
