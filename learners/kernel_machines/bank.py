"""Annealed bank: selection of atoms by annealing from thousands of random sparse frequencies.

In a few additional rounds, candidates are replaced with variations of the remaining atoms. The
variations are moves of the Markov chains, without the acceptance rule.
"""

import numpy as np

from ..compilation import jit
from ..designs.dense import DenseDesign
from ..objective.losses import SquaredLoss
from ..solvers import anneal, annealing_step, as_schedule, step_counts
from .chains import (
    BIRTH,
    COLUMN,
    GAUSSIAN,
    GROW,
    NEIGHBOUR,
    SHRINK,
    WALK,
    AtomPrior,
    Atoms,
    Chain,
    Table,
    atom_features,
    empty_atoms,
    empty_gram,
    propose,
    refresh,
    replace_atom,
    run_chain,
)

N_STEPS, SPEED, MOMENTUM = 40, 30.0, 0.9  # annealing settings (heuristic)
WIDER = 4  # atoms that remain in all rounds but the last, as a multiple of ``n_components``
# Moves that generate candidates, with equal probabilities
CHILDREN = np.array([GROW, SHRINK, COLUMN, NEIGHBOUR, WALK, WALK, BIRTH])
POLISH = 3000  # number of greedy moves
EM_STEPS = 20


@jit
def _fill(
    atoms: Atoms,
    size: int,
    parents: Atoms,
    prior: AtomPrior,
    table: Table,
    kinds: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Fill ``atoms`` after the first ``size`` with new atoms and variations of ``parents``."""
    n_parents = len(parents.length)
    columns, omega = np.zeros(prior.max_order, np.int64), np.zeros(prior.max_order)
    while size < len(atoms.length):
        kind = kinds[int(rng.random() * len(kinds))] if n_parents > 1 else BIRTH
        possible, _, n, _ = propose(
            kind,
            parents,
            n_parents - 1 if kind == BIRTH else n_parents,
            prior,
            table,
            columns,
            omega,
            rng,
        )
        if possible:
            size = replace_atom(atoms, size, -1, n, columns, omega)


@jit
def _bank_features(atoms: Atoms, XT: np.ndarray, out: np.ndarray) -> None:
    phase, pair = np.empty(XT.shape[1]), np.empty((2, XT.shape[1]))
    for l in range(len(atoms.length)):
        atom_features(atoms.columns[l], atoms.omega[l], atoms.length[l], XT, phase, pair)
        out[2 * l : 2 * l + 2] = pair


def anneal_bank(
    XT: np.ndarray,
    targets: np.ndarray,
    prior: AtomPrior,
    tables: list[Table],
    rng: np.random.Generator,
    *,
    n_components: int,
    n_bank: int,
    n_rounds: int,
) -> Atoms:
    """Select atoms (sparse frequencies) from randomly drawn candidates by annealing.

    Parameters
    ----------
    XT : ndarray of shape (p, N)
        Standardised columns.
    targets : ndarray of shape (N, n_outputs)
        Targets with mean 0 and variance 1. The outputs share the atoms.
    prior : AtomPrior
        Prior on the atoms.
    tables : list of Table
        Proposal table for each output.
    rng : Generator
        Random number generator.
    n_components, n_bank, n_rounds : int
        Number of atoms to select, number of candidates per round, and number of rounds after the
        first.

    Returns
    -------
    Atoms
        Selected atoms.
    """
    n = XT.shape[1]
    weight, loss = np.full(n, 1.0 / n), SquaredLoss()
    n_bank = max(n_bank, n_components)
    features = np.empty((2 * n_bank, n), np.float32)
    kept = empty_atoms(1, prior.max_order)
    for step in range(n_rounds + 1):
        atoms = empty_atoms(n_bank, prior.max_order)
        size = len(kept.length) if step else 0
        for mine, given in zip(atoms, kept):
            mine[:size] = given[:size]
        for q, table in enumerate(tables):
            part = Atoms(
                *(values[: size + (q + 1) * (n_bank - size) // len(tables)] for values in atoms)
            )
            _fill(
                part, size + q * (n_bank - size) // len(tables), kept, prior, table, CHILDREN, rng
            )
        _bank_features(atoms, XT, features)
        left = n_components if step == n_rounds else min(WIDER * n_components, n_bank)
        annealed = anneal(
            DenseDesign(features.T, weight),
            targets,
            loss,
            step_counts(as_schedule("inverse", SPEED), n_bank, left, N_STEPS),
            sample_weight=weight,
            learning_rate=annealing_step(loss, weight),
            momentum=MOMENTUM,
            groups=np.repeat(np.arange(n_bank), 2),
        )
        remaining = np.unique(annealed.kept // 2)
        kept = Atoms(*(values[remaining] for values in atoms))
    return kept


def polished(
    likelihood: int,
    XT: np.ndarray,
    y: np.ndarray,
    prior: AtomPrior,
    table: Table,
    rng: np.random.Generator,
    start: Atoms,
    precision: float,
) -> Chain:
    """Improve the selected atoms by greedy moves, and fit their weights.

    The moves remove uninformative columns and adjust the frequencies.

    Parameters
    ----------
    likelihood : int
        Likelihood for the weights, ``GAUSSIAN`` or ``LOGISTIC``. The moves use the Gaussian
        likelihood.
    XT : ndarray of shape (p, N)
        Standardised columns.
    y : ndarray of shape (N,)
        Target, as for :func:`~.chains.sampler.run_chain`.
    prior : AtomPrior
        Prior on the atoms.
    table : Table
        Proposal table.
    rng : Generator
        Random number generator.
    start : Atoms
        Initial atoms.
    precision : float
        Prior precision of the weights.

    Returns
    -------
    Chain
        Chain with a single sample.
    """
    target = y if likelihood == GAUSSIAN else (y - y.mean()) / max(y.std(), 1e-12)
    chain = run_chain(
        GAUSSIAN,
        XT,
        target,
        prior,
        table,
        rng,
        max_components=len(start.length),
        precision=precision,
        n_steps=POLISH,
        burn_in=POLISH - 1,
        n_kept=1,
        start=start,
        greedy=True,
    )
    if likelihood == GAUSSIAN:
        return chain
    kept = chain.kept
    size = int(kept.size[0])
    n = 1 + 2 * size
    gram = empty_gram(XT.shape[1], size)
    for l in range(size):
        pair = gram.features[1 + 2 * l : 3 + 2 * l]
        atom_features(kept.columns[0, l], kept.omega[0, l], kept.length[0, l], XT, gram.phase, pair)
    gram.target[:] = y - 0.5
    scores = np.zeros(len(y))
    for _ in range(EM_STEPS):  # alternate between weights and Polya-Gamma means
        gram.weight[:] = np.where(
            np.abs(scores) > 1e-6,
            np.tanh(0.5 * scores) / (2.0 * np.where(scores == 0, 1.0, scores)),
            0.25,
        )
        refresh(gram, size, precision)
        kept.coef[0, :n] = gram.inverse[:n, :n] @ gram.projection[:n]
        scores = kept.coef[0, :n] @ gram.features[:n]
    return chain
