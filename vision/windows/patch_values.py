"""Values of features in given windows, computed in blocks of 64 windows."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...learners.compilation import jit
from .feature_layout import Program, WindowLayout
from .kernels import LANES, gradients, inverse_deviation, scaled, sum_corners

# number of features evaluated at a time, whose 128 KB stay in the cache (heuristic)
_CHUNK = 512


class BlockTables(NamedTuple):
    """Buffers for one block of ``LANES`` windows, which are reused for every block."""

    layout: WindowLayout
    offsets: npt.NDArray[np.uint64]  # (features, corners): positions in the integral images
    pixels: npt.NDArray[np.uint8]  # ((window + 2)**2 * 3, LANES)
    integral: npt.NDArray[np.int32]  # (3 * (window + 1)**2 * LANES,)
    inverse_sigma: npt.NDArray[np.float32]  # (LANES,)
    histogram: npt.NDArray[np.int32]  # (cells, orientations, LANES)
    inverse_norm: npt.NDArray[np.float32]  # (blocks, LANES)
    sums: npt.NDArray[np.int32]  # (LANES,)
    values: npt.NDArray[np.float32]  # (_CHUNK, LANES)


class Bins(NamedTuple):
    """Parameters of the encoding of values.

    A value is encoded as ``round(clip((value - low) * inverse_bin_width, 0, top) * sublevels)``.
    """

    low: npt.NDArray[np.float32]  # (features,)
    inverse_bin_width: npt.NDArray[np.float32]  # (features,)
    top: np.float32
    sublevels: np.float32


def block_tables(program: Program, layout: WindowLayout) -> BlockTables:
    """Allocate buffers for evaluating a program on blocks of windows."""
    window, side = layout.window, layout.window + 1
    corners = (program.channel[:, None] * side + program.corner_y) * side + program.corner_x
    return BlockTables(
        layout,
        (corners * LANES).astype(np.uint64),
        np.zeros(((window + 2) ** 2 * 3, LANES), np.uint8),
        np.zeros(3 * side**2 * LANES, np.int32),
        np.zeros(LANES, np.float32),
        np.zeros((max(1, len(program.cells)), layout.orientations, LANES), np.int32),
        np.zeros((max(1, len(program.blocks)), LANES), np.float32),
        np.zeros(LANES, np.int32),
        np.zeros((_CHUNK, LANES), np.float32),
    )


@jit
def load_pixels(patches, rows, pixels):  # type: ignore[no-untyped-def]
    """Load the pixels of at most ``LANES`` patches, one patch per column (lane).

    ``patches`` has shape (n, (window + 2)**2 * 3). The last patch is repeated in unused lanes.
    """
    size = pixels.shape[0]
    for j in range(LANES):
        row = rows[min(j, rows.size - 1)]
        for i in range(size):
            pixels[i, j] = patches[row, i]


@jit
def integrate(pixels, window, integral, inverse_sigma):  # type: ignore[no-untyped-def]
    """Compute the integral images and inverse standard deviations of a block of windows."""
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


@jit
def cell_histograms(pixels, program, layout, histogram, inverse_norm):  # type: ignore[no-untyped-def]
    """Compute the histograms of all cells, and the inverse norms of all HOG blocks."""
    cells, blocks, cell_side = program.cells, program.blocks, layout.cell
    patch = layout.window + 2
    length = np.empty(LANES, np.int32)
    bins = np.empty(LANES, np.int32)
    components = np.empty((2, LANES), np.float32)
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
                    layout.tangents,
                    length,
                    bins,
                    components,
                )
                for j in range(LANES):
                    histogram[i, bins[j], j] += length[j]
    energy = np.empty(LANES, np.float32)
    for i in range(blocks.shape[0]):
        energy[:] = layout.epsilon * layout.epsilon
        for m in range(blocks.shape[1]):
            cell = blocks[i, m]
            for k in range(histogram.shape[1]):
                for j in range(LANES):
                    entry = np.float32(histogram[cell, k, j])
                    energy[j] += entry * entry
        for j in range(LANES):
            inverse_norm[i, j] = np.float32(1) / np.sqrt(energy[j])


@jit
def fill_tables(patches, rows, program, tables):  # type: ignore[no-untyped-def]
    """Fill all tables that are required to evaluate features in a block of patches."""
    load_pixels(patches, rows, tables.pixels)
    integrate(tables.pixels, tables.layout.window, tables.integral, tables.inverse_sigma)
    if program.cells.shape[0] > 0:
        cell_histograms(
            tables.pixels, program, tables.layout, tables.histogram, tables.inverse_norm
        )


@jit
def evaluate_block(program, tables, features):  # type: ignore[no-untyped-def]
    """Compute the values of a group of features in a block of windows."""
    n_corners, weight, inverse_area = program.n_corners, program.weight, program.inverse_area
    cell, block, orientation = program.cell, program.block, program.orientation
    offsets, integral, inverse_sigma = tables.offsets, tables.integral, tables.inverse_sigma
    histogram, inverse_norm, sums, values = (
        tables.histogram,
        tables.inverse_norm,
        tables.sums,
        tables.values,
    )
    for i in range(features.size):
        f = features[i]
        if n_corners[f] == 0:
            scaled(
                histogram[cell[f], orientation[f]],
                np.float32(1),
                inverse_norm[block[f]],
                LANES,
                values[i],
            )
        else:
            sum_corners(integral, np.uint64(0), offsets, weight, f, n_corners[f], LANES, sums)
            scaled(sums, inverse_area[f], inverse_sigma, LANES, values[i])


@jit
def evaluate_rows(patches, rows, program, tables, out):  # type: ignore[no-untyped-def]
    """Write the values of all features in the given patches to ``out`` (rows, features)."""
    values = tables.values
    for first in range(0, rows.size, LANES):
        fill_tables(patches, rows[first : first + LANES], program, tables)
        for begin in range(0, program.order.size, _CHUNK):
            features = program.order[begin : begin + _CHUNK]
            evaluate_block(program, tables, features)
            for piece in range(0, features.size, 16):  # transposed in pieces that fit the cache
                for j in range(min(LANES, rows.size - first)):
                    for i in range(piece, min(piece + 16, features.size)):
                        out[first + j, features[i]] = values[i, j]


@jit(forceinline=True)
def encode(values, low, inverse_bin_width, top, sublevels, out):  # type: ignore[no-untyped-def]
    """Encode the values of one feature in every window of a block."""
    zero = np.float32(0)
    for j in range(np.uint64(LANES)):
        t = (values[j] - low) * inverse_bin_width
        t = t if t > zero else zero
        t = t if t < top else top
        out[j] = np.uint8(np.int32(t * sublevels + np.float32(0.5)))


@jit
def encode_rows(patches, rows, program, tables, bins, out):  # type: ignore[no-untyped-def]
    """Encode the values of all features in the given patches; see `Bins`.

    The codes are written to ``out``, of shape (blocks of LANES rows, features, LANES).
    """
    values, low, inverse_bin_width = tables.values, bins.low, bins.inverse_bin_width
    for first in range(0, rows.size, LANES):
        fill_tables(patches, rows[first : first + LANES], program, tables)
        codes = out[first // LANES]
        for begin in range(0, program.order.size, _CHUNK):
            features = program.order[begin : begin + _CHUNK]
            evaluate_block(program, tables, features)
            for i in range(features.size):
                f = features[i]
                encode(values[i], low[f], inverse_bin_width[f], bins.top, bins.sublevels, codes[f])
