"""Minimax sparse logistic regression (Tan, Tsang, Wang 2013): features come in cuts of r, all cuts are weighed together.

Notation of the paper: alpha_i in (0, C_i) is the dual variable of sample i, d_t the t-th cut (a set of columns), w_t =
sum_i alpha_i y_i x_i on those columns, f_t(alpha) = ||w_t||^2 / 2 + G(alpha) with G(alpha) = sum_i alpha_i ln alpha_i + (C_i -
alpha_i) ln(C_i - alpha_i). The reduced problem is min over alpha of max over t of f_t, eq. (9) and (10).
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, xlogy

from ..common.validation import check_integer, check_real, number_to_keep
from ..designs.base import Design
from ..designs.factory import make_design
from ..objective.losses import LogisticLoss
from ..solvers.annealing import strongest
from ..solvers.newton import SupportProblem, refit
from .base import SelectingClassifier

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


class Cuts(NamedTuple):
    """What :func:`cutting_planes` leaves: the chosen features ascending, their weights, one objective per cut, last gap."""

    kept: np.ndarray
    coef: np.ndarray
    intercept: float
    objective: list[float]
    gap: float


def cutting_planes(
    design: Design,
    y: np.ndarray,
    box: np.ndarray,
    *,
    r: int,
    max_cuts: int,
    size: int | None = None,
    fit_intercept: bool = True,
    solver: str = "newton",
    tol: float = 1e-3,
) -> Cuts:
    """Algorithm 1: add the most violated constraint, solve the reduced problem over all constraints so far, repeat.

    Parameters
    ----------
    design : Design
        All features, linear responses.
    y : ndarray of shape (n_samples,)
        -1 / +1.
    box : ndarray of shape (n_samples,)
        C_i.
    r : int
        Features of a cut.
    max_cuts : int
        T: at most that many cuts.
    size : int or None
        End as soon as so many different features are in; the weakest newcomers of the last cut stay out.
    fit_intercept : bool
        A constant column belongs to every cut (its weight is shrunk with the others).
    solver : {"newton", "smoothing"}
        Of the reduced problems.
    tol : float
        Duality gap of the reduced problems, and the relative violation below which no cut is added.
    """
    constant = int(bool(fit_intercept))
    Z = np.ones((len(y), constant))
    columns = np.empty(0, int)  # of the design; Z has the constant before them
    members = np.empty((0, constant))
    alpha, share, reduced = 0.5 * box, np.empty(0), None
    curvature = Curvature(Z, alpha, box)
    objective: list[float] = []
    for n_cuts in range(1, max_cuts + 1):
        # The most violated constraint: the r columns with the largest c_j = (sum_i alpha_i y_i x_ij)^2.
        c = design.gradient((alpha * y)[:, None])[:, 0, 0] ** 2
        cut = strongest(c, r)
        fresh = cut[~np.isin(cut, columns)]
        if reduced is not None and c[cut].sum() <= (1.0 + tol) * (members[:, constant:] @ c[columns]).max():
            break  # no constraint is violated any more
        if size is not None and len(columns) + len(fresh) > size:
            weak = np.delete(fresh, strongest(c[fresh], size - len(columns)))
            cut, fresh = np.setdiff1d(cut, weak), np.setdiff1d(fresh, weak)
        columns = np.concatenate([columns, fresh])
        if len(fresh):
            new = design.keep(fresh).matrix()
            Z = np.hstack([Z.astype(new.dtype), new])
        members = np.pad(members, ((0, 1), (0, len(fresh))))
        members[-1] = np.concatenate([np.ones(constant), np.isin(columns, cut)])
        if solver == "newton":
            share = np.append(share * (1.0 - 1.0 / n_cuts), 1.0 / n_cuts)
            start = None if reduced is None else np.append(reduced.coef, np.zeros(len(fresh)))
            reduced = solve_newton(Z, y, members, box, share=share, coef=start, curvature=curvature, tol=tol)
        else:
            reduced = solve_smoothing(Z, y, members, box, tol=tol)
        alpha, share = reduced.alpha, reduced.mixture
        objective.append(reduced.primal)
        if size is not None and len(columns) >= size:
            break
    assert reduced is not None
    order = np.argsort(columns)
    return Cuts(columns[order], reduced.coef[constant:][order], float(reduced.coef[:constant].sum()), objective, reduced.gap)


class MinimaxSparseClassifier(SelectingClassifier):
    """Minimax sparse logistic regression: at most ``r * max_cuts`` features for two classes (MSLR, Algorithms 1 to 3 of its paper).

    Made for many more features than samples: all columns are read once per cut only, ``max_cuts`` times.

    Parameters
    ----------
    r : int, default 10
        Features of one cut.
    C : float, default 10
        Weight of the loss against ||w||^2 / 2, as in eq. (4); it refers to standardised columns and a SUM over the samples.
    max_cuts : int, default 10
        T_m.
    n_features_to_select : int or None
        End with exactly so many features; None leaves the number to the cuts. More than ``r * max_cuts`` are never found, and
        fewer than asked for are told by a warning.
    retrain_C : float or None, default 5
        Retrain ridge logistic regression on the chosen features with this C (the paper's protocol); None keeps the mixture.
    fit_intercept : bool, default True
    solver : {"newton", "smoothing"}
        Of the reduced problems: Newton's method with closed-form steps of the mixture, or the paper's smoothing coordinate
        descent, which agrees but needs about 1 / tol sweeps and more, and is stopped after 2000.
    tol : float, default 1e-3
        Relative duality gap of the reduced problems.
    class_weight : dict, "balanced" or None

    Attributes
    ----------
    objective_ : ndarray
        Objective of the reduced problem after each cut: it never rises.
    gap_ : float
        Relative duality gap of the last reduced problem.
    n_iter_ : int
        Number of cuts.
    support_, coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in :class:`FSAClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import MinimaxSparseClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> MinimaxSparseClassifier(n_features_to_select=2).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """

    loss = "logistic"

    def __init__(
        self,
        r: int = 10,
        *,
        C: float = 10.0,
        max_cuts: int = 10,
        n_features_to_select: int | None = None,
        retrain_C: float | None = 5.0,
        fit_intercept: bool = True,
        solver: str = "newton",
        tol: float = 1e-3,
        class_weight=None,
    ):
        self.r = r
        self.C = C
        self.max_cuts = max_cuts
        self.n_features_to_select = n_features_to_select
        self.retrain_C = retrain_C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.class_weight = class_weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X, y, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any type, two classes.
        sample_weight : array of shape (n_samples,) or None

        Raises
        ------
        ValueError
            Not two classes, NaN, a parameter out of range.
        """
        check_integer("r", self.r, 1)
        check_integer("max_cuts", self.max_cuts, 1)
        check_real("C", self.C, 0.0, above=True)
        check_real("tol", self.tol, 0.0, above=True)
        if self.n_features_to_select is not None:
            check_integer("n_features_to_select", self.n_features_to_select, 1)
        if self.retrain_C is not None:
            check_real("retrain_C", self.retrain_C, 0.0, np.inf, above=True)
        if self.solver not in ("newton", "smoothing"):
            raise ValueError(f"solver={self.solver!r} is unknown; expected 'newton' or 'smoothing'")
        X, encoded, loss, weight = self._encode(X, y, sample_weight)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{len(self.classes_)} classes where two are expected"
            )
        assert isinstance(loss, LogisticLoss)
        used = weight > 0  # a sample of weight zero has no dual variable
        if not used.all():
            X, encoded, weight = X[used], encoded[used], weight[used]
        total = weight.sum()
        size = None if self.n_features_to_select is None else number_to_keep(self.n_features_to_select, X.shape[1])
        design = make_design(X, weight / total)
        found = cutting_planes(
            design,
            encoded[:, 0],
            self.C * weight,
            r=min(self.r, X.shape[1]),
            max_cuts=self.max_cuts,
            size=size,
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            tol=self.tol,
        )
        if size is not None and len(found.kept) < size:
            found_too_few = f"{len(found.kept)} features found, n_features_to_select={size}; expected a greater r or max_cuts"
            warnings.warn(found_too_few, stacklevel=2)
        coef, intercept = found.coef[:, None], np.array([found.intercept])
        if self.retrain_C is not None:
            # C times a sum of losses + ||w||^2 / 2 is a mean loss + ||w||^2 / (2 C total).
            shrinkage = 0.5 / (self.retrain_C * total)
            problem = SupportProblem(encoded, loss, weight / total, self.fit_intercept, shrinkage=shrinkage)
            Z = design.keep(found.kept).matrix().astype(np.float64)
            fit = refit(problem, Z, coef, intercept, tol=1e-10)
            coef, intercept = fit.theta, fit.intercept
        self.objective_ = np.array(found.objective)
        self.gap_ = found.gap
        self.n_iter_ = len(found.objective)
        self._store(design, found.kept, coef, intercept)
        return self
