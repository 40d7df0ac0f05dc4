"""FSA for classification and regression."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from ..common import (
    AdditiveModel,
    SparseClassifierMixin,
    SupportMixin,
    available_where,
    check_finite,
    check_offset,
    check_real,
    check_sample_weight,
    encode_classes,
    resolve_n_features,
    rollback_on_error,
    scaled_targets,
    stream_codes,
)
from ..designs import (
    PiecewiseLinear,
    as_out_of_core,
    local,
    rowwise,
    warn_if_constant,
    warn_of_lost_digits,
)
from ..objective import Loss, Prior, SquaredLoss, regression_loss
from ..parameters import check_choice, checked
from ..plots import plot_coefficients, plot_responses
from ..sklearn_bases import (
    BaseEstimator,
    CallbackSupportMixin,
    MultiOutputMixin,
    RegressorMixin,
    with_callbacks,
)
from ..solvers.schedules import Counts, Schedule
from ..sources import Moments, OutOfCoreMatrix, moments_of
from ..types import ClassWeight, Seed
from .fit import Start, condensed, solve, with_class_counts
from .problem import FINITE, FitProblem, check_data, fit_problem, fitted_attributes, reported_steps
from .settings import Constraints, FitSettings, Refinement
from .size_search import resolve_size


@dataclass(eq=False, repr=False, kw_only=True)
class FSAParameters:
    """Parameters of the FSA estimators; see :class:`FSAClassifier`."""

    n_features_to_select: int | float | str = field(default=10, kw_only=False)
    loss: str | Loss = "auto"
    response: str | PiecewiseLinear = "linear"
    constraints: Constraints | None = None
    prior: Prior | None = None
    scaling: str = checked("standardize", check_choice, ("standardize", "none"))
    schedule: str | Schedule | Counts = "inverse"
    learning_rate: float | str = checked("auto", check_real, 0.0, above=True, unless=("auto",))
    momentum: float | str = checked("auto", check_real, 0.0, 1.0, below=True, unless=("auto",))
    refinement: str | Refinement | None = "auto"
    fit_intercept: bool = True
    warm_start: bool = False
    class_weight: ClassWeight = field(
        default=None, init=False
    )  # declared here for its position; used by classifiers alone
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: bool = False


class FSAEstimator(CallbackSupportMixin, SupportMixin, BaseEstimator, FSAParameters):
    """Base class for the FSA estimators.

    The estimators minimise, over the coefficients theta and the intercept,

        mean loss + prior(theta) + ridge ||theta||^2   subject to exactly k non-zero theta_j

    by annealing. They start with all features. They then alternate between gradient steps and
    dropping the weakest features according to a schedule (Algorithm 1 of [1]_). Finally, the model
    is refined. Features are standardised internally, but ``coef_`` refers to the unscaled columns.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of linear responses; 0 for columns that are not selected. The first shape
        applies to ranking and to regression with one target. Otherwise, there is a single row for
        two classes, and one row per class or target for several.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of each output.
    ridge_ : float
        Ridge penalty of the final fit.
    refinement_ : str
        Description of the refinement and of the automatic settings.
    alternatives_ : dict of int to list of (int, float)
        For each selected column, up to five columns that could replace it. Each is listed with the
        predicted relative increase in the objective, which is negative for an improvement; the
        smallest increase comes first, and only increases below 0.05 are included. The candidates
        are the columns that annealing dropped last. A group is represented by its first column. The
        dict is empty without refinement, for models of an :class:`FSAPath`, for out-of-core data,
        and if Newton's method is too expensive.
    knots_ : ndarray of shape (k, n_bins + 1)
        Knots of each selected column in ascending order; only for piecewise-linear responses.
    responses_ : ndarray of shape (k, n_bins + 1, n_outputs)
        Response values at the knots. The mean of each response over the training rows is zero.
    missing_responses_ : ndarray of shape (k, n_outputs)
        Response to NaN; 0 if the training data had no NaN in the column.
    feature_importances_ : ndarray of shape (n_features,)
        Root mean square of each feature's standardised coefficients; 0 for features that are not
        selected.
    loss_curve_ : ndarray of shape (n_iter_,)
        Mean training loss before each step.
    n_iter_ : int
        Number of annealing steps. With a refinement, annealing ends as soon as k features remain.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).
    """

    _tasks: tuple[str, ...] = ()
    _mu: float = 100.0
    _momentum: float = 0.0
    _n_bins: int = 6

    coef_: np.ndarray
    intercept_: Any
    _last: Start | None = None  # previous solution, for ``warm_start``
    _has_offset: bool = False  # whether prediction requires an offset
    loss_: Loss
    # Validates the data of ``fit``, encodes the targets and sets attributes known before the fit
    encode: Callable[..., FitProblem]
    predict: Callable[..., np.ndarray]

    def plot(self, **options: Any) -> Any:
        """Plot the standardised coefficients or the response curves.

        Parameters
        ----------
        **options
            Options passed to :func:`annealed.learners.plots.plot_coefficients` or
            :func:`annealed.learners.plots.plot_responses`.

        Returns
        -------
        matplotlib.axes.Axes, or ndarray of them
            Axes of the plots.
        """
        return (plot_responses if hasattr(self, "responses_") else plot_coefficients)(
            self, **options
        )

    def fit_settings(self) -> FitSettings:
        """Validate the parameters.

        Returns
        -------
        FitSettings
            Validated settings.

        Raises
        ------
        ValueError
            If a parameter is not valid. The message states its name, its value and the expected
            values.
        """
        return FitSettings.of(self, self._tasks, self._mu, self._momentum, self._n_bins)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Select features and fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,), or (n_samples, n_outputs) in regression
            Class labels of any type (at least two classes), or numeric targets in regression.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            Known part of the scores, such as the log exposure for a loss with a log link; None
            means none. If it is given, an offset is also required for prediction.

        Returns
        -------
        FSAClassifier or FSARegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If y contains a single class, X contains NaN and the responses are linear, or a
            parameter is out of range.
        """
        settings = self.fit_settings()
        with rollback_on_error(self):
            self.__dict__.pop("_moments", None)  # a later partial_fit starts afresh
            return self._solve(
                self.encode(X, y, sample_weight=sample_weight, offset=offset), settings
            )

    def _solve(self, problem: FitProblem, settings: FitSettings, why: str = "") -> Self:
        """Resolve automatic settings, anneal, refine, and set the fitted attributes."""
        if settings.undecided:
            settings, why = resolve_size(problem, settings)
        problem = condensed(problem, settings)
        reported = (
            reported_steps(self, problem)
            if getattr(self, "_skl_callbacks", None)
            else nullcontext(())
        )
        with reported as callbacks:
            solution = solve(
                problem,
                settings,
                start=self._last if self.warm_start else None,
                callbacks=callbacks,
            )
        attributes = fitted_attributes(problem, solution, why)
        columns = np.flatnonzero(attributes["support_"])
        warn_if_constant(solution.design.inv)  # annealing drops constant columns first
        if solution.design.width == 1:
            names = columns if problem.names is None else problem.names[columns]
            warn_of_lost_digits(solution.design.mean, solution.design.inv, names)
        self._last = (columns, solution.coef, solution.intercept) if self.warm_start else None
        self.__dict__.update(attributes)
        return self

    # -- scikit-learn's interface ------------------------------------------------------------------

    @property
    def _is_piecewise(self) -> bool:
        return not (isinstance(self.response, str) and self.response == "linear")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_piecewise
        tags.input_tags.allow_nan = self._is_piecewise
        tags.target_tags.required = True
        return tags

    def transform(self, X: Any) -> Any:
        """Return the selected columns.

        Parameters
        ----------
        X : array, sparse matrix or out-of-core data of shape (n_samples, n_features)
            Rows to transform. Only the selected columns of out-of-core data are read. The result is
            lazy for Dask arrays.

        Returns
        -------
        array or sparse matrix of shape (n_samples, k)
            Selected columns of the rows.
        """
        source = as_out_of_core(X)
        if source is None:
            return super().transform(X)
        check_is_fitted(self)
        return check_data(self, source, piecewise=self._is_piecewise, reset=False).chosen(
            np.flatnonzero(self.support_)
        )

    def _scores(self, X: Any, offset: Any = None) -> np.ndarray:
        """Compute the scores (n_samples, n_outputs) of raw rows."""
        check_is_fitted(self)
        X = check_data(self, X, piecewise=self._is_piecewise, reset=False)
        if offset is None and self._has_offset:
            raise ValueError("the model was fitted with an offset; pass offset to this method too")
        model, n_outputs = AdditiveModel.from_estimator(self), np.size(self.intercept_)
        shift = 0.0 if offset is None else check_offset(local(offset), X.shape[0], n_outputs)
        if isinstance(X, OutOfCoreMatrix):
            return X.scores(model.scores_of_selected, model.selected, n_outputs) + shift
        return model.scores(X) + shift


