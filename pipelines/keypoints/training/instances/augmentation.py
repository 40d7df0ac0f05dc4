"""Augmented copies of annotated faces, and initial shapes for the refinement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from .....models.keypoints.instances.shape_models import ShapeModel
from .....vision.pyramid import Level, gaussian_pyramid
from ...data import AnnotatedImage
from ..windows.views import SCALES_PER_OCTAVE

_AROUND = 2.6  # reference lengths from the centre of a face to the edges of its copy (heuristic)


@dataclass(frozen=True)
class AugmentationSettings:
    """Settings for augmenting faces and simulating the initial shapes of their refinement.

    Distances are in reference lengths unless stated otherwise.

    Parameters
    ----------
    copies : int
        Number of copies of each photograph and of its mirror image. Every second copy is reduced in
        size.
    largest : float
        Maximum reference length, in pixels, of the copies that are not reduced in size.
    shrunk : tuple of float
        Range of the reference length, in pixels, of the copies that are reduced in size.
    blurred, compressed, brightened : float
        Fractions of the copies that are blurred, compressed as low-quality JPEG, and changed in
        brightness and contrast, respectively.
    covered : float
        Fraction of the copies in which part of another image covers 10 to 40% of the object's box.
    anchor_errors : tuple of float
        Standard deviations of the simulated detection errors of the anchors. Each one is used for
        two consecutive anchors.
    outliers : float
        Fraction of the anchors that are outliers.
    outlier_error : float
        Standard deviation of the simulated detection errors of outliers.
    incomplete : float
        Fraction of the initial shapes that are completed from only some of the anchors.
    turned, scaled, shifted : float
        Standard deviations of the random rotation (in radians), log scale and shift of the initial
        shape.
    """

    copies: int = 4
    largest: float = 64.0
    shrunk: tuple[float, float] = (18.0, 45.0)
    blurred: float = 0.3
    compressed: float = 0.4
    brightened: float = 0.5
    covered: float = 0.0
    anchor_errors: tuple[float, float, float] = (0.03, 0.035, 0.05)
    outliers: float = 0.05
    outlier_error: float = 0.15
    incomplete: float = 0.5
    turned: float = 0.06
    scaled: float = 0.06
    shifted: float = 0.04


class InstanceCopy(NamedTuple):
    """Augmented copy of a face.

    It contains the grey values (a uint8 array of shape (h, w)), the n annotated points as complex
    numbers, whether the copy is mirrored, and the reference length in pixels.
    """

    pixels: np.ndarray
    points: np.ndarray
    mirrored: bool
    reference_length: float

    def levels(self, ied: float, unit: float) -> list[Level]:
        """Return an image pyramid of the copy.

        The reference length of the face is ``ied`` pixels in the copy, and ``unit`` pixels in the
        crops that are taken from the pyramid.
        """
        colour = np.repeat(self.pixels[..., None], 3, axis=2)
        return gaussian_pyramid(colour, SCALES_PER_OCTAVE, min_scale=min(1.0, unit / (1.5 * ied)))


def copies(
    images: Sequence[AnnotatedImage], settings: AugmentationSettings, seed: Sequence[int]
) -> Iterator[InstanceCopy]:
    """Yield augmented copies of all annotated faces, in the order of the photographs."""
    for number, image in enumerate(images):
        faces = image.points
        usable = np.flatnonzero(np.isfinite(faces).all(axis=1))
        if not len(usable):
            continue
        pixels = image.pixels()
        for flip in image.schema.flips:
            shown = np.ascontiguousarray(pixels[:, ::-1]) if flip else pixels
            for face in usable:
                points = (
                    image.schema.mirrored_points(faces[face], pixels.shape[1])
                    if flip
                    else faces[face]
                )
                for copy in range(settings.copies):
                    rng = np.random.default_rng([*seed, number, int(flip), int(face), copy])
                    ied = float(image.reference_length[face])
                    target = (
                        float(np.exp(rng.uniform(*np.log(settings.shrunk))))
                        if copy % 2
                        else settings.largest
                    )
                    factor = min(1.0, target / ied)
                    small, moved = _cut(shown, points, ied, factor)
                    if settings.covered and rng.random() < settings.covered:
                        small = _occluded(
                            small, moved, images[int(rng.integers(len(images)))].pixels(), rng
                        )
                    yield InstanceCopy(
                        cv2.cvtColor(_varied(small, settings, rng), cv2.COLOR_RGB2GRAY),
                        moved,
                        flip,
                        factor * ied,
                    )


def _cut(
    pixels: np.ndarray, points: np.ndarray, ied: float, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Crop a face with its surroundings, shrunk by a factor."""
    middle, reach = points.mean(), _AROUND * ied
    left, top = (max(0, int(v - reach)) for v in (middle.real, middle.imag))
    part = pixels[top : int(middle.imag + reach) + 1, left : int(middle.real + reach) + 1]
    points = points - complex(left, top)
    if factor == 1.0:
        return part, points
    size = [max(8, round(side * factor)) for side in part.shape[1::-1]]
    x, y = (side / full for side, full in zip(size, part.shape[1::-1]))
    moved = (points.real + 0.5) * x - 0.5 + 1j * ((points.imag + 0.5) * y - 0.5)
    return np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), np.uint8), moved


