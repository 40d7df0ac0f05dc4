"""What a face tells about keypoints that a small window cannot place: relative positions, and regression from the first answer.

Keypoints that detectors find reliably (*anchors*) are gathered to faces. A Gaussian model of relative positions gives the expected
places of the other keypoints; from there sparse regressors look at windows of the face's own scale and rotation, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np

from ...vision.pyramid import Level
from ...vision.windows.feature_pool import FeaturePool
from .non_maximum_suppression import IED
from .shape_model import Frame, ShapeModel
from .window_models import KeypointModel, OffsetModel

_SEED_DISTANCE = 0.7  # of an anchor's expected place, in IED, while the face's scale is only known from one window
_DISTANCE = 0.25  # the same, once the face's frame is known
_VOTES = np.array([0, -1, 1, -1j, 1j])  # pixels of the window: neighbours' answers are averaged


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
