"""Every size from one annealing run, and the choice among them by cross-validation or by an information criterion."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from ..common.validation import document, is_size
from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.criteria import default_sizes
from .base import _FSA, Encoded, Solution
from .estimators import FSAClassifier, FSARegressor


class FSAPath(BaseEstimator):
    """The models of many sizes from one annealing run.

    Annealing passes through every size on its way down, so a path costs little more than one fit. At each size in ``sizes`` the
    survivors are refitted; with the estimator's ``polish="swap"`` also exchanged with others that fell late.

    Parameters
    ----------
    estimator : FSAClassifier, FSARegressor or FSARanker
        Its ``n_features_to_select`` is not used.
    sizes : array of int or "auto"
        Numbers of features (of groups, where the estimator has them). "auto": every one up to 8, then in steps of about a fifth, up
        to a third of the rows and at most 300.
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
        Extended Bayesian information criterion, with the sum of the sample weights for the number of rows.
    loss_curve_ : ndarray
        Loss before each step of the annealing.
    trajectory_ : list of (ndarray, ndarray)
        Survivors (m,) and their standardised coefficients (m, width, n_outputs) after each step; empty unless asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifier, FSAPath
    >>> X = np.random.default_rng(0).standard_normal((300, 40))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * X[:, 8] > 0
    >>> path = FSAPath(FSAClassifier(), sizes=[1, 2, 3, 10]).fit(X, y)
    >>> path.at(3).get_support(indices=True)
    array([3, 7, 8])
    >>> int(path.best_size())
    3
    """

    def __init__(self, estimator: _FSA, sizes="auto", *, trajectory: bool = False):
        self.estimator = estimator
        self.sizes = sizes
        self.trajectory = trajectory

    def fit(self, X, y=None, **fit_params) -> Self:
        """Walk down the path.

        Parameters
        ----------
        X, y, **fit_params
            As for the estimator's own ``fit``.

        Raises
        ------
        ValueError
            What the estimator raises, and for sizes that are not positive integers.
        """
        if not isinstance(self.estimator, _FSA):
            raise ValueError(f"estimator={self.estimator!r} is not valid; expected FSAClassifier, FSARegressor or FSARanker")
        model = clone(self.estimator)
        problem: Encoded = model._encode(X, y, **fit_params)  # type: ignore[attr-defined]
        m = problem.X.shape[1]
        n_units = m if model.groups is None else len(np.unique(np.asarray(model.groups)))
        self.sizes_ = check_sizes(self.sizes, n_units, round(problem.weight.sum()))
        self.trajectory_: list[tuple[np.ndarray, np.ndarray]] = []

        def observe(step, state):
            self.trajectory_.append((state.kept.copy(), state.coef.copy()))

        solutions = model._solve(problem, self.sizes_, observe if self.trajectory else None)
        self.n_features_in_ = m
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.losses_ = np.array([s.value for s in solutions])
        self.ebic_ = np.array([s.ebic for s in solutions])
        self.loss_curve_ = solutions[0].loss_curve
        self.supports_ = np.zeros((len(self.sizes_), m), bool)
        self._models = []
        for row, solution in zip(self.supports_, solutions):
            row[solution.kept] = True
            self._models.append(_fitted(model, problem, solution))
        return self

    def at(self, k: int) -> _FSA:
        """The fitted estimator of size ``k``.

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

    def best_size(self) -> int:
        """The size of the least extended Bayesian information criterion."""
        check_is_fitted(self, "sizes_")
        return int(self.sizes_[np.argmin(self.ebic_)])

    def scores(self, X, y, scoring: str | Callable | None = None, **score_params) -> np.ndarray:
        """Scores (n_sizes,) of the models on other data: accuracy or R^2, or any of scikit-learn's ``scoring``."""
        check_is_fitted(self, "sizes_")
        scorer = check_scoring(self.estimator, scoring)
        return np.array([scorer(model, X, y, **score_params) for model in self._models])


