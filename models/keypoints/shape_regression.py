"""Cascaded shape regression: keypoints that a small window cannot place are predicted from those that detectors find.

Detected keypoints (*anchors*) are grouped into faces. A point distribution model predicts the positions of the other keypoints;
sparse regressors, applied in turn to windows of the face's own scale and rotation, correct them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import cv2
import numpy as np

from ...vision.pyramid import Level
from ...vision.windows.feature_pool import FeaturePool
from .shape_model import ShapeModel, SimilarityTransform
from .window_models import KeypointModel, OffsetModel

# Choices, in IED: an anchor belongs to a face when it lies this near to its predicted position.
_SEED_GATING_RADIUS = 0.7  # while the face's scale is only known from one window
_GATING_RADIUS = 0.25  # once the similarity transform is known
_GATE_PENALTY = 3.0  # what an anchor's score loses at the gating radius: a choice
_NEIGHBOURS = np.array([0, -1, 1, -1j, 1j])  # pixels of the window: the predictions of neighbouring windows are averaged


@dataclass(frozen=True)
class Face:
    """Anchors that fit together: their positions among the keypoints, their image coordinates (complex), and a score.

    The score is the sum over the detected anchors of how far their scores lie above the least one (see `ShapeRegressor`).
    """

    which: np.ndarray
    found: np.ndarray
    score: float


class PredictedKeypoint(NamedTuple):
    """Image position (complex) of a keypoint, the face's similarity transform, and the score of the keypoint's own classifier."""

    position: complex
    transform: SimilarityTransform
    classifier_score: float


@dataclass(frozen=True)
class RegressionStep:
    """One step of the cascade: corrects a position that is about right, in a window rotated and scaled like the face to that
    IED.
    """

    model: OffsetModel
    ied: float


@dataclass(frozen=True)
class ShapeRegressor:
    """Predicts keypoints from the other ones of a face.

    Parameters
    ----------
    shape : ShapeModel
    steps : dict of str to tuple of RegressionStep
        The cascade of each predicted keypoint.
    anchor_margin : float, default 4.0
        Anchors may score this much below their default threshold.
    classifier_weight : float, default 0.0
        Weight of the score of the keypoint's own classifier, added to the face's score.
    thresholds : dict of str to float
        Default least score of each predicted keypoint.
    min_face_score : float, default 0.0
        Faces that score less are skipped, unless all local maxima are asked for.
    """

    shape: ShapeModel
    steps: dict[str, tuple[RegressionStep, ...]] = field(default_factory=dict)
    anchor_margin: float = 4.0
    classifier_weight: float = 0.0
    thresholds: dict[str, float] = field(default_factory=dict)
    min_face_score: float = 0.0

    @property
    def anchors(self) -> list[str]:
        """Names of the keypoints that are detected."""
        return [self.shape.keypoints[i] for i in self.shape.anchors]

    def faces(
        self, detections: dict[str, np.ndarray], thresholds: dict[str, float], reference_ied: float, max_faces: int = 200
    ) -> list[Face]:
        """Group detected anchors into faces, by falling score.

        Detections (n, 4) of each anchor are those of
        :func:`~annealed.models.keypoints.non_maximum_suppression.suppress_non_maxima`; the reference IED together with the
        scale of a detection gives the face's size.
        """
        which = np.concatenate([np.full(len(detections[name]), i) for i, name in zip(self.shape.anchors, self.anchors)])
        x, y, score, scale = np.concatenate([detections[name] for name in self.anchors]).T
        score = score - np.concatenate([np.full(len(detections[name]), thresholds[name]) for name in self.anchors])
        good = score >= -self.anchor_margin
        which, xy, score, ied = which[good].astype(np.int64), (x + 1j * y)[good], score[good], (reference_ied / scale)[good]
        free = np.ones(len(xy), bool)
        found: list[Face] = []
        for seed in np.argsort(-score, kind="stable"):
            if not free[seed]:
                continue
            rows, expected, reach = self._grow(int(seed), float(ied[seed]), xy, score, which, free)
            free[seed] = False
            if len(rows) < 2:
                continue
            for i in self.shape.anchors:  # further detections this near to a position belong to the same face
                free &= ~((which == i) & (abs(xy - expected[i]) <= reach))
            found.append(Face(which[rows], xy[rows], float((score[rows] + self.anchor_margin).sum())))
        return sorted(found, key=lambda face: -face.score)[:max_faces]

    def _grow(self, seed: int, ied: float, xy, score, which, free) -> tuple[np.ndarray, np.ndarray, float]:
        """Face around one detection: rows of its anchors, predicted positions of all keypoints, gating radius in image pixels."""
        transform = SimilarityTransform(complex(ied), complex(xy[seed] - ied * self.shape.mean_points[which[seed]]))
        expected = transform.to_image(self.shape.mean_points)
        chosen = self._gate(expected, transform.ied * _SEED_GATING_RADIUS, xy, score, which, free)
        chosen[int(which[seed])] = seed
        for _ in range(2):
            if len(chosen) < 2:
                break
            rows = np.array(sorted(chosen.values()))
            expected, transform = self.shape.predict(xy[rows], which[rows])
            chosen = self._gate(expected, transform.ied * _GATING_RADIUS, xy, score, which, free)
        return np.array(sorted(chosen.values()), dtype=np.int64), expected, transform.ied * _GATING_RADIUS

    def _gate(self, expected, radius, xy, score, which, free) -> dict[int, int]:
        """Row of the best detection of each anchor within the gating radius of its expected position."""
        chosen = {}
        for i in self.shape.anchors:
            distance = abs(xy - expected[i]) / radius
            worth = np.where(free & (which == i) & (distance <= 1), score - _GATE_PENALTY * distance**2, -np.inf)
            if len(worth) and worth.max() > -np.inf:
                chosen[int(i)] = int(worth.argmax())
        return chosen

    def predict(
        self, face: Face, levels: Sequence[Level], keypoint: str, pool: FeaturePool, classifier: KeypointModel, reference_ied: float
    ) -> PredictedKeypoint:
        """Predict one keypoint of a face, in a pyramid from large to small.

        The keypoint's own classifier, whose windows have an IED of ``reference_ied`` pixels, scores those around the predicted
        position.
        """
        expected, transform = self.shape.predict(face.found, face.which)
        position = expected[self.shape.keypoints.index(keypoint)]
        for step in self.steps[keypoint]:
            unit = transform.scale_rotation / step.ied
            dx, dy = step.model.predict(_neighbours(levels, position, unit, pool.window), pool).T
            position = position + unit * complex((_NEIGHBOURS + dx + 1j * dy).mean())
        unit = transform.scale_rotation / reference_ied
        scores = classifier.scores(_neighbours(levels, position, unit, pool.window), pool)
        return PredictedKeypoint(position, transform, float(scores.max()))


def _neighbours(levels: Sequence[Level], place: complex, unit: complex, window: int) -> np.ndarray:
    return np.stack([cut_window(levels, place + unit * step, unit, window) for step in _NEIGHBOURS])


def cut_window(levels: Sequence[Level], place: complex, unit: complex, window: int) -> np.ndarray:
    """Cut a window of any scale and rotation, with one pixel around it, out of a pyramid."""
    # The smallest level that still has as many pixels as the patch; the largest where there is none.
    fine = [level for level in levels if level.scale * abs(unit) >= 0.999]
    level = fine[-1] if fine else levels[0]
    middle = level.from_image([place.real, place.imag])
    step = unit * level.scale
    pixel = window // 2 + 1
    rotation = np.array([[step.real, -step.imag], [step.imag, step.real]])
    matrix = np.column_stack([rotation, middle - rotation @ [pixel, pixel]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(level.image, matrix, (window + 2, window + 2), flags=flags, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )
