"""After annealing: refit on the support, exchange weak features for better ones, evaluate all columns once more.

Where annealing misses a true feature, the true support mostly has the lower objective: the failure is one of optimisation, and most
missed features have a wrongly chosen neighbour. Exchanges repair it. What is exchanged is a unit: a feature with its block of
columns, or a group of features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss
from ..objective.priors import Prior
from .exchanges import exchange_changes, proposals, unit_columns
from .newton import Fit, SupportProblem, refit

# Choices on the synthetic data of Barbu et al. (2017).
POOL = 15  # recently dropped units in the first pool, in units of k: with 5 true features are often missing, 20 gain nothing more
REGROWTH = 0.01  # share of the objective that regrowth has to gain: smaller gains come without end where labels are noisy
N_GRADIENT_CANDIDATES = 5  # units of the steepest gradient that join the pool in each round, in units of k
_LEAST_GAIN = 1e-6  # share of the objective that an exchange has to gain: less is rounding


@dataclass(frozen=True)
class Units:
    """What is exchanged as a whole.

    Attributes
    ----------
    of_feature : ndarray of shape (n_features,), int
        Unit of each feature.
    members : list of ndarray or None
        Features of each unit; None where each feature is its own unit.
    fixed : ndarray of shape (n_units,), bool, or None
        Units that stay in the support.
    """

    of_feature: np.ndarray
    members: list[np.ndarray] | None
    fixed: np.ndarray | None = None

    @classmethod
    def of_groups(cls, groups: np.ndarray | None, n_features: int, fixed: np.ndarray | None = None) -> Units:
        """Groups of features, or the features themselves where None; ``fixed`` (n_features,) names those that stay."""
        if groups is None:
            return cls(np.arange(n_features), None, fixed)
        codes = np.unique(groups, return_inverse=True)[1]
        fixed = None if fixed is None else np.bincount(codes, fixed) > 0
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        return cls(codes, members, fixed)

    def __len__(self) -> int:
        return int(self.of_feature.max()) + 1

    def features(self, units: np.ndarray) -> np.ndarray:
        """Features of the units, unit after unit."""
        return units if self.members is None else np.concatenate([self.members[u] for u in units])


@dataclass(frozen=True)
class Pool:
    """Units that may enter the support, with their columns.

    Attributes
    ----------
    units : ndarray of shape (n_units,), int
        Their numbers.
    Z : ndarray of shape (n_samples, n_columns)
        Standardised columns, unit after unit.
    offsets : ndarray of shape (n_units + 1,), int
        Where each unit's columns begin, and the end.
    fixed : ndarray of shape (n_units,), bool, or None
        Units that stay in the support.
    """

    units: np.ndarray
    Z: np.ndarray
    offsets: np.ndarray
    fixed: np.ndarray | None = None

    @classmethod
    def read(cls, design: Design, units: Units, numbers: np.ndarray) -> Pool:
        """Read the columns of the units ``numbers``."""
        fixed = None if units.fixed is None else units.fixed[numbers]
        features = units.features(numbers)
        if units.members is None:
            Z = design.keep(features).matrix()
            return cls(numbers, Z, np.arange(0, Z.shape[1] + 1, design.width), fixed)
        order = np.argsort(features)
        Z = design.keep(features[order]).matrix()
        columns = (np.argsort(order)[:, None] * design.width + np.arange(design.width)).ravel()
        sizes = [len(units.members[u]) for u in numbers]
        return cls(numbers, Z[:, columns], design.width * np.concatenate([[0], np.cumsum(sizes)]), fixed)

    def extended(self, new: Pool) -> Pool:
        """This pool with the units of another at its end."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + new.offsets[1:]])
        fixed = None if self.fixed is None or new.fixed is None else np.concatenate([self.fixed, new.fixed])
        return Pool(np.concatenate([self.units, new.units]), np.hstack([self.Z, new.Z]), offsets, fixed)


