"""Inner loops shared by all evaluations of the feature pool, compiled by numba.

Windows are processed ``LANES`` at a time. The last axis of all tables of a block is the lane.
Evaluating a feature in all windows of the block therefore requires only a few contiguous loads, and
the compiler converts the loop over lanes to vector instructions. The same loops evaluate given
windows and dense scans. For given windows, each lane is a window and there are tables for each
block. In a dense scan, the lanes are neighbouring windows of a row and there are tables for the
image. In both cases, corners are looked up in a flat integral image, at ``base + corner + lane``.

Larger kernels receive their tables as NamedTuples, which they unpack before their loops, since
tuple members would be reference-counted in every iteration of a loop.
"""

import numpy as np

from ...learners.compilation import jit

#: Windows per block.
LANES = 64

#: Gradient magnitudes are stored as integers, in quarters of a grey level, so that sums are exact
#: in any order.
MAGNITUDE_SCALE = 4.0


@jit(forceinline=True)
def sum_6_corners(flat, base, offsets, weights, f, n_lanes, out):  # type: ignore[no-untyped-def]
    """Compute ``out[j] = sum_k weights[f, k] * flat[base + offsets[f, k] + j]`` over k < 6.

    Indices are unsigned, so numba omits the test for negative indices, which would prevent
    vectorisation. This function is separate from :func:`add_corner`, since compiling them as one
    function takes several times as long.
    """
    o0, o1, o2 = base + offsets[f, 0], base + offsets[f, 1], base + offsets[f, 2]
    o3, o4, o5 = base + offsets[f, 3], base + offsets[f, 4], base + offsets[f, 5]
    w0, w1, w2 = weights[f, 0], weights[f, 1], weights[f, 2]
    w3, w4, w5 = weights[f, 3], weights[f, 4], weights[f, 5]
    for j in range(np.uint64(n_lanes)):
        left = w0 * flat[o0 + j] + w1 * flat[o1 + j] + w2 * flat[o2 + j]
        out[j] = left + w3 * flat[o3 + j] + w4 * flat[o4 + j] + w5 * flat[o5 + j]


@jit(forceinline=True)
def add_corner(flat, base, offsets, weights, f, k, n_lanes, out):  # type: ignore[no-untyped-def]
    """Add corner k of feature f to the sums of :func:`sum_6_corners`."""
    o, w = base + offsets[f, k], weights[f, k]
    for j in range(np.uint64(n_lanes)):
        out[j] += w * flat[o + j]


@jit(forceinline=True)
def sum_corners(flat, base, offsets, weights, f, n_corners, n_lanes, out):  # type: ignore[no-untyped-def]
    """Compute the sum of :func:`sum_6_corners` over all corners of feature f.

    The feature must have at least six corners.
    """
    sum_6_corners(flat, base, offsets, weights, f, n_lanes, out)
    for k in range(6, n_corners):
        add_corner(flat, base, offsets, weights, f, k, n_lanes, out)


@jit(forceinline=True)
def gather_corners(flat, places, offsets, weights, f, n_corners, n_lanes, out):  # type: ignore[no-untyped-def]
    """Compute the sums over the corners of feature f in windows at given flat positions.

    The sums are ``out[j] = sum_k weights[f, k] * flat[places[j] + offsets[f, k]]``.
    """
    o0, o1, o2, o3, o4, o5 = (
        offsets[f, 0],
        offsets[f, 1],
        offsets[f, 2],
        offsets[f, 3],
        offsets[f, 4],
        offsets[f, 5],
    )
    w0, w1, w2, w3, w4, w5 = (
        weights[f, 0],
        weights[f, 1],
        weights[f, 2],
        weights[f, 3],
        weights[f, 4],
        weights[f, 5],
    )
    for j in range(np.uint64(n_lanes)):
        p = places[j]
        left = w0 * flat[p + o0] + w1 * flat[p + o1] + w2 * flat[p + o2]
        out[j] = left + w3 * flat[p + o3] + w4 * flat[p + o4] + w5 * flat[p + o5]
    for k in range(6, n_corners):
        o, w = offsets[f, k], weights[f, k]
        for j in range(np.uint64(n_lanes)):
            out[j] += w * flat[places[j] + o]


@jit(forceinline=True)
def inverse_deviation(scaled_variance, factor):  # type: ignore[no-untyped-def]
    """Compute the inverse standard deviation of a window of n pixels.

    ``scaled_variance`` is n times the sum of squares minus the square of the sum, added over the
    three channels, and ``factor`` is ``1 / (3 * n**2)``. The deviation is at least 1.
    """
    sigma = np.sqrt(np.float32(scaled_variance * factor))
    one = np.float32(1)
    return one / (sigma if sigma > one else one)


