"""Candidate segmentations of a sequence with their features, and what a ranking compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...vision.tracks.candidates import VIDEO_FAMILIES, Candidate, Family, NeighbourFamily, candidates
from ...vision.tracks.features import FeaturePool, segmentation_features
from ...vision.tracks.labels import misclassification


@dataclass(frozen=True)
class CandidateSet:
    """Candidate segmentations of one sequence with their features.

    Attributes
    ----------
    name, video : str
        Of the sequence; sequences of one video must not be split between training and test.
    candidates : list of Candidate
    features : ndarray of shape (n_candidates, n_features)
    errors : ndarray of shape (n_candidates,) or None
        Misclassification in [0, 1), where the truth is known.
    """

    name: str
    video: str
    candidates: list[Candidate]
    features: np.ndarray
    errors: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.candidates)

    def only(self, chosen: np.ndarray) -> CandidateSet:
        """The candidates at the positions (or under the mask) ``chosen``."""
        rows = np.arange(len(self))[chosen]
        errors = None if self.errors is None else self.errors[rows]
        return replace(self, candidates=[self.candidates[i] for i in rows], features=self.features[rows], errors=errors)

    def without_small(self, min_motion_size: int) -> CandidateSet:
        """Without the candidates that have a motion of fewer points; all of them when none is left."""
        sizes = np.array([np.bincount(c.labels)[np.unique(c.labels)].min() for c in self.candidates])
        return self.only(sizes >= min_motion_size) if (sizes >= min_motion_size).any() else self


def candidate_set(
    tracks: np.ndarray,
    n_motions: int,
    families: tuple[Family | NeighbourFamily, ...] = VIDEO_FAMILIES,
    pool: FeaturePool | None = None,
    *,
    truth: np.ndarray | None = None,
    name: str = "",
    video: str = "",
) -> CandidateSet:
    """Candidates and features of one sequence.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Complete tracks in pixels.
    n_motions : int
    families, pool
        As for :func:`candidates` and :func:`segmentation_features`.
    truth : ndarray of shape (P,) or None
        True labels; then the errors are known too.
    name, video : str
        Kept in the result.

    Raises
    ------
    ValueError
        For tracks that :func:`check_tracks` refuses.
    """
    found = candidates(tracks, n_motions, families)
    features = segmentation_features(tracks, [c.labels for c in found], pool)
    errors = None if truth is None else np.array([misclassification(truth, c.labels) for c in found])
    return CandidateSet(name, video, found, features, errors)


def relative(features: np.ndarray, response: str) -> np.ndarray:
    """Features relative to the other candidates of the same sequence, among which alone a ranking has to choose.

    For piecewise-linear responses the range within the sequence becomes [0, 1]; for linear ones the mean is taken off.
    """
    if response == "linear":
        return features - features.mean(axis=0)
    low = features.min(axis=0)
    extent = features.max(axis=0) - low
    return (features - low) / np.where(extent > 1e-12, extent, 1.0)


def ranked_pairs(sets: Sequence[CandidateSet]) -> np.ndarray:
    """Pairs (i, j, r) of candidates within each sequence, rows counted through all sets (arXiv text, section 6.3).

    r is 1 where i has the smaller error, 0 where j has, 0.5 where the errors are equal.
    """
    found, start = [np.empty((0, 3))], 0
    for one in sets:
        i, j = np.triu_indices(len(one), 1)
        assert one.errors is not None
        worse = one.errors[j] - one.errors[i]
        found.append(np.column_stack([i + start, j + start, 0.5 + 0.5 * np.sign(np.where(np.abs(worse) < 1e-12, 0.0, worse))]))
        start += len(one)
    return np.concatenate(found)
