"""Classifier and regressor on sparse Fourier features, sampled from the posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from ..common.targets import SparseClassifierMixin, class_codes, unit_variance
from ..common.validation import check_choice, validated
from ..sklearn_bases import RegressorMixin
from ..types import ArrayLike, Matrix
from .base import LIKELIHOODS, SparseFourierBase
from .chains.sampler import GAUSSIAN


@dataclass(eq=False, repr=False, kw_only=True)
class _Likelihood:
    """Parameter of the classifier only; the last base class, so that it comes first."""

    likelihood: str = "gaussian"


@dataclass(eq=False, repr=False, kw_only=True)
class SparseFourierClassifier(SparseClassifierMixin, SparseFourierBase, _Likelihood):
    """Classifier on a learnt kernel: cos and sin of sparse frequencies, by reversible-jump MCMC.

    Section 4.2 of Ma (thesis) [1]_. It samples from the posterior whose logarithm is::

        log p(y | F) - ridge / 2 ||weights||^2 + log prior(atoms),
        F(x) = constant + sum_l (weights of atom l) . (cos, sin)(omega_l . x)

    A translation-invariant kernel is a distribution of frequencies omega. The columns of a
    frequency (an "atom") have a Markov chain as prior; chains sample the frequencies and their
    number [2]_. They detect columns that act only together. Columns are standardised.

    Parameters
    ----------
    likelihood : {"gaussian", "logistic"}, default "gaussian"
        p(y | F); several classes are fitted one-vs-rest:

        * "gaussian": least squares on labels -1 and +1 with the noise integrated out: fast, sparse;
        * "logistic": by Polya-Gamma variables [4]_: probabilities, at several times the cost.
    solver : {"mcmc", "annealed", "annealed+mcmc"}, default "mcmc"
        Source of the atoms:

        * "mcmc": chains from the posterior;
        * "annealed": banks of random atoms, of which annealing keeps the useful ones;
        * "annealed+mcmc": chains from such banks.
    max_order : int, default 3
        Columns of an atom at most, at least 1.
    frequency_scale : float, default 1.5
        Scale of the prior in radians per standard deviation of a column, above 0.
    screening : {"pairs", "triples"} or None, default "pairs"
        Half of the births come from a table of informative columns and products of

        * "pairs": two;
        * "triples": two or three, among at most 400 columns;
        * None: no table, which finds nothing among hundreds of columns.
    n_steps : int, default 20000
        Moves of each chain, at least 1.
    burn_in : int or None, default None
        Moves before samples are kept, below ``n_steps``; None: half.
    n_chains : int, default 2
        Chains, or banks, at least 1. Predictions average over them.
    max_components : int, default 40
        Atoms at most, at least 1. Memory is 16 bytes per row and atom.
    expected_components : float, default 5.0
        Mean of the prior of their number, above 0.
    n_components : int, default 50
        Atoms kept of a bank, at least 1.
    n_bank : int, default 5000
        Candidates of a bank in each round, at least 1.
    n_rounds : int, default 4
        Rounds that redraw candidates, at least 0.
    ridge : float, default 1.0
        Factor of the penalty, above 0.
    group_correlation : float, default 0.5
        Correlation, in (0, 1], above which columns form a group.
    max_samples : int or None, default 10000
        Rows of each chain, drawn at random, at least 1; None: all.
    random_state : int, RandomState or None, default None
        Seed of the chains.
    n_jobs : int or None, default None
        Threads; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order.
    coef_ : ndarray of shape (n_outputs, 2 n_atoms)
        Weights of the features of ``transform``; one output for two classes.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts.
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Share of the kept samples that use the column, for at least one of the outputs.
    chain_inclusion_probabilities_ : ndarray of shape (n_outputs * n_chains, n_features)
        The same for each chain.
    group_inclusion_probabilities_ : ndarray of shape (n_groups,)
        The same for the groups.
    groups_ : ndarray of int of shape (n_features,)
        Group of each column.
    atoms_ : list of tuple of int
        Columns of each atom of the most probable kept sample.
    frequencies_ : csr_matrix of shape (n_atoms, n_features)
        In radians per unit of X.
    phases_ : ndarray of shape (n_atoms,)
        The features are cos and sin of X frequencies_' - phases_.
    transition_counts_ : csr_matrix of shape (n_features + 1, n_features + 1)
        Mean number of steps between columns within the atoms of a sample: j + 1 stands for column
        j, 0 for the ends of an atom.
    n_components_ : ndarray of int of shape (n_outputs, n_chains, n_kept)
        Atoms of each kept sample.
    acceptance_ : dict of str to float
        Accepted share of each kind of move.
    r_hat_, effective_sample_size_ : dict of str to float
        Diagnostics [3]_ of the chains, the worst value of each.
    traces_ : ndarray of shape (n_outputs, n_chains, n_traced, 2)
        Log likelihood and number of atoms along the run.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), section 4.2.
    .. [2] P. J. Green, "Reversible Jump Markov Chain Monte Carlo Computation and Bayesian Model
           Determination", Biometrika 82 (1995).
    .. [3] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, "Rank-Normalization,
           Folding, and Localization: An Improved R-hat for Assessing Convergence of MCMC", Bayesian
           Analysis 16 (2021).
    .. [4] N. G. Polson, J. G. Scott, J. Windle, "Bayesian Inference for Logistic Models Using
           Polya-Gamma Latent Variables", Journal of the American Statistical Association 108
           (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import SparseFourierClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 100))
    >>> y = X[:, 3] * X[:, 7] > 0
    >>> SparseFourierClassifier(n_steps=4000, random_state=0).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, with two or more classes.

        Returns
        -------
        SparseFourierClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If y holds a single class, X holds NaN, or a parameter is out of range.
        """
        self._check_parameters()
        check_choice("likelihood", self.likelihood, tuple(LIKELIHOODS))
        X, y = validated(self, X, y, dtype=np.float64)
        self.classes_, codes = class_codes(y)
        inside = codes[:, None] == (
            np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.array([1])
        )
        targets = inside.astype(np.float64)
        self._squash = self.likelihood == "logistic"
        if not self._squash:
            targets, self._centre, self._deviation = unit_variance(
                2.0 * targets - 1.0, np.full(len(y), 1.0 / len(y))
            )
        else:
            self._centre, self._deviation = np.zeros(1), np.ones(1)
        self._fit_outputs(X, targets, LIKELIHOODS[self.likelihood])
        weights = self._weights * np.reshape(self._deviation, (-1, 1))
        self.coef_, self.intercept_ = weights[:, 1:], weights[:, 0] + self._centre
        self._least = 1.0 / (len(y) + 2.0)
        return self

    def _scores(self, X: Matrix) -> np.ndarray:
        """Mean least-squares scores, or the logits of the mean probabilities."""
        check_is_fitted(self)
        scores = self._mean_scores(X, self._squash)
        return (
            logit(np.clip(scores, 1e-12, 1.0 - 1e-12))
            if self._squash
            else scores * self._deviation + self._centre
        )

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities averaged over the samples; with least squares, (1 + score) / 2, clipped."""
        if self._squash:
            p = 1.0 / (1.0 + np.exp(-scores))
        else:
            p = np.clip(0.5 + 0.5 * scores, self._least, 1.0 - self._least)
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p / p.sum(axis=1, keepdims=True)


