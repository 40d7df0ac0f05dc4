"""Hot loops of the designs: free functions on arrays. Those with ``begin, end`` do a part of the work, see ``in_threads``.

Values of piecewise-linear designs are stored as one byte, the ``code``: the position on the knots' axis, in ``sublevels`` steps per
bin, and MISSING for NaN. A response is then a table of 256 numbers per feature and a gradient a histogram of 256 bins. Codes lie as
(block, feature, ROWS): ROWS neighbouring rows of one feature are contiguous.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from ..objective.margin_kernels import loss_terms
from ..sources.matrix import CHUNK

ROWS = 512
MISSING = 255


def _encode_knots(X, knots, sublevels, codes):
    for x, edges, code in zip(X.T, knots, codes, strict=True):
        missing = np.isnan(x)
        b = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        width = edges[b + 1] - edges[b]
        part = np.clip(np.divide(x - edges[b], width, out=np.zeros(len(x)), where=width > 0), 0.0, 1.0)
        code[: len(x)] = np.where(missing, MISSING, (b + np.where(missing, 0.0, part)) * sublevels + 0.5).astype(np.uint8)


@jit(plain=_encode_knots)
def encode_knots(X, knots, sublevels, codes):
    """Codes of a block of rows (n, m) on any ascending knots (m, B + 1), into ``codes`` (m, ROWS)."""
    n, m = X.shape
    n_bins = knots.shape[1] - 1
    for j in range(m):
        edges = knots[j]
        for i in range(n):
            x = X[i, j]
            if np.isnan(x):
                codes[j, i] = MISSING
                continue
            b = min(max(np.searchsorted(edges, x, side="right") - 1, 0), n_bins - 1)
            width = edges[b + 1] - edges[b]
            part = min(max((x - edges[b]) / width, 0.0), 1.0) if width > 0 else 0.0
            codes[j, i] = np.uint8((b + part) * sublevels + 0.5)


_TILE = 64


def _encode_even(X, low, scale, top, codes):
    place = (X - low) * scale
    missing = np.isnan(place)
    codes[:, : len(X)] = np.where(missing, MISSING, np.clip(place, 0, top).astype(np.float64) + 0.5).astype(np.uint8).T
    return missing.any()


@jit(plain=_encode_even)
def encode_even(X, low, scale, top, codes):
    """Codes of a block of rows (n, m) on equidistant knots, ``(x - low) * scale`` rounded and kept in 0..top; True if NaN was met.

    Tiles of columns are encoded in the order of a row-major X and turned in the first-level cache.
    """
    n, m = X.shape
    tile = np.empty((n, _TILE), np.uint8)
    missing = False
    for first in range(0, m, _TILE):
        width = min(_TILE, m - first)
        a, s = low[first : first + width], scale[first : first + width]
        for i in range(n):
            x, row = X[i, first : first + width], tile[i]
            for j in range(width):
                p = (x[j] - a[j]) * s[j]
                q = min(max(p, 0), top)
                row[j] = np.uint8(q + 0.5) if p == p else np.uint8(MISSING)
        for j in range(width):
            code = codes[first + j]
            most = np.uint8(0)
            for i in range(n):
                code[i] = tile[i, j]
                most = max(most, tile[i, j])
            missing |= most == MISSING
    return missing


@jit(plain=_encode_even)
def encode_even_columns(X, low, scale, top, codes):
    """The same for a column-major X."""
    n, m = X.shape
    missing = False
    for j in range(m):
        x, code, a, s = X[:, j], codes[j], low[j], scale[j]
        most = np.uint8(0)
        for i in range(n):
            p = (x[i] - a) * s
            q = min(max(p, 0), top)
            code[i] = np.uint8(q + 0.5) if p == p else np.uint8(MISSING)
            most = max(most, code[i])
        missing |= most == MISSING
    return missing


@jit
def expand_codes(codes, features, table, out):
    """Columns of small designs: ``out[i, j * width + b] = table[j, c, b]``, c the code of row i and ``features[j]``."""
    rows = codes.shape[2]
    m, _, width = table.shape
    for b in range(codes.shape[0]):
        for i in range(b * rows, min(len(out), (b + 1) * rows)):
            row = out[i]
            for j in range(m):
                entry = table[j, codes[b, features[j], i - b * rows]]
                for k in range(width):
                    row[j * width + k] = entry[k]


@jit
def table_scores(begin, end, codes, features, table, out):
    """Add ``sum_j table[j, c_ij]`` to ``out`` (n_blocks, ROWS), c_ij the code of row i and ``features[j]``."""
    rows = codes.shape[2]
    for b in range(begin, end):
        score = out[b]
        for j in range(len(features)):
            response = table[j]
            code = codes[b, features[j]]
            for i in range(rows):
                score[i] += response[code[i]]


@jit
def _two_histograms(codes, first, second, residual, out, other):
    """Histograms of two features, each in four parts: equal codes in a row need not wait for each other."""
    n_blocks, _, rows = codes.shape
    h, g = np.zeros((4, 256)), np.zeros((4, 256))
    for b in range(n_blocks):
        c, d, r = codes[b, first], codes[b, second], residual[b]
        for i in range(0, rows, 4):
            r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
            h[0, c[i]] += r0
            h[1, c[i + 1]] += r1
            h[2, c[i + 2]] += r2
            h[3, c[i + 3]] += r3
            g[0, d[i]] += r0
            g[1, d[i + 1]] += r1
            g[2, d[i + 2]] += r2
            g[3, d[i + 3]] += r3
    for c in range(256):
        out[c] = h[0, c] + h[1, c] + h[2, c] + h[3, c]
        other[c] = g[0, c] + g[1, c] + g[2, c] + g[3, c]


def _table_histograms(begin, end, codes, features, residual, out):
    for j in range(2 * begin, min(2 * end, len(features))):
        out[j] = np.bincount(codes[:, features[j]].ravel(), residual.ravel(), 256)


@jit(plain=_table_histograms)
def table_histograms(begin, end, codes, features, residual, out):
    """Histograms ``out[j, c]``: sum of residual_i over the rows where ``features[j]`` has code c.

    ``residual`` (n_blocks, ROWS) in double precision, ``out`` (m, 256).
    """
    m = len(features)
    for pair in range(begin, end):
        j = 2 * pair
        k = min(j + 1, m - 1)
        _two_histograms(codes, features[j], features[k], residual, out[j], out[k])


# -- dense matrices --------------------------------------------------------------------------------------------------------------
#
# Rows are cut into chunks of fixed size; each chunk sums by itself, in the data's precision, and the chunks' sums are added in
# their order in double precision: the result does not depend on how many threads share the chunks. Values are centred by
# ``shift`` as they are read, so that a large common offset costs no digits.


_FAST = {"reassoc", "contract", "nsz", "arcp"}  # reordering only: NaN and infinity stay what they are


@jit(fastmath=_FAST, error_model="numpy")
def _dot(X, shift, raw, i, rows, out):
    """Products of the centred rows i .. i + rows (at most 8) with ``raw``: eight at once read ``raw`` and ``shift`` once."""
    m = X.shape[1]
    if rows == 8:
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        x4, x5, x6, x7 = X[i + 4], X[i + 5], X[i + 6], X[i + 7]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = shift[0] * 0
        for j in range(m):
            b, c = raw[j], shift[j]
            s0 += b * (x0[j] - c)
            s1 += b * (x1[j] - c)
            s2 += b * (x2[j] - c)
            s3 += b * (x3[j] - c)
            s4 += b * (x4[j] - c)
            s5 += b * (x5[j] - c)
            s6 += b * (x6[j] - c)
            s7 += b * (x7[j] - c)
        out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = s0, s1, s2, s3, s4, s5, s6, s7
    else:
        for a in range(rows):
            x = X[i + a]
            s = shift[0] * 0
            for j in range(m):
                s += raw[j] * (x[j] - shift[j])
            out[a] = s


@jit(fastmath=_FAST, error_model="numpy")
def _accumulate(X, shift, residual, i, rows, out):
    """Add residual-weighted rows i .. i + rows (at most 8) to ``out``."""
    m = X.shape[1]
    if rows == 8:
        r0, r1, r2, r3 = residual[0], residual[1], residual[2], residual[3]
        r4, r5, r6, r7 = residual[4], residual[5], residual[6], residual[7]
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        x4, x5, x6, x7 = X[i + 4], X[i + 5], X[i + 6], X[i + 7]
        total = r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7
        for j in range(m):
            s = r0 * x0[j] + r1 * x1[j] + r2 * x2[j] + r3 * x3[j] + r4 * x4[j] + r5 * x5[j] + r6 * x6[j] + r7 * x7[j]
            out[j] += s - total * shift[j]
    else:
        for a in range(rows):
            r, x = residual[a], X[i + a]
            for j in range(m):
                out[j] += r * (x[j] - shift[j])


@jit(fastmath=_FAST, error_model="numpy")
def _fused_chunk(source, columns, target, X, shift, raw, constant, y, weight, kind, parameter, start, stop, out, sums):
    """One chunk of rows: gather columns of ``source`` (where there are any), scores, loss, gradient, in one read."""
    m = X.shape[1]
    scores = np.empty(8, X.dtype)
    value, total = 0.0, 0.0
    for i in range(start, stop, 8):
        rows = min(8, stop - i)
        if columns.shape[0]:
            for a in range(rows):
                x, wide = target[i + a], source[i + a]
                for j in range(m):
                    x[j] = wide[columns[j]]
        _dot(X, shift, raw, i, rows, scores)
        for a in range(rows):
            v, slope = loss_terms(kind, parameter, y[i + a, 0], scores[a] + constant)
            value += weight[i + a] * v
            slope *= weight[i + a]
            total += slope
            scores[a] = slope
        _accumulate(X, shift, scores, i, rows, out)
    sums[0], sums[1] = value, total


@jit
def fused_rows(begin, end, source, columns, target, X, shift, raw, constant, y, weight, kind, parameter, partial, sums):
    """Loss and gradient of a row-major matrix in one read; ``partial`` (n_chunks, m) starts at zero, ``sums`` (n_chunks, 2).

    With ``columns``, X is filled from those of ``source`` on the way: ``target`` is X then (X itself may be read-only elsewhere).
    """
    for c in range(begin, end):
        stop = min(X.shape[0], (c + 1) * CHUNK)
        first = c * CHUNK
        _fused_chunk(source, columns, target, X, shift, raw, constant, y, weight, kind, parameter, first, stop, partial[c], sums[c])


@jit(fastmath=_FAST, error_model="numpy")
def _first_chunk(X, shift, weight, residual, start, stop, out):
    """Sums of w d, w d^2 and r d, d = x - shift, of one chunk of a row-major matrix, into ``out`` (3, m)."""
    m = X.shape[1]
    first, second, product = out[0], out[1], out[2]
    i = start
    while i + 4 <= stop:
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        w0, w1, w2, w3 = weight[i], weight[i + 1], weight[i + 2], weight[i + 3]
        r0, r1, r2, r3 = residual[i], residual[i + 1], residual[i + 2], residual[i + 3]
        for j in range(m):
            c = shift[j]
            d0, d1, d2, d3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
            e0, e1, e2, e3 = w0 * d0, w1 * d1, w2 * d2, w3 * d3
            first[j] += (e0 + e1) + (e2 + e3)
            second[j] += (e0 * d0 + e1 * d1) + (e2 * d2 + e3 * d3)
            product[j] += (r0 * d0 + r1 * d1) + (r2 * d2 + r3 * d3)
        i += 4
    while i < stop:
        x = X[i]
        for j in range(m):
            d = x[j] - shift[j]
            first[j] += weight[i] * d
            second[j] += weight[i] * d * d
            product[j] += residual[i] * d
        i += 1


@jit
def first_rows(begin, end, X, shift, weight, residual, partial):
    """Moments and product with a residual of a row-major matrix in one read; ``partial`` (n_chunks, 3, m) starts at zero."""
    for c in range(begin, end):
        _first_chunk(X, shift, weight, residual, c * CHUNK, min(X.shape[0], (c + 1) * CHUNK), partial[c])


@jit(fastmath=_FAST, error_model="numpy")
def _first_columns_chunk(X, shift, weight, residual, start, stop, out):
    for j in range(X.shape[1]):
        x, c = X[start:stop, j], shift[j]
        w, r = weight[start:stop], residual[start:stop]
        first = second = product = c * 0
        for i in range(len(x)):
            d = x[i] - c
            first += w[i] * d
            second += w[i] * d * d
            product += r[i] * d
        out[0, j], out[1, j], out[2, j] = first, second, product


@jit
def first_columns(begin, end, X, shift, weight, residual, partial):
    """:func:`first_rows` for a column-major matrix."""
    for c in range(begin, end):
        _first_columns_chunk(X, shift, weight, residual, c * CHUNK, min(X.shape[0], (c + 1) * CHUNK), partial[c])


@jit(fastmath=_FAST, error_model="numpy")
def _fused_columns_chunk(X, shift, raw, constant, y, weight, kind, parameter, start, stop, out, sums):
    n = stop - start
    scores = np.zeros(n, X.dtype)
    for j in range(X.shape[1]):
        x, c, b = X[start:stop, j], shift[j], raw[j]
        if b != 0:
            for i in range(n):
                scores[i] += b * (x[i] - c)
    value, total = 0.0, 0.0
    for i in range(n):
        v, slope = loss_terms(kind, parameter, y[start + i, 0], scores[i] + constant)
        value += weight[start + i] * v
        slope *= weight[start + i]
        total += slope
        scores[i] = slope
    for j in range(X.shape[1]):
        x, c = X[start:stop, j], shift[j]
        s = c * 0
        for i in range(n):
            s += scores[i] * (x[i] - c)
        out[j] = s
    sums[0], sums[1] = value, total


@jit
def fused_columns(begin, end, X, shift, raw, constant, y, weight, kind, parameter, partial, sums):
    """:func:`fused_rows` for a column-major matrix: two reads, in stretches of a column."""
    for c in range(begin, end):
        stop = min(X.shape[0], (c + 1) * CHUNK)
        _fused_columns_chunk(X, shift, raw, constant, y, weight, kind, parameter, c * CHUNK, stop, partial[c], sums[c])


@jit
def gather_rows(begin, end, X, columns, out):
    """Copy the chosen columns (uint32: no check for negative positions) of a row-major matrix."""
    for i in range(begin, end):
        x, row = X[i], out[i]
        for j in range(len(columns)):
            row[j] = x[columns[j]]
