"""Solvers of the reduced problem of minimax sparse logistic regression."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, xlogy

_GROWTH = 5.0 / 3.0  # of the smoothing parameter q, once per sweep; with the start below they are the paper's
_START = 0.01
_NEWTON_STEPS = 100
_TOLERANCE = 1e-10
_LAG = 0.3  # of a step's decrease to the one before: above it an old curvature no longer serves


@njit(cache=True)
def mixture(exponents, out):
    """Softmax of ``exponents`` into ``out``, without overflow."""
    top = exponents[0]
    for t in range(1, len(exponents)):
        top = max(top, exponents[t])
    total = 0.0
    for t in range(len(exponents)):
        out[t] = np.exp(exponents[t] - top)
        total += out[t]
    for t in range(len(exponents)):
        out[t] /= total


@njit(cache=True)
def one_step(a, b, half, q, c1, c2, lam):
    """Minimise over one alpha_i (Algorithm 3); returns the change z in (-c1, c2).

    The derivative is ln((c1 + z) / (c2 - z)) + sum_t lambda_t(z) (a_t z + b_t), rising from -inf to inf; lambda is the softmax of
    q (half_t + a_t z^2 / 2 + b_t z). The unknown is the distance to the nearer bound: nothing cancels in the logarithm.
    """
    n_cuts = len(a)
    s = c1 + c2
    exponents = np.empty(n_cuts)

    middle = 0.5 * (c2 - c1)
    for t in range(n_cuts):
        exponents[t] = q * (half[t] + 0.5 * a[t] * middle * middle + b[t] * middle)
    mixture(exponents, lam)
    slope = 0.0
    for t in range(n_cuts):
        slope += lam[t] * (a[t] * middle + b[t])
    lower = slope >= 0.0  # then the root lies in the half next to alpha = 0

    low, high = 0.0, 0.5 * s
    Z = min(max(c1 if lower else c2, 1e-12 * s), 0.5 * s)
    before = last = s
    for _ in range(_NEWTON_STEPS):
        z = Z - c1 if lower else c2 - Z
        for t in range(n_cuts):
            exponents[t] = q * (half[t] + 0.5 * a[t] * z * z + b[t] * z)
        mixture(exponents, lam)
        mean = 0.0
        square = 0.0
        bend = 0.0
        for t in range(n_cuts):
            h = a[t] * z + b[t]
            mean += lam[t] * h
            square += lam[t] * h * h
            bend += lam[t] * a[t]
        if not lower:
            mean = -mean
        slope = np.log(Z / (s - Z)) + mean
        if abs(slope) < _TOLERANCE:
            break
        if slope > 0.0:
            high = Z
        else:
            low = Z
        curvature = s / (Z * (s - Z)) + bend + q * max(square - mean * mean, 0.0)
        new = Z - slope / curvature
        # Bisection where Newton's step leaves the bracket, or does not halve the step before the last: at large q it would jump
        # from one side of a kink to the other.
        if not low < new < high or 2.0 * abs(new - Z) > before:
            new = 0.5 * (low + high)
        moved = abs(new - Z)
        before, last = last, moved
        Z = new
        if moved <= 1e-14 * Z:
            break
    return Z - c1 if lower else c2 - Z


@njit(cache=True)
def sweep(A, starts, square, box, q, alpha, w):
    """One pass of coordinate descent over the smoothed maximum (step 1 of Algorithm 2); updates ``alpha`` and ``w``.

    ``A`` (n, p) holds y_i x_i, the columns of cut t from ``starts[t]`` to ``starts[t + 1]``; ``square`` (n, T) their squared norms;
    ``w`` (p,) is alpha' A.
    """
    n_cuts = len(starts) - 1
    half = np.zeros(n_cuts)
    for t in range(n_cuts):
        for j in range(starts[t], starts[t + 1]):
            half[t] += 0.5 * w[j] * w[j]
    b = np.empty(n_cuts)
    lam = np.empty(n_cuts)
    for i in range(A.shape[0]):
        row = A[i]
        for t in range(n_cuts):
            product = 0.0
            for j in range(starts[t], starts[t + 1]):
                product += row[j] * w[j]
            b[t] = product
        z = one_step(square[i], b, half, q, alpha[i], box[i] - alpha[i], lam)
        # Rounding must not end on a bound: the logarithm of the next visit is finite inside only.
        new = min(max(alpha[i] + z, 1e-15 * box[i]), (1.0 - 1e-15) * box[i])
        z = new - alpha[i]
        alpha[i] = new
        for t in range(n_cuts):
            half[t] += z * (b[t] + 0.5 * square[i, t] * z)
        for j in range(A.shape[1]):
            w[j] += z * row[j]


class Reduced(NamedTuple):
    """Solution of a reduced problem.

    Attributes
    ----------
    alpha : ndarray of shape (n_samples,)
    mixture : ndarray of shape (n_cuts,)
        Weights lambda of the cuts, summing to one.
    coef : ndarray of shape (p,)
        Coefficients of the columns: (sum of lambda_t over the cuts with column j) times sum_i alpha_i y_i x_ij.
    primal, gap : float
        Objective, and the relative distance of its upper and lower bounds.
    """

    alpha: np.ndarray
    mixture: np.ndarray
    coef: np.ndarray
    primal: float
    gap: float


def bounds(Z, y, members, box, alpha, share):
    """Where ``alpha`` and the mixture ``share`` leave the two sides of the reduced problem.

    Its convex dual, max over mixtures lambda, is multiple-kernel learning: min over u of sum_j u_j^2 / (2 d_j) + sum_i C_i ln(1 +
    exp(-y_i z_i . u)) with d = members' lambda. Any alpha bounds the optimum from below, any mixture's u from above.

    Returns
    -------
    half : ndarray of shape (n_cuts,)
        ||w_t||^2 / 2.
    coef, primal, gap
        As in :class:`Reduced`.
    """
    w = (alpha * y).astype(Z.dtype) @ Z
    half = 0.5 * members @ w**2
    coef = (share @ members) * w
    lower = (xlogy(box, box) - xlogy(alpha, alpha) - xlogy(box - alpha, box - alpha)).sum() - half.max()
    primal = share @ half + box @ np.logaddexp(0.0, -y * (Z @ coef.astype(Z.dtype)))
    return half, coef, float(primal), float((primal - lower) / max(abs(primal), 1e-300))


class Curvature:
    """Z' W Z with W = diag(C_i s_i (1 - s_i)), s_i = alpha_i / C_i, of some earlier alpha.

    Forming it costs n p^2, all else of a Newton step n p. Columns that join are added at the old W; all is formed anew when steps
    stop paying. Single precision, since it only gives directions.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, p)
        The columns; replace it by a wider one as columns join at its end.
    alpha, box : ndarray of shape (n_samples,)
    """

    def __init__(self, Z: np.ndarray, alpha: np.ndarray, box: np.ndarray):
        self.Z = Z
        self.renew(alpha, box)

    def renew(self, alpha: np.ndarray, box: np.ndarray) -> None:
        """Form it at ``alpha``."""
        self._root = np.sqrt(alpha * (1.0 - alpha / box)).astype(np.float32)[:, None]
        self._product = np.empty((0, 0), np.float32)

    def product(self) -> np.ndarray:
        """Z' W Z (p, p)."""
        old, p = len(self._product), self.Z.shape[1]
        if old < p:
            weighed = self.Z * self._root
            if not old:
                self._product = weighed.T @ weighed
            else:
                strip = weighed.T @ weighed[:, old:]
                self._product = np.block([[self._product, strip[:old]], [strip[:old].T, strip[old:]]])
        return self._product


