"""Scorers that compute class scores from the selected columns and are stored in model files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ... import learners
from ...learners.common.additive import AdditiveModel
from ...learners.types import Matrix
from ..files import check_array


@dataclass(frozen=True)
class AdditiveScorer:
    """Scorer whose class scores are sums of responses to the selected columns.

    Probabilities are the softmax of the scores divided by the temperature.

    Attributes
    ----------
    model : AdditiveModel
        Model with one output per class and with columns in order of decreasing importance.
    temperature : float
        Divisor of the scores.
    """

    model: AdditiveModel
    temperature: float = 1.0

    @property
    def selected(self) -> np.ndarray:
        """Indices of the k selected columns, in order of decreasing strength."""
        return self.model.selected

    @classmethod
    def of(cls, classifier: "learners.FSAClassifier") -> Self:
        """Create a scorer from a fitted FSA classifier.

        With two classes, the scores are -f / 2 and f / 2, where f is the score of the classifier.
        """
        model = AdditiveModel.from_estimator(classifier, by_importance=True)
        responses, intercept = model.responses, np.atleast_1d(model.intercept)
        if responses.shape[2] == 1:
            responses = np.concatenate([-responses, responses], axis=2) / 2
            intercept = np.concatenate([-intercept, intercept]) / 2
        return cls(
            AdditiveModel(
                model.selected.astype(np.int64),
                model.knots,
                np.ascontiguousarray(responses, dtype=float),
                intercept=intercept,
            )
        )

    def renumbered(self, columns: np.ndarray) -> Self:
        """Return a copy of the scorer for rows with additional columns.

        ``columns`` contains the new indices of the original columns.
        """
        return replace(self, model=replace(self.model, selected=columns[self.selected]))

    def scores(self, X: Matrix) -> np.ndarray:
        """Compute class scores of shape (n, n_classes).

        They are computed as sums of contributions, so that the evidence in an explanation sums
        exactly to the scores.
        """
        return self.model.intercept + self.model.contributions(X).sum(axis=1)

    def probabilities(self, X: Matrix) -> np.ndarray:
        """Compute class probabilities of shape (n, n_classes)."""
        return softmax(self.scores(X) / self.temperature, axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file stores."""
        return {
            "selected": self.model.selected,
            "knots": self.model.knots,
            "responses": self.model.responses,
            "intercept": np.asarray(self.model.intercept),
            "temperature": np.array([self.temperature]),
        }

    @classmethod
    def read(
        cls, path: Path, arrays: dict[str, np.ndarray], name: str, n_classes: int, n_features: int
    ) -> Self:
        """Read the scorer from the arrays of a model file whose names start with ``name``.

        A ValueError is raised if an array is missing or the shapes are inconsistent.
        """
        selected = check_array(
            path, arrays, f"{name}.selected", np.int64, (None,), 0, n_features - 1
        )
        knots = check_array(path, arrays, f"{name}.knots", np.float64, (len(selected), None))
        shape = (len(selected), max(1, knots.shape[1]), n_classes)
        responses = check_array(path, arrays, f"{name}.responses", np.float64, shape)
        intercept = check_array(path, arrays, f"{name}.intercept", np.float64, (n_classes,))
        temperature = float(
            check_array(path, arrays, f"{name}.temperature", np.float64, (1,), 1e-12)[0]
        )
        return cls(AdditiveModel(selected, knots, responses, intercept=intercept), temperature)