class SparseFourierRegressor(RegressorMixin, SparseFourierBase):
    """Regressor on a learnt kernel: cos and sin of sparse frequencies, by reversible-jump MCMC.

    It implements section 4.2 of Ma (thesis) [1]_ and samples from the posterior whose logarithm
    is::

        log p(y | F) - ridge / (2 noise variance) ||weights||^2 + log prior(atoms),
        F(x) = constant + sum_l (weights of atom l) . (cos, sin)(omega_l . x)

    with normal noise whose variance is integrated out. Chains sample the frequencies and their
    number [2]_; see :class:`SparseFourierClassifier`. Columns are standardised.

    Parameters
    ----------
    solver, max_order, frequency_scale, screening, n_steps, burn_in, n_chains : object
        As in :class:`SparseFourierClassifier`.
    max_components, expected_components, n_components, n_bank, n_rounds, ridge : object
        As in :class:`SparseFourierClassifier`.
    group_correlation, max_samples, random_state, n_jobs : object
        As in :class:`SparseFourierClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (2 n_atoms,)
        Weights of the features of ``transform``.
    intercept_ : float
        Intercept.
    inclusion_probabilities_, chain_inclusion_probabilities_ : ndarray
        As in :class:`SparseFourierClassifier`, like all attributes below.
    group_inclusion_probabilities_, groups_, atoms_, frequencies_, phases_, transition_counts_
        The selected atoms.
    n_components_, acceptance_, r_hat_, effective_sample_size_, traces_
        Convergence diagnostics of the chains.
    n_features_in_, feature_names_in_
        Number and names of the columns of X, as in every scikit-learn estimator.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), section 4.2.
    .. [2] P. J. Green, "Reversible Jump Markov Chain Monte Carlo Computation and Bayesian Model
           Determination", Biometrika 82 (1995).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import SparseFourierRegressor
    >>> X = np.random.default_rng(0).standard_normal((300, 100))
    >>> y = np.sin(2 * X[:, 3] * X[:, 7])
    >>> SparseFourierRegressor(n_steps=4000, random_state=0).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
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
            If X or y holds NaN, or a parameter is out of range.
        """
        self._check_parameters()
        X, y = validated(self, X, y, dtype=np.float64, y_numeric=True)
        targets, centre, deviation = unit_variance(y, np.full(len(y), 1.0 / len(y)))
        self._centre, self._deviation = float(centre[0]), float(deviation[0])
        self._fit_outputs(X, targets, GAUSSIAN)
        self.coef_ = self._weights[0, 1:] * self._deviation
        self.intercept_ = float(self._weights[0, 0] * self._deviation + self._centre)
        return self

    def predict(self, X: Matrix) -> np.ndarray:
        """Predict the posterior mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._mean_scores(X, False)[:, 0] * self._deviation + self._centre
