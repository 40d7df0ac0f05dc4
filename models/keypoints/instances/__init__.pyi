"""Whole objects: shape models, assembly of candidates, refinement, probabilities and tracking."""

from .assembly import MAX_ROLL, Assembler, Assembly, Candidates
from .instance_finder import (
    POINT_INPUTS,
    Instance,
    InstanceFinder,
    InstanceProbabilities,
    RefinedShape,
    log_odds_of,
    probability_of,
    suppress_instances,
)
from .shape_models import (
    SAME_INSTANCE,
    RigidModel,
    ShapeModel,
    SimilarityTransform,
    factorise,
    learn_shape,
    pose_of,
)
from .shape_regression import RegressionStage, ShapeClassifier, ShapeRegressor
from .smoothing import DEFAULT_CUTOFF, MAX_FRAMES, TimedInstances, half_window, smoothed
from .tracker import InstanceTracker

__all__ = [
    "DEFAULT_CUTOFF",
    "MAX_FRAMES",
    "MAX_ROLL",
    "POINT_INPUTS",
    "SAME_INSTANCE",
    "Assembler",
    "Assembly",
    "Candidates",
    "Instance",
    "InstanceFinder",
    "InstanceProbabilities",
    "InstanceTracker",
    "RefinedShape",
    "RegressionStage",
    "RigidModel",
    "ShapeClassifier",
    "ShapeModel",
    "ShapeRegressor",
    "SimilarityTransform",
    "TimedInstances",
    "factorise",
    "half_window",
    "learn_shape",
    "log_odds_of",
    "pose_of",
    "probability_of",
    "smoothed",
    "suppress_instances",
]
