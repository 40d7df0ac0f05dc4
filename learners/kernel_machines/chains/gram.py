"""Fourier features and the inverse of their Gram matrix, updated as atoms change.

The features are a constant and, for each atom, the cosine and sine of its phase, so that phase
shifts need no parameter. The weights b ~ N(0, I / precision) are integrated out. A move changes the
inverse by a matrix of rank 2 to 4, in O(N D + D^2) time for N rows and D atoms.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...compilation import jit

INTERCEPT_PRECISION = 1e-2  # prior precision of the constant's weight; shrinkage is weak
REFRESH = 200  # accepted moves between two full factorisations


class Gram(NamedTuple):
    """Features F, and quantities derived from their Gram matrix A = F W F' + diag(precision).

    W is the diagonal matrix of the row weights, and c = F t is the projection of the target t. With
    D atoms, the first 1 + 2 D rows of F are in use.
    """

    features: np.ndarray  # F: (1 + 2 max_components, N)
    inverse: np.ndarray  # inverse of A
    projection: np.ndarray  # c = F t with the target t
    scalars: np.ndarray  # log det A, c' A^-1 c
    weight: np.ndarray  # diagonal of W (N,); ones for the Gaussian likelihood
    target: np.ndarray  # t (N,)
    # Work arrays of a move
    phase: np.ndarray  # (N,)
    added: np.ndarray  # (2, N)
    reduced: np.ndarray  # inverse without the removed atom
    cross: np.ndarray  # (M, 2): F W times the added features
    solved: np.ndarray  # (M, 2)
    # (2, 2) inverse of the Schur complement; (2, 0..1); projections of the added features in row 2
    small: np.ndarray


def empty_gram(n_rows: int, max_components: int) -> Gram:
    """Allocate memory for ``max_components`` atoms: about 16 bytes per row and atom."""
    size = 1 + 2 * max_components
    features = np.zeros((size, n_rows))
    features[0] = 1.0
    square, pair = (size, size), (size, 2)
    state: tuple[Any, ...] = (square, size, 2)
    work: tuple[Any, ...] = (n_rows, n_rows, (2, n_rows), square, pair, pair, (3, 2))
    return Gram._make(
        [features, *(np.zeros(s) for s in state), np.ones(n_rows), *(np.zeros(s) for s in work)]
    )


@jit
def cos_sin(phase: np.ndarray, out: np.ndarray) -> None:
    """Compute the cosine and sine of phases below 1e6 in absolute value.

    The polynomials of fdlibm are evaluated without branches, so that the loop vectorises. The
    maximum error is 2e-16.
    """
    cosine, sine = out[0], out[1]
    for i in range(len(phase)):
        x = phase[i]
        k = math.floor(x * 0.6366197723675814 + 0.5)
        r = (
            (x - k * 1.57079632673412561417e00) - k * 6.07710050630396597660e-11
        ) - k * 2.02226624879595063154e-21
        z = r * r
        s = r + r * z * (
            -1.66666666666666324348e-01
            + z
            * (
                8.33333333332248946124e-03
                + z
                * (
                    -1.98412698298579493134e-04
                    + z
                    * (
                        2.75573137070700676789e-06
                        + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
                    )
                )
            )
        )
        c = (
            1.0
            - 0.5 * z
            + z
            * z
            * (
                4.16666666666666019037e-02
                + z
                * (
                    -1.38888888888741095749e-03
                    + z
                    * (
                        2.48015872894767294178e-05
                        + z
                        * (
                            -2.75573143513906633035e-07
                            + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
                        )
                    )
                )
            )
        )
        q = k - 4.0 * math.floor(0.25 * k)
        odd = q == 1.0 or q == 3.0
        big, small = (s, c) if odd else (c, s)
        cosine[i] = -big if q == 1.0 or q == 2.0 else big
        sine[i] = -small if q >= 2.0 else small


@jit
def atom_features(
    columns: np.ndarray,
    omega: np.ndarray,
    n: int,
    XT: np.ndarray,
    phase: np.ndarray,
    out: np.ndarray,
) -> None:
    """Compute the cosine and sine of an atom's phase for each of the N columns of ``XT``."""
    x, w = XT[columns[0]], omega[0]
    for i in range(len(phase)):
        phase[i] = w * x[i]
    for t in range(1, n):
        x, w = XT[columns[t]], omega[t]
        for i in range(len(phase)):
            phase[i] += w * x[i]
    cos_sin(phase, out)