def swap(
    problem: SupportProblem,
    Z: np.ndarray,
    offsets: np.ndarray,
    support: np.ndarray,
    fit: Fit,
    *,
    fixed: np.ndarray | None = None,
    n_tries: int = 10,
    max_swaps: int = 100,
) -> tuple[np.ndarray, Fit]:
    """Exchange units of the support for others of the pool while that lowers the refitted objective.

    Several exchanges that the model predicts to improve it, each with units of its own, are tried at once; where that fails,
    fewer; at last the ``n_tries`` best ones each alone.

    Parameters
    ----------
    problem : SupportProblem
    Z, offsets
        The pool, see :class:`Pool`.
    support : ndarray of shape (k,), int
        Units of the pool.
    fit : Fit
        Of the support.
    fixed : ndarray of shape (n_units,), bool, or None, default None
        Units of the pool that stay in the support.
    n_tries : int, default 10
    max_swaps : int, default 100

    Returns
    -------
    support : ndarray of shape (k,), int
    fit : Fit
    """
    A = columns_of(Z, offsets, support)
    for _ in range(max_swaps):
        change = exchange_changes(problem, Z, offsets, support, A, fit)
        if fixed is not None:
            change[fixed[support]] = np.inf
        for trial in proposals(change, n_tries):
            new = support.copy()
            for out, entering in trial:
                new[out] = entering
            new_A = columns_of(Z, offsets, new)
            new_fit = refit(problem, new_A, _move(fit.theta, offsets, support, new), fit.intercept)
            if new_fit.value < fit.value - _LEAST_GAIN * abs(fit.value):
                support, fit, A = new, new_fit, new_A
                break
        else:
            break
    return support, fit


