"""Newton's method on the columns of a support.

The solvers define ridge penalties as in :class:`Prior`, as ``shrinkage * ||theta||^2`` without a
factor of one half.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv
from scipy.optimize import minimize

from ..objective import HessianProduct, Loss, Prior, effective_rows

_MIN_CURVATURE = 1e-12  # minimum curvature for fitting an intercept
# A fit is abandoned if even this multiple of a Newton step's predicted gain would not reach the
# limit (heuristic)
_MAX_PREDICTED_GAIN_RATIO = 2.0
# The Hessian of sparse columns, which takes ten times as long as the rest of a step, is reused up
# to this ratio of consecutive predicted gains (heuristic)
_REUSE_GAIN = 0.1
_ROUNDING = 1e-15  # rounding error of the gradient, relative to the sum of its terms
SHRINKAGE = 5e-5  # ridge for comparing supports, also of separable data (heuristic)


@dataclass(frozen=True)
class SupportProblem:
    """Problem of fitting a support: minimise loss + shrinkage ||theta||^2 + prior.

    Coefficients have shape (p, n_outputs) for p columns. Each feature consists of ``width``
    adjacent columns.

    Attributes
    ----------
    y : ndarray of shape (n_samples, n_outputs)
        Targets encoded for the loss.
    loss : Loss
        Loss function.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    fit_intercept : bool
        Whether to fit an intercept.
    prior : Prior or None
        Prior on the coefficients; None for no penalty.
    width, n_knots : int
        Number of columns per feature, and number of knots of the design.
    shrinkage : float
        Ridge penalty in addition to that of the prior.
    offset : ndarray of shape (n_samples, n_outputs) or None
        Fixed scores, which are added to those of the columns.
    n_rows : float or None
        Number of rows, where a row whose weight is a count is counted that many times. None means
        the effective number of rows implied by the weights.
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
    n_rows: float | None = None

    @property
    def quadratic(self) -> bool:
        """Whether the objective is quadratic."""
        return self.loss.is_quadratic and (self.prior is None or not self.prior.total_variation)

    def on(self, rows: np.ndarray) -> "SupportProblem":
        """Return the problem restricted to some of the rows."""
        weight = self.sample_weight[rows]
        n_rows = None if self.n_rows is None else self.n_rows * weight.sum()
        return replace(self, y=self.y[rows], sample_weight=weight / weight.sum(), n_rows=n_rows)

    def _blocks(self, theta: np.ndarray) -> np.ndarray:
        return theta.reshape(-1, self.width, theta.shape[1])

    def penalty(self, theta: np.ndarray) -> float:
        """Compute the ridge penalty plus the prior."""
        value = self.shrinkage * float(np.vdot(theta, theta))
        return (
            value
            if self.prior is None
            else value + self.prior.value(self._blocks(theta), self.n_knots)
        )

    def penalty_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Compute the gradient of :meth:`penalty`."""
        gradient = 2.0 * self.shrinkage * theta
        if self.prior is not None:
            gradient += self.prior.gradient(self._blocks(theta), self.n_knots).reshape(theta.shape)
        return gradient

    def penalty_hessian(self, n_columns: int) -> np.ndarray:
        """Bound the Hessian of :meth:`penalty` from above, including the intercept if fitted."""
        size = n_columns + self.fit_intercept
        H = np.zeros((size, size))
        if self.prior is None:
            # A view takes a third of the time of ``flat``
            H.ravel()[: n_columns * (size + 1) : size + 1] = 2.0 * self.shrinkage
        else:
            curvature = 2.0 * self.shrinkage * np.eye(self.width) + self.prior.curvature(
                self.n_knots, self.width
            )
            H[:n_columns, :n_columns] = np.kron(np.eye(n_columns // self.width), curvature)
        return H

    def with_intercept(self, A: np.ndarray) -> np.ndarray:
        """Return the columns in double precision, with a column of ones if an intercept is fitted.

        The result is sparse if ``A`` is sparse.
        """
        if sp.issparse(A):
            return sp.hstack(
                [A, np.ones((A.shape[0], int(self.fit_intercept)))], format="csr", dtype=np.float64
            )
        A1 = np.ones((A.shape[1] + self.fit_intercept, len(A)))
        A1[: A.shape[1]] = A.T
        return A1.T

    def charges(self, sizes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Compute the penalties of units with ``sizes`` coefficients; see :meth:`.Loss.charges`."""
        scores = scores if self.offset is None else scores + self.offset
        n_rows = effective_rows(self.sample_weight) if self.n_rows is None else self.n_rows
        return self.loss.charges(sizes, self.y, scores, self.sample_weight, n_rows)

    def second_order(
        self, scores: np.ndarray, theta: np.ndarray
    ) -> tuple[float, np.ndarray, list[HessianProduct]]:
        """Compute the objective and its derivatives with respect to the scores.

        The derivatives are the gradient and functions that compute products with the Hessian.
        """
        scores = scores if self.offset is None else scores + self.offset
        penalty = self.penalty(theta)
        value, residual, hessian_products = self.loss.second_order(
            self.y, scores, self.sample_weight
        )
        return value + penalty, residual, hessian_products


