"""Candidate segmentations of a sequence, with the features and errors used for ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...vision.tracks import (
    Features,
    PairFeatures,
    Tracks,
    TrackSequence,
    as_tracks,
    misclassification,
)
from ...vision.tracks.candidates import ALL_FAMILIES, Candidate, Family, candidates, distinct


@dataclass(frozen=True)
class CandidateSet:
    """Candidate segmentations of a sequence, with their features and errors.

    Attributes
    ----------
    name, video : str
        Names of the sequence and of its video. Sequences from one video must not be divided between
        the training and test sets.
    candidates : list of Candidate
        Candidate segmentations.
    features : ndarray of shape (n_candidates, n_features)
        Features of each candidate.
    errors : ndarray of shape (n_candidates,) or None
        Misclassification rate of each candidate, in [0, 1); None if the ground truth is unknown.
    """

    name: str
    video: str
    candidates: list[Candidate]
    features: np.ndarray
    errors: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def known_errors(self) -> np.ndarray:
        """Return the errors of the candidates.

        Raises
        ------
        ValueError
            If the ground truth is unknown.
        """
        if self.errors is None:
            raise ValueError(
                f"{self.name or 'candidates'}: the errors cannot be computed without labels; "
                "expected a labelled sequence"
            )
        return self.errors

    @property
    def n_motions(self) -> np.ndarray:
        """Number of motions of each candidate."""
        return np.array([len(np.unique(c.labels)) for c in self.candidates])

    def only(self, chosen: np.ndarray) -> "CandidateSet":
        """Return the set restricted to some candidates, given by their indices or a mask."""
        rows = np.arange(len(self))[chosen]
        return replace(
            self,
            candidates=[self.candidates[i] for i in rows],
            features=self.features[rows],
            errors=None if self.errors is None else self.errors[rows],
        )

    def without_small(self, min_motion_size: int) -> "CandidateSet":
        """Drop the candidates with a motion of fewer than ``min_motion_size`` points.

        If no candidates would remain, all candidates are returned.
        """
        sizes = np.array(
            [np.bincount(c.labels)[np.unique(c.labels)].min() for c in self.candidates]
        )
        return self.only(sizes >= min_motion_size) if (sizes >= min_motion_size).any() else self


def candidate_sets(
    tracks: Tracks | np.ndarray,
    n_motions: int,
    family_sets: Mapping[str, Sequence[Family]],
    features: Features,
    sequence: TrackSequence | None = None,
    columns: np.ndarray | None = None,
) -> dict[str, CandidateSet]:
    """Compute candidates and their features, separately for several groups of families.

    Candidates that several groups share are computed only once.

    Parameters
    ----------
    tracks : Tracks or ndarray of shape (F, P, 2)
        Complete tracks in pixels.
    n_motions : int
        Number of motions K.
    family_sets : mapping of str to sequence of families
        Groups of families, by name.
    features : SegmentationFeatures, PairFeatures or JoinedFeatures
        Features to compute.
    sequence : TrackSequence or None, default None
        Sequence of the tracks, which provides the name and, if labelled, the true motion of each
        point.
    columns : ndarray of int or None, default None
        Columns of the features to compute; the values of other columns are undefined. None means
        all columns.

    Returns
    -------
    dict of str to CandidateSet
        Candidates for each group, with the keys of ``family_sets``.

    Raises
    ------
    ValueError
        If the tracks are not complete, or there are fewer than four points per motion.
    """
    tracks = as_tracks(tracks)
    families = dict.fromkeys(family for listed in family_sets.values() for family in listed)
    by_family = {family: candidates(tracks, n_motions, (family,)) for family in families}
    every = distinct(candidate for listed in by_family.values() for candidate in listed)
    labels = [candidate.labels for candidate in every.values()]
    values = features.compute(tracks, labels, columns)
    origin, truth = (
        (("", ""), None) if sequence is None else ((sequence.name, sequence.video), sequence.labels)
    )
    errors = None if truth is None else np.array([misclassification(truth, one) for one in labels])
    rows = {partition: row for row, partition in enumerate(every)}
    sets = {}
    for name, listed in family_sets.items():
        merged = distinct(candidate for family in listed for candidate in by_family[family])
        at = [rows[partition] for partition in merged]
        sets[name] = CandidateSet(
            *origin, list(merged.values()), values[at], None if errors is None else errors[at]
        )
    return sets


def candidate_set(
    tracks: Tracks | np.ndarray,
    n_motions: int,
    families: Sequence[Family] = ALL_FAMILIES,
    features: Features | None = None,
    sequence: TrackSequence | None = None,
    columns: np.ndarray | None = None,
) -> CandidateSet:
    """Compute the candidates of a sequence and their features.

    Parameters
    ----------
    tracks : Tracks or ndarray of shape (F, P, 2)
        Complete tracks in pixels.
    n_motions : int
        Number of motions K.
    families : sequence of families, default ALL_FAMILIES
        Families of candidates, as in :func:`annealed.vision.candidates`.
    features : SegmentationFeatures, PairFeatures, JoinedFeatures or None, default None
        Features to compute; None means :class:`.PairFeatures`.
    sequence : TrackSequence or None, default None
        Sequence of the tracks, which provides the name and, if labelled, the true motion of each
        point. The errors are computed from the true motions.
    columns : ndarray of int or None, default None
        Columns of the features to compute; the values of other columns are undefined. None means
        all columns.

    Returns
    -------
    CandidateSet

    Raises
    ------
    ValueError
        If the tracks are not complete, or there are fewer than four points per motion.
    """
    return candidate_sets(
        tracks, n_motions, {"": families}, features or PairFeatures(), sequence, columns
    )[""]


def joined(sets: Sequence[CandidateSet]) -> CandidateSet:
    """Concatenate several candidate sets of one sequence.

    The errors must be known either for all sets or for none of them.
    """
    return replace(
        sets[0],
        candidates=[candidate for one in sets for candidate in one.candidates],
        features=np.concatenate([one.features for one in sets]),
        errors=None
        if sets[0].errors is None
        else np.concatenate([one.known_errors for one in sets]),
    )


def relative(features: np.ndarray, response: str, standardize: bool = False) -> np.ndarray:
    """Transform features so that they are relative to all candidates of a sequence.

    For piecewise-linear responses, the values of each feature are scaled to [0, 1]. For linear
    responses, their mean is subtracted and, if ``standardize`` is set, they are divided by their
    standard deviation.
    """
    if response == "linear":
        spread = features.std(axis=0) if standardize else np.ones(features.shape[1])
        return (features - features.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    low = features.min(axis=0)
    extent = features.max(axis=0) - low
    return (features - low) / np.where(extent > 1e-12, extent, 1.0)


def relative_rows(
    sets: Sequence[CandidateSet],
    response: str,
    columns: np.ndarray | slice = slice(None),
    standardize: bool = False,
) -> np.ndarray:
    """Compute the relative features of all candidates within each sequence.

    The result has shape (n_candidates, n_columns).
    """
    return np.concatenate(
        [relative(one.features[:, columns], response, standardize) for one in sets]
    )


def split_by_sequence(values: np.ndarray, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Split the concatenated values of all candidates by sequence."""
    return np.split(values, np.cumsum([len(one) for one in sets])[:-1])


def ranked_pairs(sets: Sequence[CandidateSet]) -> np.ndarray:
    """Return all pairs of candidates within each sequence, section 6.3 of Barbu et al. (2014).

    Parameters
    ----------
    sets : sequence of CandidateSet
        Sets with known errors.

    Returns
    -------
    ndarray of shape (n_pairs, 3)
        Rows (i, j, r), where i and j are row indices in the concatenation of all sets. r is 1 if
        candidate i has the smaller error, 0 if candidate j has the smaller error, and 0.5 if the
        errors are equal.
    """
    pairs, start = [np.empty((0, 3))], 0
    for one in sets:
        i, j = np.triu_indices(len(one), 1)
        difference = one.known_errors[j] - one.known_errors[i]
        ranking = 0.5 + 0.5 * np.sign(np.where(np.abs(difference) < 1e-12, 0.0, difference))
        pairs.append(np.column_stack([i + start, j + start, ranking]))
        start += len(one)
    return np.concatenate(pairs)
