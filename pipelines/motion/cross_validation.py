"""Ten folds by video, and the errors of one division into folds (Barbu et al. (2017),
section 3.4).
"""

from collections.abc import Sequence

import numpy as np
from sklearn.utils import check_random_state

from ...models.motion.candidate_set import CandidateSet
from .methods import Fit

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
