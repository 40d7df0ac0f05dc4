"""Hot loops shared by all ways of evaluating the feature pool: functions on arrays, compiled by numba.

Windows are taken ``LANES`` at a time. All tables of a block have the lane as their last axis, so that one feature of
all windows in the block is a few contiguous loads: the compiler turns the loop over lanes into vector instructions. The
same loops serve given windows (lane = window, tables per block) and a dense scan (lane = neighbouring window of a row,
tables per image): both look up corners in a flat integral image, at ``base + corner + lane``.
"""

import numpy as np

from ...learners.compilation import jit

__all__ = ["LANES", "MAGNITUDE_SCALE"]

LANES = 64
"""Windows per block."""

MAGNITUDE_SCALE = 4.0
"""Gradient magnitudes are kept as whole numbers, in quarters of a grey level: sums are exact in every order."""


@jit(forceinline=True)
def sum_6_corners(flat, base, offsets, weights, f, n_lanes, out):  # type: ignore[no-untyped-def]
    """``out[j] = sum_k weights[f, k] * flat[base + offsets[f, k] + j]`` for k < 6.

    Indices are unsigned: numba then leaves out the test for negative ones, which would prevent vector instructions.
    This and the next two are separate functions, inlined by force, because together they are compiled several times
    slower.
    """
    o0, o1, o2 = base + offsets[f, 0], base + offsets[f, 1], base + offsets[f, 2]
    o3, o4, o5 = base + offsets[f, 3], base + offsets[f, 4], base + offsets[f, 5]
    w0, w1, w2 = weights[f, 0], weights[f, 1], weights[f, 2]
    w3, w4, w5 = weights[f, 3], weights[f, 4], weights[f, 5]
    for j in range(np.uint64(n_lanes)):
        left = w0 * flat[o0 + j] + w1 * flat[o1 + j] + w2 * flat[o2 + j]
        out[j] = left + w3 * flat[o3 + j] + w4 * flat[o4 + j] + w5 * flat[o5 + j]


@jit(forceinline=True)
def sum_8_corners(flat, base, offsets, weights, f, n_lanes, out):  # type: ignore[no-untyped-def]
    """The same for k < 8."""
    o0, o1, o2, o3 = base + offsets[f, 0], base + offsets[f, 1], base + offsets[f, 2], base + offsets[f, 3]
    o4, o5, o6, o7 = base + offsets[f, 4], base + offsets[f, 5], base + offsets[f, 6], base + offsets[f, 7]
    w0, w1, w2, w3 = weights[f, 0], weights[f, 1], weights[f, 2], weights[f, 3]
    w4, w5, w6, w7 = weights[f, 4], weights[f, 5], weights[f, 6], weights[f, 7]
    for j in range(np.uint64(n_lanes)):
        left = w0 * flat[o0 + j] + w1 * flat[o1 + j] + w2 * flat[o2 + j] + w3 * flat[o3 + j]
        out[j] = left + w4 * flat[o4 + j] + w5 * flat[o5 + j] + w6 * flat[o6 + j] + w7 * flat[o7 + j]


@jit(forceinline=True)
def add_corner(flat, base, offsets, weights, f, k, n_lanes, out):  # type: ignore[no-untyped-def]
    """Add one more corner."""
    o, w = base + offsets[f, k], weights[f, k]
    for j in range(np.uint64(n_lanes)):
        out[j] += w * flat[o + j]


@jit(forceinline=True)
def gather_6(flat, places, offsets, weights, f, n_lanes, out):  # type: ignore[no-untyped-def]
    """``out[j] = sum_k weights[f, k] * flat[places[j] + offsets[f, k]]`` for k < 6."""
    o0, o1, o2, o3, o4, o5 = offsets[f, 0], offsets[f, 1], offsets[f, 2], offsets[f, 3], offsets[f, 4], offsets[f, 5]
    w0, w1, w2, w3, w4, w5 = weights[f, 0], weights[f, 1], weights[f, 2], weights[f, 3], weights[f, 4], weights[f, 5]
    for j in range(np.uint64(n_lanes)):
        p = places[j]
        left = w0 * flat[p + o0] + w1 * flat[p + o1] + w2 * flat[p + o2]
        out[j] = left + w3 * flat[p + o3] + w4 * flat[p + o4] + w5 * flat[p + o5]


@jit(forceinline=True)
def gather_more(flat, places, offsets, weights, f, first, last, n_lanes, out):  # type: ignore[no-untyped-def]
    """Add the corners first <= k < last."""
    for k in range(first, last):
        o, w = offsets[f, k], weights[f, k]
        for j in range(np.uint64(n_lanes)):
            out[j] += w * flat[places[j] + o]


