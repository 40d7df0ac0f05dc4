"""Solvers for the reduced problem of minimax sparse logistic regression, Tan et al. (2013).

The notation is that of eqs. (9) and (10) of the paper. The dual variable of row i is alpha_i in (0,
C_i). On the columns of cut t, w_t = sum_i alpha_i y_i x_i and f_t(alpha) = ||w_t||^2 / 2 +
G(alpha), where G(alpha) = sum_i alpha_i ln alpha_i + (C_i - alpha_i) ln(C_i - alpha_i). The reduced
problem is min over alpha of max over t of f_t(alpha). Its convex dual is multiple-kernel learning:
a maximum over mixtures lambda of the cuts, of the minimum over u of sum_j u_j^2 / (2 d_j) + sum_i
C_i loss(y_i z_i . u). Here z_i is row i of the distinct columns of all cuts, u_j is the coefficient
of column j, and d_j is the sum of lambda_t over the cuts that contain column j.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import xlogy

from ..compilation import jit
from ..objective.losses import LogisticLoss

LOSS = LogisticLoss()
# q_0 and beta of Algorithm 2, from section IV of the paper
_START, _GROWTH = 0.01, 5.0 / 3.0
_MAX_SWEEPS = 2000  # maximum number of sweeps of Algorithm 2
_NEWTON_STEPS = 100  # maximum steps of Algorithm 3; bisection alone needs fewer
_TOLERANCE = 1e-10  # tolerance of Algorithm 3 for the derivative
# The curvature is recomputed if the ratio of consecutive predicted decreases exceeds this
# value (heuristic).
_LAG = 0.3


@jit
def softmax(exponents: np.ndarray, out: np.ndarray) -> None:
    """Write the softmax of ``exponents`` to ``out`` without overflow."""
    top = exponents[0]
    for t in range(1, len(exponents)):
        top = max(top, exponents[t])
    total = 0.0
    for t in range(len(exponents)):
        out[t] = np.exp(exponents[t] - top)
        total += out[t]
    for t in range(len(exponents)):
        out[t] /= total


@jit
def minimise_coordinate(
    a: np.ndarray,
    b: np.ndarray,
    half_norms: np.ndarray,
    q: float,
    c1: float,
    c2: float,
    mixture: np.ndarray,
) -> float:
    """Minimise over one alpha_i by Algorithm 3, and return its change z, with -c1 < z < c2.

    Here c1 and c2 are the distances from alpha_i to its bounds, and a change z of alpha_i changes
    ||w_t||^2 / 2 by a_t z^2 / 2 + b_t z. The algorithm, from Tan et al. (2013), is Newton's method
    on eq. (14), safeguarded by bisection. The derivative is ln((c1 + z) / (c2 - z)) + sum_t
    lambda_t(z) (a_t z + b_t), which increases from -inf to inf. Here lambda is the softmax of q
    (half_norms_t + a_t z^2 / 2 + b_t z). The unknown is the distance to the nearer bound, which
    avoids cancellation in the logarithm.
    """
    n_cuts = len(a)
    width = c1 + c2
    exponents = np.empty(n_cuts)

    middle = 0.5 * (c2 - c1)
    for t in range(n_cuts):
        exponents[t] = q * (half_norms[t] + 0.5 * a[t] * middle * middle + b[t] * middle)
    softmax(exponents, mixture)
    slope = 0.0
    for t in range(n_cuts):
        slope += mixture[t] * (a[t] * middle + b[t])
    near_zero = slope >= 0.0  # the root is in the half next to alpha = 0

    low, high = 0.0, 0.5 * width
    distance = min(max(c1 if near_zero else c2, 1e-12 * width), 0.5 * width)
    step_before_last = last_step = width
    for _ in range(_NEWTON_STEPS):
        z = distance - c1 if near_zero else c2 - distance
        for t in range(n_cuts):
            exponents[t] = q * (half_norms[t] + 0.5 * a[t] * z * z + b[t] * z)
        softmax(exponents, mixture)
        mean_slope = 0.0
        mean_square = 0.0
        mean_curvature = 0.0
        for t in range(n_cuts):
            h = a[t] * z + b[t]
            mean_slope += mixture[t] * h
            mean_square += mixture[t] * h * h
            mean_curvature += mixture[t] * a[t]
        if not near_zero:
            mean_slope = -mean_slope
        slope = np.log(distance / (width - distance)) + mean_slope
        if abs(slope) < _TOLERANCE:
            break
        if slope > 0.0:
            high = distance
        else:
            low = distance
        spread = max(mean_square - mean_slope * mean_slope, 0.0)
        curvature = width / (distance * (width - distance)) + mean_curvature + q * spread
        new = distance - slope / curvature
        # Bisect if the Newton step leaves the bracket, or is more than half of the step before the
        # last. Otherwise, it would jump back and forth across a kink at large q.
        if not low < new < high or 2.0 * abs(new - distance) > step_before_last:
            new = 0.5 * (low + high)
        step = abs(new - distance)
        step_before_last, last_step = last_step, step
        distance = new
        if step <= 1e-14 * distance:
            break
    return distance - c1 if near_zero else c2 - distance


@jit
def coordinate_sweep(
    A: np.ndarray,
    starts: np.ndarray,
    square: np.ndarray,
    upper: np.ndarray,
    q: float,
    alpha: np.ndarray,
    w: np.ndarray,
) -> None:
    """Update ``alpha`` and ``w`` by one pass of coordinate descent (step 1 of Algorithm 2).

    The objective is the smoothed maximum, eq. (11) of Tan et al. (2013). ``A``, of shape (n, p),
    contains y_i x_i, where the columns of cut t range from ``starts[t]`` to ``starts[t + 1]``.
    ``square``, of shape (n, T), contains their squared norms, and ``w`` is alpha' A.
    """
    n_cuts = len(starts) - 1
    half_norms = np.zeros(n_cuts)
    for t in range(n_cuts):
        for j in range(starts[t], starts[t + 1]):
            half_norms[t] += 0.5 * w[j] * w[j]
    b = np.empty(n_cuts)
    mixture = np.empty(n_cuts)
    for i in range(A.shape[0]):
        row = A[i]
        for t in range(n_cuts):
            product = 0.0
            for j in range(starts[t], starts[t + 1]):
                product += row[j] * w[j]
            b[t] = product
        z = minimise_coordinate(square[i], b, half_norms, q, alpha[i], upper[i] - alpha[i], mixture)
        # Rounding must not reach a bound, where the logarithm of the next pass is infinite.
        new = min(max(alpha[i] + z, 1e-15 * upper[i]), (1.0 - 1e-15) * upper[i])
        z = new - alpha[i]
        alpha[i] = new
        for t in range(n_cuts):
            half_norms[t] += z * (b[t] + 0.5 * square[i, t] * z)
        for j in range(A.shape[1]):
            w[j] += z * row[j]


class Reduced(NamedTuple):
    """Solution of a reduced problem.

    Attributes
    ----------
    alpha : ndarray of shape (n_samples,)
        Dual variables.
    mixture : ndarray of shape (n_cuts,)
        Weights lambda of the cuts, which sum to one.
    coef : ndarray of shape (p,)
        Coefficients u of the columns.
    primal, gap : float
        Objective, and relative gap between its upper and lower bounds.
    """

    alpha: np.ndarray
    mixture: np.ndarray
    coef: np.ndarray
    primal: float
    gap: float


@dataclass(frozen=True)
class ReducedProblem:
    """Reduced problem over the current cuts.

    Attributes
    ----------
    Z : ndarray of shape (n_samples, p)
        Distinct columns of all cuts. Products are computed in the precision of Z.
    y : ndarray of shape (n_samples,)
        Labels -1 and +1.
    members : ndarray of shape (n_cuts, p)
        1 if a column belongs to a cut, else 0.
    upper : ndarray of shape (n_samples,)
        Positive constants C_i: upper bounds on alpha, and weights of the losses.
    """

    Z: np.ndarray
    y: np.ndarray
    members: np.ndarray
    upper: np.ndarray

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """Compute the scores Z u."""
        return self.Z @ coef.astype(self.Z.dtype)

    def loss(self, scores: np.ndarray) -> float:
        """Compute the sum over i of C_i loss(y_i score_i)."""
        return float(self.upper @ LOSS.margin_value(self.y * scores))

    def alpha(self, scores: np.ndarray) -> np.ndarray:
        """Compute the dual variables alpha_i = -C_i loss'(y_i score_i) for given scores."""
        return -self.upper * LOSS.margin_slope(self.y * scores)

    def hessian(self, scores: np.ndarray) -> np.ndarray:
        """Compute the diagonal W of the Hessian of :meth:`loss`."""
        return self.upper * LOSS.margin_curvature(self.y * scores)

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """Compute the weights w = sum_i alpha_i y_i z_i."""
        return (alpha * self.y).astype(self.Z.dtype) @ self.Z

    def bounds(
        self, alpha: np.ndarray, mixture: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Compute a lower bound on the optimum from ``alpha``, and an upper bound from ``mixture``.

        Returns
        -------
        half_norms : ndarray of shape (n_cuts,)
            Values ||w_t||^2 / 2.
        coef, primal, gap
            As in :class:`Reduced`.
        """
        w, upper = self.weights(alpha), self.upper
        half_norms = 0.5 * self.members @ w**2
        coef = (mixture @ self.members) * w
        # -G(alpha) by row
        entropy = xlogy(upper, upper) - xlogy(alpha, alpha) - xlogy(upper - alpha, upper - alpha)
        lower = entropy.sum() - half_norms.max()
        primal = mixture @ half_norms + self.loss(self.scores(coef))
        return half_norms, coef, float(primal), float((primal - lower) / max(abs(primal), 1e-300))


class WeightedGram:
    """Matrix Z' W Z, where the Hessian W was computed at earlier scores.

    Computing the matrix takes O(n p^2) time, and the remainder of a Newton step takes O(n p) time.
    New columns are added using the old W. The matrix is recomputed when steps become inaccurate.
    Single precision suffices, since the matrix only provides directions.

    Parameters
    ----------
    hessian : ndarray of shape (n_samples,)
        Diagonal of W.
    """

    def __init__(self, hessian: np.ndarray) -> None:
        self.renew(hessian)

    def renew(self, hessian: np.ndarray) -> None:
        """Reset the matrix to a new Hessian."""
        self._root = np.sqrt(hessian).astype(np.float32)[:, None]
        self._product = np.empty((0, 0), np.float32)

    def product(self, Z: np.ndarray) -> np.ndarray:
        """Return the matrix Z' W Z; columns may have been added to ``Z`` since the last call."""
        old, p = len(self._product), Z.shape[1]
        if old < p:
            weighted = Z * self._root
            if not old:
                self._product = weighted.T @ weighted
            else:
                strip = weighted.T @ weighted[:, old:]
                self._product = np.block(
                    [[self._product, strip[:old]], [strip[:old].T, strip[old:]]]
                )
        return self._product


def newton_step(
    problem: ReducedProblem,
    gram: WeightedGram,
    root: np.ndarray,
    coef: np.ndarray,
    alpha: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Take a damped Newton step in theta_j = u_j / sqrt(d_j) at a fixed mixture.

    Here u_j is the coefficient of column j, and d_j is the total weight of the cuts that contain it
    (``root`` contains sqrt(d_j)).

    Returns
    -------
    coef, scores : ndarray
        Updated u, and Z u.
    decrease, length : float
        Twice the decrease predicted by the quadratic model, and the fraction of the step that is
        taken.
    """
    theta = coef / root
    gradient = theta - root * problem.weights(alpha)
    H = gram.product(problem.Z).astype(np.float64) * root * root[:, None]
    H.flat[:: len(H) + 1] += 1.0
    direction = cho_solve(cho_factor(H, overwrite_a=True), gradient)
    scores, move = problem.scores(coef), problem.scores(root * direction)

    def value(length: float) -> float:
        new = theta - length * direction
        return 0.5 * new @ new + problem.loss(scores - length * move)

    decrease, start, length = float(gradient @ direction), value(0.0), 1.0
    while value(length) > start - 1e-4 * length * decrease and length > 1e-3:  # Armijo's rule
        length *= 0.5
    return root * (theta - length * direction), scores - length * move, decrease, length


def solve_newton(
    problem: ReducedProblem,
    mixture: np.ndarray,
    *,
    coef: np.ndarray | None = None,
    gram: WeightedGram | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
) -> Reduced:
    """Solve the reduced problem by alternating updates of the coefficients and of the mixture.

    The coefficients are updated by Newton's method for ridge logistic regression at the current
    mixture. The weight lambda_t is then made proportional to lambda_t ||w_t||, which minimises
    sum_t ||u_t||^2 / (2 lambda_t) with u_t = lambda_t w_t. Neither update increases the objective.

    Parameters
    ----------
    problem : ReducedProblem
        Reduced problem.
    mixture : ndarray of shape (n_cuts,)
        Initial mixture, with positive weights.
    coef : ndarray of shape (p,) or None
        Initial coefficients.
    gram : WeightedGram or None
        Matrix of the earlier cuts. It is recomputed when it is too inaccurate.
    tol : float, default 1e-3
        Relative duality gap to reach.
    max_iter : int, default 100
        Maximum number of iterations.

    Returns
    -------
    Reduced
        Iterate with the smallest gap.
    """
    coef = np.zeros(problem.Z.shape[1]) if coef is None else coef
    scores = problem.scores(coef)
    alpha = problem.alpha(scores)
    gram = WeightedGram(problem.hessian(scores)) if gram is None else gram
    best = None
    for turn in range(max_iter):
        root = np.sqrt(mixture @ problem.members)
        last = np.inf
        for _ in range(3 if turn else 20):
            coef, scores, decrease, length = newton_step(problem, gram, root, coef, alpha)
            alpha = problem.alpha(scores)
            if decrease <= 0.01 * tol * (best.primal if best else problem.upper.sum()):
                break
            if length < 1.0 or decrease > _LAG * last:
                gram.renew(problem.hessian(scores))
            last = decrease
        half_norms, _, primal, gap = problem.bounds(alpha, mixture)
        if best is None or gap < best.gap:
            best = Reduced(alpha, mixture, coef, primal, gap)
        if gap <= tol:
            break
        mixture = mixture * np.sqrt(half_norms)
        mixture = np.maximum(mixture / mixture.sum(), 1e-10)  # a zero weight would remain zero
        mixture /= mixture.sum()
    assert best is not None
    return best


def solve_smoothing(problem: ReducedProblem, *, tol: float = 1e-3) -> Reduced:
    """Solve the reduced problem by smoothing coordinate descent (Algorithms 2 and 3).

    In Tan et al. (2013), q increases after every sweep, even without convergence, so coordinate
    descent stalls at the kinks of the maximum. Here, q increases when the duality gap reaches the
    bound ln(T) / q on the smoothing error (Proposition 2).

    Parameters
    ----------
    problem : ReducedProblem
        Reduced problem.
    tol : float, default 1e-3
        Relative duality gap to reach.

    Returns
    -------
    Reduced
        Solution after the sweep with the smallest duality gap.
    """
    Z, y, members, upper = problem.Z, problem.y, problem.members, problem.upper
    columns = [np.flatnonzero(cut) for cut in members]
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    A = y[:, None] * Z[:, np.concatenate(columns)]
    square = np.stack([(A[:, s:e] ** 2).sum(axis=1) for s, e in pairwise(starts)], axis=1)
    alpha = 1e-3 * upper  # small, so that w is far from the kinks
    mixture = np.empty(len(members))
    q, best = _START, None
    for _ in range(_MAX_SWEEPS):
        w = alpha @ A  # recomputed in each sweep to limit rounding errors
        coordinate_sweep(A, starts, square, upper, q, alpha, w)
        softmax(q * (0.5 * members @ ((alpha * y) @ Z) ** 2), mixture)
        _, coef, primal, gap = problem.bounds(alpha, mixture)
        if best is None or gap < best.gap:
            best = Reduced(alpha.copy(), mixture.copy(), coef, primal, gap)
        if gap <= tol:
            break
        if gap * abs(primal) <= 2.0 * np.log(len(members)) / q:
            q *= _GROWTH
    assert best is not None
    return best
