"""Motion segmentation by a learnt ranking of candidates (arXiv text, section 6 and Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...learners import FSARanker, Prior
from ...vision.tracks.candidates import (
    VIDEO_FAMILIES,
    Candidate,
    Family,
    NeighbourFamily,
    candidates,
    check_tracks,
    misclassification,
)
from ...vision.tracks.features import FeaturePool, segmentation_features
from ...vision.tracks.io import complete_tracks
from ..files import check_array, read_model, write_model

KIND = "segmentation ranker"
MOTIONS = (2, 3, 4, 5)  # what "auto" chooses from
_FAMILIES: dict[str, type[Family] | type[NeighbourFamily]] = {"subspace": Family, "neighbours": NeighbourFamily}


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


@dataclass(frozen=True)
class RankerSettings:
    """How a ranking function is learnt.

    Parameters
    ----------
    response : {"linear", "piecewise"}
    n_features_to_select : int
    n_bins : int
        B of the piecewise-linear responses.
    n_steps, learning_rate, mu, shrinkage
        Of FSA: steps, step size, speed of the schedule, lambda. The defaults are those of section 7.3.2 of the arXiv text.
    """

    response: str = "piecewise"
    n_features_to_select: int = 40
    n_bins: int = 4
    n_steps: int = 300
    learning_rate: float = 0.5
    mu: float = 1.0
    shrinkage: float = 0.01


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


@dataclass(frozen=True)
class RankingFunction:
    """A learnt ranking function, eq. (18) of the arXiv text, on relative features.

    Attributes
    ----------
    response : str
    selected : ndarray of shape (k,), int64
        Columns of the feature pool, the strongest first.
    responses : ndarray of shape (k, n_knots)
        One coefficient per feature (linear), or the values at the knots.
    knots : ndarray of shape (k, n_knots)
        Ascending positions; zeros for linear responses.
    """

    response: str
    selected: np.ndarray
    responses: np.ndarray
    knots: np.ndarray

    @classmethod
    def learn(cls, sets: Sequence[CandidateSet], settings: RankerSettings, columns: np.ndarray | None = None) -> Self:
        """Learn from candidates with known errors.

        Parameters
        ----------
        sets : sequence of CandidateSet
        settings : RankerSettings
        columns : ndarray of int or None
            Features that may be selected; None means all.

        Raises
        ------
        ValueError
            If no sequence has two candidates of different error.
        """
        sets = [one for one in sets if len(one) > 1]
        pairs = ranked_pairs(sets)
        if not (pairs[:, 2] != 0.5).any():
            raise ValueError("no sequence has two candidates of different error; there is nothing to learn from")
        columns = np.arange(sets[0].features.shape[1]) if columns is None else columns
        X = np.concatenate([relative(one.features[:, columns], settings.response) for one in sets])
        ranker = FSARanker(
            min(settings.n_features_to_select, len(columns)),
            response=settings.response,
            n_bins=settings.n_bins,
            prior=Prior(shrinkage=settings.shrinkage),
            n_steps=settings.n_steps,
            learning_rate=settings.learning_rate,
            mu=settings.mu,
            polish=None,
        ).fit(X, None, pairs=pairs)
        kept = np.flatnonzero(ranker.get_support())
        order = np.argsort(-ranker.feature_importances_[kept], kind="stable")
        kept = kept[order]
        if settings.response == "linear":
            responses = np.ravel(ranker.coef_)[kept][:, None]
            knots = np.zeros_like(responses)
        else:
            responses, knots = ranker.responses_[order, :, 0], ranker.knots_[order]
        return cls(settings.response, columns[kept].astype(np.int64), np.asarray(responses, float), np.asarray(knots, float))

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Scores (n_candidates,) of all candidates of one sequence; the greater the better."""
        return self._sum(relative(features[:, self.selected], self.response))

    def scores_of_sets(self, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
        """Return the scores for each of several sequences: many at once take far less time than one by one."""
        found = self._sum(np.concatenate([relative(one.features[:, self.selected], self.response) for one in sets]))
        return np.split(found, np.cumsum([len(one) for one in sets])[:-1])

    def _sum(self, X):
        if self.response == "linear":
            return X @ self.responses[:, 0]
        return np.sum([np.interp(X[:, j], self.knots[j], self.responses[j]) for j in range(len(self.selected))], axis=0)


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


def by_size(labels: np.ndarray) -> np.ndarray:
    """Labels renamed 0, 1, ... by falling number of points; among equal ones the order of first appearance decides.

    Examples
    --------
    >>> by_size(np.array([4, 2, 2]))
    array([1, 0, 0])
    """
    names, first, inverse, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.lexsort((first, -counts))] = np.arange(len(names))
    return rank[inverse]
