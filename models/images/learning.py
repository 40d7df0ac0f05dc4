"""Training of class scores on columns by FSA and sDist, with calibration by a temperature."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import learners
from ...learners.parameters import check_choice, check_declared, check_integer, checked
from .scorers import AdditiveScorer, MetricScorer, Scorer

METHODS = ("fsa", "piecewise", "sdist", "both", "sdist-sgd")

# sDist on all columns. Steps and votes were chosen by cross-validation on the shipped model's
# training photographs with a head box; the other values are heuristic
# (experiments/notebook/pets.md).
ALL_COLUMNS: dict[str, Any] = {
    "solver": "sgd",
    "kappa": 20,
    "n_steps": 60,
    "learning_rate": 0.1,
    "n_neighbors_predict": 15,
}


@dataclass(frozen=True)
class ClassifierSettings:
    """Training settings of an :class:`ImageClassifier`.

    Parameters
    ----------
    method : {"fsa", "piecewise", "sdist", "both", "sdist-sgd"}, default "fsa"
        Learner. "fsa" is FSA with linear responses, and "piecewise" is FSA with piecewise-linear
        responses. "sdist" is sDist on the columns that linear FSA selects, and "both" averages the
        probabilities of linear FSA and sDist. "sdist-sgd" is sDist on all columns by stabilised
        truncated SGD (Ma, thesis).
    n_features_to_select : int, default 500
        Number of columns to select, at least 1.
    shrinkage : float, default 0.03
        Shrinkage factor lambda of the FSA prior.
    mu : float, default 1.0
        Speed of the annealing schedule; with larger values, columns are removed earlier.
    n_steps : int, default 100
        Number of steps of the annealing schedule.
    max_order : int, default 1
        Maximum number of factors in the products of columns that sDist uses.

    Raises
    ------
    ValueError
        If a setting is out of range.
    """

    method: str = checked("fsa", check_choice, METHODS)
    n_features_to_select: int = checked(500, check_integer, 1)
    shrinkage: float = 0.03
    mu: float = 1.0
    n_steps: int = 100
    max_order: int = checked(1, check_integer, 1)

    def __post_init__(self) -> None:
        check_declared(self)

    def learn(self, X: sp.csr_matrix | sp.csc_matrix, y: np.ndarray) -> list[Scorer]:
        """Fit the learner to a feature matrix.

        Parameters
        ----------
        X : CSR or CSC matrix of shape (n_photographs, n_columns)
            Feature matrix, one row per photograph. CSC matrices are not copied, but "piecewise"
            creates a dense copy in float32.
        y : ndarray of shape (n_photographs,), int
            Class indices.

        Returns
        -------
        list of scorers
            Fitted scorers, whose probabilities are to be averaged.
        """
        if self.method == "sdist-sgd":
            sdist = learners.SDist(
                **ALL_COLUMNS,
                max_order=self.max_order,
                n_features_to_select=self.n_features_to_select,
                random_state=0,
            )
            return [MetricScorer.of(sdist.fit(X, y), X, y)]
        fsa = learners.FSAClassifier(
            min(self.n_features_to_select, X.shape[1]),
            response="piecewise" if self.method == "piecewise" else "linear",
            prior=learners.Prior(shrinkage=self.shrinkage),
            schedule=learners.Schedule(mu=self.mu, n_steps=self.n_steps),
            refinement=None,
        )
        fsa.fit(X.toarray() if self.method == "piecewise" else X, y)
        additive = AdditiveScorer.of(fsa)
        if self.method in ("fsa", "piecewise"):
            return [additive]
        metric = metric_on(X, y, additive.selected, self.max_order)
        return [metric] if self.method == "sdist" else [additive, metric]


def metric_on(
    X: sp.csr_matrix | sp.csc_matrix, y: np.ndarray, columns: np.ndarray, max_order: int
) -> MetricScorer:
    """Fit sDist with its default solver to some columns of X, and return a scorer for rows of X."""
    part = X[:, columns].toarray().astype(np.float64)
    return MetricScorer.of(
        learners.SDist(kappa=10, max_order=max_order, random_state=0).fit(part, y), part, y
    ).renumbered(columns)


def temperature(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the temperature, from 1/100 to 100, that maximises the likelihood of held-out scores.

    The scores have shape (n, n_classes). The likelihood is that of their softmax after division by
    the temperature.
    """

    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    def loss(log_t: float) -> float:
        return -float(log_softmax(scores / np.exp(log_t), axis=1)[np.arange(len(y)), y].mean())

    return float(
        np.exp(minimize_scalar(loss, bounds=(-np.log(100), np.log(100)), method="bounded").x)
    )
