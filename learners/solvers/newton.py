"""Fits on few columns: Newton's method on a support.

Ridge penalties are written as in :class:`Prior`, ``shrinkage * ||theta||^2`` without a half, everywhere below the estimators.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import minimize

from ..objective.losses import HessianProduct, Loss
from ..objective.priors import Prior

_MIN_CURVATURE = 1e-12  # share of the loss' greatest one below which an intercept has none to fit it by
_ROUNDING = 1e-15  # of the gradient, as a share of the sum of its parts
SHRINKAGE = 5e-5  # a choice: keeps separable data finite; the same for every comparison of supports


@dataclass(frozen=True)
class SupportProblem:
    """What is minimised over the coefficients of a support: loss + shrinkage ||theta||^2 + prior.

    Coefficients are (p, n_outputs) for p columns, ``width`` neighbouring columns per feature.

    Attributes
    ----------
    y : ndarray of shape (n_samples, n_outputs)
    loss : Loss
    sample_weight : ndarray of shape (n_samples,)
    fit_intercept : bool
    prior : Prior or None
    width, n_knots : int
        Of the design the columns come from.
    shrinkage : float
        Added to that of the prior.
    offset : ndarray of shape (n_samples, n_outputs) or None
        Scores that stay fixed, added to those of the columns.
    """

    y: np.ndarray
    loss: Loss
    sample_weight: np.ndarray
    fit_intercept: bool = True
    prior: Prior | None = None
    width: int = 1
    n_knots: int = 1
    shrinkage: float = SHRINKAGE
    offset: np.ndarray | None = None

    @property
    def quadratic(self) -> bool:
        """Whether the quadratic model is the objective itself."""
        return self.loss.is_quadratic and (self.prior is None or not self.prior.total_variation)

    def _blocks(self, theta):
        return theta.reshape(-1, self.width, theta.shape[1])

    def penalty(self, theta: np.ndarray) -> float:
        """Ridge and prior."""
        value = self.shrinkage * float(np.vdot(theta, theta))
        return value if self.prior is None else value + self.prior.value(self._blocks(theta), self.n_knots)

    def penalty_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of :meth:`penalty`."""
        gradient = 2.0 * self.shrinkage * theta
        if self.prior is not None:
            gradient += self.prior.gradient(self._blocks(theta), self.n_knots).reshape(theta.shape)
        return gradient

    @cached_property
    def penalty_curvature(self) -> np.ndarray:
        """Bound on the Hessian of :meth:`penalty` for one feature, (width, width)."""
        curvature = 2.0 * self.shrinkage * np.eye(self.width)
        return curvature if self.prior is None else curvature + self.prior.curvature(self.n_knots, self.width)

    def add_penalty_curvature(self, H: np.ndarray) -> None:
        """Add it to the diagonal blocks of H (p, p), in place."""
        block = self.penalty_curvature
        if self.width == 1:
            H.flat[:: len(H) + 1] += block[0, 0]
            return
        for a in range(0, len(H), self.width):
            H[a : a + self.width, a : a + self.width] += block

    def with_intercept(self, A: np.ndarray) -> np.ndarray:
        """The columns, and behind them that of the intercept where one is fitted."""
        return np.column_stack([A, np.ones(len(A))]) if self.fit_intercept else A

    def second_order(self, scores: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray, list[HessianProduct]]:
        """Value of the objective, gradient over the scores (the loss' alone) and the Hessian product of each output."""
        scores = scores if self.offset is None else scores + self.offset
        value, residual, hessian_products = self.loss.second_order(self.y, scores, self.sample_weight)
        return value + self.penalty(theta), residual, hessian_products


@dataclass
class Fit:
    """A refitted support.

    Attributes
    ----------
    theta : ndarray of shape (p, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    value : float
        The objective.
    residual : ndarray of shape (n_samples, n_outputs)
        Gradient of the loss over the scores.
    hessian_products : list of functions
        For each output the product A -> W A with the loss' Hessian over the scores.
    """

    theta: np.ndarray
    intercept: np.ndarray
    value: float
    residual: np.ndarray
    hessian_products: list[HessianProduct]


