"""Discriminant of Ma (thesis), (4.4), from the kernels to the nearest row of each class.

The discriminant is the kernel to the nearest row of one class minus that to the nearest row of the
other. The kernel is the mean of cos(omega'(x - x')) over the atoms, with equal weights. Labels are
Bernoulli with the logistic function of the discriminant; in training, the neighbours of a row
exclude the row itself. A move takes O(N^2) time.
"""

import math
from dataclasses import dataclass

import numpy as np
from annealed.learners.compilation import jit
from annealed.learners.kernel_machines.chains.atoms import AtomPrior, empty_atoms
from annealed.learners.kernel_machines.chains.gram import atom_features
from annealed.learners.kernel_machines.chains.moves import PROBABILITIES, pick, propose
from annealed.learners.kernel_machines.chains.sampler import (
    Chain,
    empty_samples,
    log_prior,
    replace_atom,
)
from annealed.learners.kernel_machines.chains.screening import Table
from annealed.learners.kernel_machines.estimators import SparseFourierClassifier
from annealed.learners.types import Matrix

MAX_ROWS = 2000  # maximum number of rows of a chain, which stores N^2 numbers
MAX_KEPT = 50


@dataclass
class NeighbourChain(Chain):
    """Samples of a chain, with the columns (p, N) and labels (N,), 0 or 1, of its rows."""

    columns: np.ndarray
    labels: np.ndarray


class NeighbourFourierClassifier(SparseFourierClassifier):
    """:class:`SparseFourierClassifier` with the discriminant of Ma (thesis), for at most 2,000
    rows.

    It requires ``solver="mcmc"`` and ``likelihood="logistic"``; ``coef_`` and ``intercept_`` have
    no meaning.
    """

    def _chain(
        self, likelihood: int, XT: Matrix, target: np.ndarray, prior: AtomPrior, table: Table, rng
    ) -> Chain:
        if len(target) > MAX_ROWS:
            rows = np.sort(rng.choice(len(target), MAX_ROWS, replace=False))
            XT, target = np.ascontiguousarray(XT[:, rows]), target[rows]
        order = np.argsort(-target, kind="stable")  # the positive class comes first
        n_components, n_steps, burn_in = (
            self.max_components if len(XT) else 0,
            self.n_steps,
            self._burn_in(),
        )
        kept = empty_samples(min(MAX_KEPT, n_steps - burn_in), n_components, prior.max_order)
        trace, counts = (
            np.zeros((min(1000, n_steps), 2)),
            np.zeros((len(PROBABILITIES), 2), np.int64),
        )
        state = empty_atoms(n_components, prior.max_order), prior, table, np.cumsum(PROBABILITIES)
        ordered = np.ascontiguousarray(XT[:, order])
        _run(ordered, int(target.sum()), *state, n_steps, burn_in, rng, kept, trace, counts)
        return NeighbourChain(kept, trace, counts[:, 0], counts[:, 1], XT, target)

    def _mean_scores(self, X: Matrix, squash: bool) -> np.ndarray:
        X = self._rows(X)
        scores = np.zeros((len(X), len(self._chains)))
        for first in range(0, len(X), MAX_ROWS):
            part = slice(first, first + MAX_ROWS)
            XT = self._standardiser.columns(X[part])
            for q, chains in enumerate(self._chains):
                for chain in chains:
                    assert isinstance(chain, NeighbourChain)
                    scores[part, q] += neighbour_probabilities(chain, XT) / len(chains)
        return scores


@jit(fastmath=True)
def _largest(row, first, last):
    largest = -1e300
    for j in range(first, last):
        largest = max(largest, row[j])
    return largest


@jit(fastmath=True)
def _log_likelihood(kernel, size, positive):
    """Compute the log-likelihood of the labels from the sums of cosines (N, N); the first
    ``positive`` rows have label 1."""
    total, n = 0.0, len(kernel)
    for i in range(n):
        diagonal = kernel[i, i]
        kernel[i, i] = -1e300
        first, second = _largest(kernel[i], 0, positive), _largest(kernel[i], positive, n)
        kernel[i, i] = diagonal
        f = 0.0 if size == 0 or first < -1e200 or second < -1e200 else (first - second) / size
        f = f if i < positive else -f
        total -= math.log1p(math.exp(-f))
    return total


