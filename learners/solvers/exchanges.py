"""The quadratic model in which exchanges of features are judged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..objective.losses import HessianProduct
from .newton import Fit, SupportProblem, gram

_LEAST_SCHUR = 1e-3  # of a unit's own curvature: a unit that the support nearly spans promises no infinite gain


def exchange_changes(
    problem: SupportProblem, Z: np.ndarray, offsets: np.ndarray, support: np.ndarray, A: np.ndarray, fit: Fit
) -> np.ndarray:
    """Predicted change of the objective for every exchange of a unit of the support for one of the pool.

    Adding unit j to the support S moves the others by -C_j d_j with C_j = H_SS^-1 H_Sj, d_j = -S_j^-1 g_j and the Schur complement
    S_j; removing i afterwards costs beta_i' ([H^-1]'_ii)^-1 beta_i' / 2. One product of support and pool serves all pairs.

    Parameters
    ----------
    problem : SupportProblem
    Z : ndarray of shape (n_samples, p)
        Standardised columns of the pool, unit after unit.
    offsets : ndarray of shape (n_units + 1,), int
        Where each unit's columns begin, and the end.
    support : ndarray of shape (k,), int
        Units.
    A : ndarray of shape (n_samples, columns of the support)
    fit : Fit
        Of the support.

    Returns
    -------
    ndarray of shape (k, n_units)
        Negative where the exchange is predicted to lower the objective; +inf for units of the support.
    """
    # Away from the support a coefficient is 0, and so is the penalty's gradient.
    gradient = (Z.T @ fit.residual.astype(Z.dtype)).astype(np.float64)
    change = np.zeros((len(support), len(offsets) - 1))
    single = len(offsets) - 1 == Z.shape[1]
    support_offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[support])])
    block = problem.penalty_curvature()
    for q, hessian_product in enumerate(fit.hessian_products):
        WA = hessian_product(A)
        H, mean, total = gram(problem, A, WA, hessian_product)
        problem.add_penalty_curvature(H)
        inverse = np.linalg.inv(H)
        cross = (WA.astype(Z.dtype).T @ Z).astype(np.float64)
        sums, own = _curvatures(Z, offsets, hessian_product)
        pool_mean = sums / total if total > 0 else np.zeros(Z.shape[1])
        cross -= total * np.outer(mean, pool_mean)
        C = inverse @ cross
        if single:
            diagonal = own[:, 0] - total * pool_mean**2 + block[0, 0]
            schur = np.maximum(diagonal - np.einsum("kp,kp->p", cross, C), _LEAST_SCHUR * diagonal)
            single_changes(inverse, fit.theta[:, q], C, schur, gradient[:, q], change)
            continue
        schur = np.zeros(own.shape)
        for a, b in pairwise(offsets):
            full = own[a:b, : b - a] - total * np.outer(pool_mean[a:b], pool_mean[a:b])
            problem.add_penalty_curvature(full)
            schur[a:b, : b - a] = full - cross[:, a:b].T @ C[:, a:b] + _LEAST_SCHUR * np.trace(full) / (b - a) * np.eye(b - a)
        block_changes(inverse, fit.theta[:, q], C, schur, gradient[:, q], support_offsets, offsets, change)
    change[:, support] = np.inf
    return change


def _curvatures(Z: np.ndarray, offsets: np.ndarray, hessian_product: HessianProduct) -> tuple[np.ndarray, np.ndarray]:
    """Sums of W Z over the rows, and the products Z' W Z within each unit, (n_columns, widest).

    Unit after unit where these have several columns: each product stays in the cache.
    """
    if len(offsets) - 1 == Z.shape[1]:
        WZ = hessian_product(Z).astype(Z.dtype, copy=False)
        return WZ.sum(axis=0, dtype=np.float64), np.einsum("np,np->p", WZ, Z).astype(np.float64)[:, None]
    sums = (Z.T @ hessian_product(np.ones((len(Z), 1), Z.dtype)))[:, 0].astype(np.float64)
    own = np.zeros((Z.shape[1], int(np.diff(offsets).max())))
    for a, b in pairwise(offsets):
        columns = np.ascontiguousarray(Z[:, a:b])
        own[a:b, : b - a] = columns.T @ hessian_product(columns).astype(Z.dtype, copy=False)
    return sums, own


def nearly_as_good(change: np.ndarray, value: float, most: int = 5, share: float = 0.05) -> list[list[tuple[int, float]]]:
    """For each unit of the support the units that could take its place for little.

    Parameters
    ----------
    change : ndarray of shape (k, n_units)
        Of :func:`exchange_changes`.
    value : float
        The objective.
    most : int, default 5
        How many are named.
    share : float, default 0.05
        Of the objective, that an exchange may cost.

    Returns
    -------
    list of list of (int, float)
        Units of the pool and the share of the objective that they cost, least first.

    Examples
    --------
    >>> nearly_as_good(np.array([[np.inf, 0.01, 1.0, 0.002]]), 1.0)
    [[(3, 0.002), (1, 0.01)]]
    """
    found = []
    for row in change / max(abs(value), 1e-300):
        order = np.argsort(row, kind="stable")[:most]
        found.append([(int(j), float(row[j])) for j in order if row[j] < share])
    return found


def unit_columns(offsets: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Columns of the units, unit after unit.

    Examples
    --------
    >>> unit_columns(np.array([0, 2, 3, 6]), np.array([2, 0]))
    array([3, 4, 5, 0, 1])
    """
    if offsets[-1] == len(offsets) - 1:
        return units
    return np.concatenate([np.arange(offsets[u], offsets[u + 1]) for u in units])


