"""Compiled loops that fill the tables of a level: integral images, gradients, orientation histograms."""

import numpy as np

from ...learners.compilation import jit
from .kernels import gradients, inverse_deviation


@jit
def dense_integrals(planes, window, stride, integral, squares, inverse_sigma):  # type: ignore[no-untyped-def]
    """Integral images of the padded level without its outermost pixels, and 1 / sigma of every window."""
    rows = planes.shape[1] - 1
    size = rows * stride
    squares[:stride] = 0
    for c in range(3):
        integral[c * size : c * size + stride] = 0
    prefix = np.zeros((4, stride), np.int32)
    for y in range(1, rows):
        s0 = np.int32(0)
        s1 = np.int32(0)
        s2 = np.int32(0)
        sq = np.int32(0)
        for x in range(1, stride):
            r = np.int32(planes[0, y, x])
            g = np.int32(planes[1, y, x])
            b = np.int32(planes[2, y, x])
            s0 += r
            s1 += g
            s2 += b
            sq += r * r + g * g + b * b
            prefix[0, x] = s0
            prefix[1, x] = s1
            prefix[2, x] = s2
            prefix[3, x] = sq
        above = np.uint64((y - 1) * stride)
        below = np.uint64(y * stride)
        for c in range(3):
            plane = np.uint64(c * size)
            for x in range(np.uint64(stride)):
                integral[plane + below + x] = integral[plane + above + x] + prefix[c, x]
        for x in range(np.uint64(stride)):
            squares[below + x] = squares[above + x] + prefix[3, x]
    n = np.float64(window * window)
    factor = 1 / (3 * n * n)
    total = np.empty(stride - window, np.float64)
    right = np.uint64(window)
    for y in range(inverse_sigma.shape[0]):
        above = np.uint64(y * stride)
        below = np.uint64((y + window) * stride)
        for x in range(np.uint64(stride - window)):
            box = squares[above + x] + squares[below + x + right] - squares[above + x + right] - squares[below + x]
            total[x] = n * np.float64(np.int32(box))
        for c in range(3):
            first = np.uint64(c * size) + above
            last = np.uint64(c * size) + below
            for x in range(np.uint64(stride - window)):
                box = integral[first + x] + integral[last + x + right] - integral[first + x + right] - integral[last + x]
                total[x] -= np.float64(np.int32(box)) * np.float64(np.int32(box))
        for x in range(stride - window):
            inverse_sigma[y, x] = inverse_deviation(total[x], factor)
        inverse_sigma[y, stride - window :] = 0


@jit
def dense_gradients(planes, tangents, length, bins):  # type: ignore[no-untyped-def]
    """Lengths and bins of the gradients at all pixels of the tables; 0 in the last row and column."""
    rows, columns = planes.shape[1] - 2, planes.shape[2] - 2  # entry x is the pixel x + 1 of the padded level
    across = np.empty(columns, np.float32)
    along = np.empty(columns, np.float32)
    for c in range(3):
        length[c, rows:] = 0
        bins[c, rows:] = 0
        for y in range(rows):
            gradients(
                planes[c, y + 1, :columns], planes[c, y + 1, 2 : columns + 2], planes[c, y, 1 : columns + 1],
                planes[c, y + 2, 1 : columns + 1], tangents, length[c, y, :columns], bins[c, y, :columns], across, along,
            )  # fmt: skip
            length[c, y, columns:] = 0
            bins[c, y, columns:] = 0


@jit
def dense_histograms(length, bins, cell_side, epsilon, block, cells, inverse_norm):  # type: ignore[no-untyped-def]
    """Histogram of the cell and 1 / norm of the block at every pixel.

    Row by row: the sums over the last ``cell_side`` rows of every column, bin by bin, then over columns.
    """
    _, rows, stride = length.shape
    n_bins = cells.shape[0] // 3
    upright = np.zeros((n_bins, stride), cells.dtype)
    energy = np.zeros((rows, stride), np.float32)
    row_energy = np.zeros(stride, np.float32)
    inner = stride - cell_side + 1
    reach = (block - 1) * cell_side
    for c in range(3):
        upright[:] = 0
        for y in range(rows):
            top = y - cell_side + 1
            if top >= 0:
                energy[top] = 0
            for k in range(n_bins):
                if top > 0:
                    move_bin(length[c], bins[c], y, top - 1, k, upright)
                else:
                    add_bin(length[c], bins[c], y, k, upright)
                if top >= 0:
                    entry = cells[c * n_bins + k, top * stride :]
                    if cell_side == 6:
                        sum_6(upright, k, inner, entry)
                    else:
                        entry[:inner] = 0
                        for i in range(cell_side):
                            add_shifted(upright, k, i, inner, entry)
                    add_squares(entry, inner, energy[top])
        for y in range(rows - reach):
            row_energy[:] = epsilon * epsilon
            for i in range(block):
                for j in range(block):
                    add_shifted(energy, y + i * cell_side, j * cell_side, stride - reach, row_energy)
            invert(row_energy, stride - reach, inverse_norm[c, y * stride :])