def _occluded(
    pixels: np.ndarray, points: np.ndarray, other: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the pixels with a part of another image over 10 to 40% of the box around the
    points."""
    low = np.array([points.real.min(), points.imag.min()])
    extent = np.array([np.ptp(points.real), np.ptp(points.imag)])
    side = np.sqrt(rng.uniform(0.1, 0.4)) * extent
    left, top = np.maximum(low + rng.uniform(0, 1, 2) * (extent - side), 0).astype(int)
    covered = pixels.copy()
    part = covered[top:, left:][: int(side[1]) + 1, : int(side[0]) + 1]
    if part.size:
        part[:] = cv2.resize(other, part.shape[1::-1])
    return covered


def _varied(pixels: np.ndarray, s: AugmentationSettings, rng: np.random.Generator) -> np.ndarray:
    if rng.random() < s.blurred:
        pixels = np.asarray(cv2.GaussianBlur(pixels, (0, 0), rng.uniform(0.3, 1.3)), np.uint8)
    if rng.random() < s.brightened:
        bright = pixels.astype(np.float32) * rng.uniform(0.5, 1.4) + rng.uniform(-30, 40)
        pixels = np.clip(bright, 0, 255).astype(np.uint8)
    if rng.random() < s.compressed:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(25, 90))]
        pixels = np.asarray(
            cv2.imdecode(cv2.imencode(".jpg", pixels, quality)[1], cv2.IMREAD_COLOR), np.uint8
        )
    return np.ascontiguousarray(pixels)


def start_of(
    anchors: np.ndarray,
    ied: float,
    shape: ShapeModel,
    s: AugmentationSettings,
    rng: np.random.Generator,
) -> np.ndarray:
    """Simulate the initial shape for the refinement of a face.

    The shape is completed from anchors with simulated detection errors. The function returns all
    points of the shape model, as complex numbers in image pixels.
    """
    n = len(anchors)
    errors = (
        np.where(
            rng.random(n) < s.outliers, s.outlier_error, np.resize(np.repeat(s.anchor_errors, 2), n)
        )
        * ied
    )
    detected = anchors + errors * (rng.normal(size=n) + 1j * rng.normal(size=n))
    which = np.arange(n)
    if rng.random() < s.incomplete and n > 2:
        which = np.sort(rng.permutation(n)[: n - rng.integers(1, n - 1)])
    points = shape.predict(detected[which], which)[0]
    middle = points.mean()
    change = np.exp(s.scaled * rng.normal() + 1j * s.turned * rng.normal())
    return (
        middle + change * (points - middle) + ied * s.shifted * (rng.normal() + 1j * rng.normal())
    )
