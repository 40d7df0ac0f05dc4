"""Evaluation of all methods in the table of the motion experiments.

The protocol uses random partitions of Hopkins155 into ten folds by video (Barbu et al. (2017),
section 3.4). The settings of FSA are chosen by nested cross-validation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ...models.motion import (
    CandidateSet,
    MotionChooser,
    RankingFunction,
    SegmentationRanker,
    joined,
)
from ...vision.tracks.io import TrackSequence
from ..common.checkpoints import Checkpoint
from .benchmark import FAMILY_SETS, POOLS, Benchmark, shuffled_tracks
from .methods import GRID, METHODS, Choice, Fit, check_methods, fit_fsa, table_methods

N_FOLDS = 10


@dataclass
class Result:
    """Errors of a method, in percent.

    Attributes
    ----------
    method : str
    test : ndarray of shape (n_partitions, n_sequences)
        Error of each sequence in the round in which its video is in the test fold.
    train : ndarray of shape (n_partitions, n_sequences)
        Mean error of each sequence over the rounds in which its video is in the training folds.
    chosen : list of dict
        Choice made in each round of nested cross-validation; empty if it is not used.
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
    """Run the evaluation protocol.

    Parameters
    ----------
    benchmark : Benchmark
    methods : sequence of str, default METHODS
        Names in ``METHODS``.
    n_partitions : int, default 10
        Number of random partitions of the videos into ten folds.
    choose : bool, default False
        Whether to also evaluate FSA with the features, the response and the number of features
        chosen in the training folds. This is many times slower, and only possible if the benchmark
        includes the candidate families "pairs"; otherwise, the option is ignored.
    progress : function
        Function that adds a progress display to an iterable, given the iterable and its length.
        There is one step for each partition and method.
    checkpoint : Checkpoint or None, default None
        Checkpoint that stores finished partitions for later calls with the same sequences; see
        :func:`made_from`.

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
            outcome.append(
                cells(
                    key, partial(cross_validate, benchmark.sets[method.families], fold, method.fit)
                )
            )
            next(steps, None)
        errors = np.array(outcome)
        results.append(Result(method.name, errors[:, 0], errors[:, 1]))
    if nested:
        results += _chosen_results(benchmark, partitions, steps, cells)
    return results


def made_from(sequences: Sequence[TrackSequence], pool: str = "all") -> dict[str, Any]:
    """Return the settings and data that identify a checkpoint of :func:`evaluate`.

    These are the labelled tracks, the families of candidates and the features.
    """
    digest = sha256()
    for one in sequences:
        digest.update(
            np.ascontiguousarray(one.tracks).tobytes() + np.ascontiguousarray(one.labels).tobytes()
        )
    families = {name: [str(family) for family in FAMILY_SETS[name]] for name in POOLS[pool][0]}
    return {
        "work": "motion evaluate",
        "sequences": [one.name for one in sequences],
        "data": digest.hexdigest(),
        "families": families,
        "features": str(POOLS[pool][1]),
    }


def _chosen_results(
    benchmark: Benchmark, partitions: Sequence[Any], steps: Iterator, cells: Checkpoint
) -> list[Result]:
    """Return the row whose features, response and number of features are chosen in the training
    folds."""
    rounds = []
    for p, fold in enumerate(partitions):
        key = {"chosen from": [choice.describe() for choice in GRID], "partition": p}
        errors = cells(key, partial(nested_errors, benchmark, fold))
        folds, inner, outer = (np.array(errors[name]) for name in ("fold", "inner", "outer"))
        rounds.append(choose_in_training_folds(folds, inner, outer))
        next(steps, None)
    test, train, chosen = zip(*rounds)
    label = "FSA, features, response and their number chosen in training folds"
    return [
        Result(label, np.array(test), np.array(train), [row for rows in chosen for row in rows])
    ]


def evaluate_auto(
    sequences: Sequence[TrackSequence],
    ranker: SegmentationRanker,
    n_partitions: int = 10,
    columns: np.ndarray | None = None,
) -> dict[str, float]:
    """Evaluate the automatic choice of the number of motions.

    The evaluation uses ten-fold cross-validation over videos.

    Parameters
    ----------
    sequences : sequence of TrackSequence
        Sequences with labels.
    ranker : SegmentationRanker
        Ranker that provides the families, features and settings; it may be untrained.
    n_partitions : int, default 10
        Number of random partitions into folds.
    columns : ndarray of int or None, default None
        Features that the ranking may select; None means all features.

    Returns
    -------
    dict
        Means over the partitions: ``accuracy`` (fraction of sequences with the correct number),
        ``accuracy_2`` and ``accuracy_3`` (the same for sequences with two and three motions),
        ``probability`` (mean reported probability), and ``error`` (percentage of misclassified
        points in the segmentation with the chosen number of motions).
    """
    n_motions = np.array([s.n_motions for s in sequences])
    sets, mixed = [], []
    for number, sequence in enumerate(sequences):
        sets_by_number = ranker.sets_by_number(*shuffled_tracks(sequence, number), columns)
        sets.append(sets_by_number[n_motions[number]].without_small(ranker.min_motion_size))
        mixed.append(joined(list(sets_by_number.values())).without_small(ranker.min_motion_size))
    videos = np.array([one.video for one in sets])
    right, errors, chances = np.zeros((3, n_partitions, len(sets)))
    for p in range(n_partitions):
        fold = folds(videos, p)
        for round_fold in np.unique(fold):
            train = np.flatnonzero(fold != round_fold).tolist()
            function = RankingFunction.learn([sets[i] for i in train], ranker.settings, columns)
            chooser = MotionChooser.learn(
                [mixed[i] for i in train],
                n_motions[train].tolist(),
                function,
                ranker.features.features(),
            )
            for i in np.flatnonzero(fold == round_fold).tolist():
                number, chances[p, i] = next(
                    iter(chooser.probabilities(mixed[i], function).items())
                )
                right[p, i] = number == n_motions[i]
                chosen = mixed[i].only(mixed[i].n_motions == number)
                errors[p, i] = (
                    100.0 * chosen.known_errors[int(np.argmax(function.scores(chosen.features)))]
                )
    return {
        "accuracy": float(right.mean()),
        **{f"accuracy_{k}": float(right[:, n_motions == k].mean()) for k in np.unique(n_motions)},
        "probability": float(chances.mean()),
        "error": float(errors.mean()),
    }


def folds(
    videos: np.ndarray, random_state: int | np.random.RandomState | None, n_folds: int = N_FOLDS
) -> np.ndarray:
    """Randomly partition sequences into folds, with all sequences of a video in the same fold.

    Parameters
    ----------
    videos : ndarray of shape (n_sequences,)
        Video of each sequence.
    random_state : int, RandomState or None
    n_folds : int, default 10

    Returns
    -------
    ndarray of shape (n_sequences,), int
        Fold of each sequence, from 0 to n_folds - 1.

    Raises
    ------
    ValueError
        If there are fewer videos than folds.
    """
    names = np.unique(videos)
    if len(names) < n_folds:
        raise ValueError(f"{len(names)} videos cannot be split into {n_folds} folds")
    fold = np.empty(len(names), int)
    fold[check_random_state(random_state).permutation(len(names))] = np.arange(len(names)) % n_folds
    return fold[np.searchsorted(names, videos)]


def picked_errors(sets: Sequence[CandidateSet], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Return the error, in percent, of the candidate with the highest score in each sequence."""
    return np.array([100.0 * one.known_errors[int(np.argmax(s))] for one, s in zip(sets, scores)])