def ridge_step(curvature: Curvature, root: np.ndarray, y, box, coef, alpha):
    """One damped Newton step on sum_j u_j^2 / (2 d_j) + sum_i C_i ln(1 + exp(-y_i z_i . u)), root = sqrt(d), for theta = u / root.

    Returns
    -------
    coef, alpha : ndarray
        The new u, and alpha_i = C_i / (1 + exp(y_i z_i . u)).
    decrease, length : float
        Twice the decrease that the quadratic model promised, and the part of the step that was taken.
    """
    Z = curvature.Z
    theta = coef / root
    gradient = theta - root * ((alpha * y).astype(Z.dtype) @ Z)
    H = curvature.product().astype(np.float64) * root * root[:, None]
    H.flat[:: len(H) + 1] += 1.0
    direction = cho_solve(cho_factor(H, overwrite_a=True), gradient)
    scores, move = Z @ coef.astype(Z.dtype), Z @ (root * direction).astype(Z.dtype)

    def value(length):
        new = theta - length * direction
        return 0.5 * new @ new + box @ np.logaddexp(0.0, -y * (scores - length * move))

    decrease, start, length = float(gradient @ direction), value(0.0), 1.0
    while value(length) > start - 1e-4 * length * decrease and length > 1e-3:
        length *= 0.5
    coef = root * (theta - length * direction)
    return coef, box * expit(-y * (scores - length * move)), decrease, length


