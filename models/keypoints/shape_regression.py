"""What a face tells about keypoints that a small window cannot place: relative positions, and regression from the first answer.

Keypoints that detectors find reliably (*anchors*) are gathered to faces. A Gaussian model of relative positions gives the expected
places of the other keypoints; from there sparse regressors look at windows of the face's own scale and rotation, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

from ...vision.pyramid import Level
from ...vision.windows.feature_pool import FeaturePool
from .non_maximum_suppression import IED
from .window_models import KeypointModel, OffsetModel

_SEED_DISTANCE = 0.7  # of an anchor's expected place, in IED, while the face's scale is only known from one window
_DISTANCE = 0.25  # the same, once the face's frame is known
_VOTES = np.array([0, -1, 1, -1j, 1j])  # pixels of the window: neighbours' answers are averaged


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


@dataclass(frozen=True)
class Face:
    """Anchors that fit together.

    Attributes
    ----------
    which : ndarray of int
        The anchors found.
    found : ndarray of complex
        Where they are.
    score : float
        Sum over the anchors found of how far their scores lie above the floor (see :class:`Context`).
    """

    which: np.ndarray
    found: np.ndarray
    score: float


@dataclass(frozen=True)
class Refinement:
    """Regression of one keypoint from an answer that is about right.

    Attributes
    ----------
    model : OffsetModel
        Sees a window turned and scaled like the face.
    ied : float
        IED in pixels of that window.
    """

    model: OffsetModel
    ied: float


@dataclass(frozen=True)
class Context:
    """Finds keypoints from the others.

    Attributes
    ----------
    shape : ShapeModel
    refinements : dict of str to tuple of Refinement
        What to do, one after the other, for each keypoint that is told by the anchors.
    floor : float
        Anchors that score this much below their default threshold do not take part.
    weight : float
        What the score of a keypoint's own classifier at the answer counts, beside the face's.
    thresholds : dict of str to float
        Default least scores.
    least : float
        Faces that score less are looked at only when all local maxima are asked for.
    """

    shape: ShapeModel
    refinements: dict[str, tuple[Refinement, ...]] = field(default_factory=dict)
    floor: float = 4.0
    weight: float = 0.0
    thresholds: dict[str, float] = field(default_factory=dict)
    least: float = 0.0

    @property
    def anchors(self) -> list[str]:
        """Names of the keypoints that are looked for."""
        return [self.shape.keypoints[i] for i in self.shape.anchors]

    def faces(self, peaks: dict[str, np.ndarray], thresholds: dict[str, float], most: int = 200) -> list[Face]:
        """Gather detected anchors to faces, by falling score.

        Parameters
        ----------
        peaks : dict of str to ndarray of shape (n, 4)
            x, y, score and scale of each anchor (:func:`~annealed.models.keypoints.non_maximum_suppression.find_peaks`).
        thresholds : dict of str to float
            Each anchor's default threshold.
        most : int
            At most so many faces.
        """
        which = np.concatenate([np.full(len(peaks[name]), i) for i, name in zip(self.shape.anchors, self.anchors)])
        x, y, score, scale = np.concatenate([peaks[name] for name in self.anchors]).T
        score = score - np.concatenate([np.full(len(peaks[name]), thresholds[name]) for name in self.anchors])
        good = score >= -self.floor
        which, xy, score, unit = which[good].astype(np.int64), (x + 1j * y)[good], score[good], (IED / scale)[good]
        free = np.ones(len(xy), bool)
        found: list[Face] = []
        for seed in np.argsort(-score, kind="stable"):
            if not free[seed]:
                continue
            frame = Frame(complex(unit[seed]), complex(xy[seed] - unit[seed] * self.shape.places[which[seed]]))
            expected = frame.to_image(self.shape.places)
            chosen = self._gather(expected, abs(frame.turn) * _SEED_DISTANCE, xy, score, which, free)
            chosen[int(which[seed])] = int(seed)
            for _ in range(2):
                if len(chosen) < 2:
                    break
                rows = np.array(sorted(chosen.values()))
                expected, frame = self.shape.complete(xy[rows], which[rows])
                chosen = self._gather(expected, abs(frame.turn) * _DISTANCE, xy, score, which, free)
            free[seed] = False
            if len(chosen) < 2:
                continue
            rows = np.array(sorted(chosen.values()))
            for i in self.shape.anchors:  # what lies this near belongs to the same face
                free &= ~((which == i) & (abs(xy - expected[i]) <= abs(frame.turn) * _DISTANCE))
            found.append(Face(which[rows], xy[rows], float((score[rows] + self.floor).sum())))
        return sorted(found, key=lambda face: -face.score)[:most]

    def _gather(self, expected, reach, xy, score, which, free) -> dict[int, int]:
        """The best detection of each anchor near its expected place; being off by the whole reach costs 3 of the score."""
        chosen = {}
        for i in self.shape.anchors:
            distance = abs(xy - expected[i]) / reach
            worth = np.where(free & (which == i) & (distance <= 1), score - 3 * distance**2, -np.inf)
            if len(worth) and worth.max() > -np.inf:
                chosen[int(i)] = int(worth.argmax())
        return chosen

    def place(
        self, face: Face, levels: Sequence[Level], keypoint: str, pool: FeaturePool, classifier: KeypointModel
    ) -> tuple[complex, Frame, float]:
        """Where a keypoint of a face lies in the image, the face's frame, and what the keypoint's own classifier says there."""
        expected, frame = self.shape.complete(face.found, face.which)
        place = expected[self.shape.keypoints.index(keypoint)]
        for step in self.refinements[keypoint]:
            unit = frame.turn / step.ied
            patches = np.stack([cut_window(levels, place + unit * vote, unit, pool.window) for vote in _VOTES])
            dx, dy = step.model.predict(patches, pool).T
            place = place + unit * complex((_VOTES + dx + 1j * dy).mean())
        unit = frame.turn / IED
        patches = np.stack([cut_window(levels, place + unit * vote, unit, pool.window) for vote in _VOTES])
        return place, frame, float(classifier.scores(patches, pool).max())


def cut_window(levels: Sequence[Level], place: complex, unit: complex, window: int) -> np.ndarray:
    """Patch (window + 2, window + 2, 3) whose pixel of reference lies at an image point.

    Parameters
    ----------
    levels : list of Level
        Pyramid of the image, from large to small.
    place : complex
        Image point.
    unit : complex
        Step from one pixel of the patch to the next, in the image.
    window : int
        Side of the window.
    """
    # The smallest level that still has as many pixels as the patch; the largest where there is none.
    fine = [level for level in levels if level.scale * abs(unit) >= 0.999]
    level = fine[-1] if fine else levels[0]
    middle = level.from_image([place.real, place.imag])
    step = unit * level.scale
    pixel = window // 2 + 1
    turn = np.array([[step.real, -step.imag], [step.imag, step.real]])
    matrix = np.column_stack([turn, middle - turn @ [pixel, pixel]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(level.image, matrix, (window + 2, window + 2), flags=flags, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


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
