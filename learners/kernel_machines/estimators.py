"""Classifier and regressor with sparse Fourier features sampled from the posterior."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from ..common import SparseClassifierMixin, class_codes, unit_variance, validated
from ..parameters import check_choice, checked
from ..sklearn_bases import RegressorMixin
from ..types import ArrayLike, Matrix
from .base import LIKELIHOODS, SparseFourierBase
from .chains.sampler import GAUSSIAN


@dataclass(eq=False, repr=False, kw_only=True)
class SparseFourierClassifier(SparseClassifierMixin, SparseFourierBase):
    """Classifier with a learnt kernel of sparse Fourier features, sampled by reversible-jump MCMC.

    The log posterior (section 4.2 of [1]_) is::

        log p(y | F) - ridge / (2 s) ||weights||^2 + log prior(atoms),
        F(x) = constant + sum_l (weights of atom l) . (cos, sin)(omega_l . x)

    Here s is the noise variance (Gaussian likelihood) or 1 (logistic likelihood). An atom is a
    sparse frequency vector omega. In the prior, its sequence of non-zero columns is a Markov chain.
    Reversible-jump chains sample the atoms and their number [2]_. Columns are standardised
    internally.

    Parameters
    ----------
    n_components : int, default 50
        Number of atoms to select by annealing, at least 1; not used if ``solver="mcmc"``.
    max_order : int, default 3
        Maximum number of columns per atom, at least 1.
    frequency_scale : float, default 1.5
        Positive scale of the prior on the frequencies, in radians per standard deviation of a
        column.
    screening : {"pairs", "triples"} or None, default "pairs"
        Table of the columns and products whose Fourier features correlate most with the target.
        Half of the random new atoms are drawn from it.

        * "pairs": products of two columns;
        * "triples": products of two or three columns, for at most 400 columns;
        * None: no table; not suitable for hundreds of columns.
    n_bank, n_rounds : object
        As in :class:`SparseFourierFeatures`.
    solver : {"mcmc", "annealed", "annealed+mcmc"}, default "mcmc"
        Method that selects the atoms.

        * "mcmc": Markov chains that sample the posterior;
        * "annealed": annealing of random candidates;
        * "annealed+mcmc": Markov chains that start from the annealed atoms.
    n_steps : int, default 20000
        Number of moves per chain, at least 1.
    burn_in : int or None, default None
        Number of moves before the first stored sample; None means half of ``n_steps``.
    n_chains : int, default 2
        Number of chains or annealing runs, at least 1. Their predictions are averaged.
    max_components : int, default 40
        Maximum number of atoms in a Markov chain, at least 1. Each requires 16 bytes per row.
    expected_components : float, default 5.0
        Positive prior mean of the number of atoms.
    ridge : float, default 1.0
        Positive factor of the ridge penalty.
    group_correlation : float, default 0.5
        Absolute correlation above which columns form a group, in (0, 1].
    max_samples : int or None, default 10000
        Maximum number of rows per chain, at least 1, drawn at random. None uses all rows.
    random_state : int, RandomState or None, default None
        Random seed.
    n_jobs : int or None, default None
        As in :class:`FSAClassifier`.
    likelihood : {"gaussian", "logistic"}, default "gaussian"
        Likelihood p(y | F). More than two classes are fitted one-vs-rest, as one output each.

        * "gaussian": least squares on labels -1 and +1; fast and sparse;
        * "logistic": logistic likelihood with Polya-Gamma variables [4]_, several times slower.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    coef_ : ndarray of shape (n_outputs, 2 n_atoms)
        Weights of the features that ``transform`` returns.
    intercept_ : ndarray of shape (n_outputs,)
        Intercept of each output.
    inclusion_probabilities_ : ndarray of shape (n_features,)
        For each column, the posterior probability that at least one output uses it.
    chain_inclusion_probabilities_ : ndarray of shape (n_outputs * n_chains, n_features)
        The same for each chain, output by output.
    group_inclusion_probabilities_ : ndarray of shape (n_groups,)
        The same for the groups of columns.
    groups_ : ndarray of int of shape (n_features,)
        Index of the group of each column.
    atoms_, frequencies_, phases_
        As in :class:`SparseFourierFeatures`, for the most probable sample of each output.
    transition_counts_ : csr_matrix of shape (n_features + 1, n_features + 1)
        Number of transitions from one column of an atom to the next, summed over outputs and
        averaged over samples. State j + 1 is column j; state 0 is the start and end.
    n_components_ : ndarray of int of shape (n_outputs, n_chains, n_kept)
        Number of atoms in each sample.
    acceptance_ : dict of str to float
        Acceptance rate of each type of move ("birth", "death", "grow", ...).
    r_hat_, effective_sample_size_ : dict of str to float
        Convergence diagnostics [3]_ of "log_likelihood", "n_components" and, in ``r_hat_``,
        "inclusion" (worst output and column).
    traces_ : ndarray of shape (n_outputs, n_chains, min(1000, n_steps), 2)
        Log likelihood and number of atoms, evenly spaced along each chain.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

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

    likelihood: str = checked("gaussian", check_choice, tuple(LIKELIHOODS))

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels of any type with at least two classes.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If y contains a single class, X contains NaN, or a parameter is out of range.
        """
        self._check_parameters()
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
        """Compute mean scores for least squares, or else the logits of mean probabilities."""
        check_is_fitted(self)
        scores = self._mean_scores(X, self._squash)
        return (
            logit(np.clip(scores, 1e-12, 1.0 - 1e-12))
            if self._squash
            else scores * self._deviation + self._centre
        )

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return mean probabilities; for least squares, they are (1 + score) / 2, clipped."""
        p = (
            1.0 / (1.0 + np.exp(-scores))
            if self._squash
            else np.clip(0.5 + 0.5 * scores, self._least, 1.0 - self._least)
        )
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p / p.sum(axis=1, keepdims=True)