def _fitted(model: _FSA, problem: Encoded, solution: Solution) -> _FSA:
    new = copy.copy(model)
    new.n_features_to_select = solution.size
    for name, value in model._attributes(problem, solution).items():
        setattr(new, name, value)
    return new


def check_sizes(sizes, n_units: int, n_samples: int) -> np.ndarray:
    """Ascending different sizes, at most ``n_units``; see :class:`FSAPath`.

    Raises
    ------
    ValueError
        If one of them is not a positive integer.
    """
    if isinstance(sizes, str) and sizes == "auto":
        return default_sizes(n_units, n_samples)
    values = np.asarray(sizes)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iu" or not all(is_size(int(v)) for v in values):
        raise ValueError(f"sizes={sizes!r} is not valid; expected 'auto' or positive integers")
    return np.unique(np.minimum(values, n_units))


class _SizeCV:
    """Choice of the size along paths, before the fit of an FSA estimator."""

    # Of the estimators that this is mixed into.
    criterion: str
    rule: str
    sizes: Any
    cv: Any
    scoring: Any
    groups: Any
    get_params: Callable
    _encode: Callable

    def _choose(self, X, y, sample_weight) -> None:
        """Set ``n_features_`` and how it came about."""
        if self.criterion not in ("cv", "ebic"):
            raise ValueError(f"criterion={self.criterion!r} is unknown; expected 'cv' or 'ebic'")
        if self.rule not in ("best", "one_se"):
            raise ValueError(f"rule={self.rule!r} is unknown; expected 'best' or 'one_se'")
        problem = self._encode(X, y, sample_weight)  # all checks of the data
        X, y = problem.X, np.asarray(y)
        family = FSAClassifier if isinstance(self, FSAClassifier) else FSARegressor
        own = self.get_params(deep=False)
        model = family(**{name: own[name] for name in family._get_param_names() if name in own})
        if self.criterion == "ebic":
            path = FSAPath(model, self.sizes).fit(X, y, sample_weight=sample_weight)
            self.sizes_, self.ebic_, self.n_features_ = path.sizes_, path.ebic_, path.best_size()
            return
        splits = list(check_cv(self.cv, y, classifier=family is FSAClassifier).split(X, y))
        n_units = X.shape[1] if self.groups is None else len(np.unique(np.asarray(self.groups)))
        self.sizes_ = check_sizes(self.sizes, n_units, min(len(train) for train, _ in splits))
        self.cv_scores_ = np.empty((len(splits), len(self.sizes_)))
        for fold, (train, test) in enumerate(splits):
            on_train, on_test = {}, {}
            if sample_weight is not None:
                weight = np.asarray(sample_weight)
                on_train, on_test = {"sample_weight": weight[train]}, {"sample_weight": weight[test]}
            path = FSAPath(model, self.sizes_).fit(X[train], y[train], **on_train)
            self.cv_scores_[fold] = path.scores(X[test], y[test], self.scoring, **on_test)
        self.n_features_ = int(self.sizes_[_best(self.cv_scores_, self.rule)])

    def _n_kept(self, n_units: int) -> int:
        return min(self.n_features_, n_units)


def _best(scores: np.ndarray, rule: str) -> int:
    """Position of the greatest mean over folds, or the first within one standard error of it."""
    mean = scores.mean(axis=0)
    best = int(np.argmax(mean))
    if rule == "one_se" and len(scores) > 1:
        best = int(np.argmax(mean >= mean[best] - scores[:, best].std(ddof=1) / np.sqrt(len(scores))))
    return best


