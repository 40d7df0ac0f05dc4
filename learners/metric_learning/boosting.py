"""Algorithm 2.2 of the thesis: a metric W = sum_m w_m xi_m xi_m' grown by boosting, one sparse rank-one matrix at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from .directions import margins, sgd_step
from .neighbours import same_and_other_neighbours


@dataclass
class SparseMetric:
    """A positive semi-definite matrix over the few columns of a feature map that it uses.

    Attributes
    ----------
    columns : list of int
        Columns of the map, in order of first use.
    matrix : ndarray of shape (len(columns), len(columns))
        W between them.
    """

    columns: list[int] = field(default_factory=list)
    matrix: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, support, values, weight):
        """Add weight * xi xi'."""
        place = {c: i for i, c in enumerate(self.columns)}
        new = [int(c) for c in support if int(c) not in place]
        if new:
            self.columns = self.columns + new
            self.matrix = np.pad(self.matrix, (0, len(new)))
            place = {c: i for i, c in enumerate(self.columns)}
        at = np.array([place[int(c)] for c in support])
        self.matrix[np.ix_(at, at)] += weight * np.outer(values, values)

    def factor(self):
        """L (rank, len(columns)) with W = L'L, strongest direction first; each row's largest entry is positive."""
        if not self.columns:
            return np.zeros((0, 0))
        values, vectors = np.linalg.eigh(self.matrix)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > 1e-10 * max(values[0], 1e-300)
        L = (vectors[:, kept] * np.sqrt(values[kept])).T
        signs = np.sign(L[np.arange(len(L)), np.abs(L).argmax(axis=1)])
        return L * signs[:, None]

    @classmethod
    def of(cls, path):
        """The sum of a path of (support, values, weight)."""
        metric = cls()
        for support, values, weight in path:
            metric.add(support, values, weight)
        return metric

    def trimmed(self, n_columns, variance):
        """The principal submatrix of the ``n_columns`` columns that add most to the mean distance, W_jj var_j: still positive
        semi-definite. ``variance`` (len(columns),) is that of the training rows; it makes the choice free of the columns' units.
        """
        kept = np.sort(np.argsort(-np.diag(self.matrix) * variance, kind="stable")[:n_columns])
        return SparseMetric([self.columns[i] for i in kept], self.matrix[np.ix_(kept, kept)])


def best_step(g, weight, n_bisections=40):
    """Minimise sum_i weight_i exp(-w g_i) over w >= 0 by bisection on its derivative (2.13).

    A sum that only falls (all g_i > 0) has no minimum: w is then bounded by 10 / mean |g|, a loss of e^-10.
    """
    slope = float(weight @ g)
    if slope <= 0.0:
        return 0.0
    low, high = 0.0, 10.0 / float(np.abs(g).mean())
    if float((weight * g) @ np.exp(np.clip(-high * g, -700.0, 700.0))) > 0.0:
        return high
    for _ in range(n_bisections):
        middle = 0.5 * (low + high)
        if float((weight * g) @ np.exp(np.clip(-middle * g, -700.0, 700.0))) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


