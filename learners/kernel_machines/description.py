"""Description of atoms in the units of the data, and their features."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from ..common.validation import validated
from ..parameters import check_choice, check_integer, check_real, checked
from ..sklearn_bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from ..types import Matrix, Seed
from .chains import AtomPrior, ChainSamples, atom_features
from .rows import Standardiser

ROWS_AT_ONCE = 10_000  # rows per block in prediction
DEGREES = 5.0  # degrees of freedom of the t prior
# gamma, alpha_0, and the sum of the other alphas (the alphas sum to one in the text)
START_MASS, STOP_MASS, STEP_MASS = 1.0, 0.5, 0.5


@dataclass(eq=False, repr=False, kw_only=True)
class AtomParameters:
    """Parameters of the atoms and of their selection by annealing."""

    n_components: int = checked(50, check_integer, 1)
    max_order: int = checked(3, check_integer, 1)
    frequency_scale: float = checked(1.5, check_real, 0.0, above=True)
    screening: str | None = checked("pairs", check_choice, ("pairs", "triples", None))
    n_bank: int = checked(5000, check_integer, 1)
    n_rounds: int = checked(4, check_integer, 0)


class AtomFeatures(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, AtomParameters
):
    """Transformer that computes the cosines and sines of the atoms in the most probable samples."""

    _standardiser: Standardiser
    _kept: list[ChainSamples]
    max_samples: int | None
    random_state: Seed

    def _prior(self, p: int, expected: float) -> AtomPrior:
        order = min(self.max_order, max(p, 1))
        return AtomPrior(
            p,
            order,
            START_MASS,
            STOP_MASS,
            STEP_MASS,
            float(expected),
            float(self.frequency_scale),
            DEGREES,
        )

    def _some_rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw at most ``max_samples`` of ``n`` row indices, in ascending order."""
        most = n if self.max_samples is None else min(n, self.max_samples)
        return np.arange(n) if most == n else np.sort(rng.choice(n, most, replace=False))

    def _describe_atoms(self, n_features: int) -> None:
        """Set the fitted attributes from the most probable sample of each output."""
        scaler = self._standardiser
        atoms = list(self._best_atoms())
        self.atoms_: list[tuple[int, ...]] = [
            tuple(scaler.usable[columns].tolist()) for columns, _ in atoms
        ]
        at = np.concatenate([np.empty(0, np.int64), *(columns for columns, _ in atoms)])
        row = np.repeat(
            np.arange(len(atoms)), np.array([len(columns) for columns, _ in atoms], np.int64)
        )
        value = np.concatenate([np.empty(0), *(omega for _, omega in atoms)]) / scaler.deviation[at]
        shape = (len(self.atoms_), n_features)
        self.frequencies_ = csr_matrix(
            (value / scaler.unit[at], (row, scaler.usable[at])), shape=shape
        )
        self.phases_ = np.bincount(row, value * scaler.mean[at], minlength=len(self.atoms_))
        self._n_features_out = 2 * len(self.atoms_)
        best = [int(np.argmax(kept.score)) for kept in self._kept]
        weights = [kept.coef[s, : 1 + 2 * kept.size[s]] for kept, s in zip(self._kept, best)]
        self._weights = np.hstack(
            [[weight[:1] for weight in weights], block_diag(*(weight[1:] for weight in weights))]
        )

    def _best_atoms(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the columns and frequencies of each atom in the best sample of each output."""
        for kept in self._kept:
            s = int(np.argmax(kept.score))
            for l in range(kept.size[s]):
                n = kept.length[s, l]
                yield kept.columns[s, l, :n], kept.omega[s, l, :n]

    def _rows(self, X: Matrix) -> np.ndarray:
        check_is_fitted(self)
        return validated(self, X, dtype=np.float64, reset=False)

    def transform(self, X: Matrix) -> np.ndarray:
        """Compute the cosine and sine of each atom in ``atoms_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, 2 n_atoms)
            Cosine and sine of the first atom, followed by those of the second atom, and so on.
        """
        X = self._rows(X)
        result = np.empty((len(X), 2 * len(self.atoms_)))
        for first in range(0, len(X), ROWS_AT_ONCE):
            XT = self._standardiser.columns(X[first : first + ROWS_AT_ONCE])
            phase, features = np.empty(XT.shape[1]), np.empty((2, XT.shape[1]))
            for place, (columns, omega) in enumerate(self._best_atoms()):
                atom_features(columns, omega, len(columns), XT, phase, features)
                result[first : first + ROWS_AT_ONCE, 2 * place : 2 * place + 2] = features.T
        return result
