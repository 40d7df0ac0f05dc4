"""Views to learn from: photographs and their mirror images.

A *view* is a photograph or its mirror image: the model of the left eye also learns from right eyes in mirrored photographs.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from ....vision.images import read_image
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


def each(items: Iterable[Item], work: Callable[[Item], Answer], n_jobs: int) -> Iterable[Answer]:
    """Yield ``work(item)`` in the order of the items; threads work ahead, but never by more than a few items."""
    if n_jobs <= 1:
        for item in items:
            yield work(item)
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
            for future in pending:
                future.cancel()
