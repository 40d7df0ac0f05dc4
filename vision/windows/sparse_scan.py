"""Sparse additive models on chosen windows of a level: those of a grid, those around a prediction, those that a dense scan leaves.

Windows are processed in lanes as in the dense scan, but each lane has its own position: corners are gathered, and the windows
that a cascade has not rejected are packed after every stage, so that the lanes stay full. Orientation histograms are computed for
the windows that remain when the first feature needs them; where these are many, for the whole strip.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...learners.compilation import jit
from .kernels import LANES, gather_6, gather_hog, gather_more, respond
from .level_features import LevelChannels
from .level_kernels import corner_offsets
from .programs import CompiledModel

__all__ = ["dense_histograms_pay", "finish_windows", "predict_windows", "score_windows", "windows_around"]

_WINDOW_COST = 60
"""Entries of a strip's histograms that take as long as the histograms of one window (measured)."""


def dense_histograms_pay(n_windows: int, expected_requests: float, n_entries: int) -> bool:
    """Whether to compute the histograms of a whole strip rather than those of single windows: it is done at most once.

    ``expected_requests`` is a multiple of the windows requested so far, ``n_entries`` the size of one table of the strip.
    """
    return n_windows * _WINDOW_COST * expected_requests > n_entries


def score_windows(channels: LevelChannels, model: CompiledModel, xs: npt.ArrayLike, ys: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Score the windows at some pixels (n,) of a level with a model's first output: -inf where its limits reject, as in the dense
    scan.
    """
    places = _places(channels, xs, ys)
    scores = np.full(len(places), model.intercept[0], np.float32)
    finish_windows(channels, model, places, scores, np.zeros(len(places), np.int64))
    return scores


def finish_windows(
    channels: LevelChannels,
    model: CompiledModel,
    places: npt.NDArray[np.uint64],
    scores: npt.NDArray[np.float32],
    entered: npt.NDArray[np.int64],
) -> None:
    """Turn running sums of windows at flat positions, each with the stage of the cascade that comes next, into final scores."""
    program, last = model.program, len(model.stages) - 1
    features = (
        program.n_corners, program.channel, program.corner_y, program.corner_x, program.weight, channels.plane, channels.stride,
        model.slope, channels.integral, channels.inverse_sigma.reshape(-1),
    )  # fmt: skip
    responses = (model.shift, model.top, model.start[0], model.rises[0], model.limits, model.stages)
    nothing = _no_histograms(channels, places)
    follow(*features, *nothing, *responses, 0, model.plain, places, entered, scores)  # type: ignore[call-arg]
    left = np.flatnonzero(scores > -np.inf) if model.plain < last else np.empty(0, np.int64)
    if len(left):
        running = scores[left]
        histograms = histograms_for(channels, model, places[left])
        follow(  # type: ignore[call-arg]
            *features, *histograms, *responses, model.plain, last, places[left], entered[left], running
        )  # fmt: skip
        scores[left] = running


def predict_windows(channels: LevelChannels, model: CompiledModel, xs: npt.ArrayLike, ys: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """All outputs of a model in the windows at some pixels of a level, (n, q) float32; nothing is rejected."""
    places = _places(channels, xs, ys)
    program = model.program
    out = np.empty((len(model.intercept), len(places)), np.float32)
    if len(places):
        predict_places(  # type: ignore[call-arg]
            program.n_corners, program.channel, program.corner_y, program.corner_x, program.weight, channels.plane,
            channels.stride, model.slope, channels.integral, channels.inverse_sigma.reshape(-1),
            *histograms_for(channels, model, places), model.shift, model.top, model.start, model.rises, model.intercept,
            places, out,
        )  # fmt: skip
    return out.T


def windows_around(channels: LevelChannels, xs: npt.ArrayLike, ys: npt.ArrayLike, reach: int) -> npt.NDArray[np.int64]:
    """Pixels (n, 2) of the level, held rows only, within ``reach`` of some pixels in x and y: each once, row by row."""
    x, y = np.array(xs, dtype=np.int64, order="C"), np.asarray(ys, dtype=np.int64) - channels.first
    wanted = np.zeros((channels.rows, channels.width), np.uint8)
    found = np.empty((len(x) * (2 * reach + 1) ** 2, 2), np.int64)
    return found[: collect_around(x, y, reach, wanted, found)] + np.array([0, channels.first])


def _places(channels: LevelChannels, xs: npt.ArrayLike, ys: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    x, y = np.asarray(xs, dtype=np.int64), np.asarray(ys, dtype=np.int64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"xs {x.shape} and ys {y.shape}: expected two lists of one length")
    row = y - channels.first
    if ((x < 0) | (x >= channels.width) | (row < 0) | (row >= channels.rows)).any():
        raise ValueError(f"pixels outside the level's {channels.width} columns and {channels.rows} rows from {channels.first} on")
    return (row * channels.stride + x).astype(np.uint64)


def _no_histograms(channels: LevelChannels, places: npt.NDArray[np.uint64]) -> tuple[Any, ...]:
    return np.zeros(1, channels.entry), np.zeros(1, np.float32), places, places, np.zeros((1, 2), np.uint64)


def histograms_for(channels: LevelChannels, model: CompiledModel, places: npt.NDArray[np.uint64]) -> tuple[Any, ...]:
    """Flat histograms and norms; where those of each window begin; and, for every feature, the entry and the norm it reads."""
    program = model.program
    if not len(program.with_0):
        return _no_histograms(channels, places)
    channels.n_requests += len(places)
    if channels.has_hog or dense_histograms_pay(channels.n_requests, channels.expected_requests, channels.plane):
        cells, norms = channels.hog
        return cells.reshape(-1), norms.reshape(-1), places, places, channels.hog_offsets(program)
    cells, norms = channels.window_hog(places, program.cells, program.blocks)
    number = np.arange(len(places), dtype=np.uint64)
    offsets = np.stack([program.cell * cells.shape[2] + program.orientation, program.block], axis=1).astype(np.uint64)
    return (
        cells.reshape(-1), norms.reshape(-1), number * np.uint64(cells[0].size), number * np.uint64(norms[0].size), offsets
    )  # fmt: skip


@jit
def follow(  # type: ignore[no-untyped-def]
    n_corners, channel, corner_y, corner_x, weight, plane, stride, slope, integral, inverse_sigma,
    cells, inverse_norm, cells_at, norms_at, hog_offsets,
    shift, top, start, rises, limits, stages, first_stage, last_stage, places, entered, scores,
):  # fmt: skip
    """Take windows, each from the stage it enters on, through the stages first_stage <= s < last_stage of a cascade."""
    never = np.float32(-np.inf)
    offsets = np.empty(corner_y.shape, np.uint64)
    left = np.empty(places.size, np.int64)
    n_left = 0
    sums = np.empty(LANES, np.int32)
    scale = np.empty(LANES, np.float32)
    sigma = np.empty(LANES, np.float32)
    running = np.empty(LANES, np.float32)
    lanes = np.empty(LANES, np.uint64)
    cell_lanes = np.empty(LANES, np.uint64)
    norm_lanes = np.empty(LANES, np.uint64)
    last = rises.shape[1] - 6
    for stage in range(first_stage, last_stage):
        for i in range(places.size):
            enters = entered[i] == stage or (stage == first_stage and entered[i] < stage)
            if enters and scores[i] > never:
                left[n_left] = i
                n_left += 1
        if n_left == 0:
            continue
        begin, end = stages[stage], stages[stage + 1]
        corner_offsets(n_corners, channel, corner_y, corner_x, plane, stride, begin, end, offsets)
        kept = 0
        for first in range(0, n_left, LANES):
            n_lanes = min(LANES, n_left - first)
            for j in range(n_lanes):
                i = left[first + j]
                lanes[j] = places[i]
                cell_lanes[j] = cells_at[i]
                norm_lanes[j] = norms_at[i]
                sigma[j] = inverse_sigma[places[i]]
                running[j] = scores[i]
            for f in range(begin, end):
                if n_corners[f] == 0:
                    gather_hog(cells, inverse_norm, cell_lanes, norm_lanes, hog_offsets, f, n_lanes, sums, scale)
                else:
                    gather_6(integral, lanes, offsets, weight, f, n_lanes, sums)
                    gather_more(integral, lanes, offsets, weight, f, 6, n_corners[f], n_lanes, sums)
                by = scale if n_corners[f] == 0 else sigma
                for k in range(0, last, 6):
                    at = start[f] if k == 0 else np.float32(0)
                    respond(sums, slope[f], by, shift[f], top, at, rises, f, k, never, n_lanes, running)
                at = start[f] if last == 0 else np.float32(0)
                respond(sums, slope[f], by, shift[f], top, at, rises, f, last, limits[f], n_lanes, running)
            for j in range(n_lanes):
                i = left[first + j]
                scores[i] = running[j]
                if running[j] > never:
                    left[kept] = i
                    kept += 1
        n_left = kept


@jit
def predict_places(  # type: ignore[no-untyped-def]
    n_corners, channel, corner_y, corner_x, weight, plane, stride, slope, integral, inverse_sigma,
    cells, inverse_norm, cells_at, norms_at, hog_offsets, shift, top, start, rises, intercept, places, out,
):  # fmt: skip
    """All outputs (q, n) in the windows at flat positions."""
    n_outputs = start.shape[0]
    offsets = np.empty(corner_y.shape, np.uint64)
    corner_offsets(n_corners, channel, corner_y, corner_x, plane, stride, 0, n_corners.size, offsets)
    sums = np.empty(LANES, np.int32)
    sigma = np.empty(LANES, np.float32)
    norm = np.empty(LANES, np.float32)
    never = np.float32(-np.inf)
    for q in range(n_outputs):
        out[q] = intercept[q]
    for first in range(0, places.size, LANES):
        n_lanes = min(LANES, places.size - first)
        part = slice(first, first + n_lanes)
        lanes = places[part]
        for j in range(np.uint64(n_lanes)):
            sigma[j] = inverse_sigma[lanes[j]]
        for f in range(n_corners.size):
            if n_corners[f] == 0:
                gather_hog(cells, inverse_norm, cells_at[part], norms_at[part], hog_offsets, f, n_lanes, sums, norm)
            else:
                gather_6(integral, lanes, offsets, weight, f, n_lanes, sums)
                gather_more(integral, lanes, offsets, weight, f, 6, n_corners[f], n_lanes, sums)
            scale = norm if n_corners[f] == 0 else sigma
            for q in range(n_outputs):
                for k in range(0, rises.shape[2], 6):
                    at = start[q, f] if k == 0 else np.float32(0)
                    respond(sums, slope[f], scale, shift[f], top, at, rises[q], f, k, never, n_lanes, out[q, part])


@jit
def collect_around(x, y, reach, wanted, found):  # type: ignore[no-untyped-def]
    """Pixels within reach of some pixels, each once, row by row, into ``found`` (n, 2); ``wanted`` is zero. Returns how many."""
    rows, width = wanted.shape
    top, bottom = rows, 0
    for i in range(x.size):
        above, below = max(0, y[i] - reach), min(rows, y[i] + reach + 1)
        top, bottom = min(top, above), max(bottom, below)
        for v in range(above, below):
            for u in range(max(0, x[i] - reach), min(width, x[i] + reach + 1)):
                wanted[v, u] = 1
    count = 0
    for v in range(top, bottom):
        for u in range(width):
            if wanted[v, u]:
                found[count, 0] = u
                found[count, 1] = v
                count += 1
    return count
