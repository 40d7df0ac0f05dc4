"""Point tracks: reading and tracking, candidate segmentations and their features."""

from .candidates import (
    ALL_FAMILIES,
    JOINED_FAMILIES,
    PAPER_FAMILIES,
    SHIPPED_FAMILIES,
    Candidate,
    DominantFamily,
    Family,
    MergedFamily,
    NeighbourFamily,
    PairFamily,
    SubspaceFamily,
)
from .completion import thin_tracks
from .dominant import MODELS, dominant_motion
from .features import PAPER_FEATURES, TRAJECTORY_FEATURES, SegmentationFeatures
from .io import TrackSequence, read_tracks, write_tracks
from .labels import by_size, misclassification
from .pair_features import ALL_PARTS, Features, JoinedFeatures, PairFeatures
from .tracker import Tracker
from .tracks import (
    MIN_POINTS_PER_MOTION,
    REPRESENTATIONS,
    Tracks,
    as_tracks,
    check_motions,
    observed,
)
from .video import open_video, read_frames

__all__ = [
    "ALL_FAMILIES",
    "ALL_PARTS",
    "JOINED_FAMILIES",
    "MIN_POINTS_PER_MOTION",
    "MODELS",
    "PAPER_FAMILIES",
    "PAPER_FEATURES",
    "REPRESENTATIONS",
    "SHIPPED_FAMILIES",
    "TRAJECTORY_FEATURES",
    "Candidate",
    "DominantFamily",
    "Family",
    "Features",
    "JoinedFeatures",
    "MergedFamily",
    "NeighbourFamily",
    "PairFamily",
    "PairFeatures",
    "SegmentationFeatures",
    "SubspaceFamily",
    "TrackSequence",
    "Tracker",
    "Tracks",
    "as_tracks",
    "by_size",
    "check_motions",
    "dominant_motion",
    "misclassification",
    "observed",
    "open_video",
    "read_frames",
    "read_tracks",
    "thin_tracks",
    "write_tracks",
]
