"""Pixels and tracks in, numbers out: pyramid, integral images, the feature pool and its dense scan, dense SIFT and visual words."""

from .images import as_rgb, read_image
from .pyramid import Level, gaussian_pyramid
from .windows.dense_scan import dense_values, scan
from .windows.feature_layout import HogLayout
from .windows.feature_pool import FeaturePool
from .windows.level_features import LevelChannels, level_channels
from .windows.patches import extract_patches, pixel_of
from .windows.responses import Responses
from .words.dense_sift import DenseSift, Descriptors
from .words.pet_features import PetFeatures, Photograph, colour_histogram
from .words.visual_words import VisualWords

__all__ = [
    "DenseSift",
    "Descriptors",
    "FeaturePool",
    "HogLayout",
    "Level",
    "LevelChannels",
    "PetFeatures",
    "Photograph",
    "Responses",
    "VisualWords",
    "as_rgb",
    "colour_histogram",
    "dense_values",
    "extract_patches",
    "gaussian_pyramid",
    "level_channels",
    "pixel_of",
    "read_image",
    "scan",
]
