"""Scans of a level with a sparse additive model: all windows, a grid or given windows.

The dense scan processes neighbouring windows of a row together and rejects windows early. If few
windows of a group remain, they are processed further by the sparse scan, in which the windows in
the lanes can be anywhere on the level. The windows that have not been rejected are packed after
every stage, so that the lanes remain full. Orientation histograms are computed as soon as a feature
requires them, either for the remaining windows or, if there are many, for the whole strip.
"""

import cv2
import numpy as np
import numpy.typing as npt

from ...learners.compilation import jit
from .kernels import LANES, gather_corners, respond, sum_corners
from .level_features import LevelChannels
from .responses import CompiledModel, Responses

#: If a group has at most this many remaining windows, the sparse scan finishes them, packed with
#: those of other groups (heuristic).
MAX_SPARSE = 16

_PLAIN_VALUES = 1 << 14  # number of feature values computed at a time without numba (heuristic)


def scan(
    channels: LevelChannels,
    features: npt.ArrayLike,
    responses: Responses,
    intercept: float,
    thresholds: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float32]:
    """Score every window of a level.

    The score is the intercept plus the responses to the features, summed in the order of the
    features. A window is rejected if its sum after any feature t, including the intercept, is below
    ``thresholds[t]``.

    Parameters
    ----------
    channels : LevelChannels
        Tables of the level, from `level_channels`.
    features : array_like of shape (n, 8), int
        Features of the model, in the order of summation.
    responses : Responses
        Response functions of these features, for a single output.
    intercept : float
        Initial value of the sums.
    thresholds : array_like of shape (n,), optional
        Rejection thresholds; by default, -inf, so that no window is rejected.

    Returns
    -------
    ndarray of shape (H, W), float32
        Scores. Entry (y, x) is the score of the window at pixel (x, y), or -inf if the window is
        rejected. The pixel of a window is defined in `annealed.vision.extract_patches`.

    Raises
    ------
    ValueError
        If a feature does not fit or the arrays have different lengths.
    """
    return scan_level(
        channels, channels.pool.compile_model(features, responses, intercept, thresholds)
    )


def scan_level(
    channels: LevelChannels,
    model: CompiledModel,
    row_step: int = 1,
    spans: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.float32]:
    """Score every window of a level, or of a strip of a level, with a compiled model.

    The result has the format of `scan`. If ``row_step`` is n, only every n-th row of the level is
    scored. If ``spans``, of shape (2, rows), is given, only the columns from ``spans[0]`` to
    ``spans[1] - 1`` of each row are scored. All other scores are -inf.

    If the features before the first HOG feature can reject windows, orientation histograms are
    computed only for the remaining windows.
    """
    out = np.full((channels.rows, channels.width), -np.inf, np.float32)
    next_stage = np.zeros((channels.rows, channels.width), np.int8)
    dense = channels.has_hog or bool(np.isneginf(model.limits[: model.stages[model.n_plain]]).all())
    last = len(model.stages) - 1 if dense else model.n_plain
    histograms = channels.histograms(
        model.program if dense else None, np.empty(0, np.uint64), dense
    )
    whole = np.repeat(np.array([[0], [channels.width]]), channels.rows, axis=1)
    scan_rows(
        model,
        channels.tables,
        channels.corner_offsets(model.program),
        histograms,
        last,
        (-channels.first % row_step, row_step),
        whole if spans is None else spans,
        out,
        next_stage,
    )
    left = np.flatnonzero(next_stage > 0)
    if len(left):
        scores, (ys, xs) = out.ravel()[left], np.divmod(left, channels.width)
        places = (ys * channels.stride + xs).astype(np.uint64)
        _finish_windows(channels, model, places, scores, next_stage.ravel()[left].astype(np.int64))
        out.ravel()[left] = scores
    return out


