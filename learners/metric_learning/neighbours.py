"""Nearest neighbours inside and outside a class, found block by block: never an n x n matrix at
once.

Distances come from matrix products on blocks of query rows; ties go to the lower row number, so
that the result depends on nothing but the data.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from ..compilation import jit
from ..types import Matrix

BLOCK_BYTES = 1 << 24  # of one block of distances


@jit
def _insert(value: float, row: int, best: np.ndarray, rows: np.ndarray) -> None:
    """Insert into an ascending list of the k smallest; earlier rows win ties because they come
    first.
    """
    k = len(best)
    if value >= best[k - 1]:
        return
    at = k - 1
    while at > 0 and best[at - 1] > value:
        best[at] = best[at - 1]
        rows[at] = rows[at - 1]
        at -= 1
    best[at] = value
    rows[at] = row


def _k_least(distance: np.ndarray, near: np.ndarray, rows: np.ndarray) -> None:
    """The k smallest of each row of a matrix, in order; the first of equal ones first. ``distance``
    is overwritten.
    """
    each = np.arange(len(distance))
    for k in range(near.shape[1]):
        row = distance.argmin(axis=1)
        near[:, k] = distance[each, row]
        rows[:, k] = np.where(np.isinf(near[:, k]), -1, row)
        distance[each, row] = np.inf


def _plain_same_and_other(distance: np.ndarray, first: int, classes: np.ndarray, same: np.ndarray, other: np.ndarray) -> None:
    stretch = slice(first, first + len(distance))
    alike = classes[stretch, None] == classes
    for rows, excluded in ((other, alike), (same, ~alike)):
        masked = np.where(excluded, np.inf, distance)
        if rows is same:
            masked[np.arange(len(masked)), np.arange(first, stretch.stop)] = np.inf
        _k_least(masked, np.empty((len(masked), rows.shape[1])), rows[stretch])


def _plain_nearest(distance: np.ndarray, first: int, rows: np.ndarray, near: np.ndarray) -> None:
    stretch = slice(first, first + len(distance))
    _k_least(distance.copy(), near[stretch], rows[stretch])


@jit(plain=_plain_same_and_other)
def _same_and_other(distance: np.ndarray, first: int, classes: np.ndarray, same: np.ndarray, other: np.ndarray) -> None:
    n_rows, n = distance.shape
    near_same = np.empty(same.shape[1])
    near_other = np.empty(other.shape[1])
    for r in range(n_rows):
        i = first + r
        near_same[:] = np.inf
        near_other[:] = np.inf
        limit = np.inf
        for j in range(n):
            if distance[r, j] >= limit:  # nearly always, which the processor foresees; the class of row j it cannot
                continue
            if classes[j] != classes[i]:
                _insert(distance[r, j], j, near_other, other[i])
            elif j != i:
                _insert(distance[r, j], j, near_same, same[i])
            limit = max(near_same[-1], near_other[-1])


@jit(plain=_plain_nearest)
def _nearest(distance: np.ndarray, first: int, rows: np.ndarray, near: np.ndarray) -> None:
    for r in range(distance.shape[0]):
        for j in range(distance.shape[1]):
            _insert(distance[r, j], j, near[first + r], rows[first + r])


def _blocks(n_queries: int, n: int) -> list[slice]:
    step = max(1, BLOCK_BYTES // (8 * max(n, 1)))
    return [slice(start, min(start + step, n_queries)) for start in range(0, n_queries, step)]


def _square_norms(Z: Matrix) -> np.ndarray:
    return np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if sp.issparse(Z) else np.einsum("ij,ij->i", Z, Z)


def _distances(queries: Matrix, query_norms: np.ndarray, Z: Matrix, norms: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances, dense (n_queries, n)."""
    distance = (-2.0 * queries) @ Z.T
    if sp.issparse(distance):
        distance = distance.toarray()
    distance += query_norms[:, None]
    distance += norms
    return np.maximum(distance, 0.0, out=distance)


def same_and_other_neighbours(Z: Matrix, classes: np.ndarray, k: int, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Find the k nearest rows of the same class and the k nearest of all other classes.

    Parameters
    ----------
    Z : ndarray or CSR matrix of shape (n, d)
        Points; Euclidean distance.
    classes : ndarray of shape (n,), int
        Codes of the classes.
    k : int
        Neighbours of each kind; fewer where a class is smaller.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Returns
    -------
    same, other : ndarray of shape (n, k), int32
        Row numbers, nearest first, -1 where there is no further neighbour. A row is not its own
        neighbour.
    """
    n = Z.shape[0]
    same = np.full((n, k), -1, dtype=np.int32)
    other = np.full((n, k), -1, dtype=np.int32)
    norms = _square_norms(Z)

    def work(block: slice) -> None:
        _same_and_other(_distances(Z[block], norms[block], Z, norms), block.start, classes, same, other)

    Parallel(n_jobs=n_jobs, prefer="threads")(delayed(work)(block) for block in _blocks(n, n))
    return same, other


def nearest(queries: Matrix, Z: Matrix, k: int, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Find the k rows of Z nearest to each query.

    Parameters
    ----------
    queries : ndarray or CSR matrix of shape (n_queries, d)
        Points; Euclidean distance.
    Z : ndarray or CSR matrix of shape (m, d)
        Where neighbours are searched.
    k : int
        Neighbours of each query.
    n_jobs : int or None, default None
        Threads; the result does not depend on it.

    Returns
    -------
    rows : ndarray of shape (n_queries, k), int32
        Row numbers, nearest first, -1 where Z has fewer than k rows.
    distance : ndarray of shape (n_queries, k)
        Squared Euclidean distances, infinite where there is no row.
    """
    m = queries.shape[0]
    rows = np.full((m, k), -1, dtype=np.int32)
    near = np.full((m, k), np.inf)
    norms, query_norms = _square_norms(Z), _square_norms(queries)

    def work(block: slice) -> None:
        _nearest(_distances(queries[block], query_norms[block], Z, norms), block.start, rows, near)

    Parallel(n_jobs=n_jobs, prefer="threads")(delayed(work)(block) for block in _blocks(m, Z.shape[0]))
    return rows, near