class BatchEstimator(FSAEstimator):
    """Base class for the FSA estimators that can also learn from batches of rows ([2]_).

    Batches require the squared loss and linear responses. The estimators store the moments of the
    columns and targets (8 M^2 bytes for M columns), and the result equals that of a fit on all
    rows.

    References
    ----------
    .. [2] L. Sun, M. Wang, S. Zhu, A. Barbu, "A Novel Framework for Online Supervised Learning with
           Feature Selection", arXiv:1803.11521 (2018).
    """

    _learns_from_batches: bool = True
    _moments: Moments | None = None
    _target_shape: tuple[int, ...] = ()  # shape of the target of one row
    _by_moments: Callable[..., FitProblem]  # returns a problem on rows with given moments

    def _takes_batches(self) -> bool:
        """Check that the parameters allow ``partial_fit``, which is otherwise not available."""
        loss = "squared" if isinstance(self, RegressorMixin) and self.loss == "auto" else self.loss
        needs = f"partial_fit is not available for {type(self).__name__}"
        if not self._learns_from_batches:
            raise AttributeError(f"{needs}; use FSAClassifier or FSARegressor")
        if not (loss == "squared" or isinstance(loss, SquaredLoss)):
            raise AttributeError(f"{needs} with loss={loss!r}; use loss='squared'")
        if self._is_piecewise:
            raise AttributeError(f"{needs} with piecewise-linear responses; use response='linear'")
        return True

    def _first_batch(self) -> bool:
        first = self._moments is None
        if first and hasattr(self, "support_"):
            warnings.warn(
                "partial_fit starts from an empty state, because fit does not store its training "
                "rows",
                UserWarning,
                3,
            )
        return first

    def _add_batch(
        self, X: Any, targets: np.ndarray, weight: np.ndarray, forgetting: float, refresh: bool
    ) -> Self:
        check_real("forgetting", forgetting, 0.0, 1.0, above=True)
        batch = moments_of(X, targets, weight)
        if not np.isfinite(batch.scatter).all():
            check_finite(X, getattr(self, "feature_names_in_", None), FINITE)
            raise ValueError("squares of values in X or y overflow; rescale the data")
        if (old := self._moments) is not None:
            batch = (
                replace(old, n_rows=forgetting * old.n_rows, scatter=forgetting * old.scatter)
                + batch
            )
        self._moments = batch
        return self.refresh() if refresh else self

    def refresh(self) -> Self:
        """Select features and fit the model on all batches passed to ``partial_fit`` so far.

        Parameters may be changed before the call, for example with
        ``set_params(n_features_to_select=5).refresh()``.

        Returns
        -------
        FSAClassifier or FSARegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are no rows, or fewer rows than features to select.
        """
        moments, settings = self._moments, self.fit_settings()
        if moments is None or not moments.n_rows > 0:
            raise ValueError("the model has received no rows; call partial_fit first")
        m = self.n_features_in_
        k = 1 if isinstance(settings.size, str) else min(m, resolve_n_features(settings.size, m))
        if moments.n_samples < k:
            raise ValueError(
                f"partial_fit has received only {moments.n_samples} rows; pass refresh=False "
                f"until it has received at least n_features_to_select={k} rows"
            )
        with rollback_on_error(self):
            rows = moments.equivalent_rows()
            problem = self._by_moments(
                rows[:, :m], rows[:, m:], np.full(len(rows), moments.n_rows / len(rows))
            )
            # folds of condensed rows are meaningless
            problem.facts = replace(problem.facts, out_of_core=True)
            return self._solve(problem, settings)


