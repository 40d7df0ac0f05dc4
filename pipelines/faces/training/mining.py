"""Windows to learn from: positives around a keypoint, random negatives, and the false alarms of a detector.

A *view* is a photograph or its mirror image: the model of the left eye also learns from right eyes in mirrored photographs.
A window is known by its *key*: view, level of the pyramid, y and x in one integer. No window is taken twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from ....models.keypoints.detector import KeypointDetector
from ....vision.images import read_image
from ....vision.pyramid import Level, gaussian_pyramid
from ....vision.windows.patches import extract_patches
from ..data import KEYPOINTS, MIRROR, FaceImage

SCALES_PER_OCTAVE = 4
_UNKNOWN = 2.0  # where a keypoint is not annotated, no negatives come from within so many IED of the face's eyes

Answer = TypeVar("Answer")
Item = TypeVar("Item")


@dataclass(frozen=True)
class View:
    """A photograph, perhaps mirrored, opened.

    Attributes
    ----------
    pixels : ndarray of shape (H, W, 3), uint8
        RGB pixels of the view.
    points : ndarray of shape (n_faces, 2)
        The keypoint looked for, in the view's coordinates; NaN where not annotated.
    visible : ndarray of shape (n_faces,), bool
        Whether it can be seen.
    ied : ndarray of shape (n_faces,)
        Inter-eye distances.
    eyes : ndarray of shape (n_faces, 2)
        Middle between the eyes.
    ignore : ndarray of shape (n_boxes, 4)
        Boxes that may hold a face without annotation.
    """

    pixels: np.ndarray
    points: np.ndarray
    visible: np.ndarray
    ied: np.ndarray
    eyes: np.ndarray
    ignore: np.ndarray

    def is_background(self, xy: np.ndarray, distance: float, pixels: float = 0.0) -> np.ndarray:
        """Tell which points (n, 2) lie at least ``distance`` IED from the keypoint of every face and outside all boxes.

        And at least ``pixels`` image pixels.
        """
        known = np.isfinite(self.points).all(axis=1)
        centre = np.where(known[:, None], self.points, self.eyes)
        reach = np.where(known, distance, np.maximum(distance, _UNKNOWN)) * self.ied
        reach = np.maximum(reach, pixels)
        distances = np.hypot(xy[:, None, 0] - centre[None, :, 0], xy[:, None, 1] - centre[None, :, 1])
        near = distances < reach
        inside = ((xy[:, None] >= self.ignore[None, :, :2]) & (xy[:, None] <= self.ignore[None, :, 2:])).all(axis=2)
        return ~(np.logical_or.reduce(near, axis=1) | np.logical_or.reduce(inside, axis=1))


def open_view(image: FaceImage, keypoint: str, mirrored: bool) -> View:
    """Read a photograph and look at one keypoint in it, or in its mirror image.

    Raises
    ------
    ValueError
        If the image cannot be read.
    """
    pixels = read_image(image.path)
    faces, ignore = image.faces, image.ignore
    if mirrored:
        last = pixels.shape[1] - 1
        pixels = np.ascontiguousarray(pixels[:, ::-1])
        faces = np.stack([last - faces[..., 0], faces[..., 1]], axis=-1)
        ignore = np.column_stack([last - ignore[:, 2], ignore[:, 1], last - ignore[:, 0], ignore[:, 3]])
    i = KEYPOINTS.index(MIRROR[keypoint] if mirrored else keypoint)
    return View(pixels, faces[:, i], image.visible[:, i], image.ied, faces[:, :2].mean(axis=1), ignore)


class Near(NamedTuple):
    """Windows near a keypoint, and where it lies from each: patches (n, 26, 26, 3), dx and dy (n, 2)."""

    patches: np.ndarray
    offsets: np.ndarray


def gather_near(
    views: Sequence[tuple[FaceImage, bool]], look: Callable[[int, FaceImage, bool], Near], window: int, n_jobs: int
) -> Near:
    """What ``look(number, image, mirrored)`` finds in each view, in the order of the views; the threads do not matter."""
    parts = list(each(enumerate(views), lambda item: look(item[0], *item[1]), n_jobs))
    side = window + 2
    patches = [np.asarray(part.patches, np.uint8).reshape(-1, side, side, 3) for part in parts]
    offsets = [np.reshape(part.offsets, (-1, 2)) for part in parts]
    return Near(np.concatenate([np.empty((0, side, side, 3), np.uint8), *patches]), np.concatenate([np.empty((0, 2)), *offsets]))


def without_faces(paths: Sequence[Path]) -> list[FaceImage]:
    """Photographs in which there is nothing to be found."""
    nobody = np.zeros((0, len(KEYPOINTS), 2))
    return [FaceImage(Path(path), nobody, np.zeros((0, len(KEYPOINTS)), bool), np.zeros((0, 4))) for path in paths]


def held_out(image: FaceImage, share: float) -> bool:
    """Tell whether a photograph is kept for calibration: a fixed choice by the file's name."""
    number = int.from_bytes(hashlib.sha256(image.name.encode()).digest()[:4], "big")
    return number < share * 2**32