def regrow(
    problem: SupportProblem,
    Z: np.ndarray,
    offsets: np.ndarray,
    support: np.ndarray,
    fit: Fit,
    fixed: np.ndarray | None = None,
) -> tuple[np.ndarray, Fit]:
    """Grow the support by the steepest units of the pool, a few at a time, to twice its size, and cut it back as slowly.

    It leaves local optima that no single exchange leaves: with many wrong units at once each right one looks useless.

    Returns
    -------
    support : ndarray of shape (k,), int
    fit : Fit
    """
    k, sizes = len(support), np.diff(offsets)
    some = max(1, k // 8)
    units, theta = support, fit.theta
    widest = min(2 * k, len(sizes))
    growing = True
    while True:
        if len(units) > k or not growing:
            fit = refit(problem, columns_of(Z, offsets, units), theta, fit.intercept)
        growing = growing and len(units) < widest
        if growing:
            gradient = Z.T @ fit.residual.astype(Z.dtype)
            steep = np.add.reduceat((gradient**2).sum(axis=1), offsets[:-1]) / sizes
            steep[units] = -1.0
            entering = np.argsort(-steep, kind="stable")[: min(some, widest - len(units))]
            new = np.concatenate([units, entering])
            units, theta = new, _move(fit.theta, offsets, units, new)
        elif len(units) == k:
            return units, fit
        else:
            units, theta = _strongest(fit.theta, offsets, units, max(k, len(units) - some), fixed)


def add_steepest(
    problem: SupportProblem, design: Design, units: Units, pool: Pool, support: np.ndarray, fit: Fit
) -> tuple[Pool, np.ndarray, Fit, bool]:
    """Extend the pool by the units of the largest gradient, from one pass over all columns, and exchange with these.

    Returns
    -------
    pool : Pool
    support : ndarray of shape (k,), int
    fit : Fit
    improved : bool
        Whether an exchange lowered the objective.
    """
    k = len(support)
    gradient = design.gradient(fit.residual)
    size = np.bincount(units.of_feature) * design.width * gradient.shape[2]
    steep = np.bincount(units.of_feature, np.einsum("mwq,mwq->m", gradient, gradient)) / size
    steep[pool.units] = 0.0
    n_new = min(N_GRADIENT_CANDIDATES * k, len(units) - len(pool.units))
    pool = pool.extended(Pool.read(design, units, np.sort(np.argsort(-steep, kind="stable")[:n_new])))
    # Among the old units no exchange is left that helps: those with the new ones decide whether to go on.
    candidates = np.concatenate([support, np.arange(len(pool.units) - n_new, len(pool.units))])
    offsets = np.concatenate([[0], np.cumsum(np.diff(pool.offsets)[candidates])])
    fixed = None if pool.fixed is None else pool.fixed[candidates]
    found, fit = swap(problem, pool.Z[:, unit_columns(pool.offsets, candidates)], offsets, np.arange(k), fit, fixed=fixed)
    support, improved = candidates[found], not np.array_equal(found, np.arange(k))
    if improved:
        support, fit = swap(problem, pool.Z, pool.offsets, support, fit, fixed=pool.fixed)
    return pool, support, fit, improved


def swap_until_stable(
    problem: SupportProblem, design: Design, units: Units, pool: Pool, support: np.ndarray, fit: Fit, rounds: int
) -> tuple[Pool, np.ndarray, Fit]:
    """Exchange within the pool, then with the columns of the largest gradient; where annealing has failed, regrow the support.

    It has failed where more than a quarter of the units had to be exchanged, or where one was dropped early.
    """
    annealed = support
    support, fit = swap(problem, pool.Z, pool.offsets, support, fit, fixed=pool.fixed)
    annealing_failed = 4 * np.isin(annealed, support, invert=True).sum() > len(support)
    for _ in range(rounds):
        improved = False
        if len(pool.units) < len(units):
            pool, support, fit, improved = add_steepest(problem, design, units, pool, support, fit)
            annealing_failed = annealing_failed or improved
        if annealing_failed and not improved:
            regrown = regrow(problem, pool.Z, pool.offsets, support, fit, pool.fixed)
            found, found_fit = swap(problem, pool.Z, pool.offsets, *regrown, fixed=pool.fixed)
            if found_fit.value < fit.value - REGROWTH * abs(fit.value):
                support, fit, improved = found, found_fit, True
        if not improved:
            break
    return pool, support, fit


def polish(
    design: Design,
    y: np.ndarray,
    loss: Loss,
    sample_weight: np.ndarray,
    kept: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    dropped_at: np.ndarray,
    *,
    fit_intercept: bool = True,
    prior: Prior | None = None,
    groups: np.ndarray | None = None,
    fixed: np.ndarray | None = None,
    rounds: int = 10,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exchange with the recently dropped units, then with those of the largest gradient too, until nothing changes.

    Parameters
    ----------
    design : Design
        All features.
    y : ndarray of shape (n_samples, n_outputs)
        Targets as the loss wants them.
    loss : Loss
        With a curvature.
    sample_weight : ndarray of shape (n_samples,)
        Sums to one.
    kept, coef, intercept, dropped_at
        What annealing left, see :class:`Annealed`.
    fit_intercept : bool, default True
    prior : Prior or None
    groups : ndarray of shape (n_features,), int, or None
        Group of each feature: groups are exchanged as a whole.
    fixed : ndarray of shape (n_features,), bool, or None, default None
        Features that are never exchanged.
    rounds : int, default 10
        Most passes over all columns; 0 for exchanges within the first pool alone.

    Returns
    -------
    kept : ndarray of shape (k,), ascending
    coef : ndarray of shape (k, width, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    """
    problem = SupportProblem(y, loss, sample_weight, fit_intercept, prior, design.width, design.n_knots)
    units = Units.of_groups(groups, design.n_features, fixed)
    unit_dropped_at = np.zeros(len(units), int)
    unit_dropped_at[units.of_feature] = dropped_at
    chosen = np.unique(units.of_feature[kept])
    k = len(chosen)
    recently_dropped = np.argsort(-unit_dropped_at, kind="stable")[: min(len(units), max(POOL * k, k + 20))]
    pool = Pool.read(design, units, np.union1d(recently_dropped, chosen))
    support = np.searchsorted(pool.units, chosen)
    theta = coef[np.searchsorted(kept, units.features(chosen))].reshape(-1, coef.shape[2])
    fit = refit(problem, columns_of(pool.Z, pool.offsets, support), theta, np.asarray(intercept, dtype=float))
    pool, support, fit = swap_until_stable(problem, design, units, pool, support, fit, rounds)
    fit = refit(problem, columns_of(pool.Z, pool.offsets, support), fit.theta, fit.intercept, tol=1e-9)
    features = units.features(pool.units[support])
    order = np.argsort(features)
    return features[order], fit.theta.reshape(len(features), design.width, -1)[order], fit.intercept


def columns_of(Z, offsets, units):
    """Columns of the units in double precision."""
    return np.take(Z, unit_columns(offsets, units), axis=1).astype(np.float64, copy=False)


def _move(theta, offsets, old, new):
    """Coefficients for the new support: those of the units that stay, zero for the others."""
    every = np.zeros((offsets[-1], theta.shape[1]))
    every[unit_columns(offsets, old)] = theta
    return every[unit_columns(offsets, new)]


def _strongest(theta, offsets, units, count, fixed):
    """The strongest units and their coefficients."""
    sizes = np.diff(offsets)[units]
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    strength = np.add.reduceat((theta**2).sum(axis=1), begins) / sizes
    if fixed is not None:
        strength[fixed[units]] = np.inf
    stay = units[np.sort(np.argsort(-strength, kind="stable")[:count])]
    return stay, _move(theta, offsets, units, stay)
