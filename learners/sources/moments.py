"""Moments of the columns and targets, which suffice for a fit with the squared loss [1]_.

References
----------
.. [1] L. Sun, M. Wang, S. Zhu, A. Barbu, "A Novel Framework for Online Supervised Learning with
       Feature Selection", arXiv:1803.11521 (2018).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpstrf

from ..compilation import n_values, problem_size
from .matrix import OutOfCoreMatrix

MAX_COLUMNS = 10_000  # maximum columns and targets: 800 MB of sums (heuristic)
# Ratio of standard deviation to mean below which a column is constant up to rounding
_ROUNDING = 8.0 * np.finfo(np.float64).eps
_BLOCK_BYTES = 32 << 20  # bytes in double precision at a time


@dataclass(frozen=True)
class Moments:
    """Weighted moments of the columns of X, followed by those of the targets.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    n_rows : float
        Sum of the row weights.
    mean : ndarray of shape (p,)
        Weighted mean of each column and target.
    scatter : ndarray of shape (p, p)
        Weighted sum of the products of the deviations from the means.
    """

    n_samples: int
    n_rows: float
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, weight: np.ndarray) -> Self:
        """Compute the moments of rows of shape (n, p) in double precision."""
        n_rows = float(weight.sum())
        if not n_rows > 0:
            return cls(len(rows), 0.0, np.zeros(rows.shape[1]), np.zeros((rows.shape[1],) * 2))
        mean = weight @ rows / n_rows
        deviations = rows - mean
        deviations *= np.sqrt(weight)[:, None]
        return cls(len(rows), n_rows, mean, deviations.T @ deviations)

    def __add__(self, other: "Moments") -> "Moments":
        """Return the moments of the combined rows [1]_.

        References
        ----------
        .. [1] T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance",
               The American Statistician 37 (1983).
        """
        n_rows = self.n_rows + other.n_rows
        share = other.n_rows / n_rows if n_rows > 0 else 0.0
        difference = other.mean - self.mean
        scatter = self.scatter + other.scatter
        scatter += self.n_rows * share * np.outer(difference, difference)
        mean = self.mean + share * difference
        return Moments(self.n_samples + other.n_samples, n_rows, mean, scatter)

    @property
    def scale(self) -> np.ndarray:
        """Compute the square root of each column's sum of squared deviations (0 if constant)."""
        scale = np.sqrt(np.diagonal(self.scatter))
        rounding = _ROUNDING * np.abs(self.mean) * np.sqrt(self.n_rows)
        return np.where(scale > rounding, scale, 0.0)

    @property
    def is_regular(self) -> bool:
        """Return whether all numbers are finite and no column is constant."""
        return bool(np.isfinite(self.scatter).all() and (self.scale > 0).all())

    def equivalent_rows(self) -> np.ndarray:
        """Return rank + 1 equally weighted rows that have these moments.

        On these rows, the squared loss of a linear model is the same as on the original rows, up to
        a constant factor. The fitted model is therefore the same.

        Returns
        -------
        ndarray of shape (r + 1, p)
            Rows with the same moments.
        """
        p = len(self.mean)
        scale = self.scale
        unit = np.where(scale > 0, scale, np.inf)
        factor, pivots, rank, _ = dpstrf(self.scatter / np.outer(unit, unit))
        rank = min(rank, max(0, self.n_samples - 1))  # a higher rank is due to rounding
        n = rank + 1
        rows = np.zeros((n, p))
        rows[1:, pivots - 1] = np.triu(factor[:rank])
        # Reflection of the first axis onto the diagonal. Its other columns sum to zero, so the mean
        # can be added without changing the products.
        normal = np.full(n, -1.0 / np.sqrt(n))
        normal[0] += 1.0
        length = normal @ normal
        if length > 0:
            rows -= np.outer(2.0 / length * normal, normal @ rows)
        return self.mean + np.sqrt(n / self.n_rows) * rows * scale


def moments_of(X: Any, targets: np.ndarray, weight: np.ndarray) -> Moments:
    """Compute the moments of X and the targets in one pass over blocks of rows.

    Raises
    ------
    ValueError
        If there are more than ``MAX_COLUMNS`` columns.
    """
    (n, m), q = X.shape, targets.shape[1]
    if m + q > MAX_COLUMNS:
        raise ValueError(
            f"X has {m} columns, but partial_fit stores the products of all pairs of columns, "
            f"so it supports at most {MAX_COLUMNS - q}"
        )
    total = Moments.of(np.empty((0, m + q)), np.empty(0))
    height = max(1, _BLOCK_BYTES // (8 * (m + q)))
    with problem_size(n_values(X)), np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, height):
            rows = slice(start, min(start + height, n))
            part: Any = X[rows, np.arange(m)] if isinstance(X, OutOfCoreMatrix) else X[rows]
            dense = part.toarray() if sp.issparse(part) else np.asarray(part, np.float64)
            total += Moments.of(np.hstack([dense, targets[rows]]), weight[rows])
    return total
