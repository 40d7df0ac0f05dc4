"""Settings of FSA chosen inside the training folds: an inner cross-validation in every round of the outer one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .benchmark import Benchmark
from .cross_validation import picked_errors
from .methods import GRID, Choice, fit_fsa


@dataclass
class NestedErrors:
    """Errors from which the nested protocol chooses, for one division into folds.

    Attributes
    ----------
    fold : ndarray of shape (n_sequences,)
    inner : ndarray of shape (n_choices, n_folds, n_sequences)
        Error in percent of a sequence when its own fold and the fold of the round were left out;
        NaN within the latter.
    outer : ndarray of shape (n_choices, n_folds, n_sequences)
        Error in percent when the fold of the round alone was left out.
    """

    fold: np.ndarray
    inner: np.ndarray
    outer: np.ndarray


def nested_errors(
    benchmark: Benchmark, fold: np.ndarray, grid: Sequence[Choice] = GRID, on_fit: Callable[[], object] | None = None
) -> NestedErrors:
    """Fit all choices with every fold, and every pair of folds, left out.

    The inner folds of a round are the other outer folds. Leaving out a pair of folds therefore
    serves two rounds: each of the two is once the round's fold and once the inner fold.
    """
    folds = np.unique(fold)
    shape = (len(grid), len(folds), len(fold))
    found = NestedErrors(fold, np.full(shape, np.nan), np.full(shape, np.nan))
    for c, choice in enumerate(grid):
        sets, columns = benchmark.sets[choice.families], benchmark.columns("all", choice.part)
        for round_, round_fold in enumerate(folds):
            for inner, inner_fold in enumerate(folds[: round_ + 1]):
                held_out = np.flatnonzero((fold == round_fold) | (fold == inner_fold))
                train = [sets[i] for i in np.setdiff1d(np.arange(len(sets)), held_out)]
                scored = sets if inner == round_ else [sets[i] for i in held_out]
                errors = picked_errors(scored, fit_fsa(train, choice.settings, columns)(scored))
                if inner == round_:
                    found.outer[c, round_] = errors
                else:
                    # A sequence of one fold of the pair is an inner test of the round of the other.
                    found.inner[c, np.where(fold[held_out] == round_fold, inner, round_), held_out] = errors
        if on_fit is not None:
            on_fit()
    return found


def choose_in_training_folds(
    errors: NestedErrors, grid: Sequence[Choice] = GRID
) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Take in each round the choice with the least mean inner error; among equals the first.

    Parameters
    ----------
    errors : NestedErrors
    grid : sequence of Choice

    Returns
    -------
    test, train : ndarray of shape (n_sequences,)
        Error in percent in the round of the own fold, and the mean over the other rounds.
    chosen : list of dict
        One for each round, with the inner error.
    """
    folds = np.unique(errors.fold)
    test, train, chosen = np.zeros(len(errors.fold)), np.zeros(len(errors.fold)), []
    for round_, round_fold in enumerate(folds):
        held_out = errors.fold == round_fold
        means = np.nanmean(errors.inner[:, round_, :], axis=1)
        best = int(np.argmin(means.round(9)))
        test[held_out] = errors.outer[best, round_, held_out]
        train[~held_out] += errors.outer[best, round_, ~held_out] / (len(folds) - 1)
        chosen.append({**grid[best].describe(), "inner_error": float(means.min())})
    return test, train, chosen
