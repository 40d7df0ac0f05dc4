"""Motion segmentation by a learnt ranking of candidates (Barbu et al. (2014), section 6)."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ...vision.tracks import (
    ALL_FAMILIES,
    MIN_POINTS_PER_MOTION,
    MODELS,
    REPRESENTATIONS,
    Candidate,
    DominantFamily,
    Family,
    Features,
    JoinedFeatures,
    MergedFamily,
    NeighbourFamily,
    PairFamily,
    PairFeatures,
    SegmentationFeatures,
    SubspaceFamily,
    Tracks,
    TrackSequence,
    as_tracks,
    by_size,
    check_motions,
    dominant_motion,
    observed,
)
from ...vision.tracks.pairs.frame_pairs import KERNELS
from ...vision.tracks.pairs.measures import own_residuals
from ..files import ModelFile, check_settings
from .candidate_set import CandidateSet, candidate_set, joined
from .ranking_function import LIMITS, MOTIONS, MotionChooser, RankerSettings, RankingFunction

_MIN_MOTION = 0.01  # pixels, far below the resolution of trackers (heuristic)
_ALIKE = 0.01  # share of outliers below which one plane's motion explains all tracks (heuristic)
_MANY = 3000  # number of tracks above which the memory requirement is reported (heuristic)
_GB_PER_PAIR = 2e-7  # gigabytes per pair of tracks, measured with 1000 and 2000 tracks
OUTLIER_PIXELS = 1.0  # smaller residuals are never outliers (heuristic)
OUTLIER_RATIO = 5.0  # minimum ratio of an outlier's residual to its motion's median (heuristic)
# Version of the features in a model file. Version 1 had only subspace features; the version is
# incremented when the meaning of a feature changes.
FEATURE_SET = 2
# Kind in the model file -> class.
_FAMILIES: dict[str, Any] = {
    "subspace": SubspaceFamily,
    "neighbours": NeighbourFamily,
    "pairs": PairFamily,
    "merged": MergedFamily,
    "dominant": DominantFamily,
}
# Valid values of the string settings of families.
_NAMES: dict[str, tuple[str, ...]] = {
    "representation": tuple(REPRESENTATIONS),
    "kernel": KERNELS,
    "model": MODELS,
}
_FEATURES: dict[str, type[SegmentationFeatures | PairFeatures]] = {
    "subspace": SegmentationFeatures,
    "pairs": PairFeatures,
}
_KIND_OF: dict[type, str] = {
    cls: kind for kinds in (_FAMILIES, _FEATURES) for kind, cls in kinds.items()
}


@dataclass(frozen=True)
class Segmentation:
    """Result of :meth:`SegmentationRanker.segment`, with the motion of each track.

    Attributes
    ----------
    labels : ndarray of shape (P,), int
        Motion of each track, numbered from 0 in order of decreasing size; -1 for outliers, if
        requested.
    n_motions : int
        Number of motions, which is either given or estimated.
    candidates : list of Candidate
        All candidates with ``n_motions`` motions, in order of decreasing score.
    scores : ndarray of shape (n_candidates,)
        Scores of the candidates, in descending order.
    probabilities : dict of int to float
        Probability of each possible number of motions, in descending order; 1 if the number was
        given.
    unseen : ndarray of shape (n,), int
        Indices of the points that are not visible in both frames of any compared pair. They are
        assigned to the largest motion.
    """

    labels: np.ndarray
    n_motions: int
    candidates: list[Candidate]
    scores: np.ndarray
    probabilities: dict[int, float]
    unseen: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def probability_of_motions(self) -> float:
        """Probability that the estimated number of motions is correct."""
        return self.probabilities[self.n_motions]


@dataclass
class SegmentationRanker(ModelFile):
    """Ranker that segments tracks into rigid motions.

    A learnt ranking selects the best of several candidate segmentations [1]_.

    Parameters
    ----------
    families : tuple of SubspaceFamily, NeighbourFamily or PairFamily, default ALL_FAMILIES
        Families that produce the candidates.
    features : SegmentationFeatures, PairFeatures or JoinedFeatures, default PairFeatures()
        Features of the candidates.
    settings : RankerSettings, default RankerSettings()
        Settings of the ranking.
    min_motion_size : int, default 0
        Minimum number of points in a motion. Candidates with a smaller motion are ignored, unless
        there are no others.
    function : RankingFunction or None, default None
        Function that ranks candidates with the same number of motions, learnt by :meth:`fit`.
    chooser : MotionChooser or None, default None
        Model that chooses the number of motions, learnt by :meth:`fit` if ``mixed`` is given.
    training : dict
        Settings and data of the training, stored in the header of the model file.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 6, Algorithm 2.

    Examples
    --------
    >>> from annealed.models import load_model
    >>> ranker = load_model("motion")  # doctest: +SKIP
    >>> ranker.segment(tracks, 2).labels  # doctest: +SKIP
    """

    KIND: ClassVar[str] = "segmentation ranker"
    families: tuple[Family, ...] = ALL_FAMILIES
    features: Features = field(default_factory=PairFeatures)
    settings: RankerSettings = field(default_factory=RankerSettings)
    min_motion_size: int = 0
    function: RankingFunction | None = None
    chooser: MotionChooser | None = None
    training: dict[str, Any] = field(default_factory=dict)

    def fit(
        self,
        sets: Sequence[CandidateSet],
        mixed: Sequence[CandidateSet] = (),
        numbers: Sequence[int] = (),
        columns: np.ndarray | None = None,
    ) -> Self:
        """Learn the ranking and, optionally, the choice of the number of motions.

        Parameters
        ----------
        sets : sequence of CandidateSet
            Candidates of each training sequence, with errors, computed using the families and
            features of this ranker.
        mixed : sequence of CandidateSet, default empty
            Candidates of each training sequence with all numbers of motions, i.e. the sets from
            :meth:`sets_by_number`, concatenated. They are required to learn the choice of the
            number of motions.
        numbers : sequence of int, default empty
            True number of motions of each set in ``mixed``.
        columns : ndarray of int or None, default None
            Features that the ranking may select; None means all features.

        Returns
        -------
        SegmentationRanker
            Fitted ranker (this object).

        Raises
        ------
        ValueError
            If no sequence has two candidates with different errors.
        """
        self.function = RankingFunction.learn(
            [s.without_small(self.min_motion_size) for s in sets], self.settings, columns
        )
        if mixed:
            mixed = [s.without_small(self.min_motion_size) for s in mixed]
            self.chooser = MotionChooser.learn(
                mixed, numbers, self.function, self.features.features()
            )
        return self

    def candidate_set(
        self,
        tracks: Tracks | np.ndarray,
        n_motions: int,
        sequence: TrackSequence | None = None,
        columns: np.ndarray | None = None,
    ) -> CandidateSet:
        """Compute the candidates of a sequence using the families and features of this ranker.

        See :func:`.candidate_set.candidate_set` for the parameters.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Tracks in pixels.
        n_motions : int
            Number of motions K.
        sequence : TrackSequence or None
            Sequence to which the tracks belong; its labels are the true motions.
        columns : ndarray of int or None, default None
            Columns of the features to compute; the values of other columns are undefined. None
            means all columns.

        Returns
        -------
        CandidateSet
            Candidates with their features and, if the true motions are known, their errors.
        """
        return candidate_set(tracks, n_motions, self.families, self.features, sequence, columns)

    def sets_by_number(
        self,
        tracks: Tracks | np.ndarray,
        sequence: TrackSequence | None = None,
        columns: np.ndarray | None = None,
    ) -> dict[int, CandidateSet]:
        """Compute the candidates for each number in ``MOTIONS`` for which there are enough points.

        See :meth:`candidate_set` for the parameters.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Tracks in pixels.
        sequence : TrackSequence or None
            Sequence to which the tracks belong; its labels are the true motions.
        columns : ndarray of int or None, default None
            As in :meth:`candidate_set`.

        Returns
        -------
        dict of int to CandidateSet
            Candidates by number of motions.
        """
        tracks = as_tracks(tracks)
        return {k: self.candidate_set(tracks, k, sequence, columns) for k in _numbers(tracks)}

    def segment(
        self, tracks: np.ndarray, n_motions: int | None = None, outliers: bool = False
    ) -> Segmentation:
        """Segment tracks.

        Parameters
        ----------
        tracks : ndarray of shape (F, P, 2)
            Tracks in pixels; missing entries are NaN.
        n_motions : int or None, default None
            Number of motions. If None, it is chosen from ``MOTIONS``.
        outliers : bool, default False
            Whether to assign the label -1 to points that do not fit the fundamental matrices of
            their motion.

        Returns
        -------
        Segmentation

        Raises
        ------
        ValueError
            If the ranker is not trained, the shape is not (F, P, 2), there are fewer than two
            frames, or there are fewer than four usable points per motion.
        """
        if self.function is None:
            raise ValueError("this ranker is not fitted yet; call fit, or load a fitted model")
        seen, known = observed(tracks, n_motions or MOTIONS[0])
        if seen.n_points > _MANY:
            warnings.warn(
                f"the affinities of all pairs of {seen.n_points} tracks require about "
                f"{_GB_PER_PAIR * seen.n_points**2:.0f} GB of memory; those of {_MANY} tracks "
                f"require {_GB_PER_PAIR * _MANY**2:.0f} GB",
                stacklevel=2,
            )
        if n_motions is None:
            probabilities, chosen = self._choose(seen)
            n_motions = next(iter(probabilities))
        else:
            chosen = self.candidate_set(seen, n_motions, columns=self.function.selected)
            probabilities = {n_motions: 1.0}
        chosen = chosen.without_small(self.min_motion_size)
        if n_motions > 1:
            _warn_of_ambiguous_tracks(seen, n_motions)
        scores = self.function.scores(chosen.features)
        order = np.argsort(-scores, kind="stable")
        best = [
            replace(c, labels=_for_all(c.labels, known))
            for c in (chosen.candidates[i] for i in order)
        ]
        labels = by_size(best[0].labels)
        if outliers:
            labels[np.flatnonzero(known)[outlying(seen, labels[known])]] = -1
        return Segmentation(
            labels, n_motions, best, scores[order], probabilities, np.flatnonzero(~known)
        )

    def _choose(self, tracks: Tracks) -> tuple[dict[int, float], CandidateSet]:
        """Return the probability of each number of motions and the candidates with the most
        probable number."""
        if self.function is None or self.chooser is None:
            raise ValueError(
                "this model cannot choose the number of motions; set n_motions, or retrain it"
            )
        columns = np.unique(
            np.concatenate([self.function.selected, self.chooser.levels, self.chooser.steps])
        )
        mixed = joined(list(self.sets_by_number(tracks, columns=columns).values())).without_small(
            self.min_motion_size
        )
        probabilities = self.chooser.probabilities(mixed, self.function)
        return probabilities, mixed.only(mixed.n_motions == next(iter(probabilities)))

    def selected_names(self) -> list[str]:
        """Return the names of the features that the ranking uses, in order of decreasing strength.

        Returns
        -------
        list of str
            Names of the features; empty before training.
        """
        if self.function is None:
            return []
        return [str(name) for name in self.features.get_feature_names_out()[self.function.selected]]

    def _to_file(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        if self.function is None:
            raise ValueError("this ranker is not fitted yet; call fit before you save it")
        arrays = self.function.arrays() | ({} if self.chooser is None else self.chooser.arrays())
        pool = (
            self.features.parts if isinstance(self.features, JoinedFeatures) else (self.features,)
        )
        return arrays, {
            "summary": "segments point tracks, or a video, into rigid motions",
            "feature_set": FEATURE_SET,
            "families": records(self.families),
            "pool": records(pool),
            "settings": asdict(self.settings),
            "min_motion_size": self.min_motion_size,
            "features": self.selected_names(),
            "training": self.training,
        }

    @classmethod
    def _from_file(cls, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        check_version(header)
        settings = RankerSettings.read(header["settings"])
        features = read_features(header["pool"])
        size = "min_motion_size"
        sizes = check_settings({size: header[size]}, {size: 0}, {size: (0, 1e6)})
        n_features = len(features.get_feature_names_out())
        ranker = cls(
            read_families(header["families"]),
            features,
            settings,
            sizes[size],
            training=dict(header["training"]),
        )
        ranker.function = RankingFunction.read(path, arrays, settings, n_features)
        ranker.chooser = MotionChooser.read(path, arrays, n_features)
        return ranker


def _numbers(tracks: Tracks) -> list[int]:
    """Return the numbers in ``MOTIONS`` for which there are enough points."""
    check_motions(MOTIONS[0], tracks.n_points)
    return [k for k in MOTIONS if MIN_POINTS_PER_MOTION * k <= tracks.n_points]


def _warn_of_ambiguous_tracks(tracks: Tracks, n_motions: int) -> None:
    """Warn if the tracks do not determine a segmentation."""
    n_distinct = np.unique(tracks.coordinates, axis=1).shape[1]
    if np.ptp(tracks.coordinates, axis=0).max() < _MIN_MOTION:
        message = f"no track moves by {_MIN_MOTION} pixels or more, so the labels are meaningless"
    elif n_distinct < 2 * n_motions:
        message = (
            f"only {n_distinct} of {tracks.n_points} tracks are distinct, so the labels are "
            "meaningless"
        )
    elif dominant_motion(tracks).outlying["homography"].mean() < _ALIKE:
        message = (
            "the motion of a single plane explains all tracks to within a pixel, so the tracks "
            "may contain only one motion"
        )
    else:
        return
    warnings.warn(message, stacklevel=3)


def outlying(tracks: Tracks, labels: np.ndarray) -> np.ndarray:
    """Return a mask of the points that do not fit the fundamental matrices of their motion."""
    residuals = np.empty(tracks.n_points)
    residuals[tracks.canonical_order] = own_residuals(tracks.pairs, labels[tracks.canonical_order])
    typical = np.array([np.median(residuals[labels == k]) for k in range(labels.max() + 1)])
    return residuals > np.maximum(OUTLIER_PIXELS, OUTLIER_RATIO * typical[labels])


def _for_all(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the labels of all points; unknown points are assigned to the largest motion."""
    full = np.full(len(known), np.bincount(labels).argmax(), np.int64)
    full[known] = labels
    return full