def refit(
    problem: SupportProblem,
    A: np.ndarray,
    theta: np.ndarray,
    intercept: np.ndarray,
    *,
    n_iter: int = 30,
    tol: float = 1e-5,
    joint: bool = False,
    to_the_end: bool = False,
) -> Fit:
    """Newton's method with step halving, in double precision.

    Parameters
    ----------
    problem : SupportProblem
        Its loss has a curvature.
    A : ndarray of shape (n_samples, p)
        Columns of the support.
    theta : ndarray of shape (p, n_outputs)
        Where to start.
    intercept : ndarray of shape (n_outputs,)
        Where to start; it stays where the problem has no intercept to fit.
    n_iter : int, default 30
        Most steps.
    tol : float, default 1e-5
        Ends where a step gains less than this share of the objective.
    joint : bool, default False
        Use the Hessian of all outputs together: fewer steps, each as expensive as the square of their number.
    to_the_end : bool, default False
        Go on until the gradient is zero to rounding, whatever a step gains: the answer then does not depend on where it started.

    Returns
    -------
    Fit
    """
    scores = A @ theta + intercept
    value, residual, products = problem.second_order(scores, theta)
    A1 = problem.with_intercept(A)
    last_norm = np.inf
    for _ in range(n_iter):
        gradient = A.T @ residual + problem.penalty_gradient(theta)
        step_of = _joint_step if joint else _step
        direction, shift = step_of(problem, A1, scores, gradient, residual, products)
        expected = 0.5 * (float(np.vdot(gradient, direction)) + float(residual.sum(axis=0) @ shift))
        # The last steps gain less than rounding, which is that of the scores, and still make theta exact.
        rounding = 1e-14 * (abs(value) + np.abs(scores).max(initial=0.0)) if to_the_end else 0.0
        if to_the_end:
            norm = np.abs(gradient).max(initial=0.0) + problem.fit_intercept * np.abs(residual.sum(axis=0)).max(initial=0.0)
            if norm <= _ROUNDING * np.abs(residual).sum() or (expected <= rounding and norm >= 0.5 * last_norm):
                break
            last_norm = norm
        elif expected <= min(1e-12, 1e-3 * tol) * abs(value):
            break
        move = A @ direction + shift
        step = 1.0
        while True:
            new = theta - step * direction
            new_scores = scores - step * move
            new_value, new_residual, new_products = problem.second_order(new_scores, new)
            if new_value <= value + rounding or step < 1e-3:
                break
            step *= 0.5
        if new_value > value + rounding:
            break
        gain = value - new_value
        theta, intercept, scores = new, intercept - step * shift, new_scores
        value, residual, products = new_value, new_residual, new_products
        if not to_the_end and (problem.quadratic or max(gain, expected) <= tol * abs(value)):
            break
    return Fit(theta, intercept, value, residual, products)


def _step(
    problem: SupportProblem,
    A1: np.ndarray,
    scores: np.ndarray,
    gradient: np.ndarray,
    residual: np.ndarray,
    products: list[HessianProduct],
) -> tuple[np.ndarray, np.ndarray]:
    """Newton direction of the coefficients and of the intercept, output by output."""
    direction, shift = np.empty_like(gradient), np.zeros(gradient.shape[1])
    for q, product in enumerate(products):
        H, mean, total = projected(problem, A1.T @ product(A1), len(gradient))
        problem.add_penalty_curvature(H)
        slope = residual[:, q].sum() / total if total > 0 else 0.0
        direction[:, q] = solve_positive(H, gradient[:, q] - total * slope * mean)
        shift[q] = slope - mean @ direction[:, q] if total > 0 else 0.0
    return direction, shift


