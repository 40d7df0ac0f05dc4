"""Photographs searched by the detectors, at several sizes: what assembly and probabilities are
fitted to.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from .....models.keypoints.detections import DetectionOptions
from .....models.keypoints.detector import KeypointDetector
from .....vision.pyramid import Level
from ....common.file_map import Jobs
from ...data import AnnotatedImage, in_boxes
from ..windows.views import each


@dataclass(frozen=True)
class SearchedImage:
    """A photograph, perhaps shrunk, and the local maxima of the anchors in it.

    Attributes
    ----------
    levels : list of Level
        Its pyramid.
    maxima : dict of str to ndarray of shape (n, 4)
        x, y, score and scale of the local maxima of each anchor.
    instances : ndarray of shape (n_faces, n), complex
        Annotated points of its faces.
    reference_length : ndarray of shape (n_faces,)
        Of these, in pixels.
    boxes : ndarray of shape (n_boxes, 4)
        That may hold a face without annotation.
    """

    levels: Sequence[Level]
    maxima: dict[str, np.ndarray]
    instances: np.ndarray
    reference_length: np.ndarray
    boxes: np.ndarray

    def keypoints(self, matrix: np.ndarray) -> np.ndarray:
        """Keypoints (n_faces, n_keypoints), complex, by the matrix of means that gives them from
        the points.
        """
        return self.instances @ matrix.T if len(self.instances) else np.empty((0, len(matrix)), complex)

    def is_ignored(self, points: np.ndarray) -> bool:
        """Whether the middle of a shape (n,), complex, lies in a box that may hold a face without
        annotation.
        """
        middle = points.mean()
        return bool(in_boxes(np.array([[middle.real, middle.imag]]), self.boxes)[0])


def search_all(
    detector: KeypointDetector,
    anchors: Sequence[str],
    images: Sequence[AnnotatedImage],
    ied: Iterable[float | None] = (None,),
    n_jobs: Jobs = 1,
) -> Iterator[SearchedImage]:
    """Search photographs at their size (None) and shrunk to other reference length of their first
    face, where that is smaller.
    """
    mode = detector.resolve(DetectionOptions(anchors, assembly="none")).mode or ""

    def search(item: tuple[AnnotatedImage, float | None]) -> SearchedImage | None:
        image, target = item
        pixels, faces, boxes, factor = image.pixels(), image.points, image.ignore, 1.0
        if target is not None:
            factor = target / float(image.reference_length[0]) if len(image.reference_length) else 1.0
            if factor > 0.9:
                return None
            small = np.asarray(cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), np.uint8)
            x, y = (new / old for new, old in zip(small.shape[1::-1], pixels.shape[1::-1]))
            faces = (faces.real + 0.5) * x - 0.5 + 1j * ((faces.imag + 0.5) * y - 0.5)
            pixels, boxes = small, boxes * [x, y, x, y]
        levels = detector.search.pyramid(pixels)
        return SearchedImage(levels, detector.anchor_maxima(levels, anchors, mode), faces, factor * image.reference_length, boxes)

    items = [(image, target) for image in images for target in (ied if len(image.reference_length) else (None,))]
    return (found for found in each(items, search, n_jobs) if found is not None)
