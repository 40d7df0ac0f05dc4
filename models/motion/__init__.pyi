"""Rankers of motion segmentations."""

from .candidate_set import CandidateSet, joined, ranked_pairs, relative_rows, split_by_sequence
from .dense_masks import background_of, label_maps, label_probabilities
from .ranker import Segmentation, SegmentationRanker
from .ranking_function import MotionChooser, RankerSettings, RankingFunction

__all__ = [
    "CandidateSet",
    "MotionChooser",
    "RankerSettings",
    "RankingFunction",
    "Segmentation",
    "SegmentationRanker",
    "background_of",
    "joined",
    "label_maps",
    "label_probabilities",
    "ranked_pairs",
    "relative_rows",
    "split_by_sequence",
]
