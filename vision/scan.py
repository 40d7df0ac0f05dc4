"""A sparse additive model on every window of an image: the dense scan with early rejection."""

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from .blocks import (
    LANES,
    MAGNITUDE_SCALE,
    Program,
    add_corner,
    gather_6,
    gather_hog,
    gather_more,
    gradients,
    inverse_deviation,
    respond,
    scaled,
    sum_6_corners,
    sum_8_corners,
)
from .pool import FeaturePool, response_tables

__all__ = ["Additive", "LevelChannels", "additive", "dense_values", "level_channels", "scan", "scan_level"]

GROUP = 64
"""Neighbouring windows of a row that are scored together."""

FEW = 16
"""Where so few of a group are left, they go on one by one, packed with those of other groups."""

_FIRST_STAGE = 8  # features of the first stage of a cascade; every next stage has twice as many


@dataclass(frozen=True)
class LevelChannels:
    """What all features share on one level: integral images and standard deviations, histograms when asked for.

    Attributes
    ----------
    pool : FeaturePool
        Gives the window's side and the layout of the histograms.
    top, bottom : int
        Rows of the level whose windows are meant: ``top <= y < bottom``.
    first : int
        First row of the level that the tables hold, above ``top`` where windows around were asked for.
    rows, width : int
        Rows held, and the level's width; there is one window per pixel.
    stride : int
        Entries per row of all tables: the width, rounded up to whole groups of lanes, plus the window.
    planes : (3, rows + window + 1, stride + 1) uint8 ndarray
        The level's channels with the border pixels repeated; their pixel (window // 2 + 1, window // 2 + 1) is the
        level's (0, first).
    integral : (3 * (rows + window) * stride,) int32 ndarray
        Integral image of each channel. Sums may wrap around; box sums of one window are exact all the same.
    inverse_sigma : (rows, stride) float32 ndarray
        1 / sigma of the window at each pixel.
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
    _hog: list[tuple[npt.NDArray[Any], npt.NDArray[np.float32]]] = field(default_factory=list, repr=False)

    @property
    def hog(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Histogram entries of the cell, and 1 / norm of the block, whose top left pixel is the entry's.

        Shapes (3 * orientations, n * stride) and (3, n * stride), n = rows + window; computed at first use.
        """
        if not self._hog:
            rows = self.rows + self.pool.window
            orientations = self.pool.hog.orientations if self.pool.hog else 4
            block = self.pool.hog.block if self.pool.hog else 1
            # Half the memory where the largest sum fits into 16 bits: sums of wrapped numbers are exact all the same.
            largest = (self.pool.hog.cell if self.pool.hog else 1) ** 2 * MAGNITUDE_SCALE * 255 * 2**0.5
            entry = np.uint16 if largest < 65535 else np.int32
            cells = np.zeros((3 * orientations, rows * self.stride), entry)
            inverse_norm = np.zeros((3, rows * self.stride), np.float32)
            dense_histograms(self.planes, self.stride, *self.pool.hog_arguments(), block, cells, inverse_norm)
            self._hog.append((cells, inverse_norm))
        return self._hog[0]


