"""Atoms in the units of the data, and the features that they make."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..types import Matrix, Seed
from .chains.gram import atom_features
from .chains.sampler import ChainSamples
from .rows import Standardiser

ROWS_AT_ONCE = 10_000  # of a prediction
DEGREES = 5.0  # of freedom of the frequencies
START_MASS, STOP_MASS, STEP_MASS = 1.0, 0.5, 0.5  # gamma, alpha_0 and the sum of the other alphas: those sum to one in the text


class AtomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformer to the cos and sin of the atoms of the best kept sample of each output."""

    _standardiser: Standardiser
    _kept: list[ChainSamples]
    n_components: int
    max_order: int
    frequency_scale: float
    screening: str | None
    n_bank: int
    n_rounds: int
    max_samples: int | None
    random_state: Seed

    def _describe_atoms(self, n_features: int) -> None:
        """The kept sample of the greatest posterior probability of each output."""
        scaler = self._standardiser
        best = [int(np.argmax(kept.score)) for kept in self._kept]
        self.atoms_: list[tuple[int, ...]] = []
        weights, values, rows, columns = [], [], [], []
        for kept, s in zip(self._kept, best):
            size = kept.size[s]
            weights.append(kept.coef[s, : 1 + 2 * size])
            for l in range(size):
                n = kept.length[s, l]
                columns.append(kept.columns[s, l, :n])
                rows.append(np.full(n, len(self.atoms_)))
                values.append(kept.omega[s, l, :n])
                self.atoms_.append(tuple(int(j) for j in scaler.usable[columns[-1]]))
        at = np.concatenate([np.empty(0, np.int64), *columns]).astype(np.int64)
        row = np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)
        value = np.concatenate([np.empty(0), *values]) / scaler.deviation[at]
        shape = (len(self.atoms_), n_features)
        self.frequencies_ = csr_matrix((value / scaler.unit[at], (row, scaler.usable[at])), shape=shape)
        self.phases_ = np.bincount(row, value * scaler.mean[at], minlength=len(self.atoms_))
        self._n_features_out = 2 * len(self.atoms_)
        self._weights = np.zeros((len(weights), 1 + 2 * len(self.atoms_)))
        first = 1
        for q, weight in enumerate(weights):
            self._weights[q, 0] = weight[0]
            self._weights[q, first : first + len(weight) - 1] = weight[1:]
            first += len(weight) - 1

    def _rows(self, X: Matrix) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)

    def transform(self, X: Matrix) -> np.ndarray:
        """Cos and sin of each of ``atoms_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, 2 n_atoms)
            Cos and sin of the first atom, of the second, and so on.
        """
        X = self._rows(X)
        found = np.empty((len(X), 2 * len(self.atoms_)))
        for first in range(0, len(X), ROWS_AT_ONCE):
            XT = self._standardiser.columns(X[first : first + ROWS_AT_ONCE])
            phase, features = np.empty(XT.shape[1]), np.empty((2, XT.shape[1]))
            place = 0
            for kept in self._kept:
                s = int(np.argmax(kept.score))
                for l in range(kept.size[s]):
                    atom_features(kept.columns[s, l], kept.omega[s, l], kept.length[s, l], XT, phase, features)
                    found[first : first + ROWS_AT_ONCE, place : place + 2] = features.T
                    place += 2
        return found