@jit
def add_bin(length, bins, y, k, upright):  # type: ignore[no-untyped-def]
    """Add to row k of ``upright`` the lengths in row y of the pixels whose bin is k."""
    none, wanted = np.uint16(0), np.uint16(k)
    for x in range(np.uint64(length.shape[1])):
        upright[k, x] += length[y, x] if bins[y, x] == wanted else none


@jit
def move_bin(length, bins, y, old, k, upright):  # type: ignore[no-untyped-def]
    """The same, and take off those of row ``old``."""
    none, wanted = np.uint16(0), np.uint16(k)
    for x in range(np.uint64(length.shape[1])):
        coming = length[y, x] if bins[y, x] == wanted else none
        going = length[old, x] if bins[old, x] == wanted else none
        upright[k, x] = upright[k, x] + coming - going


@jit
def sum_6(source, row, count, total):  # type: ignore[no-untyped-def]
    """``total[x] = source[row, x] + ... + source[row, x + 5]``: the usual side of a cell, read and written once."""
    one, two, three, four, five = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5)
    for x in range(np.uint64(count)):
        left = source[row, x] + source[row, x + one] + source[row, x + two]
        total[x] = left + source[row, x + three] + source[row, x + four] + source[row, x + five]


@jit
def add_shifted(source, row, shift, count, total):  # type: ignore[no-untyped-def]
    """``total[x] += source[row, x + shift]``."""
    first = np.uint64(shift)
    for x in range(np.uint64(count)):
        total[x] += source[row, first + x]


@jit
def add_squares(entries, count, energy):  # type: ignore[no-untyped-def]
    """Add the squares of one row of one bin to the row's energy."""
    for x in range(np.uint64(count)):
        entry = np.float32(np.int32(entries[x]))
        energy[x] += entry * entry


@jit
def invert(energy, count, inverse_norm):  # type: ignore[no-untyped-def]
    """1 / norm of one row of blocks."""
    for x in range(np.uint64(count)):
        inverse_norm[x] = np.float32(1) / np.sqrt(energy[x])


@jit
def window_histograms(  # type: ignore[no-untyped-def]
    length, bins, places, cells, blocks, cell_side, epsilon, histogram, inverse_norm
):
    """Histograms of the given cells of some windows, and 1 / norm of the given blocks of cells, summed as in `dense_histograms`."""
    _, rows, stride = length.shape
    lengths, numbers = length.ravel(), bins.ravel()
    n_bins, n_cells = np.uint64(histogram.shape[2]), np.uint64(cells.shape[0])
    first = np.empty(cells.shape[0], np.uint64)
    for i in range(cells.shape[0]):
        first[i] = (cells[i, 0] * rows + cells[i, 1]) * stride + cells[i, 2]
    energy = np.empty(cells.shape[0], np.float32)
    for w in range(places.size):
        flat = histogram[w].ravel()
        flat[:] = 0
        for y in range(cell_side):
            for x in range(cell_side):
                at = places[w] + np.uint64(y * stride + x)
                for i in range(n_cells):  # neighbouring sums do not wait for each other
                    pixel = first[i] + at
                    flat[i * n_bins + np.uint64(numbers[pixel])] += lengths[pixel]
        for i in range(n_cells):
            total = np.float32(0)
            for k in range(n_bins):
                entry = np.float32(np.int32(flat[i * n_bins + k]))
                total += entry * entry
            energy[i] = total
        for i in range(blocks.shape[0]):
            total = epsilon * epsilon
            for m in range(blocks.shape[1]):
                total += energy[blocks[i, m]]
            inverse_norm[w, i] = np.float32(1) / np.sqrt(total)


@jit
def corner_offsets(n_corners, channel, corner_y, corner_x, plane, stride, begin, end, offsets):  # type: ignore[no-untyped-def]
    """Positions of the corners of the features begin <= f < end in the flat integral image."""
    for f in range(begin, end):
        for k in range(n_corners[f]):
            offsets[f, k] = channel[f] * plane + corner_y[f, k] * stride + corner_x[f, k]