@jit(forceinline=True)
def gather_hog(cells, inverse_norm, cells_at, norms_at, offsets, f, n_lanes, sums, scale):  # type: ignore[no-untyped-def]
    """Histogram entries and 1 / norm of one HOG feature."""
    first, norm_first = offsets[f, 0], offsets[f, 1]
    for j in range(np.uint64(n_lanes)):
        sums[j] = cells[cells_at[j] + first]
        scale[j] = inverse_norm[norms_at[j] + norm_first]


@jit
def load_pixels(patches, rows, pixels):  # type: ignore[no-untyped-def]
    """Pixels of the given patches (n, (window + 2)**2 * 3), one lane each; spare lanes repeat the last."""
    size = pixels.shape[0]
    for j in range(LANES):
        row = rows[min(j, rows.size - 1)]
        for i in range(size):
            pixels[i, j] = patches[row, i]


@jit
def integrate(pixels, window, integral, inverse_sigma):  # type: ignore[no-untyped-def]
    """Integral images of a block of windows, and 1 / sigma of every window."""
    patch = window + 2
    side = window + 1
    run = np.zeros(LANES, np.int32)
    squares = np.zeros(LANES, np.int32)
    variance = np.zeros(LANES, np.float64)
    n = np.float64(window * window)
    factor = 1 / (3 * n * n)
    for c in range(3):
        for y in range(window):
            run[:] = 0
            for x in range(window):
                i = ((y + 1) * patch + x + 1) * 3 + c
                below = np.uint64(((c * side + y + 1) * side + x + 1) * LANES)
                above = below - np.uint64(side * LANES)
                for j in range(np.uint64(LANES)):
                    value = np.int32(pixels[i, j])
                    run[j] += value
                    squares[j] += value * value
                    integral[below + j] = integral[above + j] + run[j]
        total = ((c + 1) * side * side - 1) * LANES
        for j in range(LANES):
            box = np.float64(integral[total + j])
            variance[j] -= box * box
    for j in range(LANES):
        inverse_sigma[j] = inverse_deviation(n * np.float64(squares[j]) + variance[j], factor)


@jit(forceinline=True)
def inverse_deviation(scaled_variance, factor):  # type: ignore[no-untyped-def]
    """1 / sigma of a window of n pixels.

    From ``n * sum of squares - squared sums`` over the three channels (exact) and ``factor = 1 / (3 * n**2)``.
    """
    sigma = np.sqrt(np.float32(scaled_variance * factor))
    one = np.float32(1)
    return one / (sigma if sigma > one else one)


@jit
def gradients(left, right, top, bottom, tangents, length, bins, across, along):  # type: ignore[no-untyped-def]
    """Rounded lengths of gradients, and bins of their unsigned directions, from neighbours' pixels (n,).

    With m bins, bin k is centred at the angle ``k * pi / m``. With m a multiple of 4 the borders have irrational
    tangents, so that no gradient of whole numbers lies on one, and mirroring maps bin k to bin ``m - k`` (0 to 0)
    exactly. `tangents` are those of the borders below pi / 2; `across` and `along` are float32 buffers.
    """
    m = np.int32(2 * tangents.size)
    for j in range(np.uint64(length.size)):
        gx = np.float32(right[j]) - np.float32(left[j])
        gy = np.float32(bottom[j]) - np.float32(top[j])
        length[j] = np.int32(np.sqrt(gx * gx + gy * gy) * np.float32(MAGNITUDE_SCALE) + np.float32(0.5))
        across[j] = gx
        along[j] = gy
    for i in range(0, tangents.size, 2):  # a multiple of 4 bins has an even number of borders
        first, second = tangents[i], tangents[i + 1]
        for j in range(np.uint64(length.size)):
            wide, high = abs(across[j]), abs(along[j])
            below = np.int32(bins[j]) if i else np.int32(0)
            bins[j] = below + np.int32(high > wide * first) + np.int32(high > wide * second)
    for j in range(np.uint64(length.size)):
        k = np.int32(bins[j])
        bins[j] = m - k if (across[j] * along[j] < np.float32(0)) & (k > 0) else k


