"""FSA with the number of features chosen by cross-validation or by an information criterion."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..common import AdditiveModel, check_two_classes, rollback_on_error
from ..model_selection.calibration import calibrate
from ..model_selection.size import MIN_PROBABILITY, choose_size
from ..parameters import check_choice, checked
from ..plots import plot_scores
from ..sources.matrix import OutOfCoreMatrix
from ..types import ClassWeight
from .estimators import FSAClassifier, FSAEstimator, FSARegressor
from .fit import anneals_with_ridge, information_criterion, solve_path
from .path import check_sizes
from .problem import FitProblem, Solution, fitted_attributes
from .settings import FitSettings
from .size_search import Score, held_out


@dataclass(eq=False, repr=False, kw_only=True)
class _SizeParameters:
    """Parameters of the size search, in the last base class so that they come first."""

    sizes: Any = field(default="auto", kw_only=False)
    cv: Any = None
    scoring: str | Callable | None = None
    criterion: str = checked("cv", check_choice, ("cv", "ebic"))
    rule: str = checked("explained", check_choice, ("explained", "best", "one_se"))


@dataclass(eq=False, repr=False)
class _SizeChoice(FSAEstimator, _SizeParameters):
    """Mixin that chooses the number of features before the estimator is fitted."""

    _learns_from_batches = False
    # Attribute that ``fit`` sets, not a parameter
    n_features_to_select: int | float | str = field(default="auto", init=False)

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, offset: Any = None
    ) -> Self:
        """Choose the number of features, then select and fit on all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,), or (n_samples, n_outputs) in regression
            Targets.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.
        groups : array of shape (n_samples,) or None, default None
            Group of each row, such as its patient. No group is split between the training and test
            rows of a fold. The groups are passed to ``cv``; an integer ``cv`` then means group
            folds.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            Known part of the scores. It cannot be combined with ``scoring``, since scorers do not
            pass an offset.

        Returns
        -------
        FSAClassifierCV or FSARegressorCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or parameters are not valid for the estimator's ``fit``, or a size is not a
            non-negative integer.
        """
        with rollback_on_error(self):
            self.__dict__.pop("calibration_", None)  # left by an earlier fit
            settings = self.fit_settings()
            problem = self.encode(X, y, sample_weight=sample_weight, offset=offset)
            if self.criterion == "ebic":
                self.sizes_ = check_sizes(
                    self.sizes, problem.n_units, round(problem.n_rows), problem.n_included
                )
                self.ebic_ = np.array(
                    [
                        information_criterion(problem, solution)
                        for solution in solve_path(problem, settings, self.sizes_)
                    ]
                )
                self.n_features_ = int(self.sizes_[np.argmin(self.ebic_)])
                how = "the extended Bayesian information criterion"
            else:
                labels = column_or_1d(y) if is_classifier(self) else np.asarray(y)
                settings = self._cross_validated(
                    problem, settings, X, labels, sample_weight, groups, offset
                )
                how = "cross-validation"
            settings = replace(
                settings, size=min(self.n_features_, problem.n_units), undecided=False
            )
            return self._solve(problem, settings, f"size {self.n_features_} by {how}: ")

    def plot_path(self, ax: Any = None) -> Any:
        """Plot the held-out scores against the number of features.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default None
            Axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
            Axes of the plot.

        Raises
        ------
        ValueError
            If ``criterion="ebic"``, since there are no held-out scores.
        """
        check_is_fitted(self, "n_features_")
        if self.criterion == "ebic":
            raise ValueError("criterion='ebic' computes no held-out scores; use criterion='cv'")
        return plot_scores(self.sizes_, self.cv_scores_, selected=self.n_features_, ax=ax)

    def _cross_validated(
        self,
        problem: FitProblem,
        settings: FitSettings,
        X: Any,
        y: np.ndarray,
        sample_weight: Any,
        groups: Any,
        offset: Any,
    ) -> FitSettings:
        """Set ``n_features_`` by cross-validation; return the best settings and a description."""
        splits = list(self._splitter(y, groups).split(np.zeros((len(y), 1)), y, groups))
        if is_classifier(self):
            for i, (train, _) in enumerate(splits):
                check_two_classes(
                    y[train],
                    problem.weight[train],
                    f"training rows of fold {i + 1} of {len(splits)}",
                )
        n_training = min(len(train) for train, _ in splits)
        self.sizes_ = check_sizes(self.sizes, problem.n_units, n_training, problem.n_included)
        if offset is not None and self.scoring is not None:
            raise ValueError(
                f"scoring={self.scoring!r} does not support an offset; use scoring=None"
            )
        of_rows = {"sample_weight": sample_weight, "offset": offset}
        of_rows = {k: np.asarray(v) for k, v in of_rows.items() if v is not None}
        score, predicted = self._score_of(problem, X, y, of_rows)
        scores = held_out(problem, settings, splits, np.union1d(0, self.sizes_), score)
        constant, self.cv_scores_ = scores[:, 0], scores[:, -len(self.sizes_) :]
        at = choose_size(-self.cv_scores_, self.rule, -constant)
        # At sizes that anneal with a ridge, also try other ridges
        if anneals_with_ridge(problem, settings, self.sizes_)[at]:
            needs_ridge = anneals_with_ridge(problem.rows(splits[0][0]), settings, self.sizes_)
            ridges = (0.03,) if problem.loss.is_quadratic else (0.003, 0.03)
            for ridge in ridges if needs_ridge.any() else ():
                tried, scores = replace(settings, annealing_ridge=ridge), self.cv_scores_.copy()
                score, changed = self._score_of(problem, X, y, of_rows)
                scores[:, needs_ridge] = held_out(
                    problem, tried, splits, self.sizes_[needs_ridge], score
                )
                new = choose_size(-scores, self.rule, -constant)
                if scores[:, new].mean() > self.cv_scores_[:, at].mean():
                    at, self.cv_scores_, settings = new, scores, tried
                    predicted |= changed
        self.n_features_ = int(self.sizes_[at])
        if is_classifier(self) and self.n_features_:
            rows, scores = map(np.concatenate, zip(*predicted[self.n_features_], strict=True))
            codes: Any = np.searchsorted(self.classes_, y[rows])  # type: ignore[attr-defined]
            self.__dict__["calibration_"] = calibrate(scores, codes, problem.weight[rows])
        return settings

    def _score_of(
        self, problem: FitProblem, X: Any, y: np.ndarray, of_rows: dict[str, np.ndarray]
    ) -> tuple[Score, dict[int, list[tuple[np.ndarray, np.ndarray]]]]:
        """Return a function that scores solutions on held-out rows, and what it collects.

        For a classifier, the function collects the held-out rows and predicted scores of each size.
        """
        scorer = check_scoring(self, self.scoring)
        model = copy.copy(self)  # reused for all solutions
        named = problem.names is not None and not isinstance(problem.X, OutOfCoreMatrix)
        # The rows are already validated, and validation takes longer than prediction.
        by_probability = self.scoring is None and is_classifier(self)
        # preserves the column names of a data frame
        rows_of = X if named and not by_probability else problem.X
        held: list[Any] = [None, None]  # the held-out rows of a fold, extracted once for all sizes
        predicted: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}

        def score(part: FitProblem, solution: Solution, rows: np.ndarray) -> float:
            model.__dict__.update(fitted_attributes(part, solution))
            options = {name: values[rows] for name, values in of_rows.items()}
            if held[0] is not rows:
                held[:] = rows, _safe_indexing(rows_of, rows)
            if is_classifier(self):
                values = held[1] if by_probability else problem.X[rows]
                scores = AdditiveModel.from_estimator(model).scores(values)
                scores = scores + problem.y[rows].imag
                if scores.shape[1] < 3:
                    scores = scores[:, -1] - (scores[:, 0] if scores.shape[1] > 1 else 0.0)
                predicted.setdefault(solution.size, []).append((rows, scores))
            if by_probability:
                p = model._probabilities(scores)  # type: ignore[attr-defined]
                of_class = p[np.arange(len(rows)), np.searchsorted(model.classes_, y[rows])]  # type: ignore[attr-defined]
                return float(
                    np.average(
                        np.log(np.maximum(of_class, MIN_PROBABILITY)),
                        weights=options.get("sample_weight"),
                    )
                )
            return scorer(model, held[1], y[rows], **options)

        return score, predicted

    def _splitter(self, y: np.ndarray, groups: Any) -> Any:
        """Return the cross-validation splitter, which respects the row groups if given."""
        classification = is_classifier(self)
        if groups is None or not (self.cv is None or isinstance(self.cv, Integral)):
            return check_cv(self.cv, y, classifier=classification)
        n_folds = min(5 if self.cv is None else int(self.cv), len(np.unique(groups)))
        if n_folds < 2:
            raise ValueError(f"groups contains only {n_folds} group; expected at least two groups")
        return StratifiedGroupKFold(n_folds) if classification else GroupKFold(n_folds)


@dataclass(eq=False, repr=False, kw_only=True)
class FSAClassifierCV(_SizeChoice, FSAClassifier):
    """FSA classifier ([1]_) that chooses the number of features from the data.

    FSA means feature selection with annealing. The number of features (the size) is chosen by
    cross-validation or by an information criterion. The final model minimises the same objective as
    :class:`FSAClassifier`.

    Parameters
    ----------
    sizes : array of int or "auto", default "auto"
        Numbers of features to try; see :class:`FSAPath`.
    cv : int, splitter or None, default None
        Cross-validation splitter or number of folds; None means five folds. Without a splitter, the
        rows are not shuffled. Only used with ``criterion="cv"``, like ``scoring`` and ``rule``.
    scoring : str, function or None, default None
        scikit-learn scorer or its name. None means the negative log loss, where probabilities below
        0.001 are replaced by 0.001.
    criterion : {"cv", "ebic"}, default "cv"
        Criterion that chooses the size. "cv" is cross-validation with one :class:`FSAPath` per
        fold. "ebic" is the extended Bayesian information criterion (EBIC) on a single path, which
        is several times faster.
    rule : {"explained", "best", "one_se"}, default "explained"
        Rule that chooses the size from the mean scores. "explained" selects the smallest size that
        achieves 97% of the best size's improvement over a constant model. "best" selects the size
        with the best score. "one_se" selects the smallest size within one standard error of the
        best. A constant model is a candidate only if 0 is among the sizes.
    loss, response, constraints, prior, scaling, schedule, learning_rate, momentum : object
        As in :class:`FSAClassifier`.
    refinement : object
        As in :class:`FSAClassifier`.
    fit_intercept, warm_start, class_weight, random_state, n_jobs, verbose : object
        As in :class:`FSAClassifier`. The folds are fitted one after the other.

    Attributes
    ----------
    n_features_ : int
        Number of selected features.
    sizes_ : ndarray of shape (n_sizes,), int
        Sizes tried, in ascending order.
    cv_scores_ : ndarray of shape (n_folds, n_sizes)
        Held-out scores; only available with ``criterion="cv"``.
    ebic_ : ndarray of shape (n_sizes,)
        Value of the information criterion at each size; only available with ``criterion="ebic"``.
    calibration_ : tuple of (float, float) or None
        Slope a and flip rate f (estimated fraction of wrong labels) of ``predict_proba``, which
        returns f + (1 - 2 f) / (1 + exp(-a score)) for two classes, and softmax(a scores), with f =
        0, for more. The pair minimises the log loss on the held-out rows plus a weak penalty on
        slopes other than 1. None with ``criterion="ebic"`` or if no features are selected.
    classes_, loss_, support_, coef_, intercept_, ridge_, refinement_, alternatives_
        As in :class:`FSAClassifier`.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

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

    class_weight: ClassWeight = None  # hidden by _SizeChoice, which the regressor shares


