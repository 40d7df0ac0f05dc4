"""Coloured tracks onto frames of a video."""

from __future__ import annotations

import cv2
import numpy as np

# Colours of the motions (RGB), distinguishable also with the common colour blindnesses (Okabe and Ito).
COLOURS = np.array(
    [[230, 159, 0], [86, 180, 233], [0, 158, 115], [240, 228, 66], [204, 121, 167], [213, 94, 0], [0, 114, 178], [255, 255, 255]],
    np.uint8,
)


def draw_tracks(frame: np.ndarray, tracks: np.ndarray, labels: np.ndarray, t: int, tail: int = 12) -> np.ndarray:
    """Draw coloured points with their way over the last frames.

    Parameters
    ----------
    frame : ndarray of shape (H, W, 3), uint8
        RGB; not changed.
    tracks : ndarray of shape (F, P, 2)
        Pixels; NaN where not seen.
    labels : ndarray of shape (P,), int
        Motion of each point; -1 is not drawn.
    t : int
        Frame number.
    tail : int
        Length of the way drawn, in frames.

    Returns
    -------
    ndarray of shape (H, W, 3), uint8
    """
    out = np.ascontiguousarray(frame).copy()
    for p in np.flatnonzero(labels >= 0):
        colour = tuple(int(c) for c in COLOURS[labels[p] % len(COLOURS)])
        if not np.isfinite(tracks[t, p]).all():
            continue
        way = tracks[max(0, t - tail) : t + 1, p]
        way = way[np.isfinite(way).all(axis=1)]
        cv2.polylines(out, [np.round(way * 8).astype(np.int32)], False, colour, 1, cv2.LINE_AA, 3)
        centre = tuple(int(c) for c in np.round(way[-1] * 8))
        cv2.circle(out, centre, 26, (0, 0, 0), -1, cv2.LINE_AA, 3)
        cv2.circle(out, centre, 20, colour, -1, cv2.LINE_AA, 3)
    return out
