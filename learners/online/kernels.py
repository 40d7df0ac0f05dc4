"""Hot loops of the sparse online learners: one pass over chosen rows of a CSR matrix, work proportional to their non-zeros."""

from __future__ import annotations

import math

import numpy as np

from ..compilation import jit
from ..objective.margin_kernels import margin_slope


@jit(plain=True)
def shrink(w, gravity):
    """Soft threshold T(w, g) of (3.6)."""
    if w > gravity:
        return w - gravity
    if w < -gravity:
        return w + gravity
    return 0.0


@jit
def stabilised_stage(
    data, indices, start, end, y, weight, orders, burst, loss, h, rate, fit_intercept, gravity,
    coef, intercept, bursts, counts, seen, before, pool, pooled, strides, first, last,
):  # fmt: skip
    """Run one stage, or a part of it, of informative truncated bursts (Algorithms 3.2 and 3.3) on the paths ``first`` .. ``last
    - 1``.

    Rows ``orders[m]`` are taken in turn; after every ``burst`` of them each coefficient that met a non-zero shrinks by
    ``gravity`` times the number of times it did. ``counts`` (p,) holds that number (zero on entry and exit), and ``bursts``
    (p, 2) the bursts that changed a feature and those that left it non-zero, over all paths of the call. ``pool[m]`` collects
    updates per touch for the next gravity, every one until it is full, then every second one, and so on; ``pooled[m]`` of them
    are there and every ``strides[m]``-th one comes next. ``seen`` and ``before`` (p + 1,) are scratch. ``indices`` and ``seen``
    are unsigned, which spares the test for negative ones. Which features a burst meets cannot be predicted: nothing branches on it.
    """
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
                if step == 0.0:
                    continue
                for e in range(start[i], end[i]):
                    j = indices[e]
                    k = counts[j]
                    seen[n_seen] = j
                    before[n_seen] = w[j]
                    n_seen += 1 if k == 0 else 0
                    counts[j] = k + 1
                    w[j] += step * data[e]
                if fit_intercept:
                    b += step
            for t in range(n_seen):
                j = seen[t]
                k = counts[j]
                if skip == 0:
                    if filled == size:  # keep every second entry, and collect half as often from now on
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
                counts[j] = 0
                bursts[j, 0] += 1
                bursts[j, 1] += 1 if left > 0.0 else 0
            position = stop
        intercept[m] = b
        pooled[m] = filled
        strides[m] = stride


@jit
def renumber_columns(data, indices, start, end, place):
    """Move the entries of columns in use (``place[j] >= 0``) to the front of their row under the number ``place[j]``, and shorten
    the row: nothing is copied elsewhere.
    """
    for i in range(len(start)):
        at = start[i]
        for e in range(start[i], end[i]):
            j = place[indices[e]]
            if j >= 0:
                indices[at] = j
                data[at] = data[e]
                at += 1
        end[i] = at


# The plain forms below take one row at a time as an array. Sums are taken in the order of the compiled loops.


def _shrunk(w, gravity):
    """:func:`shrink` of an array."""
    return np.where(w > gravity, w - gravity, np.where(w < -gravity, w + gravity, 0.0))


def _sum(first, terms):
    return np.cumsum(np.concatenate(([first], terms)))[-1]


def _rows(data, indices, indptr, y, weight, order):
    for i in order:
        row = slice(indptr[i], indptr[i + 1])
        yield indices[row], data[row], y[i], weight[i]


def _truncated_gradient_pass(
    data, indices, indptr, y, weight, order, loss, h, rate, fit_intercept, t, burst, gravity, w, done, b
):  # fmt: skip
    for j, x, target, share in _rows(data, indices, indptr, y, weight, order):
        due = t // burst
        w[j] = np.where(done[j] < due, _shrunk(w[j], (due - done[j]) * burst * gravity), w[j])
        done[j] = np.maximum(done[j], due)
        step = -rate * share * target * margin_slope(loss, h, target * _sum(b, w[j] * x))
        if step != 0.0:
            w[j] += step * x
            if fit_intercept:
                b += step
        t += 1
    return b


