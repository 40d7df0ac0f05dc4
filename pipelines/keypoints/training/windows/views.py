"""Training views, and windows cropped from them.

A *view* is a photograph or its mirror image, so the model for the left eye is also trained on right
eyes in mirrored photographs. Windows in views are identified by *keys*, which are integers that
encode the view, the pyramid level, y and x. No window is used twice.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from .....models.keypoints.schema import Schema
from .....vision import Level, extract_patches, gaussian_pyramid
from ....common.file_map import Jobs, map_items
from ...data import AnnotatedImage, in_boxes
from .fitting import TrainingSettings

#: Pyramid levels per octave, in training and in the trained detectors (heuristic).
SCALES_PER_OCTAVE = 4
#: Name used in place of a keypoint for the centre of a face, the mean of its annotated anchors.
FACE = "face"
# radius in reference lengths around the centre without negatives if a keypoint is not annotated
# (heuristic)
_UNKNOWN_DISTANCE = 2.0

Item = TypeVar("Item")
Result = TypeVar("Result")
NamedView = tuple[AnnotatedImage, bool]  # a photograph, and whether it is mirrored


@dataclass(frozen=True)
class View:
    """Opened photograph, possibly mirrored, with annotations in its coordinates.

    The RGB pixels have shape (H, W, 3). ``points``, of shape (n_faces, 2), contains the keypoint of
    each face, or NaN if it is not annotated, and ``visible`` is true for visible keypoints.
    ``middle``, of shape (n_faces, 2), is the mean of the anchors. ``ignore``, of shape (n_boxes,
    4), contains boxes that may contain unannotated faces.
    """

    pixels: np.ndarray
    points: np.ndarray
    visible: np.ndarray
    reference_length: np.ndarray
    middle: np.ndarray
    ignore: np.ndarray

    def is_background(self, xy: np.ndarray, distance: float, pixels: float = 0.0) -> np.ndarray:
        """Return a mask of the points that are background.

        Such points are outside all ignore boxes, and their distance from the keypoint of every face
        is at least the given distances, in reference lengths and in image pixels.
        """
        known = np.isfinite(self.points).all(axis=1)
        centre = np.where(known[:, None], self.points, self.middle)
        reach = (
            np.where(known, distance, np.maximum(distance, _UNKNOWN_DISTANCE))
            * self.reference_length
        )
        reach = np.maximum(reach, pixels)
        distances = np.hypot(
            xy[:, None, 0] - centre[None, :, 0], xy[:, None, 1] - centre[None, :, 1]
        )
        return ~(np.logical_or.reduce(distances < reach, axis=1) | in_boxes(xy, self.ignore))


def open_view(image: AnnotatedImage, keypoint: str, mirrored: bool) -> View:
    """Read a photograph or its mirror image, with the annotations of a keypoint.

    The keypoint ``FACE`` is the centre of the face.
    """
    pixels = image.pixels()
    shown = image.mirrored(pixels.shape[1]) if mirrored else image
    if mirrored:
        pixels = np.ascontiguousarray(pixels[:, ::-1])
    middle, k = (
        instance_centres(shown),
        None if keypoint == FACE else image.schema.keypoints.index(keypoint),
    )
    points = middle if k is None else shown.instances[:, k]
    visible = (
        np.asarray(shown.visible[:, inner(image.schema)].any(axis=1))
        if k is None
        else shown.visible[:, k]
    )
    return View(pixels, points, visible, image.reference_length, middle, shown.ignore)


def inner(schema: Schema) -> slice:
    """Return the indices of the anchors or, if no anchors have been chosen, of all keypoints."""
    return slice(len(schema.anchors) or None)


def instance_centres(image: AnnotatedImage) -> np.ndarray:
    """Compute the centre of each face.

    The centre is the mean of the annotated anchors or, if no anchors are annotated, of all points.
    """
    anchors, every = image.instances[:, inner(image.schema)], image.instances
    none = np.isnan(anchors).all(axis=(1, 2))
    return np.array(
        [np.nanmean(every[i] if none[i] else anchors[i], axis=0) for i in range(len(every))]
    ).reshape(-1, 2)


def expected_positions(images: Sequence[AnnotatedImage]) -> dict[str, tuple[float, float]]:
    """Compute the mean vector from the centre of a face to each keypoint, in reference lengths.

    The mean is taken over faces and their mirror images.
    """
    schema = images[0].schema
    shown = [image.mirrored(0) if flip else image for image in images for flip in schema.flips]
    every = np.concatenate(
        [
            (image.instances - instance_centres(image)[:, None])
            / image.reference_length[:, None, None]
            for image in shown
        ]
    )
    known = np.isfinite(every).all(axis=2).any(axis=0)
    return {
        name: tuple(np.nanmean(every[:, k], axis=0).tolist())
        for k, name in enumerate(schema.keypoints)
        if known[k]
    }


def without_objects(paths: Sequence[Path], schema: Schema) -> list[AnnotatedImage]:
    """Return empty annotations for photographs without faces."""
    n = len(schema.keypoints)
    return [
        AnnotatedImage(
            Path(p), np.zeros((0, n, 2)), np.zeros((0, n), bool), np.zeros((0, 4)), schema=schema
        )
        for p in paths
    ]


def held_out(image: AnnotatedImage, share: float) -> bool:
    """Return whether a photograph is held out for calibration.

    The decision is based on a hash of the file name.
    """
    number = int.from_bytes(hashlib.sha256(image.name.encode()).digest()[:4], "big")
    return number < share * 2**32


def each(items: Iterable[Item], work: Callable[[Item], Result], n_jobs: Jobs) -> Iterable[Result]:
    """Yield ``work(item)`` for each item, in order.

    Threads or cluster workers run at most a few items ahead of the consumer.
    """
    if not isinstance(n_jobs, int) or n_jobs <= 1:
        yield from (
            map(work, items) if isinstance(n_jobs, int) else map_items(n_jobs, work, list(items))
        )
        return
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
            threads.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Split:
    """Photographs and views for fitting and for calibration."""

    fitted: list[AnnotatedImage]
    calibration: list[AnnotatedImage]
    views: list[NamedView]
    held_out_views: list[NamedView]


def split_views(
    images: Sequence[AnnotatedImage],
    background: Sequence[Path],
    share: float,
    further: Callable[[list[AnnotatedImage]], list[AnnotatedImage]] = lambda images: [],
) -> Split:
    """Split photographs into a part for fitting and a held-out part.

    Photographs without faces are used for fitting. The function ``further`` creates additional
    images from the photographs of each part.
    """
    calibration = [image for image in images if held_out(image, share)]
    fitted = [image for image in images if not held_out(image, share)]
    if not fitted or not calibration:
        raise ValueError(
            f"{len(images)} photographs are too few: they leave {len(fitted)} for fitting and "
            f"{len(calibration)} held out; expected at least one of each"
        )
    schema = images[0].schema
    # Thresholds are set on photographs, since the hardest synthetic images would require thresholds
    # that accept ten times as many windows.
    held_out_views = [(image, flip) for image in calibration for flip in schema.flips]
    fitted, calibration = [*fitted, *further(fitted)], [*calibration, *further(calibration)]
    # The index of a view is part of the window keys, so views are sorted by name.
    views = [
        (image, flip)
        for image in [*fitted, *without_objects(background, schema)]
        for flip in schema.flips
    ]
    return Split(fitted, calibration, views, held_out_views)


def since(start: float) -> str:
    """Return the time since ``start``, a value from `time.monotonic`, as text."""
    return f"{time.monotonic() - start:.1f} s"


_VIEW, _LEVEL, _Y = 40, 32, 16  # first bits of the parts of a key; x uses the lowest 16 bits


def pack_keys(view: int, level: int, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Encode the view, the pyramid level and the position of windows as int64 keys."""
    return (
        (np.int64(view) << _VIEW)
        | (np.int64(level) << _LEVEL)
        | (y.astype(np.int64) << _Y)
        | x.astype(np.int64)
    )