def pack_keys(view: int, level: int, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Keys of windows, int64."""
    return (np.int64(view) << 40) | (np.int64(level) << 32) | (y.astype(np.int64) << 16) | x.astype(np.int64)


def positive_windows(level: Level, view: View, ied_range: tuple[float, float], radius: float) -> np.ndarray:
    """Pixels (n, 2) of the level within ``radius`` of a visible keypoint of a face whose IED there is in the range."""
    low, high = ied_range
    ied = view.ied * level.scale
    chosen = view.visible & (ied >= low) & (ied <= high) & np.isfinite(view.points).all(axis=1)
    reach = np.arange(-int(np.ceil(radius)) - 1, int(np.ceil(radius)) + 2)
    step = np.stack(np.meshgrid(reach, reach), axis=-1).reshape(-1, 2)
    found = [np.empty((0, 2), np.int64)]
    for point in level.from_image(view.points[chosen]):
        near = np.floor(point).astype(np.int64) + step
        found.append(near[np.hypot(*(near - point).T) <= radius])
    return np.unique(np.concatenate(found), axis=0)


@dataclass(frozen=True)
class Windows:
    """Windows cut out of views.

    Attributes
    ----------
    patches : ndarray of shape (n, 26, 26, 3), uint8
        Pixels of each window and one around it.
    keys : ndarray of shape (n,), int64
        Which windows they are.
    scores : ndarray of shape (n,), float32
        What a detector said, where one was asked; else 0.
    """

    patches: np.ndarray
    keys: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: np.ndarray) -> Windows:
        """The windows of these rows."""
        return Windows(self.patches[rows], self.keys[rows], self.scores[rows])


def join(parts: Sequence[Windows], window: int = 24) -> Windows:
    """All windows of the parts, in their order."""
    side = window + 2
    return Windows(
        np.concatenate([np.empty((0, side, side, 3), np.uint8), *[p.patches for p in parts]]),
        np.concatenate([np.empty(0, np.int64), *[p.keys for p in parts]]),
        np.concatenate([np.empty(0, np.float32), *[p.scores for p in parts]]),
    )


def _cut(levels: Sequence[Level], number: int, places: Sequence[np.ndarray], window: int, scores=None) -> Windows:
    """Windows at the pixels ``places[k]`` (n, 2) of each level."""
    parts = [np.empty((0, window + 2, window + 2, 3), np.uint8)]
    keys = [np.empty(0, np.int64)]
    for k, (level, xy) in enumerate(zip(levels, places)):
        if len(xy):
            parts.append(extract_patches(level.image, xy[:, 0], xy[:, 1], window))
            keys.append(pack_keys(number, k, xy[:, 1], xy[:, 0]))
    found = np.concatenate(keys)
    return Windows(np.concatenate(parts), found, np.zeros(len(found), np.float32) if scores is None else scores)


def sample_view(
    image: FaceImage,
    mirrored: bool,
    number: int,
    keypoint: str,
    *,
    n_random: int,
    seed: Sequence[int],
    ied_range: tuple[float, float] = (20.0, 40.0),
    radius: float = 1.0,
    distance: float = 0.5,
    pixels: float = 0.0,
    window: int = 24,
    among: Callable[[Level], np.ndarray] | None = None,
) -> tuple[Windows, Windows]:
    """Positives of one view, and negatives drawn evenly from all windows of its pyramid, or from some.

    Parameters
    ----------
    image, mirrored : FaceImage, bool
        The view.
    number : int
        Its number, for the keys.
    keypoint : str
        What is learnt.
    n_random : int
        Negatives to draw; those too near a keypoint are dropped, not replaced.
    seed : sequence of int
        Of the draw.
    ied_range : tuple of float
        IED in pixels of a level for which its windows are positives.
    radius : float
        Largest distance of a positive window's pixel from the keypoint, in pixels of the level.
    distance : float
        Least distance of negatives from the keypoint of every face, in IED.
    pixels : float
        And in pixels of the negative's level.
    window : int
        Side of the window.
    among : function, optional
        Tells of a level the pixels (n, 2) of the windows that negatives are drawn from; all by default.

    Returns
    -------
    positives, negatives : Windows
        The positives lie as close in scale and place as the detector should answer.
    """
    view = open_view(image, keypoint, mirrored)
    levels = gaussian_pyramid(view.pixels, SCALES_PER_OCTAVE)
    positives = _cut(levels, number, [positive_windows(v, view, ied_range, radius) for v in levels], window)
    rng = np.random.default_rng([*seed, number])
    some = None if among is None or not n_random else [among(level) for level in levels]
    sizes = [level.image.shape[0] * level.image.shape[1] for level in levels] if some is None else [len(xy) for xy in some]
    counts = np.array(sizes, dtype=np.int64)
    if not counts.sum():
        return positives, join([], window)
    drawn = np.unique(rng.integers(0, counts.sum(), n_random))
    places = []
    for k, (level, start) in enumerate(zip(levels, np.cumsum(counts) - counts)):
        index = drawn[(drawn >= start) & (drawn < start + counts[k])] - start
        width = level.image.shape[1]
        xy = np.column_stack([index % width, index // width]) if some is None else some[k][index]
        places.append(xy[view.is_background(level.to_image(xy), distance, pixels / level.scale)])
    return positives, _cut(levels, number, places, window)


def mine_view(
    image: FaceImage,
    mirrored: bool,
    number: int,
    keypoint: str,
    detector: KeypointDetector,
    known: np.ndarray,
    *,
    most: int,
    distance: float = 0.5,
    pixels: float = 0.0,
    mode: str = "scan",
) -> tuple[Windows, int]:
    """The highest-scoring new false alarms of a detector among ALL windows of a view, or all that a mode looks at.

    Parameters
    ----------
    image, mirrored, number, keypoint, distance, pixels
        As in :func:`sample_view`.
    detector : KeypointDetector
        Holds a model of ``keypoint``, its rejection thresholds lowered.
    known : ndarray of int64, sorted
        Keys of the negatives so far.
    most : int
        At most so many.
    mode : {"scan", "prune+regress"}
        Of the detector.

    Returns
    -------
    windows : Windows
        By falling score.
    n_alarms : int
        How many windows passed the thresholds wrongly, new or not.
    """
    view = open_view(image, keypoint, mirrored)
    levels = detector.pyramid(view.pixels)
    keys, scores, n_alarms = [np.empty(0, np.int64)], [np.empty(0, np.float32)], 0
    for k, level in enumerate(levels):
        found = detector.score_level(level, keypoint, mode)
        found = found[view.is_background(found[:, :2], distance, pixels / level.scale)]
        n_alarms += len(found)
        xy = np.rint(level.from_image(found[:, :2])).astype(np.int64)
        keys.append(pack_keys(number, k, xy[:, 1], xy[:, 0]))
        scores.append(found[:, 3].astype(np.float32))
    key, score = np.concatenate(keys), np.concatenate(scores)
    new = ~np.isin(key, known)
    key, score = key[new], score[new]
    best = np.lexsort((key, -score))[:most]
    key, score = key[best], score[best]
    return cut_keys(levels, number, key, score, detector.pool.window), n_alarms


def cut_keys(levels: Sequence[Level], number: int, key: np.ndarray, score: np.ndarray, window: int) -> Windows:
    """Windows of one view by their keys, in the order of the keys."""
    side = window + 2
    patches = np.empty((len(key), side, side, 3), np.uint8)
    level_of, y, x = (key >> 32) & 0xFF, (key >> 16) & 0xFFFF, key & 0xFFFF
    for k, level in enumerate(levels):
        rows = level_of == k
        if rows.any():
            patches[rows] = extract_patches(level.image, x[rows], y[rows], window)
    return Windows(patches, key, score)


def each(items: Iterable[Item], work: Callable[[Item], Answer], n_jobs: int) -> Iterable[Answer]:
    """Yield ``work(item)`` in the order of the items; threads work ahead, but never by more than a few items."""
    if n_jobs <= 1:
        for item in items:
            yield work(item)
        return
    from collections import deque

    with ThreadPoolExecutor(n_jobs) as threads:
        pending: deque = deque()
        try:
            for item in items:
                pending.append(threads.submit(work, item))
                if len(pending) > 2 * n_jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