@dataclass
class Fit:
    """Result of a fit on a support.

    Attributes
    ----------
    theta : ndarray of shape (p, n_outputs)
        Coefficients.
    intercept : ndarray of shape (n_outputs,)
        Intercept of each output.
    value : float
        Objective at the coefficients.
    residual : ndarray of shape (n_samples, n_outputs)
        Gradient of the loss with respect to the scores.
    hessian_products : list of functions
        Function A -> W A of each output, where W is the Hessian of the loss with respect to the
        scores.
    A1 : ndarray of shape (n_samples, p or p + 1)
        Columns of the support; see :meth:`SupportProblem.with_intercept`.
    scores : ndarray of shape (n_samples, n_outputs)
        Scores, excluding the offset of the problem.
    """

    theta: np.ndarray
    intercept: np.ndarray
    value: float
    residual: np.ndarray
    hessian_products: list[HessianProduct]
    A1: np.ndarray
    scores: np.ndarray


def refit(
    problem: SupportProblem,
    A: np.ndarray,
    theta: np.ndarray,
    intercept: np.ndarray,
    *,
    n_iter: int = 30,
    tol: float = 1e-5,
    joint: bool = False,
    until_stationary: bool = False,
    limit: float = np.inf,
) -> Fit:
    """Fit a support by Newton's method with step halving, in double precision.

    Parameters
    ----------
    problem : SupportProblem
        Problem whose loss has second derivatives.
    A : ndarray of shape (n_samples, p)
        Columns of the support.
    theta : ndarray of shape (p, n_outputs)
        Initial coefficients.
    intercept : ndarray of shape (n_outputs,)
        Initial intercept. It does not change if the problem has no intercept to fit.
    n_iter : int, default 30
        Maximum number of steps.
    tol : float, default 1e-5
        Relative gain of a step below which the iterations end.
    joint : bool, default False
        Whether to use the joint Hessian of all outputs. This requires fewer steps, but the cost of
        a step grows with the square of the number of outputs.
    until_stationary : bool, default False
        Whether to continue until the gradient is zero up to rounding, so that the result does not
        depend on the initial values.
    limit : float, default infinity
        Objective that the fit must reach. The iterations stop early if this is unlikely to happen.

    Returns
    -------
    Fit
        Fit at the minimum.
    """
    p, A1, penalty = A.shape[1], problem.with_intercept(A), problem.penalty_hessian(A.shape[1])
    scores, slope = A1[:, :p] @ theta + intercept, problem.penalty_gradient(theta)
    value, residual, products = problem.second_order(scores, theta)
    expected, last_norm, tolerance = np.inf, np.inf, tol
    hessians: list[np.ndarray] = []
    step, last = 1.0, np.zeros((A1.shape[1], theta.shape[1]))
    for _ in range(n_iter):
        gradient = A1.T @ residual
        gradient[:p] += slope
        if joint:
            direction = _joint_direction(problem, A1, scores, gradient)
        else:
            reuse = bool(hessians) and sp.issparse(A1)
            while True:
                if not reuse:
                    hessians = [hessian(problem, A1, product(A1), penalty) for product in products]
                direction = np.array(
                    [solve_positive(H, g) for H, g in zip(hessians, gradient.T, strict=True)]
                ).T
                if not reuse or 0.5 * np.vdot(gradient, direction) <= _REUSE_GAIN * expected:
                    break
                reuse = False
            tolerance = _REUSE_GAIN * tol if reuse else tol  # convergence is then linear
        before, expected = expected, 0.5 * float(np.vdot(gradient, direction))
        # The last steps gain less than the rounding error of the scores, but make theta exact.
        rounding = (
            1e-14 * (abs(value) + np.abs(scores).max(initial=0.0)) if until_stationary else 0.0
        )
        if until_stationary:
            norm = np.abs(gradient).max(initial=0.0)
            if norm <= _ROUNDING * np.abs(residual).sum() or (
                expected <= rounding and norm >= 0.5 * last_norm
            ):
                break
            last_norm = norm
        elif (
            expected <= min(1e-12, 1e-3 * tol) * abs(value)
            or value - _MAX_PREDICTED_GAIN_RATIO * expected > limit
        ):
            break
        move = A1 @ direction
        # If the curvature is only a bound, convergence is linear, and a secant step along parallel
        # directions is faster
        overlap, last = 0.5 * np.vdot(last, gradient), direction
        parallel = before > overlap > 0.99 * np.sqrt(before * expected)
        step = step / (1.0 - overlap / before) if until_stationary and parallel else 1.0
        while True:
            new, new_scores = theta - step * direction[:p], scores - step * move
            new_value, new_residual, new_products = problem.second_order(new_scores, new)
            if new_value <= value + rounding or step < 1e-3:
                break
            step *= 0.5
        if new_value > value + rounding:
            break
        gain = value - new_value
        theta, scores, slope = new, new_scores, problem.penalty_gradient(new)
        if problem.fit_intercept:
            intercept = intercept - step * direction[p]
        value, residual, products = new_value, new_residual, new_products
        if not until_stationary and (
            problem.quadratic or max(gain, expected) <= tolerance * abs(value)
        ):
            break
    return Fit(theta, intercept, value, residual, products, A1, scores)


