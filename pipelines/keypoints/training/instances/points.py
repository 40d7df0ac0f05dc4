"""The points of a face that are refined together: the annotated landmarks, or the keypoints where
there are none.
"""

from collections.abc import Sequence

import numpy as np

from .....models.keypoints.schema import Schema
from ...data import AnnotatedImage


def points_of(image: AnnotatedImage) -> np.ndarray:
    """Points (n_faces, n) of the faces of a photograph, complex, NaN where not annotated."""
    points = image.instances if image.landmarks is None else image.landmarks
    return points[..., 0] + 1j * points[..., 1]


def to_keypoints(schema: Schema, n_points: int) -> np.ndarray:
    """Matrix (n_keypoints, n_points) of means that gives the keypoints from the points."""
    if n_points == len(schema.keypoints):
        return np.eye(n_points)
    matrix = np.zeros((len(schema.keypoints), n_points))
    for row, name in zip(matrix, schema.keypoints):
        row[list(schema.landmarks[name])] = 1 / len(schema.landmarks[name])
    return matrix


def mirror_order(schema: Schema, n_points: int) -> np.ndarray:
    """Which point of the mirror image each point is (n_points,); empty without mirror images."""
    if not schema.mirrored:
        return np.empty(0, np.int32)
    return np.array(schema.mirror_order if n_points == len(schema.keypoints) else schema.landmark_mirror, np.int32)


def mirrored_points(points: np.ndarray, width: int, schema: Schema) -> np.ndarray:
    """Points (n,), complex, of the mirror image of a photograph of that width in pixels."""
    order = mirror_order(schema, len(points))
    return width - 1 - points[order].real + 1j * points[order].imag


def annotated(images: Sequence[AnnotatedImage]) -> list[AnnotatedImage]:
    """The photographs whose faces train the refinement: those with landmarks, or all where none has
    them.
    """
    return [image for image in images if image.landmarks is not None] or list(images)
