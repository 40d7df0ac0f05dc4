"""Ranking loss of score differences for pairs of items from the same query."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from ..types import ArrayLike
from .base import Loss, SecondOrder

_MIN_QUERIES = 5  # fewer queries do not generalise to new queries (heuristic)


class PairwiseLogisticLoss(Loss):
    """Ranking loss over pairs of rows (eq. (17) of [1]_).

    For scores f_i and preferences r_ij, the loss is the weighted mean over pairs of ln(1 + exp(f_i
    - f_j)) - r_ij (f_i - f_j).

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
        Rows (i, j) of the compared items.
    r : ndarray of shape (n_pairs,)
        Probability, in [0, 1], that item i is preferred to item j: 1 if item i should score higher,
        0 if it should score lower, and 0.5 for a tie.
    pair_weight : ndarray of shape (n_pairs,) or None, default None
        Pair weights; None means equal weights.

    Notes
    -----
    Minimisation drives f_i - f_j towards logit(r_ij). The methods ignore ``y`` and
    ``sample_weight``; preferences and weights are those of the pairs.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 5.
    """

    name = "pairwise_logistic"
    tasks = frozenset({"ranking"})
    max_curvature = 0.5
    default_step_size = 5.0
    pointwise = False
    is_log_likelihood = True  # of the pairs; columns without effect gain a third less

    def __init__(
        self, pairs: Any = None, r: Any = None, pair_weight: np.ndarray | None = None
    ) -> None:
        self.pairs = pairs
        self.r = r
        self.pair_weight = pair_weight

    @property
    def pair_weights(self) -> np.ndarray:
        """Weights of the pairs, which sum to one."""
        n = len(self.pairs)
        return (
            np.full(n, 1.0 / n)
            if self.pair_weight is None
            else self.pair_weight / np.sum(self.pair_weight)
        )

    def _differences(self, scores: np.ndarray) -> np.ndarray:
        return scores[self.pairs[:, 0], 0] - scores[self.pairs[:, 1], 0]

    def _scatter(self, per_pair_i: np.ndarray, per_pair_j: np.ndarray, n: int) -> np.ndarray:
        out = np.bincount(self.pairs[:, 0], per_pair_i, n) + np.bincount(
            self.pairs[:, 1], per_pair_j, n
        )
        return out[:, None]

    def pair_terms(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the derivatives of each pair's loss with respect to its score difference.

        Parameters
        ----------
        d : ndarray of shape (n_pairs,)
            Score differences.

        Returns
        -------
        tuple of two ndarrays of shape (n_pairs,)
            Unweighted first and second derivatives.
        """
        p = expit(d)
        return p - self.r, p * (1.0 - p)

    @staticmethod
    def pair_values(d: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Compute the loss of each pair.

        Parameters
        ----------
        d : ndarray of shape (n_pairs,)
            Score differences.
        r : ndarray of shape (n_pairs,)
            Preference of each pair.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Unweighted losses.
        """
        return np.logaddexp(0.0, d) - r * d

    def parts(self, weight: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """List the pairs of each query, or of each item if there are fewer than five queries.

        Two items belong to the same query if they are connected by pairs.

        Parameters
        ----------
        weight : ndarray of shape (n_samples,)
            Item weights; an item of weight w counts as w copies.

        Returns
        -------
        list of (ndarray of int, float)
            For each query or item, the positions of its pairs in ``pairs`` and the fraction of
            their weight to leave out: 1 for a query, and 1 / max(1, w) for an item of weight w.
        """
        pairs = np.asarray(self.pairs)
        present = np.flatnonzero((weight[pairs] > 0).all(axis=1))
        i, j = pairs[present].T
        graph = sp.coo_array((np.ones(len(i)), (i, j)), shape=(len(weight), len(weight)))
        query = connected_components(graph, directed=False)[1][i]
        if len(np.unique(query)) >= _MIN_QUERIES:
            return [(present[part], 1.0) for part in _positions(query)]
        items = np.concatenate([i, j])
        return [
            (present[part % len(i)], 1.0 / max(1.0, weight[items[part[0]]]))
            for part in _positions(items)
        ]

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        return float(self.pair_weights @ self.pair_values(self._differences(scores), self.r))

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        g = self.pair_weights * self.pair_terms(self._differences(scores))[0]
        return self._scatter(g, -g, len(scores))

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        # The Hessian in the scores is a graph Laplacian; twice its diagonal is a majorant.
        p = expit(self._differences(scores))
        c = 2.0 * self.pair_weights * p * (1.0 - p)
        return self._scatter(c, c, len(scores))

    def second_order(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> SecondOrder:
        p = expit(self._differences(scores))
        c = self.pair_weights * p * (1.0 - p)
        i, j = self.pairs[:, 0], self.pairs[:, 1]
        n = len(scores)
        off = sp.coo_array(
            (np.concatenate([c, c]), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n)
        ).tocsr()
        laplacian = sp.diags_array(off.sum(axis=1)) - off  # the Hessian in the scores
        return *self.value_and_gradient(y, scores, sample_weight), [laplacian.__matmul__]


def graded_pairs(y: ArrayLike, qid: ArrayLike | None = None) -> np.ndarray:
    """Return the pairs (i, j) of rows from the same query in which row i has the higher grade.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Relevance grades; higher grades are better.
    qid : array of shape (n_samples,) or None
        Query of each row; None means a single query.

    Returns
    -------
    ndarray of shape (n_pairs, 2), int
        Pairs of row indices.

    Raises
    ------
    ValueError
        If ``qid`` and ``y`` have different lengths.
    """
    y = np.asarray(y)
    qid = np.zeros(len(y), int) if qid is None else np.asarray(qid)
    if len(qid) != len(y):
        raise ValueError(f"qid has {len(qid)} entries; expected one for each of the {len(y)} rows")
    pairs = []
    for rows in _positions(qid):
        above, below = np.nonzero(y[rows][:, None] > y[rows][None, :])
        pairs.append(np.column_stack([rows[above], rows[below]]))
    return np.concatenate(pairs) if pairs else np.empty((0, 2), int)


def _positions(labels: np.ndarray) -> list[np.ndarray]:
    """Return the positions of each distinct label."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def check_pairs(pairs: ArrayLike, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Validate pairs, and split them into rows and preferences.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 3)
        Preferences (i, j, r), where r in [0, 1] is the probability that row i is preferred to row
        j: 1 if row i should score higher, 0 if it should score lower, and 0.5 for a tie.
    n_samples : int
        Number of rows of X.

    Returns
    -------
    ij : ndarray of shape (n_pairs, 2), int
        Row indices of each pair.
    r : ndarray of shape (n_pairs,)
        Preference of each pair.

    Raises
    ------
    ValueError
        If the shape is wrong, a row does not exist, or r is outside [0, 1].
    """
    pairs = np.asarray(pairs, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 3 or not len(pairs):
        raise ValueError(
            f"pairs has shape {pairs.shape}; expected (n_pairs, 3) with columns i, j and r"
        )
    ij, r = pairs[:, :2].astype(np.int64), pairs[:, 2]
    if ij.min() < 0 or ij.max() >= n_samples or not ((r >= 0) & (r <= 1)).all():
        raise ValueError(
            f"pairs contains invalid entries; expected row numbers from 0 to {n_samples - 1} "
            "and r in [0, 1]"
        )
    return ij, r
