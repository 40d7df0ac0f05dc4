"""Compiled loops of the sparse online learners over the rows of a CSR matrix.

The cost is proportional to the number of non-zeros.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..compilation import jit
from ..objective.margin_kernels import margin_slope


class Rows(NamedTuple):
    """Rows of a CSR matrix, with their labels and weights.

    The entries of row i are at positions ``start[i]`` to ``end[i] - 1``.
    """

    data: np.ndarray
    indices: np.ndarray
    start: np.ndarray
    end: np.ndarray
    y: np.ndarray  # -1 or +1
    weight: np.ndarray


class Descent(NamedTuple):
    """Settings of the gradient steps: code and parameter of the loss, intercept flag, and scale.

    The scale is the step size or, for dual averaging, gamma times the mean squared norm of rows.
    """

    loss: int
    parameter: float
    fit_intercept: bool
    scale: float


class Threshold(NamedTuple):
    """Settings that determine how :func:`thresholded_pass` shrinks coefficients.

    If ``penalty`` is negative, coefficients shrink by ``burst * gravity`` after every ``burst``
    rows, with a constant step size (Algorithm 3.1 of [1]_). Otherwise, ``burst`` and ``gravity``
    must be 1. Coefficients then shrink after every row by ``penalty`` times the step size, which is
    proportional to ``1 / sqrt(t)`` at row t (eq. (3.36) of [1]_).

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017).
    """

    burst: int
    gravity: float
    penalty: float


class Paths(NamedTuple):
    """State of the parallel paths for :func:`stabilised_stage`.

    ``pool[m]`` collects updates: absolute changes of a coefficient in a burst, divided by the
    number of rows that changed it. The next gravity is a quantile of these updates. The pool
    collects every update until it is full, then every second update, and so on. It contains
    ``pooled[m]`` updates and collects every ``strides[m]``-th update.
    """

    coef: np.ndarray  # (n_paths, p)
    intercept: np.ndarray  # (n_paths,)
    pool: np.ndarray  # (n_paths, size)
    pooled: np.ndarray  # (n_paths,)
    strides: np.ndarray  # (n_paths,)


class Counts(NamedTuple):
    """Counters used by one thread of :func:`stabilised_stage`."""

    # (p, 2): number of bursts that changed a feature, and that left it non-zero, over the paths of
    # the thread
    bursts: np.ndarray
    touched: np.ndarray  # (p,): updates of a feature in the current burst; zero on entry and exit
    seen: np.ndarray  # (p + 1,), work array: features that occurred in a burst
    before: np.ndarray  # (p + 1,), work array: their coefficients before the burst


@jit(plain=True)
def shrink(w: float, gravity: float) -> float:
    """Apply the soft threshold function T(w, g), eq. (3.6) of Ma (thesis)."""
    if w > gravity:
        return w - gravity
    if w < -gravity:
        return w + gravity
    return 0.0


@jit
def stabilised_stage(
    rows: Rows,
    orders: np.ndarray,
    burst: int,
    descent: Descent,
    gravity: float,
    paths: Paths,
    counts: Counts,
    first: int,
    last: int,
    count_all: bool,
) -> None:
    """Run a stage, or a part of one, with informative truncation on parallel paths.

    The stage is run for the paths ``first`` to ``last - 1``, as in Algorithms 3.2 and 3.3 of Ma
    (thesis). Path m processes the rows in the order ``orders[m]``. After every ``burst`` rows, each
    coefficient shrinks by ``gravity`` times the number of these rows in which its feature is
    non-zero. Unless ``count_all`` is set, rows in which the slope of the loss is zero are not
    counted. ``indices`` and ``seen`` are unsigned, which avoids checks for negative indices. No
    branch depends on which features occur in a burst, since the processor could not predict such a
    branch.
    """
    data, indices, start, end, y, weight = rows
    loss, h, fit_intercept, rate = descent
    coef, intercept, pool, pooled, strides = paths
    bursts, touched, seen, before = counts
    for m in range(first, last):
        order = orders[m]
        w = coef[m]
        size = pool.shape[1]
        stride = strides[m]
        skip = 0
        filled = pooled[m]
        b = intercept[m]
        position = 0
        while position < len(order):
            stop = min(position + burst, len(order))
            n_seen = 0
            for r in range(position, stop):
                i = order[r]
                f = b
                for e in range(start[i], end[i]):
                    f += w[indices[e]] * data[e]
                step = -rate * weight[i] * y[i] * margin_slope(loss, h, y[i] * f)
                if step == 0.0 and not count_all:
                    continue
                for e in range(start[i], end[i]):
                    j = indices[e]
                    k = touched[j]
                    seen[n_seen] = j
                    before[n_seen] = w[j]
                    n_seen += 1 if k == 0 else 0
                    touched[j] = k + 1
                    w[j] += step * data[e]
                if fit_intercept:
                    b += step
            for t in range(n_seen):
                j = seen[t]
                k = touched[j]
                if skip == 0:
                    # keep every second entry, and collect half as often from now on
                    if filled == size:
                        filled = size // 2
                        for q in range(filled):
                            pool[m, q] = pool[m, 2 * q]
                        stride *= 2
                    pool[m, filled] = abs(w[j] - before[t]) / k
                    filled += 1
                    skip = stride
                skip -= 1
                left = max(abs(w[j]) - gravity * k, 0.0)  # (3.6)
                w[j] = math.copysign(left, w[j])
                touched[j] = 0
                bursts[j, 0] += 1
                bursts[j, 1] += 1 if left > 0.0 else 0
            position = stop
        intercept[m] = b
        pooled[m] = filled
        strides[m] = stride


# The NumPy forms below process one row at a time as an array, with sums in the order of the
# compiled loops.


def _shrunk(w: np.ndarray, gravity: np.ndarray | float) -> np.ndarray:
    """Apply :func:`shrink` to an array."""
    return np.where(w > gravity, w - gravity, np.where(w < -gravity, w + gravity, 0.0))


def _sum(first: float, terms: np.ndarray) -> float:
    return np.cumsum(np.concatenate(([first], terms)))[-1]


def _each(rows: Rows, order: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, float, float]]:
    for i in order:
        row = slice(rows.start[i], rows.end[i])
        yield rows.indices[row], rows.data[row], rows.y[i], rows.weight[i]


def _thresholded_pass(
    rows: Rows,
    order: np.ndarray,
    descent: Descent,
    when: Threshold,
    t: int,
    w: np.ndarray,
    done: np.ndarray,
    due: float,
    b: float,
) -> tuple[float, float]:
    loss, h, fit_intercept, rate = descent
    burst, gravity, penalty = when
    for j, x, target, share in _each(rows, order):
        w[j] = np.where(done[j] < due, _shrunk(w[j], (due - done[j]) * burst * gravity), w[j])
        done[j] = np.maximum(done[j], due)
        eta = rate if penalty < 0.0 else rate / np.sqrt(t + 1.0)
        step = -eta * share * target * margin_slope(loss, h, target * _sum(b, w[j] * x))
        if step != 0.0:
            w[j] += step * x
            if fit_intercept:
                b += step
        t += 1
        due = t // burst if penalty < 0.0 else due + eta * penalty
    return b, due


@jit(plain=_thresholded_pass)
def thresholded_pass(
    rows: Rows,
    order: np.ndarray,
    descent: Descent,
    when: Threshold,
    t: int,
    w: np.ndarray,
    done: np.ndarray,
    due: float,
    b: float,
) -> tuple[float, float]:
    """Take gradient steps with soft-thresholding.

    The thresholding of a coefficient is deferred until its feature occurs. ``t`` is the number of
    earlier rows. ``due`` is the number of soft-thresholding steps so far, each of size ``burst *
    gravity``, and ``done[j]`` is the number of these steps that have been applied to w[j]. The
    intercept and the updated ``due`` are returned.
    """
    data, indices, start, end, y, weight = rows
    loss, h, fit_intercept, rate = descent
    burst, gravity, penalty = when
    for i in order:
        f = b
        for e in range(start[i], end[i]):
            j = indices[e]
            if done[j] < due:
                w[j] = shrink(w[j], (due - done[j]) * burst * gravity)
                done[j] = due
            f += w[j] * data[e]
        eta = rate if penalty < 0.0 else rate / np.sqrt(t + 1.0)
        step = -eta * weight[i] * y[i] * margin_slope(loss, h, y[i] * f)
        if step != 0.0:
            for e in range(start[i], end[i]):
                w[indices[e]] += step * data[e]
            if fit_intercept:
                b += step
        t += 1
        due = float(t // burst) if penalty < 0.0 else due + eta * penalty
    return b, due


def _rda_pass(
    rows: Rows,
    order: np.ndarray,
    descent: Descent,
    t: int,
    penalty: float,
    rho: float,
    g: np.ndarray,
    g0: float,
) -> float:
    loss, h, fit_intercept, scale = descent
    for j, x, target, share in _each(rows, order):
        f = 0.0
        if t > 0:
            root = np.sqrt(t)
            f = _sum(
                -g0 / (scale * root),
                -root / scale * _shrunk(g[j] / t, penalty + scale * rho / root) * x,
            )
        step = share * target * margin_slope(loss, h, target * f)
        if step != 0.0:
            g[j] += step * x
            if fit_intercept:
                g0 += step
        t += 1
    return g0


@jit(plain=_rda_pass)
def rda_pass(
    rows: Rows,
    order: np.ndarray,
    descent: Descent,
    t: int,
    penalty: float,
    rho: float,
    g: np.ndarray,
    g0: float,
) -> float:
    """Run regularised dual averaging, and return the sum g0 of the intercept's gradients.

    Coefficients are computed from the gradient sums ``g`` only when a row requires them.
    """
    data, indices, start, end, y, weight = rows
    loss, h, fit_intercept, scale = descent
    for i in order:
        f = 0.0
        if t > 0:
            root = np.sqrt(t)
            f = -g0 / (scale * root)
            for e in range(start[i], end[i]):
                f += (
                    -root
                    / scale
                    * shrink(g[indices[e]] / t, penalty + scale * rho / root)
                    * data[e]
                )
        step = weight[i] * y[i] * margin_slope(loss, h, y[i] * f)
        if step != 0.0:
            for e in range(start[i], end[i]):
                g[indices[e]] += step * data[e]
            if fit_intercept:
                g0 += step
        t += 1
    return g0
