"""The interface of a learnt metric, named as in metric-learn: distances and scores of pairs, the subspace, a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..types import ArrayLike, Matrix


class SubspaceMetricMixin(TransformerMixin):
    """Pseudo-metric d(a, b) = ||T(a) - T(b)|| of a transformer T; a class supplies ``_subspace(X)`` for validated rows."""

    def transform(self, X: Matrix) -> np.ndarray:
        """Map rows into the learnt subspace, where the Euclidean distance is the learnt one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            Coordinates, the strongest direction first.
        """
        check_is_fitted(self)
        return self._subspace(self._rows(X))

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Learnt distance of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or a tuple of two matrices of shape (n_pairs, n_features)
            The tuple also takes sparse matrices.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Never negative, symmetric, zero for equal points, and obeying the triangle inequality;
            different points may be at distance zero.

        Raises
        ------
        ValueError
            If the pairs have another shape.
        """
        check_is_fitted(self)
        if isinstance(pairs, tuple):
            if len(pairs) != 2:
                raise ValueError(f"pairs is a tuple of {len(pairs)} matrices; expected 2 of shape (n_pairs, n_features)")
            left, right = pairs
            if np.shape(left) != np.shape(right):
                raise ValueError(f"pairs of matrices of shapes {np.shape(left)} and {np.shape(right)}; expected equal ones")
        else:
            pairs = np.asarray(pairs)
            if pairs.ndim != 3 or pairs.shape[1] != 2:
                raise ValueError(f"pairs has shape {pairs.shape}; expected (n_pairs, 2, {self.n_features_in_})")
            left, right = pairs[:, 0], pairs[:, 1]
        return np.linalg.norm(self.transform(left) - self.transform(right), axis=1)

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Similarity of each pair, larger for more similar ones.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or a tuple of two matrices of shape (n_pairs, n_features)
            As for :meth:`pair_distance`.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Minus the distances.
        """
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """Return the learnt distance as a function of two vectors, usable as ``metric=`` of scikit-learn's neighbours.

        Returns
        -------
        callable
            ``metric(u, v, squared=False)``; it keeps the metric of now even if the estimator is
            fitted again.
        """
        check_is_fitted(self)
        subspace, shape = self._frozen_subspace(), (self.n_features_in_,)

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            if not np.shape(u) == np.shape(v) == shape:
                raise ValueError(f"vectors of shapes {np.shape(u)} and {np.shape(v)}; expected {shape}")
            difference = subspace(np.asarray(u, dtype=float)[None]) - subspace(np.asarray(v, dtype=float)[None])
            square = float(np.sum(difference**2))
            return square if squared else square**0.5

        return metric

    def _rows(self, X: Matrix) -> Matrix:
        rows = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return sp.csr_matrix(rows) if sp.issparse(rows) else rows
