"""Reversible-jump Markov chains over atoms, with the weights integrated out."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...compilation import jit
from .atoms import AtomPrior, Atoms, empty_atoms, log_predictive
from .gram import (
    INTERCEPT_PRECISION,
    REFRESH,
    Gram,
    atom_features,
    commit,
    empty_gram,
    evaluate,
    refresh,
)
from .moves import PROBABILITIES, pick, propose
from .polya_gamma import polya_gamma
from .screening import Table

PRIOR_ONLY, GAUSSIAN, LOGISTIC = range(3)
AUGMENT = 20  # moves between draws of the Polya-Gamma variables
# inverse gamma prior of the noise variance, for a target of variance 1 (heuristic)
NOISE_SHAPE, NOISE_RATE = 1.0, 0.25


class ChainSamples(NamedTuple):
    """Stored samples of a chain."""

    columns: np.ndarray  # (n_kept, max_components, max_order) int64
    length: np.ndarray  # (n_kept, max_components) int64
    omega: np.ndarray  # (n_kept, max_components, max_order)
    coef: np.ndarray  # (n_kept, 1 + 2 max_components)
    size: np.ndarray  # (n_kept,) int64
    score: np.ndarray  # (n_kept,) log marginal likelihood plus log prior of the columns


@dataclass
class Chain:
    """Result of running a chain."""

    kept: ChainSamples
    trace: np.ndarray  # (n_traced, 2): log likelihood and number of atoms during the whole run
    tried: np.ndarray  # (9,) number of proposals per move
    accepted: np.ndarray  # (9,) number of accepted proposals


def empty_samples(n_kept: int, max_components: int, max_order: int) -> ChainSamples:
    """Allocate memory for samples."""
    shape = (n_kept, max_components, max_order)
    columns, length = np.full(shape, -1, np.int64), np.zeros(shape[:2], np.int64)
    coef, size = np.zeros((n_kept, 1 + 2 * max_components)), np.zeros(n_kept, np.int64)
    return ChainSamples(columns, length, np.zeros(shape), coef, size, np.zeros(n_kept))


def run_chain(
    likelihood: int,
    XT: np.ndarray,
    y: np.ndarray,
    prior: AtomPrior,
    table: Table,
    rng: np.random.Generator,
    *,
    max_components: int,
    precision: float,
    n_steps: int,
    burn_in: int,
    n_kept: int,
    start: Atoms | None = None,
    probabilities: np.ndarray = PROBABILITIES,
    greedy: bool = False,
) -> Chain:
    """Run one chain.

    Parameters
    ----------
    likelihood : int
        ``GAUSSIAN`` (y has mean 0 and variance 1), ``LOGISTIC`` (y is 0 or 1) or ``PRIOR_ONLY`` (y
        is not used).
    XT : ndarray of shape (p, N)
        Standardised columns.
    y : ndarray of shape (N,)
        Target, in the form that ``likelihood`` requires.
    prior : AtomPrior
        Prior on the atoms.
    table : Table
        Proposal table.
    rng : Generator
        Random number generator.
    max_components : int
        Maximum number of atoms.
    precision : float
        Prior precision of the weights. Their prior is N(0, noise variance / precision) for a
        Gaussian likelihood and N(0, 1 / precision) for a logistic likelihood.
    n_steps, burn_in : int
        Total number of moves, and number of moves before the first stored sample.
    n_kept : int
        Number of samples to store, evenly spaced over the moves after burn-in.
    start : Atoms or None
        Initial atoms; None means no atoms.
    probabilities : ndarray of shape (9,)
        Probability of each type of move.
    greedy : bool
        Whether to accept only moves that improve the posterior.

    Returns
    -------
    Chain
        Samples, trace and acceptance counts of the chain.
    """
    gram = empty_gram(XT.shape[1], max_components)
    atoms = empty_atoms(max_components, prior.max_order)
    size = 0
    if start is not None:
        size = min(len(start.length), max_components)
        for mine, given in zip(atoms, start):
            mine[:size] = given[:size]
    kept = empty_samples(n_kept, max_components, prior.max_order)
    n_traced = min(1000, n_steps)
    trace, counts = np.zeros((n_traced, 2)), np.zeros((len(PROBABILITIES), 2), np.int64)
    gram.target[:] = y - 0.5 if likelihood == LOGISTIC else y
    cumulative = np.cumsum(probabilities)
    mode = (likelihood, greedy, n_steps, burn_in)
    y = np.ascontiguousarray(y)  # a single memory layout, so that a single variant is compiled
    _run(
        mode,
        XT,
        y,
        atoms,
        size,
        prior,
        table,
        gram,
        precision,
        cumulative,
        rng,
        kept,
        trace,
        counts,
    )
    return Chain(kept, trace, counts[:, 0], counts[:, 1])


@jit
def _draw_coef(gram: Gram, size: int, coef: np.ndarray, rng: np.random.Generator) -> None:
    """Draw the weights from N(A^-1 c, A^-1)."""
    n = 1 + 2 * size
    _mean_coef(gram, size, coef)
    L = gram.reduced
    for j in range(n):
        for i in range(j, n):
            total = gram.inverse[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(total, 1e-300)) if i == j else total / L[j, j]
    for j in range(n):
        noise = rng.standard_normal()
        for i in range(j, n):
            coef[i] += L[i, j] * noise


@jit
def _mean_coef(gram: Gram, size: int, coef: np.ndarray) -> None:
    n = 1 + 2 * size
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += gram.inverse[i, j] * gram.projection[j]
        coef[i] = total


@jit(fastmath=True)
def _scores(gram: Gram, size: int, coef: np.ndarray, out: np.ndarray) -> None:
    out[:] = coef[0]
    for j in range(1, 1 + 2 * size):
        row, b = gram.features[j], coef[j]
        for i in range(len(out)):
            out[i] += b * row[i]


@jit
def _augment(
    gram: Gram, size: int, coef: np.ndarray, rng: np.random.Generator, precision: float
) -> None:
    """Draw the weights, draw the Polya-Gamma variables given the weights, and refactorise."""
    _draw_coef(gram, size, coef, rng)
    _scores(gram, size, coef, gram.phase)
    for i in range(len(gram.weight)):
        gram.weight[i] = polya_gamma(gram.phase[i], rng)
    refresh(gram, size, precision)


@jit
def _log_likelihood(
    likelihood: int,
    gram: Gram,
    y: np.ndarray,
    size: int,
    precision: float,
    square: float,
    coef: np.ndarray,
) -> float:
    """Compute the log likelihood, up to a constant if Gaussian.

    The Gaussian likelihood is marginal. The logistic likelihood is evaluated at the mean weights,
    which are written to ``coef``.
    """
    if likelihood == GAUSSIAN:
        rest = max(NOISE_RATE + 0.5 * (square - gram.scalars[1]), 1e-300)
        determinant = 0.5 * (
            math.log(INTERCEPT_PRECISION) + 2 * size * math.log(precision) - gram.scalars[0]
        )
        return determinant - (NOISE_SHAPE + 0.5 * len(y)) * math.log(rest)
    _mean_coef(gram, size, coef)
    _scores(gram, size, coef, gram.phase)
    total = 0.0
    for i in range(len(y)):
        f = gram.phase[i]
        total += y[i] * f - max(f, 0.0) - math.log1p(math.exp(-abs(f)))
    return total


@jit
def log_prior(atoms: Atoms, size: int, prior: AtomPrior) -> float:
    """Compute the log prior of the number and the columns of the atoms, up to a constant."""
    total = size * math.log(prior.expected) - math.lgamma(size + 1.0)
    for l in range(size):
        total += log_predictive(atoms.columns[l], atoms.length[l], atoms, l, -1, prior)
    return total


@jit
def replace_atom(
    atoms: Atoms, size: int, removed: int, n: int, columns: np.ndarray, omega: np.ndarray
) -> int:
    """Apply a move to the atoms, and return the new number of atoms."""
    if n == 0:
        last = size - 1
        atoms.columns[removed] = atoms.columns[last]
        atoms.omega[removed] = atoms.omega[last]
        atoms.length[removed] = atoms.length[last]
        return last
    place = size if removed < 0 else removed
    atoms.columns[place, :n] = columns[:n]
    atoms.omega[place, :n] = omega[:n]
    atoms.length[place] = n
    return size + 1 if removed < 0 else size


@jit
def _run(
    mode: tuple[int, bool, int, int],
    XT: np.ndarray,
    y: np.ndarray,
    atoms: Atoms,
    size: int,
    prior: AtomPrior,
    table: Table,
    gram: Gram,
    precision: float,
    cumulative: np.ndarray,
    rng: np.random.Generator,
    kept: ChainSamples,
    trace: np.ndarray,
    counts: np.ndarray,
) -> None:
    likelihood, greedy, n_steps, burn_in = mode
    columns, omega = np.zeros(prior.max_order, np.int64), np.zeros(prior.max_order)
    coef = np.zeros(len(gram.features))
    square, power = 0.0, NOISE_SHAPE + 0.5 * len(y)
    for i in range(len(y)):
        square += y[i] * y[i]
    if likelihood != PRIOR_ONLY:
        for l in range(size):
            atom_features(
                atoms.columns[l],
                atoms.omega[l],
                atoms.length[l],
                XT,
                gram.phase,
                gram.features[1 + 2 * l : 3 + 2 * l],
            )
        if likelihood == LOGISTIC:
            gram.weight[:] = 0.25
        refresh(gram, size, precision)
    n_accepted, n_traced, n_kept = 0, 0, 0
    for step in range(n_steps):
        kind = pick(cumulative, rng)
        counts[kind, 0] += 1
        possible, removed, n, ratio = propose(kind, atoms, size, prior, table, columns, omega, rng)
        if possible:
            if likelihood != PRIOR_ONLY:
                if n > 0:
                    atom_features(columns, omega, n, XT, gram.phase, gram.added)
                logdet, quad = evaluate(
                    gram, size, removed, n > 0, precision, likelihood == LOGISTIC
                )
                ratio += ((n > 0) - (removed >= 0)) * math.log(precision) - 0.5 * logdet
                if likelihood == GAUSSIAN:
                    rest = NOISE_RATE + 0.5 * (square - gram.scalars[1])
                    ratio -= power * math.log(max(rest - 0.5 * quad, 1e-300) / max(rest, 1e-300))
                else:
                    ratio += 0.5 * quad
            if ratio > (0.0 if greedy else math.log(1.0 - rng.random())):
                counts[kind, 1] += 1
                if likelihood != PRIOR_ONLY:
                    commit(gram, size, removed, n > 0, logdet, quad)
                size = replace_atom(atoms, size, removed, n, columns, omega)
                n_accepted += 1
                if likelihood == GAUSSIAN and n_accepted % REFRESH == 0:
                    refresh(gram, size, precision)
        if likelihood == LOGISTIC and step % AUGMENT == AUGMENT - 1:
            _augment(gram, size, coef, rng, precision)
        if (step + 1) * len(trace) >= (n_traced + 1) * n_steps:
            trace[n_traced, 1] = size
            if likelihood != PRIOR_ONLY:
                trace[n_traced, 0] = _log_likelihood(
                    likelihood, gram, y, size, precision, square, coef
                )
            n_traced += 1
        if step >= burn_in and (step + 1 - burn_in) * len(kept.size) >= (n_kept + 1) * (
            n_steps - burn_in
        ):
            kept.columns[n_kept, :size] = atoms.columns[:size]
            kept.length[n_kept, :size] = atoms.length[:size]
            kept.omega[n_kept, :size] = atoms.omega[:size]
            kept.size[n_kept] = size
            kept.score[n_kept] = log_prior(atoms, size, prior)
            if likelihood != PRIOR_ONLY:
                kept.score[n_kept] += _log_likelihood(
                    likelihood, gram, y, size, precision, square, kept.coef[n_kept]
                )
                if likelihood == LOGISTIC:
                    _draw_coef(gram, size, kept.coef[n_kept], rng)
                else:
                    _mean_coef(gram, size, kept.coef[n_kept])
            n_kept += 1