def score_windows(
    channels: LevelChannels, model: CompiledModel, xs: npt.ArrayLike, ys: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """Score the windows at the given pixels of a level by the first output of a model.

    The score of a rejected window is -inf, as in `scan`.
    """
    places = _places(channels, xs, ys)
    scores = np.full(len(places), model.intercept[0], np.float32)
    _finish_windows(channels, model, places, scores, np.zeros(len(places), np.int64))
    return scores


def predict_windows(
    channels: LevelChannels, model: CompiledModel, xs: npt.ArrayLike, ys: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """Compute all q outputs of a model for the windows at n pixels of a level.

    The model must not have rejection thresholds. The result is a float32 array of shape (n, q).
    """
    places = _places(channels, xs, ys)
    out = np.repeat(model.intercept[:, None], len(places), axis=1)
    if len(places):
        at_once = model._replace(stages=np.array([0, len(model.limits)]))
        entered = np.zeros(len(places), np.int64)
        follow(
            at_once,
            channels.tables,
            channels.histograms(model.program, places),
            (0, 1),
            places,
            entered,
            out,
        )
    return out.T


def windows_around(
    channels: LevelChannels, xs: npt.ArrayLike, ys: npt.ArrayLike, reach: int
) -> npt.NDArray[np.int64]:
    """Return the pixels of a level whose x and y are within ``reach`` of one of the given pixels.

    The result has shape (n, 2). The pixels are distinct and sorted by row, and lie in the rows that
    the tables contain.
    """
    x, y = (
        np.asarray(xs, dtype=np.int64) + reach,
        np.asarray(ys, dtype=np.int64) - channels.first + reach,
    )
    wanted = np.zeros((channels.rows + 2 * reach, channels.width + 2 * reach), np.uint8)
    inside = (x >= 0) & (x < wanted.shape[1]) & (y >= 0) & (y < wanted.shape[0])
    wanted[y[inside], x[inside]] = 1
    near = cv2.dilate(wanted, np.ones((2 * reach + 1, 2 * reach + 1), np.uint8))
    points = cv2.findNonZero(near[reach : reach + channels.rows, reach : reach + channels.width])
    return (
        np.empty((0, 2), np.int64)
        if points is None
        else points.reshape(-1, 2) + np.array([0, channels.first])
    )


def _finish_windows(
    channels: LevelChannels,
    model: CompiledModel,
    places: npt.NDArray[np.uint64],
    scores: npt.NDArray[np.float32],
    next_stage: npt.NDArray[np.int64],
) -> None:
    """Compute the final scores of windows at flat positions from their running sums and the next
    stage of each window."""
    last = len(model.stages) - 1
    follow(
        model,
        channels.tables,
        channels.histograms(None, places),
        (0, model.n_plain),
        places,
        next_stage,
        scores[None],
    )
    remaining = np.flatnonzero(scores > -np.inf) if model.n_plain < last else np.empty(0, np.int64)
    if len(remaining):
        running, places = scores[remaining], places[remaining]
        histograms = channels.histograms(model.program, places)
        follow(
            model,
            channels.tables,
            histograms,
            (model.n_plain, last),
            places,
            next_stage[remaining],
            running[None],
        )
        scores[remaining] = running


def _places(
    channels: LevelChannels, xs: npt.ArrayLike, ys: npt.ArrayLike
) -> npt.NDArray[np.uint64]:
    x, y = np.asarray(xs, dtype=np.int64), np.asarray(ys, dtype=np.int64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"xs and ys have shapes {x.shape} and {y.shape}; "
            "expected one-dimensional arrays of equal length"
        )
    row = y - channels.first
    if ((x < 0) | (x >= channels.width) | (row < 0) | (row >= channels.rows)).any():
        raise ValueError(
            "some pixels lie outside the level; "
            f"expected 0 <= x < {channels.width} and {channels.first} <= y < "
            f"{channels.first + channels.rows}"
        )
    return (row * channels.stride + x).astype(np.uint64)


@jit(forceinline=True)
def copy_hog(cells, inverse_norm, offsets, f, base, sums, scale):  # type: ignore[no-untyped-def]
    """Copy the histogram entries and inverse norms of a HOG feature in neighbouring windows."""
    first, norm_first = base + offsets[f, 0], base + offsets[f, 1]
    for j in range(np.uint64(LANES)):
        sums[j] = cells[first + j]
    for j in range(np.uint64(LANES)):
        scale[j] = inverse_norm[norm_first + j]


@jit(forceinline=True)
def gather_hog(cells, inverse_norm, cells_at, norms_at, offsets, f, n_lanes, sums, scale):  # type: ignore[no-untyped-def]
    """Copy the histogram entries and inverse norms of a HOG feature at given table positions."""
    first, norm_first = offsets[f, 0], offsets[f, 1]
    for j in range(np.uint64(n_lanes)):
        sums[j] = cells[cells_at[j] + first]
        scale[j] = inverse_norm[norms_at[j] + norm_first]


@jit(forceinline=True)
def count_left(scores):  # type: ignore[no-untyped-def]
    """Count the windows in a group that have not been rejected."""
    left = 0
    for j in range(LANES):
        left += 1 if scores[j] > np.float32(-np.inf) else 0
    return left


@np.errstate(over="ignore", invalid="ignore")
def _scan_rows(model, tables, offsets, histograms, last_stage, grid, spans, out, handed):  # type: ignore[no-untyped-def]
    (rows, width), program = out.shape, model.program
    scores = np.full((rows, tables.stride), -np.inf, np.float32)
    x = np.arange(tables.stride)
    inside = (x >= spans[0, :, None]) & (x < spans[1, :, None])
    scores[grid[0] :: grid[1]][inside[grid[0] :: grid[1]]] = model.intercept[0]
    n = scores.size - tables.stride + width  # from the first window to the last
    flat, sigma = scores.ravel()[:n], tables.inverse_sigma.ravel()[:n]
    for f in range(model.stages[min(1, last_stage)]):
        if program.n_corners[f]:
            corners = zip(offsets[f].tolist(), program.weight[f])
            values = (
                sum(
                    weight * tables.integral[at : at + n] for at, weight in corners if weight
                ).astype(np.float32)
                * sigma
            )
        else:
            entry, norm = histograms.offsets[f].tolist()
            values = histograms.cells[entry : entry + n] * histograms.inverse_norm[norm : norm + n]
        flat += _responses(model, slice(f, f + 1), values[None])[0, 0]
        flat[flat < model.limits[f]] = -np.inf
    places = np.flatnonzero(flat > -np.inf).astype(np.uint64)
    running = flat[None, places]
    histograms = histograms._replace(cells_at=places, norms_at=places)
    _follow(
        model, tables, histograms, (1, last_stage), places, np.ones(len(places), np.int64), running
    )
    flat[places] = running
    out[:] = scores[:, :width]
    handed[:] = (out > -np.inf) * (last_stage if last_stage < len(model.stages) - 1 else 0)


@jit(plain=_scan_rows, by_size=False)
def scan_rows(model, tables, offsets, histograms, last_stage, grid, spans, out, handed):  # type: ignore[no-untyped-def]
    """Score the windows in some rows using the stages before ``last_stage``.

    Every ``grid[1]``-th row is scored, starting at row ``grid[0]``. In each row, neighbouring
    windows in the columns given by ``spans`` are processed in groups. If few windows of a group
    remain after a stage, the group is not processed further. The running sums are written to `out`.
    The next stage of each unfinished window is written to `handed`, which is 0 for finished
    windows.
    """
    n_corners, weight = model.program.n_corners, model.program.weight
    lines, rises, top = model.lines[0], model.rises[0], model.top
    limits, stages, intercept = model.limits, model.stages, model.intercept[0]
    integral, inverse_sigma = tables.integral, tables.inverse_sigma
    cells, inverse_norm, hog_offsets = histograms.cells, histograms.inverse_norm, histograms.offsets
    height, stride = inverse_sigma.shape
    width = out.shape[1]
    sums = np.empty(LANES, np.int32)
    sigma = np.empty(LANES, np.float32)
    norm = np.empty(LANES, np.float32)
    scores = np.empty(LANES, np.float32)
    never = np.float32(-np.inf)
    for y in range(grid[0], height, grid[1]):
        begin, end = spans[0, y], spans[1, y]
        for x in range(begin // LANES * LANES, end, LANES):
            base = np.uint64(y * stride + x)
            for j in range(LANES):
                sigma[j] = inverse_sigma[y, x + j]
                scores[j] = intercept if begin <= x + j < end else never
            left = LANES
            stage = 0
            while stage < last_stage and left > (MAX_SPARSE if stage else 0):
                for f in range(stages[stage], stages[stage + 1]):
                    if n_corners[f] == 0:
                        copy_hog(cells, inverse_norm, hog_offsets, f, base, sums, norm)
                    else:
                        sum_corners(integral, base, offsets, weight, f, n_corners[f], LANES, sums)
                    respond(
                        lines,
                        rises,
                        top,
                        f,
                        limits[f],
                        sums,
                        norm if n_corners[f] == 0 else sigma,
                        LANES,
                        scores,
                    )
                    if f % 4 == 3 and count_left(scores) == 0:
                        break
                left = count_left(scores)
                stage += 1
            unfinished = stage if stage < stages.size - 1 else 0
            for j in range(min(LANES, width - x)):
                out[y, x + j] = scores[j]
                handed[y, x + j] = unfinished if scores[j] > never else 0


@jit
def corner_offsets(program, tables, begin, end, offsets):  # type: ignore[no-untyped-def]
    """Compute the positions, in the integral image, of corners of features in a range."""
    n_corners, channel, corner_y, corner_x = (
        program.n_corners,
        program.channel,
        program.corner_y,
        program.corner_x,
    )
    for f in range(begin, end):
        for k in range(n_corners[f]):
            offsets[f, k] = (
                channel[f] * tables.plane + corner_y[f, k] * tables.stride + corner_x[f, k]
            )


def _follow(model, tables, histograms, between, places, entered, scores):  # type: ignore[no-untyped-def]
    last = model.stages[between[1]]
    for stage in range(*between):
        left = np.flatnonzero((scores[0] > -np.inf) & (np.maximum(entered, between[0]) == stage))
        begin = model.stages[stage]
        while begin < last and len(
            left
        ):  # sums do not depend on the number of features processed at a time
            f = slice(begin, min(last, begin + max(8, _PLAIN_VALUES // len(left))))
            for some in np.array_split(left, -(-len(left) // _PLAIN_VALUES)):
                added = _responses(
                    model, f, _values(model.program, tables, histograms, f, places, some)
                )
                running = np.concatenate([scores[:, None, some], added], axis=1).cumsum(axis=1)[
                    :, 1:
                ]
                scores[:, some] = running[:, -1]
                scores[0, some[(running[0] < model.limits[f, None]).any(axis=0)]] = -np.inf
            left = left[scores[0, left] > -np.inf]
            begin = f.stop


def _values(program, tables, histograms, f, places, windows):  # type: ignore[no-untyped-def]
    """Compute values (features, windows) of a slice of features, before multiplication by the
    inverse area."""
    at, rows = places[windows].astype(np.int64), len(tables.inverse_sigma)
    channel, y, x = program.channel[f], program.corner_y[f].T, program.corner_x[f].T
    side = tables.plane // tables.stride - rows + 1
    if len(channel) < side * side:
        corners = (
            tables.integral.take(corner[:, None] + at)
            for corner in channel * tables.plane + y * tables.stride + x
        )
    else:  # many features: copy the integral image of each window into one column
        shape, steps = (tables.plane, 3, side, side), (1, tables.plane, tables.stride, 1)
        inside = np.lib.stride_tricks.as_strided(
            tables.integral, shape, 4 * np.array(steps), writeable=False
        )[at]
        columns = np.ascontiguousarray(inside.reshape(len(at), -1).T)
        corners = (columns.take(corner, axis=0) for corner in (channel * side + y) * side + x)
    sums = np.zeros((len(channel), len(at)), np.int32)
    for corner, weight in zip(corners, program.weight[f].T):
        corner *= weight[:, None]
        sums += corner
    values = sums.astype(np.float32) * tables.inverse_sigma.take(at)
    hog = program.hog[(program.hog >= f.start) & (program.hog < f.stop)]
    if len(hog):
        entries, norms = histograms.offsets[hog].T[:, :, None]
        norms = histograms.inverse_norm[histograms.norms_at[windows] + norms]
        values[hog - f.start] = histograms.cells[histograms.cells_at[windows] + entries] * norms
    return values


def _responses(model, f, values):  # type: ignore[no-untyped-def]
    """Compute responses (q, features, windows) to these values by interpolation between two
    knots."""
    slope, shift, _ = model.lines[0, f].T[:, :, None]
    t = values * slope
    t -= shift
    np.fmin(t, model.top, out=t)
    knot = np.floor(np.fmax(t, 0, out=t))  # memory beyond the width of a level may hold NaN
    t -= knot
    at = knot.astype(np.intp)
    at += np.arange(len(t))[:, None] * model.knots.shape[2]
    rises = np.diff(model.knots[:, f], axis=2, append=np.float32(0))
    return np.stack(
        [starts.take(at) + rise.take(at) * t for starts, rise in zip(model.knots[:, f], rises)]
    )


@jit(plain=_follow, by_size=False)
def follow(model, tables, histograms, between, places, entered, scores):  # type: ignore[no-untyped-def]
    """Apply the stages ``between[0]`` to ``between[1] - 1`` of a model to windows.

    Each window enters at the stage given by ``entered``. ``scores``, of shape (q, n), contains the
    running sums of all outputs. The first output determines whether a window is rejected.
    """
    n_corners, weight = model.program.n_corners, model.program.weight
    all_lines, all_rises, top = model.lines, model.rises, model.top
    lines, rises = all_lines[0], all_rises[0]
    limits, stages = model.limits, model.stages
    integral, inverse_sigma = tables.integral, tables.inverse_sigma.ravel()
    cells, inverse_norm, cells_at, norms_at, hog_offsets = histograms
    never = np.float32(-np.inf)
    offsets = np.empty(weight.shape, np.uint64)
    left = np.empty(places.size, np.int64)
    n_left = 0
    sums = np.empty(LANES, np.int32)
    scale = np.empty(LANES, np.float32)
    sigma = np.empty(LANES, np.float32)
    n_outputs = scores.shape[0]
    outputs = np.empty((n_outputs, LANES), np.float32)
    running = outputs[0]
    lanes = np.empty(LANES, np.uint64)
    cell_lanes = np.empty(LANES, np.uint64)
    norm_lanes = np.empty(LANES, np.uint64)
    for stage in range(between[0], between[1]):
        for i in range(places.size):
            enters = entered[i] == stage or (stage == between[0] and entered[i] < stage)
            if enters and scores[0, i] > never:
                left[n_left] = i
                n_left += 1
        if n_left == 0:
            continue
        begin, end = stages[stage], stages[stage + 1]
        corner_offsets(model.program, tables, begin, end, offsets)
        kept = 0
        for first in range(0, n_left, LANES):
            n_lanes = min(LANES, n_left - first)
            for j in range(n_lanes):
                i = left[first + j]
                lanes[j] = places[i]
                cell_lanes[j] = cells_at[i]
                norm_lanes[j] = norms_at[i]
                sigma[j] = inverse_sigma[places[i]]
                running[j] = scores[0, i]
                for q in range(1, n_outputs):
                    outputs[q, j] = scores[q, i]
            for f in range(begin, end):
                if n_corners[f] == 0:
                    gather_hog(
                        cells,
                        inverse_norm,
                        cell_lanes,
                        norm_lanes,
                        hog_offsets,
                        f,
                        n_lanes,
                        sums,
                        scale,
                    )
                else:
                    gather_corners(integral, lanes, offsets, weight, f, n_corners[f], n_lanes, sums)
                factor = scale if n_corners[f] == 0 else sigma
                respond(lines, rises, top, f, limits[f], sums, factor, n_lanes, running)
                for q in range(1, n_outputs):
                    respond(
                        all_lines[q], all_rises[q], top, f, never, sums, factor, n_lanes, outputs[q]
                    )
            for j in range(n_lanes):
                i = left[first + j]
                scores[0, i] = running[j]
                for q in range(1, n_outputs):
                    scores[q, i] = outputs[q, j]
                if running[j] > never:
                    left[kept] = i
                    kept += 1
        n_left = kept
