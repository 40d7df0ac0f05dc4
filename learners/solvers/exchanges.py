"""Feature exchanges after annealing: quadratic model, swaps, regrowth, passes over all columns.

If annealing misses a true feature, the true support usually has the lower objective, so the
optimisation has failed. Most missed features are correlated with a wrongly selected feature.
Exchanges correct such errors. The unit of an exchange is a feature with its block of columns, or a
group of features.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from ..designs.base import Design
from ..objective.base import DiagonalProduct, HessianProduct
from .annealing import Annealed
from .newton import Fit, SupportProblem, fit_at, hessian, predicted, refit, solve_positive

# The constants below were chosen on the synthetic data of Barbu et al. (2017).

# Number of recently dropped units in the first pool, as a multiple of k. With 5, true features are
# often missing; 20 has no further benefit.
POOL_FACTOR = 15
# Relative gain required of regrowth, which would otherwise not end for noisy labels
REGROWTH = 0.01
# Number of units with the steepest gradients that each round adds to the pool, as a multiple of k
N_GRADIENT_CANDIDATES = 5
# Maximum number of values (over all rows) in memory at a time, where a subset of the rows or one
# part after another suffices (heuristic)
_MAX_VALUES = 1 << 23
_MIN_GAIN = 1e-6  # relative gain required of an exchange; smaller gains are rounding errors
# Minimum fraction of a unit's curvature that remains given the support, so that the predicted gain
# of a nearly redundant unit is finite
_MIN_SCHUR = 1e-3
_MAX_SWAPS = 100  # maximum number of consecutive swaps
# Exchanges are proposed on a subset of the rows: its minimum size, its size per column of the
# support, and the ratio of all rows to its size from which it is used (heuristic values).
_ROWS, _ROWS_PER_COLUMN, _MANY = 20_000, 100, 2
_MAX_ALTERNATIVES = 100  # maximum number of alternative features (heuristic)
# Alternatives per feature, and their maximum relative cost (heuristic)
_MAX_NAMED, _MAX_COST = 5, 0.05


Coefficients = tuple[np.ndarray, np.ndarray]  # coefficients of the support's columns, intercept


@dataclass(frozen=True)
class Units:
    """Units of exchanges: features, or groups of features that are exchanged as a whole.

    Attributes
    ----------
    of_feature : ndarray of shape (n_features,), int
        Unit of each feature.
    members : list of ndarray or None
        Features of each unit; None if each feature is a unit.
    fixed : ndarray of shape (n_units,), bool, or None
        Mask of the units that must remain in the support.
    """

    of_feature: np.ndarray
    members: list[np.ndarray] | None
    fixed: np.ndarray | None = None

    @classmethod
    def of_groups(
        cls, groups: np.ndarray | None, n_features: int, fixed: np.ndarray | None = None
    ) -> "Units":
        """Create units for groups of features, or for single features if ``groups`` is None.

        ``fixed`` is the mask of the features that must remain.
        """
        if groups is None:
            return cls(np.arange(n_features), None, fixed)
        codes = np.unique(groups, return_inverse=True)[1]
        fixed = None if fixed is None else np.bincount(codes, fixed) > 0
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        return cls(codes, members, fixed)

    def __len__(self) -> int:
        return int(self.of_feature.max()) + 1

    def features(self, units: np.ndarray) -> np.ndarray:
        """Return the features of the given units, in the order in which the units are given."""
        return units if self.members is None else np.concatenate([self.members[u] for u in units])


@dataclass(frozen=True)
class Pool:
    """Units that may be added to the support, with their columns.

    Attributes
    ----------
    units : ndarray of shape (n_units,), int
        Unit indices.
    Z : ndarray of shape (n_samples, n_columns)
        Standardised columns, grouped by unit.
    offsets : ndarray of shape (n_units + 1,), int
        First column of each unit, followed by the number of columns.
    fixed : ndarray of shape (n_units,), bool, or None
        Mask of the units that must remain in the support.
    """

    units: np.ndarray
    Z: np.ndarray
    offsets: np.ndarray
    fixed: np.ndarray | None = None

    @classmethod
    def read(
        cls, design: Design, units: Units, numbers: np.ndarray, rows: np.ndarray | None = None
    ) -> "Pool":
        """Read the columns of units ``numbers``, which must be ascending, for all or some rows."""
        fixed = None if units.fixed is None else units.fixed[numbers]
        features = units.features(numbers)
        if units.members is None:
            Z = _columns(design, features, rows)
            return cls(numbers, Z, np.arange(0, Z.shape[1] + 1, design.width), fixed)
        order = np.argsort(features)
        Z = _columns(design, features[order], rows)
        columns = (np.argsort(order)[:, None] * design.width + np.arange(design.width)).ravel()
        sizes = [len(units.members[u]) for u in numbers]
        return cls(
            numbers, Z[:, columns], design.width * np.concatenate([[0], np.cumsum(sizes)]), fixed
        )

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns as rows of a contiguous array, for fast access."""
        return np.ascontiguousarray(self.Z.T)

    def square_sums(self, weights: np.ndarray) -> np.ndarray:
        """Compute the weighted sum of squares of each column."""
        if self.Z.size <= _MAX_VALUES:
            return weights @ self._squares
        return np.concatenate(
            [
                weights @ (some * some)
                for some in np.array_split(self.Z, -(-self.Z.size // _MAX_VALUES), axis=1)
            ]
        )

    @cached_property
    def _squares(self) -> np.ndarray:
        return self.Z * self.Z

    def charges(self, problem: SupportProblem, fit: Fit) -> np.ndarray:
        """Compute the penalty of each unit for its number of coefficients.

        See :func:`~annealed.learners.objective.base.charges_of`. Constant columns are not counted.
        One column of each piecewise-linear feature is not counted either, since the other columns
        determine it.
        """
        if self.single:
            return np.zeros(len(self.units))
        per_feature = self.Z.any(axis=0).reshape(-1, problem.width).sum(axis=1)
        per_feature = np.maximum(per_feature - (problem.width > 1), 0)
        return problem.charges(
            np.add.reduceat(per_feature, self.offsets[:-1] // problem.width), fit.scores
        )

    @property
    def single(self) -> bool:
        """Whether every unit is a single column."""
        return len(self.offsets) - 1 == self.Z.shape[1]

    def columns_of(self, units: np.ndarray) -> np.ndarray:
        """Return the column indices of the given units, in the order in which the units are given.

        Examples
        --------
        >>> pool = Pool(np.arange(3), np.zeros((1, 6)), np.array([0, 2, 3, 6]))
        >>> pool.columns_of(np.array([2, 0]))
        array([3, 4, 5, 0, 1])
        """
        return (
            units
            if self.single
            else np.concatenate([np.arange(self.offsets[u], self.offsets[u + 1]) for u in units])
        )

    def matrix_of(self, units: np.ndarray) -> np.ndarray:
        """Return the columns of the given units, in the order in which the units are given."""
        return self.columns[self.columns_of(units)].T

    def part(self, units: np.ndarray) -> "Pool":
        """Return the pool restricted to the given units."""
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[units])])
        Z = np.take(self.Z, self.columns_of(units), axis=1)
        return Pool(
            self.units[units], Z, offsets, None if self.fixed is None else self.fixed[units]
        )

    def joined(self, others: Iterable["Pool"], n_columns: int) -> "Pool":
        """Return the pool extended by other pools, with ``n_columns`` columns in total.

        The other pools are copied one at a time, as each may be read only when it is needed.
        """
        Z, start, parts = _empty(len(self.Z), n_columns, self.Z.dtype), 0, []
        for pool in chain([self], others):
            Z[:, start : start + pool.Z.shape[1]] = pool.Z
            start += pool.Z.shape[1]
            parts.append((pool.units, np.diff(pool.offsets), pool.fixed))
        units, sizes, fixed = zip(*parts)
        offsets = np.cumsum(np.concatenate([[0], *sizes]))
        all_fixed = None if self.fixed is None else np.concatenate(fixed)
        return Pool(np.concatenate(units), Z, offsets, all_fixed)


