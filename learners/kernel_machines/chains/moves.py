"""Reversible-jump moves with their prior and proposal ratios.

Each move removes at most one atom and adds at most one atom.
"""

import math

import numpy as np

from ...compilation import jit
from .atoms import (
    AtomPrior,
    Atoms,
    draw_following,
    draw_frequencies,
    draw_one_frequency,
    draw_sequence,
    log_density_ratio,
    log_predictive,
    transitions,
)
from .screening import Table

BIRTH, DEATH, GROW, SHRINK, ORDER, COLUMN, NEIGHBOUR, WALK, REPLACE = range(9)
NAMES = ("birth", "death", "grow", "shrink", "order", "column", "neighbour", "walk", "replace")
# Probabilities of the moves (heuristic). Birth and death must have equal probabilities, and so
# must growth and shrinkage, since each reverses the other.
PROBABILITIES = np.array([0.16, 0.16, 0.09, 0.09, 0.03, 0.05, 0.05, 0.30, 0.07])
INFORMED = 0.5  # fraction of births drawn from the screening table
STEPS = np.array([0.05, 0.2, 0.6])  # step sizes of the random walk, relative to the frequency scale


@jit
def pick(cumulative: np.ndarray, rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to its weight, given the cumulative weights."""
    return min(
        np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"),
        len(cumulative) - 1,
    )


@jit
def _key(columns: np.ndarray, n: int, base: int) -> int:
    """Return the table key of a set of one to three columns, or -1 for a larger set."""
    if n > 3:
        return -1
    a = columns[0] + 1
    b = columns[1] + 1 if n > 1 else 0
    c = columns[2] + 1 if n > 2 else 0
    low, high = min(a, b, c), max(a, b, c)
    return (low * base + (a + b + c - low - high)) * base + high


@jit
def _draw_from_table(columns: np.ndarray, table: Table, rng: np.random.Generator) -> int:
    """Draw a set of columns from the table, in random order, and return its size."""
    base = len(table.column_weight) + 1
    key = table.keys[pick(table.cumulative, rng)]
    n = 0
    while key > 0:
        columns[n] = key % base - 1
        key //= base
        n += 1
    for t in range(n - 1, 0, -1):
        other = int(rng.random() * (t + 1))
        columns[t], columns[other] = columns[other], columns[t]
    return n


@jit
def _log_birth(columns: np.ndarray, n: int, log_pred: float, table: Table) -> float:
    """Compute the log probability that a birth proposes the given sequence."""
    if len(table.keys) == 0:
        return log_pred
    probability = (1.0 - INFORMED) * math.exp(log_pred)
    key = _key(columns, n, len(table.column_weight) + 1)
    if key > 0:
        place = np.searchsorted(table.keys, key)
        if place < len(table.keys) and table.keys[place] == key:
            orders = 1.0 if n == 1 else 2.0 if n == 2 else 6.0
            probability += INFORMED * table.weight[place] / orders
    return math.log(probability)


@jit
def _draw_birth(
    columns: np.ndarray,
    atoms: Atoms,
    size: int,
    skip: int,
    prior: AtomPrior,
    table: Table,
    rng: np.random.Generator,
) -> int:
    return (
        _draw_from_table(columns, table, rng)
        if len(table.keys) > 0 and rng.random() < INFORMED
        else draw_sequence(columns, atoms, size, skip, prior, rng)
    )


@jit
def _log_birth_ratio(
    columns: np.ndarray, n: int, atoms: Atoms, size: int, skip: int, prior: AtomPrior, table: Table
) -> float:
    """Compute the log ratio of prior to proposal for a birth.

    Frequencies are drawn from the prior and cancel out.
    """
    log_pred = log_predictive(columns, n, atoms, size, skip, prior)
    return log_pred - _log_birth(columns, n, log_pred, table)


@jit
def _growth(
    column: int, following: int, atoms: Atoms, size: int, skip: int, prior: AtomPrior, table: Table
) -> float:
    """Compute the probability that growth proposes ``following`` after ``column``.

    The proposal is a mixture: half from the urn, a quarter from the screening table, and a quarter
    uniform.
    """
    total, stops, hits = transitions(atoms, size, skip, column, following, prior.max_order)
    urn = (prior.step_mass / prior.n_columns + hits) / (prior.step_mass + total - stops)
    return 0.5 * urn + 0.25 * table.column_weight[following] + 0.25 / prior.n_columns


@jit
def _draw_growth(
    column: int,
    atoms: Atoms,
    size: int,
    skip: int,
    prior: AtomPrior,
    table: Table,
    rng: np.random.Generator,
) -> int:
    u = rng.random()
    if u < 0.5:
        return draw_following(column, atoms, size, skip, prior, False, rng)
    if u < 0.75:
        return pick(table.column_cumulative, rng)
    return int(rng.random() * prior.n_columns)


@jit
def propose(
    kind: int,
    atoms: Atoms,
    size: int,
    prior: AtomPrior,
    table: Table,
    columns: np.ndarray,
    omega: np.ndarray,
    rng: np.random.Generator,
) -> tuple[bool, int, int, float]:
    """Propose a move, and write the new atom to ``columns`` and ``omega``.

    Returns
    -------
    possible : bool
        Whether the move is possible in the current state.
    removed : int
        Index of the atom to remove, or -1.
    n : int
        Number of columns of the new atom; 0 if the move adds no atom.
    log_ratio : float
        Log of the prior ratio times the proposal ratio; the likelihood is not included.
    """
    if kind == BIRTH:
        if size == len(atoms.length):
            return False, -1, 0, 0.0
        n = _draw_birth(columns, atoms, size, -1, prior, table, rng)
        if n == 0:
            return False, -1, 0, 0.0
        draw_frequencies(omega, n, prior, rng)
        ratio = _log_birth_ratio(columns, n, atoms, size, -1, prior, table)
        return True, -1, n, ratio + math.log(prior.expected / (size + 1))
    if size == 0:
        return False, -1, 0, 0.0
    l = min(int(rng.random() * size), size - 1)
    old, n = atoms.columns[l], atoms.length[l]
    if kind == DEATH:
        ratio = _log_birth_ratio(old, n, atoms, size, l, prior, table)
        return True, l, 0, -ratio - math.log(prior.expected / size)
    if kind == REPLACE:
        m = _draw_birth(columns, atoms, size, l, prior, table, rng)
        if m == 0:
            return False, l, 0, 0.0
        draw_frequencies(omega, m, prior, rng)
        ratio = _log_birth_ratio(columns, m, atoms, size, l, prior, table)
        return True, l, m, ratio - _log_birth_ratio(old, n, atoms, size, l, prior, table)
    columns[:n] = old[:n]
    omega[:n] = atoms.omega[l, :n]
    if kind == WALK:
        step = STEPS[int(rng.random() * len(STEPS))] * prior.scale
        for t in range(n):
            omega[t] += step * rng.standard_normal()
        return True, l, n, log_density_ratio(omega, atoms.omega[l], n, prior)
    ratio = -log_predictive(old, n, atoms, size, l, prior)
    if kind == GROW:
        if n == prior.max_order:
            return False, l, 0, 0.0
        column = _draw_growth(old[n - 1], atoms, size, l, prior, table, rng)
        if (old[:n] == column).any():
            return False, l, 0, 0.0
        columns[n] = column
        omega[n] = draw_one_frequency(omega, n, prior, rng)
        n += 1
        ratio -= math.log(_growth(old[n - 2], column, atoms, size, l, prior, table))
    elif kind == SHRINK:
        if n == 1:
            return False, l, 0, 0.0
        n -= 1
        ratio += math.log(_growth(old[n - 1], old[n], atoms, size, l, prior, table))
    elif kind == ORDER:
        if n == 1:
            return False, l, 0, 0.0
        a = int(rng.random() * n)
        b = (a + 1 + int(rng.random() * (n - 1))) % n
        columns[a], columns[b] = columns[b], columns[a]
        omega[a], omega[b] = omega[b], omega[a]
    else:
        t = int(rng.random() * n)
        if kind == COLUMN:  # half from the screening table, half uniform
            column = (
                pick(table.column_cumulative, rng)
                if rng.random() < 0.5
                else int(rng.random() * prior.n_columns)
            )
            forward = 0.5 * table.column_weight[column] + 0.5 / prior.n_columns
            back = 0.5 * table.column_weight[old[t]] + 0.5 / prior.n_columns
            ratio += math.log(back / forward)
        else:  # exchange for a correlated column, with the sign of the correlation
            count = table.n_neighbours[old[t]]
            if count == 0:
                return False, l, 0, 0.0
            place = int(rng.random() * count)
            column = table.neighbours[old[t], place]
            omega[t] *= table.signs[old[t], place]
            ratio += math.log(count / table.n_neighbours[column])
        if (old[:n] == column).any():
            return False, l, 0, 0.0
        columns[t] = column
    return True, l, n, ratio + log_predictive(columns, n, atoms, size, l, prior)
