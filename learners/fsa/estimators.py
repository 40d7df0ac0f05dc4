"""FSA for classification and regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from ..common.docstrings import fill_docstring
from ..common.targets import SparseClassifierMixin, scaled_targets
from ..common.validation import check_sample_weight
from ..objective.losses import regression_loss
from .base import FSAEstimator
from .callbacks import with_callbacks
from .parameters import ATTRIBUTES, CLASS_WEIGHT, FIT_INTERCEPT, LAST, PARAMETERS, REFERENCES, SIZE
from .problem import FitProblem

CLASSIFIER_TEXTS = {
    "parameters": PARAMETERS + FIT_INTERCEPT + LAST + CLASS_WEIGHT,
    "losses": """"auto" (flipped_logistic for two classes, multinomial for more), "logistic", "flipped_logistic" (some labels may be
        wrong), "huberised_hinge", "lorenz" (noisy labels), "multinomial", "squared" (on -1 / +1), or an object. With more than two
        classes "logistic" means "multinomial", and any other loss of the margin acts on the differences of the classes' scores
        (:class:`VapnikLoss`); one support serves all classes.""",
    "n_bins": "6",
    "mu": "100",
    "momentum": "0",
    "attributes": ATTRIBUTES,
    "coef_shape": "(1, n_features) or (n_classes, n_features)",
    "intercept_shape": "ndarray of shape (1,) or (n_classes,)",
    "outputs": " or n_classes",
    "references": REFERENCES,
}
REGRESSOR_TEXTS = CLASSIFIER_TEXTS | {
    "parameters": PARAMETERS + FIT_INTERCEPT + LAST,
    "losses": """"auto" is "squared", on targets of mean 0 and variance 1. "huber" (outliers count little) and "quantile" (the
        median; ``QuantileLoss(0.9)`` for another) see targets of median 0 and robust scale 1 (1.4826 times the median absolute
        deviation), "poisson" the counts themselves. With "cox" (survival times) ``y`` is a structured array of a boolean event
        and a time, or two columns: the time, and 1 for an event or 0 where it is censored. Or an object.""",
    "mu": "30",
    "momentum": "0.9, and 0 for the quantile and Cox losses",
    "coef_shape": "(n_features,) or (n_outputs, n_features)",
    "intercept_shape": "float or ndarray of shape (n_outputs,)",
    "outputs": " for one target",
}


@fill_docstring(size=SIZE, **CLASSIFIER_TEXTS)
class FSAClassifier(SparseClassifierMixin, FSAEstimator):
    """Classifier on exactly k features, found by annealing (Algorithm 1 of Barbu et al. (2017) [1]_).

    Parameters
    ----------
    {size}
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order.
    loss_ : Loss
        The loss that was minimised.
    {attributes}

    {references}

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

    def __init__(self, *args: Any, class_weight=None, **parameters: Any):
        super().__init__(*args, **parameters)
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any type, two classes or more.
        sample_weight : array of shape (n_samples,) or None, default None

        Returns
        -------
        FSAClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            One class only, NaN with linear responses, a parameter out of range.
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _encode(self, X, y=None, sample_weight=None) -> FitProblem:
        X, y = self._validate(X, y)
        targets, self.loss_, weight = self._encode_labels(y, self.loss, sample_weight, X.shape[0])
        return FitProblem(X, targets, self.loss_, weight, self._groups(X.shape[1]), classification=True)


@fill_docstring(size=SIZE, **REGRESSOR_TEXTS)
class FSARegressor(RegressorMixin, FSAEstimator):
    """Regression on exactly k features, found by annealing (Algorithm 1 of [1]_); several outputs share one support.

    Parameters
    ----------
    {size}
    {parameters}

    Attributes
    ----------
    loss_ : Loss
        The loss that was minimised.
    {attributes}

    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> FSARegressor(2).fit(X, X[:, 4] + 2 * X[:, 9]).get_support(indices=True)
    array([4, 9])
    """

    _losses = ("auto", "squared", "huber", "quantile", "poisson", "cox")
    _mu = 30.0
    _momentum = 0.9

    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None, default None

        Returns
        -------
        FSARegressor
            The estimator itself.

        Raises
        ------
        ValueError
            NaN with linear responses, a parameter out of range.
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _encode(self, X, y=None, sample_weight=None) -> FitProblem:
        self.loss_ = regression_loss("squared" if isinstance(self.loss, str) and self.loss == "auto" else self.loss)
        X, y = self._validate(X, self.loss_.encode_targets(y), multi_output=True, y_numeric=True)
        weight = check_sample_weight(sample_weight, len(y))
        targets, shift, scale = scaled_targets(y, weight / max(weight.sum(), 1e-300), self.loss_.target_scaling)
        return FitProblem(X, targets, self.loss_, weight, self._groups(X.shape[1]), shift=shift, scale=scale, flat=y.ndim == 1)

    def predict(self, X) -> np.ndarray:
        """Predict.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Shaped like the ``y`` of :meth:`fit`. With the Poisson loss the mean, with Cox's the logarithm of the relative hazard.
        """
        scores = self._scores(X)
        predicted = self.loss_.inverse_link(scores)
        return predicted[:, 0] if self._flat else predicted

    def score(self, X, y, sample_weight=None) -> float:
        """R^2; with the Poisson loss the explained share of the deviance, with Cox's the index of concordance.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array
            As for :meth:`fit`.
        sample_weight : array of shape (n_samples,) or None, default None

        Returns
        -------
        float
            The greater the better.
        """
        predicted = self.predict(X)
        return self.loss_.quality(y, predicted, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
