"""Reversible-jump Markov chains over sparse frequencies, with their prior and diagnostics."""

from .atoms import AtomPrior, Atoms, empty_atoms
from .diagnostics import effective_sample_size, r_hat
from .gram import atom_features, empty_gram, refresh
from .moves import BIRTH, COLUMN, GROW, NAMES, NEIGHBOUR, SHRINK, WALK, propose
from .sampler import (
    GAUSSIAN,
    LOGISTIC,
    Chain,
    ChainSamples,
    empty_samples,
    replace_atom,
    run_chain,
)
from .screening import Table, screen

__all__ = [
    "BIRTH",
    "COLUMN",
    "GAUSSIAN",
    "GROW",
    "LOGISTIC",
    "NAMES",
    "NEIGHBOUR",
    "SHRINK",
    "WALK",
    "AtomPrior",
    "Atoms",
    "Chain",
    "ChainSamples",
    "Table",
    "atom_features",
    "effective_sample_size",
    "empty_atoms",
    "empty_gram",
    "empty_samples",
    "propose",
    "r_hat",
    "refresh",
    "replace_atom",
    "run_chain",
    "screen",
]