# -- headers of model files, whose parts are validated as they are read


def check_version(header: Mapping[str, Any]) -> None:
    """Check that this version supports the features in a file; raise a ValueError otherwise."""
    version = header.get("feature_set", 1)
    if version not in range(1, FEATURE_SET + 1):
        raise ValueError(
            f"feature set {version!r} is not supported by this version of annealed, which "
            f"reads feature sets 1 to {FEATURE_SET}; update annealed or retrain the model"
        )


def records(parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return families or features as JSON values for the header of a model file."""
    return [{"kind": _KIND_OF[type(part)], **asdict(part)} for part in parts]


def read_families(listed: Any) -> tuple[Family, ...]:
    """Read families of candidates from a header, or raise a ValueError if it is invalid."""
    families = tuple(_read_family(record) for record in listed)
    if not families:
        raise ValueError("the model has no families of candidates; expected at least one")
    return families


def _read_family(record: Any) -> Family:
    family = _FAMILIES[record["kind"]]
    settings = check_settings(_without_kind(record), asdict(family()), LIMITS)
    if settings.get("lowest", 0) > settings.get("highest", 0):
        raise ValueError(
            f"family {record} is not valid; expected the lowest dimension to be at most the highest"
        )
    for name, known in _NAMES.items():
        if settings.get(name, known[0]) not in known:
            raise ValueError(
                f"family {record} is not valid; expected {name} to be one of {', '.join(known)}"
            )
    return family(**settings)


def read_features(pool: Any) -> Features:
    """Read the features from a header, or raise a ValueError if it is invalid.

    Headers with feature set 1 do not contain the type of the feature set.
    """
    if isinstance(pool, dict):
        pool = [{"kind": "subspace", **pool}]
    parts = []
    for record in pool:
        part = _FEATURES[record["kind"]](
            **check_settings(_without_kind(record), asdict(_FEATURES[record["kind"]]()), LIMITS)
        )
        unknown = [
            name for name in getattr(part, "representations", ()) if name not in REPRESENTATIONS
        ]
        if unknown:
            raise ValueError(
                f"representations {unknown} are unknown; "
                f"valid representations are {', '.join(REPRESENTATIONS)}"
            )
        parts.append(part)
    if not parts:
        raise ValueError("the model has no features; expected at least one")
    return parts[0] if len(parts) == 1 else JoinedFeatures(tuple(parts))


def _without_kind(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "kind"}