def level_channels(
    image: npt.NDArray[np.uint8], pool: FeaturePool | None = None, rows: tuple[int, int] | None = None, margin: int = 0
) -> LevelChannels:
    """Prepare one pyramid level, or a strip of it, for scanning; any number of models can then use it.

    Parameters
    ----------
    image : (H, W, 3) uint8 ndarray
    pool : FeaturePool, optional
        The pool of the models; ``FeaturePool()`` by default.
    rows : tuple of int, optional
        First row and end of a strip, all rows by default. The values of its windows are those of the whole level, to the bit.
    margin : int, default 0
        So many rows more above and below the strip, where the level has them.

    Returns
    -------
    LevelChannels

    Raises
    ------
    ValueError
        For another kind of image and for rows that it does not have.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(f"image of shape {image.shape} and {image.dtype}: expected uint8 (H, W, 3)")
    pool = FeaturePool() if pool is None else pool
    height, width = image.shape[:2]
    top, bottom = (0, height) if rows is None else rows
    if not 0 <= top < bottom <= height:
        raise ValueError(f"rows={rows}: expected some of the {height} rows of the level")
    first, end = max(0, top - margin), min(height, bottom + margin)
    window = pool.window
    stride = -(-width // GROUP) * GROUP + window
    before, after = window // 2 + 1, window - window // 2
    # Pixels beyond the strip come from the level; only beyond the level's frame is the border repeated.
    above, below = min(before, first), min(after, height - end)
    part = image[first - above : end + below]
    planes = np.empty((3, end - first + window + 1, stride + 1), np.uint8)
    for plane, channel in zip(planes, cv2.split(part), strict=True):
        plane[:] = cv2.copyMakeBorder(
            channel, before - above, after - below, before, stride + 1 - before - width, borderType=cv2.BORDER_REPLICATE
        )
    integral = np.zeros(3 * (end - first + window) * stride, np.int32)
    inverse_sigma = np.empty((end - first, stride), np.float32)
    dense_integrals(planes, window, stride, integral, inverse_sigma)
    return LevelChannels(pool, top, bottom, first, end - first, width, stride, planes, integral, inverse_sigma)


@dataclass(frozen=True)
class Additive:
    """A sparse additive model in the form that the compiled loops read; `additive` makes it. n features, q outputs.

    Attributes
    ----------
    program : Program
        The features.
    slope, shift : (n,) float32 ndarrays
        A numerator s of feature f, times its scale, lies at ``s * slope[f] - shift[f]`` among the bins.
    top : float32
        Number of bins.
    start : (q, n) float32 ndarray
        Responses at the left border.
    rises : (q, n, 6 * K) float32 ndarray
        How much the response rises in each bin.
    intercept : (q,) float32 ndarray
    limits : (n,) float32 ndarray
        Rejection thresholds of the first output.
    """

    program: Program
    slope: npt.NDArray[np.float32]
    shift: npt.NDArray[np.float32]
    top: np.float32
    start: npt.NDArray[np.float32]
    rises: npt.NDArray[np.float32]
    intercept: npt.NDArray[np.float32]
    limits: npt.NDArray[np.float32]


def additive(
    pool: FeaturePool,
    features: npt.ArrayLike,
    lo: npt.ArrayLike,
    step: npt.ArrayLike,
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    thresholds: npt.ArrayLike | None = None,
) -> Additive:
    """Prepare a model for any number of levels; parameters and errors as in `scan`.

    ``coef`` (n, B + 1, q) and ``intercept`` (q,) make a model of q outputs.
    """
    program = pool.compile(features)
    n_features = len(program.channel)
    table = np.asarray(coef, dtype=np.float32)
    table = table[:, :, None] if table.ndim == 2 else table
    offset = np.atleast_1d(np.asarray(intercept, dtype=np.float32))
    if table.ndim != 3 or offset.shape != table.shape[2:]:
        raise ValueError(f"coef of shape {np.shape(coef)}, intercept of shape {np.shape(intercept)}: expected the same outputs")
    parts = [response_tables(n_features, lo, step, table[:, :, q]) for q in range(table.shape[2])]
    low, inverse_step, top, *_ = parts[0]
    limits = np.full(n_features, -np.inf, np.float32) if thresholds is None else np.asarray(thresholds, dtype=np.float32)
    if limits.shape != (n_features,) or np.isnan(limits).any():
        raise ValueError(f"thresholds of shape {limits.shape}: expected one number for each of {n_features} features")
    start, rises = np.stack([part[3] for part in parts]), np.stack([part[4] for part in parts])
    return Additive(program, program.inverse_area * inverse_step, low * inverse_step, top, start, rises, offset, limits)


def scan(
    channels: LevelChannels,
    features: npt.ArrayLike,
    lo: npt.ArrayLike,
    step: npt.ArrayLike,
    coef: npt.ArrayLike,
    intercept: float,
    thresholds: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float32]:
    """Score every window of a level.

    The score is ``intercept + sum_t r_t(v_t)`` with ``r(v)`` linear between the entries of ``coef`` at
    ``lo, lo + step, ..., lo + B * step`` and constant outside. It is summed in the order of the features; a window
    whose sum after feature t (intercept included) lies below ``thresholds[t]`` is rejected.

    Parameters
    ----------
    channels : LevelChannels
        From `level_channels`.
    features : (n, 8) array_like of int
    lo, step : (n,) array_like
    coef : (n, B + 1) array_like
    intercept : float
    thresholds : (n,) array_like, optional
        -inf never rejects, which is the default.

    Returns
    -------
    (H, W) float32 ndarray
        Entry (y, x): score of the window at pixel (x, y), see `annealed.vision.pool.extract_patches`; -inf where
        rejected.

    Raises
    ------
    ValueError
        For features that do not fit and arrays whose lengths disagree.
    """
    return scan_level(channels, additive(channels.pool, features, lo, step, coef, intercept, thresholds))


def scan_level(channels: LevelChannels, model: Additive) -> npt.NDArray[np.float32]:
    """Score every window of a level, or of the strip held, with a prepared model: (H, W) float32, as `scan`."""
    program = model.program
    height, width = channels.rows, channels.width
    stages = _stages(len(program.channel))
    out = np.empty((height, width), np.float32)
    handed = np.zeros((height, width), np.int8)
    cells, inverse_norm = flat_hog(channels, program)
    scan_rows(
        program.n_corners, level_offsets(channels, program), program.weight, model.slope, channels.integral,
        channels.inverse_sigma, cells, inverse_norm, model.shift, model.top, model.start[0], model.rises[0],
        model.intercept[0], model.limits, stages, out, handed,
    )  # fmt: skip
    ys, xs = np.nonzero(handed)
    if len(ys):
        places = (ys * channels.stride + xs).astype(np.uint64)
        out[ys, xs] = finish_windows(channels, model, places, out[ys, xs], handed[ys, xs].astype(np.int64))
    return out


def _stages(n_features: int) -> npt.NDArray[np.int64]:
    """Features 0, 8, 24, 56, ..., n: windows that are rejected in one stage of a cascade do not enter the next."""
    ends = np.minimum(_FIRST_STAGE * (2 ** np.arange(60) - 1), n_features)
    return np.unique(np.append(ends, n_features)).astype(np.int64)


def finish_windows(
    channels: LevelChannels,
    model: Additive,
    places: npt.NDArray[np.uint64],
    scores: npt.NDArray[np.float32],
    entered: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """Final scores of windows at flat places, each of which enters the cascade at a stage of its own with a running sum."""
    program = model.program
    stages = _stages(len(program.channel))
    offsets = level_offsets(channels, program)
    cells, inverse_norm = flat_hog(channels, program)
    out = scores.copy()
    left = np.empty(0, np.int64)
    for stage in range(len(stages) - 1):
        left = np.concatenate([left, np.flatnonzero(entered == stage)])
        if not len(left):
            continue
        running = out[left]
        score_places(
            program.n_corners, offsets, program.weight, model.slope, channels.integral,
            channels.inverse_sigma.reshape(-1), cells, inverse_norm, model.shift, model.top, model.start[0],
            model.rises[0], model.limits, stages[stage], stages[stage + 1], places[left], running,
        )  # fmt: skip
        out[left] = running
        left = left[running > -np.inf]
    return out


def dense_values(channels: LevelChannels, feature: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Value of one feature in every window of a level: (H, W) float32."""
    program = channels.pool.compile(feature)
    if len(program.channel) != 1:
        raise ValueError(f"{len(program.channel)} features: expected one")
    cells, inverse_norm = flat_hog(channels, program)
    out = np.empty((channels.rows, channels.width), np.float32)
    value_rows(
        program.n_corners, level_offsets(channels, program), program.weight, program.inverse_area, channels.integral,
        channels.inverse_sigma, cells, inverse_norm, out,
    )  # fmt: skip
    return out


