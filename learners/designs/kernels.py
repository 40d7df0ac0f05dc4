"""Compiled loops of the designs, written as functions of arrays.

Functions with arguments ``begin, end`` process that range of the data; see ``parallel_ranges``.

Piecewise-linear designs store each value as a one-byte ``code``: the position of the value relative
to the knots, in ``sublevels`` steps per bin, or MISSING for NaN. A response is then a table of 256
numbers per feature, and a gradient is a histogram of 256 bins. Codes have shape (block, feature,
ROWS), so that ROWS consecutive rows of a feature are contiguous.
"""

import numpy as np

from ..compilation import jit
from ..objective.margin_kernels import loss_terms
from ..sources.matrix import CHUNK

ROWS = 512
MISSING = 255


# Columns encoded at once in NumPy, and columns encoded before a transposition (a multiple of 8)
_FEW, _TILE = 64, 512


def encode_knots(X: np.ndarray, knots: np.ndarray, sublevels: int, codes: np.ndarray) -> None:
    """Encode a block of rows with m columns, given knots of shape (m, n_bins + 1)."""
    for first in range(0, len(knots), _FEW):
        x, edges = X[:, first : first + _FEW], knots[first : first + _FEW]
        bins = np.zeros(x.shape, np.uint8)
        for edge in edges.T[1:-1]:
            bins += x >= edge
        features = np.arange(len(edges))
        low = edges[features, bins]
        width = edges[features, bins + 1] - low
        part = np.divide(x - low, width, out=np.zeros(x.shape), where=width > 0)
        codes_of_rows = (bins + np.clip(part, 0.0, 1.0)) * sublevels + 0.5
        rows = np.where(np.isnan(x), MISSING, codes_of_rows).astype(np.uint8)
        codes[first : first + _FEW, : len(x)] = rows.T


def _encode_even(
    X: np.ndarray, low: np.ndarray, scale: np.ndarray, top: np.ndarray, codes: np.ndarray
) -> None:
    place = (X - low) * scale
    missing = np.isnan(place)
    codes[:, : len(X)] = (
        np.where(missing, MISSING, np.clip(place, 0, top).astype(np.float64) + 0.5)
        .astype(np.uint8)
        .T
    )
    return missing.any()


@jit
def _exchange(words: np.ndarray, distance: int, shift: int, mask: int) -> None:
    for r in range(8):
        if r & distance == 0:
            part = ((words[r] >> shift) ^ words[r + distance]) & mask
            words[r] ^= part << shift
            words[r + distance] ^= part


@jit
def _turn(words: np.ndarray) -> None:
    """Transpose eight rows of eight bytes by swapping halves, quarters and eighths of words."""
    _exchange(words, 4, np.uint64(32), np.uint64(0x00000000FFFFFFFF))
    _exchange(words, 2, np.uint64(16), np.uint64(0x0000FFFF0000FFFF))
    _exchange(words, 1, np.uint64(8), np.uint64(0x00FF00FF00FF00FF))


@jit(plain=_encode_even)
def encode_even(
    X: np.ndarray, low: np.ndarray, scale: np.ndarray, top: np.ndarray, codes: np.ndarray
) -> None:
    """Encode a block of rows, and return whether it contains NaN.

    The knots are equidistant: a code is ``(x - low) * scale``, clipped to [0, ``top``] and rounded.
    """
    n, m = X.shape
    zero = top - top
    # In the precision of the data: a mixed loop is slower
    half, nan = zero + X.dtype.type(0.5), zero + X.dtype.type(MISSING)
    tile, words, most = np.zeros((8, _TILE), np.uint8), np.empty(8, np.uint64), np.uint8(0)
    wide, target = tile.view(np.uint64), codes.view(np.uint64)
    for first in range(0, m, _TILE):
        width = min(_TILE, m - first)
        a, s = low[first : first + width], scale[first : first + width]
        for i in range(0, n, 8):
            if i + 8 > n:
                tile[:] = 0
            for r in range(min(8, n - i)):
                x, row = X[i + r, first : first + width], tile[r]
                for j in range(width):
                    p = (x[j] - a[j]) * s[j]
                    row[j] = np.uint8(np.int32(min(max(p, zero), top) + half if p == p else nan))
                for j in range(width):
                    most = max(most, row[j])
            for j in range(0, width, 8):
                for r in range(8):
                    words[r] = wide[r, j >> 3]
                _turn(words)
                for r in range(min(8, width - j)):
                    target[first + j + r, i >> 3] = words[r]
    return most == MISSING


