"""Motion segmentation by a learnt ranking of candidates (Barbu et al. (2014), section 6 and Algorithm 2)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...vision.tracks.candidates import VIDEO_FAMILIES, Candidate, Family, NeighbourFamily, SubspaceFamily
from ...vision.tracks.completion import complete_tracks
from ...vision.tracks.features import SegmentationFeatures
from ...vision.tracks.io import TrackSequence
from ...vision.tracks.labels import by_size
from ...vision.tracks.representations import REPRESENTATIONS
from ...vision.tracks.tracks import MIN_POINTS_PER_MOTION, Tracks, as_tracks
from ..files import check_settings, read_model, reading, write_model
from .candidate_set import CandidateSet, candidate_set
from .ranking_function import RankerSettings, RankingFunction

KIND = "segmentation ranker"
MOTIONS = (2, 3, 4, 5)  # numbers of motions that "auto" chooses from
# Kind of a family in the model file -> class.
_FAMILIES: dict[str, type[Family]] = {"subspace": SubspaceFamily, "neighbours": NeighbourFamily}


@dataclass(frozen=True)
class Segmentation:
    """The motion of each track.

    Attributes
    ----------
    labels : ndarray of shape (P,), int
        0 .. n_motions-1, by falling size of the motion.
    n_motions : int
        The given or the chosen number.
    candidates : list of Candidate
        All candidates with that number of motions, the best first.
    scores : ndarray of shape (n_candidates,)
        Scores of the candidates, falling.
    """

    labels: np.ndarray
    n_motions: int
    candidates: list[Candidate]
    scores: np.ndarray


@dataclass
class SegmentationRanker:
    """Segment tracks into rigid motions: candidates by clustering in several ways, the best by a learnt ranking [1]_.

    Parameters
    ----------
    families : tuple of SubspaceFamily or NeighbourFamily, default VIDEO_FAMILIES
        Recipes of the candidates.
    features : SegmentationFeatures, default SegmentationFeatures()
        Features of the candidates.
    settings : RankerSettings, default RankerSettings()
        How the ranking is learnt.
    min_motion_size : int, default 0
        Candidates with a motion of fewer points are not considered, unless there are no others. 0 considers all.
    function, chooser : RankingFunction or None, default None
        What :meth:`fit` learns: the ranking of candidates with the same number of motions, and that across numbers of motions.
    training : dict
        Facts about the training, for the header of the model file.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014), section 6, Algorithm 2.

    Examples
    --------
    >>> from annealed.models import load_model
    >>> ranker = load_model("motion")  # doctest: +SKIP
    >>> ranker.segment(tracks, 2).labels  # doctest: +SKIP
    """

    families: tuple[Family, ...] = VIDEO_FAMILIES
    features: SegmentationFeatures = field(default_factory=SegmentationFeatures)
    settings: RankerSettings = field(default_factory=RankerSettings)
    min_motion_size: int = 0
    function: RankingFunction | None = None
    chooser: RankingFunction | None = None
    training: dict[str, Any] = field(default_factory=dict)

    def fit(self, sets: Sequence[CandidateSet], mixed: Sequence[CandidateSet] | None = None) -> Self:
        """Learn the ranking.

        Parameters
        ----------
        sets : sequence of CandidateSet
            One for each training sequence, with errors, made with this ranker's families and features.
        mixed : sequence of CandidateSet or None, default None
            The same for candidates of all numbers of motions (:meth:`mixed_set`); needed for choosing that number.

        Returns
        -------
        SegmentationRanker
            The ranker itself.

        Raises
        ------
        ValueError
            If no sequence has two candidates of different error.
        """
        self.function = RankingFunction.learn([s.without_small(self.min_motion_size) for s in sets], self.settings)
        if mixed is not None:
            self.chooser = RankingFunction.learn([s.without_small(self.min_motion_size) for s in mixed], self.settings)
        return self

    def candidate_set(self, tracks: Tracks | np.ndarray, n_motions: int, sequence: TrackSequence | None = None) -> CandidateSet:
        """Candidates and features by this ranker's families; parameters as of :func:`.candidate_set.candidate_set`.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Tracks in pixels.
        n_motions : int
            Number of motions K.
        sequence : TrackSequence or None
            Where the tracks are from; its labels are the truth of the errors.

        Returns
        -------
        CandidateSet
            Candidates with their features, and errors where the truth is known.
        """
        return candidate_set(tracks, n_motions, self.families, self.features, sequence)

    def mixed_set(self, tracks: Tracks | np.ndarray, sequence: TrackSequence | None = None) -> CandidateSet:
        """Candidates of all numbers of motions in ``MOTIONS`` that the points allow; parameters as of :meth:`candidate_set`.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Tracks in pixels.
        sequence : TrackSequence or None
            Where the tracks are from; its labels are the truth of the errors.

        Returns
        -------
        CandidateSet
            Candidates of all these numbers.
        """
        tracks = as_tracks(tracks)
        numbers = [k for k in MOTIONS if MIN_POINTS_PER_MOTION * k <= tracks.n_points]
        if not numbers:
            tracks.check_motions(MOTIONS[0])
        sets = [self.candidate_set(tracks, k, sequence) for k in numbers]
        return replace(
            sets[0],
            candidates=[c for one in sets for c in one.candidates],
            features=np.concatenate([one.features for one in sets]),
            errors=None if sets[0].errors is None else np.concatenate([one.known_errors for one in sets]),
        )

    def segment(self, tracks: np.ndarray, n_motions: int | None = None) -> Segmentation:
        """Segment tracks.

        Parameters
        ----------
        tracks : ndarray of shape (F, P, 2)
            Pixels; missing entries (NaN) are completed first.
        n_motions : int or None, default None
            None chooses a number from ``MOTIONS``.

        Returns
        -------
        Segmentation

        Raises
        ------
        ValueError
            If the ranker is not trained, a point is never seen, the shape is not (F, P, 2), or there are fewer than two frames or
            four points per motion.
        """
        if self.function is None:
            raise ValueError("this ranker is not trained; call fit or load a model")
        complete = Tracks(complete_tracks(tracks))
        if n_motions is None:
            n_motions = self.choose_n_motions(complete)
        found = self.candidate_set(complete, n_motions).without_small(self.min_motion_size)
        _warn_of_nothing_to_see(complete.coordinates, n_motions)
        scores = self.function.scores(found.features)
        order = np.argsort(-scores, kind="stable")
        best = [found.candidates[i] for i in order]
        return Segmentation(by_size(best[0].labels), n_motions, best, scores[order])

    def choose_n_motions(self, tracks: Tracks | np.ndarray) -> int:
        """Number of motions of the best candidate among all numbers in ``MOTIONS``.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Complete tracks in pixels.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the model was not trained to choose, or the points are too few for two motions.
        """
        if self.chooser is None:
            raise ValueError("this model was not trained to choose the number of motions; give the number")
        mixed = self.mixed_set(tracks).without_small(self.min_motion_size)
        best = mixed.candidates[int(np.argmax(self.chooser.scores(mixed.features)))]
        return len(np.unique(best.labels))

    def selected_names(self) -> list[str]:
        """Names of the features that the ranking uses, the strongest first.

        Returns
        -------
        list of str
            Empty before the training.
        """
        if self.function is None:
            return []
        return [str(name) for name in self.features.get_feature_names_out()[self.function.selected]]

    def save(self, path: str | Path) -> None:
        """Write a model file.

        Parameters
        ----------
        path : path
            Where to.

        Raises
        ------
        ValueError
            If the ranker is not trained, or the file cannot be written.
        """
        if self.function is None:
            raise ValueError("this ranker is not trained; there is nothing to save")
        arrays: dict[str, np.ndarray] = {}
        for name, function in (("ranking", self.function), ("chooser", self.chooser)):
            if function is not None:
                arrays |= {f"{name}.{part}": array for part, array in function.arrays().items()}
        kinds = {cls: kind for kind, cls in _FAMILIES.items()}
        header = {
            "summary": "segments point tracks, or a video, into rigid motions",
            "families": [{"kind": kinds[type(f)], **asdict(f)} for f in self.families],
            "pool": asdict(self.features),
            "settings": asdict(self.settings),
            "min_motion_size": self.min_motion_size,
            "features": self.selected_names(),
            "training": self.training,
        }
        write_model(path, KIND, arrays, header)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        SegmentationRanker

        Raises
        ------
        ValueError
            If it is missing, damaged or of another kind.
        """
        arrays, header = read_model(path, KIND)
        with reading(path):
            families = tuple(_read_family(record) for record in header["families"])
            features = SegmentationFeatures(**check_settings(header["pool"], asdict(SegmentationFeatures()), _LIMITS))
            settings = RankerSettings(**check_settings(header["settings"], asdict(RankerSettings()), _LIMITS))
            least = check_settings({"least": header["min_motion_size"]}, {"least": 0}, {"least": (0, 1e6)})["least"]
            unknown = [name for name in features.representations if name not in REPRESENTATIONS]
            if unknown or not families or settings.response not in ("linear", "piecewise"):
                raise ValueError(f"representations {unknown}, {len(families)} families, response {settings.response!r}")
            n_features = len(features.get_feature_names_out())
            ranker = cls(families, features, settings, least, training=dict(header["training"]))
            ranker.function = RankingFunction.read(path, arrays, "ranking", settings, n_features)
            if "chooser.selected" in arrays:
                ranker.chooser = RankingFunction.read(path, arrays, "chooser", settings, n_features)
        return ranker


