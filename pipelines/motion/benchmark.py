"""Hopkins155 as the motion experiments need it: categories, candidates and features of all sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import process_time

import numpy as np

from ...models.motion.candidate_set import CandidateSet
from ...vision.tracks.candidates import JOINED_FAMILIES, PAPER_FAMILIES, VIDEO_FAMILIES, Candidate, candidates
from ...vision.tracks.completion import complete_tracks
from ...vision.tracks.features import FeaturePool, segmentation_features
from ...vision.tracks.io import Sequence as TrackSequence
from ...vision.tracks.labels import misclassification, renamed
from ...vision.tracks.tracks import check_tracks

FAMILY_SETS = {"paper": PAPER_FAMILIES, "joined": JOINED_FAMILIES, "video": VIDEO_FAMILIES}
# Which videos belong to which category is a fact of the benchmark that its files do not tell.
_ARTICULATED = {"arm", "articulated", "head", "kanatani3", "people1", "people2", "two_cranes", "dancing"}
_TRAFFIC = {"cars", "truck", "kanatani"}


def category(video: str) -> str:
    """Category of a Hopkins155 video: checkerboard, traffic or articulated.

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
    """Candidates and features of all sequences, made once.

    Attributes
    ----------
    sets : dict of str to list of CandidateSet
        For each name in ``FAMILY_SETS`` one set per sequence.
    n_motions : ndarray of shape (n_sequences,)
    seconds : ndarray of shape (n_sequences,)
        Processor time for the candidates and features of all families.
    pool : FeaturePool
    """

    sets: dict[str, list[CandidateSet]]
    n_motions: np.ndarray
    seconds: np.ndarray
    pool: FeaturePool = field(default_factory=FeaturePool)

    @property
    def names(self) -> list[str]:
        """Names of the sequences."""
        return [one.name for one in next(iter(self.sets.values()))]

    @property
    def videos(self) -> np.ndarray:
        """Video of each sequence."""
        return np.array([one.video for one in next(iter(self.sets.values()))])

    @property
    def categories(self) -> np.ndarray:
        """Category of each sequence."""
        return np.array([category(v) for v in self.videos])

    def columns(self, features: str) -> np.ndarray:
        """Columns of "all", "likelihood" or "prior" features."""
        prior = self.pool.is_prior()
        return np.flatnonzero({"all": np.ones_like(prior), "likelihood": ~prior, "prior": prior}[features])

    def filtered(self, min_motion_size: int) -> Benchmark:
        """Without candidates that have a motion of fewer points."""
        if min_motion_size == 0:
            return self
        sets = {name: [one.without_small(min_motion_size) for one in many] for name, many in self.sets.items()}
        return Benchmark(sets, self.n_motions, self.seconds, self.pool)


def prepare(
    sequences: Sequence[TrackSequence],
    family_sets: Sequence[str] = tuple(FAMILY_SETS),
    pool: FeaturePool | None = None,
    on_sequence: Callable[[], object] | None = None,
) -> Benchmark:
    """Candidates and features of labelled sequences.

    The points are shuffled first: in the benchmark their order tells the labels.

    Raises
    ------
    ValueError
        If a sequence has no labels or its tracks cannot be segmented; names the sequence.
    """
    pool = pool or FeaturePool()
    sets: dict[str, list[CandidateSet]] = {name: [] for name in family_sets}
    seconds = []
    for number, sequence in enumerate(sequences):
        order = np.random.default_rng(number).permutation(sequence.tracks.shape[1])
        try:
            k = sequence.n_motions
            assert sequence.labels is not None
            truth = sequence.labels[order]
            tracks = check_tracks(complete_tracks(sequence.tracks[:, order]), k)
        except ValueError as error:
            raise ValueError(f"{sequence.name}: {error}") from None
        start = process_time()
        # What several sets share is computed once: the candidates of a family, the features of a partition.
        families = dict.fromkeys(family for name in family_sets for family in FAMILY_SETS[name])
        found = {family: candidates(tracks, k, (family,)) for family in families}  # type: ignore[arg-type]
        rows: dict[bytes, int] = {}
        for c in (c for many in found.values() for c in many):
            rows.setdefault(_key(c), len(rows))
        labels = [np.frombuffer(key, np.int64) for key in rows]
        features = segmentation_features(tracks, labels, pool)
        errors = np.array([misclassification(truth, one) for one in labels])
        for name in family_sets:
            mine: dict[bytes, Candidate] = {}
            for c in (c for family in FAMILY_SETS[name] for c in found[family]):  # type: ignore[index]
                mine.setdefault(_key(c), c)
            at = [rows[key] for key in mine]
            sets[name].append(CandidateSet(sequence.name, sequence.video, list(mine.values()), features[at], errors[at]))
        seconds.append(process_time() - start)
        if on_sequence is not None:
            on_sequence()
    return Benchmark(sets, np.array([s.n_motions for s in sequences]), np.array(seconds), pool)


def _key(candidate: Candidate) -> bytes:
    """Equal for equal partitions."""
    return renamed(candidate.labels).astype(np.int64).tobytes()