def flat_hog(channels: LevelChannels, program: Program) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    if len(program.with_0) == 0:
        return np.zeros(1, np.uint16), np.zeros(1, np.float32)
    cells, inverse_norm = channels.hog
    return cells.reshape(-1), inverse_norm.reshape(-1)


def level_offsets(channels: LevelChannels, program: Program) -> npt.NDArray[np.uint64]:
    """Where corners lie in the flat integral image; for HOG: of the cell in the histograms and of the block in the norms."""
    plane = (channels.rows + channels.pool.window) * channels.stride
    offsets = program.channel[:, None] * plane + program.corner_y * channels.stride + program.corner_x
    hog = program.with_0
    if len(hog) and channels.pool.hog is not None:
        cells, blocks = program.cells[program.cell[hog]], program.block_corner[program.block[hog]]
        entry = cells[:, 0] * channels.pool.hog.orientations + program.orientation[hog]
        offsets[hog, 0] = entry * plane + cells[:, 1] * channels.stride + cells[:, 2]
        offsets[hog, 1] = blocks[:, 0] * plane + blocks[:, 1] * channels.stride + blocks[:, 2]
    return offsets.astype(np.uint64)


@njit(cache=True, nogil=True)
def dense_integrals(planes, window, stride, integral, inverse_sigma):  # type: ignore[no-untyped-def]
    """Integral images of the padded level without its outermost pixels, and 1 / sigma of every window."""
    rows = planes.shape[1] - 1
    size = rows * stride
    squares = np.zeros(size, np.int32)
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
        above = uint64((y - 1) * stride)
        below = uint64(y * stride)
        for c in range(3):
            plane = uint64(c * size)
            for x in range(uint64(stride)):
                integral[plane + below + x] = integral[plane + above + x] + prefix[c, x]
        for x in range(uint64(stride)):
            squares[below + x] = squares[above + x] + prefix[3, x]
    n = np.float64(window * window)
    factor = 1 / (3 * n * n)
    total = np.empty(stride - window, np.float64)
    right = uint64(window)
    for y in range(inverse_sigma.shape[0]):
        above = uint64(y * stride)
        below = uint64((y + window) * stride)
        for x in range(uint64(stride - window)):
            box = squares[above + x] + squares[below + x + right] - squares[above + x + right] - squares[below + x]
            total[x] = n * np.float64(np.int32(box))
        for c in range(3):
            a = uint64(c * size) + above
            b = uint64(c * size) + below
            for x in range(uint64(stride - window)):
                box = integral[a + x] + integral[b + x + right] - integral[a + x + right] - integral[b + x]
                total[x] -= np.float64(np.int32(box)) * np.float64(np.int32(box))
        for x in range(stride - window):
            inverse_sigma[y, x] = inverse_deviation(total[x], factor)
        inverse_sigma[y, stride - window :] = 0