@jit
def gradients(left, right, top, bottom, tangents, length, bins, components):  # type: ignore[no-untyped-def]
    """Compute the rounded lengths of n gradients, and the bins of their unsigned directions.

    With m bins, bin k is centred at the angle ``k * pi / m``. If m is a multiple of 4, the borders
    between bins have irrational tangents, so no integer gradient lies on a border, and mirroring
    maps bin k exactly to bin ``m - k`` (0 to 0). `tangents` contains the tangents of the borders
    below pi / 2, and `components` is a float32 buffer of shape (2, n).
    """
    horizontal, vertical = components[0], components[1]
    m = np.int32(2 * tangents.size)
    for j in range(np.uint64(length.size)):
        gx = np.float32(right[j]) - np.float32(left[j])
        gy = np.float32(bottom[j]) - np.float32(top[j])
        length[j] = np.int32(
            np.sqrt(gx * gx + gy * gy) * np.float32(MAGNITUDE_SCALE) + np.float32(0.5)
        )
        horizontal[j] = gx
        vertical[j] = gy
    for i in range(0, tangents.size, 2):  # a multiple of 4 bins has an even number of borders
        first, second = tangents[i], tangents[i + 1]
        for j in range(np.uint64(length.size)):
            wide, high = abs(horizontal[j]), abs(vertical[j])
            below = np.int32(bins[j]) if i else np.int32(0)
            bins[j] = below + np.int32(high > wide * first) + np.int32(high > wide * second)
    for j in range(np.uint64(length.size)):
        k = np.int32(bins[j])
        bins[j] = m - k if (horizontal[j] * vertical[j] < np.float32(0)) & (k > 0) else k


@jit(forceinline=True)
def scaled(sums, factor, scale, n_lanes, values):  # type: ignore[no-untyped-def]
    """Compute the values of a feature, ``sums * factor * scale``, with one scale per window."""
    for j in range(np.uint64(n_lanes)):
        values[j] = np.float32(sums[j]) * (factor * scale[j])


@jit(forceinline=True)
def ramp(t, k):  # type: ignore[no-untyped-def]
    """Compute ``clip(t - k, 0, 1)``."""
    u = t - np.float32(k)
    u = u if u > np.float32(0) else np.float32(0)
    return u if u < np.float32(1) else np.float32(1)


@jit(forceinline=True, fastmath={"contract"})
def clipped_ramps(t, r0, r1, r2, r3, r4, r5):  # type: ignore[no-untyped-def]
    """Compute ``sum_k r_k * clip(t - k, 0, 1)`` without a table lookup.

    This is a piecewise-linear function of t with six bins, which increases by r_k in bin k.
    """
    return (
        r0 * ramp(t, 0)
        + r1 * ramp(t, 1)
        + r2 * ramp(t, 2)
        + r3 * ramp(t, 3)
        + r4 * ramp(t, 4)
        + r5 * ramp(t, 5)
    )


@jit(forceinline=True, fastmath={"contract"})
def respond(lines, rises, top, f, limit, sums, scale, n_lanes, scores):  # type: ignore[no-untyped-def]
    """Add the response to feature f to the scores, and set scores below ``limit`` to -inf.

    The response is ``start + sum_k rises[f, k] * clip(t - k, 0, 1)``. Here ``t = clip(sums * scale
    * slope - shift, 0, top)`` is the value in units of bins, and ``lines[f]`` contains slope, shift
    and start. Six bins are processed at a time.
    """
    zero = np.float32(0)
    slope, shift = lines[f, 0], lines[f, 1]
    for k in range(0, rises.shape[1], 6):
        start = lines[f, 2] if k == 0 else zero
        least = limit if k + 6 == rises.shape[1] else np.float32(-np.inf)
        base = np.float32(k)
        r0, r1, r2, r3, r4, r5 = (
            rises[f, k],
            rises[f, k + 1],
            rises[f, k + 2],
            rises[f, k + 3],
            rises[f, k + 4],
            rises[f, k + 5],
        )
        for j in range(np.uint64(n_lanes)):
            t = np.float32(sums[j]) * scale[j] * slope - shift
            t = t if t > zero else zero
            t = (t if t < top else top) - base
            score = scores[j] + (start + clipped_ramps(t, r0, r1, r2, r3, r4, r5))
            scores[j] = score if score >= least else np.float32(-np.inf)


@jit
def accumulate(values, tables, intercept, out):  # type: ignore[no-untyped-def]
    """Compute the running sums of the responses to feature values, of shape (rows, features).

    ``out`` may be ``values`` itself.
    """
    low, inverse_bin_width, top, start, rises = tables
    zero = np.float32(0)
    for i in range(values.shape[0]):
        score = intercept
        for f in range(values.shape[1]):
            t = (values[i, f] - low[f]) * inverse_bin_width[f]
            t = t if t > zero else zero
            t = t if t < top else top
            for k in range(0, rises.shape[1], 6):
                begin = start[f] if k == 0 else zero
                score += begin + clipped_ramps(
                    t - np.float32(k),
                    rises[f, k],
                    rises[f, k + 1],
                    rises[f, k + 2],
                    rises[f, k + 3],
                    rises[f, k + 4],
                    rises[f, k + 5],
                )
            out[i, f] = score
