"""Settings of FSA chosen inside the training folds: an inner cross-validation in every round of the
outer one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .benchmark import Benchmark
from .cross_validation import picked_errors
from .methods import GRID, Choice, fit_fsa


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
