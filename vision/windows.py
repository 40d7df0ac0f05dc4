"""Sparse additive models on chosen windows of a level: those of a grid, or those around a first answer.

Windows come in lanes as in the dense scan, but each lane has its own place: corners are gathered, and lanes that a
cascade has rejected are closed up after every stage, so that the lanes stay full.
"""

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from .blocks import LANES, gather_6, gather_hog, gather_more, respond
from .scan import Additive, LevelChannels, finish_windows, flat_hog, level_offsets

__all__ = ["predict_windows", "score_windows"]


def score_windows(channels: LevelChannels, model: Additive, xs: npt.ArrayLike, ys: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Score the windows at some pixels of a level.

    Parameters
    ----------
    channels : LevelChannels
    model : Additive
        Its first output is the score, its limits reject.
    xs, ys : (n,) array_like of int
        Pixels of the level.

    Returns
    -------
    (n,) float32 ndarray
        As in the dense scan: -inf where rejected.

    Raises
    ------
    ValueError
        For pixels outside the level.
    """
    places = _places(channels, xs, ys)
    scores = np.full(len(places), model.intercept[0], np.float32)
    entered = np.zeros(len(places), np.int64)
    return finish_windows(channels, model, places, scores, entered)


def predict_windows(channels: LevelChannels, model: Additive, xs: npt.ArrayLike, ys: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """All outputs of a model in the windows at some pixels of a level, (n, q) float32; nothing is rejected."""
    places = _places(channels, xs, ys)
    program = model.program
    cells, inverse_norm = flat_hog(channels, program)
    out = np.empty((len(model.intercept), len(places)), np.float32)
    predict_places(
        program.n_corners, level_offsets(channels, program), program.weight, model.slope, channels.integral,
        channels.inverse_sigma.reshape(-1), cells, inverse_norm, model.shift, model.top, model.start, model.rises,
        model.intercept, places, out,
    )  # fmt: skip
    return out.T


def _places(channels: LevelChannels, xs: npt.ArrayLike, ys: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    x, y = np.asarray(xs, dtype=np.int64), np.asarray(ys, dtype=np.int64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"xs {x.shape} and ys {y.shape}: expected two lists of one length")
    y = y - channels.first
    if x.size and (min(x.min(), y.min()) < 0 or x.max() >= channels.width or y.max() >= channels.rows):
        raise ValueError(f"pixels outside the level's {channels.width} columns and {channels.rows} rows from {channels.first} on")
    return (y * channels.stride + x).astype(np.uint64)


@njit(cache=True, nogil=True)
def predict_places(  # type: ignore[no-untyped-def]
    n_corners, offsets, weight, slope, integral, inverse_sigma, cells, inverse_norm,
    shift, top, start, rises, intercept, places, out,
):  # fmt: skip
    """All outputs (q, n) in the windows at flat places."""
    n_outputs = start.shape[0]
    sums = np.empty(LANES, np.int32)
    sigma = np.empty(LANES, np.float32)
    norm = np.empty(LANES, np.float32)
    never = np.float32(-np.inf)
    for q in range(n_outputs):
        out[q] = intercept[q]
    for first in range(0, places.size, LANES):
        n_lanes = min(LANES, places.size - first)
        lanes = places[first : first + n_lanes]
        for j in range(uint64(n_lanes)):
            sigma[j] = inverse_sigma[lanes[j]]
        for f in range(n_corners.size):
            if n_corners[f] == 0:
                gather_hog(cells, inverse_norm, lanes, offsets, f, n_lanes, sums, norm)
            else:
                gather_6(integral, lanes, offsets, weight, f, n_lanes, sums)
                gather_more(integral, lanes, offsets, weight, f, 6, n_corners[f], n_lanes, sums)
            scale = norm if n_corners[f] == 0 else sigma
            for q in range(n_outputs):
                for k in range(0, rises.shape[2], 6):
                    at = start[q, f] if k == 0 else np.float32(0)
                    respond(
                        sums, slope[f], scale, shift[f], top, at, rises[q], f, k, never, n_lanes,
                        out[q, first : first + n_lanes],
                    )  # fmt: skip
