"""What is kept of a fitted learner: the chosen columns, and class scores from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ...learners import FSAClassifier, SDist
from ..files import check_array


def _take(X, columns: np.ndarray) -> np.ndarray:
    part = X[:, columns]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


@dataclass(frozen=True)
class AdditiveScorer:
    """Scores as a sum of responses to the chosen columns: linear, or linear between knots.

    Attributes
    ----------
    selected : ndarray of shape (k,), int64
        The chosen columns, strongest first.
    knots : ndarray of shape (k, m), float64
        m is 0 for linear responses.
    responses : ndarray of shape (k, m or 1, n_classes), float64
        At the knots; for linear responses the coefficients.
    intercept : ndarray of shape (n_classes,), float64
    temperature : float
        Scores are divided by it before they become probabilities.
    """

    selected: np.ndarray
    knots: np.ndarray
    responses: np.ndarray
    intercept: np.ndarray
    temperature: float = 1.0

    @classmethod
    def of(cls, model: FSAClassifier) -> Self:
        """Take over a fitted classifier; the scores of two classes become -f / 2 and f / 2."""
        chosen = np.flatnonzero(model.get_support())
        order = np.argsort(-model.feature_importances_[chosen], kind="stable")
        chosen = chosen[order]
        if model.response == "linear":
            knots = np.empty((len(chosen), 0))
            responses = np.atleast_2d(model.coef_)[:, chosen].T[:, None, :]
        else:
            knots, responses = np.asarray(model.knots_, float)[order], np.asarray(model.responses_, float)[order]
        intercept = np.atleast_1d(np.asarray(model.intercept_, float))
        if responses.shape[2] == 1:
            responses = np.concatenate([-responses, responses], axis=2) / 2
            intercept = np.concatenate([-intercept, intercept]) / 2
        return cls(chosen.astype(np.int64), knots, np.ascontiguousarray(responses, dtype=float), intercept)

    def contributions(self, X) -> np.ndarray:
        """Responses (n, k, n_classes) of the chosen columns, less the response to 0: what a row's content says."""
        values = _take(X, self.selected)
        if not self.knots.shape[1]:
            return values[:, :, None] * self.responses[None, :, 0]
        out = np.empty((*values.shape, self.responses.shape[2]))
        for j, knots in enumerate(self.knots):
            for c in range(out.shape[2]):
                curve = self.responses[j, :, c]
                out[:, j, c] = np.interp(values[:, j], knots, curve) - np.interp(0.0, knots, curve)
        return out

    def scores(self, X) -> np.ndarray:
        """Class scores (n, n_classes)."""
        constant = self.intercept.copy()
        for knots, curves in zip(self.knots, self.responses):
            if len(knots):
                constant += [np.interp(0.0, knots, curve) for curve in curves.T]
        return constant + self.contributions(X).sum(axis=1)

    def probabilities(self, X) -> np.ndarray:
        """Class probabilities (n, n_classes)."""
        return softmax(self.scores(X) / self.temperature, axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a model file holds."""
        return {
            "selected": self.selected,
            "knots": self.knots,
            "responses": self.responses,
            "intercept": self.intercept,
            "temperature": np.array([self.temperature]),
        }

    @classmethod
    def read(cls, path: Path, arrays: dict[str, np.ndarray], name: str, n_classes: int, n_features: int) -> Self:
        """Take the arrays ``name``. ... of a model file.

        Raises
        ------
        ValueError
            If they are missing or do not fit together.
        """
        selected = _columns(path, arrays, f"{name}.selected", n_features)
        knots = check_array(path, arrays, f"{name}.knots", np.float64, (len(selected), None))
        shape = (len(selected), max(1, knots.shape[1]), n_classes)
        responses = check_array(path, arrays, f"{name}.responses", np.float64, shape)
        intercept = check_array(path, arrays, f"{name}.intercept", np.float64, (n_classes,))
        temperature = float(check_array(path, arrays, f"{name}.temperature", np.float64, (1,))[0])
        if not temperature > 0:
            raise ValueError(f"{path}: damaged (temperature {temperature:g} of {name!r}, expected a positive number)")
        return cls(selected, knots, responses, intercept, temperature)


def _columns(path: Path, arrays: dict[str, np.ndarray], name: str, n_features: int) -> np.ndarray:
    selected = check_array(path, arrays, name, np.int64, (None,))
    if len(selected) and (selected.min() < 0 or selected.max() >= n_features):
        raise ValueError(f"{path}: damaged (a chosen column of {name!r} is outside 0 to {n_features - 1})")
    return selected


@dataclass(frozen=True)
class MetricScorer:
    """Votes of the nearest training rows in a learnt sparse metric (sDist).

    Attributes
    ----------
    selected : ndarray of shape (k,), int64
        Columns of X that the metric uses.
    center, scale : ndarray of shape (k,), float64
        Taken off and divided by.
    products : ndarray of shape (q, order), int64
        Columns of the feature map as places in ``selected``, -1 where there are fewer factors.
    product_scale : ndarray of shape (q,), float64
    components : ndarray of shape (rank, q), float64
        L with W = L'L.
    points : ndarray of shape (n_train, rank), float64
        Training rows in the subspace.
    codes : ndarray of shape (n_train,), int64
        Their classes.
    n_neighbors, n_classes : int
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
    def of(cls, model: SDist, X, y) -> Self:
        """Take over a metric fitted on X and y."""
        used = model.selected_features_.astype(np.int64)
        place = {int(c): i for i, c in enumerate(used)}
        order = max((len(t) for t in model.columns_), default=1)
        products = np.full((len(model.columns_), order), -1, np.int64)
        for row, factors in zip(products, model.columns_):
            row[: len(factors)] = [place[int(j)] for j in factors]
        features = model._features
        product_scale = [
            1.0 if c < features.n_features else features.monomial_scale[c - features.n_features] for c in model._metric.columns
        ]
        codes = np.searchsorted(model.classes_, y).astype(np.int64)
        return cls(
            used,
            np.asarray(features.center[used], float),
            np.asarray(features.scale[used], float),
            products,
            np.asarray(product_scale, float),
            np.asarray(model.components_, float),
            np.asarray(model.transform(X), float),
            codes,
            int(model.n_neighbors_predict),
            len(model.classes_),
        )

    def pairs(self, n: int | None = None) -> list[tuple[int, int]]:
        """Pairs of different columns of X whose product the metric uses, strongest first."""
        strength = (self.components**2).sum(axis=0)
        found = []
        for i in np.argsort(-strength, kind="stable"):
            factors = [int(self.selected[j]) for j in self.products[i] if j >= 0]
            if len(factors) == 2 and factors[0] != factors[1]:
                found.append((factors[0], factors[1]))
        return found[:n]

    def transform(self, X) -> np.ndarray:
        """Rows of X in the learnt subspace, (n, rank)."""
        values = (_take(X, self.selected) - self.center) / self.scale
        padded = np.hstack([values, np.ones((len(values), 1))])  # place -1 is the factor 1
        return (padded[:, self.products].prod(axis=2) / self.product_scale) @ self.components.T

    def probabilities(self, X) -> np.ndarray:
        """Shares of the votes, (n, n_classes)."""
        Z = self.transform(X)
        distance = (Z**2).sum(axis=1)[:, None] - 2 * Z @ self.points.T + (self.points**2).sum(axis=1)
        near = np.argsort(distance, axis=1, kind="stable")[:, : self.n_neighbors]
        return np.stack([(self.codes[near] == c).mean(axis=1) for c in range(self.n_classes)], axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a model file holds."""
        names = ("selected", "center", "scale", "products", "product_scale", "components", "points", "codes")
        return {name: getattr(self, name) for name in names} | {"n_neighbors": np.array([self.n_neighbors])}

    @classmethod
    def read(cls, path: Path, arrays: dict[str, np.ndarray], name: str, n_classes: int, n_features: int) -> Self:
        """Take the arrays ``name``. ... of a model file; errors as in :meth:`AdditiveScorer.read`."""

        def array(part: str, dtype: Any, shape: tuple[int | None, ...]) -> np.ndarray:
            return check_array(path, arrays, f"{name}.{part}", dtype, shape)

        selected = _columns(path, arrays, f"{name}.selected", n_features)
        k = len(selected)
        products = array("products", np.int64, (None, None))
        components = array("components", np.float64, (None, len(products)))
        points = array("points", np.float64, (None, len(components)))
        codes = array("codes", np.int64, (len(points),))
        n_neighbors = int(array("n_neighbors", np.int64, (1,))[0])
        outside = (products < -1).any() or (products >= k).any() or (codes < 0).any() or (codes >= n_classes).any()
        if outside or not n_neighbors >= 1:
            raise ValueError(f"{path}: damaged (an entry of {name!r} is out of range)")
        scales = [array(part, np.float64, (k,)) for part in ("center", "scale")]
        product_scale = array("product_scale", np.float64, (len(products),))
        return cls(selected, scales[0], scales[1], products, product_scale, components, points, codes, n_neighbors, n_classes)


Scorer = AdditiveScorer | MetricScorer
SCORERS: dict[str, type[AdditiveScorer] | type[MetricScorer]] = {"additive": AdditiveScorer, "metric": MetricScorer}