@jit(fastmath=True)
def _add(kernel, source, pair, sign):
    """Set kernel = source + sign (c c' + s s')."""
    c, s = pair[0], pair[1]
    for i in range(len(kernel)):
        a, b = sign * c[i], sign * s[i]
        for j in range(len(kernel)):
            kernel[i, j] = source[i, j] + a * c[j] + b * s[j]


@jit
def _run(XT, positive, atoms, prior, table, cumulative, n_steps, burn_in, rng, kept, trace, counts):
    n_rows, size = (
        XT.shape[1],
        np.int64(0),
    )  # a literal would compile all called functions a second time
    columns, omega = np.zeros(prior.max_order, np.int64), np.zeros(prior.max_order)
    kernel, proposed = np.zeros((n_rows, n_rows)), np.zeros((n_rows, n_rows))
    phase, pair = np.zeros(n_rows), np.zeros((2, n_rows))
    value = _log_likelihood(kernel, size, positive)
    n_traced, n_kept = 0, 0
    for step in range(n_steps):
        kind = pick(cumulative, rng)
        counts[kind, 0] += 1
        possible, removed, n, ratio = propose(kind, atoms, size, prior, table, columns, omega, rng)
        if possible:
            source = kernel
            if removed >= 0:
                atom_features(
                    atoms.columns[removed],
                    atoms.omega[removed],
                    atoms.length[removed],
                    XT,
                    phase,
                    pair,
                )
                _add(proposed, source, pair, -1.0)
                source = proposed
            if n > 0:
                atom_features(columns, omega, n, XT, phase, pair)
                _add(proposed, source, pair, 1.0)
            after = size + (n > 0) - (removed >= 0)
            new = _log_likelihood(proposed, after, positive)
            if ratio + new - value > math.log(1.0 - rng.random()):
                counts[kind, 1] += 1
                value = new
                kernel, proposed = proposed, kernel
                size = replace_atom(atoms, size, removed, n, columns, omega)
        if (step + 1) * len(trace) >= (n_traced + 1) * n_steps:
            trace[n_traced, 0], trace[n_traced, 1] = value, size
            n_traced += 1
        if step >= burn_in and (step + 1 - burn_in) * len(kept.size) >= (n_kept + 1) * (
            n_steps - burn_in
        ):
            kept.columns[n_kept, :size] = atoms.columns[:size]
            kept.length[n_kept, :size] = atoms.length[:size]
            kept.omega[n_kept, :size] = atoms.omega[:size]
            kept.size[n_kept] = size
            kept.score[n_kept] = value + log_prior(atoms, size, prior)
            n_kept += 1


def neighbour_probabilities(chain: NeighbourChain, XT: np.ndarray) -> np.ndarray:
    """Return the mean probability (n,) of label 1 over the samples of one chain, for new rows given
    as columns (p, n).
    """
    kept, train, y = chain.kept, chain.columns, chain.labels
    total = np.zeros(XT.shape[1])
    for s in range(len(kept.size)):
        size = int(kept.size[s])
        known, new = np.empty((2 * size, train.shape[1])), np.empty((2 * size, XT.shape[1]))
        for data, features in ((train, known), (XT, new)):
            phase = np.empty(data.shape[1])
            for l in range(size):
                atom = kept.columns[s, l], kept.omega[s, l], int(kept.length[s, l])
                atom_features(*atom, data, phase, features[2 * l : 2 * l + 2])
        kernel = new.T @ known / max(size, 1)
        total += 1.0 / (
            1.0 + np.exp(-(kernel[:, y > 0].max(axis=1) - kernel[:, y == 0].max(axis=1)))
        )
    return total / len(kept.size)
