"""Longer search for the best support if labels are noisy.

With wrong labels, the objective has many local minima that no single exchange can leave. Each round
of the search removes several weak features, and adds features that are highly correlated with the
selected features. The assumed probability of flipped labels is 0.1 (less if a class is rare), which
is more than in most data. At a smaller probability, a few rows dominate, and the lowest objective
more often belongs to a wrong support.
"""

import numpy as np

from ..designs.base import Design
from ..objective.losses import FlippedLogisticLoss
from .exchanges import Pool, curvatures, some_rows, swap
from .newton import Fit, SupportProblem, fit_at, predicted, refit

# Chosen by the detection rate on the simulated data of Barbu et al. (2017) with one label in ten
# drawn at random. The samples differ from those in the tables.
_MORE_FLIPS, _MAX_FLIPS = 5.0, 0.1  # factor for the fraction that the fit assumes, and maximum
_RIDGE = 1e-4
_SEED = 0
_FEW_FEATURES = 15  # maximum number of features for the first type of rounds
_TOLERANCE = 2e-3  # tolerance of the fits
_TRIES = 3  # exchanges that are tried individually
# The search ends after this many consecutive rounds that restore the removed features, since the
# support is then an isolated minimum
_PATIENCE = 3


# Number of rounds, features in the pool, and maximum loss of a round in nats (difference of the
# objective times rows), for few features (weak features are removed) and for many (random features
# are removed)
_PLAN_FEW, _PLAN_MANY = (20, 400, 0.5), (12, 1000, 1.0)


def search(
    design: Design,
    y: np.ndarray,
    sample_weight: np.ndarray,
    kept: np.ndarray,
    *,
    n_rows: float,
    flip: float,
    fixed: np.ndarray | None = None,
) -> np.ndarray:
    """Search for a support with a lower objective, assuming that many labels are flipped.

    Parameters
    ----------
    design : Design
        Design that contains all features, each with a linear term.
    y : ndarray of shape (n_samples, 1)
        Labels, encoded as -1 and +1.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    kept : ndarray of int, ascending
        Initial support.
    n_rows : float
        Sum of the row weights before normalisation.
    flip : float
        Fraction of flipped labels that the fit assumes. The search assumes a fraction that is five
        times as large, but at most 0.1.
    fixed : ndarray of shape (n_features,), bool, or None, default None
        Mask of the features that must remain in the support.

    Returns
    -------
    ndarray of int, ascending
        Best support, which is ``kept`` if no other support is better.
    """
    few = len(kept) <= _FEW_FEATURES
    n_rounds, n_pool, slack = _PLAN_FEW if few else _PLAN_MANY
    problem = SupportProblem(
        y, FlippedLogisticLoss(min(_MORE_FLIPS * flip, _MAX_FLIPS)), sample_weight, shrinkage=_RIDGE
    )
    everything, start = problem, (np.zeros((len(kept), 1)), np.zeros(1))
    rows = some_rows(problem, len(kept))
    if rows is not None:
        problem, n_rows = problem.on(rows), n_rows * sample_weight[rows].sum()
    pool = _neighbours(design, problem, sample_weight, kept, n_pool, fixed, rows)
    support = np.flatnonzero(np.isin(pool.units, kept))
    fit = refit(problem, pool.matrix_of(support), *start, tol=_TOLERANCE)
    best = current = swap(problem, pool, support, fit, n_tries=_TRIES, tol=_TOLERANCE)
    unmoved, rng = 0, np.random.default_rng(_SEED)
    # A small pool allows few other supports.
    for _ in range(min(n_rounds, len(pool.units) // len(kept))):
        grown = _regrown(problem, pool, *current, n_rows, rng, few)
        unmoved = unmoved + 1 if set(grown[0].tolist()) == set(current[0].tolist()) else 0
        if unmoved == _PATIENCE:
            break
        if unmoved:
            continue
        new = swap(problem, pool, *grown, n_tries=_TRIES, tol=_TOLERANCE)
        if new[1].value < best[1].value:
            best = new
        if (new[1].value - current[1].value) * n_rows < slack * rng.random():
            current = new
    searched = np.sort(pool.units[best[0]])
    if rows is None:
        return searched
    return min(
        (kept, searched),
        key=lambda units: refit(everything, design.keep(units).matrix(), *start).value,
    )


def _neighbours(
    design: Design,
    problem: SupportProblem,
    sample_weight: np.ndarray,
    kept: np.ndarray,
    n_pool: int,
    fixed: np.ndarray | None,
    rows: np.ndarray | None,
) -> Pool:
    """Return a pool of ``kept`` and the features most correlated with them, by strength.

    With this order, the random rounds depend on the contents of the columns and not on their
    positions.
    """
    A = design.keep(kept).matrix().astype(np.float64)
    correlation = np.abs(design.gradient(A * sample_weight[:, None])[:, 0])
    each = min(max(2, -(-n_pool // len(kept))), design.n_features)
    nearest = np.argpartition(-correlation, each - 1, axis=0)[:each]
    units = np.union1d(nearest.ravel(), kept)
    Z = design.keep(units).matrix_rows(rows).astype(np.float32, copy=False)
    order = np.argsort(-np.abs((problem.sample_weight * problem.y[:, 0]) @ Z), kind="stable")
    return Pool(
        units[order],
        np.take(Z, order, axis=1),
        np.arange(len(units) + 1),
        None if fixed is None else fixed[units[order]],
    )


def _regrown(
    problem: SupportProblem,
    pool: Pool,
    support: np.ndarray,
    fit: Fit,
    change: np.ndarray,
    n_rows: float,
    rng: np.random.Generator,
    remove_weak: bool,
) -> tuple[np.ndarray, Fit]:
    """Remove features, and then add the same number one at a time."""
    k = len(support)
    free = np.arange(k) if pool.fixed is None else np.flatnonzero(~pool.fixed[support])
    if remove_weak:
        count = int(rng.integers(2, 7))
        least = change.min(axis=1)[free]
        out = free[np.argsort(least * n_rows / 4.0 - rng.gumbel(size=len(free)))[:count]]
    else:
        out = rng.permutation(free)[: max(1, int(len(free) * rng.uniform(0.25, 0.75)))]
    support = np.delete(support, out)
    A = pool.matrix_of(support)
    fit = refit(problem, A, *predicted(problem, A, fit), tol=_TOLERANCE)
    while len(support) < k:
        gradient = (fit.residual[:, 0].astype(pool.Z.dtype) @ pool.Z).astype(np.float64)
        curvature = curvatures(pool, fit.hessian_products[0])[:, 0]
        gain = n_rows * gradient**2 / (2.0 * np.maximum(curvature, 1e-9)) + rng.gumbel(
            size=len(gradient)
        )
        gain[support] = -np.inf
        support = np.append(support, np.argmax(gain))
        A = pool.matrix_of(support)
        # One Newton step suffices, since the next column changes all coefficients
        fit = fit_at(problem, A, *predicted(problem, A, fit))
    return support, fit
