"""RankBoost with threshold rankers, a baseline in section 7.3.1 of Barbu et al. (2014)."""

from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..common.validation import check_integer, check_sample_weight, validated
from ..objective.pairwise import check_pairs, graded_pairs
from ..sklearn_bases import BaseEstimator
from ..types import ArrayLike, Matrix


def _indicator(codes: np.ndarray, n_codes: int) -> sp.csr_array:
    """Return the indicator matrix (n_features * n_codes, n_items) of the codes of each item."""
    m, n = codes.shape
    counts = np.bincount((codes + n_codes * np.arange(m)[:, None]).ravel(), minlength=m * n_codes)
    items = (
        np.argsort(codes.astype(np.min_scalar_type(n_codes)), axis=1, kind="stable")
        .ravel()
        .astype(np.int32)
    )
    return sp.csr_array(
        (np.ones(m * n), items, np.append(0, np.cumsum(counts))), shape=(m * n_codes, n)
    )


def _best_threshold(
    indicator: sp.csr_array, potential: np.ndarray, n_thresholds: int
) -> tuple[float, int, int]:
    """Return the feature and threshold with the largest |r|.

    r is the sum of the potentials of the items above the threshold.
    """
    histogram = (indicator @ potential).reshape(-1, n_thresholds + 1)
    # sums above the thresholds, in descending order of the thresholds
    above = np.cumsum(histogram[:, :0:-1], axis=1).ravel()
    best, place, start = 0.0, -1, 0
    while len(better := np.flatnonzero(np.abs(above[start:]) > abs(best) + 1e-12)):
        place = start + better[0]
        best, start = above[place], place + 1
    if place < 0:
        return best, -1, -1
    return best, place // n_thresholds, n_thresholds - 1 - place % n_thresholds


class RankBoost(BaseEstimator):
    """RankBoost ranker [1]_ whose weak rankers compare one feature with a threshold.

    It is the baseline for ranking in section 7.3.1 of [2]_. The objective, over pairs in which item
    i should score above item j, is::

        sum_ij D_ij exp(F(x_j) - F(x_i)),   F(x) = sum_t alpha_t h_t(x)

    The weak ranker h_t (eq. (23) of [2]_) is 1 if the value in a column exceeds a threshold theta,
    otherwise 0. The pair weights D_ij sum to one. Each round adds the weak ranker h with the
    largest ``|r|``, where r = sum_ij d_ij (h(x_i) - h(x_j)). The current weights d_ij are
    proportional to D_ij exp(F(x_j) - F(x_i)) and sum to one. The weight of h is alpha = 1/2 ln((1 +
    r) / (1 - r)), the third method in section 3.2 of [1]_. Boosting ends early if a single weak
    ranker orders all pairs correctly, or if none improves the objective.

    Parameters
    ----------
    n_rounds : int, default 100
        Maximum number T of weak rankers, at least 1. A feature may occur several times.
    n_thresholds : int, default 64
        Number B of equidistant thresholds within the range of each feature, at least 1.

    Attributes
    ----------
    features_, thresholds_, alphas_ : ndarray of shape (<= n_rounds,)
        Column, threshold theta and weight alpha of each weak ranker, in the order of the rounds. A
        negative alpha prefers small values.
    feature_importances_ : ndarray of shape (n_features,)
        Sum of the absolute weights of each feature, normalised to a total of one.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire, Y. Singer, "An Efficient Boosting Algorithm for
           Combining Preferences", Journal of Machine Learning Research 4 (2003).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import RankBoost
    >>> X = np.random.default_rng(0).uniform(size=(50, 5))
    >>> ranker = RankBoost(20).fit(X, X[:, 2].round(1))
    >>> int(ranker.feature_importances_.argmax())
    2
    """

    def __init__(self, n_rounds: int = 100, *, n_thresholds: int = 64) -> None:
        self.n_rounds = n_rounds
        self.n_thresholds = n_thresholds

    def fit(
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the weak rankers.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or None
            Relevance grades, where higher grades are better; ignored if ``pairs`` is given.
        qid : array of shape (n_samples,) or None
            Query identifier of each item; only items of the same query are compared. None means a
            single query. Ignored if ``pairs`` is given.
        pairs : array of shape (n_pairs, 3) or None
            Preferences (i, j, r) for the rows i and j of X, with r in [0, 1]: item i should score
            above item j if r > 0.5, and below it if r < 0.5. The weight of the preference is ``|2 r
            - 1|``, so pairs with r = 0.5 are ignored.
        sample_weight : array of shape (n_samples,) or None
            Item weights; None means equal weights. The weight of a pair is the product of its two
            item weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If no pair of items expresses a preference, or a parameter is out of range.
        """
        check_integer("n_rounds", self.n_rounds, 1)
        check_integer("n_thresholds", self.n_thresholds, 1)
        if pairs is None:
            X, y = validated(self, X, y, y_numeric=True, dtype=np.float64)
            above, below = graded_pairs(y, qid).T
            strength = np.ones(len(above))
        else:
            X = validated(self, X, dtype=np.float64)
            ij, r = check_pairs(pairs, len(X))
            above, below = np.where(r > 0.5, ij.T, ij.T[::-1])
            strength = np.abs(2.0 * r - 1.0)
        weight = check_sample_weight(sample_weight, len(X))
        strength = strength * weight[above] * weight[below]
        above, below, strength = above[strength > 0], below[strength > 0], strength[strength > 0]
        if not len(strength):
            raise ValueError(
                f"every query has the same grade for all its items (n_samples={len(X)}); "
                "expected at least one query with different grades"
            )
        self._boost(X, above, below, strength / strength.sum())
        importance = np.bincount(self.features_, np.abs(self.alphas_), X.shape[1])
        self.feature_importances_ = importance / importance.sum()
        return self

    def _boost(
        self, X: np.ndarray, above: np.ndarray, below: np.ndarray, distribution: np.ndarray
    ) -> None:
        """Boost on pairs of rows with weights that sum to one."""
        low, high, b = X.min(axis=0), X.max(axis=0), self.n_thresholds
        grid = low + (high - low) * (np.arange(1, b + 1)[:, None] / (b + 1))
        codes = np.array(
            [np.searchsorted(grid[:, j], X[:, j], side="left") for j in range(X.shape[1])],
            dtype=np.int64,
        )
        indicator, rounds = _indicator(codes, b + 1), []
        for _ in range(self.n_rounds):
            potential = np.bincount(above, distribution, len(X)) - np.bincount(
                below, distribution, len(X)
            )
            r, feature, threshold = _best_threshold(indicator, potential, b)
            if feature < 0:
                break
            r = np.clip(r, -1.0 + 1e-9, 1.0 - 1e-9)
            alpha = 0.5 * np.log((1.0 + r) / (1.0 - r))
            h = (codes[feature] > threshold).astype(float)
            rounds.append((feature, grid[threshold, feature], alpha))
            distribution = distribution * np.exp(alpha * (h[below] - h[above]))
            distribution /= distribution.sum()
            if abs(r) >= 1.0 - 1e-9:
                break
        if not rounds:
            raise ValueError(
                "no feature distinguishes the two items of any pair; at least one must"
            )
        self.features_, self.thresholds_, self.alphas_ = map(np.array, zip(*rounds))

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Compute the scores of items.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores; higher scores are better.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, dtype=np.float64)
        return (X[:, self.features_] > self.thresholds_) @ self.alphas_

    predict = decision_function

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