@jit
def cell_histograms(  # type: ignore[no-untyped-def]
    pixels, window, cells, blocks, cell_side, epsilon, tangents, histogram, inverse_norm
):
    """Orientation histograms of the given cells of a block of windows, and 1 / norm of the given blocks of cells."""
    patch = window + 2
    length = np.empty(LANES, np.int32)
    bins = np.empty(LANES, np.int32)
    across = np.empty(LANES, np.float32)
    along = np.empty(LANES, np.float32)
    for i in range(cells.shape[0]):
        histogram[i] = 0
        c = cells[i, 0]
        for y in range(cells[i, 1], cells[i, 1] + cell_side):
            for x in range(cells[i, 2], cells[i, 2] + cell_side):
                gradients(
                    pixels[((y + 1) * patch + x) * 3 + c],
                    pixels[((y + 1) * patch + x + 2) * 3 + c],
                    pixels[(y * patch + x + 1) * 3 + c],
                    pixels[((y + 2) * patch + x + 1) * 3 + c],
                    tangents, length, bins, across, along,
                )  # fmt: skip
                for j in range(LANES):
                    histogram[i, bins[j], j] += length[j]
    energy = np.empty(LANES, np.float32)
    for i in range(blocks.shape[0]):
        energy[:] = epsilon * epsilon
        for m in range(blocks.shape[1]):
            cell = blocks[i, m]
            for k in range(histogram.shape[1]):
                for j in range(LANES):
                    entry = np.float32(histogram[cell, k, j])
                    energy[j] += entry * entry
        for j in range(LANES):
            inverse_norm[i, j] = np.float32(1) / np.sqrt(energy[j])


@jit
def fill_tables(patches, rows, window, program, cell_side, epsilon, tangents, tables):  # type: ignore[no-untyped-def]
    """Everything that the features of a block of patches need."""
    load_pixels(patches, rows, tables.pixels)
    integrate(tables.pixels, window, tables.integral, tables.inverse_sigma)
    if program.cells.shape[0] > 0:
        cell_histograms(
            tables.pixels,
            window,
            program.cells,
            program.blocks,
            cell_side,
            epsilon,
            tangents,
            tables.histogram,
            tables.inverse_norm,
        )


@jit(forceinline=True)
def scaled(sums, factor, scale, n_lanes, values):  # type: ignore[no-untyped-def]
    """Values of one feature from its numerators: ``sums * (factor * scale)``, scale one per window."""
    for j in range(np.uint64(n_lanes)):
        values[j] = np.float32(sums[j]) * (factor * scale[j])


@jit(forceinline=True)
def encode(sums, factor, scale, low, inverse_bin_width, top, sublevels, f, out):  # type: ignore[no-untyped-def]
    """Codes of one feature in every window of a block from its numerators, into ``out[f]``."""
    zero = np.float32(0)
    for j in range(np.uint64(LANES)):
        t = (np.float32(sums[j]) * (factor * scale[j]) - low) * inverse_bin_width
        t = t if t > zero else zero
        t = t if t < top else top
        out[f, j] = np.uint8(np.int32(t * sublevels + np.float32(0.5)))


@jit(forceinline=True, fastmath={"contract"})
def clipped_ramps(t, r0, r1, r2, r3, r4, r5):  # type: ignore[no-untyped-def]
    """``sum_k r_k * clip(t - k, 0, 1)``: six bins of a piecewise-linear response, without looking up a table."""
    zero = np.float32(0)
    one = np.float32(1)
    u0 = t if t > zero else zero
    u1 = t - one
    u1 = u1 if u1 > zero else zero
    u2 = t - np.float32(2)
    u2 = u2 if u2 > zero else zero
    u3 = t - np.float32(3)
    u3 = u3 if u3 > zero else zero
    u4 = t - np.float32(4)
    u4 = u4 if u4 > zero else zero
    u5 = t - np.float32(5)
    u5 = u5 if u5 > zero else zero
    return (
        r0 * (u0 if u0 < one else one)
        + r1 * (u1 if u1 < one else one)
        + r2 * (u2 if u2 < one else one)
        + r3 * (u3 if u3 < one else one)
        + r4 * (u4 if u4 < one else one)
        + r5 * (u5 if u5 < one else one)
    )


@jit(forceinline=True, fastmath={"contract"})
def respond(  # type: ignore[no-untyped-def]
    sums, slope, scale, shift, top, start, rises, f, first, limit, n_lanes, scores
):
    """Add six bins of a piecewise-linear response to scores, and set those below the limit to -inf.

    The response is ``start + sum_k rises[f, first + k] * clip(t - first - k, 0, 1)`` with
    ``t = clip(sums * scale * slope - shift, 0, top)``, the place among the bins.
    """
    zero = np.float32(0)
    base = np.float32(first)
    r0, r1, r2 = rises[f, first], rises[f, first + 1], rises[f, first + 2]
    r3, r4, r5 = rises[f, first + 3], rises[f, first + 4], rises[f, first + 5]
    for j in range(np.uint64(n_lanes)):
        t = np.float32(sums[j]) * scale[j] * slope - shift
        t = t if t > zero else zero
        t = (t if t < top else top) - base
        score = scores[j] + (start + clipped_ramps(t, r0, r1, r2, r3, r4, r5))
        scores[j] = score if score >= limit else np.float32(-np.inf)


