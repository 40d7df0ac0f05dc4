"""Training of window classifiers: sampling, mining, fitting and calibration."""

from .classifier import ClassifierTraining, TrainingJob
from .fitting import TrainingSettings
from .guided_search import (
    FACE_CASCADE,
    GUIDED,
    FaceCascadeTraining,
    GuidedTraining,
    GuideSettings,
    train_guide,
)
from .second_node import SecondNodeSettings, train_second_node
from .views import FACE, SCALES_PER_OCTAVE, Split, expected_positions, held_out

__all__ = [
    "FACE",
    "FACE_CASCADE",
    "GUIDED",
    "SCALES_PER_OCTAVE",
    "ClassifierTraining",
    "FaceCascadeTraining",
    "GuideSettings",
    "GuidedTraining",
    "SecondNodeSettings",
    "Split",
    "TrainingJob",
    "TrainingSettings",
    "expected_positions",
    "held_out",
    "train_guide",
    "train_second_node",
]
