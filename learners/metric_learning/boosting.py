"""Boosting of a metric W = sum_m w_m xi_m xi_m', as in Algorithm 2.2 of Ma (thesis).

Each step adds one sparse matrix of rank one, with weight w_m and unit vector xi_m.
"""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..objective.losses import ExponentialLoss
from ..types import Matrix
from .directions import margins, power_step
from .feature_map import ExpandedColumns
from .neighbours import same_and_other_neighbours
from .stochastic_direction import sgd_step

SOLVERS = {"power": power_step, "sgd": sgd_step}
LOSS = ExponentialLoss()


@dataclass
class SparseMetric:
    """Positive semi-definite matrix on a few columns of a feature map.

    Parameters
    ----------
    columns : list of int
        Columns of the map in the order of first use.
    matrix : ndarray of shape (len(columns), len(columns))
        Matrix W on these columns.
    """

    columns: list[int] = field(default_factory=list)
    matrix: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, support: np.ndarray, values: np.ndarray, weight: float) -> None:
        """Add ``weight * xi xi'``, where xi has the given values in the columns ``support``."""
        new = [int(c) for c in support if c not in self.columns]
        self.columns = self.columns + new
        self.matrix = np.pad(self.matrix, (0, len(new)))
        at = [self.columns.index(c) for c in support]
        self.matrix[np.ix_(at, at)] += weight * np.outer(values, values)

    def factor(self) -> np.ndarray:
        """Return the factor L of W = L'L, of shape (rank, len(columns)), strongest row first.

        The entry of largest absolute value in each row is positive.
        """
        if not self.columns:
            return np.zeros((0, 0))
        values, vectors = np.linalg.eigh(self.matrix)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > 1e-10 * max(values[0], 1e-300)
        L = (vectors[:, kept] * np.sqrt(values[kept])).T
        signs = np.sign(L[np.arange(len(L)), np.abs(L).argmax(axis=1)])
        return L * signs[:, None]

    @classmethod
    def of(cls, path: Sequence[tuple[np.ndarray, np.ndarray, float]]) -> "SparseMetric":
        """Create the metric as the sum of the terms (support, values, weight) of a path."""
        metric = cls()
        for support, values, weight in path:
            metric.add(support, values, weight)
        return metric

    def trimmed(self, n_columns: int, variance: np.ndarray) -> "SparseMetric":
        """Restrict the metric to the ``n_columns`` columns that contribute most to the distance.

        The contribution of column j is proportional to W_jj times its variance. ``variance`` is
        computed on the training rows, so that the choice does not depend on the column units. The
        resulting submatrix is positive semi-definite.
        """
        kept = np.sort(np.argsort(-np.diag(self.matrix) * variance, kind="stable")[:n_columns])
        return SparseMetric([self.columns[i] for i in kept], self.matrix[np.ix_(kept, kept)])


def with_coordinates(base: Matrix, Z: np.ndarray) -> np.ndarray:
    """Return the standardised columns followed by the coordinates Z, for the case W_0 = I."""
    return np.hstack([base.toarray() if sp.issparse(base) else base, Z])


def best_step(g: np.ndarray, weight: np.ndarray, n_bisections: int = 40) -> float:
    """Minimise sum_i weight_i exp(-w g_i), eq. (2.13) of Ma (thesis), over w >= 0 by bisection.

    If all g_i > 0, the sum has no minimum. The step w is then bounded by ``10 / mean |g|``, which
    corresponds to a loss of e^-10.
    """

    def falls(w: float) -> bool:
        return -float((weight * g) @ LOSS.margin_slope(w * g)) > 0.0

    if not float(weight @ g) > 0.0:
        return 0.0
    low, high = 0.0, 10.0 / float(np.abs(g).mean())
    if falls(high):
        return high
    for _ in range(n_bisections):
        middle = 0.5 * (low + high)
        if falls(middle):
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


