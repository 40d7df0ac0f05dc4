"""Tables shared by all features of a level: integral images and orientation histograms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from ...learners.compilation import jit
from .feature_layout import Program
from .feature_pool import FeaturePool
from .kernels import LANES, MAGNITUDE_SCALE, gradients, inverse_deviation

# Number of histogram entries of a strip that take as long to compute as one window (measured).
_WINDOW_COST = 60


class LevelTables(NamedTuple):
    """Tables for the Haar features on a pyramid level; see `LevelChannels`."""

    integral: npt.NDArray[np.int32]
    inverse_sigma: npt.NDArray[np.float32]
    plane: int
    stride: int


class Histograms(NamedTuple):
    """Orientation histograms of windows, and the positions of HOG features in them."""

    cells: npt.NDArray[Any]  # entries of orientation histograms
    inverse_norm: npt.NDArray[np.float32]  # 1 / norm of blocks
    cells_at: npt.NDArray[np.uint64]  # (n,): start of the entries of each window
    norms_at: npt.NDArray[np.uint64]  # (n,): start of the norms of each window
    # (features, 2): offset of the entry and of the norm of each feature from these positions
    offsets: npt.NDArray[np.uint64]


class Buffers:
    """Memory that is reused for all strips (groups of rows) of an image.

    Allocating memory for each strip would take as long as computing the sums.
    """

    def __init__(self) -> None:
        self._held: dict[str, npt.NDArray[np.uint8]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an uninitialised array in the memory of earlier arrays with the same name."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty(size, np.uint8)
        return self._held[name][:size].view(dtype).reshape(shape)


@dataclass(eq=False)
class LevelChannels:
    """Tables shared by all features on a level or strip.

    They are created by `level_channels`. A strip is a group of consecutive rows of a level.
    Integral images and standard deviations are computed immediately, and gradients and orientation
    histograms are computed on first use.

    Attributes
    ----------
    pool : FeaturePool
        Pool that contains the features; it defines the side of the window and the layout of the
        histograms.
    top, bottom : int
        Range of rows whose windows are scored: ``top <= y < bottom``.
    first : int
        First row of the level that the tables contain; less than ``top`` if a margin was requested.
    rows, width : int
        Number of rows in the tables, and width of the level. There is one window per pixel.
    stride : int
        Number of entries per row of each table: the width, rounded up to a multiple of ``LANES``,
        plus the side of the window.
    planes : ndarray of shape (3, rows + window + 1, stride + 1), uint8
        Channels of the level with repeated border pixels. Pixel (window // 2 + 1, window // 2 + 1)
        of a channel is pixel (0, first) of the level.
    integral : ndarray of shape (3 * (rows + window) * stride,), int32
        Integral image of each channel. Its values may overflow, but the differences that yield the
        sum over a window are exact.
    inverse_sigma : ndarray of shape (rows, stride), float32
        Inverse standard deviation of the window at each pixel.
    expected_requests : float
        Estimate of the total number of windows for which histograms will be requested, divided by
        the number requested so far.
    """

    pool: FeaturePool
    top: int
    bottom: int
    first: int
    rows: int
    width: int
    stride: int
    planes: npt.NDArray[np.uint8]
    integral: npt.NDArray[np.int32]
    inverse_sigma: npt.NDArray[np.float32]
    expected_requests: float = 1.0
    _n_requests: int = 0
    _buffers: Buffers = field(default_factory=Buffers, repr=False)

    @property
    def plane(self) -> int:
        """Number of entries in the integral image of a channel and in each table of :attr:`hog`."""
        return (self.rows + self.pool.window) * self.stride

    @property
    def tables(self) -> LevelTables:
        """Tables that the scan loops read."""
        return LevelTables(self.integral, self.inverse_sigma, self.plane, self.stride)

    @property
    def has_hog(self) -> bool:
        """Whether :attr:`hog` has been computed."""
        return "hog" in self.__dict__

    @cached_property
    def hog(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Histogram of the cell, and inverse norm of the block, that start at each pixel.

        The arrays have the shapes (3 * orientations, plane) and (3, plane).
        """
        cells = self._buffers.take(
            "cells", (3 * self.pool.layout.orientations, self.plane), self.entry
        )
        inverse_norm = self._buffers.take("norms", (3, self.plane), np.float32)
        dense_histograms(*self.gradient, self.pool.layout, cells, inverse_norm)
        return cells, inverse_norm

    @cached_property
    def gradient(self) -> npt.NDArray[np.uint16]:
        """Length and bin of the gradient at each pixel, of shape (2, 3, rows + window, stride)."""
        gradient = self._buffers.take(
            "gradient", (2, 3, self.rows + self.pool.window, self.stride), np.uint16
        )
        gradient[:, :, -1], gradient[:, :, :, -1] = 0, 0  # without neighbours
        dense_gradients(self.planes, self.pool.layout.tangents, *gradient)
        return gradient

    @property
    def entry(self) -> type:
        """Data type of the histogram entries: 16 bits if these suffice for the largest sum."""
        largest = self.pool.layout.cell**2 * MAGNITUDE_SCALE * 255 * 2**0.5
        return np.uint16 if largest < 65535 else np.int32

    def window_hog(
        self, places: npt.NDArray[np.uint64], program: Program
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Compute the histograms of individual windows, bit-identical to those in :attr:`hog`.

        Parameters
        ----------
        places : ndarray of shape (n,), uint64
            Flat positions of the windows in the level.
        program : Program
            Compiled features, which use c distinct cells and b distinct blocks.

        Returns
        -------
        cells : ndarray of shape (n, c, orientations)
            Histogram of each cell.
        inverse_norms : ndarray of shape (n, b), float32
            Inverse norm of each block.
        """
        histogram: npt.NDArray[Any] = np.empty(
            (len(places), len(program.cells), self.pool.layout.orientations), self.entry
        )
        inverse_norm = np.empty((len(places), len(program.blocks)), np.float32)
        window_histograms(self.gradient, places, program, self.pool.layout, histogram, inverse_norm)
        return histogram, inverse_norm

    def histograms(
        self, program: Program | None, places: npt.NDArray[np.uint64], dense: bool = False
    ) -> Histograms:
        """Return the histograms that the given features require in the given windows.

        Histograms are computed only for these windows or, if many windows are requested, for all.

        Parameters
        ----------
        program : Program or None
            Compiled features; None if they do not require histograms.
        places : ndarray of shape (n,), uint64
            Flat positions of the windows in the level.
        dense : bool, default False
            Whether to compute histograms for all windows, even if few are requested.

        Returns
        -------
        Histograms
        """
        if program is None or not len(program.hog):
            return Histograms(
                np.zeros(1, self.entry),
                np.zeros(1, np.float32),
                places,
                places,
                np.zeros((1, 2), np.uint64),
            )
        self._n_requests += len(places)
        if (
            dense
            or self.has_hog
            or self._n_requests * _WINDOW_COST * self.expected_requests > self.plane
        ):
            cells, norms = self.hog
            return Histograms(
                cells.reshape(-1), norms.reshape(-1), places, places, self.hog_offsets(program)
            )
        cells, norms = self.window_hog(places, program)
        number = np.arange(len(places), dtype=np.uint64)
        offsets = np.stack(
            [program.cell * cells.shape[2] + program.orientation, program.block], axis=1
        ).astype(np.uint64)
        starts = number * np.uint64(cells[0].size), number * np.uint64(norms[0].size)
        return Histograms(cells.reshape(-1), norms.reshape(-1), *starts, offsets)

    def corner_offsets(self, program: Program) -> npt.NDArray[np.uint64]:
        """Return the positions of the corners of all features in the flat integral image.

        These positions are relative to the position of the window.

        Parameters
        ----------
        program : Program
            Compiled features.

        Returns
        -------
        ndarray of shape (n, K), uint64
            Positions.
        """
        corners = (
            program.channel[:, None] * self.plane
            + program.corner_y * self.stride
            + program.corner_x
        )
        return corners.astype(np.uint64)

    def hog_offsets(self, program: Program) -> npt.NDArray[np.uint64]:
        """Return the positions of each feature's cell and block in the tables of :attr:`hog`.

        Positions are 0 for Haar features.

        Parameters
        ----------
        program : Program
            Compiled features.

        Returns
        -------
        ndarray of shape (n, 2), uint64
            Positions.
        """
        offsets = np.zeros((len(program.channel), 2), np.uint64)
        f = program.hog
        c, y, x = program.cells[program.cell[f]].T
        offsets[f, 0] = (
            (c * self.pool.layout.orientations + program.orientation[f]) * self.plane
            + y * self.stride
            + x
        )
        offsets[f, 1] = program.block_corner[program.block[f]] @ np.array(
            [self.plane, self.stride, 1]
        )
        return offsets


def level_channels(
    image: npt.NDArray[np.uint8],
    pool: FeaturePool | None = None,
    rows: tuple[int, int] | None = None,
    margin: int = 0,
    buffers: Buffers | None = None,
    expected_requests: float = 1.0,
) -> LevelChannels:
    """Prepare a pyramid level, or a strip of it, for scanning.

    The result can be used by any number of models.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
    pool : FeaturePool, optional
        Pool that contains the features; by default, ``FeaturePool()``.
    rows : tuple of int, optional
        Range of rows (start, stop) of a strip; by default, all rows. Feature values are
        bit-identical to those for the whole level.
    margin : int, default 0
        Number of additional rows above and below the strip, as far as the level contains them.
    buffers : Buffers, optional
        Memory to reuse. All tables that were computed earlier with the same buffers become invalid.
    expected_requests : float, default 1.0
        As in `LevelChannels`. It affects the running time, but not the results.

    Returns
    -------
    LevelChannels

    Raises
    ------
    ValueError
        If the image is invalid or the rows lie outside it.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            f"image has shape {image.shape} and dtype {image.dtype}; "
            "expected uint8 of shape (H, W, 3)"
        )
    pool = FeaturePool() if pool is None else pool
    height, width = image.shape[:2]
    top, bottom = (0, height) if rows is None else rows
    if not 0 <= top < bottom <= height:
        raise ValueError(
            f"rows={rows} is not valid; expected (top, bottom) with 0 <= top < bottom <= {height}"
        )
    first, end = max(0, top - margin), min(height, bottom + margin)
    window = pool.window
    stride = -(-width // LANES) * LANES + window
    before, after = window // 2 + 1, window - window // 2
    # Pixels beyond the strip come from the level; border pixels are repeated only outside the
    # level.
    above, below = min(before, first), min(after, height - end)
    part = image[first - above : end + below]
    buffers = Buffers() if buffers is None else buffers
    planes = buffers.take("planes", (3, end - first + window + 1, stride + 1), np.uint8)
    for plane, channel in zip(planes, cv2.split(part), strict=True):
        plane[:] = cv2.copyMakeBorder(
            channel,
            before - above,
            after - below,
            before,
            stride + 1 - before - width,
            borderType=cv2.BORDER_REPLICATE,
        )
    return _from_planes(planes, pool, (top, bottom, first, width), expected_requests, buffers)


def patch_channels(patches: Sequence[npt.NDArray[np.uint8]], pool: FeaturePool) -> LevelChannels:
    """Join patches to form a strip, and prepare it for scoring the windows in the patches.

    The patches are side by side, since the loops over long rows are fast.

    Parameters
    ----------
    patches : sequence of n ndarray of shape (side, side, 3), uint8
        Patches of a level. Window (x, y) of patch i, with ``0 <= x, y < side - window - 1``, is
        window (i * side + x, y) of the strip. The pixel that defines its position (see
        `extract_patches`) is (x + window // 2 + 1, y + window // 2 + 1) in the patch.
    pool : FeaturePool
        Pool that contains the features.

    Returns
    -------
    LevelChannels
        Tables for scoring individual windows. They do not support scans.
    """
    planes = np.array(cv2.split(cv2.hconcat(patches)), np.uint8)
    rows, width = (side - pool.window - 1 for side in planes.shape[1:])
    return _from_planes(planes, pool, (0, rows, 0, width), 1.0, Buffers())


def _from_planes(
    planes: npt.NDArray[np.uint8],
    pool: FeaturePool,
    place: tuple[int, int, int, int],
    expected_requests: float,
    buffers: Buffers,
) -> LevelChannels:
    """Compute the tables of padded channels; ``place`` holds the first and last row, the first row
    in the tables, and the width."""
    held, stride = planes.shape[1] - 1, planes.shape[2] - 1
    top, bottom, first, width = place
    rows = held - pool.window
    integral = buffers.take("integral", (3, held, stride), np.int32)
    for plane, sums in zip(planes, integral, strict=True):
        cv2.integral(plane[1:held, 1:stride], sums, sdepth=cv2.CV_32S)
    squares = buffers.take("squares", (held, stride), np.int32)
    inverse_sigma = buffers.take("sigma", (rows, stride), np.float32)
    deviations(planes, integral, pool.window, squares, inverse_sigma)
    tables = planes, integral.reshape(-1), inverse_sigma
    shape = top, bottom, first, rows, width, stride
    return LevelChannels(pool, *shape, *tables, expected_requests, _buffers=buffers)


def _deviations(planes, integral, window, squares, inverse_sigma):  # type: ignore[no-untyped-def]
    def box_sums(values):  # type: ignore[no-untyped-def]
        sums = cv2.boxFilter(values, cv2.CV_64F, (window, window), anchor=(0, 0), normalize=False)
        return sums[1 : rows + 1, 1 : width + 1]

    rows, width = inverse_sigma.shape[0], inverse_sigma.shape[1] - window
    n = float(window * window)
    variance = n * box_sums(np.square(planes, dtype=np.float64).sum(axis=0)) - sum(
        np.square(box_sums(plane)) for plane in planes
    )
    sigma = np.sqrt((variance * (1 / (3 * n * n))).astype(np.float32))
    inverse_sigma[:, :width] = 1 / np.maximum(sigma, np.float32(1))
    inverse_sigma[:, width:] = 0


@jit(plain=_deviations, by_size=False)
def deviations(planes, integral, window, squares, inverse_sigma):  # type: ignore[no-untyped-def]
    """Compute the inverse standard deviation of every window from integral images.

    The integral image of the squares, summed over the channels, is written to ``squares``.
    """
    squares[0] = 0
    for y in range(1, squares.shape[0]):
        total = np.int32(0)
        squares[y, 0] = 0
        for x in range(1, squares.shape[1]):
            r, g, b = (
                np.int32(planes[0, y, x]),
                np.int32(planes[1, y, x]),
                np.int32(planes[2, y, x]),
            )
            total += r * r + g * g + b * b
            squares[y, x] = squares[y - 1, x] + total
    width = inverse_sigma.shape[1] - window
    n = np.float64(window * window)
    factor = 1 / (3 * n * n)
    variance = np.empty(width, np.float64)
    right = np.uint64(window)
    for y in range(inverse_sigma.shape[0]):
        above, below = squares[y], squares[y + window]
        for x in range(np.uint64(width)):
            variance[x] = n * np.float64(
                np.int32(above[x] + below[x + right] - above[x + right] - below[x])
            )
        for c in range(3):
            above, below = integral[c, y], integral[c, y + window]
            for x in range(np.uint64(width)):
                box = np.float64(
                    np.int32(above[x] + below[x + right] - above[x + right] - below[x])
                )
                variance[x] -= box * box
        for x in range(width):
            inverse_sigma[y, x] = inverse_deviation(variance[x], factor)
        inverse_sigma[y, width:] = 0


def _dense_gradients(planes, tangents, length, bins):  # type: ignore[no-untyped-def]
    rows, columns = planes.shape[1] - 2, planes.shape[2] - 2
    signed = planes.astype(np.float32)
    horizontal = signed[:, 1:-1, 2:] - signed[:, 1:-1, :-2]
    vertical = signed[:, 2:, 1:-1] - signed[:, :-2, 1:-1]
    length[:, :rows, :columns] = np.sqrt(
        horizontal * horizontal + vertical * vertical
    ) * np.float32(MAGNITUDE_SCALE) + np.float32(0.5)
    k = sum(abs(vertical) > abs(horizontal) * tangent for tangent in tangents).astype(np.uint16)
    bins[:, :rows, :columns] = np.where(
        (horizontal * vertical < 0) & (k > 0), 2 * len(tangents) - k, k
    )


@jit(plain=_dense_gradients, by_size=False)
def dense_gradients(planes, tangents, length, bins):  # type: ignore[no-untyped-def]
    """Compute the lengths and bins of the gradients, except in the last row and column."""
    # entry x is pixel x + 1 of the padded level
    rows, columns = planes.shape[1] - 2, planes.shape[2] - 2
    components = np.empty((2, columns), np.float32)
    for c in range(3):
        for y in range(rows):
            gradients(
                planes[c, y + 1, :columns],
                planes[c, y + 1, 2 : columns + 2],
                planes[c, y, 1 : columns + 1],
                planes[c, y + 2, 1 : columns + 1],
                tangents,
                length[c, y, :columns],
                bins[c, y, :columns],
                components,
            )


def _dense_histograms(length, bins, layout, cells, inverse_norm):  # type: ignore[no-untyped-def]
    _, rows, stride = length.shape
    n_bins, side = len(cells) // 3, layout.cell
    height, width = rows - side + 1, stride - side + 1
    reach = (layout.block - 1) * side
    for c in range(3):
        energy = np.zeros((rows, stride), np.float32)
        for k in range(n_bins):
            sums = cv2.boxFilter(
                np.where(bins[c] == k, length[c], 0).astype(np.float32),
                -1,
                (side, side),
                anchor=(0, 0),
                normalize=False,
            )
            cells[c * n_bins + k].reshape(rows, stride)[:height, :width] = sums[:height, :width]
            energy[:height, :width] += np.square(sums[:height, :width])
        total = np.full((rows - reach, stride - reach), layout.epsilon**2)
        for y in range(0, reach + 1, side):
            for x in range(0, reach + 1, side):
                total += energy[y : y + len(total), x : x + total.shape[1]]
        inverse_norm[c].reshape(rows, stride)[: len(total), : total.shape[1]] = 1 / np.sqrt(total)


@jit(plain=_dense_histograms, by_size=False)
def dense_histograms(length, bins, layout, cells, inverse_norm):  # type: ignore[no-untyped-def]
    """Compute the histogram of the cell and inverse norm of the block that start at each pixel.

    For each bin, gradient lengths are first summed over the rows of a cell and then over its
    columns.
    """
    _, rows, stride = length.shape
    n_bins, cell_side, block, epsilon = (
        cells.shape[0] // 3,
        layout.cell,
        layout.block,
        layout.epsilon,
    )
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
                # row -1, the last row, has no lengths
                move_bin(length[c], bins[c], y, max(top, 0) - 1, k, upright)
                if top >= 0:
                    entry = cells[c * n_bins + k, top * stride :]
                    entry[:inner] = 0
                    for i in range(cell_side):
                        add_shifted(upright, k, i, inner, entry)
                    add_squares(entry, inner, energy[top])
        for y in range(rows - reach):
            row_energy[:] = epsilon * epsilon
            for i in range(block):
                for j in range(block):
                    add_shifted(
                        energy, y + i * cell_side, j * cell_side, stride - reach, row_energy
                    )
            invert(row_energy, stride - reach, inverse_norm[c, y * stride :])


@jit
def move_bin(length, bins, y, old, k, upright):  # type: ignore[no-untyped-def]
    """Add the gradient lengths of bin k in row y to ``upright``; subtract those in row ``old``."""
    none, wanted = np.uint16(0), np.uint16(k)
    for x in range(np.uint64(length.shape[1])):
        coming = length[y, x] if bins[y, x] == wanted else none
        going = length[old, x] if bins[old, x] == wanted else none
        upright[k, x] = upright[k, x] + coming - going


@jit
def add_shifted(source, row, shift, count, total):  # type: ignore[no-untyped-def]
    """Compute ``total[x] += source[row, x + shift]``."""
    first = np.uint64(shift)
    for x in range(np.uint64(count)):
        total[x] += source[row, first + x]


@jit
def add_squares(entries, count, energy):  # type: ignore[no-untyped-def]
    """Add the squares of a row of histogram entries to ``energy``."""
    for x in range(np.uint64(count)):
        entry = np.float32(np.int32(entries[x]))
        energy[x] += entry * entry


@jit
def invert(energy, count, inverse_norm):  # type: ignore[no-untyped-def]
    """Compute the inverse norms of a row of blocks from their squared norms."""
    for x in range(np.uint64(count)):
        inverse_norm[x] = np.float32(1) / np.sqrt(energy[x])


def _window_histograms(gradient, places, program, layout, histogram, inverse_norm):  # type: ignore[no-untyped-def]
    _, _, rows, stride = gradient.shape
    n, n_cells, n_bins = histogram.shape
    c, y, x = program.cells.T
    pixels = (np.arange(layout.cell)[:, None] * stride + np.arange(layout.cell)).ravel()
    at = places.astype(np.int64)[:, None, None] + ((c * rows + y) * stride + x)[:, None] + pixels
    entry = np.arange(n * n_cells).reshape(n, n_cells, 1) * n_bins + gradient[1].ravel()[at]
    histogram[:] = np.bincount(
        entry.ravel(), gradient[0].ravel()[at].ravel(), histogram.size
    ).reshape(histogram.shape)
    energy = np.square(histogram.astype(np.float32)).cumsum(axis=2)[:, :, -1]
    total = np.full(inverse_norm.shape, layout.epsilon**2)
    for cell in program.blocks.T:
        total += energy[:, cell]
    inverse_norm[:] = 1 / np.sqrt(total)


@jit(plain=_window_histograms, by_size=False)
def window_histograms(gradient, places, program, layout, histogram, inverse_norm):  # type: ignore[no-untyped-def]
    """Compute the histograms of the cells, and inverse norms of the blocks, in given windows.

    The results are bit-identical to those of `dense_histograms`.
    """
    _, _, rows, stride = gradient.shape
    lengths, numbers = gradient[0].ravel(), gradient[1].ravel()
    cells, blocks, cell_side, epsilon = program.cells, program.blocks, layout.cell, layout.epsilon
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
                for i in range(n_cells):  # neighbouring sums are independent of each other
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
