"""Classifier and regressor on sparse Fourier features, sampled from the posterior."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import logit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..common.docstrings import fill_docstring
from ..common.targets import class_codes, unit_variance
from ..common.validation import check_choice
from .base import ATTRIBUTES, LIKELIHOODS, PARAMETERS, REFERENCES, SparseFourierBase
from .chains.discriminant import MOST_ROWS, neighbour_chain, neighbour_probabilities
from .chains.sampler import GAUSSIAN

TEXTS = {"parameters": PARAMETERS, "attributes": ATTRIBUTES, "references": REFERENCES}


@fill_docstring(**TEXTS)
class SparseFourierClassifier(ClassifierMixin, SparseFourierBase):
    """Classifier on a learnt kernel: cos and sin of sparse frequencies, by reversible-jump MCMC (section 4.2 of [1]_).

    A translation-invariant kernel is a distribution of frequencies. Here it is learnt: the columns that enter a frequency (an
    "atom") have a first-order Markov chain as prior, and chains sample the frequencies and their number [2]_. So columns are found
    that act together and not alone, such as XOR among a thousand columns. Columns are standardised.

    Parameters
    ----------
    likelihood : {"gaussian", "logistic"}, default "gaussian"
        Least squares on labels -1 and +1 with the noise integrated out: fast and sparse; or logistic by Polya-Gamma variables
        [4]_: probabilities, at several times the cost. Several classes: one against the rest.
    discriminant : {"weights", "neighbours"}, default "weights"
        Weighted sum of the features, the weights integrated out; or that of [1]_, (4.4): similarity to the nearest row of one class
        minus that to the other's, all atoms with the same weight, in O(N^2) time per move and on at most 2,000 rows. It needs
        ``solver="mcmc"`` and takes ``likelihood="logistic"`` whatever is given.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order.
    coef_ : ndarray of shape (n_outputs, 2 n_atoms)
        Weights of what ``transform`` returns; one output for two classes. Not with ``discriminant="neighbours"``.
    intercept_ : ndarray of shape (n_outputs,)
    {attributes}

    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import SparseFourierClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 100))
    >>> y = X[:, 3] * X[:, 7] > 0
    >>> SparseFourierClassifier(n_iter=4000, random_state=0).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def __init__(self, *, likelihood="gaussian", discriminant="weights", **parameters: Any):
        super().__init__(**parameters)
        self.likelihood = likelihood
        self.discriminant = discriminant

    def fit(self, X, y) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, two classes or more.

        Returns
        -------
        SparseFourierClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            One class only, NaN, or a parameter out of range.
        """
        self._check_parameters()
        check_choice("likelihood", self.likelihood, tuple(LIKELIHOODS))
        check_choice("discriminant", self.discriminant, ("weights", "neighbours"))
        if self.discriminant == "neighbours":
            check_choice("solver", self.solver, ("mcmc",))
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = class_codes(y)
        inside = codes[:, None] == (np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.array([1]))
        targets = inside.astype(np.float64)
        self._squash = self.likelihood == "logistic" or self.discriminant == "neighbours"
        if not self._squash:
            targets, self._centre, self._deviation = unit_variance(2.0 * targets - 1.0, np.full(len(y), 1.0 / len(y)))
        else:
            self._centre, self._deviation = np.zeros(1), np.ones(1)
        self._fit_outputs(X, targets, LIKELIHOODS[self.likelihood])
        if self.discriminant == "weights":
            weights = self._weights * np.reshape(self._deviation, (-1, 1))
            self.coef_, self.intercept_ = weights[:, 1:], weights[:, 0] + self._centre
        self._least = 1.0 / (len(y) + 2.0)
        return self

    def _chain(self, likelihood, XT, target, prior, table, rng):
        if self.discriminant == "weights":
            return super()._chain(likelihood, XT, target, prior, table, rng)
        if len(target) > MOST_ROWS:
            rows = np.sort(rng.choice(len(target), MOST_ROWS, replace=False))
            XT, target = np.ascontiguousarray(XT[:, rows]), target[rows]
        sizes = {"max_components": self.max_components if len(XT) else 0, "n_iter": self.n_iter, "burn_in": self._burn_in()}
        chain = neighbour_chain(XT, target, prior, table, rng, **sizes)
        chain.rows = (XT, target)
        return chain

    def _mean_scores(self, X, squash: bool) -> np.ndarray:
        if self.discriminant == "weights":
            return super()._mean_scores(X, squash)
        X = self._rows(X)
        found = np.zeros((len(X), len(self._chains)))
        for first in range(0, len(X), MOST_ROWS):
            part = slice(first, first + MOST_ROWS)
            XT = self._standardiser.columns(X[part])
            for q, chains in enumerate(self._chains):
                for chain in chains:
                    assert chain.rows is not None
                    found[part, q] += neighbour_probabilities(chain.kept, *chain.rows, XT) / len(chains)
        return found

    def decision_function(self, X) -> np.ndarray:
        """Scores of the classes: the mean least-squares score, or the logit of the mean probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one score, positive for ``classes_[1]``; else one for each class.
        """
        check_is_fitted(self)
        scores = self._mean_scores(X, self._squash)
        if self._squash:
            scores = logit(np.clip(scores, 1e-12, 1.0 - 1e-12))
        else:
            scores = scores * self._deviation + self._centre
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        """Labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities, averaged over the samples; those of least squares are (1 + score) / 2 within bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        if self._squash:
            p = 1.0 / (1.0 + np.exp(-scores))
        else:
            p = np.clip(0.5 + 0.5 * scores, self._least, 1.0 - self._least)
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p / p.sum(axis=1, keepdims=True)


@fill_docstring(**TEXTS)
class SparseFourierRegressor(RegressorMixin, SparseFourierBase):
    """Regression on a learnt kernel: cos and sin of sparse frequencies, by reversible-jump MCMC (section 4.2 of [1]_).

    As :class:`SparseFourierClassifier`, with normal noise whose variance is integrated out.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_ : ndarray of shape (2 n_atoms,)
        Weights of what ``transform`` returns.
    intercept_ : float
    {attributes}

    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import SparseFourierRegressor
    >>> X = np.random.default_rng(0).standard_normal((300, 100))
    >>> y = np.sin(2 * X[:, 3] * X[:, 7])
    >>> SparseFourierRegressor(n_iter=4000, random_state=0).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def fit(self, X, y) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        SparseFourierRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            NaN, or a parameter out of range.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        targets, centre, deviation = unit_variance(y, np.full(len(y), 1.0 / len(y)))
        self._centre, self._deviation = float(centre[0]), float(deviation[0])
        self._fit_outputs(X, targets, GAUSSIAN)
        self.coef_ = self._weights[0, 1:] * self._deviation
        self.intercept_ = float(self._weights[0, 0] * self._deviation + self._centre)
        return self

    def predict(self, X) -> np.ndarray:
        """Posterior mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._mean_scores(X, False)[:, 0] * self._deviation + self._centre
