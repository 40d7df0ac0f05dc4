"""Direction of an sDist step: a sparse leading eigenvector of A = X~' L X~.

X~ contains the training rows in the feature map. A is not formed. It is the sum of the matrices
weight_i M_i, where M_i is the average of (x_i - x_j)(x_i - x_j)' over the nearest rows j of other
classes minus the average over those of the same class (Ma (thesis), below eqs. (2.4) and (2.12)). L
is therefore a signed graph Laplacian with 2 k edges per row, and A v = X~'(L (X~ v)) costs O(n k)
plus two products with X~.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..solvers.annealing import strongest

_BLOCK_VALUES = 1 << 20  # number of differences in memory at a time


def laplacian(
    same: np.ndarray, other: np.ndarray, weight: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes the product L u in O(n k) time.

    Each of the n rows has k neighbours of the same class and k of other classes. L is the symmetric
    matrix for which u' L u is the sum over the rows i of ``weight_i`` times a difference: the mean
    of (u_i - u_j)^2 over the neighbours j of other classes, minus the mean over those of the same
    class.
    """
    rows = np.hstack([other, same])
    known = rows >= 0
    share = [
        sign * weight / np.maximum((r >= 0).sum(axis=1), 1)
        for r, sign in ((other, 1.0), (same, -1.0))
    ]
    c = np.repeat(np.column_stack(share), [other.shape[1], same.shape[1]], axis=1)[known]
    edges = sp.csr_array(
        (c, rows[known], np.concatenate([[0], np.cumsum(known.sum(axis=1))])),
        shape=(len(weight), len(weight)),
    )
    mirrored = edges.T
    # an edge from i to j adds c to the entries (i, i) and (j, j), and subtracts it from (i, j) and
    # (j, i)
    diagonal = edges.sum(axis=1) + edges.sum(axis=0)
    return lambda u: diagonal * u - edges @ u - mirrored @ u


def margins(Z: np.ndarray, same: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Compute the margins of Ma (thesis), eq. (2.3), for points Z of shape (n, d).

    A margin is the mean squared distance to the neighbours of other classes minus that to the
    neighbours of the same class.
    """
    out = np.zeros(len(Z))
    step = max(1, _BLOCK_VALUES // max(1, same.shape[1] * Z.shape[1]))
    for block in (slice(start, start + step) for start in range(0, len(Z), step)):
        for rows, sign in ((other[block], 1.0), (same[block], -1.0)):
            known = rows >= 0
            difference = Z[block, None] - Z[rows]
            square = np.where(known, np.einsum("nkd,nkd->nk", difference, difference), 0.0)
            out[block] += sign * square.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return out


def lanczos(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, n_iter: int
) -> tuple[np.ndarray, float, float]:
    """Compute the leading eigenvector with a few Lanczos steps and full reorthogonalisation.

    The leading eigenvector belongs to the algebraically largest eigenvalue.

    Parameters
    ----------
    product : callable
        Function that returns A v for the symmetric matrix A.
    start : ndarray of shape (p,)
        Non-zero initial vector.
    n_iter : int
        Maximum number of steps.

    Returns
    -------
    vector : ndarray of shape (p,)
        Eigenvector of approximately unit length.
    largest, smallest : float
        Extreme Ritz values.
    """
    basis = [start / np.linalg.norm(start)]
    alpha, beta = [], []
    for step in range(n_iter):
        w = product(basis[-1])
        alpha.append(float(basis[-1] @ w))
        Q = np.array(basis)
        w -= Q.T @ (Q @ w)
        w -= Q.T @ (Q @ w)
        norm = float(np.linalg.norm(w))
        if step == n_iter - 1 or norm <= 1e-10 * max(abs(a) for a in alpha) or norm == 0.0:
            break
        beta.append(norm)
        basis.append(w / norm)
    T = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    values, vectors = np.linalg.eigh(T)
    return vectors[:, -1] @ np.array(basis), values[-1], values[0]


_MAX_POWER_STEPS = 20
_TOLERANCE = 1e-4  # relative gain below which power steps end, if the support is unchanged


def truncated_power(
    columns_product: Callable[[np.ndarray, np.ndarray], np.ndarray],
    vector: np.ndarray,
    kappa: int,
    shift: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Compute the leading kappa-sparse eigenvector by Algorithm 2.1 of Ma (thesis).

    The algorithm is a truncated power method. The shift is increased only when xi' A xi decreases,
    where xi is the current unit vector. A shift that makes A positive semi-definite from the start
    would keep the iteration close to its starting point, as Ma (thesis) notes below Algorithm 2.1.

    Parameters
    ----------
    columns_product : callable
        Function that returns the dense vector A v, of shape (p,), given the support and the values
        of a sparse vector v.
    vector : ndarray of shape (p,)
        Initial vector, which is truncated before the first step.
    kappa : int
        Number of entries to keep.
    shift : float
        Initial shift. It is applied when xi' A xi decreases for the first time, and multiplied by
        ten at each further decrease.

    Returns
    -------
    support : ndarray of shape (<= kappa,), int
        Indices of the non-zero entries, in ascending order.
    values : ndarray
        Non-zero entries of a unit vector. The entry of largest absolute value is positive.
    value : float
        Value of xi' A xi for the returned vector xi.
    """
    support = strongest(np.abs(vector), kappa)
    values = _unit(vector[support])
    image = columns_product(support, values)
    value = float(values @ image[support])
    added = 0.0
    for _ in range(_MAX_POWER_STEPS):
        moved = image.copy()
        moved[support] += added * values
        new_support = strongest(np.abs(moved), kappa)
        new_values = _unit(moved[new_support])
        new_image = columns_product(new_support, new_values)
        new_value = float(new_values @ new_image[new_support])
        if new_value < value:
            if added >= 1e3 * shift or shift <= 0.0:
                break
            added = max(shift, 10.0 * added)
            continue
        done = new_value - value <= _TOLERANCE * abs(new_value) and np.array_equal(
            support, new_support
        )
        support, values, image, value = new_support, new_values, new_image, new_value
        if done:
            break
    used = values != 0.0
    support, values = support[used], values[used]
    if len(values) and values[np.argmax(np.abs(values))] < 0:
        values = -values
    return support, values, value


def _unit(v: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(v)
    return v / norm if norm > 0 else v


def power_step(
    booster: Any, weight: np.ndarray, allowed: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the sparse leading eigenvector by Lanczos steps and truncated power steps.

    The Lanczos steps start from the dense eigenvector of the previous boosting step.
    """
    columns = booster.columns
    dtype = columns.base.dtype
    times = laplacian(booster.same, booster.other, weight)

    def back(u: np.ndarray) -> np.ndarray:
        out = columns.transposed_times(times(u).astype(dtype))
        return out if allowed is None else out * allowed

    def product(v: np.ndarray) -> np.ndarray:
        return back(columns.times(v if allowed is None else v * allowed))

    def columns_product(support: np.ndarray, values: np.ndarray) -> np.ndarray:
        return back(columns.take(support) @ values.astype(dtype))

    if booster.model.start == "ones":
        vector, shift = np.ones(columns.n_columns), 1e-3
    else:
        cold = booster.leading is None or booster.since_update == 0
        first = np.ones(columns.n_base, dtype=dtype) if booster.leading is None else booster.leading
        first = np.pad(first, (0, columns.n_columns - len(first)))
        vector, _, smallest = lanczos(product, first, 12 if cold else 4)
        booster.leading = vector.astype(dtype)
        shift = max(-smallest, 0.0)
    support, values, _ = truncated_power(columns_product, vector, booster.kappa, shift)
    return support, values
