"""The protocol of the motion experiments: ten folds by video on Hopkins155, repeated over random partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from ...models.motion.candidate_set import CandidateSet
from ...models.motion.ranker import SegmentationRanker
from ...models.motion.ranking_function import RankingFunction
from ...vision.tracks.completion import complete_tracks
from ...vision.tracks.io import Sequence as TrackSequence
from ..common.checkpoints import Checkpoint
from .benchmark import FAMILY_SETS, Benchmark
from .methods import (
    GRID,
    HINDSIGHT,
    SHIPPED,
    SMALL_MOTION,
    Choice,
    Scorer,
    average,
    fit_rule,
    learn_fsa,
    learn_lambdarank,
    learn_one,
    learn_rankboost,
    oracle_rule,
)

N_FOLDS = 10
METHODS = ("fsa", "rankboost", "lambdarank", "fit", "oracle")


def folds(videos: np.ndarray, partition: int, n_folds: int = N_FOLDS) -> np.ndarray:
    """Fold of each sequence; all sequences of one video fall into one fold. ``partition`` seeds the division."""
    names = np.unique(videos)
    if len(names) < n_folds:
        raise ValueError(f"{len(names)} videos cannot be divided into {n_folds} folds")
    fold = np.empty(len(names), int)
    fold[np.random.RandomState(partition).permutation(len(names))] = np.arange(len(names)) % n_folds
    return fold[np.searchsorted(names, videos)]


def picked_errors(sets: Sequence[CandidateSet], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Error in percent of the candidate with the highest score, for each sequence."""
    return np.array([100.0 * one.errors[int(np.argmax(s))] for one, s in zip(sets, scores) if one.errors is not None])


@dataclass
class Result:
    """Errors of one method in percent.

    Attributes
    ----------
    method : str
    min_motion_size : int or None
        None where it was chosen too.
    test : ndarray of shape (n_partitions, n_sequences)
        Error when the sequence's video was in the test fold.
    train : ndarray of shape (n_partitions, n_sequences)
        Mean error over the rounds in which it was a training video.
    chosen : list of dict
        For nested choice: what was chosen in each round.
    """

    method: str
    min_motion_size: int | None
    test: np.ndarray
    train: np.ndarray
    chosen: list[dict[str, Any]] = field(default_factory=list)


def cross_validate(
    sets: Sequence[CandidateSet], fold: np.ndarray, learn: Callable[[Sequence[CandidateSet]], Scorer]
) -> tuple[np.ndarray, np.ndarray]:
    """Test and mean training error (n_sequences,) in percent of one partition."""
    test = np.zeros(len(sets))
    train = np.zeros(len(sets))
    numbers = np.unique(fold)
    for q in numbers:
        scorer = learn([sets[i] for i in np.flatnonzero(fold != q).tolist()])
        errors = picked_errors(sets, scorer(sets))
        test[fold == q] = errors[fold == q]
        train[fold != q] += errors[fold != q] / (len(numbers) - 1)
    return test, train


@dataclass
class Inner:
    """What the nested protocol needs to choose, for one partition.

    Attributes
    ----------
    fold : ndarray of shape (n_sequences,)
    inner : ndarray of shape (n_choices, n_folds, n_sequences)
        Error in percent of a sequence when its own fold and another one were left out; NaN within that other fold.
    outer : ndarray of shape (n_choices, n_folds, n_sequences)
        Error in percent when one fold alone was left out.
    """

    fold: np.ndarray
    inner: np.ndarray
    outer: np.ndarray


def inner_errors(
    benchmark: Benchmark, fold: np.ndarray, grid: Sequence[Choice] = GRID, on_fit: Callable[[], object] | None = None
) -> Inner:
    """Fit all choices with every fold, and every pair of folds, left out.

    The inner folds of a round are the other outer folds, so leaving out the pair {q, p} serves round q (tested on p) and round p
    (tested on q) alike.
    """
    numbers = np.unique(fold)
    inner = np.full((len(grid), len(numbers), len(fold)), np.nan)
    outer = np.full((len(grid), len(numbers), len(fold)), np.nan)
    groups: dict[tuple[str, str, int], list[int]] = {}
    for c, choice in enumerate(grid):
        groups.setdefault((choice.families, choice.features, choice.min_motion_size), []).append(c)
    for (families, features, size), members in groups.items():
        sets, columns = benchmark.filtered(size).sets[families], benchmark.columns(features)
        settings = list(dict.fromkeys(s for c in members for s in grid[c].settings))
        for a, q in enumerate(numbers):
            for b, p in enumerate(numbers[: a + 1]):
                out = (fold == q) | (fold == p)
                train = [sets[i] for i in np.flatnonzero(~out)]
                scored = sets if q == p else [sets[i] for i in np.flatnonzero(out)]
                scores = {one: learn_one(train, one, columns)(scored) for one in settings}  # each setting is fitted once
                for c in members:
                    errors = picked_errors(scored, average([scores[one] for one in grid[c].settings]))
                    if q == p:
                        outer[c, a] = errors
                    else:
                        at = np.flatnonzero(out)
                        inner[c, np.where(fold[at] == q, b, a), at] = errors
                if on_fit is not None:
                    on_fit()
    return Inner(fold, inner, outer)