def swap(
    problem: SupportProblem,
    pool: Pool,
    support: np.ndarray,
    fit: Fit,
    *,
    n_tries: int = 10,
    tol: float = 1e-5,
) -> tuple[np.ndarray, Fit, np.ndarray]:
    """Exchange units of the support for units of the pool as long as the objective decreases.

    The objective is that of a refit plus the penalties of the units. Several disjoint exchanges
    with a predicted improvement are tried at once. If they fail, fewer are tried, and finally the
    ``n_tries`` best exchanges are tried individually.

    Parameters
    ----------
    problem : SupportProblem
        Problem on the support.
    pool : Pool
        Units to exchange, including those of the support.
    support : ndarray of shape (k,), int
        Positions of the support units within the pool.
    fit : Fit
        Fit on the support.
    n_tries : int, default 10
        Maximum number of exchanges to try individually.
    tol : float, default 1e-5
        Tolerance of the fits; see :func:`refit`.

    Returns
    -------
    support : ndarray of shape (k,), int
        Positions of the new support units within the pool.
    fit : Fit
        Fit on the new support.
    change : ndarray of shape (k, n_units)
        Result of :func:`exchange_changes` for this support and fit.
    """
    for n_swaps in range(_MAX_SWAPS + 1):
        change = exchange_changes(problem, pool, support, fit)
        if pool.fixed is not None:
            change[pool.fixed[support]] = np.inf
        charges = pool.charges(problem, fit)
        enough = fit.value - _MIN_GAIN * abs(fit.value)
        for trial in (
            proposals(change, n_tries, problem.loss.exact_curvature) if n_swaps < _MAX_SWAPS else ()
        ):
            new = support.copy()
            new[[out for out, _ in trial]] = [entering for _, entering in trial]
            A, limit = pool.matrix_of(new), enough - (charges[new].sum() - charges[support].sum())
            # Fits that will not lower the objective are abandoned, if their gain can be predicted
            new_fit = refit(
                problem,
                A,
                *predicted(problem, A, fit),
                tol=tol,
                limit=limit if problem.loss.exact_curvature else np.inf,
            )
            if new_fit.value < limit:
                support, fit = new, new_fit
                break
        else:
            break
    return support, fit, change