def _joint_step(
    problem: SupportProblem,
    A1: np.ndarray,
    scores: np.ndarray,
    gradient: np.ndarray,
    residual: np.ndarray,
    products: list[HessianProduct],
) -> tuple[np.ndarray, np.ndarray]:
    """The same with the Hessian of all outputs together."""
    q = gradient.shape[1]
    offset = 0.0 if problem.offset is None else problem.offset
    curvature = problem.loss.row_hessians(problem.y, scores + offset, problem.sample_weight)
    if problem.fit_intercept:
        gradient = np.vstack([gradient, residual.sum(axis=0)])
    direction = (inverse_hessian(problem, A1, curvature) @ gradient.ravel()).reshape(-1, q)
    if not problem.fit_intercept:
        return direction, np.zeros(q)
    if problem.loss.redundant_outputs:
        direction[-1] -= direction[-1].mean()  # a constant added to all intercepts changes nothing: it stays
    return direction[:-1], direction[-1]


def inverse_hessian(problem: SupportProblem, A1: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Inverse Hessian over (columns and intercept) x outputs, ordered by column, from those of the rows (n, q, q)."""
    p, q = A1.shape[1], curvature.shape[1]
    H = np.empty((p, q, p, q))
    for a in range(q):
        for b in range(a, q):
            H[:, a, :, b] = A1.T @ (curvature[:, a, b, None] * A1)
            H[:, b, :, a] = H[:, a, :, b]
    penalty = np.zeros((p - problem.fit_intercept, p - problem.fit_intercept))
    problem.add_penalty_curvature(penalty)
    for a in range(q):
        H[: len(penalty), a, : len(penalty), a] += penalty
    flat = H.reshape(p * q, p * q)
    flat.flat[:: len(flat) + 1] += 1e-10 * np.trace(flat) / len(flat)  # a constant added to all classes' scores changes nothing
    return np.linalg.inv(flat)


def projected(problem: SupportProblem, G: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Weighted products of p columns with the intercept projected out, the columns' weighted means, and the total weight.

    ``G`` are the weighted products of the columns and, where one is fitted, the column of the intercept behind them. The total is 0
    where there is no intercept to fit, or it has no curvature: then nothing is projected out.
    """
    total = float(G[-1, -1]) if problem.fit_intercept else 0.0
    if total > _MIN_CURVATURE * min(problem.loss.max_curvature, 1.0):  # infinite for the exponential loss
        mean = G[-1, :p] / total
        return G[:p, :p] - total * np.outer(mean, mean), mean, total
    return G[:p, :p].copy(), np.zeros(p), 0.0


def solve_positive(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """H^-1 b of a positive definite H, for small ones in a tenth of the time that numpy's solver takes."""
    if len(b):
        _, found, failed = dposv(H, b)
        if not failed:
            return found
    return np.linalg.solve(H, b)


def bounded_fit(
    problem: SupportProblem, A: np.ndarray, theta: np.ndarray, intercept: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> Fit:
    """Fit of one output whose coefficients have bounds, by L-BFGS-B.

    Parameters
    ----------
    problem : SupportProblem
    A : ndarray of shape (n_samples, p)
        Columns of the support.
    theta : ndarray of shape (p, 1)
        Where to start.
    intercept : ndarray of shape (1,)
    bounds : (ndarray, ndarray)
        Least and greatest coefficients, of p values each.

    Returns
    -------
    Fit
    """
    lower, upper = (np.append(ends.ravel(), end) for ends, end in zip(bounds, (-np.inf, np.inf), strict=True))

    def objective(x):
        coef = x[:-1, None]
        value, residual, _ = problem.second_order(A @ coef + x[-1:], coef)
        gradient = (A.T @ residual + problem.penalty_gradient(coef))[:, 0]
        return value, np.append(gradient, residual.sum() if problem.fit_intercept else 0.0)

    start = np.clip(np.append(theta[:, 0], intercept), lower, upper)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=np.column_stack([lower, upper]),
                     options={"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-8})  # fmt: skip
    coef, constant = found.x[:-1, None], found.x[-1:]
    return Fit(coef, constant, *problem.second_order(A @ coef + constant, coef))
