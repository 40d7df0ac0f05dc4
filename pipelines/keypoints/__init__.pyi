"""Keypoints of any kind of object: annotations and their schema, automatic settings, training,
evaluation."""

from .data import read_annotations, read_boxes, schema_of
from .detect import (
    SAMPLE,
    FileDetections,
    detect_file,
    detect_files,
    sample_photograph,
    timed,
    warm_up,
)
from .drawing import check_image_name, draw_detections, write_image
from .evaluate import COLUMNS, OF_OBJECTS, evaluate_detector
from .faces import ANCHORS, FACES, KEYPOINTS
from .forms import Finished, Forms, write_crops
from .objects import check_number, check_rotation, read_objects
from .report import EVALUATION_FILES, REPORT_FILES, write_evaluation, write_report
from .video import FrameProcessor, detect_video, frame_processor

__all__ = [
    "ANCHORS",
    "COLUMNS",
    "EVALUATION_FILES",
    "FACES",
    "KEYPOINTS",
    "OF_OBJECTS",
    "REPORT_FILES",
    "SAMPLE",
    "FileDetections",
    "Finished",
    "Forms",
    "FrameProcessor",
    "check_image_name",
    "check_number",
    "check_rotation",
    "detect_file",
    "detect_files",
    "detect_video",
    "draw_detections",
    "evaluate_detector",
    "frame_processor",
    "read_annotations",
    "read_boxes",
    "read_objects",
    "sample_photograph",
    "schema_of",
    "timed",
    "warm_up",
    "write_crops",
    "write_evaluation",
    "write_image",
    "write_report",
]
