"""Functions shared by several pipelines."""

from .checkpoints import (
    Checkpoint,
    append,
    check_header,
    header_line,
    is_finished,
    open_locked,
    read_part,
    whole_lines,
    write_part,
)
from .config import check_integer, check_names, distinct, read_config, read_tables
from .file_map import FileMap, Jobs, by_processes, make_file_map, map_items, resolve_jobs, try_file
from .frames import write_frames
from .image_folders import IMAGE_SUFFIXES, are_few, list_images, list_inputs, read_rows
from .outputs import check_outputs, distinct_stems, make_folder, overlay_paths
from .provenance import source_of_code
from .samples import TABLE, TARGET, VIDEO, sample, write_sample
from .video import VIDEO_SUFFIXES, check_video_name

__all__ = [
    "IMAGE_SUFFIXES",
    "TABLE",
    "TARGET",
    "VIDEO",
    "VIDEO_SUFFIXES",
    "Checkpoint",
    "FileMap",
    "Jobs",
    "append",
    "are_few",
    "by_processes",
    "check_header",
    "check_integer",
    "check_names",
    "check_outputs",
    "check_video_name",
    "distinct",
    "distinct_stems",
    "header_line",
    "is_finished",
    "list_images",
    "list_inputs",
    "make_file_map",
    "make_folder",
    "map_items",
    "open_locked",
    "overlay_paths",
    "read_config",
    "read_part",
    "read_rows",
    "read_tables",
    "resolve_jobs",
    "sample",
    "source_of_code",
    "try_file",
    "whole_lines",
    "write_frames",
    "write_part",
    "write_sample",
]
