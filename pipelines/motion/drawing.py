"""Drawing of coloured tracks on video frames."""

from collections.abc import Iterator

import cv2
import numpy as np

# RGB colours of the motions, which colour-blind readers can distinguish (Okabe and Ito).
COLOURS = np.array(
    [
        [230, 159, 0],
        [86, 180, 233],
        [0, 158, 115],
        [240, 228, 66],
        [204, 121, 167],
        [213, 94, 0],
        [0, 114, 178],
        [255, 255, 255],
    ],
    np.uint8,
)


def draw_tracks(
    frame: np.ndarray, tracks: np.ndarray, labels: np.ndarray, t: int, tail: int = 12
) -> np.ndarray:
    """Draw coloured points, and their paths over the last frames.

    Parameters
    ----------
    frame : ndarray of shape (H, W, 3), uint8
        RGB frame, which is not changed.
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    labels : ndarray of shape (P,), int
        Motion of each point; points with label -1 are not drawn.
    t : int
        Frame number.
    tail : int, default 12
        Length of the drawn paths in frames.

    Returns
    -------
    ndarray of shape (H, W, 3), uint8
    """
    out = np.ascontiguousarray(frame).copy()
    for p in np.flatnonzero((labels >= 0) & np.isfinite(tracks[t]).all(axis=1)):
        colour = tuple(int(c) for c in COLOURS[labels[p] % len(COLOURS)])
        path = tracks[max(0, t - tail) : t + 1, p]
        path = path[np.isfinite(path).all(axis=1)]
        cv2.polylines(out, [np.round(path * 8).astype(np.int32)], False, colour, 1, cv2.LINE_AA, 3)
        centre = tuple(int(c) for c in np.round(path[-1] * 8))
        cv2.circle(out, centre, 26, (0, 0, 0), -1, cv2.LINE_AA, 3)
        cv2.circle(out, centre, 20, colour, -1, cv2.LINE_AA, 3)
    return out


def frames_on_black(tracks: np.ndarray, labels: np.ndarray) -> Iterator[np.ndarray]:
    """Yield frames that show only the tracks on a black background.

    The frames are cropped to the extent of the tracks. Their width and height are even, as video
    codecs require.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    labels : ndarray of shape (P,), int
        Motion of each point; points with label -1 are not drawn.

    Yields
    ------
    ndarray of shape (H, W, 3), uint8
        RGB frame.
    """
    seen = np.isfinite(tracks).all(axis=2)
    low = np.floor(tracks[seen].min(axis=0)) - 10
    width, height = (2 * np.ceil((tracks[seen].max(axis=0) + 10 - low) / 2)).astype(int)
    canvas = np.zeros((height, width, 3), np.uint8)
    for t in range(len(tracks)):
        yield draw_tracks(canvas, tracks - low, labels, t)