@njit(cache=True, nogil=True)
def dense_histograms(  # type: ignore[no-untyped-def]
    planes, stride, cell_side, epsilon, tangents, block, cells, inverse_norm
):
    """Histogram of the cell and 1 / norm of the block at every pixel.

    Row by row: the sums over the last ``cell_side`` rows of every column, bin by bin, then over columns.
    """
    n_bins = 2 * tangents.size
    rows = planes.shape[1] - 2
    columns = stride - 1  # entry x is the pixel x + 1 of the padded level
    length = np.zeros((rows, columns), np.uint16)
    bins = np.zeros((rows, columns), np.uint16)
    across = np.empty(columns, np.float32)
    along = np.empty(columns, np.float32)
    upright = np.zeros((n_bins, columns), cells.dtype)
    energy = np.zeros((rows, columns), np.float32)
    row_energy = np.zeros(columns, np.float32)
    inner = columns - cell_side + 1
    reach = (block - 1) * cell_side
    for c in range(3):
        upright[:] = 0
        for y in range(rows):
            gradients(
                planes[c, y + 1, :columns], planes[c, y + 1, 2 : columns + 2], planes[c, y, 1 : columns + 1],
                planes[c, y + 2, 1 : columns + 1], tangents, length[y], bins[y], across, along,
            )  # fmt: skip
            top = y - cell_side + 1
            row_energy[:] = 0
            for k in range(n_bins):
                if top > 0:
                    move_bin(length, bins, y, top - 1, k, upright)
                else:
                    add_bin(length, bins, y, k, upright)
                if top >= 0:
                    entry = cells[c * n_bins + k, top * stride :]
                    sum_first(upright, k, cell_side, inner, entry)
                    for i in range(2, cell_side - 1, 2):
                        add_two(upright, k, i, inner, entry)
                    if cell_side > 1 and cell_side % 2:
                        add_shifted(upright, k, cell_side - 1, inner, entry)
                    add_squares(entry, inner, row_energy)
            if top >= 0:
                energy[top] = row_energy
        for y in range(rows - reach):
            row_energy[:] = epsilon * epsilon
            for i in range(block):
                for j in range(block):
                    add_shifted(energy, y + i * cell_side, j * cell_side, columns - reach, row_energy)
            for x in range(columns - reach):
                inverse_norm[c, y * stride + x] = np.float32(1) / np.sqrt(row_energy[x])