class MetricBooster:
    """One run of Algorithm 2.2; each call of :meth:`step` adds one rank-one matrix.

    Parameters
    ----------
    columns : ExpandedColumns
        Training rows under the growing feature map.
    classes : ndarray of shape (n,), int
        Codes of the classes.
    n_neighbors, kappa : int
        Neighbours of each kind, and entries per rank-one matrix.
    shrinkage : float
        nu of (2.22).
    update_every : int
        Steps between two searches for neighbours in the learnt metric.
    bagging, feature_fraction : float
        Shares of the rows and of the columns that each step sees.
    solver : callable
        (booster, weight, allowed) -> (support, values); see :func:`power_step`.
    start : {"lanczos", "ones"}
        Where the power solver starts.
    identity : bool
        W_0 = I, the text's, in place of 0.
    random_state : RandomState
    n_jobs : int or None

    Attributes
    ----------
    metric : SparseMetric
    margin : ndarray of shape (n,)
        y f of each row: distance to the other classes minus distance to its own.
    path : list of (support, values, weight)
        What was added, one entry per step.
    in_bag : ndarray of bool, shape (n,)
        The rows that the last step saw.
    """

    n_expanders, n_partners = 3, 60  # products per step: the strongest new columns with the strongest of all

    def __init__(
        self,
        columns,
        classes,
        *,
        n_neighbors,
        kappa,
        shrinkage,
        update_every,
        bagging,
        feature_fraction,
        solver,
        start,
        identity,
        random_state,
        n_jobs,
    ):
        self.columns = columns
        self.classes = classes
        self.n_neighbors = n_neighbors
        self.kappa = kappa
        self.shrinkage = shrinkage
        self.update_every = update_every
        self.bagging = bagging
        self.feature_fraction = feature_fraction
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.metric = SparseMetric()
        self.path = []
        self.in_bag = np.ones(columns.n_samples, dtype=bool)
        self.start = start
        self.identity = identity
        self.leading = None  # the last dense leading vector: where the next search starts
        self.since_update = 0
        self.n_retries = 10 if bagging < 1.0 or feature_fraction < 1.0 or solver is sgd_step else 0
        self.oob_improvement = 0.0
        self._find_neighbours(columns.base)

    def embedding(self):
        """Training rows in the learnt subspace, (n, rank)."""
        Z = self.columns.take(self.metric.columns) @ self.metric.factor().T.astype(self.columns.base.dtype)
        if self.identity:
            base = self.columns.base
            Z = np.hstack([base.toarray() if sp.issparse(base) else base, Z])
        return np.ascontiguousarray(Z)

    def _find_neighbours(self, Z):
        self.same, self.other = same_and_other_neighbours(Z, self.classes, self.n_neighbors, self.n_jobs)
        learnt = self.path or self.identity
        self.margin = margins(self.embedding(), self.same, self.other) if learnt else np.zeros(len(self.classes))
        self.since_update = 0

    def update_neighbours(self):
        """Search for the neighbours again, in the learnt metric."""
        self._find_neighbours(self.embedding())

    def step(self):
        """Add one rank-one matrix; False when no direction lowers the loss any more."""
        if self.path and self.since_update >= self.update_every:
            self.update_neighbours()
        support, values, g, size = self._search()
        retries = self.n_retries
        while size == 0.0:
            # Old neighbours may be what stands still; a random choice of rows, columns or steps may have been unlucky.
            if self.path and self.since_update > 0:
                self.update_neighbours()
            elif retries > 0:
                retries -= 1
                self.leading = None
            else:
                return False
            support, values, g, size = self._search()
        size *= self.shrinkage
        if self.bagging < 1.0:
            out = ~self.in_bag
            self.oob_improvement = float(np.mean(np.exp(-self.margin[out]) - np.exp(-self.margin[out] - size * g[out])))
        self.metric.add(support, values, size)
        self.margin += size * g
        self.path.append((support, values, size))
        self.since_update += 1
        self._expand(support, values)
        return True

    def _search(self):
        weight = self._weights()
        support, values = self.solver(self, weight, self._allowed_columns())
        if not len(support):
            return support, values, None, 0.0
        g = margins(self.columns.take(support) @ values[:, None].astype(self.columns.base.dtype), self.same, self.other)
        return support, values, g, best_step(g[self.in_bag], weight[self.in_bag])

    def _weights(self):
        """Derivative of the exponential loss (2.9), scaled to sum one; zero out of the bag."""
        weight = np.exp(self.margin.min() - self.margin)
        if self.bagging < 1.0:
            n = len(weight)
            self.in_bag[:] = False
            self.in_bag[self.random_state.permutation(n)[: max(2, round(self.bagging * n))]] = True
            weight[~self.in_bag] = 0.0
        return weight / weight.sum()

    def _allowed_columns(self):
        if self.feature_fraction >= 1.0:
            return None
        p = self.columns.n_columns
        allowed = np.zeros(p, dtype=self.columns.base.dtype)
        allowed[self.random_state.permutation(p)[: max(self.kappa, round(self.feature_fraction * p))]] = 1.0
        return allowed

    def _expand(self, support, values):
        if self.columns.max_order < 2:
            return
        newest = support[np.argsort(-np.abs(values), kind="stable")[: self.n_expanders]]
        strength = np.diag(self.metric.matrix)
        partners = np.array(self.metric.columns)[np.argsort(-strength, kind="stable")[: self.n_partners]]
        self.columns.add_products(newest, partners)
