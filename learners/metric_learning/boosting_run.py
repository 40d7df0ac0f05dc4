"""Boosting runs of sDist with stopping and trimming; one path covers every number of steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from ..common.progress import progress_bar
from ..types import Matrix
from .boosting import LOSS, MetricBooster, SparseMetric, with_coordinates
from .feature_map import ExpandedColumns, FeatureMap
from .neighbours import nearest

BLOCK_BYTES = 1 << 25  # size in bytes of a block of pair scores


def strongest_products(X: Matrix, classes: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Return the pairs (a, b), a <= b, whose product x_a x_b is most correlated with the class.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, p)
        Centred dense columns, or sparse columns.
    classes : ndarray of shape (n,), int
        Class codes. With more than two classes, the largest of the one-vs-rest correlations is
        used.
    count : int
        Number of pairs to return.

    Returns
    -------
    list of (int, int)
        Pairs in descending order of correlation; ties are in column order.

    Notes
    -----
    The products of all pairs of columns are computed in blocks of rows, in O(n p^2) time and with
    O(p) memory per row of a block.
    """
    n, p = X.shape
    sparse = sp.issparse(X)
    square = X.multiply(X).tocsr() if sparse else X * X
    levels = np.unique(classes)
    targets = [(classes == c).astype(X.dtype) for c in (levels[1:] if len(levels) == 2 else levels)]
    targets = [(t - t.mean()) / max(t.std(), 1e-12) for t in targets]
    step = max(1, BLOCK_BYTES // (8 * p))
    columns = X.tocsc() if sparse else X
    pairs = np.empty((0, 3))
    for first in range(0, p, step):
        part = columns[:, first : first + step]

        def moments(left: Matrix, right: Matrix) -> np.ndarray:
            product = left.T @ right
            return (product.toarray() if sp.issparse(product) else product) / n

        mean = moments(part, X)
        variance = moments(part.multiply(part) if sparse else part * part, square) - mean**2
        scale = np.sqrt(np.maximum(variance, 1e-12 * max(float(variance.max()), 1e-300)))
        score = np.zeros_like(mean)
        for t in targets:
            weighted = sp.diags_array(t) @ part if sparse else part * t[:, None]
            np.maximum(score, np.abs(moments(weighted, X)) / scale, out=score)
        rows, cols = np.arange(first, first + score.shape[0])[:, None], np.arange(p)
        score[cols < rows] = -1.0
        few = score.size <= 4 * count
        best = (
            np.argsort(-score, axis=None, kind="stable")
            if few
            else np.argpartition(-score, count - 1, axis=None)
        )[:count]
        a, b = np.unravel_index(best, score.shape)
        pairs = np.vstack([pairs, np.column_stack([score[a, b], a + first, b])])
        pairs = pairs[np.lexsort((pairs[:, 2], pairs[:, 1], -pairs[:, 0]))][:count]
    return [(int(a), int(b)) for score, a, b in pairs if score > 0]


def subspace(
    X: Matrix, features: FeatureMap, columns: list[int], L: np.ndarray, identity: bool
) -> np.ndarray:
    """Map raw rows X to a subspace by multiplying columns of the feature map by L'.

    If the initial metric is the identity, the coordinates start with all columns of X.
    """
    Z = features.columns(X, columns) @ L.T
    return with_coordinates(features.base(X), Z) if identity else Z


def number_of_neighbours(n_neighbors: int | str, codes: np.ndarray, n_features: int) -> int:
    """Resolve ``n_neighbors="auto"``, or limit a given number to the number of available rows.

    ``codes`` are the class codes of the training rows.

    Examples
    --------
    >>> [number_of_neighbours("auto", np.repeat([0, 1], 100), p) for p in (500, 31000)]
    [15, 50]
    """
    if n_neighbors == "auto":
        n_neighbors = max(15, np.bincount(codes).min() // 2) if n_features > 20 * len(codes) else 15
    return int(min(n_neighbors, len(codes) - 1))


def class_scores(
    model: Any,
    Z: np.ndarray,
    train: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    n_neighbors: int,
) -> np.ndarray:
    """Compute the class scores of points in the learnt subspace.

    Parameters
    ----------
    model : SDist
        Estimator that provides the parameters.
    Z : ndarray of shape (n, rank)
        Points in the subspace.
    train : ndarray of shape (n_train, rank)
        Training rows in the subspace.
    codes : ndarray of shape (n_train,), int
        Class codes of the training rows.
    n_classes : int
        Number of classes.
    n_neighbors : int
        Number of nearest rows of each class over which the classifier "base" averages distances.

    Returns
    -------
    ndarray of shape (n, n_classes)
        Vote fractions, or negative mean squared distances.
    """
    scores = np.zeros((len(Z), n_classes))
    if model.classifier == "knn":
        rows, _ = nearest(Z, train, min(model.n_neighbors_predict, len(train)), model.n_jobs)
        np.add.at(scores, (np.arange(len(Z))[:, None], codes[rows]), 1.0 / rows.shape[1])
        return scores
    for c in range(n_classes):
        members = train[codes == c]
        _, distance = nearest(Z, members, min(n_neighbors, len(members)), model.n_jobs)
        scores[:, c] = -distance.mean(axis=1)
    return scores


class BoostingRun:
    """Boosting run on validated data; its path contains the metric after every step.

    Parameters
    ----------
    model : SDist
        Estimator that provides the parameters.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Training rows.
    codes : ndarray of int
        Codes of the classes.
    callback : callable or None, default None
        Function called as ``callback(run, step)`` after every step. If it returns True, the run
        ends.
    """

    def __init__(
        self,
        model: Any,
        X: Matrix,
        codes: np.ndarray,
        callback: "Callable[[BoostingRun, int], Any] | None" = None,
    ) -> None:
        self.model = model
        rng = check_random_state(model.random_state)
        held = None
        if model.stopping == "holdout":
            X, codes, held = _hold_out(X, codes, model.validation_fraction, rng)
        self.X, self.codes = X, codes
        self.features = FeatureMap.fit(X, model.standardize)
        p = X.shape[1]
        self.n_neighbors = number_of_neighbours(model.n_neighbors, codes, p)
        capacity = 3 * p if model.max_products is None else model.max_products
        columns = ExpandedColumns(X, self.features, model.max_order, capacity, model.standardize)
        if model.seed_interactions and model.max_order > 1:
            for a, b in strongest_products(columns.base, codes, model.seed_interactions):
                columns.add_products([a], [b])
        self.booster = MetricBooster(columns, codes, model, self.n_neighbors, rng)
        # (value, number of steps); the lowest value wins
        self.criterion: list[tuple[float, int]] = []
        for step in progress_bar(range(1, model.n_steps + 1), title="SDist", shown=model.verbose):
            if not self.booster.step():
                break
            self._evaluate(step, held)
            if callback is not None and callback(self, step):
                break

    def _evaluate(self, step: int, held: Any) -> None:
        """Record the stopping criterion after a step."""
        model, booster = self.model, self.booster
        if model.stopping == "holdout" and (step % 10 == 0 or step == model.n_steps):
            metric = self.trimmed(booster.metric)
            Z, known = self.subspace(held[0], metric), self.train_subspace(metric)
            scores = class_scores(
                model, Z, known, self.codes, self.codes.max() + 1, self.n_neighbors
            )
            self.criterion.append((float(np.mean(scores.argmax(axis=1) != held[1])), step))
        elif model.stopping == "oob":
            before = self.criterion[-1][0] if self.criterion else 0.0
            self.criterion.append((before - booster.oob_improvement, step))
        elif model.stopping == "complexity":
            loss = float(LOSS.margin_value(booster.margin).sum())
            trace = float(np.sqrt(np.maximum(np.linalg.eigvalsh(booster.metric.matrix), 0.0)).sum())
            self.criterion.append((loss + model.complexity_weight * trace, step))

    def trimmed(self, metric: SparseMetric, n_features: Any = "model") -> SparseMetric:
        """Return the metric restricted to its strongest columns."""
        n_features = self.model.n_features_to_select if n_features == "model" else n_features
        return (
            metric
            if n_features is None or n_features >= len(metric.columns)
            else metric.trimmed(n_features, self.variance(metric))
        )

    def variance(self, metric: SparseMetric) -> np.ndarray:
        """Compute the variances of a metric's columns on the training rows."""
        return self.booster.columns.take(metric.columns).var(axis=0)

    def best(self) -> tuple[SparseMetric, int]:
        """Return the metric with the lowest stopping criterion, and its number of steps.

        Ties favour fewer steps.
        """
        n_steps = min(self.criterion)[1] if self.criterion else len(self.booster.path)
        return self.trimmed(SparseMetric.of(self.booster.path[:n_steps])), n_steps

    def subspace(self, X: Matrix, metric: SparseMetric) -> np.ndarray:
        """Map raw rows to the subspace of a metric."""
        return subspace(X, self.features, metric.columns, metric.factor(), self.booster.identity)

    def train_subspace(self, metric: SparseMetric) -> np.ndarray:
        """Map the training rows to the subspace of a metric."""
        Z = self.booster.columns.take(metric.columns) @ metric.factor().T
        return with_coordinates(self.booster.columns.base, Z) if self.booster.identity else Z


def _hold_out(
    X: Matrix, codes: np.ndarray, fraction: float, rng: np.random.RandomState
) -> tuple[Matrix, np.ndarray, tuple[Matrix, np.ndarray]]:
    counts = np.bincount(codes)
    split = StratifiedShuffleSplit(
        1, test_size=max(fraction, len(counts) / len(codes)), random_state=rng.randint(2**31 - 1)
    )
    if counts.min() < 2:
        raise ValueError(
            "stopping='holdout' requires at least 2 rows per class, but class number "
            f"{counts.argmin()} has only {counts.min()}"
        )
    kept, held = next(split.split(X, codes))
    return X[kept], codes[kept], (X[held], codes[held])