def nested(one: Inner, grid: Sequence[Choice], allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Each round takes the choice with the least mean error in its own training folds; among equals the first.

    Parameters
    ----------
    one : Inner
    grid : sequence of Choice
    allowed : ndarray of bool
        Which choices take part.

    Returns
    -------
    test, train : ndarray of shape (n_sequences,)
        In percent.
    chosen : list of dict
        One for each round, with the inner error.
    """
    numbers = np.unique(one.fold)
    positions = np.flatnonzero(allowed)
    test, train, chosen = np.zeros(len(one.fold)), np.zeros(len(one.fold)), []
    for a, q in enumerate(numbers):
        means = np.nanmean(one.inner[positions, a, :], axis=1)
        best = positions[int(np.argmin(means.round(9)))]
        errors = one.outer[best, a]
        test[one.fold == q] = errors[one.fold == q]
        train[one.fold != q] += errors[one.fold != q] / (len(numbers) - 1)
        chosen.append({**grid[best].describe(), "inner_error": float(means.min())})
    return test, train, chosen


def check_methods(methods: Sequence[str]) -> None:
    """Raise a ValueError if a method is unknown, or needs what is not installed."""
    unknown = [m for m in methods if m not in METHODS]
    if unknown:
        raise ValueError(f"method {unknown[0]!r} is unknown; expected {', '.join(METHODS)}")
    if "lambdarank" in methods and not has_lightgbm():
        raise ValueError("method 'lambdarank' needs lightgbm; install it or leave the method out")


def has_lightgbm() -> bool:
    """Whether LightGBM is installed."""
    from importlib.util import find_spec

    return find_spec("lightgbm") is not None


def evaluate(
    benchmark: Benchmark,
    methods: Sequence[str] = METHODS,
    n_partitions: int = 10,
    min_motion_sizes: Sequence[int] = (0, SMALL_MOTION),
    choose: bool = False,
    on_step: Callable[[], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[Result]:
    """Run the protocol.

    Parameters
    ----------
    benchmark : Benchmark
    methods : sequence of str
        Names in ``METHODS``.
    n_partitions : int
        Random divisions of the videos into ten folds.
    min_motion_sizes : sequence of int
        The protocol is run with each.
    choose : bool
        Also choose all settings of FSA inside the training folds (:func:`nested`): several times the work.
    on_step : function or None
        Called after each partition of each method.
    checkpoint : Checkpoint or None, default None
        Keeps finished partitions, for the next call with the same sequences (:func:`made_from`).

    Raises
    ------
    ValueError
        If a method is unknown.
    """
    check_methods(methods)
    cells = checkpoint or Checkpoint()
    partitions = [folds(benchmark.videos, p) for p in range(n_partitions)]
    results = []
    for size in min_motion_sizes:
        filtered = benchmark.filtered(size)
        for name, families, learn in _learners(filtered, methods):
            outcome = []
            for p, fold in enumerate(partitions):
                key = {"method": name, "min_motion_size": size, "partition": p}
                outcome.append(cells(key, partial(cross_validate, filtered.sets[families], fold, learn)))
                if on_step is not None:
                    on_step()
            results.append(Result(name, size, np.array([t for t, _ in outcome]), np.array([t for _, t in outcome])))
    if choose and "fsa" in methods:
        results += _chosen_results(benchmark, partitions, on_step, cells)
    return results


def made_from(sequences: Sequence[TrackSequence]) -> dict[str, Any]:
    """What a checkpoint of :func:`evaluate` must agree on: the labelled tracks and the families of candidates."""
    digest = sha256()
    for one in sequences:
        digest.update(np.ascontiguousarray(one.tracks).tobytes() + np.ascontiguousarray(one.labels).tobytes())
    families = {name: [str(family) for family in members] for name, members in FAMILY_SETS.items()}
    names = [one.name for one in sequences]
    return {"work": "motion evaluate", "sequences": names, "data": digest.hexdigest(), "families": families}


def n_lines(benchmark: Benchmark, methods: Sequence[str], choose: bool) -> int:
    """Number of steps per partition that :func:`evaluate` reports."""
    return 2 * sum(1 for _ in _learners(benchmark, methods)) + (choose and "fsa" in methods)


def _chosen_results(benchmark, partitions, on_step, cells) -> list[Result]:
    """Results with all settings chosen in the training folds: without the filter, with it, and with that choice left open too."""
    tables = []
    for p, fold in enumerate(partitions):
        key = {"chosen from": [choice.describe() for choice in GRID], "partition": p}
        found = cells(key, lambda fold=fold: vars(inner_errors(benchmark, fold)))
        tables.append(Inner(**{name: np.array(values) for name, values in found.items()}))
        if on_step is not None:
            on_step()
    sizes = np.array([choice.min_motion_size for choice in GRID])
    results = []
    for label, size, allowed in (
        ("FSA, settings chosen in training folds", 0, sizes == 0),
        ("FSA, settings chosen in training folds", SMALL_MOTION, sizes == SMALL_MOTION),
        ("FSA, settings and min_motion_size chosen in training folds", None, sizes >= 0),
    ):
        rounds = [nested(one, GRID, allowed) for one in tables]
        test, train = np.array([t for t, _, _ in rounds]), np.array([t for _, t, _ in rounds])
        results.append(Result(label, size, test, train, [row for _, _, rows in rounds for row in rows]))
    return results


def _learners(benchmark: Benchmark, methods: Sequence[str]):
    """Name, families and learner of each line of the table."""
    for families in [f for f in ("paper", "joined") if f in benchmark.sets]:
        if "oracle" in methods:
            yield f"oracle, {families}", families, lambda train: oracle_rule
        if "fit" in methods:
            rule = fit_rule(benchmark.pool)
            yield f"fit, {families}", families, lambda train, rule=rule: rule
        if "rankboost" in methods:
            yield f"RankBoost, {families}", families, learn_rankboost
        if "lambdarank" in methods:
            yield f"LambdaRank, {families}", families, learn_lambdarank
        if "fsa" in methods:
            for features in ("likelihood", "prior", "all"):
                choice = HINDSIGHT[families]
                columns = benchmark.columns(features)
                yield (
                    f"FSA, {families}, {features} (hindsight)",
                    families,
                    lambda train, choice=choice, columns=columns: learn_fsa(train, choice, columns),
                )
    if "fsa" in methods and "video" in benchmark.sets:
        shipped, columns = Choice("video", (SHIPPED,)), benchmark.columns("all")
        yield "FSA, video, all (as shipped)", "video", lambda train: learn_fsa(train, shipped, columns)


def evaluate_auto(
    sequences: Sequence[TrackSequence],
    ranker: SegmentationRanker,
    partition: int = 0,
    on_sequence: Callable[[], object] | None = None,
) -> dict[str, float]:
    """Accuracy of the choice of the number of motions, ten folds by video.

    Returns
    -------
    dict
        ``accuracy`` (share of sequences with the right number), ``accuracy_2``, ``accuracy_3``, ``error`` (misclassification in
        percent of the segmentation into the chosen number of motions).
    """
    mixed, n_motions = [], np.array([s.n_motions for s in sequences])
    for number, sequence in enumerate(sequences):
        order = np.random.default_rng(number).permutation(sequence.tracks.shape[1])
        assert sequence.labels is not None
        tracks = complete_tracks(sequence.tracks[:, order])
        one = ranker.mixed_set(tracks, truth=sequence.labels[order], name=sequence.name, video=sequence.video)
        mixed.append(one.without_small(ranker.min_motion_size))
        if on_sequence is not None:
            on_sequence()
    fold = folds(np.array([s.video for s in sequences]), partition)
    right, errors = np.zeros(len(mixed), bool), np.zeros(len(mixed))
    for q in np.unique(fold):
        chooser = RankingFunction.learn([mixed[i] for i in np.flatnonzero(fold != q)], ranker.settings)
        for i in np.flatnonzero(fold == q):
            best = int(np.argmax(chooser.scores(mixed[i].features)))
            right[i] = len(np.unique(mixed[i].candidates[best].labels)) == n_motions[i]
            assert mixed[i].errors is not None
            errors[i] = 100.0 * mixed[i].errors[best]  # type: ignore[index]
    return {
        "accuracy": float(right.mean()),
        **{f"accuracy_{k}": float(right[n_motions == k].mean()) for k in np.unique(n_motions)},
        "error": float(errors.mean()),
    }
