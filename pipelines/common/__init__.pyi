"""Functions shared by several pipelines."""

from .checkpoints import Checkpoint
from .config import check_names, read_config, read_tables
from .file_map import make_file_map, map_items, resolve_jobs, try_file
from .frames import write_frames
from .image_folders import are_few, list_images, list_inputs
from .outputs import check_outputs, distinct_stems, make_folder, overlay_paths
from .samples import sample
from .video import VIDEO_SUFFIXES, check_video_name

__all__ = [
    "VIDEO_SUFFIXES",
    "Checkpoint",
    "are_few",
    "check_names",
    "check_outputs",
    "check_video_name",
    "distinct_stems",
    "list_images",
    "list_inputs",
    "make_file_map",
    "make_folder",
    "map_items",
    "overlay_paths",
    "read_config",
    "read_tables",
    "resolve_jobs",
    "sample",
    "try_file",
    "write_frames",
]
