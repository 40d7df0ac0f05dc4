"""Image windows: the pool of HOG and Haar features, dense and sparse scans, and training
designs."""

from .feature_layout import Column
from .feature_pool import FeaturePool
from .level_features import Buffers, LevelChannels, level_channels, patch_channels
from .patch_design import PatchDesign, value_range
from .patches import extract_patches
from .responses import CompiledModel, Responses
from .scan import predict_windows, scan_level, score_windows, windows_around

__all__ = [
    "Buffers",
    "Column",
    "CompiledModel",
    "FeaturePool",
    "LevelChannels",
    "PatchDesign",
    "Responses",
    "extract_patches",
    "level_channels",
    "patch_channels",
    "predict_windows",
    "scan_level",
    "score_windows",
    "value_range",
    "windows_around",
]
