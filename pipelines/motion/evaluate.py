"""The table of the motion experiments: all methods over random divisions of Hopkins155 into ten
folds by video.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from ...models.motion.candidate_set import joined
from ...models.motion.ranker import SegmentationRanker
from ...models.motion.ranking_function import MotionChooser, RankingFunction
from ...vision.tracks.io import TrackSequence
from ..common.checkpoints import Checkpoint
from .benchmark import FAMILY_SETS, POOLS, Benchmark, shuffled_tracks
from .cross_validation import choose_in_training_folds, cross_validate, folds, nested_errors
from .methods import GRID, METHODS, check_methods, table_methods


@dataclass
class Result:
    """Errors of one method in percent.

    Attributes
    ----------
    method : str
    test : ndarray of shape (n_partitions, n_sequences)
        Error when the sequence's video was in the test fold.
    train : ndarray of shape (n_partitions, n_sequences)
        Mean error over the rounds in which it was a training video.
    chosen : list of dict
        For nested choice: what was chosen in each round.
    """

    method: str
    test: np.ndarray
    train: np.ndarray
    chosen: list[dict[str, Any]] = field(default_factory=list)


def evaluate(
    benchmark: Benchmark,
    methods: Sequence[str] = METHODS,
    n_partitions: int = 10,
    choose: bool = False,
    progress: Callable[[Iterable, int], Iterable] = lambda it, n: it,
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
    choose : bool, default False
        Also choose features, response and number of features of FSA inside the training folds: many
        times the work. Needs the family set "pairs".
    progress : function
        Of the steps, one for each partition of each method, and their number; hands them on.
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
    lines = table_methods(benchmark, methods)
    nested = choose and "fsa" in methods and "pairs" in benchmark.sets
    n_steps = n_partitions * (len(lines) + nested)
    steps = iter(progress(range(n_steps), n_steps))
    results = []
    for method in lines:
        outcome = []
        for p, fold in enumerate(partitions):
            key = {"method": method.name, "min_motion_size": 0, "partition": p}
            outcome.append(cells(key, partial(cross_validate, benchmark.sets[method.families], fold, method.fit)))
            next(steps, None)
        errors = np.array(outcome)
        results.append(Result(method.name, errors[:, 0], errors[:, 1]))
    if nested:
        results += _chosen_results(benchmark, partitions, steps, cells)
    return results


def made_from(sequences: Sequence[TrackSequence], pool: str = "all") -> dict[str, Any]:
    """Settings and data that a checkpoint of :func:`evaluate` depends on: labelled tracks, families
    of candidates, features.
    """
    digest = sha256()
    for one in sequences:
        digest.update(np.ascontiguousarray(one.tracks).tobytes() + np.ascontiguousarray(one.labels).tobytes())
    families = {name: [str(family) for family in FAMILY_SETS[name]] for name in POOLS[pool][0]}
    names = [one.name for one in sequences]
    data = {"sequences": names, "data": digest.hexdigest()}
    return {"work": "motion evaluate", **data, "families": families, "features": str(POOLS[pool][1])}


def _chosen_results(benchmark: Benchmark, partitions: Sequence[Any], steps: Iterator, cells: Checkpoint) -> list[Result]:
    """The row in which features, response and number of features are chosen in the
    training folds.
    """
    rounds = []
    for p, fold in enumerate(partitions):
        key = {"chosen from": [choice.describe() for choice in GRID], "partition": p}
        found = cells(key, partial(nested_errors, benchmark, fold))
        own, inner, outer = (np.array(found[name]) for name in ("fold", "inner", "outer"))
        rounds.append(choose_in_training_folds(own, inner, outer))
        next(steps, None)
    test, train, chosen = zip(*rounds)
    label = "FSA, features, response and their number chosen in training folds"
    return [Result(label, np.array(test), np.array(train), [row for rows in chosen for row in rows])]


def evaluate_auto(
    sequences: Sequence[TrackSequence], ranker: SegmentationRanker, n_partitions: int = 10, columns: np.ndarray | None = None
) -> dict[str, float]:
    """Accuracy of the choice of the number of motions, ten folds by video.

    Parameters
    ----------
    sequences : sequence of TrackSequence
        With labels.
    ranker : SegmentationRanker
        Gives families, features and settings; need not be trained.
    n_partitions : int, default 10
        Random divisions into folds.
    columns : ndarray of int or None, default None
        Features that may be selected; None means all.

    Returns
    -------
    dict
        Means over the partitions: ``accuracy`` (share of sequences with the right number),
        ``accuracy_2``, ``accuracy_3``, ``probability`` (mean of those given), ``error``
        (misclassification in percent of the segmentation into the chosen number).
    """
    n_motions = np.array([s.n_motions for s in sequences])
    sets, mixed = [], []
    for number, sequence in enumerate(sequences):
        found = ranker.sets_by_number(*shuffled_tracks(sequence, number))
        sets.append(found[n_motions[number]].without_small(ranker.min_motion_size))
        mixed.append(joined(list(found.values())).without_small(ranker.min_motion_size))
    videos = np.array([one.video for one in sets])
    right, errors, chances = np.zeros((3, n_partitions, len(sets)))
    for p in range(n_partitions):
        fold = folds(videos, p)
        for round_fold in np.unique(fold):
            train = np.flatnonzero(fold != round_fold).tolist()
            function = RankingFunction.learn([sets[i] for i in train], ranker.settings, columns)
            chooser = MotionChooser.learn([mixed[i] for i in train], function, columns=columns)
            for i in np.flatnonzero(fold == round_fold).tolist():
                number, chances[p, i] = chooser.choose(mixed[i], function)
                right[p, i] = number == n_motions[i]
                chosen = mixed[i].only(mixed[i].n_motions == number)
                errors[p, i] = 100.0 * chosen.known_errors[int(np.argmax(function.scores(chosen.features)))]
    by_number = {f"accuracy_{k}": float(right[:, n_motions == k].mean()) for k in np.unique(n_motions)}
    means = {"probability": float(chances.mean()), "error": float(errors.mean())}
    return {"accuracy": float(right.mean()), **by_number, **means}