def proposals(change: np.ndarray, n_tries: int):
    """Lists of exchanges (out, in) to try, the largest first: half of the compatible ones predicted to improve, and ever fewer.

    Parameters
    ----------
    change : ndarray of shape (k, n_units)
        Predicted change of each exchange.
    n_tries : int
        How many of the best exchanges are tried each alone in the end.

    Yields
    ------
    list of (int, int)
        Positions in the support, and units of the pool.
    """
    flat = change.ravel()
    improving = np.flatnonzero(flat < 0)
    most = max(n_tries, 4 * len(change))
    if len(improving) > most:
        improving = improving[np.sort(np.argpartition(flat[improving], most)[:most])]
    order = improving[np.argsort(flat[improving], kind="stable")]
    ranked = list(zip(*(part.tolist() for part in np.divmod(order, change.shape[1])), strict=True))
    together: list[tuple[int, int]] = []
    used: tuple[set[int], set[int]] = set(), set()
    for out, entering in ranked:
        if out not in used[0] and entering not in used[1]:
            together.append((out, entering))
            used[0].add(out)
            used[1].add(entering)
    size = len(together) // 2
    while size > 1:
        yield together[:size]
        size //= 2
    for pair in ranked[:n_tries]:
        yield [pair]


def single_changes(inverse, theta, C, schur, gradient, out):
    """Add, for every pair (feature i of the support, single column j of the pool), the model's change of the objective.

    Adding j moves the support by C_ij g_j / s_j; leaving i out then costs theta_i'^2 / (2 [H^-1]'_ii).
    """
    step = gradient / schur
    moved = C * step
    moved += theta[:, None]
    moved *= moved
    spread = C * C
    spread /= schur
    spread += np.diag(inverse)[:, None]
    moved /= spread
    moved -= gradient * step
    moved *= 0.5
    out += moved


def block_changes(inverse, theta, C, schur, gradient, offsets, pool_offsets, out):
    """The same for units of several columns: ``offsets`` and ``pool_offsets`` hold where each unit's columns begin, and the end.

    ``schur`` (n_columns, widest): rows of the pool units' Schur complements.
    """
    starts = np.asarray(offsets)
    for width in np.unique(np.diff(starts)):  # units of one width are solved together
        units = np.flatnonzero(np.diff(starts) == width)
        columns = starts[units, None] + np.arange(width)
        own, blocks = theta[columns], inverse[columns[:, :, None], columns[:, None, :]]
        for j, (a, b) in enumerate(pairwise(pool_offsets)):
            s_inverse = np.linalg.inv(schur[a:b, : b - a])
            step = s_inverse @ gradient[a:b]
            c = C[columns, a:b]
            moved = own + c @ step
            spread = blocks + c @ s_inverse @ c.transpose(0, 2, 1)
            costs = np.einsum("uw,uw->u", moved, np.linalg.solve(spread, moved[:, :, None])[:, :, 0])
            out[units, j] += 0.5 * costs - 0.5 * float(gradient[a:b] @ step)