def solve_newton(Z, y, members, box, *, share, coef=None, curvature=None, tol=1e-3, max_iter=100) -> Reduced:
    """The reduced problem by turns: ridge logistic regression at the present mixture, then lambda_t ~ lambda_t ||w_t||.

    The first turn is Newton's method; the second minimises
    sum_t ||u_t||^2 / (2 lambda_t), u_t = lambda_t w_t, over mixtures. Neither goes uphill.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, p)
        The columns of all cuts, each once; products with it are made in its precision.
    y : ndarray of shape (n_samples,)
        -1 / +1.
    members : ndarray of shape (n_cuts, p)
        1 where a column belongs to a cut, else 0.
    box : ndarray of shape (n_samples,)
        C_i, all above zero.
    share : ndarray of shape (n_cuts,)
        Mixture to start from, all above zero.
    coef : ndarray of shape (p,) or None
        Coefficients to start from.
    curvature : Curvature or None
        Of earlier cuts; renewed here when it is too far off.
    tol : float
        Relative duality gap to reach.
    """
    coef = np.zeros(Z.shape[1]) if coef is None else coef
    alpha = box * expit(-y * (Z @ coef.astype(Z.dtype)))
    if curvature is None:
        curvature = Curvature(Z, alpha, box)
    curvature.Z = Z
    best = None
    for turn in range(max_iter):
        root = np.sqrt(share @ members)
        last = np.inf
        for _ in range(3 if turn else 20):
            coef, alpha, decrease, length = ridge_step(curvature, root, y, box, coef, alpha)
            if decrease <= 0.01 * tol * (best.primal if best else box.sum()):
                break
            if length < 1.0 or decrease > _LAG * last:
                curvature.renew(alpha, box)
            last = decrease
        half, _, primal, gap = bounds(Z, y, members, box, alpha, share)
        if best is None or gap < best.gap:
            best = Reduced(alpha, share, coef, primal, gap)
        if gap <= tol:
            break
        share = share * np.sqrt(half)
        share = np.maximum(share / share.sum(), 1e-10)  # a weight of zero could never return
        share /= share.sum()
    assert best is not None
    return best


def solve_smoothing(Z, y, members, box, *, tol=1e-3, max_sweeps=2000) -> Reduced:
    """The reduced problem by smoothing coordinate descent, Algorithm 2 with Algorithm 3 inside; arguments as :func:`solve_newton`.

    As printed, q grows after every sweep, converged or not, and coordinate descent meets the kinks of the maximum too early.
    Here it grows when the duality gap has come down to what the smoothing itself may be off, ln(T) / q.
    """
    columns = [np.flatnonzero(cut) for cut in members]
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    A = y[:, None] * Z[:, np.concatenate(columns)]
    square = np.stack([(A[:, s:e] ** 2).sum(axis=1) for s, e in pairwise(starts)], axis=1)
    alpha = 1e-3 * box  # small, so that w is: the kinks are far
    share = np.empty(len(members))
    q, best = _START, None
    for _ in range(max_sweeps):
        w = alpha @ A  # anew for each sweep: rounding does not pile up
        sweep(A, starts, square, box, q, alpha, w)
        half = 0.5 * members @ ((alpha * y) @ Z) ** 2
        mixture(q * half, share)
        half, coef, primal, gap = bounds(Z, y, members, box, alpha, share)
        if best is None or gap < best.gap:
            best = Reduced(alpha.copy(), share.copy(), coef, primal, gap)
        if gap <= tol:
            break
        if gap * abs(primal) <= 2.0 * np.log(len(members)) / q:
            q *= _GROWTH
    assert best is not None
    return best