@jit(plain=_encode_even)
def encode_even_columns(
    X: np.ndarray, low: np.ndarray, scale: np.ndarray, top: np.ndarray, codes: np.ndarray
) -> None:
    """Encode a column-major X as :func:`encode_even` does."""
    n, m = X.shape
    zero = top - top
    half, nan = zero + X.dtype.type(0.5), zero + X.dtype.type(MISSING)
    most = np.uint8(0)
    for j in range(m):
        x, code, a, s = X[:, j], codes[j], low[j], scale[j]
        for i in range(n):
            p = (x[i] - a) * s
            code[i] = np.uint8(np.int32(min(max(p, zero), top) + half if p == p else nan))
        for i in range(n):
            most = max(most, code[i])
    return most == MISSING


@jit
def table_scores(
    begin: int,
    end: int,
    codes: np.ndarray,
    features: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add ``sum_j table[j, c_ij]`` to ``out``, of shape (n_blocks, ROWS).

    c_ij is the code of row i and feature ``features[j]``.
    """
    for b in range(begin, end):
        score = out[b]
        for j in range(len(features)):
            response = table[j]
            code = codes[b, features[j]]
            for i in range(ROWS):
                score[i] += response[code[i]]


def _table_histograms(
    begin: int,
    end: int,
    codes: np.ndarray,
    features: np.ndarray,
    residual: np.ndarray,
    out: np.ndarray,
) -> None:
    for j in range(2 * begin, min(2 * end, len(features))):
        out[j] = np.bincount(codes[:, features[j]].ravel(), residual.ravel(), 256)


@jit(plain=_table_histograms)
def table_histograms(
    begin: int,
    end: int,
    codes: np.ndarray,
    features: np.ndarray,
    residual: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add residual_i to ``out[j, c]`` for each row i in which ``features[j]`` has code c.

    ``residual``, of shape (n_blocks, ROWS), is in double precision.
    """
    m = len(features)
    # Allocated once, since concurrent allocations block each other
    h, g = np.empty((4, 256)), np.empty((4, 256))
    # Two features at once in four parts each, so that equal codes in a row do not stall each other
    for pair in range(begin, end):
        j, k = 2 * pair, min(2 * pair + 1, m - 1)
        h[:], g[:] = 0.0, 0.0
        for b in range(codes.shape[0]):
            c, d, r = codes[b, features[j]], codes[b, features[k]], residual[b]
            for i in range(0, ROWS, 4):
                r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
                h[0, c[i]] += r0
                h[1, c[i + 1]] += r1
                h[2, c[i + 2]] += r2
                h[3, c[i + 3]] += r3
                g[0, d[i]] += r0
                g[1, d[i + 1]] += r1
                g[2, d[i + 2]] += r2
                g[3, d[i + 3]] += r3
        for code in range(256):
            out[j, code] = h[0, code] + h[1, code] + h[2, code] + h[3, code]
            out[k, code] = g[0, code] + g[1, code] + g[2, code] + g[3, code]


# -- dense matrices --------------------------------------------------------------------------------
# Rows are processed in chunks of fixed size. Each chunk is summed in the precision of the data, and
# the chunk sums are added in order in double precision, so the result does not depend on the number
# of threads. Values are centred by ``shift`` on reading, so that a large offset costs no precision.


# Allow reordering only: NaN and infinity are preserved
_FAST = {"reassoc", "contract", "nsz", "arcp"}


# Rows are read as X[i, j] without views, since the reference counting of a view costs as much as
# fifty values.


@jit(fastmath=_FAST, error_model="numpy")
def _dot(
    X: np.ndarray, shift: np.ndarray, raw: np.ndarray, i: int, rows: int, out: np.ndarray
) -> None:
    """Multiply up to eight centred rows, i .. i + rows, by ``raw``.

    Eight rows share one pass over ``raw`` and ``shift``.
    """
    m = X.shape[1]
    if rows == 8:
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = shift[0] * 0
        for j in range(m):
            b, c = raw[j], shift[j]
            s0 += b * (X[i, j] - c)
            s1 += b * (X[i + 1, j] - c)
            s2 += b * (X[i + 2, j] - c)
            s3 += b * (X[i + 3, j] - c)
            s4 += b * (X[i + 4, j] - c)
            s5 += b * (X[i + 5, j] - c)
            s6 += b * (X[i + 6, j] - c)
            s7 += b * (X[i + 7, j] - c)
        out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = (
            s0,
            s1,
            s2,
            s3,
            s4,
            s5,
            s6,
            s7,
        )
    else:
        for a in range(rows):
            s = shift[0] * 0
            for j in range(m):
                s += raw[j] * (X[i + a, j] - shift[j])
            out[a] = s


@jit(fastmath=_FAST, error_model="numpy")
def _accumulate(
    X: np.ndarray, shift: np.ndarray, residual: np.ndarray, i: int, rows: int, out: np.ndarray
) -> None:
    """Add up to eight rows, i .. i + rows, weighted by the residual, to ``out``."""
    m = X.shape[1]
    if rows == 8:
        r0, r1, r2, r3 = residual[0], residual[1], residual[2], residual[3]
        r4, r5, r6, r7 = residual[4], residual[5], residual[6], residual[7]
        total = r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7
        for j in range(m):
            first = (r0 * X[i, j] + r1 * X[i + 1, j]) + (r2 * X[i + 2, j] + r3 * X[i + 3, j])
            last = (r4 * X[i + 4, j] + r5 * X[i + 5, j]) + (r6 * X[i + 6, j] + r7 * X[i + 7, j])
            out[j] += (first + last) - total * shift[j]
    else:
        for a in range(rows):
            for j in range(m):
                out[j] += residual[a] * (X[i + a, j] - shift[j])


@jit
def _gather(X: np.ndarray, columns: np.ndarray, out: np.ndarray, i: int, rows: int) -> None:
    """Copy selected columns of the rows i .. i + rows."""
    for a in range(i, i + rows):
        for j in range(len(columns)):
            out[a, j] = X[a, columns[j]]


@jit(fastmath=_FAST, error_model="numpy")
def _fused_chunk(
    source: np.ndarray,
    columns: np.ndarray,
    target: np.ndarray,
    X: np.ndarray,
    shift: np.ndarray,
    raw: np.ndarray,
    constant: float,
    y: np.ndarray,
    weight: np.ndarray,
    kind: int,
    parameter: float,
    start: int,
    stop: int,
    out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Compute the scores, loss and gradient of a chunk of rows in one pass.

    If there is a ``source``, its columns are gathered first.
    """
    scores = np.empty(8, X.dtype)
    value, total = 0.0, 0.0
    for i in range(start, stop, 8):
        rows = min(8, stop - i)
        if columns.shape[0]:
            _gather(source, columns, target, i, rows)
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
def fused_rows(
    begin: int,
    end: int,
    source: np.ndarray,
    columns: np.ndarray,
    target: np.ndarray,
    X: np.ndarray,
    shift: np.ndarray,
    raw: np.ndarray,
    constant: float,
    y: np.ndarray,
    weight: np.ndarray,
    kind: int,
    parameter: float,
    partial: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Compute the loss and gradient of a row-major matrix in one pass.

    The outputs are ``partial``, of shape (n_chunks, m), which must initially be zero, and ``sums``,
    of shape (n_chunks, 2). If ``columns`` is given, X is filled with these columns of ``source`` in
    the same pass, through ``target``, a writable view of X.
    """
    for c in range(begin, end):
        stop = min(X.shape[0], (c + 1) * CHUNK)
        first = c * CHUNK
        _fused_chunk(
            source,
            columns,
            target,
            X,
            shift,
            raw,
            constant,
            y,
            weight,
            kind,
            parameter,
            first,
            stop,
            partial[c],
            sums[c],
        )


@jit(fastmath=_FAST, error_model="numpy")
def first_rows(
    begin: int,
    end: int,
    X: np.ndarray,
    shift: np.ndarray,
    weight: np.ndarray,
    residual: np.ndarray,
    partial: np.ndarray,
) -> None:
    """Compute the sums of :func:`.first_sums` for a row-major matrix.

    The output ``partial``, of shape (n_chunks, 3, m), must initially be zero.
    """
    m = X.shape[1]
    for chunk in range(begin, end):
        first, second, product = partial[chunk, 0], partial[chunk, 1], partial[chunk, 2]
        i, stop = chunk * CHUNK, min(X.shape[0], (chunk + 1) * CHUNK)
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
        for a in range(i, stop):
            for j in range(m):
                d = X[a, j] - shift[j]
                first[j] += weight[a] * d
                second[j] += weight[a] * d * d
                product[j] += residual[a] * d


# Consecutive chunks read from one column, since short reads of a column-major matrix are slow
_TOGETHER = 4


@jit(fastmath=_FAST, error_model="numpy")
def _first_stretch(x: np.ndarray, c: float, w: np.ndarray, r: np.ndarray, out: np.ndarray) -> None:
    first = second = product = c * 0
    for i in range(len(x)):
        d = x[i] - c
        e = w[i] * d
        first += e
        second += e * d
        product += r[i] * d
    out[0], out[1], out[2] = first, second, product


@jit
def first_columns(
    begin: int,
    end: int,
    X: np.ndarray,
    shift: np.ndarray,
    weight: np.ndarray,
    residual: np.ndarray,
    partial: np.ndarray,
) -> None:
    """Compute the sums of :func:`first_rows` for a column-major matrix."""
    n, m = X.shape
    for together in range(begin, end, _TOGETHER):
        for j in range(m):
            for c in range(together, min(end, together + _TOGETHER)):
                rows = slice(c * CHUNK, min(n, (c + 1) * CHUNK))
                _first_stretch(X[rows, j], shift[j], weight[rows], residual[rows], partial[c, :, j])


@jit(fastmath=_FAST, error_model="numpy")
def _add_scores(x: np.ndarray, c: float, b: float, scores: np.ndarray) -> None:
    for i in range(len(x)):
        scores[i] += b * (x[i] - c)


@jit(fastmath=_FAST, error_model="numpy")
def _product(x: np.ndarray, c: float, slopes: np.ndarray) -> float:
    s = c * 0
    for i in range(len(x)):
        s += slopes[i] * (x[i] - c)
    return s


@jit
def fused_columns(
    begin: int,
    end: int,
    X: np.ndarray,
    shift: np.ndarray,
    raw: np.ndarray,
    constant: float,
    y: np.ndarray,
    weight: np.ndarray,
    kind: int,
    parameter: float,
    partial: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Compute :func:`fused_rows` for a column-major matrix, in two passes over column segments."""
    n, m = X.shape
    for together in range(begin, end, _TOGETHER):
        last = min(end, together + _TOGETHER)
        scores = np.zeros((_TOGETHER, CHUNK), X.dtype)
        for j in range(m):
            if raw[j] != 0:
                for c in range(together, last):
                    _add_scores(
                        X[c * CHUNK : min(n, (c + 1) * CHUNK), j],
                        shift[j],
                        raw[j],
                        scores[c - together],
                    )
        for c in range(together, last):
            value, total = 0.0, 0.0
            slopes = scores[c - together]
            for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
                v, slope = loss_terms(kind, parameter, y[i, 0], slopes[i - c * CHUNK] + constant)
                value += weight[i] * v
                slope *= weight[i]
                total += slope
                slopes[i - c * CHUNK] = slope
            sums[c, 0], sums[c, 1] = value, total
        for j in range(m):
            for c in range(together, last):
                partial[c, j] = _product(
                    X[c * CHUNK : min(n, (c + 1) * CHUNK), j], shift[j], scores[c - together]
                )


@jit
def gather_rows(begin: int, end: int, X: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """Copy selected columns of a row-major matrix.

    The indices must be of type uint32, which avoids checks for negative values.
    """
    for i in range(begin, end, 4):
        _gather(X, columns, out, i, min(4, end - i))
