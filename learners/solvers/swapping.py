"""After annealing: refit on the support, exchange weak features for better ones, look once more at all columns.

Where annealing misses a true feature, the true support mostly has the lower objective: the failure is one of optimisation, and most
missed features have a wrongly chosen neighbour. Exchanges repair it. What is exchanged is a unit: a feature with its block of
columns, or a group of features.
"""

from __future__ import annotations

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss
from .exchanges import exchange_changes, proposals, unit_columns
from .newton import Fit, Problem, refit

POOL = 15  # late survivors in the first pool, in units of k: with 5 true features are often missing, 20 gain nothing more
REGROWTH = 0.01  # share of the objective that growing anew has to gain: less is found without end where labels are noisy
WANTED = 5  # columns of the steepest gradient that join the pool in each round, in units of k


def swap(problem: Problem, Z, first, support, fit: Fit, *, n_tries: int = 10, max_swaps: int = 100):
    """Exchange units of the support for others of the pool while that lowers the refitted objective.

    Several exchanges that the model predicts to pay, each with units of its own, are tried at once; where that does not
    pay, fewer; at last the ``n_tries`` best ones each alone.

    Parameters
    ----------
    problem : Problem
    Z, first
        The pool, see :func:`exchange_changes`.
    support : ndarray of shape (k,), int
        Units of the pool.
    fit : Fit
        Of the support.

    Returns
    -------
    support : ndarray of shape (k,), int
    fit : Fit
    """
    A = _columns(Z, first, support)
    for _ in range(max_swaps):
        change = exchange_changes(problem, Z, first, support, A, fit)
        for trial in proposals(change, n_tries):
            new = support.copy()
            for out, entering in trial:
                new[out] = entering
            new_A = _columns(Z, first, new)
            new_fit = refit(problem, new_A, _move(fit.theta, first, support, new), fit.intercept)
            if new_fit.value < fit.value - 1e-6 * abs(fit.value):
                support, fit, A = new, new_fit, new_A
                break
        else:
            break
    return support, fit


