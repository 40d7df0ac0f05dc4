"""The points of a face that are refined together: the annotated landmarks, or the nine keypoints
where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data import KEYPOINTS, LANDMARKS_OF, MIRROR_LANDMARKS, MIRROR_ORDER, FaceImage

#: Keypoints that detectors find: eyes, nose sides and mouth corners.
ANCHORS = KEYPOINTS[:6]


def points_of(image: FaceImage) -> np.ndarray:
    """Points (n_faces, n) of the faces of a photograph, complex, NaN where not annotated."""
    points = image.faces if image.landmarks is None else image.landmarks
    return points[..., 0] + 1j * points[..., 1]


def to_keypoints(n_points: int) -> np.ndarray:
    """Matrix (9, n_points) of means that gives the keypoints from the points."""
    if n_points == len(KEYPOINTS):
        return np.eye(len(KEYPOINTS))
    matrix = np.zeros((len(KEYPOINTS), n_points))
    for row, name in zip(matrix, KEYPOINTS):
        row[list(LANDMARKS_OF[name])] = 1 / len(LANDMARKS_OF[name])
    return matrix


def mirror_order(n_points: int) -> np.ndarray:
    """Which point of the mirror image each point is (n_points,)."""
    return np.array(MIRROR_ORDER if n_points == len(KEYPOINTS) else MIRROR_LANDMARKS, np.int32)


def mirrored_points(points: np.ndarray, width: int) -> np.ndarray:
    """Points (n,), complex, of the mirror image of a photograph of that width in pixels."""
    order = mirror_order(len(points))
    return width - 1 - points[order].real + 1j * points[order].imag


def annotated(images: Sequence[FaceImage]) -> list[FaceImage]:
    """The photographs whose faces train the refinement: those with landmarks, or all where none has
    them.
    """
    return [image for image in images if image.landmarks is not None] or list(images)
