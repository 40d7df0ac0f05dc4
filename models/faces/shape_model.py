"""A point distribution model: mean shape and Gaussian deviations, and similarity transforms from it to the image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class SimilarityTransform:
    """Similarity from shape coordinates (unit: IED) to image pixels: ``image = scale_rotation * shape + translation``.

    Points are complex numbers x + iy. The modulus of ``scale_rotation`` is the IED in image pixels, its argument the rotation
    in radians.
    """

    scale_rotation: complex
    translation: complex

    @property
    def ied(self) -> float:
        """Inter-eye distance in image pixels."""
        return abs(self.scale_rotation)

    def to_image(self, shape: np.ndarray) -> np.ndarray:
        """Shape coordinates, complex, to image coordinates, complex."""
        return self.scale_rotation * shape + self.translation

    def to_shape(self, image: np.ndarray) -> np.ndarray:
        """Image coordinates, complex, to shape coordinates, complex."""
        return (image - self.translation) / self.scale_rotation


@dataclass(frozen=True)
class ShapeModel:
    """Point distribution model of relative keypoint positions: a mean shape and Gaussian deviations from it.

    Parameters
    ----------
    keypoints : tuple of str
        n names.
    anchors : ndarray of shape (n_anchors,), int
        Positions of the keypoints that are detected; the others are predicted from them.
    mean : ndarray of shape (n, 2)
        Mean shape in units of the IED.
    covariance : ndarray of shape (2 n, 2 n)
        Of the deviations x0, y0, x1, y1, ... after alignment on the anchors. The rows of the anchors suffice where these come
        first.
    noise : float
        Standard deviation of a detected anchor, in IED.
    """

    keypoints: tuple[str, ...]
    anchors: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    noise: float

    @cached_property
    def mean_points(self) -> np.ndarray:
        """The mean shape as complex numbers (n,)."""
        return self.mean[:, 0] + 1j * self.mean[:, 1]

    def align(self, found: np.ndarray, which: np.ndarray) -> SimilarityTransform:
        """Least-squares similarity from points of the mean shape (two or more positions ``which``) to image points (complex)."""
        reference = self.mean_points[which]
        centre, middle = reference.mean(), found.mean()
        centred = reference - centre
        scale_rotation = complex(np.vdot(centred, found - middle) / np.vdot(centred, centred).real)
        return SimilarityTransform(scale_rotation, middle - scale_rotation * centre)

    def predict(self, found: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, SimilarityTransform]:
        """Predict all keypoints (n,), complex, from two or more anchors (positions ``which``), by the conditional mean of the
        deviations.

        Missing anchors take part in the alignment at their predicted positions; it is repeated until these settle. Also returns
        the transform.
        """
        columns = np.stack([2 * which, 2 * which + 1], axis=1).ravel()
        given = self.covariance[np.ix_(columns, columns)] + self.noise**2 * np.eye(len(columns))
        gain = np.linalg.solve(given, self.covariance[columns]).T

        def conditional_mean(transform: SimilarityTransform) -> np.ndarray:
            deviation = transform.to_shape(found) - self.mean_points[which]
            moved = (gain @ np.stack([deviation.real, deviation.imag], axis=1).ravel()).reshape(-1, 2)
            return self.mean_points + moved[:, 0] + 1j * moved[:, 1]

        transform = self.align(found, which)
        for _ in range(1 if len(which) == len(self.anchors) else 4):
            filled = transform.to_image(conditional_mean(transform))
            filled[which] = found
            transform = self.align(filled[self.anchors], self.anchors)
        return transform.to_image(conditional_mean(transform)), transform


def learn_shape(
    faces: np.ndarray, visible: np.ndarray, keypoints: tuple[str, ...], anchors: np.ndarray, noise: float
) -> ShapeModel:
    """Learn the mean shape and the covariance of the deviations from annotated faces (generalised Procrustes analysis).

    Faces (n_faces, n, 2), mirror images included, with a hidden anchor are left out; other hidden points count as their
    predicted positions. The first two keypoints are the eyes, whose distance in the mean shape is the unit.
    """
    usable = visible[:, anchors].all(axis=1) & np.isfinite(faces).all(axis=(1, 2))
    points = (faces[..., 0] + 1j * faces[..., 1])[usable]
    seen = visible[usable]
    mean = points[0] - points[0, anchors].mean()
    for _ in range(10):
        model = ShapeModel(keypoints, anchors, np.stack([mean.real, mean.imag], axis=1), np.zeros((1, 1)), noise)
        aligned = np.stack([model.align(p[anchors], anchors).to_shape(p) for p in points])
        mean = np.nanmean(np.where(seen, aligned, np.nan), axis=0)
        mean = (mean - mean[anchors].mean()) / abs(mean[0] - mean[1])
        eye_line = mean[0] - mean[1]
        mean = mean * (abs(eye_line) / eye_line)
    model = replace(model, mean=np.stack([mean.real, mean.imag], axis=1))
    aligned = np.stack([model.align(p[anchors], anchors).to_shape(p) for p in points])
    deviation = np.where(seen, aligned - mean, 0)
    flat = np.stack([deviation.real, deviation.imag], axis=2).reshape(len(points), -1)
    return replace(model, covariance=flat.T @ flat / len(points))