def regrow(problem: Problem, Z, first, support, fit: Fit):
    """Grow the support by the steepest units of the pool, a few at a time, to twice its size, and cut it back as slowly.

    It leaves local optima that no single exchange leaves: with many wrong units at once each right one looks useless.

    Returns
    -------
    support : ndarray of shape (k,), int
    fit : Fit
    """
    k, sizes = len(support), np.diff(first)
    some = max(1, k // 8)
    units, theta = support, fit.theta
    widest = min(2 * k, len(sizes))
    growing = True
    while True:
        if len(units) > k or not growing:
            fit = refit(problem, _columns(Z, first, units), theta, fit.intercept)
        growing = growing and len(units) < widest
        if growing:
            gradient = Z.T @ fit.residual.astype(Z.dtype)
            steep = np.add.reduceat((gradient**2).sum(axis=1), first[:-1]) / sizes
            steep[units] = -1.0
            entering = np.argsort(-steep, kind="stable")[: min(some, widest - len(units))]
            new = np.concatenate([units, entering])
            units, theta = new, _move(fit.theta, first, units, new)
        elif len(units) == k:
            return units, fit
        else:
            units, theta = _strongest(fit.theta, first, units, max(k, len(units) - some))


def _strongest(theta, first, units, count):
    """The strongest units and their coefficients."""
    sizes = np.diff(first)[units]
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    strength = np.add.reduceat((theta**2).sum(axis=1), begins) / sizes
    stay = units[np.sort(np.argsort(-strength, kind="stable")[:count])]
    return stay, _move(theta, first, units, stay)


def _columns(Z, first, units):
    columns = units if len(first) - 1 == Z.shape[1] else unit_columns(first, units)
    return np.take(Z, columns, axis=1).astype(np.float64, copy=False)


def _move(theta, first, old, new):
    """Coefficients for the new support: those of the units that stay, zero for the others."""
    blocks = dict(zip(old.tolist(), np.split(theta, np.cumsum(np.diff(first)[old])[:-1]), strict=True))
    empty = theta[:0]
    return np.concatenate([blocks.get(u, np.zeros((first[u + 1] - first[u], theta.shape[1]))) for u in new.tolist()] or [empty])


def polish(
    design: Design,
    y,
    loss: Loss,
    sample_weight,
    kept,
    coef,
    intercept,
    dropped_at,
    *,
    fit_intercept=True,
    prior=None,
    groups=None,
    rounds: int = 10,
):
    """Swap within the late survivors, then within the columns of the largest gradient too, until nothing changes.

    Parameters
    ----------
    design : Design
        All features.
    kept, coef, intercept, dropped_at
        What annealing left.
    prior : Prior or None
    groups : ndarray of shape (n_features,), int, or None
        Group of each feature: groups are exchanged as a whole.
    rounds : int
        Full passes over all columns at most; 0 for swaps alone.

    Returns
    -------
    kept : ndarray of shape (k,), ascending
    coef : ndarray of shape (k, width, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    """
    problem = Problem(y, loss, sample_weight, fit_intercept, prior, design.width, design.n_knots)
    units = np.arange(design.n_features) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_units = int(units.max()) + 1
    members = None if groups is None else np.split(np.argsort(units, kind="stable"), np.cumsum(np.bincount(units))[:-1])
    size = np.bincount(units) * design.width * y.shape[1]

    fell = np.zeros(n_units, int)
    fell[units] = dropped_at
    chosen = np.unique(units[kept])
    k = len(chosen)
    late = np.argsort(-fell, kind="stable")[: min(n_units, max(POOL * k, k + 20))]
    pool = np.union1d(late, chosen)
    Z, first = _pool_matrix(design, pool, members)
    support = np.searchsorted(pool, chosen)
    fit = refit(problem, _columns(Z, first, support), _by_unit(coef, kept, chosen, members), np.asarray(intercept, dtype=float))
    annealed = support
    support, fit = swap(problem, Z, first, support, fit)
    misled = 4 * np.isin(annealed, support, invert=True).sum() > k  # annealing was: many units had to be exchanged, or fell early
    for _ in range(rounds):
        improved = False
        if len(pool) < n_units:
            gradient = design.gradient(fit.residual)
            steep = np.bincount(units, np.einsum("mwq,mwq->m", gradient, gradient)) / size
            steep[pool] = 0.0
            new = np.sort(np.argsort(-steep, kind="stable")[: min(WANTED * k, n_units - len(pool))])
            more, more_first = _pool_matrix(design, new, members)
            Z, first, pool = np.hstack([Z, more]), np.concatenate([first, first[-1] + more_first[1:]]), np.concatenate([pool, new])
            # The old pool has nothing to offer: exchanges with the newcomers decide whether to go on.
            fresh = np.concatenate([support, np.arange(len(pool) - len(new), len(pool))])
            columns, small = unit_columns(first, fresh), np.concatenate([[0], np.cumsum(np.diff(first)[fresh])])
            found, fit = swap(problem, Z[:, columns], small, np.arange(k), fit)
            support, improved = fresh[found], not np.array_equal(found, np.arange(k))
            if improved:
                support, fit = swap(problem, Z, first, support, fit)
                misled = True
        if misled and not improved:
            found, found_fit = swap(problem, Z, first, *regrow(problem, Z, first, support, fit))
            if found_fit.value < fit.value - REGROWTH * abs(fit.value):
                support, fit, improved = found, found_fit, True
        if not improved:
            break
    chosen = pool[support]
    fit = refit(problem, _columns(Z, first, support), fit.theta, fit.intercept, tol=1e-9)
    theta, intercept = fit.theta, fit.intercept

    features = chosen if members is None else np.concatenate([members[u] for u in chosen])
    order = np.argsort(features)
    return features[order], theta.reshape(len(features), design.width, -1)[order], intercept


def _by_unit(coef, kept, chosen, members):
    """Coefficients of the kept features, (columns, n_outputs), in the order of the chosen units."""
    if members is None:
        return coef.reshape(-1, coef.shape[2])
    return np.concatenate([coef[np.searchsorted(kept, members[u])] for u in chosen]).reshape(-1, coef.shape[2])


def _pool_matrix(design, pool, members):
    """Standardised columns of the units, unit after unit, and where each unit's columns begin."""
    if members is None:
        Z = design.keep(pool).matrix()
        return Z, np.arange(0, Z.shape[1] + 1, design.width)
    features = np.concatenate([members[u] for u in pool])
    order = np.argsort(features)
    Z = design.keep(features[order]).matrix()
    back = np.argsort(order)
    columns = (back[:, None] * design.width + np.arange(design.width)).ravel()
    return Z[:, columns], design.width * np.concatenate([[0], np.cumsum([len(members[u]) for u in pool])])
