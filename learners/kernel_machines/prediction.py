"""What the samples of the chains say: scores of rows, columns in use, transitions."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from ..compilation import jit
from .chains.gram import atom_features
from .chains.sampler import ChainSamples


@jit
def mean_scores(kept: ChainSamples, XT: np.ndarray, squash: bool) -> np.ndarray:
    """Mean score of each row over the samples; of the logistic function of the score where ``squash``."""
    n = XT.shape[1]
    total, one = np.zeros(n), np.zeros(n)
    phase, features = np.zeros(n), np.zeros((2, n))
    for s in range(len(kept.size)):
        one[:] = kept.coef[s, 0]
        for l in range(kept.size[s]):
            atom_features(kept.columns[s, l], kept.omega[s, l], kept.length[s, l], XT, phase, features)
            a, b = kept.coef[s, 1 + 2 * l], kept.coef[s, 2 + 2 * l]
            for i in range(n):
                one[i] += a * features[0, i] + b * features[1, i]
        for i in range(n):
            total[i] += 1.0 / (1.0 + np.exp(-one[i])) if squash else one[i]
    return total / len(kept.size)


def atoms_in_use(kept: ChainSamples) -> tuple[np.ndarray, np.ndarray]:
    """Sample and place of every atom of every sample."""
    sample, place = np.nonzero(np.arange(kept.length.shape[1]) < kept.size[:, None])
    return sample, place


def columns_in_use(kept: ChainSamples, n_columns: int) -> csr_matrix:
    """Which columns each sample uses: (n_samples, n_columns) of ones."""
    sample, place = atoms_in_use(kept)
    inside = np.arange(kept.columns.shape[2]) < kept.length[sample, place][:, None]
    columns = kept.columns[sample, place][inside]
    used = coo_matrix((np.ones(len(columns)), (np.repeat(sample, inside.sum(axis=1)), columns)), shape=(len(kept.size), n_columns))
    used = used.tocsr()
    used.data[:] = 1.0
    return used


def transition_counts(kept: ChainSamples, n_columns: int) -> csr_matrix:
    """Mean number of transitions per sample: (1 + n_columns, 1 + n_columns), state 0 is the null state, column j is state j + 1."""
    sample, place = atoms_in_use(kept)
    columns, length = kept.columns[sample, place], kept.length[sample, place]
    state = np.where(np.arange(columns.shape[1]) < length[:, None], columns + 1, 0)
    path = np.column_stack([np.zeros(len(state), np.int64), state, np.zeros(len(state), np.int64)])
    steps = np.arange(path.shape[1] - 1) <= length[:, None]
    start, end = path[:, :-1][steps], path[:, 1:][steps]
    shape = (n_columns + 1, n_columns + 1)
    return coo_matrix((np.full(len(start), 1.0 / len(kept.size)), (start, end)), shape=shape).tocsr()