@njit(cache=True, nogil=True)
def add_bin(length, bins, y, k, upright):  # type: ignore[no-untyped-def]
    """Add to row k of ``upright`` the lengths in row y of the pixels whose bin is k."""
    for x in range(length.shape[1]):
        upright[k, x] += length[y, x] if bins[y, x] == k else 0


@njit(cache=True, nogil=True)
def move_bin(length, bins, y, old, k, upright):  # type: ignore[no-untyped-def]
    """The same, and take off those of row ``old``."""
    for x in range(length.shape[1]):
        coming = length[y, x] if bins[y, x] == k else 0
        going = length[old, x] if bins[old, x] == k else 0
        upright[k, x] += coming - going


@njit(cache=True, nogil=True)
def sum_first(source, row, n_terms, count, total):  # type: ignore[no-untyped-def]
    """``total[x] = source[row, x] + source[row, x + 1]``, or the first alone where there is but one term."""
    if n_terms == 1:
        for x in range(uint64(count)):
            total[x] = source[row, x]
        return
    one = uint64(1)
    for x in range(uint64(count)):
        total[x] = source[row, x] + source[row, one + x]


@njit(cache=True, nogil=True)
def add_two(source, row, shift, count, total):  # type: ignore[no-untyped-def]
    """``total[x] += source[row, x + shift] + source[row, x + shift + 1]``."""
    first, second = uint64(shift), uint64(shift + 1)
    for x in range(uint64(count)):
        total[x] += source[row, first + x] + source[row, second + x]


@njit(cache=True, nogil=True)
def add_shifted(source, row, shift, count, total):  # type: ignore[no-untyped-def]
    """``total[x] += source[row, x + shift]``."""
    first = uint64(shift)
    for x in range(uint64(count)):
        total[x] += source[row, first + x]


@njit(cache=True, nogil=True)
def add_squares(entries, count, energy):  # type: ignore[no-untyped-def]
    """Add the squares of one row of one bin to the row's energy."""
    for x in range(count):
        entry = np.float32(entries[x])
        energy[x] += entry * entry


@njit(cache=True, nogil=True, forceinline=True)
def copy_hog(cells, inverse_norm, offsets, f, base, sums, scale):  # type: ignore[no-untyped-def]
    """Histogram entries and 1 / norm of one HOG feature in a group of neighbouring windows."""
    first, norm_first = base + offsets[f, 0], base + offsets[f, 1]
    for j in range(uint64(GROUP)):
        sums[j] = cells[first + j]
    for j in range(uint64(GROUP)):
        scale[j] = inverse_norm[norm_first + j]


@njit(cache=True, nogil=True, forceinline=True)
def count_left(scores):  # type: ignore[no-untyped-def]
    """How many windows of the group are not rejected yet."""
    left = 0
    for j in range(GROUP):
        left += 1 if scores[j] > np.float32(-np.inf) else 0
    return left


