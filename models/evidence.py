"""Where in a photograph its words lie, and evidence per pixel."""

from __future__ import annotations

import numpy as np

from ..vision.pets import N_SHADES, PetFeatures, Photograph
from ..vision.sift import CELL_OF_SIZE, N_CELLS, Descriptors

WINDOW = CELL_OF_SIZE * N_CELLS  # side of a descriptor in units of its keypoint's size


def word_places(features: PetFeatures, photograph: Photograph, column: int) -> np.ndarray:
    """Where the word of a column occurs.

    Parameters
    ----------
    features : PetFeatures
        Fitted.
    photograph : Photograph
        Resized to ``features.side`` already.
    column : int
        A column of words, of the whole image or of the head.

    Returns
    -------
    ndarray of shape (n, 4)
        x, y, width and height of the windows' centres and sides, in pixels of ``photograph``.

    Raises
    ------
    ValueError
        For a column that is no word.
    """
    if not 0 <= column < features.n_whole + (features.n_words if features.head_words_ is not None else 0):
        raise ValueError(f"column {column} is no visual word")
    for first, words, described, frame in _views(features, photograph):
        n = len(words.get_feature_names_out())
        if first <= column < first + n:
            bin, word = divmod(column - first, features.n_words)
            rows, found, quarters = words.occurrences(described)
            here = (found == word) & ((bin == 0) | (quarters == bin - 1))
            return _windows(described, np.unique(rows[here]), frame)
    return np.empty((0, 4))


def paint(features: PetFeatures, photograph: Photograph, evidence: np.ndarray) -> np.ndarray:
    """Evidence per pixel, (H, W) float64.

    Each word's evidence is shared equally among its occurrences and spread over their windows, a colour's over its pixels; what
    falls outside the image is left out.

    Parameters
    ----------
    features : PetFeatures
        Fitted.
    photograph : Photograph
        Resized to ``features.side`` already.
    evidence : ndarray of shape (n_features,)
        Of each column.
    """
    pixels = np.asarray(photograph.image)
    height, width = pixels.shape[:2]
    corners = np.zeros((height + 1, width + 1))  # differences of the map: windows are added at their four corners
    for first, words, described, frame in _views(features, photograph):
        n = len(words.get_feature_names_out())
        counts = words.counts(described)
        share = evidence[first : first + n] / np.maximum(counts, 1)
        rows, found, quarters = words.occurrences(described)
        value = share[found]
        if words.spatial:
            value = value + share[(1 + quarters) * features.n_words + found]
        x, y, w, h = _windows(described, rows, frame).T
        x0, x1 = (np.clip(np.rint(x + s * w / 2), 0, width).astype(int) for s in (-1, 1))
        y0, y1 = (np.clip(np.rint(y + s * h / 2), 0, height).astype(int) for s in (-1, 1))
        density = value / np.maximum((x1 - x0) * (y1 - y0), 1)
        for ys, xs, sign in ((y0, x0, 1), (y0, x1, -1), (y1, x0, -1), (y1, x1, 1)):
            np.add.at(corners, (ys, xs), sign * density)
    heat = corners.cumsum(axis=0).cumsum(axis=1)[:height, :width]
    colours = evidence[-(N_SHADES**3) :]
    shades = (pixels.astype(np.int64) * N_SHADES) >> 8
    bins = shades @ np.array([N_SHADES**2, N_SHADES, 1])
    return heat + (colours / np.maximum(np.bincount(bins.ravel(), minlength=N_SHADES**3), 1))[bins]


def _views(features: PetFeatures, photograph: Photograph):
    """First column, words, descriptors and frame (x, y, scale x, scale y) of the whole image and of the head."""
    yield 0, features.words_, features.sift.describe(photograph.image), (0.0, 0.0, 1.0, 1.0)
    head = photograph.head_image(features.head_side)
    if features.head_words_ is not None and head is not None and photograph.head is not None:
        x0, y0, x1, y1 = photograph.head
        frame = (x0, y0, (x1 - x0) / features.head_side, (y1 - y0) / features.head_side)
        yield features.n_whole, features.head_words_, features.head_sift.describe(head), frame


def _windows(described: Descriptors, rows: np.ndarray, frame: tuple[float, float, float, float]) -> np.ndarray:
    x0, y0, scale_x, scale_y = frame
    x, y = described.positions[rows].T.astype(np.float64)
    side = WINDOW * described.sizes[rows].astype(np.float64)
    return np.column_stack([x0 + scale_x * x, y0 + scale_y * y, scale_x * side, scale_y * side])
