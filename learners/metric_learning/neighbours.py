"""Nearest neighbours of the same and of other classes, computed without an n x n matrix.

Distances are computed by matrix products for blocks of query rows. Ties favour the lower row index,
so that the result depends on the data alone.
"""

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from ..types import Matrix

BLOCK_BYTES = 1 << 24  # size in bytes of a block of distances


def _k_least(distance: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and values (n, k) of the k smallest finite values in each row.

    The values are in ascending order, with ties in column order. Missing entries are -1 and
    infinity.
    """
    columns, values = np.full((len(distance), k), -1, np.int32), np.full((len(distance), k), np.inf)
    limit = (
        np.partition(distance, k - 1, axis=1)[:, k - 1, None] if k < distance.shape[1] else np.inf
    )
    row, column = np.nonzero((distance <= limit) & (distance < np.inf))
    candidates = distance[row, column]
    order = np.lexsort((candidates, row))
    row, column, candidates = row[order], column[order], candidates[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)
    least = place < k
    at = row[least], place[least]
    columns[at], values[at] = column[least], candidates[least]
    return columns, values


def _blocks(n_queries: int, n: int) -> list[slice]:
    step = max(1, BLOCK_BYTES // (8 * max(n, 1)))
    return [slice(start, min(start + step, n_queries)) for start in range(0, n_queries, step)]


def _square_norms(Z: Matrix) -> np.ndarray:
    return (
        np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
        if sp.issparse(Z)
        else np.einsum("ij,ij->i", Z, Z)
    )


def _distances(
    queries: Matrix, query_norms: np.ndarray, Z: Matrix, norms: np.ndarray
) -> np.ndarray:
    """Compute the squared Euclidean distances (n_queries, n)."""
    distance = (-2.0 * queries) @ Z.T
    if sp.issparse(distance):
        distance = distance.toarray()
    distance += query_norms[:, None]
    distance += norms
    return np.maximum(distance, 0.0, out=distance)


def same_and_other_neighbours(
    Z: Matrix, classes: np.ndarray, k: int, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of the same class and the k nearest rows of other classes.

    Parameters
    ----------
    Z : ndarray or CSR matrix of shape (n, d)
        Points; distances are Euclidean.
    classes : ndarray of shape (n,), int
        Codes of the classes.
    k : int
        Number of neighbours of the same class, and number of neighbours of other classes. There are
        fewer if a class is small.
    n_jobs : int or None
        Number of threads; the result does not depend on it.

    Returns
    -------
    same, other : ndarray of shape (n, k), int32
        Row indices in ascending order of distance; -1 for missing neighbours. A row is not its own
        neighbour.
    """
    n = Z.shape[0]
    same, other = np.empty((2, n, k), np.int32)
    norms = _square_norms(Z)

    def work(block: slice) -> None:
        distance = _distances(Z[block], norms[block], Z, norms)
        alike = classes[block, None] == classes
        other[block], _ = _k_least(np.where(alike, np.inf, distance), k)
        distance[np.arange(len(distance)), np.arange(block.start, block.stop)] = np.inf
        same[block], _ = _k_least(np.where(alike, distance, np.inf), k)

    Parallel(n_jobs=n_jobs, prefer="threads")(delayed(work)(block) for block in _blocks(n, n))
    return same, other


def nearest(
    queries: Matrix, Z: Matrix, k: int, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k rows of Z that are nearest to each query.

    Parameters
    ----------
    queries : ndarray or CSR matrix of shape (n_queries, d)
        Points; distances are Euclidean.
    Z : ndarray or CSR matrix of shape (m, d)
        Rows to search.
    k : int
        Number of neighbours per query.
    n_jobs : int or None, default None
        Number of threads; the result does not depend on it.

    Returns
    -------
    rows : ndarray of shape (n_queries, k), int32
        Row indices in ascending order of distance; -1 if Z has fewer than k rows.
    distance : ndarray of shape (n_queries, k)
        Squared Euclidean distances; infinite for missing rows.
    """
    m = queries.shape[0]
    rows, near = np.empty((m, k), np.int32), np.empty((m, k))
    norms, query_norms = _square_norms(Z), _square_norms(queries)

    def work(block: slice) -> None:
        rows[block], near[block] = _k_least(
            _distances(queries[block], query_norms[block], Z, norms), k
        )

    Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(work)(block) for block in _blocks(m, Z.shape[0])
    )
    return rows, near
