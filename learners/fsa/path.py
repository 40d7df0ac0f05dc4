"""Models of every size from one annealing run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..common.additive import AdditiveModel
from ..common.validation import is_size
from ..designs.factory import as_out_of_core
from ..model_selection.size import default_sizes
from .base import FSAEstimator
from .constraints import constrained
from .parameters import check_parameters
from .problem import FitProblem, Solution
from .refinement import shrinks_while_annealing


class FSAPath(MetaEstimatorMixin, BaseEstimator):
    """The models of many sizes from one annealing run.

    Annealing passes through every size on its way down, so a path costs little more than one fit. At each size in ``sizes`` the
    remaining features are refitted; with the estimator's ``polish="swap"`` also exchanged with others that were dropped late.

    Parameters
    ----------
    estimator : FSAClassifier, FSARegressor or FSARanker
        Its ``n_features_to_select`` is not used.
    sizes : array of int or "auto", default "auto"
        Numbers of features (of groups, where the estimator has them), each at least 1. "auto": every one up to 8, then in steps of
        about a fifth, up to a third of the rows and at most 300.
    trajectory : bool, default False
        Keep the coefficients of every step, for ``plot_path``.

    Attributes
    ----------
    sizes_ : ndarray of shape (n_sizes,), int
        Ascending.
    supports_ : ndarray of shape (n_sizes, n_features), bool
    losses_ : ndarray of shape (n_sizes,)
        Mean training loss at each size.
    ebic_ : ndarray of shape (n_sizes,)
        Extended Bayesian information criterion [1]_, with the sum of the sample weights for the number of rows.
    best_size_ : int
        The size of the least ``ebic_``.
    loss_curve_ : ndarray of shape (n_steps,)
        Loss before each step of the annealing.
    trajectory_ : list of (ndarray, ndarray)
        Remaining features (m,) and their standardised coefficients (m, width, n_outputs) after each step; empty unless asked for.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.

    References
    ----------
    .. [1] J. Chen, Z. Chen, "Extended Bayesian information criteria for model selection with large model spaces", Biometrika 95
       (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifier, FSAPath
    >>> X = np.random.default_rng(0).standard_normal((300, 40))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * X[:, 8] > 0
    >>> path = FSAPath(FSAClassifier(), sizes=[1, 2, 3, 10]).fit(X, y)
    >>> path.get_estimator(3).get_support(indices=True)
    array([3, 7, 8])
    >>> path.best_size_
    3
    """

    _annealing_ridge: float | None = None
    _exchanges: bool = False  # as single fits make them, where that is cheap

    def __init__(self, estimator: FSAEstimator, sizes="auto", *, trajectory: bool = False):
        self.estimator = estimator
        self.sizes = sizes
        self.trajectory = trajectory

    def fit(self, X, y=None, **fit_params) -> Self:
        """Solve the path.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None, default None
        **fit_params
            As for the estimator's own ``fit``.

        Returns
        -------
        FSAPath
            The path itself.

        Raises
        ------
        ValueError
            What the estimator raises, and for sizes that are not positive integers.
        """
        if not isinstance(self.estimator, FSAEstimator):
            raise ValueError(f"estimator={self.estimator!r} is not valid; expected FSAClassifier, FSARegressor or FSARanker")
        model = clone(self.estimator)
        model._annealing_ridge, model._path_exchanges = self._annealing_ridge, self._exchanges
        check_parameters(model)
        problem = constrained(model, model._encode(X, y, **fit_params))
        self.sizes_ = check_sizes(self.sizes, problem.n_units, round(problem.n_rows), problem.n_included)
        self.trajectory_: list[tuple[np.ndarray, np.ndarray]] = []

        def record(step, state):
            self.trajectory_.append((state.kept.copy(), state.coef.copy()))

        solutions = model._fit_path(problem, self.sizes_, [record] if self.trajectory else [])
        self._shrunken = np.array([shrinks_while_annealing(problem, model._refinement, s.size, s.design.width) for s in solutions])
        self.n_features_in_ = problem.X.shape[1]
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.losses_ = np.array([s.value for s in solutions])
        self.ebic_ = np.array([s.ebic for s in solutions])
        self.best_size_ = int(self.sizes_[np.argmin(self.ebic_)])
        self.loss_curve_ = solutions[0].loss_curve
        self.supports_ = np.zeros((len(self.sizes_), self.n_features_in_), bool)
        self._models = []
        for row, solution in zip(self.supports_, solutions):
            row[problem.columns(solution.kept)] = True
            self._models.append(_fitted(model, problem, solution))
        return self

    def get_estimator(self, k: int) -> FSAEstimator:
        """Return the fitted estimator of one size.

        Parameters
        ----------
        k : int
            One of ``sizes_``.

        Returns
        -------
        FSAClassifier, FSARegressor or FSARanker

        Raises
        ------
        ValueError
            If the path has no such size.
        """
        check_is_fitted(self, "sizes_")
        where = np.flatnonzero(self.sizes_ == k)
        if not len(where):
            raise ValueError(f"k={k!r} is not on the path; expected one of {self.sizes_.tolist()}")
        return self._models[where[0]]

    def score_path(self, X, y, scoring: str | Callable | None = None, **score_params) -> np.ndarray:
        """Score the models of all sizes on other data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        scoring : str, function or None, default None
            Any of scikit-learn's; None is accuracy or R^2.
        **score_params
            Such as ``sample_weight``.

        Returns
        -------
        ndarray of shape (n_sizes,)
        """
        check_is_fitted(self, "sizes_")
        plain = scoring is None and is_classifier(self.estimator) and score_params.keys() <= {"sample_weight"}
        if plain and as_out_of_core(X) is None:
            return self._accuracies(X, y, **score_params)
        scorer = check_scoring(self.estimator, scoring)
        return np.array([scorer(model, X, y, **score_params) for model in self._models])

    def _accuracies(self, X, y, sample_weight=None) -> np.ndarray:
        """Accuracies of all sizes: the rows are checked once, which takes longer than to predict them."""
        X, y = self._models[0]._validate(X, reset=False), column_or_1d(y)
        check_consistent_length(X, y, sample_weight)
        found = []
        for model in self._models:
            labels = model._labels(model._decisions(AdditiveModel.from_estimator(model).scores(X)))
            found.append(np.average(labels == y, weights=sample_weight))
        return np.array(found)


def _fitted(model: FSAEstimator, problem: FitProblem, solution: Solution) -> FSAEstimator:
    new = copy.copy(model)
    new.n_features_to_select = solution.size
    for name, value in model._attributes(problem, solution).items():
        setattr(new, name, value)
    return new


def check_sizes(sizes, n_units: int, n_samples: int, n_included: int = 0) -> np.ndarray:
    """Ascending different sizes, at most ``n_units`` and at least ``n_included``; see :class:`FSAPath`.

    Raises
    ------
    ValueError
        If one of them is not a positive integer.
    """
    if isinstance(sizes, str) and sizes == "auto":
        return np.unique(np.clip(default_sizes(n_units, n_samples), n_included, None))
    values = np.asarray(sizes)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iu" or not all(is_size(int(v)) for v in values):
        raise ValueError(f"sizes={sizes!r} is not valid; expected 'auto' or positive integers")
    return np.unique(np.clip(values, n_included, n_units))