def unpack_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Decode keys created by `pack_keys` to view, level, y and x."""
    return keys >> _VIEW, (keys >> _LEVEL) & 0xFF, (keys >> _Y) & 0xFFFF, keys & 0xFFFF


def keys_of_view(view: int) -> tuple[int, int]:
    """Return the smallest key of a view and the smallest key of the next view."""
    return view << _VIEW, (view + 1) << _VIEW


def positive_windows(
    level: Level, view: View, ied_range: tuple[float, float], radius: float
) -> np.ndarray:
    """Return the positions (x, y) of the pixels of a level within ``radius`` of a visible keypoint.

    Only faces whose reference length on the level lies in ``ied_range`` are considered. The result
    has shape (n, 2).
    """
    low, high = ied_range
    ied = view.reference_length * level.scale
    chosen = view.visible & (ied >= low) & (ied <= high) & np.isfinite(view.points).all(axis=1)
    reach = np.arange(-int(np.ceil(radius)) - 1, int(np.ceil(radius)) + 2)
    step = np.stack(np.meshgrid(reach, reach), axis=-1).reshape(-1, 2)
    positives = [np.empty((0, 2), np.int64)]
    for point in level.from_image(view.points[chosen]):
        near = np.floor(point).astype(np.int64) + step
        positives.append(near[np.hypot(*(near - point).T) <= radius])
    pixels = np.unique(np.concatenate(positives), axis=0)
    height, width = level.image.shape[:2]
    return pixels[
        ((pixels >= 0) & (pixels < [width, height])).all(axis=1)
    ]  # keys cannot represent negative coordinates


@dataclass(frozen=True)
class Windows:
    """Windows cropped from views, with their keys and scores.

    Patches have shape (n, 26, 26, 3), including a margin of one pixel. Keys are created by
    `pack_keys`. Mined windows have the scores of a detector, and all other windows have a score of
    0.
    """

    patches: np.ndarray
    keys: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: np.ndarray) -> Windows:
        """Return the windows in the given rows."""
        return Windows(self.patches[rows], self.keys[rows], self.scores[rows])


def join(parts: Sequence[Windows], window: int = 24) -> Windows:
    """Concatenate several sets of windows."""
    side = window + 2
    return Windows(
        np.concatenate([np.empty((0, side, side, 3), np.uint8), *[p.patches for p in parts]]),
        np.concatenate([np.empty(0, np.int64), *[p.keys for p in parts]]),
        np.concatenate([np.empty(0, np.float32), *[p.scores for p in parts]]),
    )


def _cut(
    levels: Sequence[Level], number: int, places: Sequence[np.ndarray], window: int
) -> Windows:
    """Crop windows at the pixels ``places[k]`` (n, 2) of each level."""
    keys = np.concatenate(
        [
            np.empty(0, np.int64),
            *(pack_keys(number, k, xy[:, 1], xy[:, 0]) for k, xy in enumerate(places)),
        ]
    )
    return cut_keys(levels, keys, np.zeros(len(keys), np.float32), window)


def sample_view(
    image: AnnotatedImage,
    mirrored: bool,
    number: int,
    keypoint: str,
    settings: TrainingSettings,
    n_random: int,
    window: int = 24,
    candidates: Callable[[Sequence[Level]], Sequence[np.ndarray]] | None = None,
) -> tuple[Windows, Windows]:
    """Return the positives in a view, and negatives that are drawn uniformly from its pyramid.

    Parameters
    ----------
    image, mirrored, number : AnnotatedImage, bool, int
        Photograph, whether to use its mirror image, and the number of the view in the keys.
    keypoint : str
        Name of the trained keypoint.
    settings : TrainingSettings
        Settings, such as the positions of positives and negatives and the random seed.
    n_random : int
        Number of negatives to draw. Negatives that are too close to a keypoint are dropped and not
        replaced.
    window : int
        Side of a window in pixels.
    candidates : function, optional
        Function that returns, given the levels, the positions of the candidate negatives on each
        level, as an array of shape (n, 2). By default, all windows are candidates.
    """
    s, view = settings, open_view(image, keypoint, mirrored)
    levels = gaussian_pyramid(view.pixels, SCALES_PER_OCTAVE, max_scale=s.enlarged)
    positives = _cut(
        levels,
        number,
        [positive_windows(v, view, (s.ied_low, s.ied_high), s.positive_radius) for v in levels],
        window,
    )
    rng = np.random.default_rng([s.seed, 1, number])
    some = None if candidates is None or not n_random else candidates(levels)
    sizes = (
        [level.image.shape[0] * level.image.shape[1] for level in levels]
        if some is None
        else [len(xy) for xy in some]
    )
    counts = np.array(sizes, dtype=np.int64)
    if not counts.sum():
        return positives, join([], window)
    drawn = np.unique(rng.integers(0, counts.sum(), n_random))
    places = []
    for k, (level, start) in enumerate(zip(levels, np.cumsum(counts) - counts)):
        index = drawn[(drawn >= start) & (drawn < start + counts[k])] - start
        width = level.image.shape[1]
        xy = np.column_stack([index % width, index // width]) if some is None else some[k][index]
        places.append(
            xy[
                view.is_background(
                    level.to_image(xy), s.negative_distance, s.negative_pixels / level.scale
                )
            ]
        )
    return positives, _cut(levels, number, places, window)


def cut_keys(levels: Sequence[Level], key: np.ndarray, score: np.ndarray, window: int) -> Windows:
    """Crop the windows with the given keys from a view, in the order of the keys."""
    _, level_of, y, x = unpack_keys(key)
    patches = np.empty((len(key), window + 2, window + 2, 3), np.uint8)
    for k in np.unique(level_of):
        rows = level_of == k
        patches[rows] = extract_patches(levels[k].image, x[rows], y[rows], window)
    return Windows(patches, key, score)
