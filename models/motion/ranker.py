"""Motion segmentation by a learnt ranking of candidates (arXiv text, section 6 and Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...vision.tracks.candidates import VIDEO_FAMILIES, Candidate, Family, NeighbourFamily
from ...vision.tracks.completion import complete_tracks
from ...vision.tracks.features import FeaturePool
from ...vision.tracks.labels import by_size
from ...vision.tracks.tracks import check_tracks
from ..files import check_array, read_model, write_model
from .candidate_set import CandidateSet, candidate_set
from .ranking_function import RankerSettings, RankingFunction

KIND = "segmentation ranker"
MOTIONS = (2, 3, 4, 5)  # what "auto" chooses from
_FAMILIES: dict[str, type[Family] | type[NeighbourFamily]] = {"subspace": Family, "neighbours": NeighbourFamily}


@dataclass(frozen=True)
class Segmentation:
    """Tracks with the motion of each.

    Attributes
    ----------
    labels : ndarray of shape (P,), int
        0 .. n_motions-1, by falling size of the motion.
    n_motions : int
        As asked for, or as chosen.
    candidates : list of Candidate
        All that were compared (for the chosen number of motions), the best first.
    scores : ndarray
        Theirs, falling.
    """

    labels: np.ndarray
    n_motions: int
    candidates: list[Candidate]
    scores: np.ndarray


@dataclass
class SegmentationRanker:
    """Segment tracks into rigid motions: candidates by clustering in several ways, the best by a learnt ranking.

    Parameters
    ----------
    families : tuple of Family or NeighbourFamily
    pool : FeaturePool
    settings : RankerSettings
    min_motion_size : int
        Candidates with a motion of fewer points are not considered, unless there are no others. 0 considers all.
    function, chooser : RankingFunction or None
        What :meth:`fit` learns: the ranking of candidates with the same number of motions, and that across numbers of motions.
    training : dict
        What is known of the training, for the model's header.

    Examples
    --------
    >>> from annealed.models import load_model
    >>> ranker = load_model("motion")  # doctest: +SKIP
    >>> ranker.segment(tracks, 2).labels  # doctest: +SKIP
    """

    families: tuple[Family | NeighbourFamily, ...] = VIDEO_FAMILIES
    pool: FeaturePool = field(default_factory=FeaturePool)
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
            One for each training sequence, with errors, made with this ranker's families and pool.
        mixed : sequence of CandidateSet or None
            The same for candidates of all numbers of motions (:meth:`mixed_set`); needed for choosing that number.
        """
        self.function = RankingFunction.learn([s.without_small(self.min_motion_size) for s in sets], self.settings)
        if mixed is not None:
            self.chooser = RankingFunction.learn([s.without_small(self.min_motion_size) for s in mixed], self.settings)
        return self

    def candidate_set(self, tracks: np.ndarray, n_motions: int, **known: Any) -> CandidateSet:
        """Candidates and features by this ranker's families and pool; ``known`` as in :func:`candidate_set`."""
        return candidate_set(tracks, n_motions, self.families, self.pool, **known)

    def mixed_set(self, tracks: np.ndarray, **known: Any) -> CandidateSet:
        """Candidates of all numbers of motions in ``MOTIONS`` that the points allow."""
        numbers = [k for k in MOTIONS if 4 * k <= tracks.shape[1]]
        if not numbers:
            check_tracks(tracks, MOTIONS[0])
        sets = [self.candidate_set(tracks, k, **known) for k in numbers]
        errors = None if sets[0].errors is None else np.concatenate([s.errors for s in sets if s.errors is not None])
        return replace(
            sets[0],
            candidates=[c for s in sets for c in s.candidates],
            features=np.concatenate([s.features for s in sets]),
            errors=errors,
        )

    def segment(self, tracks: np.ndarray, n_motions: int | None = None) -> Segmentation:
        """Segment tracks.

        Parameters
        ----------
        tracks : ndarray of shape (F, P, 2)
            Pixels; missing entries (NaN) are completed first.
        n_motions : int or None
            None chooses a number from ``MOTIONS``.

        Raises
        ------
        ValueError
            If the ranker is not trained, a point is never seen, or :func:`check_tracks` refuses the tracks.
        """
        if self.function is None:
            raise ValueError("this ranker is not trained; call fit or load a model")
        tracks = np.asarray(tracks, dtype=float)
        if tracks.ndim == 3 and tracks.shape[0] == 1:
            check_tracks(tracks)
        tracks = check_tracks(complete_tracks(tracks), n_motions)
        if n_motions is None:
            n_motions = self.choose_n_motions(tracks)
        found = self.candidate_set(tracks, n_motions).without_small(self.min_motion_size)
        scores = self.function.scores(found.features)
        order = np.argsort(-scores, kind="stable")
        best = [found.candidates[i] for i in order]
        return Segmentation(by_size(best[0].labels), n_motions, best, scores[order])

    def choose_n_motions(self, tracks: np.ndarray) -> int:
        """Number of motions of the best candidate among all numbers in ``MOTIONS``."""
        if self.chooser is None:
            raise ValueError("this model was not trained to choose the number of motions; give the number")
        mixed = self.mixed_set(tracks).without_small(self.min_motion_size)
        best = mixed.candidates[int(np.argmax(self.chooser.scores(mixed.features)))]
        return len(np.unique(best.labels))

    def selected_names(self) -> list[str]:
        """Names of the features that the ranking uses, the strongest first."""
        if self.function is None:
            return []
        return [str(name) for name in self.pool.get_feature_names_out()[self.function.selected]]

    def save(self, path: str | Path) -> None:
        """Write a model file; errors as in :func:`annealed.models.files.write_model`."""
        if self.function is None:
            raise ValueError("this ranker is not trained; there is nothing to save")
        arrays: dict[str, np.ndarray] = {}
        for name, function in (("ranking", self.function), ("chooser", self.chooser)):
            if function is not None:
                arrays |= {f"{name}.{a}": getattr(function, a) for a in ("selected", "responses", "knots")}
        kinds = {cls: kind for kind, cls in _FAMILIES.items()}
        header = {
            "summary": "segments point tracks, or a video, into rigid motions",
            "families": [{"kind": kinds[type(f)], **asdict(f)} for f in self.families],
            "pool": asdict(self.pool),
            "settings": asdict(self.settings),
            "min_motion_size": self.min_motion_size,
            "features": self.selected_names(),
            "training": self.training,
        }
        write_model(path, KIND, arrays, header)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file.

        Raises
        ------
        ValueError
            If it is missing, damaged or of another kind.
        """
        arrays, header = read_model(path, KIND)
        try:
            families = tuple(_family(dict(f)) for f in header["families"])
            described: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in header["pool"].items()}
            pool = FeaturePool(**described)
            settings = RankerSettings(**header["settings"])
            n_features = len(pool.get_feature_names_out())
            ranker = cls(families, pool, settings, int(header["min_motion_size"]), training=dict(header["training"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path}: damaged header ({error})") from None
        ranker.function = _function(path, arrays, "ranking", settings, n_features)
        if "chooser.selected" in arrays:
            ranker.chooser = _function(path, arrays, "chooser", settings, n_features)
        return ranker


def _family(record: dict[str, Any]) -> Family | NeighbourFamily:
    kind = record.pop("kind")
    described: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    return _FAMILIES[kind](**described)


def _function(path, arrays, name: str, settings: RankerSettings, n_features: int) -> RankingFunction:
    selected = check_array(path, arrays, f"{name}.selected", np.int64, (None,))
    width = 1 if settings.response == "linear" else settings.n_bins + 1
    shape = (len(selected), width)
    if len(selected) and (selected.min() < 0 or selected.max() >= n_features):
        raise ValueError(f"{path}: damaged (a selected feature is outside 0 to {n_features - 1})")
    responses = check_array(path, arrays, f"{name}.responses", np.float64, shape)
    knots = check_array(path, arrays, f"{name}.knots", np.float64, shape)
    return RankingFunction(settings.response, selected, responses, knots)
