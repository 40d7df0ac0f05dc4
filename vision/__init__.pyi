"""Pixels and tracks in, numbers out: pyramid, integral images, the feature pool and its dense scan,
dense SIFT and visual words."""

from .images import as_rgb, read_image
from .pyramid import Level, gaussian_pyramid, nearest_pixel
from .tracks.candidates import Candidate, NeighbourFamily, SubspaceFamily, candidates
from .tracks.completion import complete_tracks
from .tracks.features import SegmentationFeatures
from .tracks.io import TrackSequence, read_sequences, read_tracks
from .tracks.labels import misclassification
from .tracks.tracker import Tracker
from .tracks.tracks import Tracks
from .windows.feature_layout import HogLayout
from .windows.feature_pool import FeaturePool
from .windows.level_features import LevelChannels, level_channels
from .windows.patches import extract_patches
from .windows.responses import Responses
from .windows.scan import scan
from .words.dense_sift import DenseSift, Descriptors
from .words.estimators import PetFeatures, VisualWords
from .words.pet_features import Photograph, colour_histogram

__all__ = [
    "Candidate",
    "DenseSift",
    "Descriptors",
    "FeaturePool",
    "HogLayout",
    "Level",
    "LevelChannels",
    "NeighbourFamily",
    "PetFeatures",
    "Photograph",
    "Responses",
    "SegmentationFeatures",
    "SubspaceFamily",
    "TrackSequence",
    "Tracker",
    "Tracks",
    "VisualWords",
    "as_rgb",
    "candidates",
    "colour_histogram",
    "complete_tracks",
    "extract_patches",
    "gaussian_pyramid",
    "level_channels",
    "misclassification",
    "nearest_pixel",
    "read_image",
    "read_sequences",
    "read_tracks",
    "scan",
]
