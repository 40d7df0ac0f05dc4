"""Growing feature map phi(x) of sDist: columns and their products, Ma (thesis), eq. (2.20)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..types import ArrayLike, Matrix

DENSE_VALUES = 1 << 24  # maximum number of sparse values to densify: 128 MiB


class FeatureMap:
    """Feature map of the centred and scaled columns of X, followed by their products.

    A product is described by a tuple of ascending column indices, which are repeated for powers:
    (3, 17) is x3 x17, and (3, 3) is x3 squared.

    Parameters
    ----------
    center, scale : ndarray of shape (n_features,)
        Constants that are subtracted from the columns, and constants by which the columns are
        divided. The center of sparse data is 0.

    Attributes
    ----------
    monomials : list of tuple of int
        Column indices of each product. Product i is column ``n_features + i`` of the map.
    monomial_scale : list of float
        Divisor of each product.
    """

    def __init__(self, center: np.ndarray, scale: np.ndarray) -> None:
        self.center = center
        self.scale = scale
        self.monomials: list[tuple[int, ...]] = []
        self.monomial_scale: list[float] = []

    @classmethod
    def fit(cls, X: Matrix, standardize: bool) -> "FeatureMap":
        """Create a map that standardises the columns of X if ``standardize`` is set.

        Otherwise, the columns are unchanged. Constant columns have scale 1.
        """
        p = X.shape[1]
        if not standardize:
            return cls(np.zeros(p, dtype=X.dtype), np.ones(p, dtype=X.dtype))
        if sp.issparse(X):
            center = np.zeros(p)
            mean = np.asarray(X.mean(axis=0)).ravel()
            variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        else:
            center = X.mean(axis=0, dtype=np.float64)
            variance = np.zeros(p)
            for rows in range(0, len(X), 1024):
                variance += ((X[rows : rows + 1024] - center) ** 2).sum(axis=0)
            variance /= len(X)
            mean = center
        constant = variance <= 1e-12 * np.maximum(mean**2 + variance, 1e-300)
        scale = np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0.0)))
        return cls(center.astype(X.dtype), scale.astype(X.dtype))

    def monomial(self, column: int) -> tuple[int, ...]:
        """Return the indices of the columns of X whose product is the given column of the map."""
        return (
            (int(column),) if column < len(self.scale) else self.monomials[column - len(self.scale)]
        )

    def base(self, X: Matrix) -> Matrix:
        """Return the centred and scaled columns of X, as a CSR matrix if X is sparse."""
        return (
            sp.csr_matrix(X @ sp.diags_array(1.0 / self.scale))
            if sp.issparse(X)
            else np.ascontiguousarray((X - self.center) / self.scale)
        )

    def columns(self, X: Matrix, which: Sequence[int]) -> np.ndarray:
        """Compute the columns ``which`` of the map for raw rows X, as a dense array."""
        tuples = [self.monomial(c) for c in which]
        used = sorted({j for t in tuples for j in t})
        place = {j: i for i, j in enumerate(used)}
        part = X[:, used]
        part = part.toarray() if sp.issparse(part) else part
        part = (part - self.center[used]) / self.scale[used]
        out = np.empty((X.shape[0], len(which)), dtype=part.dtype)
        for i, (c, t) in enumerate(zip(which, tuples)):
            out[:, i] = part[:, [place[j] for j in t]].prod(axis=1)
            if c >= len(self.scale):
                out[:, i] /= self.monomial_scale[c - len(self.scale)]
        return out

    def name(self, column: int, input_names: np.ndarray) -> str:
        """Return the name of a column of the map, such as ``x3``, ``x3*x17`` or ``x3^2``."""
        powers = Counter(self.monomial(column))
        return "*".join(
            input_names[j] if e == 1 else f"{input_names[j]}^{e}" for j, e in sorted(powers.items())
        )


class ExpandedColumns:
    """Training rows in the coordinates of a growing :class:`FeatureMap`.

    The columns of X are read in place, as a dense or CSR matrix. At most ``capacity`` products are
    added as dense columns.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, p)
        Raw training rows.
    features : FeatureMap
        Feature map fitted on these rows.
    max_order : int
        Maximum number of factors of a product.
    capacity : int
        Maximum number of products.
    standardize : bool
        Whether to divide each product by its standard deviation over the training rows.
    """

    def __init__(
        self, X: Matrix, features: FeatureMap, max_order: int, capacity: int, standardize: bool
    ) -> None:
        self.features = features
        self.base = features.base(X)
        self._by_column = self.base.tocsc() if sp.issparse(self.base) else None
        self.max_order = max_order
        self.capacity = capacity
        self.standardize = standardize
        self.n_samples, self.n_base = X.shape
        self._extra = np.empty((self.n_samples, 0), dtype=self.base.dtype, order="F")
        self._known: set[tuple[int, ...]] = set()

    @property
    def n_columns(self) -> int:
        """Number of columns of X plus the current number of products."""
        return self.n_base + len(self.features.monomials)

    def times(self, v: np.ndarray) -> np.ndarray:
        """Compute the sum of all columns of the map, weighted by the entries of ``v``."""
        out = self.base @ v[: self.n_base]
        q = self.n_columns - self.n_base
        return out + self._extra[:, :q] @ v[self.n_base :] if q else out

    def transposed_times(self, u: np.ndarray) -> np.ndarray:
        """Compute the inner product of each column of the map with the vector ``u``."""
        head = self.base.T @ u
        q = self.n_columns - self.n_base
        return np.concatenate([head, self._extra[:, :q].T @ u]) if q else head

    def take(self, which: ArrayLike) -> np.ndarray:
        """Return the columns ``which`` as a dense array of shape (n, len(which))."""
        which = np.asarray(which, dtype=np.intp)
        out = np.empty((self.n_samples, len(which)), dtype=self.base.dtype)
        plain = which < self.n_base
        if self._by_column is None:
            out[:, plain] = self.base[:, which[plain]]
        else:
            out[:, plain] = self._by_column[:, which[plain]].toarray()
        out[:, ~plain] = self._extra[:, which[~plain] - self.n_base]
        return out

    def restricted(self, which: np.ndarray) -> "RestrictedColumns":
        """Return the columns ``which``, given in ascending order, as :class:`RestrictedColumns`."""
        plain = which[which < self.n_base]
        base = self.base if len(plain) == self.n_base else self.base[:, plain]
        return RestrictedColumns(base, self._extra[:, which[len(plain) :] - self.n_base])

    def add_products(
        self, left: Sequence[int] | np.ndarray, right: Sequence[int] | np.ndarray
    ) -> None:
        """Add products of the columns ``left`` and ``right``, with at most ``max_order`` factors.

        Products that are constant or already present are skipped.
        """
        for a in left:
            for b in right:
                product = tuple(sorted(self.features.monomial(a) + self.features.monomial(b)))
                full = self.n_columns - self.n_base >= self.capacity
                if full or len(product) > self.max_order or product in self._known:
                    continue
                self._known.add(product)
                self._add(product)

    def _add(self, product: tuple[int, ...]) -> None:
        column = self.take(product).prod(axis=1)
        deviation = float(column.std())
        if deviation <= 1e-6 * float(np.abs(column).max(initial=0.0)) or not np.isfinite(deviation):
            return
        scale = deviation if self.standardize else 1.0
        q = self.n_columns - self.n_base
        if q == self._extra.shape[1]:
            grown = np.empty(
                (self.n_samples, min(self.capacity, max(64, 2 * q))),
                dtype=self._extra.dtype,
                order="F",
            )
            grown[:, :q] = self._extra
            self._extra = grown
        self._extra[:, q] = column / scale
        self.features.monomials.append(product)
        self.features.monomial_scale.append(scale)


class RestrictedColumns:
    """Subset of the columns of the map: dense or CSR columns of X, followed by products."""

    def __init__(self, base: Any, extra: np.ndarray) -> None:
        small = sp.issparse(base) and base.shape[0] * base.shape[1] <= DENSE_VALUES
        self.base = base.toarray() if small else base
        self.extra = extra

    def differences(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Compute the differences between rows i and j, of shape (len(i), n_columns)."""
        part = self.base[i] - self.base[j]
        part = part.toarray() if sp.issparse(part) else part
        return np.hstack([part, self.extra[i] - self.extra[j]]) if self.extra.shape[1] else part
