"""FSA with the number of features chosen by cross-validation or by an information criterion."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv

from ..common.docstrings import fill_docstring
from ..common.validation import check_choice
from .base import FSAEstimator
from .constraints import constrained, without_names
from .estimators import CLASSIFIER_TEXTS, REGRESSOR_TEXTS, FSAClassifier, FSARegressor
from .parameters import check_parameters
from .path import FSAPath, check_sizes
from .path_solver import settings_of_size
from .refinement import other_annealing_ridges, shrinks_while_annealing

_SIZES = """sizes : array of int or "auto", default "auto"
        Numbers of features to try; see :class:`FSAPath`."""

_CHOICE = """
    cv : int, splitter or None, default None
        Folds: five by default.
    scoring : str, function or None, default None
        Any of scikit-learn's; {default_scoring} by default.
    criterion : {"cv", "ebic"}, default "cv"
        Cross-validation along one path per fold, or the extended Bayesian information criterion along a single path, which is
        several times faster.
    rule : {"best", "one_se"}, default "best"
        The size of the best mean score, or the smallest within one standard error of it."""

_ATTRIBUTES = """
    n_features_ : int
        The size chosen.
    sizes_ : ndarray of shape (n_sizes,), int
        The sizes tried, ascending.
    cv_scores_ : ndarray of shape (n_folds, n_sizes)
        With ``criterion="cv"``.
    ebic_ : ndarray of shape (n_sizes,)
        With ``criterion="ebic"``."""


class _SizeSearch(FSAEstimator):
    """Choice of the size along paths, before the fit of the estimator that this is mixed into."""

    _family: type[FSAEstimator]

    def __init__(
        self,
        sizes="auto",
        *,
        cv=None,
        scoring=None,
        criterion: str = "cv",
        rule: str = "best",
        **parameters: Any,
    ):
        super().__init__(None, **parameters)
        del self.n_features_to_select  # chosen by ``fit``: no parameter of these estimators
        self.sizes = sizes
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.rule = rule

    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Choose the size, then select that many features of all rows and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), or (n_samples, n_outputs) in regression
        sample_weight : array of shape (n_samples,) or None, default None
        groups : array of shape (n_samples,) or None, default None
            Group of each ROW, such as a patient: no group is in the training and the test part of a fold. Given to ``cv``; with a
            number of folds these are by groups.

        Returns
        -------
        FSAClassifierCV or FSARegressorCV
            The estimator itself.

        Raises
        ------
        ValueError
            What the estimators raise, and for sizes that are not positive integers.
        """
        self._choose_size(X, y, sample_weight, groups)
        return super().fit(X, y, sample_weight)  # type: ignore[misc]

    def _choose_size(self, X, y, sample_weight, groups) -> None:
        """Set ``n_features_`` and how it came about."""
        check_choice("criterion", self.criterion, ("cv", "ebic"))
        check_choice("rule", self.rule, ("best", "one_se"))
        check_parameters(self)
        self._annealing_ridge = None
        problem = constrained(self, self._encode(X, y, sample_weight))  # all checks of the data
        # Gaps are filled anew in each fold.
        X = np.asarray(X, problem.X.dtype) if self.missing == "median" and isinstance(problem.X, np.ndarray) else problem.X
        y = np.asarray(y)
        own = self.get_params(deep=False)
        model = self._family(**{name: own[name] for name in self._family._get_param_names() if name in own})
        model.set_params(**without_names(problem))
        if self.criterion == "ebic":
            path = FSAPath(model, self.sizes).fit(X, y, sample_weight=sample_weight)
            self.sizes_, self.ebic_, self.n_features_ = path.sizes_, path.ebic_, path.best_size_
            return
        splits = list(self._splitter(y, groups).split(X, y, groups))
        self.sizes_ = check_sizes(self.sizes, problem.n_units, min(len(train) for train, _ in splits), problem.n_included)

        def scores_of(ridge, known=None):
            """Scores of all folds and sizes; beside ``known`` ones only where annealing has the ridge."""
            scores = np.empty((len(splits), len(self.sizes_))) if known is None else known.copy()
            shrunken = np.ones(scores.shape, bool) if known is None else own_ridge
            found = np.zeros(scores.shape, bool)
            for fold, (train, test) in enumerate(splits):
                if not shrunken[fold].any():
                    continue
                on_train, on_test = {}, {}
                if sample_weight is not None:
                    weight = np.asarray(sample_weight)
                    on_train, on_test = {"sample_weight": weight[train]}, {"sample_weight": weight[test]}
                path = FSAPath(model, self.sizes_[shrunken[fold]])
                path._annealing_ridge = ridge
                path.fit(X[train], y[train], **on_train)
                scores[fold, shrunken[fold]] = path.score_path(X[test], y[test], self.scoring, **on_test)
                found[fold, shrunken[fold]] = path._shrunken
            return scores, found

        self.cv_scores_, own_ridge = scores_of(None)
        at = _best(self.cv_scores_, self.rule)
        # Other ridges of annealing where the best size has one.
        if shrinks_while_annealing(problem, self._refinement, int(self.sizes_[at]), 1 + self._is_piecewise):
            for ridge in other_annealing_ridges(problem):
                scores, _ = scores_of(ridge, self.cv_scores_)
                new = _best(scores, self.rule)
                if scores[:, new].mean() > self.cv_scores_[:, at].mean():
                    at, self.cv_scores_, self._annealing_ridge = new, scores, ridge
        self.n_features_ = int(self.sizes_[at])

    def _splitter(self, y, groups):
        """Folds; by groups of rows where these are given."""
        classification = is_classifier(self)
        if groups is None or not (self.cv is None or isinstance(self.cv, Integral)):
            return check_cv(self.cv, y, classifier=classification)
        n_folds = min(5 if self.cv is None else int(self.cv), len(np.unique(groups)))
        if n_folds < 2:
            raise ValueError(f"groups holds {n_folds} group of rows; expected at least two")
        return StratifiedGroupKFold(n_folds) if classification else GroupKFold(n_folds)

    def _choice(self, problem, design):
        k = min(self.n_features_, problem.n_units)
        return k, settings_of_size(self, problem, design, k)