@jit
def encode_block(  # type: ignore[no-untyped-def]
    with_6, with_8, with_0, n_corners, offsets, weight, inverse_area, cell, block, orientation,
    integral, inverse_sigma, histogram, inverse_norm, sums, low, inverse_bin_width, top, sublevels, out,
):  # fmt: skip
    """Codes of one block of windows: out (features, LANES).

    Features come sorted by their number of corners, and arrays one by one: branches in the loop, and counting references
    to members of tuples, would take longer than the sums.
    """
    zero = np.uint64(0)
    one = np.float32(1)
    for f in with_6:
        sum_6_corners(integral, zero, offsets, weight, f, LANES, sums)
        encode(sums, inverse_area[f], inverse_sigma, low[f], inverse_bin_width[f], top, sublevels, f, out)
    for f in with_8:
        sum_8_corners(integral, zero, offsets, weight, f, LANES, sums)
        for k in range(8, n_corners[f]):
            add_corner(integral, zero, offsets, weight, f, k, LANES, sums)
        encode(sums, inverse_area[f], inverse_sigma, low[f], inverse_bin_width[f], top, sublevels, f, out)
    for f in with_0:
        entries = histogram[cell[f], orientation[f]]
        encode(entries, one, inverse_norm[block[f]], low[f], inverse_bin_width[f], top, sublevels, f, out)


@jit
def encode_rows(  # type: ignore[no-untyped-def]
    patches, rows, window, program, offsets, cell_side, epsilon, tangents, tables, low, inverse_bin_width, top, sublevels, out
):
    """Codes ``round(clip((value - low) / bin_width, 0, top) * sublevels)``: out (blocks of LANES rows, features, LANES)."""
    for first in range(0, rows.size, LANES):
        fill_tables(patches, rows[first : first + LANES], window, program, cell_side, epsilon, tangents, tables)
        encode_block(
            program.with_6, program.with_8, program.with_0, program.n_corners, offsets, program.weight,
            program.inverse_area, program.cell, program.block, program.orientation, tables.integral,
            tables.inverse_sigma, tables.histogram, tables.inverse_norm, tables.sums,
            low, inverse_bin_width, top, sublevels, out[first // LANES],
        )  # fmt: skip


@jit
def evaluate_block(  # type: ignore[no-untyped-def]
    with_6, with_8, with_0, n_corners, offsets, weight, inverse_area, cell, block, orientation,
    integral, inverse_sigma, histogram, inverse_norm, sums, out,
):  # fmt: skip
    """Values of one block of windows: out (features, LANES)."""
    zero = np.uint64(0)
    one = np.float32(1)
    for f in with_6:
        sum_6_corners(integral, zero, offsets, weight, f, LANES, sums)
        scaled(sums, inverse_area[f], inverse_sigma, LANES, out[f])
    for f in with_8:
        sum_8_corners(integral, zero, offsets, weight, f, LANES, sums)
        for k in range(8, n_corners[f]):
            add_corner(integral, zero, offsets, weight, f, k, LANES, sums)
        scaled(sums, inverse_area[f], inverse_sigma, LANES, out[f])
    for f in with_0:
        scaled(histogram[cell[f], orientation[f]], one, inverse_norm[block[f]], LANES, out[f])


@jit
def evaluate_rows(patches, rows, window, program, offsets, cell_side, epsilon, tangents, tables, out):  # type: ignore[no-untyped-def]
    """Values of all features of the program in the given patches: out (rows, features)."""
    buffer = np.empty((program.n_corners.size, LANES), np.float32)
    for first in range(0, rows.size, LANES):
        fill_tables(patches, rows[first : first + LANES], window, program, cell_side, epsilon, tangents, tables)
        evaluate_block(
            program.with_6, program.with_8, program.with_0, program.n_corners, offsets, program.weight,
            program.inverse_area, program.cell, program.block, program.orientation, tables.integral,
            tables.inverse_sigma, tables.histogram, tables.inverse_norm, tables.sums,
            buffer,
        )  # fmt: skip
        for begin in range(0, buffer.shape[0], 16):  # transposed in pieces that stay in the cache
            end = min(begin + 16, buffer.shape[0])
            for j in range(min(LANES, rows.size - first)):
                for f in range(begin, end):
                    out[first + j, f] = buffer[f, j]


@jit
def accumulate(values, low, inverse_bin_width, top, start, rises, intercept, out):  # type: ignore[no-untyped-def]
    """Running sums of the responses to values (rows, features); out may be the values' own array."""
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
                    rises[f, k], rises[f, k + 1], rises[f, k + 2], rises[f, k + 3], rises[f, k + 4], rises[f, k + 5],
                )  # fmt: skip
            out[i, f] = score
