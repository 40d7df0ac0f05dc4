"""Screening of informative columns, pairs and triples, as proposals for the moves.

The acceptance rule is exact for any proposal distribution that does not depend on the state of the
chain, so the table may be a rough approximation. It is computed quickly by matrix products. Its
entries are sums of squared correlations between the target and products of Fourier features. They
have a chi-squared distribution if the columns are independent.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

SCALES = np.array([0.6, 1.2])  # screening frequencies in units of the prior scale (heuristic)
MAX_ENTRIES = 50_000  # maximum number of entries per order
BLOCK = 1024  # columns per matrix product
MAX_COLUMNS_TRIPLES = 400  # about 10 million triples
SPREAD = 15.0  # range of the log weights after tempering
MAX_NEIGHBOURS, MIN_CORRELATION = 10, 0.3


class Table(NamedTuple):
    """Proposal weights of column sets and single columns, and correlated columns of each column."""

    # (n_entries,) int64, ascending: digits column + 1 in base p + 1, columns in ascending order
    keys: np.ndarray
    weight: np.ndarray  # (n_entries,) sums to one
    cumulative: np.ndarray
    column_weight: np.ndarray  # (p,) sums to one
    column_cumulative: np.ndarray
    neighbours: np.ndarray  # (p, most) int64
    signs: np.ndarray  # (p, most) signs of the correlations
    n_neighbours: np.ndarray  # (p,) int64


def screen(
    XT: np.ndarray, y: np.ndarray, scale: float, screening: str | None, max_order: int
) -> Table:
    """Build the proposal table.

    Parameters
    ----------
    XT : ndarray of shape (p, N)
        Standardised columns.
    y : ndarray of shape (N,)
        Target.
    scale : float
        Scale of the prior on the frequencies.
    screening : {"pairs", "triples", None}
        Largest sets of columns in the table. None makes all columns equally likely.
    max_order : int
        Maximum number of columns in an atom, and thus in a set of columns.

    Returns
    -------
    Table
        Proposal table.

    Raises
    ------
    ValueError
        If there are too many columns for triples.
    """
    p = len(XT)
    if screening == "triples" and p > MAX_COLUMNS_TRIPLES:
        raise ValueError(
            f"X has {p} columns, but screening='triples' supports at most {MAX_COLUMNS_TRIPLES}"
        )
    neighbours, signs, counts = _neighbours(XT)
    if screening is None or p == 0 or not np.ptp(y):
        keys, weight, column_weight = (
            np.empty(0, np.int64),
            np.empty(0),
            np.full(p, 1.0 / max(p, 1)),
        )
    else:
        y = ((y - y.mean()) / y.std()).astype(np.float32)
        waves = [_waves(XT, scale * s) for s in SCALES]
        candidates = [_singles(waves, y)]
        if min(p, max_order) >= 2:
            candidates.append(_pairs(waves, y))
        if min(p, max_order) >= 3 and screening == "triples":
            candidates.append(_triples(waves[-1:], y))
        columns, score = (np.concatenate(parts) for parts in zip(*candidates))
        keys, weight, column_weight = _weights(columns, score, p)
    return Table(
        keys,
        weight,
        np.cumsum(weight),
        column_weight,
        np.cumsum(column_weight),
        neighbours,
        signs,
        counts,
    )


def _waves(XT: np.ndarray, frequency: float) -> list[np.ndarray]:
    """Compute the standardised cosine and sine of each column, as float32 arrays (N, p).

    The result is zero for constant columns.
    """
    waves = []
    for wave in (np.cos, np.sin):
        values = wave(np.float32(frequency) * XT.T.astype(np.float32))
        values -= values.mean(axis=0)
        deviation = values.std(axis=0)
        waves.append(values / np.where(deviation > 1e-6, deviation, np.inf))
    return waves


def _score(square: np.ndarray, degrees: int) -> np.ndarray:
    """Compute the negative log tail probability, which is comparable between orders."""
    return -chi2.logsf(square, degrees)


def _best(square: np.ndarray) -> np.ndarray:
    """Return the positions of the largest ``MAX_ENTRIES`` entries."""
    return (
        np.arange(len(square))
        if len(square) <= MAX_ENTRIES
        else np.sort(np.argpartition(square, len(square) - MAX_ENTRIES)[-MAX_ENTRIES:])
    )


def _singles(waves: list[list[np.ndarray]], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    square = sum((y @ wave) ** 2 for pair in waves for wave in pair) / len(y)
    kept = _best(square)
    return np.column_stack([kept, np.full((len(kept), 2), -1)]), _score(
        square[kept], 2 * len(waves)
    )


def _pairs(waves: list[list[np.ndarray]], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = waves[0][0].shape[1]
    pairs, squares = np.empty((0, 2), np.int64), np.empty(0, np.float32)
    for a in range(0, p, BLOCK):
        for b in range(a, p, BLOCK):
            square = np.zeros((1, 1), np.float32)
            for cosine, sine in waves:
                left = [(w[:, a : a + BLOCK] * y[:, None]).T for w in (cosine, sine)]
                for w in left:
                    for right in (cosine, sine):
                        square = square + (w @ right[:, b : b + BLOCK]) ** 2
            rows, columns = np.nonzero(
                np.arange(b, b + square.shape[1]) > np.arange(a, a + square.shape[0])[:, None]
            )
            pairs = np.concatenate([pairs, np.column_stack([rows + a, columns + b])])
            squares = np.concatenate([squares, square[rows, columns] / len(y)])
            kept = _best(squares)
            pairs, squares = pairs[kept], squares[kept]
    return np.column_stack([pairs, np.full(len(pairs), -1)]), _score(squares, 4 * len(waves))


def _triples(waves: list[list[np.ndarray]], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = waves[0][0].shape[1]
    triples_kept, squares = [np.empty((0, 3), np.int64)], [np.empty(0)]
    for a in range(p - 2):
        square = np.zeros((1, 1), np.float32)
        for pair in waves:
            rest = [w[:, a + 1 :] for w in pair]
            for w in pair:
                weight = (w[:, a] * y)[:, None]
                for left in rest:
                    product = (left * weight).T
                    for right in rest:
                        square = square + (product @ right) ** 2
        rows, columns = np.triu_indices(p - a - 1, 1)
        values = square[rows, columns] / len(y)
        kept = np.argpartition(values, -200)[-200:] if len(values) > 200 else np.arange(len(values))
        triples_kept.append(
            np.column_stack([np.full(len(kept), a), rows[kept] + a + 1, columns[kept] + a + 1])
        )
        squares.append(values[kept])
    triples, square = np.concatenate(triples_kept), np.concatenate(squares)
    kept = _best(square)
    return triples[kept], _score(square[kept], 8 * len(waves))


def _weights(
    columns: np.ndarray, score: np.ndarray, p: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ascending keys with their weights, and the weights of single columns.

    Weights are a mixture of tempered, rank-based and uniform weights.
    """
    score = np.minimum(score, 1e6).astype(np.float64)
    warmth = min(1.0, SPREAD / max(score.max(), 1.0))
    rank = np.empty(len(score))
    rank[np.argsort(-score, kind="stable")] = np.arange(1, len(score) + 1)

    def mixed(tempered: np.ndarray, place: np.ndarray) -> np.ndarray:
        tempered, ranked = np.exp(tempered - tempered.max()), 1.0 / place
        return 0.6 * tempered / tempered.sum() + 0.3 * ranked / ranked.sum() + 0.1 / len(tempered)

    base = p + 1
    keys = columns[:, 0] + 1
    for t in (1, 2):
        keys = np.where(columns[:, t] >= 0, keys * base + columns[:, t] + 1, keys)
    order = np.argsort(keys)
    best = np.zeros(p)
    for t in range(3):
        present = columns[:, t] >= 0
        np.maximum.at(best, columns[present, t], score[present])
    place = np.empty(p)
    place[np.argsort(-best, kind="stable")] = np.arange(1, p + 1)
    return keys[order], mixed(warmth * score, rank)[order], mixed(warmth * best, place)


