"""A sparse additive model on every window of an image: the dense scan with early rejection."""

import numpy as np
import numpy.typing as npt

from ...learners.compilation import jit
from .kernels import add_corner, respond, scaled, sum_6_corners, sum_8_corners
from .level_features import GROUP, LevelChannels
from .programs import CompiledModel
from .responses import Responses
from .sparse_scan import finish_windows

__all__ = ["dense_values", "scan", "scan_level"]

FEW = 16
"""Where at most so many windows of a group remain, the sparse scan finishes them, packed with those of other groups. A choice."""


def scan(
    channels: LevelChannels,
    features: npt.ArrayLike,
    responses: Responses,
    intercept: float,
    thresholds: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float32]:
    """Score every window of a level.

    The score is the intercept plus the responses of the features, summed in the order of the features; a window whose sum after
    feature t (intercept included) lies below ``thresholds[t]`` is rejected.

    Parameters
    ----------
    channels : LevelChannels
        From `level_channels`.
    features : (n, 8) array_like of int
        Features of the pool.
    responses : Responses
        Of these features, one output.
    intercept : float
        Where the sums begin.
    thresholds : (n,) array_like, optional
        -inf never rejects, which is the default.

    Returns
    -------
    (H, W) float32 ndarray
        Entry (y, x): score of the window at pixel (x, y), see `annealed.vision.extract_patches`; -inf where rejected.

    Raises
    ------
    ValueError
        For features that do not fit and arrays whose lengths disagree.
    """
    return scan_level(channels, channels.pool.compile_model(features, responses, intercept, thresholds))


def scan_level(channels: LevelChannels, model: CompiledModel) -> npt.NDArray[np.float32]:
    """Score every window of a level, or of the strip held, with a prepared model: (H, W) float32, as `scan`.

    Where the first features reject windows and need no histograms, the sparse scan computes histograms for what remains.
    """
    out = np.empty((channels.rows, channels.width), np.float32)
    handed = np.zeros((channels.rows, channels.width), np.int8)
    dense = channels.has_hog or bool(np.isneginf(model.limits[: model.stages[model.plain]]).all())
    last = len(model.stages) - 1 if dense else model.plain
    scan_rows(  # type: ignore[call-arg]
        model.program.n_corners, *_tables(channels, model, dense), model.slope, channels.integral, channels.inverse_sigma,
        model.shift, model.top, model.start[0], model.rises[0], model.intercept[0], model.limits, model.stages, last, out, handed,
    )  # fmt: skip
    ys, xs = np.nonzero(handed)
    if len(ys):
        scores = out[ys, xs]
        finish_windows(
            channels, model, (ys * channels.stride + xs).astype(np.uint64), scores, handed[ys, xs].astype(np.int64)
        )  # fmt: skip
        out[ys, xs] = scores
    return out


def _tables(channels: LevelChannels, model: CompiledModel, dense: bool):  # type: ignore[no-untyped-def]
    """Corner positions and weights, flat histograms and norms, and positions in these, as the compiled loops take them."""
    program = model.program
    if len(program.with_0) and dense:
        cells, inverse_norm = channels.hog
    else:
        cells, inverse_norm = np.zeros((1, 1), channels.entry), np.zeros((1, 1), np.float32)
    hog_offsets = channels.hog_offsets(program)
    return channels.corner_offsets(program), program.weight, cells.reshape(-1), inverse_norm.reshape(-1), hog_offsets


def dense_values(channels: LevelChannels, feature: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Value of one feature in every window of a level.

    Parameters
    ----------
    channels : LevelChannels
        From `level_channels`.
    feature : (8,) array_like of int

    Returns
    -------
    (H, W) float32 ndarray

    Raises
    ------
    ValueError
        If the feature does not fit into the window.
    """
    responses = Responses(np.zeros(1), np.ones(1), np.zeros((1, 2)))
    model = channels.pool.compile_model(np.atleast_2d(feature), responses, 0.0)
    out = np.empty((channels.rows, channels.width), np.float32)
    value_rows(  # type: ignore[call-arg]
        model.program.n_corners, *_tables(channels, model, True), model.program.inverse_area, channels.integral,
        channels.inverse_sigma, out,
    )  # fmt: skip
    return out


@jit(forceinline=True)
def copy_hog(cells, inverse_norm, offsets, f, base, sums, scale):  # type: ignore[no-untyped-def]
    """Histogram entries and 1 / norm of one HOG feature in a group of neighbouring windows."""
    first, norm_first = base + offsets[f, 0], base + offsets[f, 1]
    for j in range(np.uint64(GROUP)):
        sums[j] = cells[first + j]
    for j in range(np.uint64(GROUP)):
        scale[j] = inverse_norm[norm_first + j]


@jit(forceinline=True)
def count_left(scores):  # type: ignore[no-untyped-def]
    """Number of windows of the group that are not rejected yet."""
    left = 0
    for j in range(GROUP):
        left += 1 if scores[j] > np.float32(-np.inf) else 0
    return left


@jit
def scan_rows(  # type: ignore[no-untyped-def]
    n_corners, offsets, weight, cells, inverse_norm, hog_offsets, slope, integral, inverse_sigma,
    shift, top, start, rises, intercept, limits, stages, last_stage, out, handed,
):  # fmt: skip
    """Scores of all windows after the stages before ``last_stage``, a group of neighbours at a time.

    Where few of a group remain after a stage, their running sums stay in `out`, and `handed` holds the stage that comes next; 0 for
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
            base = np.uint64(y * stride + x)
            for j in range(GROUP):
                sigma[j] = inverse_sigma[y, x + j]
                scores[j] = intercept if x + j < width else never
            left = GROUP
            next_stage = 0
            while next_stage < last_stage and left > (FEW if next_stage else 0):
                for f in range(stages[next_stage], stages[next_stage + 1]):
                    if n_corners[f] == 0:
                        copy_hog(cells, inverse_norm, hog_offsets, f, base, sums, norm)
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


@jit
def value_rows(  # type: ignore[no-untyped-def]
    n_corners, offsets, weight, cells, inverse_norm, hog_offsets, factor, integral, inverse_sigma, out
):
    """Values of the first feature in all windows."""
    height, stride = inverse_sigma.shape
    width = out.shape[1]
    sums = np.empty(GROUP, np.int32)
    scale = np.empty(GROUP, np.float32)
    values = np.empty(GROUP, np.float32)
    for y in range(height):
        for x in range(0, width, GROUP):
            base = np.uint64(y * stride + x)
            if n_corners[0] == 0:
                copy_hog(cells, inverse_norm, hog_offsets, 0, base, sums, scale)
            else:
                scale[:] = inverse_sigma[y, x : x + GROUP]
                sum_6_corners(integral, base, offsets, weight, 0, GROUP, sums)
                for k in range(6, n_corners[0]):
                    add_corner(integral, base, offsets, weight, 0, k, GROUP, sums)
            scaled(sums, factor[0], scale, GROUP, values)
            for j in range(min(GROUP, width - x)):
                out[y, x + j] = values[j]