@dataclass(eq=False, repr=False)
class FSARegressorCV(_SizeChoice, FSARegressor):
    """FSA regressor ([1]_) that chooses the number of features from the data.

    FSA means feature selection with annealing. The number of features (the size) is chosen by
    cross-validation or by an information criterion. The final model minimises the same objective as
    :class:`FSARegressor`.

    Parameters
    ----------
    sizes : array of int or "auto", default "auto"
        Numbers of features to try; see :class:`FSAPath`.
    cv : int, splitter or None, default None
        Cross-validation splitter or number of folds; None means five folds. Without a splitter, the
        rows are not shuffled. Only used with ``criterion="cv"``, like ``scoring`` and ``rule``.
    scoring : str, function or None, default None
        scikit-learn scorer or its name. None means the ``score`` method, by default R^2.
    criterion : {"cv", "ebic"}, default "cv"
        Criterion that chooses the size. "cv" is cross-validation with one :class:`FSAPath` per
        fold. "ebic" is the extended Bayesian information criterion (EBIC) on a single path, which
        is several times faster.
    rule : {"explained", "best", "one_se"}, default "explained"
        Rule that chooses the size from the mean scores. "explained" selects the smallest size that
        achieves 97% of the best size's improvement over a constant model. "best" selects the size
        with the best score. "one_se" selects the smallest size within one standard error of the
        best. A constant model is a candidate only if 0 is among the sizes.
    loss, response, constraints, prior, scaling, schedule, learning_rate, momentum : object
        As in :class:`FSARegressor`.
    refinement : object
        As in :class:`FSARegressor`.
    fit_intercept, warm_start, random_state, n_jobs, verbose : object
        As in :class:`FSARegressor`. The folds are fitted one after the other.

    Attributes
    ----------
    n_features_ : int
        Number of selected features.
    sizes_ : ndarray of shape (n_sizes,), int
        Sizes tried, in ascending order.
    cv_scores_ : ndarray of shape (n_folds, n_sizes)
        Held-out scores; only available with ``criterion="cv"``.
    ebic_ : ndarray of shape (n_sizes,)
        Value of the information criterion at each size; only available with ``criterion="ebic"``.
    loss_, support_, coef_, intercept_, ridge_, refinement_, alternatives_
        As in :class:`FSARegressor`.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

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
