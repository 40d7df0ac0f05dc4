"""Choice of the ridge penalty by generalised or approximate leave-one-out cross-validation.

The ridge is the factor s in ``mean loss + s ||theta||^2`` on standardised columns. The intercept is
not shrunk.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..objective import DiagonalProduct, PairwiseLogisticLoss
from ..solvers.newton import SHRINKAGE, Fit, SupportProblem, fit_at, hessian, inverse_hessian, refit

# Ridges to try, with ratios of about three (heuristic)
RIDGES = np.concatenate([[SHRINKAGE], np.geomspace(3e-4, 1.0, 8)])
# For the closed form, which is fast
_GCV_RIDGES = np.concatenate([[SHRINKAGE], np.geomspace(1e-4, 10.0, 41)])
_PATIENCE = 2  # consecutive ridges without a gain that end the search
_MIN_GAIN = 1e-4  # relative gain required of a larger ridge
# Relative excess of the held-out loss over the training loss below which the search is omitted
# (heuristic)
_MAX_OPTIMISM = 0.02
# Tolerance of the compared fits: relative gain of a Newton step that leaves an error below 1e-6
_TOLERANCE = 1e-3
# Maximum multiplications for the joint Hessian of several outputs (heuristic)
_COST = 2e8
_BLOCK = 1_000_000  # values per block of a product: 8 MB
# Optimism for columns selected from rare words, many of which fit by chance. The value was chosen
# by cross-validation on synthetic and real text; values from 2 to 5 differ little.
CHOSEN_OPTIMISM = 3.0


@dataclass(frozen=True)
class LeftOut:
    """Parts of the data that cross-validation leaves out.

    Attributes
    ----------
    n_rows : float
        Sum of the row weights. A row of weight w counts as w copies, which are left out one at a
        time.
    parts : list of (ndarray, float) or None
        In ranking, the pairs of each query (or item), and the fraction of their weight to leave
        out; None means single rows. See :meth:`.Loss.parts`.
    optimism : float
        Factor for the difference between the held-out loss and the training loss. It exceeds 1 if
        the columns were selected on the same rows.
    """

    n_rows: float
    parts: list[tuple[np.ndarray, float]] | None = None
    optimism: float = 1.0


def choose_ridge(
    problem: SupportProblem,
    A: np.ndarray,
    theta: np.ndarray,
    intercept: np.ndarray,
    left_out: LeftOut,
    *,
    few_rows: bool,
    near: float | None = None,
    until_stationary: bool = True,
) -> tuple[Fit, float, str]:
    """Fit the problem with the ridge that has the lowest estimated error on new rows.

    For the squared loss without a prior, the error is estimated by generalised cross-validation in
    closed form [1]_. The same applies to one-hot classes if leaving out rows would be too
    expensive. Otherwise, the estimate is the approximate deviance with one row (in ranking, one
    query or item) left out, computed by one Newton step from the full fit [2]_. The approximation
    differs from the exact value by less than 5% for ridges of at least 0.003. It is too low for
    separable classes with smaller ridges.

    Parameters
    ----------
    problem : SupportProblem
        Problem to fit; its ``shrinkage`` is replaced.
    A : ndarray of shape (n_samples, p)
        Columns of the support.
    theta : ndarray of shape (p, n_outputs)
        Initial coefficients.
    intercept : ndarray of shape (n_outputs,)
        Initial intercept.
    left_out : LeftOut
        Parts to leave out.
    few_rows : bool
        Whether there are few rows. The ridges are then tried in descending instead of ascending
        order. The search ends when the estimate no longer improves.
    near : float or None, default None
        Ridge from which the search starts, such as the one chosen for a support of similar size.
    until_stationary : bool, default True
        Whether to iterate until the gradient is zero up to rounding. Fits along a path require less
        precision.

    Returns
    -------
    fit : Fit
        Fit with the chosen ridge.
    ridge : float
        Chosen ridge.
    how : str
        Description of how the ridge was chosen; empty if it was not chosen.

    References
    ----------
    .. [1] G. Golub, M. Heath, G. Wahba, "Generalized cross-validation as a method for choosing a
           good ridge parameter", Technometrics 21 (1979).
    .. [2] K. Rahnama Rad, A. Maleki, "A scalable estimate of the out-of-sample prediction error via
           approximate leave-one-out cross-validation", JRSS B 82 (2020).
    """
    if problem.loss.is_quadratic and problem.prior is None and problem.offset is None:
        ridge = gcv_ridge(problem, A, left_out.n_rows)
        fit = refit(replace(problem, shrinkage=ridge), A, theta, intercept, tol=1e-9)
        return fit, ridge, " by generalised cross-validation"
    n, q = A.shape[0], theta.shape[1]
    affordable = q == 1 or (problem.loss.exact_curvature and n * (A.shape[1] * q) ** 2 <= _COST)
    if not affordable or not (problem.loss.pointwise or left_out.parts):
        ridge, how = 1e-3 if few_rows else SHRINKAGE, ""
        if problem.loss.name == "multinomial" and problem.prior is None:
            # For equally likely classes, the curvature of the loss is (q - 1) / q^2
            ridge = gcv_ridge(problem, A, left_out.n_rows) / q
            how = " by generalised cross-validation of one-hot classes"
        return refit(replace(problem, shrinkage=ridge), A, theta, intercept), ridge, how
    start = len(RIDGES) - 1 if few_rows else 0
    if near is not None:
        start = int(np.argmin(np.abs(np.log(RIDGES / near))))
    begin = _nearer_start(replace(problem, shrinkage=float(RIDGES[start])), A, theta, intercept)
    search = _RidgeSearch(problem, A, left_out, few_rows, begin)
    if near is None:
        search.walk(start, -1 if few_rows else 1, _PATIENCE)
    else:
        search.walk(start, -1, 1)
        if search.best == start and not search.settled:
            search.walk(start + 1, 1, 1)
    ridge, fit = float(RIDGES[search.best]), search.fit
    fit = refit(
        replace(problem, shrinkage=ridge),
        A,
        fit.theta,
        fit.intercept,
        n_iter=100,
        tol=1e-9,
        joint=q > 1,
        until_stationary=until_stationary or q > 1,
    )
    return fit, ridge, " by approximate leave-one-out"


def _nearer_start(
    problem: SupportProblem, A: np.ndarray, theta: np.ndarray, intercept: np.ndarray
) -> Fit:
    """Return the given starting point, or zero coefficients if their objective is lower.

    Newton's method does not recover from extreme scores, where the loss is flat.
    """
    begin = fit_at(problem, A, theta, intercept)
    if not problem.fit_intercept:
        return begin
    other = fit_at(
        problem,
        A,
        np.zeros_like(theta),
        problem.loss.best_constant(problem.y, problem.sample_weight),
    )
    return other if other.value < begin.value else begin


class _RidgeSearch:
    """Search over ``RIDGES`` for the lowest held-out loss.

    Each fit starts from the previous fit.
    """

    def __init__(
        self, problem: SupportProblem, A: np.ndarray, left_out: LeftOut, few_rows: bool, start: Fit
    ):
        self.problem, self.A, self.left_out, self.few_rows = problem, A, left_out, few_rows
        self.last = self.fit = start
        self.best, self.least = -1, np.inf
        # The held-out loss is close to the training loss, so a ridge cannot gain much
        self.settled = False

    def walk(self, first: int, direction: int, patience: int) -> None:
        """Try ridges from ``first`` on, until ``patience`` of them in a row bring no gain."""
        worse = 0
        for i in range(first, len(RIDGES) if direction > 0 else -1, direction):
            worse = 0 if self._gains(i, direction) else worse + 1
            if worse == patience or self.settled:
                break

    def _gains(self, i: int, direction: int) -> bool:
        problem, last = replace(self.problem, shrinkage=float(RIDGES[i])), self.last
        joint = last.theta.shape[1] > 1
        self.last = refit(
            problem,
            self.A,
            last.theta,
            last.intercept,
            tol=1e-6 if joint else _TOLERANCE,
            joint=joint,
        )
        training = self.last.value - problem.penalty(self.last.theta)
        value = left_out_loss(problem, self.last, self.left_out)
        if self.left_out.optimism != 1.0:
            value = training + self.left_out.optimism * (value - training)
        slack = 0.0 if self.few_rows else -direction * _MIN_GAIN * abs(self.least)
        if self.best >= 0 and not value < self.least + slack:
            return False
        self.best, self.least, self.fit = i, value, self.last
        self.settled = i == 0 and value - training <= _MAX_OPTIMISM * abs(value)
        return True


def raw_units(inverse_scale: np.ndarray) -> np.ndarray:
    """Compute the factors that convert a ridge on standardised columns to a ridge on raw columns.

    The factors are the column scales divided by their root mean square.

    Parameters
    ----------
    inverse_scale : ndarray of shape (p,)
        Inverse scales of the columns; 0 for constant columns.

    Returns
    -------
    ndarray of shape (p,)
        Factor for each standardised column.
    """
    unit = np.where(inverse_scale > 0, 1.0 / np.where(inverse_scale > 0, inverse_scale, 1.0), 1.0)
    return unit / np.sqrt(np.mean(unit**2))


def gcv_ridge(problem: SupportProblem, A: np.ndarray, n_rows: float) -> float:
    """Return the ridge that minimises the generalised cross-validation criterion.

    The criterion is the residual sum of squares divided by (1 - df / n)^2, where df is the number
    of effective degrees of freedom.

    Parameters
    ----------
    problem : SupportProblem
        Problem whose rows and targets are used. Its loss is replaced by the squared error, and its
        prior is ignored.
    A : ndarray of shape (n_samples, p)
        Columns of the support.
    n_rows : float
        Sum of the row weights.

    Returns
    -------
    float
        Ridge penalty.
    """
    weight, y = problem.sample_weight, problem.y
    if problem.fit_intercept:
        A, y = A - weight @ A, y - weight @ y
    eigenvalues, V = np.linalg.eigh(A.T @ (weight[:, None] * A))
    eigenvalues = np.maximum(eigenvalues, 0.0)
    b = ((V.T @ (A.T @ (weight[:, None] * y))) ** 2).sum(axis=1)
    damped = eigenvalues[:, None] + 2.0 * _GCV_RIDGES
    residual = weight @ (y**2).sum(axis=1) - b @ (
        (eigenvalues[:, None] + 4.0 * _GCV_RIDGES) / damped**2
    )
    degrees = (eigenvalues[:, None] / damped).sum(axis=0) + float(problem.fit_intercept)
    free = 1.0 - degrees / n_rows
    criterion = np.where(
        free > 0, np.maximum(residual, 0.0) / np.where(free > 0, free, 1.0) ** 2, np.inf
    )
    return float(
        _GCV_RIDGES[np.argmin(criterion)] if np.isfinite(criterion).any() else _GCV_RIDGES[-1]
    )


def left_out_loss(problem: SupportProblem, fit: Fit, left_out: LeftOut) -> float:
    """Estimate the mean leave-one-out loss by one Newton step from the full fit for each row.

    Parameters
    ----------
    problem : SupportProblem
        Problem that was fitted.
    fit : Fit
        Fit of ``problem``.
    left_out : LeftOut
        Parts to leave out.

    Returns
    -------
    float
        Mean loss of the rows left out.
    """
    if left_out.parts is not None:
        return _pairs_left_out(problem, fit, left_out.parts)
    loss, y, weight = problem.loss, problem.y, problem.sample_weight
    scores = fit.scores if problem.offset is None else fit.scores + problem.offset
    if scores.shape[1] == 1:
        return _rows_left_out(problem, fit, scores, left_out.n_rows)
    inverse = inverse_hessian(problem, fit.A1, loss.row_hessians(y, scores, weight))
    one = np.full(len(y), 1.0 / left_out.n_rows)  # weight of one copy of a row
    gradient, curvature = loss.gradient(y, scores, one), loss.row_hessians(y, scores, one)
    spread = _row_products(fit.A1, inverse, scores.shape[1])
    # Without row i, its scores change by K_i (1 - H_i K_i)^-1 g_i, where K_i = x_i' H^-1 x_i.
    eye = np.eye(scores.shape[1])
    inner = eye - np.matmul(curvature, spread)
    moved = np.matmul(spread, np.linalg.solve(inner + 1e-9 * eye, gradient[:, :, None]))[:, :, 0]
    return loss.value_and_gradient(y, scores + moved, weight)[0]


def _rows_left_out(problem: SupportProblem, fit: Fit, scores: np.ndarray, n_rows: float) -> float:
    """Compute the leave-one-out loss for one output, where each K_i and H_i is a scalar."""
    loss, y, weight = problem.loss, problem.y, problem.sample_weight
    # for each row with weight one
    _, gradient, (product,) = loss.second_order(y, scores, np.ones(len(y)))
    curvature, A1 = product(np.ones((len(y), 1))), fit.A1
    H = hessian(
        problem,
        A1,
        DiagonalProduct(weight * curvature[:, 0])(A1),
        problem.penalty_hessian(len(fit.theta)),
    )
    H.flat[:: len(H) + 1] += 1e-10 * np.trace(H) / len(H)
    inverse, step = np.linalg.inv(H), max(1, _BLOCK // len(H))
    blocks = [A1[i : i + step] for i in range(0, len(y), step)]
    spread = np.concatenate([_quadratic_forms(rows, inverse) for rows in blocks])[:, None] / n_rows
    moved = spread * gradient / np.maximum(1.0 - curvature * spread, 1e-3)
    return loss.value_and_gradient(y, scores + moved, weight)[0]


def _quadratic_forms(A: Any, inverse: np.ndarray) -> np.ndarray:
    """Compute the quadratic form x_i' H^-1 x_i of each row of an array or CSR matrix."""
    product = A @ inverse
    if not sp.issparse(A):
        return (A * product).sum(axis=1)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return np.bincount(row, A.data * product[row, A.indices], A.shape[0])