def correlations(XT: np.ndarray, first: int, last: int) -> np.ndarray:
    """Compute the correlations of the columns ``first`` to ``last - 1`` with all columns."""
    return XT[first:last] @ XT.T / XT.shape[1]


def _neighbours(XT: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns most correlated with each column.

    The relation is symmetric: a column is a neighbour of all its neighbours.
    """
    p = len(XT)
    lists: list[dict[int, float]] = [{} for _ in range(p)]
    values = np.ascontiguousarray(XT, dtype=np.float32)
    for first in range(0, p, BLOCK):
        block = correlations(values, first, min(first + BLOCK, p))
        block[np.arange(len(block)), first + np.arange(len(block))] = 0.0
        rows = np.flatnonzero((np.abs(block) > MIN_CORRELATION).any(axis=1))
        for i in rows:
            strong = np.flatnonzero(np.abs(block[i]) > MIN_CORRELATION)
            strong = strong[np.argsort(-np.abs(block[i, strong]), kind="stable")][:MAX_NEIGHBOURS]
            for j in strong:
                lists[first + int(i)][int(j)] = lists[int(j)][first + int(i)] = float(
                    np.sign(block[i, j])
                )
    counts = np.array([len(correlated) for correlated in lists], dtype=np.int64)
    neighbours = np.zeros((p, max(counts.max(initial=0), 1)), np.int64)
    signs = np.ones(neighbours.shape)
    for column, correlated in enumerate(lists):
        neighbours[column, : len(correlated)] = sorted(correlated)
        signs[column, : len(correlated)] = [correlated[other] for other in sorted(correlated)]
    return neighbours, signs, counts