@jit(fastmath=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@jit(fastmath=True)
def _two_dots(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[float, float]:
    first, second = 0.0, 0.0
    for i in range(len(a)):
        first += a[i] * b[i]
        second += a[i] * c[i]
    return first, second


@jit
def invert(A: np.ndarray, n: int) -> float:
    """Invert the leading n x n block of a positive definite matrix in place.

    The inverse is computed by a Cholesky decomposition, and the log determinant is returned.
    """
    logdet = 0.0
    for j in range(n):
        pivot = A[j, j] - _dot(A[j, :j], A[j, :j])
        pivot = math.sqrt(max(pivot, 1e-300))
        A[j, j] = pivot
        logdet += 2.0 * math.log(pivot)
        for i in range(j + 1, n):
            A[i, j] = (A[i, j] - _dot(A[i, :j], A[j, :j])) / pivot
    for j in range(n):  # store the transposed inverse of L in the upper triangle
        A[j, j] = 1.0 / A[j, j]
        for i in range(j + 1, n):
            A[j, i] = (
                -_dot(A[i, j + 1 : i], A[j, j + 1 : i]) / A[i, i] - A[i, j] * A[j, j] / A[i, i]
            )
    for i in range(n):
        for j in range(i, n):
            A[j, i] = _dot(A[i, j:n], A[j, j:n])
    for i in range(n):
        for j in range(i + 1, n):
            A[i, j] = A[j, i]
    return logdet


@jit(fastmath=True)
def refresh(gram: Gram, size: int, precision: float) -> None:
    """Recompute the inverse, projection, log determinant and quadratic form for ``size`` atoms."""
    n = 1 + 2 * size
    weighted = gram.phase
    for i in range(n):
        row = gram.features[i]
        for e in range(len(row)):
            weighted[e] = row[e] * gram.weight[e]
        for j in range(i, n):
            gram.inverse[j, i] = _dot(weighted, gram.features[j])
        gram.inverse[i, i] += INTERCEPT_PRECISION if i == 0 else precision
        gram.projection[i] = _dot(row, gram.target)
    gram.scalars[0] = invert(gram.inverse, n)
    total = 0.0
    for i in range(n):
        total += gram.projection[i] * _dot(gram.inverse[i, :n], gram.projection[:n])
    gram.scalars[1] = total


@jit(fastmath=True)
def evaluate(
    gram: Gram, size: int, removed: int, adds: bool, precision: float, weighted: np.ndarray
) -> tuple[float, float]:
    """Compute the changes that a move would cause in log det A and c' A^-1 c (see :class:`Gram`).

    The move removes the atom ``removed`` (-1 for none) and adds the features ``added``. The work
    arrays then contain the values that :func:`commit` requires.
    """
    n = 1 + 2 * size
    inverse, reduced = gram.inverse, gram.reduced
    logdet, quad = 0.0, 0.0
    reduced[:n, :n] = inverse[:n, :n]
    if removed >= 0:
        a = 1 + 2 * removed
        b = a + 1
        det = inverse[a, a] * inverse[b, b] - inverse[a, b] * inverse[b, a]
        s, t, v = inverse[b, b] / det, -inverse[a, b] / det, inverse[a, a] / det
        first = _dot(inverse[a, :n], gram.projection[:n])
        second = _dot(inverse[b, :n], gram.projection[:n])
        quad -= s * first * first + 2.0 * t * first * second + v * second * second
        logdet += math.log(det)
        for i in range(n):
            left = s * inverse[i, a] + t * inverse[i, b]
            right = t * inverse[i, a] + v * inverse[i, b]
            for j in range(n):
                reduced[i, j] -= left * inverse[a, j] + right * inverse[b, j]
        for i in range(n):
            reduced[i, a] = reduced[i, b] = reduced[a, i] = reduced[b, i] = 0.0
    if not adds:
        return logdet, quad
    f, g = gram.added[0], gram.added[1]
    r, q = _two_dots(gram.target, f, g)
    gram.small[2, 0], gram.small[2, 1] = r, q
    if weighted:
        x, y, z = 0.0, 0.0, 0.0
        for e in range(len(f)):
            w = gram.weight[e]
            x += w * f[e] * f[e]
            y += w * f[e] * g[e]
            z += w * g[e] * g[e]
        for i in range(n):
            row, u, v = gram.features[i], 0.0, 0.0
            for e in range(len(f)):
                h = row[e] * gram.weight[e]
                u += h * f[e]
                v += h * g[e]
            gram.cross[i, 0], gram.cross[i, 1] = u, v
    else:
        x, y = _two_dots(f, f, g)
        z = _dot(g, g)
        for i in range(n):
            gram.cross[i, 0], gram.cross[i, 1] = _two_dots(gram.features[i], f, g)
    x += precision
    z += precision
    for i in range(n):
        u, v = 0.0, 0.0
        for j in range(n):
            u += reduced[i, j] * gram.cross[j, 0]
            v += reduced[i, j] * gram.cross[j, 1]
        gram.solved[i, 0], gram.solved[i, 1] = u, v
    for i in range(n):
        x -= gram.cross[i, 0] * gram.solved[i, 0]
        y -= gram.cross[i, 0] * gram.solved[i, 1]
        z -= gram.cross[i, 1] * gram.solved[i, 1]
        r -= gram.solved[i, 0] * gram.projection[i]
        q -= gram.solved[i, 1] * gram.projection[i]
    det = x * z - y * y
    gram.small[0, 0], gram.small[1, 1] = z / det, x / det
    gram.small[0, 1] = gram.small[1, 0] = -y / det
    quad += (z * r * r - 2.0 * y * r * q + x * q * q) / det
    return logdet + math.log(det), quad


@jit(fastmath=True)
def commit(
    gram: Gram, size: int, removed: int, adds: bool, logdet: float, quad: np.ndarray
) -> None:
    """Apply the move that was last passed to :func:`evaluate`.

    A removed atom is replaced by the last atom.
    """
    n = 1 + 2 * size
    inverse, reduced = gram.inverse, gram.reduced
    gram.scalars[0] += logdet
    gram.scalars[1] += quad
    if adds:
        a = n if removed < 0 else 1 + 2 * removed
        for i in range(n):
            left = gram.small[0, 0] * gram.solved[i, 0] + gram.small[0, 1] * gram.solved[i, 1]
            right = gram.small[1, 0] * gram.solved[i, 0] + gram.small[1, 1] * gram.solved[i, 1]
            for j in range(n):
                inverse[i, j] = reduced[i, j] + left * gram.solved[j, 0] + right * gram.solved[j, 1]
        for i in range(n):
            for s in range(2):
                border = gram.small[0, s] * gram.solved[i, 0] + gram.small[1, s] * gram.solved[i, 1]
                inverse[i, a + s] = inverse[a + s, i] = -border
        for s in range(2):
            for t in range(2):
                inverse[a + s, a + t] = gram.small[s, t]
            gram.features[a + s] = gram.added[s]
            gram.projection[a + s] = gram.small[2, s]
        return
    a, last = 1 + 2 * removed, n - 2
    for s in range(2):
        gram.features[a + s] = gram.features[last + s]
        gram.projection[a + s] = gram.projection[last + s]
    for i in range(last):
        k = i if i != a and i != a + 1 else last + i - a
        for j in range(last):
            m = j if j != a and j != a + 1 else last + j - a
            inverse[i, j] = reduced[k, m]
