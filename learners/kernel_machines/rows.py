"""Input of the chains: contiguous standardised columns, and groups of correlated columns."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from .chains.screening import BLOCK, correlations

# Limit in standard deviations, beyond which a phase is meaningless and its cosine imprecise
FARTHEST = 1e3
MAX_CLUSTERED = 2000  # columns per component; a larger component forms a single group


@dataclass
class Standardiser:
    """Standardisation of the non-constant columns to mean 0 and variance 1.

    Attributes
    ----------
    usable : ndarray of int
        Columns that vary.
    unit, mean, deviation : ndarray of shape (len(usable),)
        Constants that map a value v to (v / unit - mean) / deviation. The unit is the largest
        absolute value, so that squares do not overflow.
    """

    usable: np.ndarray
    unit: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> "Standardiser":
        """Fit the standardisation to the rows of X."""
        unit = np.abs(X).max(axis=0)
        unit[unit == 0] = 1.0
        values = X / unit
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        usable = np.flatnonzero(deviation > 1e-12)
        return cls(usable, unit[usable], mean[usable], deviation[usable])

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return the standardised columns of X, of shape (len(usable), n_samples)."""
        values = (X[:, self.usable] / self.unit - self.mean) / self.deviation
        return np.ascontiguousarray(np.clip(values, -FARTHEST, FARTHEST).T)


def correlated_groups(XT: np.ndarray, threshold: float) -> np.ndarray:
    """Group columns by average linkage of absolute correlations, cut at ``threshold``.

    Only columns that are connected by correlations above the threshold are clustered, so that no
    matrix of all column pairs is formed. With few rows, the threshold is raised to exclude
    correlations that are due to chance.
    """
    p, n = XT.shape
    threshold = max(threshold, 2.0 * np.sqrt(np.log(p + 1.0) / n))
    values = np.ascontiguousarray(XT, dtype=np.float32)
    rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for first in range(0, p, BLOCK):
        row, column = np.nonzero(
            np.abs(correlations(values, first, min(first + BLOCK, p))) > threshold
        )
        rows.append(row + first)
        columns.append(column)
    i, j = np.concatenate(rows), np.concatenate(columns)
    joined = coo_matrix((np.ones(len(i), bool), (i, j)), shape=(p, p))
    component = connected_components(joined, directed=False)[1] if p else np.empty(0, np.int64)
    groups = component.astype(np.int64)
    for which in np.flatnonzero(np.bincount(component) > 2):
        inside = np.flatnonzero(component == which)
        if len(inside) <= MAX_CLUSTERED:
            distance = np.clip(1.0 - np.abs(np.corrcoef(XT[inside])), 0.0, 1.0)[
                np.triu_indices(len(inside), 1)
            ]
            parts = fcluster(linkage(distance, "average"), 1.0 - threshold, "distance")
            groups[inside] = groups.max() + parts
    return np.unique(groups, return_inverse=True)[1]
