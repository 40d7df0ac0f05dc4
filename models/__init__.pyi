"""What is kept after training: detectors, rankers and classifiers, and their file format."""

from .files import list_models, load_model, resolve_model
from .images.classifier import ImageClassifier
from .images.evidence import Explanation
from .images.learning import ClassifierSettings
from .keypoints.detections import Detection, DetectionOptions, DetectionResult
from .keypoints.detector import KeypointDetector
from .keypoints.face_alignment import align_face
from .keypoints.instances.instance_finder import Instance
from .keypoints.windows.window_models import KeypointModel
from .motion.ranker import SegmentationRanker
from .sensors.activity_model import ActivityModel
from .tabular.explanation import Contributions, explain
from .tabular.export.writers import export
from .tabular.model import TabularModel
from .tabular.selector import TabularSelector

__all__ = [
    "ActivityModel",
    "ClassifierSettings",
    "Contributions",
    "Detection",
    "DetectionOptions",
    "DetectionResult",
    "Explanation",
    "ImageClassifier",
    "Instance",
    "KeypointDetector",
    "KeypointModel",
    "SegmentationRanker",
    "TabularModel",
    "TabularSelector",
    "align_face",
    "explain",
    "export",
    "list_models",
    "load_model",
    "resolve_model",
]
