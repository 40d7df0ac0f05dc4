"""Relative positions of keypoints: a mean shape, Gaussian deviations from it, and similarity transforms to the image."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Frame:
    """Similarity from shape coordinates (unit: IED) to image pixels, as complex numbers: ``image = turn * shape + shift``.

    Attributes
    ----------
    turn : complex
        Its modulus is the IED in image pixels, its argument the rotation.
    shift : complex
        Where the shape's origin lies.
    """

    turn: complex
    shift: complex

    def to_image(self, shape: np.ndarray) -> np.ndarray:
        """Shape coordinates, complex, to image coordinates, complex."""
        return self.turn * shape + self.shift

    def to_shape(self, image: np.ndarray) -> np.ndarray:
        """Image coordinates, complex, to shape coordinates, complex."""
        return (image - self.shift) / self.turn


@dataclass(frozen=True)
class ShapeModel:
    """Relative positions of keypoints: a mean shape and Gaussian deviations from it.

    Attributes
    ----------
    keypoints : tuple of str
        n names.
    anchors : ndarray of int
        Which of them are looked for; the others are told by them.
    mean : ndarray of shape (n, 2)
        Mean shape in units of the IED.
    covariance : ndarray of shape (2 n, 2 n)
        Of the deviations x0, y0, x1, y1, ... after alignment on the anchors.
    noise : float
        Standard deviation of a found anchor, in IED.
    """

    keypoints: tuple[str, ...]
    anchors: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    noise: float

    @property
    def places(self) -> np.ndarray:
        """The mean shape as complex numbers (n,)."""
        return self.mean[:, 0] + 1j * self.mean[:, 1]

    def align(self, found: np.ndarray, which: np.ndarray) -> Frame:
        """Frame in which two or more of the mean shape's points lie nearest to the points found (complex), by least squares."""
        reference = self.places[which]
        centre, middle = reference.mean(), found.mean()
        turn = complex(np.vdot(reference - centre, found - middle) / np.vdot(reference - centre, reference - centre).real)
        return Frame(turn, middle - turn * centre)

    def complete(self, found: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, Frame]:
        """Expected places of all keypoints, given some anchors.

        The conditional mean of the deviations; missing anchors take part in the alignment at their expected places.

        Parameters
        ----------
        found : ndarray of shape (m,), complex
            Image coordinates of at least two anchors.
        which : ndarray of shape (m,), int
            Which keypoints they are.

        Returns
        -------
        places : ndarray of shape (n,), complex
            Image coordinates.
        frame : Frame
        """
        frame = self.align(found, which)
        columns = np.stack([2 * which, 2 * which + 1], axis=1).ravel()
        given = self.covariance[np.ix_(columns, columns)] + self.noise**2 * np.eye(len(columns))
        gain = np.linalg.solve(given, self.covariance[columns]).T
        expected = self.places
        for _ in range(1 if len(which) == len(self.anchors) else 4):
            deviation = frame.to_shape(found) - self.places[which]
            moved = (gain @ np.stack([deviation.real, deviation.imag], axis=1).ravel()).reshape(-1, 2)
            expected = self.places + moved[:, 0] + 1j * moved[:, 1]
            filled = frame.to_image(expected)
            filled[which] = found
            frame = self.align(filled[self.anchors], self.anchors)
        deviation = frame.to_shape(found) - self.places[which]
        moved = (gain @ np.stack([deviation.real, deviation.imag], axis=1).ravel()).reshape(-1, 2)
        expected = self.places + moved[:, 0] + 1j * moved[:, 1]
        return frame.to_image(expected), frame


def learn_shape(
    faces: np.ndarray, visible: np.ndarray, keypoints: tuple[str, ...], anchors: np.ndarray, noise: float
) -> ShapeModel:
    """Learn the mean shape and its deviations from annotated faces and their mirror images.

    Parameters
    ----------
    faces : ndarray of shape (n_faces, n, 2)
        Image coordinates.
    visible : ndarray of shape (n_faces, n), bool
        Faces with a hidden anchor are left out; other hidden points are filled with their expected places.
    keypoints, anchors, noise
        As in :class:`ShapeModel`; the first two keypoints are the eyes, whose distance in the mean shape is the unit.
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
        turned = mean[0] - mean[1]
        mean = mean * (abs(turned) / turned)
    model = replace(model, mean=np.stack([mean.real, mean.imag], axis=1))
    aligned = np.stack([model.align(p[anchors], anchors).to_shape(p) for p in points])
    deviation = np.where(seen, aligned - mean, 0)
    flat = np.stack([deviation.real, deviation.imag], axis=2).reshape(len(points), -1)
    return replace(model, covariance=flat.T @ flat / len(points))
