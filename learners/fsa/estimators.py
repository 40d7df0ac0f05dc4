"""The estimators: thin scikit-learn faces over the annealing loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from sklearn.base import RegressorMixin

from ..common.targets import SparseClassifierMixin, unit_variance
from ..common.validation import check_parameters, check_sample_weight, document
from ..objective.losses import Loss, pointwise_loss
from ..objective.priors import Prior
from .base import _FSA, Encoded, with_callbacks


class FSAClassifier(SparseClassifierMixin, _FSA):
    """Classifier on exactly k features, found by annealing (Algorithm 1 of the FSA papers).
    {parameters}
    fit_intercept : bool, default True
    class_weight : dict, "balanced" or None

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
    coef_ : ndarray of shape (1 or n_classes, n_features)
        For linear responses, in units of the raw columns.
    knots_, responses_, missing_responses_ : ndarray
        For piecewise-linear responses: knots (k, B + 1), values there (k, B + 1, 1 or n_classes) and values for NaN
        (k, 1 or n_classes) of each chosen feature; each curve's mean over the training rows is zero, and so is the
        response to NaN where training had none.
    feature_importances_ : ndarray of shape (n_features,)
        Norm of each feature's standardised block; 0 where not chosen.
    loss_curve_ : ndarray
    classes_, intercept_, n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, "yes", "no")
    >>> FSAClassifier(2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    _losses = ("auto", "logistic", "flipped_logistic", "huberised_hinge", "lorenz", "multinomial", "squared")

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        loss: str | Loss = "auto",
        response: str = "linear",
        n_bins: int = 6,
        bins: str = "range",
        groups=None,
        prior: Prior | None = None,
        schedule: str | Callable = "inverse",
        mu: float = 100.0,
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float = 0.0,
        polish: str | None = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        class_weight=None,
        random_state=None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        super().__init__(
            n_features_to_select,
            loss=loss,
            response=response,
            n_bins=n_bins,
            bins=bins,
            groups=groups,
            prior=prior,
            schedule=schedule,
            mu=mu,
            n_steps=n_steps,
            learning_rate=learning_rate,
            momentum=momentum,
            polish=polish,
            fit_intercept=fit_intercept,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @with_callbacks
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
            One class only, NaN with linear responses, a parameter out of range.
        """
        return self._fit(self._encode(X, y, sample_weight))

    def _encode(self, X, y, sample_weight=None) -> Encoded:
        X, y = self._validate(X, y)
        check_parameters(self, self._losses)
        targets, self.loss_, weight = self._encode_labels(y, self.loss, sample_weight, X.shape[0])
        return Encoded(X, targets, self.loss_, weight)


class FSARegressor(RegressorMixin, _FSA):
    """Regression on exactly k features, found by annealing; several outputs share one support.
    {parameters}
    fit_intercept : bool, default True

    Attributes
    ----------
    support_, coef_, intercept_, feature_importances_, loss_curve_, n_iter_, n_features_in_
        As in :class:`FSAClassifier`; ``coef_`` is (n_features,) for one output.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> FSARegressor(2).fit(X, X[:, 4] + 2 * X[:, 9]).get_support(indices=True)
    array([4, 9])
    """

    _losses = ("squared",)

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        loss: str | Loss = "squared",
        response: str = "linear",
        n_bins: int = 6,
        bins: str = "range",
        groups=None,
        prior: Prior | None = None,
        schedule: str | Callable = "inverse",
        mu: float = 30.0,
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float = 0.9,
        polish: str | None = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state=None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        super().__init__(
            n_features_to_select,
            loss=loss,
            response=response,
            n_bins=n_bins,
            bins=bins,
            groups=groups,
            prior=prior,
            schedule=schedule,
            mu=mu,
            n_steps=n_steps,
            learning_rate=learning_rate,
            momentum=momentum,
            polish=polish,
            fit_intercept=fit_intercept,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        """
        return self._fit(self._encode(X, y, sample_weight))

    def _encode(self, X, y, sample_weight=None) -> Encoded:
        X, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_sample_weight(sample_weight, len(y))
        check_parameters(self, self._losses)
        targets, mean, scale = unit_variance(y, weight / max(weight.sum(), 1e-300))
        self.loss_ = pointwise_loss(self.loss)
        return Encoded(X, targets, self.loss_, weight, shift=mean, scale=scale, flat=y.ndim == 1)

    def predict(self, X) -> np.ndarray:
        """Predictions, shaped like the ``y`` of :meth:`fit`."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


_CLASSIFIER_LOSSES = """"auto" (flipped_logistic for two classes, multinomial for more), "logistic", "flipped_logistic" (some labels
        may be wrong), "huberised_hinge", "lorenz" (noisy labels), "multinomial", "squared" (on -1 / +1), or an object.
        With more than two classes "logistic" means "multinomial", and any other binary loss acts on the differences of the classes'
        scores (:class:`VapnikLoss`); one support serves all classes."""
document(FSAClassifier, _CLASSIFIER_LOSSES)
document(FSARegressor, '"squared", or an object; it sees targets of mean 0 and variance 1.')
