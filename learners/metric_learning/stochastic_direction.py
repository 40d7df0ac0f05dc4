"""Direction of an sDist step by stabilised truncated SGD, Algorithm 3.4 of Ma (thesis)."""

from functools import partial
from typing import Any

import numpy as np

from ..solvers.schedules import inverse, step_counts
from .feature_map import RestrictedColumns

N_PATHS = 8  # M: number of paths
BURST = 20  # K: sampled rows per burst
N_BURSTS = 5  # n_K: bursts per stage
FIRST_BURSTS = 25  # bursts of the first stage, if it starts from a random vector
# The schedule reaches kappa after half of the stages, and the rest use the final columns
N_STAGES = 12
# Speed of the schedule: 0.56, 0.33, 0.20, 0.11, 0.05 of the columns remain after the first stages
MU = 3.0
RATE = 1.0  # norm of the first update of a path, relative to its vector
REJECTION = 0.05  # beta_0 in (3.14), with gamma = 0


def sgd_step(
    booster: Any, weight: np.ndarray, allowed: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the sparse leading eigenvector of A by stochastic (Oja) steps on parallel paths.

    The matrix A is defined in :mod:`.directions`, and the equations are those of Ma (thesis). In
    each burst, a path samples ``BURST`` rows with probabilities proportional to their weights and,
    for each row, one neighbour of the same class and one of another class. The vector v of the path
    then takes a step along an estimate of A v from these differences. Informative truncation
    (Algorithm 3.2) shrinks entry j of v by g k_j, where g is a threshold and k_j is the number of
    sampled differences in which column j is non-zero. The selection probability of column j, eq.
    (3.9), is the fraction of the bursts with k_j > 0, over all paths, that leave entry j non-zero.

    After each stage, the columns with the lowest probabilities are dropped permanently; if these
    are equal, the columns with the smallest absolute entries in the average of the path vectors.
    The threshold g is then set to a quantile of the absolute updates, each divided by its k_j. Eq.
    (3.14) gives the fraction of the updates below this quantile. The number of columns decreases to
    kappa as in feature selection with annealing, since a threshold on the probability would not
    control it.

    Parameters
    ----------
    booster : MetricBooster
        Boosting run. All paths start from its ``leading`` vector, so that their signs agree. After
        the first stage, this vector is set to the mean of the paths.
    weight : ndarray of shape (n,)
        Row weights.
    allowed : ndarray of shape (n_columns,) or None
        Mask that is non-zero for the columns that the step may use; None means all columns.

    Returns
    -------
    support : ndarray of int
        Indices of at most kappa columns, in ascending order.
    values : ndarray
        Entries of the mean over the paths, scaled to unit length.
    """
    columns, rng = booster.columns, booster.random_state
    active = np.arange(columns.n_columns) if allowed is None else np.flatnonzero(allowed)
    cold = booster.leading is None
    leading = rng.standard_normal(columns.n_columns) if cold else booster.leading
    leading = np.pad(leading, (0, columns.n_columns - len(leading))).astype(columns.base.dtype)
    paths = np.tile(_unit(leading[active]), (N_PATHS, 1))
    n_active, kappa = len(active), min(booster.kappa, len(active))
    gravity, n_steps = 0.0, 0
    for stage, target in enumerate(step_counts(partial(inverse, mu=MU), n_active, kappa, N_STAGES)):
        rows = columns.restricted(active)
        touched, kept, pool = np.zeros((2, len(active)), np.int64), None, []
        for _ in range(FIRST_BURSTS if cold and stage == 0 else N_BURSTS):
            n_steps += 1
            step, count = _sampled_products(rows, paths, weight, booster, rng)
            step *= (RATE / np.sqrt(n_steps) / np.maximum(np.linalg.norm(step, axis=1), 1e-300))[
                :, None
            ]
            met = count > 0
            pool.append((np.abs(step) / np.maximum(count, 1))[met])
            paths = paths + step
            shrunk = np.sign(paths) * np.maximum(np.abs(paths) - gravity * count, 0.0)
            paths = _unit(np.where(shrunk.any(axis=1)[:, None], shrunk, paths))
            touched[0] += met.sum(axis=0)
            touched[1] += (met & (paths != 0)).sum(axis=0)
        mean = paths.mean(axis=0)
        if stage == 0:
            booster.leading = np.zeros(columns.n_columns, columns.base.dtype)
            booster.leading[active] = mean
        if target < len(active):
            probability = np.where(touched[0] > 0, touched[1] / np.maximum(touched[0], 1), 1.0)
            kept = np.sort(np.lexsort((-np.abs(mean), -probability))[:target])
            active, paths = active[kept], _unit(paths[:, kept])
        updates = np.concatenate(pool)
        gravity = (
            float(np.quantile(updates, REJECTION * len(active) / n_active)) if len(updates) else 0.0
        )
    values = paths.mean(axis=0).astype(np.float64)
    used = values != 0.0
    return active[used], _unit(values[used])


def _sampled_products(
    rows: RestrictedColumns,
    paths: np.ndarray,
    weight: np.ndarray,
    booster: Any,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Sample A v (n_paths, n_active), and count the non-zero differences in each column."""
    anchors = rng.choice(len(weight), (len(paths), BURST), p=weight / weight.sum())
    product, count = np.zeros_like(paths), np.zeros(paths.shape, np.int32)
    for sign, near in ((1.0, booster.other), (-1.0, booster.same)):
        partners = near[anchors, rng.randint(near.shape[1], size=anchors.shape)]
        difference = rows.differences(
            np.where(partners >= 0, anchors, 0).ravel(),
            np.where(partners >= 0, partners, 0).ravel(),
        )
        difference = difference.reshape(*anchors.shape, -1)
        projection = difference @ paths[:, :, None]
        product += sign * np.matmul(projection.transpose(0, 2, 1), difference)[:, 0]
        count += np.count_nonzero(difference, axis=1)
    return product, count


def _unit(v: np.ndarray) -> np.ndarray:
    """Divide a vector, or each row of a matrix, by its norm."""
    norm = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(norm > 0, norm, 1.0)
