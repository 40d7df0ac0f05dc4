"""The table of the motion experiments: all methods over random divisions of Hopkins155 into ten folds by video."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from ...models.motion.ranker import SegmentationRanker
from ...models.motion.ranking_function import RankingFunction
from ...vision.tracks.io import TrackSequence
from ..common.checkpoints import Checkpoint
from .benchmark import FAMILY_SETS, Benchmark, shuffled_tracks
from .cross_validation import cross_validate, folds
from .methods import GRID, METHODS, SMALL_MOTION, check_methods, table_methods
from .nested_choice import NestedErrors, choose_in_training_folds, nested_errors

MIN_MOTION_SIZES = (0, SMALL_MOTION)


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


def evaluate(
    benchmark: Benchmark,
    methods: Sequence[str] = METHODS,
    n_partitions: int = 10,
    min_motion_sizes: Sequence[int] = MIN_MOTION_SIZES,
    choose: bool = False,
    on_step: Callable[[], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[Result]:
    """Run the protocol.

    Parameters
    ----------
    benchmark : Benchmark
    methods : sequence of str, default METHODS
        Names in ``METHODS``.
    n_partitions : int, default 10
        Random divisions of the videos into ten folds.
    min_motion_sizes : sequence of int, default MIN_MOTION_SIZES
        The protocol is run with each.
    choose : bool, default False
        Also choose all settings of FSA inside the training folds: several times the work.
    on_step : function or None, default None
        Called without arguments after each partition of each method: :func:`n_steps` times.
    checkpoint : Checkpoint or None, default None
        Keeps finished partitions, for the next call with the same sequences (:func:`made_from`).

    Returns
    -------
    list of Result

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
        for method in table_methods(filtered, methods):
            outcome = []
            for p, fold in enumerate(partitions):
                key = {"method": method.name, "min_motion_size": size, "partition": p}
                outcome.append(cells(key, partial(cross_validate, filtered.sets[method.families], fold, method.fit)))
                if on_step is not None:
                    on_step()
            errors = np.array(outcome)
            results.append(Result(method.name, size, errors[:, 0], errors[:, 1]))
    if choose and "fsa" in methods:
        results += _chosen_results(benchmark, partitions, on_step, cells)
    return results


def n_steps(
    benchmark: Benchmark,
    methods: Sequence[str] = METHODS,
    n_partitions: int = 10,
    min_motion_sizes: Sequence[int] = MIN_MOTION_SIZES,
    choose: bool = False,
) -> int:
    """Number of steps that :func:`evaluate` reports with the same parameters."""
    nested = choose and "fsa" in methods
    return n_partitions * (len(min_motion_sizes) * len(table_methods(benchmark, methods)) + nested)


def made_from(sequences: Sequence[TrackSequence]) -> dict[str, Any]:
    """Settings and data that a checkpoint of :func:`evaluate` depends on: the labelled tracks and the families of candidates."""
    digest = sha256()
    for one in sequences:
        digest.update(np.ascontiguousarray(one.tracks).tobytes() + np.ascontiguousarray(one.labels).tobytes())
    families = {name: [str(family) for family in members] for name, members in FAMILY_SETS.items()}
    names = [one.name for one in sequences]
    return {"work": "motion evaluate", "sequences": names, "data": digest.hexdigest(), "families": families}


def _nested_arrays(benchmark: Benchmark, fold: np.ndarray) -> dict[str, np.ndarray]:
    return vars(nested_errors(benchmark, fold))


def _chosen_results(benchmark: Benchmark, partitions, on_step, cells: Checkpoint) -> list[Result]:
    """Results with all settings chosen in the training folds: without the filter, with it, and with that choice left open too."""
    tables = []
    for p, fold in enumerate(partitions):
        key = {"chosen from": [choice.describe() for choice in GRID], "partition": p}
        found = cells(key, partial(_nested_arrays, benchmark, fold))
        tables.append(NestedErrors(**{name: np.array(values) for name, values in found.items()}))
        if on_step is not None:
            on_step()
    sizes = np.array([choice.min_motion_size for choice in GRID])
    results = []
    for label, size, allowed in (
        ("FSA, settings chosen in training folds", 0, sizes == 0),
        ("FSA, settings chosen in training folds", SMALL_MOTION, sizes == SMALL_MOTION),
        ("FSA, settings and min_motion_size chosen in training folds", None, sizes >= 0),
    ):
        rounds = [choose_in_training_folds(errors, GRID, allowed) for errors in tables]
        test, train = np.array([t for t, _, _ in rounds]), np.array([t for _, t, _ in rounds])
        results.append(Result(label, size, test, train, [row for _, _, rows in rounds for row in rows]))
    return results


def evaluate_auto(
    sequences: Sequence[TrackSequence],
    ranker: SegmentationRanker,
    random_state: int | np.random.RandomState | None = 0,
    on_sequence: Callable[[], object] | None = None,
) -> dict[str, float]:
    """Accuracy of the choice of the number of motions, ten folds by video.

    Parameters
    ----------
    sequences : sequence of TrackSequence
        With labels.
    ranker : SegmentationRanker
        Gives families, features and settings; need not be trained.
    random_state : int, RandomState or None, default 0
        Seeds the division into folds.
    on_sequence : function or None, default None
        Called without arguments after the candidates of each sequence.

    Returns
    -------
    dict
        ``accuracy`` (share of sequences with the right number), ``accuracy_2``, ``accuracy_3``, ``error`` (misclassification in
        percent of the segmentation into the chosen number of motions).
    """
    mixed, n_motions = [], np.array([s.n_motions for s in sequences])
    for number, sequence in enumerate(sequences):
        mixed.append(ranker.mixed_set(*shuffled_tracks(sequence, number)).without_small(ranker.min_motion_size))
        if on_sequence is not None:
            on_sequence()
    fold = folds(np.array([s.video for s in sequences]), random_state)
    right, errors = np.zeros(len(mixed), bool), np.zeros(len(mixed))
    for round_fold in np.unique(fold):
        chooser = RankingFunction.learn([mixed[i] for i in np.flatnonzero(fold != round_fold)], ranker.settings)
        for i in np.flatnonzero(fold == round_fold):
            best = int(np.argmax(chooser.scores(mixed[i].features)))
            right[i] = len(np.unique(mixed[i].candidates[best].labels)) == n_motions[i]
            errors[i] = 100.0 * mixed[i].known_errors[best]
    return {
        "accuracy": float(right.mean()),
        **{f"accuracy_{k}": float(right[n_motions == k].mean()) for k in np.unique(n_motions)},
        "error": float(errors.mean()),
    }