def _warn_of_nothing_to_see(tracks: np.ndarray, n_motions: int) -> None:
    """Warn where any division of the tracks (F, P, 2) is arbitrary."""
    if n_motions > 1 and np.abs(tracks - tracks[0]).max() < _LEAST_MOTION:
        warnings.warn(f"no track moves by {_LEAST_MOTION} pixels: the labels say nothing about motions", stacklevel=3)
    elif (n_distinct := np.unique(tracks, axis=1).shape[1]) < 2 * n_motions:
        warnings.warn(f"only {n_distinct} of {tracks.shape[1]} tracks differ: the labels say nothing about motions", stacklevel=3)


_LEAST_MOTION = 0.01  # pixels, a choice: far below what trackers resolve

# Least and greatest number of a setting in a model file: choices, wider than any setting that makes sense.
_LIMITS: dict[str, tuple[float, float]] = {
    "alpha": (0, 100),
    "lowest": (0.5, 20),
    "highest": (0.5, 20),
    "dimensions": (0.5, 20),
    "neighbours": (1, 1000),
    "span": (1, 1000),
    "floor": (1e-6, 1000),
    "n_thresholds": (1, 1000),
    "n_smallest": (1, 1000),
    "n_bins": (1, 1000),
}


def _read_family(record: Any) -> Family:
    """A family from the header of a model file."""
    family = _FAMILIES[record["kind"]]
    settings = check_settings({k: v for k, v in record.items() if k != "kind"}, asdict(family()), _LIMITS)
    if settings.get("representation", "raw") not in REPRESENTATIONS or settings.get("lowest", 0) > settings.get("highest", 0):
        raise ValueError(f"family {record}: expected a known representation, and no lowest above the highest")
    return family(**settings)