def cross_validate(
    sets: Sequence[CandidateSet], fold: np.ndarray, fit: Fit
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the errors for one partition into folds.

    Parameters
    ----------
    sets : sequence of CandidateSet
        Candidates of each sequence, with known errors.
    fold : ndarray of shape (n_sequences,)
        Fold of each sequence.
    fit : function
        Function that takes the training sets and returns a function that scores the candidates of
        several sequences.

    Returns
    -------
    test : ndarray of shape (n_sequences,)
        Error, in percent, in the round in which the sequence's fold is held out.
    train : ndarray of shape (n_sequences,)
        Mean error, in percent, over the other rounds.
    """
    (test, train), round_folds = np.zeros((2, len(sets))), np.unique(fold)
    for round_fold in round_folds:
        held_out = fold == round_fold
        scorer = fit([sets[i] for i in np.flatnonzero(~held_out).tolist()])
        errors = picked_errors(sets, scorer(sets))
        test[held_out] = errors[held_out]
        train[~held_out] += errors[~held_out] / (len(round_folds) - 1)
    return test, train


def nested_errors(benchmark: Benchmark, fold: np.ndarray) -> dict[str, np.ndarray]:
    """Fit all choices in ``GRID`` with each fold and with each pair of folds held out.

    In each round, one fold is the outer fold, and every other fold is an inner fold. A fit with a
    pair of folds held out is therefore used in two rounds: each of the two folds is the outer fold
    in one round and the inner fold in the other.

    Returns
    -------
    dict of str to ndarray
        ``fold``, ``inner`` and ``outer``, the arguments of :func:`choose_in_training_folds`.
    """
    folds = np.unique(fold)
    inner_errors, outer = np.full((2, len(GRID), len(folds), len(fold)), np.nan)
    for c, choice in enumerate(GRID):
        sets, columns = benchmark.sets[choice.families], benchmark.columns("all", choice.part)
        for round_, round_fold in enumerate(folds):
            for inner, inner_fold in enumerate(folds[: round_ + 1]):
                held_out = np.flatnonzero((fold == round_fold) | (fold == inner_fold))
                train = [sets[i] for i in np.setdiff1d(np.arange(len(sets)), held_out)]
                scored = sets if inner == round_ else [sets[i] for i in held_out]
                errors = picked_errors(scored, fit_fsa(train, choice.settings, columns)(scored))
                if inner == round_:
                    outer[c, round_] = errors
                else:
                    # A sequence in one fold of the pair is inner test data in the round of the
                    # other fold.
                    inner_errors[
                        c, np.where(fold[held_out] == round_fold, inner, round_), held_out
                    ] = errors
    return {"fold": fold, "inner": inner_errors, "outer": outer}


def choose_in_training_folds(
    fold: np.ndarray, inner: np.ndarray, outer: np.ndarray, grid: Sequence[Choice] = GRID
) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Select the choice with the smallest mean inner error in each round.

    Each fold is the test fold in one round.

    Parameters
    ----------
    fold : ndarray of shape (n_sequences,)
        Fold of each sequence.
    inner : ndarray of shape (n_choices, n_folds, n_sequences)
        Error of each sequence, in percent, if its own fold and the test fold are held out; NaN for
        sequences in the test fold.
    outer : ndarray of shape (n_choices, n_folds, n_sequences)
        Error of each sequence, in percent, if only the test fold is held out.
    grid : sequence of Choice

    Returns
    -------
    test, train : ndarray of shape (n_sequences,)
        Error, in percent, in the round in which the sequence is in the test fold, and mean error
        over the other rounds.
    chosen : list of dict
        Choice in each round, with its inner error. Ties favour the first choice.
    """
    folds = np.unique(fold)
    test, train, chosen = np.zeros(len(fold)), np.zeros(len(fold)), []
    for round_, round_fold in enumerate(folds):
        held_out = fold == round_fold
        means = np.nanmean(inner[:, round_, :], axis=1)
        best = int(np.argmin(means.round(9)))
        test[held_out] = outer[best, round_, held_out]
        train[~held_out] += outer[best, round_, ~held_out] / (len(folds) - 1)
        chosen.append({**grid[best].describe(), "inner_error": float(means.min())})
    return test, train, chosen
