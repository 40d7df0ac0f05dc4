"""Keypoint detectors for any kind of object: schema, options, results, detector and file format."""

from .detections import Detection, DetectionOptions, DetectionResult, of_instances
from .detector import KeypointDetector
from .face_alignment import align_face, check_size
from .features import strongest_features
from .schema import Schema
from .serialisation import read_cascade, read_guide, write_parts

__all__ = [
    "Detection",
    "DetectionOptions",
    "DetectionResult",
    "KeypointDetector",
    "Schema",
    "align_face",
    "check_size",
    "of_instances",
    "read_cascade",
    "read_guide",
    "strongest_features",
    "write_parts",
]
