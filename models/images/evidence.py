"""Positions of visual words in a photograph, and the evidence of each pixel."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...vision.words.dense_sift import CELL_OF_SIZE, N_CELLS, Descriptors
from ...vision.words.pet_features import N_SHADES, PetColumns, Photograph, shade_bins
from ...vision.words.visual_words import WordCounts

WINDOW = CELL_OF_SIZE * N_CELLS  # side of a descriptor in units of its keypoint's size


@dataclass(frozen=True)
class Explanation:
    """Evidence for the label of a photograph.

    Attributes
    ----------
    label : str
        Predicted class.
    probability : float
        Probability of the predicted class.
    image : ndarray of shape (H, W, 3), uint8
        Photograph, resized as for counting visual words.
    heat : ndarray of shape (H, W), float64
        Evidence at each pixel: positive values support ``label``, and negative values contradict
        it. The sum over the pixels equals the sum of the contributions.
    contributions : list of (str, float)
        Names and contributions of the selected columns that are non-zero for the photograph, in
        order of decreasing absolute contribution. Contributions refer to the score of ``label``
        minus the mean score of the other classes.
    """

    label: str
    probability: float
    image: np.ndarray
    heat: np.ndarray
    contributions: list[tuple[str, float]]


def occurrences(features: PetColumns, photograph: Photograph) -> tuple[np.ndarray, np.ndarray]:
    """Return the column index and the window of each visual word in a resized photograph.

    There is one entry for each region in which a word is counted: the whole image, a quarter of it,
    or the head. The windows have shape (m, 4), with the columns x and y of the centre, width and
    height, in pixels.
    """
    columns, windows = [], []
    for first, words, described, frame in _views(features, photograph):
        rows, indices, quarters = words.occurrences(described)
        bins = (
            [indices, (1 + quarters) * features.n_words + indices] if words.spatial else [indices]
        )
        columns += [first + bin.astype(np.int64) for bin in bins]
        windows += len(bins) * [_windows(described, rows, frame)]
    return np.concatenate(columns), np.concatenate(windows)


def paint(features: PetColumns, photograph: Photograph, evidence: np.ndarray) -> np.ndarray:
    """Distribute the evidence of the columns over the pixels of a resized photograph.

    The evidence of a word is divided equally among its occurrences and distributed over their
    windows. The evidence of a colour is distributed over its pixels.
    """
    pixels = np.asarray(photograph.image)
    height, width = pixels.shape[:2]
    columns, windows = occurrences(features, photograph)
    value = (evidence / np.maximum(np.bincount(columns, minlength=len(evidence)), 1))[columns]
    x, y, w, h = windows.T
    x0, y0 = (
        np.clip(np.floor(v), 0, side - 1).astype(int)
        for v, side in ((x - w / 2, width), (y - h / 2, height))
    )
    x1 = np.clip(np.ceil(x + w / 2).astype(int), x0 + 1, width)
    y1 = np.clip(np.ceil(y + h / 2).astype(int), y0 + 1, height)
    density = value / ((x1 - x0) * (y1 - y0))
    # differences of the map, so that each window is added at its four corners only
    corners = np.zeros((height + 1, width + 1))
    for ys, xs, sign in ((y0, x0, 1), (y0, x1, -1), (y1, x0, -1), (y1, x1, 1)):
        np.add.at(corners, (ys, xs), sign * density)
    heat = corners.cumsum(axis=0).cumsum(axis=1)[:height, :width]
    bins = shade_bins(pixels)
    n_bins = N_SHADES**3
    return (
        heat
        + (evidence[-n_bins:] / np.maximum(np.bincount(bins.ravel(), minlength=n_bins), 1))[bins]
    )


def _views(
    features: PetColumns, photograph: Photograph
) -> Iterator[tuple[int, WordCounts, Descriptors, tuple[float, float, float, float]]]:
    """Return the first column, words, descriptors and frame (x, y, scale x, scale y) of the whole
    image and of the head."""
    yield 0, features.words_, features.sift.describe(photograph.image), (0.0, 0.0, 1.0, 1.0)
    head = photograph.head_image(features.head_side)
    if features.head_words_ is not None and head is not None and photograph.head is not None:
        x0, y0, x1, y1 = photograph.head
        frame = (x0, y0, (x1 - x0) / features.head_side, (y1 - y0) / features.head_side)
        yield features.n_whole, features.head_words_, features.head_sift.describe(head), frame


def _windows(
    described: Descriptors, rows: np.ndarray, frame: tuple[float, float, float, float]
) -> np.ndarray:
    x0, y0, scale_x, scale_y = frame
    x, y = described.positions[rows].T.astype(np.float64)
    side = WINDOW * described.sizes[rows].astype(np.float64)
    return np.column_stack([x0 + scale_x * x, y0 + scale_y * y, scale_x * side, scale_y * side])
