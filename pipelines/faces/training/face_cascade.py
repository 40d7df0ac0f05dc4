"""Trains the cascade that rejects whole faces' surroundings at once, before any keypoint is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data import KEYPOINTS, FaceImage
from .classifier import ClassifierTraining
from .settings import TrainingSettings
from .views import face_centres

COARSER = 2.0**-1.5
"""Scale of the level on which a face is searched, relative to the level on which its keypoints are."""
FACE_CASCADE = TrainingSettings(
    n_features=300, rounds=3, per_round=12_000, views_per_round=300, ied_low=20.0 * COARSER, ied_high=40.0 * COARSER, lost=0.01
)
"""Settings of the face cascade: a window of 24 pixels shows a whole face."""


@dataclass
class FaceCascadeTraining(ClassifierTraining):
    """Trains the classifier of whole faces by rounds of hard-negative mining among all windows.

    The rejection thresholds may lose a stated share of the held-out faces.
    """

    stage: ClassVar[str] = "face_cascade"
    after: ClassVar[float | None] = 20_000.0  # of the search around one kept window: a choice


def expected_positions(images: Sequence[FaceImage]) -> dict[str, tuple[float, float]]:
    """Mean vector from the middle of a face to each keypoint, in IED, over faces and their mirror images."""
    found = []
    for image in images:
        for shown in (image, image.mirrored(0)):
            found.append((shown.faces - face_centres(shown)[:, None]) / image.ied[:, None, None])
    every = np.concatenate(found)
    known = np.isfinite(every).all(axis=(0, 2)) | np.isfinite(every).all(axis=2).any(axis=0)
    return {name: tuple(np.nanmean(every[:, k], axis=0).tolist()) for k, name in enumerate(KEYPOINTS) if known[k]}