class MetricBooster:
    """Run of Algorithm 2.2 of Ma (thesis), in which each :meth:`step` adds a rank-one matrix.

    Parameters
    ----------
    columns : ExpandedColumns
        Training rows in the growing feature map.
    classes : ndarray of shape (n,), int
        Class codes.
    model : SDist
        Estimator that provides the parameters.
    n_neighbors : int
        Number of neighbours of the same class, and number of neighbours of other classes.
    random_state : RandomState
        Random number generator for bagging, column subsets and stochastic steps.

    Attributes
    ----------
    metric : SparseMetric
        Current metric.
    margin : ndarray of shape (n,)
        Margin of each row: mean squared distance to its neighbours in other classes minus that to
        its neighbours in its own class.
    path : list of (support, values, weight)
        Rank-one terms, one per step.
    leading : ndarray or None
        Dense leading eigenvector of the last step, from which the next step starts.
    since_update : int
        Number of steps since the last search for neighbours.
    in_bag : ndarray of bool, shape (n,)
        Rows used by the last step.
    oob_improvement : float
        Amount by which the last step decreased the mean out-of-bag loss.
    """

    # products per step: strongest new columns times strongest of all (heuristic)
    n_expanders, n_partners = 3, 60
    # consecutive random draws of rows, columns or starts without a better direction that end a run
    # (heuristic)
    n_retries = 10

    def __init__(
        self,
        columns: ExpandedColumns,
        classes: np.ndarray,
        model: Any,
        n_neighbors: int,
        random_state: np.random.RandomState,
    ) -> None:
        p = columns.n_base
        self.columns = columns
        self.classes = classes
        self.model = model
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.kappa = (
            min(model.kappa, p)
            if isinstance(model.kappa, numbers.Integral)
            else max(1, round(model.kappa * p))
        )
        self.feature_fraction = (
            p**-0.5 if model.feature_fraction == "sqrt" else model.feature_fraction
        )
        self.identity = model.initial == "identity"
        self.find_direction = SOLVERS[model.solver]
        self.random = model.bagging < 1.0 or self.feature_fraction < 1.0 or model.solver == "sgd"
        self.metric = SparseMetric()
        self.path: list[tuple[np.ndarray, np.ndarray, float]] = []
        self.in_bag = np.ones(columns.n_samples, dtype=bool)
        self.leading = None
        self.since_update = 0
        self.oob_improvement = 0.0
        self._find_neighbours(columns.base)

    def embedding(self) -> np.ndarray:
        """Map the training rows to the learnt subspace; the result has shape (n, rank)."""
        Z = self.columns.take(self.metric.columns) @ self.metric.factor().T.astype(
            self.columns.base.dtype
        )
        return np.ascontiguousarray(with_coordinates(self.columns.base, Z) if self.identity else Z)

    def _find_neighbours(self, Z: np.ndarray) -> None:
        self.same, self.other = same_and_other_neighbours(
            Z, self.classes, self.n_neighbors, self.model.n_jobs
        )
        nonzero = self.path or self.identity
        self.margin = (
            margins(self.embedding(), self.same, self.other)
            if nonzero
            else np.zeros(len(self.classes))
        )
        self.since_update = 0

    def step(self) -> bool:
        """Add a rank-one matrix, or return False if no direction decreases the loss."""
        if self.path and self.since_update >= self.model.update_every:
            self._find_neighbours(self.embedding())
        support, values, g, size = self._search()
        retries = self.n_retries if self.random else 0
        while size == 0.0:
            # The cause may be outdated neighbours, or an unlucky draw of rows, columns or steps.
            if self.path and self.since_update > 0:
                self._find_neighbours(self.embedding())
            elif retries > 0:
                retries -= 1
                self.leading = None
            else:
                return False
            support, values, g, size = self._search()
        size *= self.model.learning_rate
        if self.model.bagging < 1.0:
            out = ~self.in_bag
            before = LOSS.margin_value(self.margin[out])
            after = LOSS.margin_value(self.margin[out] + size * g[out])
            self.oob_improvement = float(np.mean(before - after))
        self.metric.add(support, values, size)
        self.margin += size * g
        self.path.append((support, values, size))
        self.since_update += 1
        self._expand(support, values)
        return True

    def _search(self) -> tuple[np.ndarray, np.ndarray, Any, float]:
        weight = self._weights()
        support, values = self.find_direction(self, weight, self._allowed_columns())
        if not len(support):
            return support, values, None, 0.0
        g = margins(
            self.columns.take(support) @ values[:, None].astype(self.columns.base.dtype),
            self.same,
            self.other,
        )
        return support, values, g, best_step(g[self.in_bag], weight[self.in_bag])

    def _weights(self) -> np.ndarray:
        """Compute the row weights: the negative slope of the exponential loss, eq. (2.9).

        They are scaled to sum to one, and zero for out-of-bag rows.
        """
        weight = -LOSS.margin_slope(self.margin - self.margin.min())
        if self.model.bagging < 1.0:
            n = len(weight)
            self.in_bag[:] = False
            self.in_bag[
                self.random_state.permutation(n)[: max(2, round(self.model.bagging * n))]
            ] = True
            weight[~self.in_bag] = 0.0
        return weight / weight.sum()

    def _allowed_columns(self) -> np.ndarray | None:
        if self.feature_fraction >= 1.0:
            return None
        p = self.columns.n_columns
        allowed = np.zeros(p, dtype=self.columns.base.dtype)
        allowed[
            self.random_state.permutation(p)[: max(self.kappa, round(self.feature_fraction * p))]
        ] = 1.0
        return allowed

    def _expand(self, support: np.ndarray, values: np.ndarray) -> None:
        if self.columns.max_order < 2:
            return
        newest = support[np.argsort(-np.abs(values), kind="stable")[: self.n_expanders]]
        strength = np.diag(self.metric.matrix)
        partners = np.array(self.metric.columns)[
            np.argsort(-strength, kind="stable")[: self.n_partners]
        ]
        self.columns.add_products(newest, partners)
