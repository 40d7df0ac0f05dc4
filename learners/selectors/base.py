"""Base classes of the linear selectors, with the scikit-learn interface.

Each algorithm implements ``_select`` for encoded targets.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..common import (
    SparseClassifierMixin,
    SparseInputMixin,
    SupportMixin,
    check_choice,
    check_sample_weight,
    unit_variance,
    validated,
)
from ..compilation import n_values, problem_size
from ..designs import Design, make_design, unscaled, warn_if_constant
from ..objective.losses import Loss, pointwise_loss
from ..parameters import estimator
from ..sklearn_bases import BaseEstimator, MultiOutputMixin, RegressorMixin
from ..types import ArrayLike, ClassWeight, Matrix


class Selector(SparseInputMixin, SupportMixin, BaseEstimator):
    """Base class for selectors with linear scores.

    A subclass implements ``_select(X, y, loss, weight)``. There, ``X`` is validated, ``y`` has
    shape (n, q) and is encoded for the loss, and ``weight`` contains the row weights as given by
    the user. The method sets ``support_``, ``intercept_`` and ``coef_``, of shape (q, n_features).
    Regressors with one output then reshape ``coef_`` to (n_features,).
    """

    _auto_loss: str  # meaning of loss="auto"
    loss: str | Loss

    def _validate(self, X: Matrix, y: Any = "no_validation", **kwargs: Any) -> Any:
        sparse: Any = ("csr", "csc") if self.__sklearn_tags__().input_tags.sparse else False
        return validated(self, X, y, accept_sparse=sparse, dtype=[np.float64, np.float32], **kwargs)

    @property
    def _named_loss(self) -> str | Loss:
        return self._auto_loss if isinstance(self.loss, str) and self.loss == "auto" else self.loss

    def _select(self, X: Matrix, y: np.ndarray, loss: Loss, weight: np.ndarray) -> None:
        raise NotImplementedError

    def _store(
        self, design: Design, kept: np.ndarray, coef: np.ndarray, intercept: np.ndarray
    ) -> None:
        """Store standardised coefficients (k, q) of the columns ``kept`` in raw units."""
        warn_if_constant(design.inv)
        raw, self.intercept_ = design.keep(kept).unstandardise(coef[:, None], intercept)
        self.support_ = np.isin(np.arange(design.n_features), kept)
        self.coef_ = np.zeros((coef.shape[1], design.n_features))
        self.coef_[:, kept] = raw[:, 0].T

    def _scores(self, X: Matrix) -> np.ndarray:
        """Compute the scores (n, q) of raw rows, or (n,) if ``coef_`` is one-dimensional."""
        check_is_fitted(self)
        return self._validate(X, reset=False) @ self.coef_.T + self.intercept_


class ScaledSelector(Selector):
    """Base class for selectors whose result depends on the units of the columns."""

    scaling: str

    def _validate(self, X: Matrix, y: Any = "no_validation", **kwargs: Any) -> Any:
        check_choice("scaling", self.scaling, ("standardize", "none"))
        return super()._validate(X, y, **kwargs)

    def _make_design(self, X: Matrix, weight: np.ndarray) -> Design:
        """Return a design of linear responses with ``scaling``; ``weight`` must sum to one."""
        design = make_design(X, weight)
        return unscaled(design, X) if self.scaling == "none" else design


@estimator
class SelectingClassifier(SparseClassifierMixin, Selector):
    """Base class for the classifiers that select features."""

    class_weight: ClassWeight = None

    _auto_loss = "logistic"

    def _encode(
        self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, np.ndarray, Loss, np.ndarray]:
        """Validate the data; return X, encoded targets (n, q), the matching loss, and weights."""
        X, y = self._validate(X, y)
        return X, *self._encode_labels(y, self._named_loss, sample_weight, X.shape[0])

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Select features and fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,)
            Labels of any type with at least two classes.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If y contains a single class, X contains NaN, or a parameter is out of range.
        """
        X, encoded, loss, weight = self._encode(X, y, sample_weight)
        with problem_size(n_values(X)):
            self._select(X, encoded, loss, weight)
        return self


class SelectingRegressor(MultiOutputMixin, RegressorMixin, Selector):
    """Base class for the regressors that select features; several outputs share one support."""

    _auto_loss = "squared"

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Select features and fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X or y contains NaN, or a parameter is out of range.
        """
        X, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_sample_weight(sample_weight, len(y))
        targets, mean, scale = unit_variance(y, weight / weight.sum())
        with problem_size(n_values(X)):
            self._select(X, targets, pointwise_loss(self._named_loss), weight)
        self.intercept_ = mean + scale * self.intercept_
        self.coef_ = self.coef_ * scale[:, None]
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def predict(self, X: Matrix) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict targets.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets; one-dimensional if the training targets were.
        """
        return self._scores(X)
