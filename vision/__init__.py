"""Pixels and tracks in, numbers out: pyramid, integral images, the feature pool and its dense scan."""

from .images import as_rgb, read_image
from .pool import FeaturePool, HogLayout, extract_patches, pixel_of
from .pyramid import Level, gaussian_pyramid
from .scan import LevelChannels, dense_values, level_channels, scan

__all__ = [
    "FeaturePool",
    "HogLayout",
    "Level",
    "LevelChannels",
    "as_rgb",
    "dense_values",
    "extract_patches",
    "gaussian_pyramid",
    "level_channels",
    "pixel_of",
    "read_image",
    "scan",
]