@dataclass(eq=False, repr=False, kw_only=True)
class FSAClassifier(SparseClassifierMixin, BatchEstimator):
    """Classifier that selects exactly k features by annealing (Algorithm 1 of [1]_).

    Feature selection with annealing (FSA) approximately minimises mean loss + prior(theta) + ridge
    ||theta||^2 subject to theta_j != 0 for exactly k features (columns) j. Here theta are the
    coefficients of the scaled columns; ``prior`` and ``refinement`` define the penalties.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default 10
        Number k of features to select, or a fraction of the features in (0, 1]. If the constraints
        define groups, k is the number of groups. If k exceeds the number of features, all are
        selected, with a warning. "auto" chooses k by the extended BIC (see :class:`FSAPath`) or,
        with linear responses and fewer than 100 rows in the rarest class, by five-fold
        cross-validation. The chosen k may be 0.
    loss : str or Loss, default "auto"
        Loss to minimise.

        * "auto": "flipped_logistic" for two classes, "multinomial" for more than two;
        * "logistic": ln(1 + exp(-y f)) for label y = -1 or +1 and score f;
        * "flipped_logistic": logistic loss that is robust to a few wrong labels;
        * "huberised_hinge": smooth hinge loss, eq. (8) of [2]_;
        * "lorenz": loss with bounded influence for noisy labels, eq. (8) of [1]_;
        * "multinomial": cross-entropy of softmax scores;
        * "squared": half the squared error on labels -1 and +1;
        * a :class:`Loss` object.

        For more than two classes, "logistic" means "multinomial", "squared" is summed over the
        classes, and other margin losses apply to differences between class scores
        (:class:`VapnikLoss`).
    response : {"linear", "piecewise"} or PiecewiseLinear, default "linear"
        Contribution of a feature to the score: a coefficient times its value ("linear"), or a
        piecewise-linear function of the value ([2]_, section 4.1) that accepts NaN. "piecewise"
        means ``PiecewiseLinear(n_bins=6)``.
    constraints : Constraints or None, default None
        Groups, included and excluded columns, bounds and monotone responses.
    prior : Prior or None, default None
        Shrinkage and smoothness penalties, applied during annealing and in the final fit.
    scaling : {"standardize", "none"}, default "standardize"
        "standardize" scales each column to variance one; "none" divides all columns by the same
        number. In very sparse matrices (at most 10% of entries stored), "standardize" gives columns
        with few non-zero values a smaller variance.
    schedule : str, Schedule or function, default "inverse"
        Number of features that remain after each annealing step.

        * "inverse", "inverse_arxiv", "exponential" or "linear": see :class:`Schedule`;
        * a :class:`Schedule` object;
        * a function of (n_features, k, n_steps) that returns a non-increasing sequence ending with
          k.
    learning_rate : float or "auto", default "auto"
        Positive size of the gradient steps on the mean loss with scaled columns. "auto" is the
        loss's ``default_step_size`` or, if this is None, the inverse of the gradient's Lipschitz
        constant.
    momentum : float or "auto", default "auto"
        Fraction of the previous step that is added to each step, in [0, 1). "auto" means 0.
    refinement : "auto", None or Refinement, default "auto"
        Steps that follow annealing: exchanges of features, and a final fit with a ridge penalty.
        "auto" means ``Refinement()``. None means no refinement, as in Algorithm 1 of [1]_.
    fit_intercept : bool, default True
        Whether to fit an intercept.
    warm_start : bool, default False
        Whether ``fit`` starts from the coefficients of the previous fit, if the numbers of scores
        and knots are unchanged.
    class_weight : dict, "balanced" or None, default None
        Factors for the row weights, as ``{label: factor}``. "balanced" gives all classes the same
        total weight. None means no factors.
    random_state : int, RandomState or None, default None
        Random seed for subsampling out-of-core data (see :func:`on_disk`, :func:`on_dask`).
    n_jobs : int or None, default None
        Number of threads; -1 means all processors, and None means one. The result does not depend
        on it.
    verbose : bool, default False
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    loss_ : Loss
        Loss function that was minimised.
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the unscaled columns; only for linear responses.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept of each score.
    knots_, responses_, missing_responses_
        Piecewise-linear responses; see :class:`PiecewiseLinear`.
    ridge_, refinement_, alternatives_
        Results of the refinement; see :class:`Refinement`.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, "yes", "no")
    >>> FSAClassifier(2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    _tasks = ("binary", "multiclass")

    class_weight: ClassWeight = None

    def encode(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, offset: Any = None
    ) -> FitProblem:
        """Validate the arguments of :meth:`fit`, and return them as a problem for the solvers.

        Parameters
        ----------
        X, y, sample_weight, offset : array
            As for :meth:`fit`.

        Returns
        -------
        FitProblem
            Validated data, encoded targets, loss and constraints.
        """
        X, y = check_data(self, X, y, piecewise=self._is_piecewise)
        targets, self.loss_, weight = self._encode_labels(y, self.loss, sample_weight, X.shape[0])
        self._has_offset = offset is not None
        problem = fit_problem(self, X, targets, weight, classification=True)
        return problem if offset is None else problem.with_offset(offset)

    @available_where(BatchEstimator._takes_batches)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        forgetting: float = 1.0,
        refresh: bool = True,
    ) -> Self:
        """Add a batch of rows, and fit the model on all rows so far.

        Parameters
        ----------
        X : array, sparse matrix or out-of-core data of shape (n_samples, n_features)
            Batch of rows.
        y : array of shape (n_samples,)
            Targets of the batch.
        classes : array or None, default None
            All labels that may occur in any batch; required for the first batch.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.
        forgetting : float, default 1.0
            Factor for the weights of all earlier rows, in (0, 1].
        refresh : bool, default True
            Whether to fit the model. If False, the rows are only added; call :meth:`refresh` to
            fit.

        Returns
        -------
        FSAClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or parameters are not valid for :meth:`fit`, the columns differ from those
            of earlier batches, or a label is not in ``classes``.
        """
        with rollback_on_error(self):
            X, y = check_data(self, X, y, piecewise=False, reset=self._first_batch())
            codes = stream_codes(self, y, classes)
            weight = check_sample_weight(sample_weight, X.shape[0])
            if self.class_weight is not None:
                if not isinstance(self.class_weight, dict):
                    raise ValueError(
                        f"class_weight={self.class_weight!r} requires all rows at once; use a "
                        "dict or None with partial_fit"
                    )
                weight = weight * compute_sample_weight(self.class_weight, y)
            _, targets, self.loss_ = encode_classes(self.classes_, "squared")
            return self._add_batch(X, targets[codes], weight, forgetting, refresh)

    def _by_moments(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> FitProblem:
        return with_class_counts(fit_problem(self, X, y, weight, classification=True))

    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """Compute the class scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to score.
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default None
            Values that are added to the scores; required if the model was fitted with an offset.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, one score per row, which is positive if ``classes_[1]`` is predicted;
            otherwise, one score per class.
        """
        return self._of_classes(self._scores(X, offset))

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict labels.
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default None
            Values that are added to the scores; required if the model was fitted with an offset.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        return rowwise(self.labels, self.decision_function(X, offset), dtype=self.classes_.dtype)

    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Predict class probabilities.

        The logistic and multinomial losses and, for two classes, the flipped logistic loss define
        probabilities. For other losses, the logistic function (two classes) or softmax (more) of
        the scores is returned, which is not calibrated. :class:`FSAClassifierCV` calibrates the
        probabilities for every loss.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict probabilities.
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default None
            Values that are added to the scores; required if the model was fitted with an offset.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return rowwise(self._probabilities, self.decision_function(X, offset), len(self.classes_))


@dataclass(eq=False, repr=False, kw_only=True)  # error messages name the class
class FSARegressor(MultiOutputMixin, RegressorMixin, BatchEstimator):
    """Regressor that selects exactly k features by annealing (Algorithm 1 of [1]_).

    Feature selection with annealing (FSA) approximately minimises mean loss + prior(theta) + ridge
    ||theta||^2 subject to theta_j != 0 for exactly k features (columns) j. Here theta are the
    coefficients of the scaled columns; ``prior`` and ``refinement`` define the penalties.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default 10
        Number k of features to select, as in :class:`FSAClassifier`, but "auto" uses five-fold
        cross-validation with linear responses and fewer than 150 rows. Otherwise, and always for
        the Cox loss, it uses the extended BIC.
    loss : str or Loss, default "auto"
        Loss to minimise.

        * "auto" or "squared": half the squared error, on targets scaled to mean 0 and variance 1;
        * "huber" (robust to outliers) and "quantile" (the median; for another quantile, pass for
          example ``QuantileLoss(0.9)``): on targets centred at their median and divided by 1.4826
          times their median absolute deviation, an estimate of the standard deviation;
        * "poisson" and "negative_binomial" (dispersion 1): for counts;
        * "gamma": for positive amounts; "tweedie" (power 1.5): for non-negative amounts that
          include zeros;
        * "cox": for survival times. ``y`` is a structured array with a boolean event field and a
          time field, or has two columns: the time, and 1 for an event or 0 for a censored row;
        * a :class:`Loss` object.
    response, constraints, prior, scaling : object
        As in :class:`FSAClassifier`.
    schedule : str, Schedule or function, default "inverse"
        As in :class:`FSAClassifier`, but with a default speed of mu = 30; see :class:`Schedule`.
    learning_rate : float or "auto", default "auto"
        As in :class:`FSAClassifier`.
    momentum : float or "auto", default "auto"
        As in :class:`FSAClassifier`, but "auto" means 0.9, or 0 for the quantile and Cox losses.
    refinement, fit_intercept, warm_start, random_state, n_jobs, verbose : object
        As in :class:`FSAClassifier`.

    Attributes
    ----------
    loss_ : Loss
        Loss function that was minimised.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of the unscaled columns, in the units of the targets; only for linear
        responses.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of each output.
    support_, knots_, responses_, missing_responses_, ridge_, refinement_, alternatives_
        As in :class:`FSAClassifier`.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> FSARegressor(2).fit(X, X[:, 4] + 2 * X[:, 9]).get_support(indices=True)
    array([4, 9])
    """

    _tasks = ("regression",)
    _mu = 30.0
    _momentum = 0.9

    def encode(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, offset: Any = None
    ) -> FitProblem:
        """Validate the arguments of :meth:`fit`, and return them as a problem for the solvers.

        Parameters
        ----------
        X, y, sample_weight, offset : array
            As for :meth:`fit`.

        Returns
        -------
        FitProblem
            Validated data, encoded targets, loss and constraints.
        """
        loss = regression_loss(
            "squared" if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        )
        X, y = check_data(
            self,
            X,
            loss.encode_targets(y),
            piecewise=self._is_piecewise,
            multi_output=True,
            y_numeric=True,
        )
        weight = check_sample_weight(sample_weight, len(y))
        self.loss_, self._has_offset = loss, offset is not None
        flat = y.ndim == 1
        if offset is not None and loss.target_scaling is not None:
            y = y - check_offset(local(offset), len(y), y[0].size).reshape(y.shape)
            offset = None
        problem = self._scaled_problem(X, y, weight, flat)
        return problem if offset is None else problem.with_offset(offset)

    @available_where(BatchEstimator._takes_batches)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        forgetting: float = 1.0,
        refresh: bool = True,
    ) -> Self:
        """Add a batch of rows, and fit the model on all rows so far.

        The result equals that of :meth:`fit` on all these rows, up to rounding.

        Parameters
        ----------
        X : array, sparse matrix or out-of-core data of shape (n_samples, n_features)
            Batch of rows with at most 10,000 columns.
        y : array of shape (n_samples,), or (n_samples, n_outputs)
            Targets of the batch.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.
        forgetting : float, default 1.0
            Factor for the weights of all earlier rows, in (0, 1]; values below 1 track drifting
            data.
        refresh : bool, default True
            Whether to fit the model. If False, the rows are only added; call :meth:`refresh` to
            fit.

        Returns
        -------
        FSARegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or parameters are not valid for :meth:`fit`, or the columns differ from
            those of earlier batches.
        """
        with rollback_on_error(self):
            first = self._first_batch()
            X, y = check_data(
                self, X, y, piecewise=False, reset=first, multi_output=True, y_numeric=True
            )
            targets = np.asarray(y, np.float64)
            if not first and targets.shape[1:] != self._target_shape:
                raise ValueError(
                    f"y has shape {targets.shape}; "
                    f"expected {(len(targets), *self._target_shape)}, as in the first batch"
                )
            self.loss_, self._target_shape = regression_loss("squared"), targets.shape[1:]
            weight = check_sample_weight(sample_weight, len(targets))
            return self._add_batch(
                X, targets.reshape(len(targets), -1), weight, forgetting, refresh
            )

    def _by_moments(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> FitProblem:
        return self._scaled_problem(X, y, weight, self._target_shape == ())

    def _scaled_problem(self, X: Any, y: np.ndarray, weight: np.ndarray, flat: bool) -> FitProblem:
        share = weight / max(weight.sum(), 1e-300)
        targets, shift, scale = scaled_targets(y, share, self.loss_.target_scaling)
        return fit_problem(self, X, targets, weight, shift=shift, scale=scale, flat=flat)

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict targets.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            Values that are added to the scores; required if the model was fitted with an offset.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions: the mean for the Poisson, negative binomial, gamma and Tweedie losses, the
            log relative hazard for the Cox loss (one value per row), and otherwise the score, in
            the units of the targets. There is one column per output if the training targets were
            two-dimensional.
        """
        scores = self._scores(X, offset)
        predicted = self.loss_.inverse_link(scores)
        return predicted[:, 0] if np.ndim(self.intercept_) == 0 else predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Compute R^2, the fraction of deviance explained, or the concordance index.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to score.
        y : array
            True targets, in the same format as in :meth:`fit`.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights, which the concordance index ignores; None means equal weights.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            Values that are added to the scores; required if the model was fitted with an offset.

        Returns
        -------
        float
            R^2 by default. For the Poisson, negative binomial, gamma and Tweedie losses, the
            fraction of deviance explained; for the Cox loss, the concordance index. Higher values
            are better.
        """
        return self.loss_.quality(y, self.predict(X, offset), sample_weight)