def hessian(
    problem: SupportProblem, A1: np.ndarray, WA: np.ndarray, penalty: np.ndarray
) -> np.ndarray:
    """Compute the Hessian A1' W A1 of one output for the columns and the intercept.

    ``A1`` is the result of :meth:`SupportProblem.with_intercept`.
    """
    H = A1.T @ WA
    H = H.toarray() if sp.issparse(H) else H
    H += penalty
    if problem.fit_intercept and H[-1, -1] <= _MIN_CURVATURE:
        H[-1, -1] = 1.0  # keeps the intercept fixed
    return H


def predicted(problem: SupportProblem, A: np.ndarray, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the quadratic model around a fit, over the coefficients of another support."""
    p, A1, penalty = A.shape[1], problem.with_intercept(A), problem.penalty_hessian(A.shape[1])
    x = np.column_stack(
        [
            solve_positive(
                hessian(problem, A1, product(A1), penalty),
                A1.T @ (product(fit.scores[:, [q]])[:, 0] - fit.residual[:, q]),
            )
            for q, product in enumerate(fit.hessian_products)
        ]
    )
    return x[:p], x[p] if problem.fit_intercept else fit.intercept


def _joint_direction(
    problem: SupportProblem, A1: np.ndarray, scores: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Compute the Newton direction with the joint Hessian of all outputs."""
    offset = 0.0 if problem.offset is None else problem.offset
    curvature = problem.loss.row_hessians(problem.y, scores + offset, problem.sample_weight)
    direction = (inverse_hessian(problem, A1, curvature) @ gradient.ravel()).reshape(gradient.shape)
    if problem.fit_intercept and problem.loss.redundant_outputs:
        # A constant added to all intercepts has no effect, so it is kept fixed
        direction[-1] -= direction[-1].mean()
    return direction


def inverse_hessian(problem: SupportProblem, A1: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Invert the joint Hessian of all coefficients of all outputs, given the Hessian of each row.

    Rows and columns of the result are sorted by column of ``A1``, then by output. ``A1`` is the
    result of :meth:`SupportProblem.with_intercept`.
    """
    q, p = curvature.shape[1], A1.shape[1]
    penalty = problem.penalty_hessian(p - problem.fit_intercept)
    H = np.empty((p, q, p, q))
    for a in range(q):
        for b in range(a, q):
            H[:, a, :, b] = A1.T @ (curvature[:, a, b, None] * A1)
            H[:, b, :, a] = H[:, a, :, b]
        H[:, a, :, a] += penalty
    flat = H.reshape(p * q, p * q)
    # A constant added to all class scores has no effect
    flat.flat[:: len(flat) + 1] += 1e-10 * np.trace(flat) / len(flat)
    return np.linalg.inv(flat)


def solve_positive(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute H^-1 b for a positive definite H and b of shape (p,) or (p, m).

    For small systems, this is ten times as fast as NumPy's solver.
    """
    if len(b):
        _, solution, failed = dposv(H, b)
        if not failed:
            return solution
    return np.linalg.solve(H, b)


def bounded_fit(
    problem: SupportProblem,
    A: np.ndarray,
    theta: np.ndarray,
    intercept: np.ndarray,
    bounds: tuple[np.ndarray, ...],
    basis: np.ndarray | None = None,
) -> Fit:
    """Fit one output by L-BFGS-B, with bounds on coefficients or on coordinates in a basis.

    Parameters
    ----------
    problem : SupportProblem
        Problem on the support.
    A : ndarray of shape (n_samples, p)
        Columns of the support.
    theta : ndarray of shape (p, 1)
        Initial coefficients.
    intercept : ndarray of shape (1,)
        Initial intercept.
    bounds : (ndarray, ndarray)
        Lower and upper bounds, each of shape (p,).
    basis : ndarray of shape (p, p) or None, default None
        Matrix that maps the bounded coordinates to the coefficients, or None if the coefficients
        themselves are bounded.

    Returns
    -------
    Fit
        Fit at the minimum within the bounds.
    """
    lower, upper = (
        np.append(ends.ravel(), end) for ends, end in zip(bounds, (-np.inf, np.inf), strict=True)
    )
    basis = np.eye(len(theta)) if basis is None else basis

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        coef = basis @ x[:-1, None]
        value, residual, _ = problem.second_order(A @ coef + x[-1:], coef)
        gradient = (basis.T @ (A.T @ residual + problem.penalty_gradient(coef)))[:, 0]
        return value, np.append(gradient, residual.sum() if problem.fit_intercept else 0.0)

    start = np.clip(np.append(np.linalg.solve(basis, theta[:, 0]), intercept), lower, upper)
    solution = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([lower, upper]),
        options={"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-8},
    )
    return fit_at(problem, A, basis @ solution.x[:-1, None], solution.x[-1:])


def fit_at(problem: SupportProblem, A: np.ndarray, theta: np.ndarray, intercept: np.ndarray) -> Fit:
    """Return the fit at given coefficients."""
    A1 = problem.with_intercept(A)
    scores = A1[:, : len(theta)] @ theta + intercept
    return Fit(theta, intercept, *problem.second_order(scores, theta), A1, scores)