def _best(scores: np.ndarray, rule: str) -> int:
    """Position of the greatest mean over folds, or the first within one standard error of it."""
    mean = scores.mean(axis=0)
    best = int(np.argmax(mean))
    if rule == "one_se" and len(scores) > 1:
        best = int(np.argmax(mean >= mean[best] - scores[:, best].std(ddof=1) / np.sqrt(len(scores))))
    return best


@fill_docstring(size=_SIZES, choice=_CHOICE, default_scoring="accuracy", own_attributes=_ATTRIBUTES, **CLASSIFIER_TEXTS)
class FSAClassifierCV(_SizeSearch, FSAClassifier):
    """Classifier on features found by annealing ([1]_), their number by cross-validation or by an information criterion.

    Parameters
    ----------
    {size}
    {parameters}
    {choice}

    Attributes
    ----------
    {own_attributes}
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order.
    loss_ : Loss
        The loss that was minimised.
    {attributes}

    {references}

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

    _family = FSAClassifier


@fill_docstring(size=_SIZES, choice=_CHOICE, default_scoring="R^2", own_attributes=_ATTRIBUTES, **REGRESSOR_TEXTS)
class FSARegressorCV(_SizeSearch, FSARegressor):
    """Regression on features found by annealing ([1]_), their number by cross-validation or by an information criterion.

    Parameters
    ----------
    {size}
    {parameters}
    {choice}

    Attributes
    ----------
    {own_attributes}
    loss_ : Loss
        The loss that was minimised.
    {attributes}

    {references}

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

    _family = FSARegressor
