"""Ten folds by video, and the errors of one division into folds (Barbu et al. (2017),
section 3.4); settings of FSA chosen by an inner cross-validation in every round.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ...models.motion.candidate_set import CandidateSet
from .benchmark import Benchmark
from .methods import GRID, Choice, Fit, fit_fsa

N_FOLDS = 10


def folds(videos: np.ndarray, random_state: int | np.random.RandomState | None, n_folds: int = N_FOLDS) -> np.ndarray:
    """Divide sequences at random into folds; all sequences of one video are in one fold.

    Parameters
    ----------
    videos : ndarray of shape (n_sequences,)
        Video of each sequence.
    random_state : int, RandomState or None
    n_folds : int, default 10

    Returns
    -------
    ndarray of shape (n_sequences,), int
        Fold of each sequence, 0 .. n_folds-1.

    Raises
    ------
    ValueError
        If there are fewer videos than folds.
    """
    names = np.unique(videos)
    if len(names) < n_folds:
        raise ValueError(f"{len(names)} videos cannot be divided into {n_folds} folds")
    fold = np.empty(len(names), int)
    fold[check_random_state(random_state).permutation(len(names))] = np.arange(len(names)) % n_folds
    return fold[np.searchsorted(names, videos)]


def picked_errors(sets: Sequence[CandidateSet], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Error in percent of the candidate with the highest score, for each sequence."""
    return np.array([100.0 * one.known_errors[int(np.argmax(s))] for one, s in zip(sets, scores)])


def cross_validate(sets: Sequence[CandidateSet], fold: np.ndarray, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Errors of one division into folds.

    Parameters
    ----------
    sets : sequence of CandidateSet
        One for each sequence, with known errors.
    fold : ndarray of shape (n_sequences,)
    fit : function
        Takes training sets and returns a function that scores the candidates of each of several
        sequences.

    Returns
    -------
    test : ndarray of shape (n_sequences,)
        Error in percent when the sequence's own fold was left out.
    train : ndarray of shape (n_sequences,)
        Mean error in percent over the other rounds.
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
    """Fit all choices of ``GRID`` with every fold, and every pair of folds, left out.

    The inner folds of a round are the other outer folds. Leaving out a pair of folds therefore
    serves two rounds: each of the two is once the round's fold and once the inner fold.

    Returns
    -------
    dict of str to ndarray
        ``fold``, ``inner`` and ``outer``, what :func:`choose_in_training_folds` takes.
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
                    # A sequence of one fold of the pair is an inner test of the round of the other.
                    inner_errors[c, np.where(fold[held_out] == round_fold, inner, round_), held_out] = errors
    return {"fold": fold, "inner": inner_errors, "outer": outer}


def choose_in_training_folds(
    fold: np.ndarray, inner: np.ndarray, outer: np.ndarray, grid: Sequence[Choice] = GRID
) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Take in each round the choice with the least mean inner error; among equals the first.

    Parameters
    ----------
    fold : ndarray of shape (n_sequences,)
    inner : ndarray of shape (n_choices, n_folds, n_sequences)
        Error in percent of a sequence when its own fold and the fold of the round were left out;
        NaN within the latter.
    outer : ndarray of shape (n_choices, n_folds, n_sequences)
        Error in percent when the fold of the round alone was left out.
    grid : sequence of Choice

    Returns
    -------
    test, train : ndarray of shape (n_sequences,)
        Error in percent in the round of the own fold, and the mean over the other rounds.
    chosen : list of dict
        One for each round, with the inner error.
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