@njit(cache=True, nogil=True)
def scan_rows(  # type: ignore[no-untyped-def]
    n_corners, offsets, weight, slope, integral, inverse_sigma, cells, inverse_norm,
    shift, top, start, rises, intercept, limits, stages, out, handed,
):  # fmt: skip
    """Scores of all windows, a group of neighbours at a time.

    Where a stage leaves few of a group, their running sums stay in `out`, and `handed` tells the stage that comes next: 0 for
    windows that are done.
    """
    height, stride = inverse_sigma.shape
    width = out.shape[1]
    sums = np.empty(GROUP, np.int32)
    sigma = np.empty(GROUP, np.float32)
    norm = np.empty(GROUP, np.float32)
    scores = np.empty(GROUP, np.float32)
    last = rises.shape[1] - 6
    never = np.float32(-np.inf)
    for y in range(height):
        for x in range(0, width, GROUP):
            base = uint64(y * stride + x)
            for j in range(GROUP):
                sigma[j] = inverse_sigma[y, x + j]
                scores[j] = intercept if x + j < width else never
            left = GROUP
            next_stage = 0
            while next_stage < stages.size - 1 and left > (FEW if next_stage else 0):
                for f in range(stages[next_stage], stages[next_stage + 1]):
                    if n_corners[f] == 0:
                        copy_hog(cells, inverse_norm, offsets, f, base, sums, norm)
                    elif n_corners[f] == 6:
                        sum_6_corners(integral, base, offsets, weight, f, GROUP, sums)
                    else:
                        sum_8_corners(integral, base, offsets, weight, f, GROUP, sums)
                        for k in range(8, n_corners[f]):
                            add_corner(integral, base, offsets, weight, f, k, GROUP, sums)
                    scale = norm if n_corners[f] == 0 else sigma
                    for k in range(0, last, 6):
                        begin = start[f] if k == 0 else np.float32(0)
                        respond(sums, slope[f], scale, shift[f], top, begin, rises, f, k, never, GROUP, scores)
                    begin = start[f] if last == 0 else np.float32(0)
                    respond(sums, slope[f], scale, shift[f], top, begin, rises, f, last, limits[f], GROUP, scores)
                    if f % 4 == 3 and count_left(scores) == 0:
                        break
                left = count_left(scores)
                next_stage += 1
            unfinished = next_stage if next_stage < stages.size - 1 else 0
            for j in range(min(GROUP, width - x)):
                out[y, x + j] = scores[j]
                handed[y, x + j] = unfinished if scores[j] > never else 0


@njit(cache=True, nogil=True)
def score_places(  # type: ignore[no-untyped-def]
    n_corners, offsets, weight, slope, integral, inverse_sigma, cells, inverse_norm,
    shift, top, start, rises, limits, begin, end, places, scores,
):  # fmt: skip
    """Add the features begin <= f < end to the running sums of the windows at flat places."""
    sums = np.empty(LANES, np.int32)
    sigma = np.empty(LANES, np.float32)
    norm = np.empty(LANES, np.float32)
    rest = rises.shape[1] - 6
    never = np.float32(-np.inf)
    for first in range(0, places.size, LANES):
        n_lanes = min(LANES, places.size - first)
        lanes = places[first : first + n_lanes]
        running = scores[first : first + n_lanes]
        for j in range(uint64(n_lanes)):
            sigma[j] = inverse_sigma[lanes[j]]
        for f in range(begin, end):
            if n_corners[f] == 0:
                gather_hog(cells, inverse_norm, lanes, offsets, f, n_lanes, sums, norm)
            else:
                gather_6(integral, lanes, offsets, weight, f, n_lanes, sums)
                gather_more(integral, lanes, offsets, weight, f, 6, n_corners[f], n_lanes, sums)
            scale = norm if n_corners[f] == 0 else sigma
            for k in range(0, rest, 6):
                at = start[f] if k == 0 else np.float32(0)
                respond(sums, slope[f], scale, shift[f], top, at, rises, f, k, never, n_lanes, running)
            at = start[f] if rest == 0 else np.float32(0)
            respond(sums, slope[f], scale, shift[f], top, at, rises, f, rest, limits[f], n_lanes, running)


@njit(cache=True, nogil=True)
def value_rows(  # type: ignore[no-untyped-def]
    n_corners, offsets, weight, factor, integral, inverse_sigma, cells, inverse_norm, out
):
    """Values of the first feature in all windows."""
    height, stride = inverse_sigma.shape
    width = out.shape[1]
    sums = np.empty(GROUP, np.int32)
    scale = np.empty(GROUP, np.float32)
    values = np.empty(GROUP, np.float32)
    for y in range(height):
        for x in range(0, width, GROUP):
            base = uint64(y * stride + x)
            if n_corners[0] == 0:
                copy_hog(cells, inverse_norm, offsets, 0, base, sums, scale)
            else:
                scale[:] = inverse_sigma[y, x : x + GROUP]
                sum_6_corners(integral, base, offsets, weight, 0, GROUP, sums)
                for k in range(6, n_corners[0]):
                    add_corner(integral, base, offsets, weight, 0, k, GROUP, sums)
            scaled(sums, factor[0], scale, GROUP, values)
            for j in range(min(GROUP, width - x)):
                out[y, x + j] = values[j]