class FSAClassifierCV(_SizeCV, FSAClassifier):
    """Classifier on features found by annealing, their number by cross-validation or by EBIC.
    {parameters}
    fit_intercept : bool, default True
    class_weight : dict, 'balanced' or None
    cv : int, splitter or None
        Folds: five by default.
    scoring : str, function or None
        Accuracy by default.
    criterion : {"cv", "ebic"}
        Cross-validation along one path per fold, or the extended Bayesian information criterion along a single path.
    rule : {"best", "one_se"}
        The size of the best mean score, or the smallest within one standard error of it.

    Attributes
    ----------
    n_features_ : int
        The size chosen.
    sizes_ : ndarray of shape (n_sizes,)
    cv_scores_ : ndarray of shape (n_folds, n_sizes)
    ebic_ : ndarray of shape (n_sizes,)
        With ``criterion="ebic"``.
    support_, coef_, intercept_, feature_importances_, loss_curve_, n_iter_, n_features_in_
        As in :class:`FSAClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 40))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(300) > 0
    >>> FSAClassifierCV(criterion="ebic").fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def __init__(
        self,
        sizes="auto",
        *,
        loss: str | Loss = "auto",
        response: str = "linear",
        n_bins: int = 6,
        bins: str = "range",
        groups=None,
        prior: Prior | None = None,
        schedule: str | Callable = "inverse",
        mu: float = 100.0,
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float = 0.0,
        polish: str | None = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        class_weight=None,
        cv=None,
        scoring=None,
        criterion: str = "cv",
        rule: str = "best",
        random_state=None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        super().__init__(
            loss=loss,
            response=response,
            n_bins=n_bins,
            bins=bins,
            groups=groups,
            prior=prior,
            schedule=schedule,
            mu=mu,
            n_steps=n_steps,
            learning_rate=learning_rate,
            momentum=momentum,
            polish=polish,
            fit_intercept=fit_intercept,
            warm_start=warm_start,
            class_weight=class_weight,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.sizes = sizes
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.rule = rule

    def fit(self, X, y, sample_weight=None) -> Self:
        """Choose the size, then select that many features of all rows and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None
        """
        self._choose(X, y, sample_weight)
        return super().fit(X, y, sample_weight)


class FSARegressorCV(_SizeCV, FSARegressor):
    """Regression on features found by annealing, their number by cross-validation or by EBIC.
    {parameters}
    fit_intercept : bool, default True
    cv : int, splitter or None
        Folds: five by default.
    scoring : str, function or None
        R^2 by default.
    criterion : {"cv", "ebic"}
        Cross-validation along one path per fold, or the extended Bayesian information criterion along a single path.
    rule : {"best", "one_se"}
        The size of the best mean score, or the smallest within one standard error of it.

    Attributes
    ----------
    n_features_ : int
        The size chosen.
    sizes_ : ndarray of shape (n_sizes,)
    cv_scores_ : ndarray of shape (n_folds, n_sizes)
    ebic_ : ndarray of shape (n_sizes,)
        With ``criterion="ebic"``.
    support_, coef_, intercept_, feature_importances_, loss_curve_, n_iter_, n_features_in_
        As in :class:`FSARegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 40))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(300)
    >>> FSARegressorCV(criterion="ebic").fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    def __init__(
        self,
        sizes="auto",
        *,
        loss: str | Loss = "squared",
        response: str = "linear",
        n_bins: int = 6,
        bins: str = "range",
        groups=None,
        prior: Prior | None = None,
        schedule: str | Callable = "inverse",
        mu: float = 30.0,
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float = 0.9,
        polish: str | None = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        cv=None,
        scoring=None,
        criterion: str = "cv",
        rule: str = "best",
        random_state=None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        super().__init__(
            loss=loss,
            response=response,
            n_bins=n_bins,
            bins=bins,
            groups=groups,
            prior=prior,
            schedule=schedule,
            mu=mu,
            n_steps=n_steps,
            learning_rate=learning_rate,
            momentum=momentum,
            polish=polish,
            fit_intercept=fit_intercept,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.sizes = sizes
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.rule = rule

    def fit(self, X, y, sample_weight=None) -> Self:
        """Choose the size, then select that many features of all rows and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        """
        self._choose(X, y, sample_weight)
        return super().fit(X, y, sample_weight)


_SIZES = """sizes : array of int or "auto"
        Numbers of features to try; see :class:`FSAPath`."""
document(FSAClassifierCV, "As in :class:`FSAClassifier`.", _SIZES)
document(FSARegressorCV, "As in :class:`FSARegressor`.", _SIZES)