def _row_products(A1: np.ndarray, inverse: np.ndarray, q: int) -> np.ndarray:
    """Compute the product x_i' H^-1 x_i (q, q) of each row."""
    n, p = A1.shape
    out = np.empty((n, q, q))
    blocks = inverse.reshape(p, q * p * q)
    step = max(1, _BLOCK // (q * p * q))
    for i in range(0, n, step):
        rows = A1[i : i + step]
        out[i : i + step] = np.einsum("napb,np->nab", (rows @ blocks).reshape(-1, q, p, q), rows)
    return out


def _pairs_left_out(
    problem: SupportProblem, fit: Fit, parts: list[tuple[np.ndarray, float]]
) -> float:
    """Compute the loss of each part's left-out pairs by one Newton step of the coefficients."""
    loss, A = cast(PairwiseLogisticLoss, problem.loss), fit.A1[:, : len(fit.theta)]
    D = A[loss.pairs[:, 0]] - A[loss.pairs[:, 1]]
    weight = loss.pair_weights
    d = D @ fit.theta[:, 0]
    if problem.offset is not None:
        d = d + problem.offset[loss.pairs[:, 0], 0] - problem.offset[loss.pairs[:, 1], 0]
    slope, bend = loss.pair_terms(d)
    H = D.T @ ((weight * bend)[:, None] * D)
    H += problem.penalty_hessian(len(H))[: len(H), : len(H)]
    H.flat[:: len(H) + 1] += 1e-12
    total = seen = 0.0
    for pairs, share in parts:
        B, w = D[pairs], weight[pairs]
        H_part, g_part = B.T @ ((w * bend[pairs])[:, None] * B), B.T @ (w * slope[pairs])
        moved = np.linalg.solve(H - share * H_part, share * g_part)
        total += w @ loss.pair_values(d[pairs] + B @ moved, loss.r[pairs])
        seen += w.sum()
    return float(total / seen)
