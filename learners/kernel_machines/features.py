"""Transformer that computes sparse Fourier features, for use with any linear model."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from ..common import class_codes, unit_variance, validated
from ..parameters import check_declared, check_integer, checked, limits
from ..types import ArrayLike, Matrix, Seed
from .bank import anneal_bank
from .chains import empty_samples, screen
from .description import AtomFeatures
from .rows import Standardiser

EXPECTED = 5.0  # prior number of atoms, which the bank ignores


@dataclass(eq=False, repr=False, kw_only=True)
class SparseFourierFeatures(AtomFeatures):
    """Transformer that computes sparse Fourier features, selected by annealing.

    From a bank of random atoms (sparse frequency vectors omega_l), feature selection with annealing
    chooses those that minimise the squared error::

        mean_i (y_i - constant - sum_l (weights of atom l) . (cos, sin)(omega_l . x_i))^2

    The targets y_i are scaled to unit variance. Labels are coded as 0 and 1; for more than two
    classes, the one-vs-rest errors are added. The transformer is supervised, and any linear model
    can follow it. The features approximate a learnt translation-invariant kernel (section 4.2 of
    [1]_). Columns are standardised internally.

    Parameters
    ----------
    n_components : int, default 50
        Number of atoms to select, at least 1. Each atom yields two features.
    max_order : int, default 3
        Maximum number of columns per atom, at least 1.
    frequency_scale : float, default 1.5
        Positive scale of the frequencies, in radians per standard deviation of a column.
    screening : {"pairs", "triples"} or None, default "pairs"
        Table of the columns and products whose Fourier features correlate most with the target.
        Half of the random candidates are drawn from it; see :class:`SparseFourierClassifier`.
    n_bank : int, default 5000
        Number of candidates per round, at least 1. Each candidate requires 8 bytes per row.
    n_rounds : int, default 4
        Non-negative number of additional rounds, in which candidates similar to the remaining atoms
        are drawn.
    max_samples : int or None, default 10000
        Maximum number of rows, at least 1. Larger data sets are subsampled at random. None uses all
        rows.
    random_state : int, RandomState or None, default None
        Random seed for rows and candidates.

    Attributes
    ----------
    atoms_ : list of tuple of int
        Columns of each atom.
    frequencies_ : csr_matrix of shape (n_atoms, n_features)
        Frequencies of the atoms in radians per unit of X.
    phases_ : ndarray of shape (n_atoms,)
        Phases of the atoms: the features are the cosine and sine of ``X @ frequencies_.T -
        phases_``.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from annealed.learners import SparseFourierFeatures
    >>> X = np.random.default_rng(0).standard_normal((600, 100))
    >>> y = X[:, 3] * X[:, 7] > 0
    >>> model = make_pipeline(SparseFourierFeatures(10, random_state=0), LogisticRegression())
    >>> model = model.fit(X[:400], y[:400])
    >>> all({3, 7} <= set(atom) for atom in model[0].atoms_)
    True
    """

    n_components: int = field(default=50, kw_only=False, metadata=limits(check_integer, 1))
    max_samples: int | None = checked(10_000, check_integer, 1, unless=(None,))
    random_state: Seed = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Select the atoms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels of any type, or numeric targets. Floats are treated as numeric targets if any of
            them has a fractional part; all other values, such as integers, are treated as labels.

        Returns
        -------
        self
            The fitted transformer.

        Raises
        ------
        ValueError
            If y contains a single class, X contains NaN, or a parameter is out of range.
        """
        check_declared(self)
        X, y = validated(self, X, y, dtype=np.float64)
        if type_of_target(y) == "continuous":
            targets = np.asarray(y, dtype=np.float64)[:, None]
        else:
            classes, codes = class_codes(y)
            targets = np.eye(len(classes))[codes][:, 1 if len(classes) == 2 else 0 :]
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        rows = self._some_rows(rng, len(X))
        X, targets = X[rows], targets[rows]
        targets = unit_variance(targets, np.full(len(X), 1.0 / len(X)))[0]
        self._standardiser = Standardiser.of(X)
        XT = self._standardiser.columns(X)
        prior = self._prior(len(XT), EXPECTED)
        kept = empty_samples(1, self.n_components, prior.max_order)
        if len(XT):
            tables = [
                screen(XT, target, self.frequency_scale, self.screening, prior.max_order)
                for target in targets.T
            ]
            sizes = {
                "n_components": self.n_components,
                "n_bank": self.n_bank,
                "n_rounds": self.n_rounds,
            }
            kept.columns[0], kept.length[0], kept.omega[0] = anneal_bank(
                XT, targets, prior, tables, rng, **sizes
            )
            kept.size[0] = self.n_components
        self._kept = [kept]
        self._describe_atoms(X.shape[1])
        return self

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return the columns that at least one atom uses.

        Parameters
        ----------
        indices : bool, default False
            Whether to return column indices instead of a mask.

        Returns
        -------
        ndarray
            Mask of shape (n_features,), or column indices.
        """
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.frequencies_.nonzero()[1]] = True
        return np.flatnonzero(mask) if indices else mask
