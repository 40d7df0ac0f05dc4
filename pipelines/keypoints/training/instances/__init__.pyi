"""Training of the assembly, refinement and probabilities of whole faces, on top of the keypoint
detectors."""

from .augmentation import AugmentationSettings
from .probabilities import ProbabilitySettings
from .refinement import RegressionSettings
from .shapes import AssemblySettings
from .train import train_assembly, train_probabilities, train_refinement

__all__ = [
    "AssemblySettings",
    "AugmentationSettings",
    "ProbabilitySettings",
    "RegressionSettings",
    "train_assembly",
    "train_probabilities",
    "train_refinement",
]
