"""Atoms (sparse frequencies) and their prior, a Markov chain over columns.

An atom is a sequence of distinct columns with one frequency each, eq. (4.5) of Ma (thesis). The
first of the p columns is drawn with probabilities pi_0 ~ Dir(gamma / p), and the column after
column j with probabilities theta_j ~ Dir(alpha). Here Dir is the Dirichlet distribution, and gamma
and alpha are constants of the prior. The sequence ends in the null state or at ``max_order``
columns. The transition probabilities pi_0 and theta_j are integrated out. Given the other atoms, an
atom is therefore drawn from urns that contain the transitions of these atoms. The order of the
atoms does not matter. The prior is this process, conditioned on distinct columns within each atom.
The normal and inverse Wishart priors of the mean and covariance of a frequency are also integrated
out, which gives a multivariate t distribution.
"""

import math
from typing import NamedTuple

import numpy as np

from ...compilation import jit


class AtomPrior(NamedTuple):
    """Hyperparameters of the prior on the atoms.

    The number of atoms has a Poisson distribution with mean ``expected``, truncated at the maximum
    number.
    """

    n_columns: int
    max_order: int
    start_mass: float  # gamma, divided among the columns
    stop_mass: float  # alpha_0
    step_mass: float  # sum of alpha_1, ..., alpha_p
    expected: float
    scale: float  # scale of the frequencies
    degrees: float  # degrees of freedom of the t distribution


class Atoms(NamedTuple):
    """Preallocated storage for up to ``len(length)`` atoms; the caller stores their number."""

    columns: np.ndarray  # (max_components, max_order) int64
    length: np.ndarray  # (max_components,) int64
    omega: np.ndarray  # (max_components, max_order) float64


def empty_atoms(max_components: int, max_order: int) -> Atoms:
    """Allocate storage for ``max_components`` atoms, all of which initially have length 0."""
    shape = (max_components, max_order)
    return Atoms(np.full(shape, -1, np.int64), np.zeros(max_components, np.int64), np.zeros(shape))


@jit
def transitions(
    atoms: Atoms, size: int, skip: int, column: int, following: int, max_order: int
) -> tuple[int, int, int]:
    """Count the transitions from a column in the first ``size`` atoms, excluding the atom ``skip``.

    The function returns the total number of transitions, the number that lead to the end of the
    atom, and the number that lead to ``following``.
    """
    total, stops, hits = 0, 0, 0
    for l in range(size):
        if l == skip:
            continue
        n = atoms.length[l]
        for t in range(min(n, max_order - 1)):
            if atoms.columns[l, t] == column:
                total += 1
                if t + 1 == n:
                    stops += 1
                elif atoms.columns[l, t + 1] == following:
                    hits += 1
    return total, stops, hits


@jit
def log_predictive(
    columns: np.ndarray, n: int, atoms: Atoms, size: int, skip: int, prior: AtomPrior
) -> float:
    """Compute the log probability of a sequence of columns given the other atoms."""
    others = size - 1 if skip >= 0 else size
    first = 0
    for l in range(size):
        if l != skip and atoms.columns[l, 0] == columns[0]:
            first += 1
    log_probability = math.log(
        (prior.start_mass / prior.n_columns + first) / (prior.start_mass + others)
    )
    mass = prior.stop_mass + prior.step_mass
    for t in range(min(n, prior.max_order - 1)):
        following = columns[t + 1] if t + 1 < n else -1
        total, stops, hits = transitions(atoms, size, skip, columns[t], following, prior.max_order)
        weight = prior.stop_mass + stops if t + 1 == n else prior.step_mass / prior.n_columns + hits
        log_probability += math.log(weight / (mass + total))
    return log_probability


@jit
def draw_following(
    column: int,
    atoms: Atoms,
    size: int,
    skip: int,
    prior: AtomPrior,
    may_stop: bool,
    rng: np.random.Generator,
) -> int:
    """Draw the column that follows ``column``, or possibly -1 (the end) if ``may_stop`` is set."""
    total, stops, _ = transitions(atoms, size, skip, column, -1, prior.max_order)
    u = rng.random() * (
        prior.step_mass + total - stops + (prior.stop_mass + stops if may_stop else 0.0)
    )
    if u < prior.step_mass:
        return int(rng.random() * prior.n_columns)
    u -= prior.step_mass
    for l in range(size):
        if l == skip:
            continue
        for t in range(atoms.length[l] - 1):
            if atoms.columns[l, t] == column:
                u -= 1.0
                if u < 0.0:
                    return atoms.columns[l, t + 1]
    return -1


@jit
def draw_sequence(
    columns: np.ndarray,
    atoms: Atoms,
    size: int,
    skip: int,
    prior: AtomPrior,
    rng: np.random.Generator,
) -> int:
    """Draw a sequence of columns from the predictive distribution, and return its length.

    The length is 0 if a column is drawn twice.
    """
    others = size - 1 if skip >= 0 else size
    u = rng.random() * (prior.start_mass + others)
    if u < prior.start_mass or others == 0:
        columns[0] = int(rng.random() * prior.n_columns)
    else:
        l = min(int(rng.random() * others), others - 1)
        columns[0] = atoms.columns[l + 1 if 0 <= skip <= l else l, 0]
    n = 1
    while n < prior.max_order:
        following = draw_following(columns[n - 1], atoms, size, skip, prior, True, rng)
        if following < 0:
            return n
        if (columns[:n] == following).any():
            return 0
        columns[n] = following
        n += 1
    return n


@jit
def draw_frequencies(omega: np.ndarray, n: int, prior: AtomPrior, rng: np.random.Generator) -> None:
    """Draw the first ``n`` frequencies from the prior."""
    factor = prior.scale / math.sqrt(rng.chisquare(prior.degrees) / prior.degrees)
    for t in range(n):
        omega[t] = factor * rng.standard_normal()


@jit
def draw_one_frequency(
    omega: np.ndarray, n: int, prior: AtomPrior, rng: np.random.Generator
) -> float:
    """Draw one more frequency from its prior, given the first ``n`` frequencies."""
    square = 0.0
    for t in range(n):
        square += (omega[t] / prior.scale) ** 2
    degrees = prior.degrees + n
    scale = prior.scale * math.sqrt((prior.degrees + square) / degrees)
    return scale * rng.standard_normal() / math.sqrt(rng.chisquare(degrees) / degrees)


@jit
def log_density_ratio(new: np.ndarray, old: np.ndarray, n: int, prior: AtomPrior) -> float:
    """Compute the log ratio of the prior densities of two frequency vectors of ``n`` columns."""
    a, b = 0.0, 0.0
    for t in range(n):
        a += new[t] ** 2
        b += old[t] ** 2
    unit = prior.degrees * prior.scale**2
    return -0.5 * (prior.degrees + n) * (math.log1p(a / unit) - math.log1p(b / unit))