@dataclass(frozen=True)
class MetricScorer:
    """Scorer whose class probabilities are vote fractions of the nearest rows in a learnt metric.

    The metric is learnt by sDist (Ma (2017) [1]_) and uses the columns ``selected`` after
    centring and scaling.

    Attributes
    ----------
    selected : ndarray of shape (k,), int64
        Columns of X that the metric uses.
    center, scale : ndarray of shape (k,), float64
        Value that is subtracted from each column, and value by which it is then divided.
    products : ndarray of shape (q, order), int64
        Columns that are multiplied to form each of the q features, as indices in ``selected``,
        padded with -1.
    product_scale : ndarray of shape (q,), float64
        Value by which each product is divided.
    components : ndarray of shape (rank, q), float64
        Factor L of the metric W = L'L.
    points : ndarray of shape (n_train, rank), float64
        Training rows, mapped to the learnt subspace.
    codes : ndarray of shape (n_train,), int64
        Class index of each training row.
    n_neighbors, n_classes : int

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), chapter 2.
    """

    selected: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    products: np.ndarray
    product_scale: np.ndarray
    components: np.ndarray
    points: np.ndarray
    codes: np.ndarray
    n_neighbors: int
    n_classes: int

    @classmethod
    def of(cls, model: "learners.SDist", X: Matrix, y: np.ndarray) -> Self:
        """Create a scorer from a metric that was fitted to X and y."""
        used = model.selected_features_.astype(np.int64)
        place = {int(c): i for i, c in enumerate(used)}
        order = max((len(t) for t in model.columns_), default=1)
        products = np.full((len(model.columns_), order), -1, np.int64)
        for row, factors in zip(products, model.columns_):
            row[: len(factors)] = [place[int(j)] for j in factors]
        features, n = model._features, len(model._features.scale)
        divisors = [1.0 if c < n else features.monomial_scale[c - n] for c in model._metric.columns]
        return cls(
            selected=used,
            center=np.asarray(features.center[used], float),
            scale=np.asarray(features.scale[used], float),
            products=products,
            product_scale=np.asarray(divisors, float),
            components=np.asarray(model.components_, float),
            points=np.asarray(model.transform(X), float),
            codes=np.searchsorted(model.classes_, y).astype(np.int64),
            n_neighbors=int(model.n_neighbors_predict),
            n_classes=len(model.classes_),
        )

    def renumbered(self, columns: np.ndarray) -> Self:
        """Return a copy of the scorer for rows with additional columns.

        ``columns`` contains the new indices of the original columns.
        """
        return replace(self, selected=np.asarray(columns, np.int64)[self.selected])

    def pairs(self, n: int | None = None) -> list[tuple[int, int]]:
        """Return the pairs of columns of X whose products the metric uses, strongest first."""
        strength = (self.components**2).sum(axis=0)
        factors = (
            [int(self.selected[j]) for j in self.products[i] if j >= 0]
            for i in np.argsort(-strength, kind="stable")
        )
        return [(f[0], f[1]) for f in factors if len(f) == 2 and f[0] != f[1]][:n]

    def transform(self, X: Matrix) -> np.ndarray:
        """Map the n rows of X to points of shape (n, rank) in the learnt subspace."""
        part = X[:, self.selected]
        part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
        values = (part - self.center) / self.scale
        padded = np.hstack([values, np.ones((len(values), 1))])  # position -1 holds the factor 1
        return (padded[:, self.products].prod(axis=2) / self.product_scale) @ self.components.T

    def probabilities(self, X: Matrix) -> np.ndarray:
        """Compute vote fractions of shape (n, n_classes)."""
        Z = self.transform(X)
        distance = (
            (Z**2).sum(axis=1)[:, None] - 2 * Z @ self.points.T + (self.points**2).sum(axis=1)
        )
        near = np.argsort(distance, axis=1, kind="stable")[:, : self.n_neighbors]
        return np.stack(
            [(self.codes[near] == c).mean(axis=1) for c in range(self.n_classes)], axis=1
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file stores."""
        return {
            "selected": self.selected,
            "center": self.center,
            "scale": self.scale,
            "products": self.products,
            "product_scale": self.product_scale,
            "components": self.components,
            "points": self.points,
            "codes": self.codes,
            "n_neighbors": np.array([self.n_neighbors]),
        }

    @classmethod
    def read(
        cls, path: Path, arrays: dict[str, np.ndarray], name: str, n_classes: int, n_features: int
    ) -> Self:
        """Read the scorer from the arrays of a model file whose names start with ``name``.

        The method raises the same errors as :meth:`AdditiveScorer.read`.
        """

        def array(
            part: str, dtype: Any, shape: tuple[int | None, ...], *limits: float
        ) -> np.ndarray:
            return check_array(path, arrays, f"{name}.{part}", dtype, shape, *limits)

        selected = array("selected", np.int64, (None,), 0, n_features - 1)
        k = len(selected)
        products = array("products", np.int64, (None, None), -1, k - 1)
        components = array("components", np.float64, (None, len(products)))
        points = array("points", np.float64, (None, len(components)))
        return cls(
            selected=selected,
            center=array("center", np.float64, (k,)),
            scale=array("scale", np.float64, (k,)),
            products=products,
            product_scale=array("product_scale", np.float64, (len(products),)),
            components=components,
            points=points,
            codes=array("codes", np.int64, (len(points),), 0, n_classes - 1),
            n_neighbors=int(array("n_neighbors", np.int64, (1,), 1)[0]),
            n_classes=n_classes,
        )


Scorer = AdditiveScorer | MetricScorer
SCORERS: dict[str, type[AdditiveScorer] | type[MetricScorer]] = {
    "additive": AdditiveScorer,
    "metric": MetricScorer,
}


def mean_probabilities(scorers: Sequence[Scorer], X: Matrix) -> np.ndarray:
    """Average the probabilities, of shape (n, n_classes), computed by several scorers."""
    return np.mean([s.probabilities(X) for s in scorers], axis=0)
