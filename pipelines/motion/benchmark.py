"""Hopkins155 benchmark: categories, candidates and features of all sequences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...models.motion.candidate_set import CandidateSet, candidate_sets
from ...vision.tracks import (
    ALL_FAMILIES,
    JOINED_FAMILIES,
    PAPER_FAMILIES,
    PAPER_FEATURES,
    TRAJECTORY_FEATURES,
    Features,
    JoinedFeatures,
    PairFeatures,
    Tracks,
    TrackSequence,
)
from ..common.timing import timed
from ..console import naming

FAMILY_SETS = {"paper": PAPER_FAMILIES, "joined": JOINED_FAMILIES, "pairs": ALL_FAMILIES}
# Values of ``--pool``, with their sets of families and features.
POOLS: dict[str, tuple[tuple[str, ...], Features]] = {
    "all": (tuple(FAMILY_SETS), JoinedFeatures()),
    "paper": (("paper",), PAPER_FEATURES),
    "trajectories": (("paper",), TRAJECTORY_FEATURES),
}

# Categories of the videos, which the benchmark's files do not contain.
_ARTICULATED = {
    "arm",
    "articulated",
    "head",
    "kanatani3",
    "people1",
    "people2",
    "two_cranes",
    "dancing",
}
_TRAFFIC = {"cars", "truck", "kanatani"}


def category(video: str) -> str:
    """Return the category of a Hopkins155 video: checkerboard, traffic or articulated.

    Examples
    --------
    >>> [category(v) for v in ("1R2RC", "cars2_06", "kanatani3", "three-cars")]
    ['checkerboard', 'traffic', 'articulated', 'checkerboard']
    """
    if video in _ARTICULATED:
        return "articulated"
    return "traffic" if any(video.startswith(name) for name in _TRAFFIC) else "checkerboard"


@dataclass
class Benchmark:
    """Precomputed candidates and features of all sequences.

    Attributes
    ----------
    sets : dict of str to list of CandidateSet
        Candidates of each sequence, by the name of the candidate families in ``FAMILY_SETS``.
    n_motions : ndarray of shape (n_sequences,)
        Number of motions in each sequence.
    seconds : ndarray of shape (n_sequences,)
        Processor time for the candidates and features of all families.
    features : SegmentationFeatures, PairFeatures or JoinedFeatures
        Features of the candidates.
    """

    sets: dict[str, list[CandidateSet]]
    n_motions: np.ndarray
    seconds: np.ndarray
    features: Features = field(default_factory=JoinedFeatures)

    @property
    def names(self) -> list[str]:
        """Names of the sequences."""
        return [one.name for one in next(iter(self.sets.values()))]

    @property
    def videos(self) -> np.ndarray:
        """Name of each sequence's video."""
        return np.array([one.video for one in next(iter(self.sets.values()))])

    @property
    def categories(self) -> np.ndarray:
        """Category of each sequence."""
        return np.array([category(v) for v in self.videos])

    def columns(self, kind: str, part: str = "all") -> np.ndarray:
        """Return the indices of a subset of the features.

        ``kind`` selects "likelihood" features, "prior" features or "all" features. ``part`` selects
        features of "subspaces", features of "pairs" of frames or "all" features.
        """
        parts = (
            self.features.parts if isinstance(self.features, JoinedFeatures) else (self.features,)
        )
        of_pairs = np.concatenate(
            [np.full(len(one.is_prior()), isinstance(one, PairFeatures)) for one in parts]
        )
        wanted = {"all": np.ones_like(of_pairs), "subspaces": ~of_pairs, "pairs": of_pairs}[part]
        prior = self.features.is_prior()
        return np.flatnonzero(
            wanted & {"all": np.ones_like(prior), "likelihood": ~prior, "prior": prior}[kind]
        )


def shuffled_tracks(sequence: TrackSequence, seed: int) -> tuple[Tracks, TrackSequence]:
    """Shuffle the points of a sequence, and return its tracks without gaps and the sequence."""
    shuffled = sequence.shuffled(seed)
    return Tracks.completed(shuffled.tracks), shuffled


def prepare(
    sequences: Sequence[TrackSequence],
    family_sets: Sequence[str] = tuple(FAMILY_SETS),
    features: Features | None = None,
    on_sequence: Callable[[], object] | None = None,
) -> Benchmark:
    """Compute the candidates and features of labelled sequences after shuffling their points.

    Parameters
    ----------
    sequences : sequence of TrackSequence
    family_sets : sequence of str, default all
        Names of candidate families in ``FAMILY_SETS``.
    features : SegmentationFeatures, PairFeatures, JoinedFeatures or None, default None
        Features to compute; None means :class:`.JoinedFeatures`.
    on_sequence : function or None, default None
        Function called without arguments after each sequence.

    Returns
    -------
    Benchmark

    Raises
    ------
    ValueError
        If a sequence has no labels or its tracks cannot be segmented. The message names the
        sequence.
    """
    features = features or JoinedFeatures()
    sets: dict[str, list[CandidateSet]] = {name: [] for name in family_sets}
    n_motions, seconds = [sequence.n_motions for sequence in sequences], []
    for number, sequence in enumerate(sequences):
        with naming(sequence.name):
            tracks, shuffled = shuffled_tracks(sequence, number)
            families = {name: FAMILY_SETS[name] for name in family_sets}
            made, took = timed(
                candidate_sets, tracks, n_motions[number], families, features, shuffled
            )
        for name in family_sets:
            sets[name].append(made[name])
        seconds.append(took)
        if on_sequence is not None:
            on_sequence()
    return Benchmark(sets, np.array(n_motions), np.array(seconds), features)