def regrow(
    problem: SupportProblem, pool: Pool, support: np.ndarray, fit: Fit
) -> tuple[np.ndarray, Fit]:
    """Double the support by adding the units with the largest gradients, and then reduce it again.

    Units are added a few at a time in the order of their gradients, and removed at the same rate.
    This escapes local optima that no single exchange can leave. If many selected units are wrong, a
    single correct unit hardly decreases the objective.

    Returns
    -------
    support : ndarray of shape (k,), int
        Positions of the new support units within the pool.
    fit : Fit
        Fit on the new support.
    """
    k, some, n_columns = len(support), max(1, len(support) // 8), np.diff(pool.offsets)
    widest = min(2 * k, len(n_columns))
    units = support
    for size in (*range(k + some, widest, some), widest, *range(widest - some, k, -some), k):
        if size > len(units):
            gradient = pool.Z.T @ fit.residual.astype(pool.Z.dtype)
            steep = np.add.reduceat((gradient**2).sum(axis=1), pool.offsets[:-1]) / n_columns
            steep[units] = -1.0
            units = np.concatenate([units, ascending(-steep)[: size - len(units)]])
        else:
            begins = np.concatenate([[0], np.cumsum(n_columns[units])[:-1]])
            strength = np.add.reduceat((fit.theta**2).sum(axis=1), begins) / n_columns[units]
            if pool.fixed is not None:
                strength[pool.fixed[units]] = np.inf
            units = units[np.sort(ascending(-strength)[:size])]
        A = pool.matrix_of(units)
        # The prediction and one Newton step suffice until the last size, since the next units
        # change all coefficients. With the prediction alone, fewer true features are found.
        fit = refit(
            problem,
            A,
            *predicted(problem, A, fit),
            n_iter=int(not problem.quadratic) if size > k else 30,
        )
    return units, fit


def regrown(
    problem: SupportProblem, pool: Pool, support: np.ndarray, fit: Fit
) -> tuple[np.ndarray, Fit, bool]:
    """Run :func:`regrow` and swaps; return the better support, its fit, and whether it changed."""
    new_support, found_fit, _ = swap(problem, pool, *regrow(problem, pool, support, fit))
    charges = pool.charges(problem, fit)
    charge = charges[new_support].sum() - charges[support].sum()
    improved = found_fit.value + charge < fit.value - REGROWTH * abs(fit.value)
    return (new_support, found_fit, True) if improved else (support, fit, False)


def _columns(design: Design, features: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """Read standardised columns for all or some rows, a few at a time if they are large."""
    pieces, start = [features] if design.streams else _pieces(design, features), 0
    for some in pieces:
        block = design.keep(some).matrix_rows(rows)
        if len(pieces) == 1:
            return block
        if start == 0:
            Z = _empty(len(block), len(features) * design.width, block.dtype)
        Z[:, start : start + block.shape[1]] = block
        start += block.shape[1]
    return Z


def _empty(n: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    """Allocate an array, column-major if large so that :attr:`Pool.columns` needs no copy."""
    return np.empty((n, n_columns), dtype, order="F" if n * n_columns > _MAX_VALUES else "C")


def _pieces(design: Design, numbers: np.ndarray) -> list[np.ndarray]:
    """Split features or units into parts whose columns fit into memory."""
    n_parts = -(-design.n_samples * design.width * len(numbers) // _MAX_VALUES)
    return np.array_split(numbers, max(1, n_parts))


@dataclass(frozen=True)
class Candidates:
    """All units, on all or some rows, as candidates for exchanges.

    Attributes
    ----------
    design : Design
        Design that contains all features.
    units : Units
        Units of the exchanges.
    rows : ndarray of int, or None
        Row indices; None means all rows.
    """

    design: Design
    units: Units
    rows: np.ndarray | None = None

    def read(self, numbers: np.ndarray) -> Pool:
        """Read the columns of the units ``numbers`` as a pool."""
        return Pool.read(self.design, self.units, numbers, self.rows)

    def with_steepest(self, pool: Pool, support: np.ndarray, fit: Fit) -> Pool:
        """Return the support, and the units outside the pool with the largest gradients.

        The gradients require one pass over the data.
        """
        residual, of_feature = fit.residual, self.units.of_feature
        if self.rows is not None:
            residual = np.zeros((self.design.n_samples, residual.shape[1]))
            residual[self.rows] = fit.residual
        gradient = self.design.gradient(residual)
        size = np.bincount(of_feature) * self.design.width * gradient.shape[2]
        steep = np.bincount(of_feature, np.einsum("mwq,mwq->m", gradient, gradient)) / size
        steep[pool.units] = 0.0
        n_new = min(N_GRADIENT_CANDIDATES * len(support), len(self.units) - len(pool.units))
        new, part = np.sort(ascending(-steep)[:n_new]), pool.part(support)
        pieces = [new] if self.design.streams else _pieces(self.design, new)
        n_columns = part.Z.shape[1] + len(self.units.features(new)) * self.design.width
        return part.joined(map(self.read, pieces), n_columns)


def swap_until_stable(
    problem: SupportProblem,
    candidates: Candidates,
    pool: Pool,
    support: np.ndarray,
    fit: Fit,
    rounds: int,
) -> tuple[Pool, np.ndarray, Fit]:
    """Exchange units within the pool, and then with the units that have the largest gradients.

    The support is regrown if annealing appears to have failed: if more than a quarter of the units
    were exchanged, or if a new unit had been dropped early.
    """
    annealed, k = support, len(support)
    support, fit, _ = swap(problem, pool, support, fit)
    annealing_failed = 4 * np.isin(annealed, support, invert=True).sum() > len(support)
    for _ in range(rounds):
        improved = False
        if len(pool.units) < len(candidates.units):
            both = candidates.with_steepest(pool, support, fit)
            # Exchanges among the old units no longer help. Exchanges with the new units determine
            # whether to continue.
            positions, fit, _ = swap(problem, both, np.arange(k), fit)
            improved = not np.array_equal(positions, np.arange(k))
            annealing_failed = annealing_failed or improved
            if annealing_failed:
                new = np.arange(k, len(both.units))
                support = np.concatenate([support, new - k + len(pool.units)])[positions]
                added = both.part(new)
                pool = pool.joined([added], pool.Z.shape[1] + added.Z.shape[1])
            if improved:
                support, fit, _ = swap(problem, pool, support, fit)
        if annealing_failed and not improved:
            support, fit, improved = regrown(problem, pool, support, fit)
        if not improved:
            break
    return pool, support, fit


def proposed(
    problem: SupportProblem,
    candidates: Candidates,
    pool: Pool,
    support: np.ndarray,
    start: Coefficients,
    rounds: int,
) -> tuple[Pool, np.ndarray, Coefficients]:
    """Run exchanges on the candidates' rows, and return the pool for exchanges on all rows.

    The pool contains the resulting support and the units that are the best replacements for its
    units.
    """
    part = problem.on(candidates.rows)  # type: ignore[arg-type]  # never None here
    fit = refit(part, pool.matrix_of(support), *start)
    pool, selected, fit = swap_until_stable(part, candidates, pool, support, fit, rounds)
    near = ascending(exchange_changes(part, pool, selected, fit).min(axis=0))[
        : N_GRADIENT_CANDIDATES * len(selected)
    ]
    units = np.sort(
        pool.units[np.union1d(selected, near)]
    )  # columns are read in ascending order, which differs from the order of an extended pool
    decided = replace(candidates, rows=None).read(units)
    return decided, np.searchsorted(units, pool.units[selected]), (fit.theta, fit.intercept)


def some_rows(problem: SupportProblem, n_columns: int) -> np.ndarray | None:
    """Return the rows from which exchanges are proposed, or None if all rows must be used."""
    rows = np.flatnonzero(problem.sample_weight)
    n = max(_ROWS, _ROWS_PER_COLUMN * n_columns)
    if len(rows) < _MANY * n or not problem.loss.pointwise or problem.offset is not None:
        return None
    return np.sort(np.random.default_rng(0).choice(rows, n, replace=False))


def exchange(
    problem: SupportProblem,
    design: Design,
    state: Annealed,
    *,
    groups: np.ndarray | None = None,
    fixed: np.ndarray | None = None,
    rounds: int = 10,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exchange selected units for units that were dropped late or have the largest gradients.

    Parameters
    ----------
    problem : SupportProblem
        Problem whose loss has second derivatives.
    design : Design
        Design that contains all features.
    state : Annealed
        Final state of annealing.
    groups : ndarray of shape (n_features,), int, or None
        Group of each feature. Groups are exchanged as a whole.
    fixed : ndarray of shape (n_features,), bool, or None, default None
        Mask of the features that are never exchanged.
    rounds : int, default 10
        Maximum number of passes over all columns. 0 restricts exchanges to units that were dropped
        late.

    Returns
    -------
    kept : ndarray of shape (k,), ascending
        Selected features.
    coef : ndarray of shape (k, width, n_outputs)
        Coefficients of the selected features.
    intercept : ndarray of shape (n_outputs,)
        Intercept of each output.
    """
    units = Units.of_groups(groups, design.n_features, fixed)
    chosen = np.unique(units.of_feature[state.kept])
    numbers, theta = _around(units, state, chosen, max(POOL_FACTOR * len(chosen), len(chosen) + 20))
    start, rows = (theta, np.asarray(state.intercept, dtype=float)), some_rows(problem, len(theta))
    candidates = Candidates(design, units, rows)
    pool, support = candidates.read(numbers), np.searchsorted(numbers, chosen)
    if rows is not None:
        pool, support, start = proposed(problem, candidates, pool, support, start, rounds)
        candidates = replace(candidates, rows=None)
    fit = refit(problem, pool.matrix_of(support), *start)
    pool, support, fit = swap_until_stable(problem, candidates, pool, support, fit, rounds)
    fit = refit(problem, pool.matrix_of(support), fit.theta, fit.intercept, tol=1e-9)
    features = units.features(pool.units[support])
    order = np.argsort(features)
    return features[order], fit.theta.reshape(len(features), design.width, -1)[order], fit.intercept


def _around(
    units: Units, state: Annealed, chosen: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the selected and the latest dropped units in ascending order, with coefficients.

    The coefficients are those of the selected units.
    """
    dropped_at = np.zeros(len(units), int)
    dropped_at[units.of_feature] = state.dropped_at
    theta = state.coef[np.searchsorted(state.kept, units.features(chosen))].reshape(
        -1, state.coef.shape[2]
    )
    return np.union1d(np.argsort(-dropped_at, kind="stable")[:size], chosen), theta


def alternatives(
    problem: SupportProblem, design: Design, state: Annealed, groups: np.ndarray | None
) -> dict[int, list[tuple[int, float]]]:
    """Return the features that could replace each selected feature at a small cost.

    The costs are predicted by the quadratic model. A group is represented by its first feature.

    Returns
    -------
    dict of int to list of (int, float)
        Alternatives to each feature and their costs relative to the objective, in ascending order
        of cost.
    """
    units = Units.of_groups(groups, design.n_features)
    chosen = np.unique(units.of_feature[state.kept])
    numbers, theta = _around(
        units, state, chosen, len(chosen) + min(POOL_FACTOR * len(chosen), _MAX_ALTERNATIVES)
    )
    others, costs = np.setdiff1d(numbers, chosen), []
    for some in _pieces(design, others):
        pool = Pool.read(design, units, np.union1d(some, chosen))
        support = np.searchsorted(pool.units, chosen)
        fit = fit_at(problem, pool.matrix_of(support), theta, state.intercept)
        change = exchange_changes(problem, pool, support, fit) / max(abs(fit.value), 1e-300)
        costs.append(change[:, np.isin(pool.units, some)])
    cost = np.hstack(costs)
    first = (
        units.of_feature
        if units.members is None
        else np.array([members.min() for members in units.members])
    )
    result = {}
    for i, row in zip(chosen, cost, strict=True):
        order = np.argsort(row, kind="stable")[:_MAX_NAMED]
        result[int(first[i])] = [
            (int(first[others[j]]), float(row[j])) for j in order if row[j] < _MAX_COST
        ]
    return result


def exchange_changes(
    problem: SupportProblem, pool: Pool, support: np.ndarray, fit: Fit
) -> np.ndarray:
    """Predict the change in the objective for every exchange between the support and the pool.

    Adding unit j to the support S changes the coefficients of S by -C_j d_j, where C_j = H_SS^-1
    H_Sj and d_j = -(H_jj - H_jS C_j)^-1 g_j for the Hessian H and the gradient g. Removing unit i
    afterwards costs b_i^T ([G^-1]_ii)^-1 b_i / 2, where b and G are the coefficients and the
    Hessian after adding unit j. A single matrix product of the support and the pool suffices for
    all pairs. S includes the intercept, which is never exchanged.

    Parameters
    ----------
    problem : SupportProblem
        Problem on the support.
    pool : Pool
        Candidate units, including those of the support.
    support : ndarray of shape (k,), int
        Positions of the support units within the pool.
    fit : Fit
        Fit on the support.

    Returns
    -------
    ndarray of shape (k, n_units)
        Predicted changes. They are negative if an exchange lowers the objective by more than the
        penalty of its additional coefficients, and infinite for units of the support.
    """
    Z, offsets, p = pool.Z, pool.offsets, len(fit.theta)
    A1, penalty = fit.A1, problem.penalty_hessian(p)
    change = np.zeros((len(support), len(offsets) - 1))
    for q, hessian_product in enumerate(fit.hessian_products):
        WA = hessian_product(A1)
        inverse = solve_positive(hessian(problem, A1, WA, penalty), np.eye(len(penalty)))
        left = np.column_stack([values.astype(Z.dtype) for values in (WA, fit.residual[:, q])])
        del WA  # as large as several columns of the pool
        products = (left.T @ Z).astype(np.float64)
        # Outside the support, coefficients are 0, and so is the gradient of the penalty.
        cross, gradient = products[:-1], products[-1]
        C = inverse @ cross
        curvature = curvatures(pool, hessian_product)
        if pool.single:
            diagonal = curvature[:, 0] + problem.penalty_hessian(1)[0, 0]
            schur = np.maximum(diagonal - np.einsum("kp,kp->p", cross, C), _MIN_SCHUR * diagonal)
            # Adding j changes the coefficients of the support by C_ij g_j / s_j. Removing i then
            # costs theta_i'^2 / (2 [H^-1]'_ii).
            step = gradient / schur
            moved = C[:p] * step + fit.theta[:, [q]]
            spread = C[:p] * C[:p] / schur + np.diag(inverse)[:p, None]
            change += 0.5 * (moved * moved / spread - gradient * step)
            continue
        for a, b in pairwise(offsets):
            full = curvature[a:b, : b - a] + problem.penalty_hessian(b - a)[: b - a, : b - a]
            curvature[a:b, : b - a] = (
                full
                - cross[:, a:b].T @ C[:, a:b]
                + _MIN_SCHUR * np.trace(full) / (b - a) * np.eye(b - a)
            )
        starts = np.concatenate([[0], np.cumsum(np.diff(offsets)[support])])
        block_changes(
            inverse[:p, :p], fit.theta[:, q], C[:p], curvature, gradient, starts, offsets, change
        )
    charges = pool.charges(problem, fit)
    if charges.any():
        change += charges - charges[support][:, None]
    change[:, support] = np.inf
    return change


def curvatures(pool: Pool, hessian_product: HessianProduct) -> np.ndarray:
    """Compute the Hessian blocks of all units, as an array of shape (n_columns, widest).

    ``widest`` is the largest number of columns in a unit. Units of several columns are processed
    one at a time, so that each product stays in the cache.
    """
    Z, offsets = pool.Z, pool.offsets
    if pool.single and isinstance(hessian_product, DiagonalProduct):
        return pool.square_sums(hessian_product.weights.astype(Z.dtype)).astype(np.float64)[:, None]
    if pool.single:
        return np.einsum("np,np->p", hessian_product(Z).astype(Z.dtype, copy=False), Z).astype(
            np.float64
        )[:, None]
    products = np.zeros((Z.shape[1], int(np.diff(offsets).max())))
    for a, b in pairwise(offsets):
        columns = np.ascontiguousarray(Z[:, a:b])
        products[a:b, : b - a] = columns.T @ hessian_product(columns).astype(Z.dtype, copy=False)
    return products


def ascending(values: np.ndarray) -> np.ndarray:
    """Return the indices that sort the values in ascending order, with ties in index order.

    Values that differ by rounding errors, as for duplicate columns, count as ties.
    """
    scale = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return np.argsort(np.round(values / scale, 10) if scale > 0 else values, kind="stable")


def proposals(
    change: np.ndarray, n_tries: int, exact: bool = True
) -> Iterator[list[tuple[int, int]]]:
    """Iterate over sets of exchanges (out, in) to try.

    The first set is half of the compatible exchanges with a predicted improvement. Each of the
    following sets is smaller than the previous one. If ``exact`` is false, the predictions use a
    bound on the curvature and are pessimistic, so exchanges without a predicted improvement are
    also tried individually.

    Parameters
    ----------
    change : ndarray of shape (k, n_units)
        Predicted change of each exchange.
    n_tries : int
        Maximum number of exchanges to try individually at the end.
    exact : bool, default True
        Whether the predictions use the exact curvature.

    Yields
    ------
    list of (int, int)
        Positions in the support of the units to remove, and positions in the pool of the units to
        add.
    """
    flat = change.ravel()
    tried = np.flatnonzero(flat < (0.0 if exact else np.inf))
    most = max(n_tries, 4 * len(change))
    if len(tried) > 2 * most:  # allows for ties
        tried = tried[np.sort(np.argpartition(flat[tried], 2 * most)[: 2 * most])]
    order = tried[ascending(flat[tried])[:most]]
    ranked = list(zip(*(part.tolist() for part in np.divmod(order, change.shape[1])), strict=True))
    together: list[tuple[int, int]] = []
    used: tuple[set[int], set[int]] = set(), set()
    for out, entering in ranked:
        if change[out, entering] < 0 and out not in used[0] and entering not in used[1]:
            together.append((out, entering))
            used[0].add(out)
            used[1].add(entering)
    size = len(together) // 2
    while size > 1:
        yield together[:size]
        size //= 2
    for pair in ranked[:n_tries]:
        yield [pair]


def block_changes(
    inverse: np.ndarray,
    theta: np.ndarray,
    C: np.ndarray,
    schur: np.ndarray,
    gradient: np.ndarray,
    offsets: np.ndarray,
    pool_offsets: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add to ``out`` the predicted changes for units that have several columns.

    ``offsets`` and ``pool_offsets`` contain the first column of each unit, followed by the number
    of columns. ``schur``, of shape (n_columns, widest), contains the rows of the Schur complements
    of the pool units.
    """
    starts = np.asarray(offsets)
    for width in np.unique(np.diff(starts)):  # solve units of the same width together
        units = np.flatnonzero(np.diff(starts) == width)
        columns = starts[units, None] + np.arange(width)
        coef, blocks = theta[columns], inverse[columns[:, :, None], columns[:, None, :]]
        for j, (a, b) in enumerate(pairwise(pool_offsets)):
            s_inverse = np.linalg.inv(schur[a:b, : b - a])
            step = s_inverse @ gradient[a:b]
            c = C[columns, a:b]
            moved = coef + c @ step
            spread = blocks + c @ s_inverse @ c.transpose(0, 2, 1)
            costs = np.einsum(
                "uw,uw->u", moved, np.linalg.solve(spread, moved[:, :, None])[:, :, 0]
            )
            out[units, j] += 0.5 * costs - 0.5 * float(gradient[a:b] @ step)