class SparseFourierRegressor(RegressorMixin, SparseFourierBase):
    """Regressor with a learnt kernel of sparse Fourier features, sampled by reversible-jump MCMC.

    The log posterior (section 4.2 of [1]_) is::

        log p(y | F) - ridge / (2 s) ||weights||^2 + log prior(atoms),
        F(x) = constant + sum_l (weights of atom l) . (cos, sin)(omega_l . x)

    Here s is the variance of the Gaussian noise, which is integrated out. Reversible-jump chains
    sample the atoms (sparse frequency vectors omega) and their number [2]_; see
    :class:`SparseFourierClassifier`. Columns are standardised internally.

    Parameters
    ----------
    n_components, max_order, frequency_scale, screening, n_bank, n_rounds, solver : object
        As in :class:`SparseFourierClassifier`.
    n_steps, burn_in, n_chains, max_components, expected_components, ridge : object
        As in :class:`SparseFourierClassifier`.
    group_correlation, max_samples, random_state, n_jobs : object
        As in :class:`SparseFourierClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (2 n_atoms,)
        Weights of the features that ``transform`` returns, in the most probable sample.
    intercept_ : float
        Intercept of the model.
    inclusion_probabilities_, chain_inclusion_probabilities_, group_inclusion_probabilities_
        As in :class:`SparseFourierClassifier`, with one output.
    groups_, transition_counts_, n_components_, acceptance_
        As in :class:`SparseFourierClassifier`, with one output.
    r_hat_, effective_sample_size_, traces_
        As in :class:`SparseFourierClassifier`, with one output.
    atoms_, frequencies_, phases_
        As in :class:`SparseFourierFeatures`, for the most probable sample.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

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
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X or y contains NaN, or a parameter is out of range.
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
        """Predict the posterior mean of the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows for which to predict targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets.
        """
        return self._mean_scores(X, False)[:, 0] * self._deviation + self._centre