@jit(plain=_truncated_gradient_pass)
def truncated_gradient_pass(data, indices, indptr, y, weight, order, loss, h, rate, fit_intercept, t, burst, gravity, w, done, b):
    """SGD with a soft threshold of ``burst * gravity`` after every ``burst`` rows (Algorithm 3.1), applied when a feature is
    next met.

    ``done[j]`` counts the truncations that w[j] has had; ``t`` rows came before. Returns the intercept.
    """
    for i in order:
        due = t // burst
        f = b
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if done[j] < due:
                w[j] = shrink(w[j], (due - done[j]) * burst * gravity)
                done[j] = due
            f += w[j] * data[e]
        step = -rate * weight[i] * y[i] * margin_slope(loss, h, y[i] * f)
        if step != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                w[indices[e]] += step * data[e]
            if fit_intercept:
                b += step
        t += 1
    return b


def _fobos_pass(data, indices, indptr, y, weight, order, loss, h, rate, fit_intercept, t, penalty, w, done, total, b):
    for j, x, target, share in _rows(data, indices, indptr, y, weight, order):
        w[j] = np.where(done[j] < total, _shrunk(w[j], total - done[j]), w[j])
        done[j] = np.maximum(done[j], total)
        eta = rate / np.sqrt(t + 1.0)
        step = -eta * share * target * margin_slope(loss, h, target * _sum(b, w[j] * x))
        if step != 0.0:
            w[j] += step * x
            if fit_intercept:
                b += step
        total += eta * penalty
        t += 1
    return b, total


@jit(plain=_fobos_pass)
def fobos_pass(data, indices, indptr, y, weight, order, loss, h, rate, fit_intercept, t, penalty, w, done, total, b):
    """Forward-backward splitting (3.36) with steps ``rate / sqrt(t)``: the soft thresholds that a feature missed add up.

    ``total`` is the sum of all thresholds so far and ``done[j]`` the part that w[j] has had. Returns intercept and total.
    """
    for i in order:
        f = b
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if done[j] < total:
                w[j] = shrink(w[j], total - done[j])
                done[j] = total
            f += w[j] * data[e]
        eta = rate / np.sqrt(t + 1.0)
        step = -eta * weight[i] * y[i] * margin_slope(loss, h, y[i] * f)
        if step != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                w[indices[e]] += step * data[e]
            if fit_intercept:
                b += step
        total += eta * penalty
        t += 1
    return b, total


@jit(plain=True)
def dual_average(g, t, penalty, gamma, rho):
    """Coefficient of RDA, below (3.35), from the sum g of t gradients."""
    root = np.sqrt(t)
    return -root / gamma * shrink(g / t, penalty + gamma * rho / root)


def _rda_pass(data, indices, indptr, y, weight, order, loss, h, fit_intercept, t, penalty, gamma, rho, g, g0):
    for j, x, target, share in _rows(data, indices, indptr, y, weight, order):
        f = 0.0
        if t > 0:
            root = np.sqrt(t)
            f = _sum(-g0 / (gamma * root), -root / gamma * _shrunk(g[j] / t, penalty + gamma * rho / root) * x)
        step = share * target * margin_slope(loss, h, target * f)
        if step != 0.0:
            g[j] += step * x
            if fit_intercept:
                g0 += step
        t += 1
    return g0


@jit(plain=_rda_pass)
def rda_pass(data, indices, indptr, y, weight, order, loss, h, fit_intercept, t, penalty, gamma, rho, g, g0):
    """Regularised dual averaging: coefficients are computed from the gradients' sums ``g`` when a row needs them. Returns g0."""
    for i in order:
        f = 0.0
        if t > 0:
            f = -g0 / (gamma * np.sqrt(t))
            for e in range(indptr[i], indptr[i + 1]):
                f += dual_average(g[indices[e]], t, penalty, gamma, rho) * data[e]
        step = weight[i] * y[i] * margin_slope(loss, h, y[i] * f)
        if step != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                g[indices[e]] += step * data[e]
            if fit_intercept:
                g0 += step
        t += 1
    return g0
