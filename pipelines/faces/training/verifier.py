"""Trains the classifier c1 of Algorithm 3 on what c0 lets through (``annealed faces train --mode prune+regress``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ....models.keypoints.detector import KeypointDetector, KeypointModel
from ....models.keypoints.guided_search import Guide
from ....vision.pyramid import Level
from ....vision.windows.level_features import level_channels
from .calibration import cascade_for_recall, cheapest_order
from .mining import Windows
from .train import Job, TrainingSettings

_COST_ROWS = 2000

VERIFIER = TrainingSettings(rounds=4, per_round=12_000, negative_distance=0.15, negative_pixels=4.0)
"""Negatives come nearer to the keypoint than those of the scan: the guide's windows lie around it, and how well its place is told
depends on them (section 7.2.2 of the arXiv text: at least 4 pixels)."""


@dataclass
class VerifierJob(Job):
    """Trainings whose windows, of the first negatives as of the mined ones, are those that a guide points at behind c0.

    Parameters
    ----------
    guides : dict of str to Guide
        Of the keypoints to train.
    lost : float
        Share of the held-out keypoints that the rejection thresholds may lose.
    """

    guides: dict[str, Guide] = field(default_factory=dict)
    lost: float = 0.005

    role: ClassVar[str] = "verifier"
    mode: ClassVar[str] = "prune+regress"

    def detector(self, keypoint: str, model: KeypointModel, **more: Any) -> KeypointDetector:
        """A detector in which the model decides about the windows behind c0."""
        return super().detector(keypoint, model, guides={keypoint: replace(self.guides[keypoint], verifier=model)}, **more)

    def describe(self, keypoint: str) -> dict:
        """What a checkpoint must agree on."""
        return {**super().describe(keypoint), "lost": self.lost}

    def among(self, keypoint: str) -> Callable[[Level], np.ndarray]:
        """Tell the windows of a level that the guide points at."""
        guide = self.guides[keypoint]

        def windows(level: Level) -> np.ndarray:
            return np.column_stack(guide.windows(level_channels(level.image, self.pool), self.pool, True))

        return windows

    def cascade(self, model: KeypointModel, reference: Windows, ordinary: np.ndarray) -> KeypointModel:
        """Order the features by expected cost, with thresholds that lose a stated share of the held-out keypoints."""

        def thresholds(model: KeypointModel) -> KeypointModel:
            return cascade_for_recall(model, self.pool, reference.patches, reference.keys >> 40, self.lost)[0]

        some = ordinary[:: max(1, len(ordinary) // _COST_ROWS)]
        return cheapest_order(model, self.pool, reference.patches, some, thresholds, 0.0)
