"""Confidence intervals after selection, based on sample splitting."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state

from ..common.validation import check_integer, check_real, rollback_on_error
from ..fsa import FitProblem, FitSettings, FSAEstimator, solve
from ..objective.losses import FlippedLogisticLoss, LogisticLoss
from ..sklearn_bases import BaseEstimator, MetaEstimatorMixin, clone
from ..solvers.newton import SHRINKAGE, SupportProblem, hessian, refit
from ..types import ArrayLike, Matrix, Seed
from .selector import checked_problem, fit_settings_of, units_of

_ROWS_PER_COLUMN = 3  # minimum rows in a half per fitted column (heuristic)


class FSAInference(MetaEstimatorMixin, BaseEstimator):
    """Coefficients of selected columns with confidence intervals that account for the selection.

    The rows are split into random halves. One half is used to select columns. On the other half,
    the loss is minimised, without a ridge penalty, over the coefficients of these columns and of
    the columns selected on all rows. The halves then exchange roles. Estimates and variances are
    averaged over several splits [1]_. The reported variance is the mean of the variances within
    splits plus the variance of the estimates between splits divided by the number of splits. The
    standard errors are robust to heteroscedasticity (HC3 [2]_).

    The intervals refer to the coefficients of the linear model with all relevant columns. They are
    valid if the halves select all of these columns. The confidence level applies to a column that
    is specified in advance. Use :class:`FDRSelector` to control false selections.

    Parameters
    ----------
    estimator : FSAClassifier or FSARegressor
        Linear estimator with one output and a fixed number of features to select. For two classes,
        the logistic loss replaces the default loss.
    confidence : float, default 0.95
        Confidence level, in (0, 1).
    n_splits : int, default 5
        Number of splits; each requires two fits.
    random_state : int, RandomState or None, default None
        Random seed for the splits.

    Attributes
    ----------
    estimator_ : FSAClassifier or FSARegressor
        Estimator fitted on all rows.
    columns_ : ndarray of shape (k,), int
        Indices, in ascending order, of the columns selected by the fit to all rows.
    coef_ : ndarray of shape (k,)
        Estimated coefficients of these columns in their original units.
    standard_errors_ : ndarray of shape (k,)
        Standard errors of the coefficients.
    intervals_ : ndarray of shape (k, 2)
        Lower and upper confidence limits.
    selection_frequencies_ : ndarray of shape (k,)
        Fraction of the halves in which each of these columns was selected.

    References
    ----------
    .. [1] V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural
           parameters", Econometrics Journal 21 (2018), section 3.4.
    .. [2] J. MacKinnon, H. White, "Some heteroskedasticity-consistent covariance matrix estimators
           with improved finite sample properties", Journal of Econometrics 29 (1985).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAInference, FSARegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = 2 * X[:, 3] - X[:, 7] + rng.standard_normal(300)
    >>> found = FSAInference(FSARegressor(2), random_state=0).fit(X, y)
    >>> np.round(found.intervals_, 1)
    array([[ 1.9,  2.1],
           [-1. , -0.8]])
    """

    def __init__(
        self,
        estimator: FSAEstimator,
        *,
        confidence: float = 0.95,
        n_splits: int = 5,
        random_state: Seed = None,
    ):
        self.estimator = estimator
        self.confidence = confidence
        self.n_splits = n_splits
        self.random_state = random_state

    def fit(self, X: Matrix, y: ArrayLike, **fit_params: Any) -> Self:
        """Select columns and estimate their coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Dense data without NaN, and without constant or duplicate columns.
        y : array of shape (n_samples,)
            Targets.
        **fit_params
            Arguments passed to the estimator's ``fit``.

        Returns
        -------
        FSAInference
            The fitted estimator.

        Raises
        ------
        ValueError
            If X is not dense, has fewer than 50 rows or twelve rows per selected column, contains
            NaN, or has constant or duplicate columns; if there are several outputs or non-linear
            responses; if the loss is not a sum over rows or has no second derivatives; or if the
            data or parameters are not valid for the estimator's ``fit``.
        """
        check_real("confidence", self.confidence, 0.0, 1.0, above=True, below=True)
        check_integer("n_splits", self.n_splits, 1)
        with rollback_on_error(self):
            self._fit(X, y, fit_params)
        return self

    def _fit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        model, problem, columns, included = checked_problem(self.estimator, X, y, fit_params)
        settings, loss = fit_settings_of(model), problem.loss
        if settings.response is not None or problem.y.shape[1] > 1 or not loss.pointwise:
            raise ValueError(
                f"{self.estimator!r} does not support intervals; expected linear responses, one "
                "output and a loss that is a sum over rows"
            )
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.columns_ = np.flatnonzero(self.estimator_.support_)
        selected = np.searchsorted(columns, self.columns_)
        k, size = len(selected), len(np.unique(units_of(problem)[selected]))
        if len(problem.X) < 4 * _ROWS_PER_COLUMN * k:
            raise ValueError(
                f"X has {len(problem.X)} rows for {k} selected columns; expected at least "
                f"{4 * _ROWS_PER_COLUMN} rows per column"
            )
        loss = LogisticLoss() if isinstance(loss, FlippedLogisticLoss) else loss
        problem = replace(problem, loss=loss, included=included if included.any() else None)
        settings = replace(settings, size=size)
        rng = check_random_state(self.random_state)
        estimates, variances, often = (
            np.zeros((self.n_splits, k)),
            np.zeros((self.n_splits, k)),
            np.zeros(k),
        )
        for i in range(self.n_splits if k else 0):
            halves = _halves(problem, rng)
            for select, estimate in (halves, halves[::-1]):
                kept = solve(problem.rows(select), settings).kept
                often += np.isin(selected, kept)
                coef, variance = _estimated(problem.rows(estimate), settings, selected, kept)
                estimates[i] += 0.5 * coef
                variances[i] += 0.25 * variance
        self.coef_ = estimates.mean(axis=0)
        self.standard_errors_ = np.sqrt(
            variances.mean(axis=0) + estimates.var(axis=0) / self.n_splits
        )
        reach = norm.ppf(0.5 + 0.5 * self.confidence) * self.standard_errors_
        self.intervals_ = np.column_stack([self.coef_ - reach, self.coef_ + reach])
        self.selection_frequencies_ = often / (2 * self.n_splits)


def _halves(problem: FitProblem, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows into two halves, stratified by class."""
    order = rng.permutation(len(problem.y))
    if problem.classification:
        order = order[np.argsort(problem.y[order, 0], kind="stable")]
    return np.sort(order[::2]), np.sort(order[1::2])


def _estimated(
    problem: FitProblem, settings: FitSettings, columns: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return raw coefficients of ``columns`` and HC3 variances, fitted together with ``others``."""
    every = np.union1d(columns, others)
    A = np.asarray(problem.X[:, every], dtype=float)
    mean, scale = A.mean(axis=0), np.where(A.std(axis=0) > 0, A.std(axis=0), 1.0)
    support = SupportProblem(
        problem.y,
        problem.loss,
        problem.sample_weight,
        settings.fit_intercept,
        shrinkage=SHRINKAGE * 1e-3,
    )
    fit = refit(support, (A - mean) / scale, np.zeros((len(every), 1)), np.zeros(1), tol=1e-10)
    WA = fit.hessian_products[0](fit.A1)
    inverse = np.linalg.inv(hessian(support, fit.A1, WA, support.penalty_hessian(len(every))))
    leverage = np.clip(np.einsum("np,pq,nq->n", fit.A1, inverse, WA), 0.0, 0.95)
    influence = (fit.A1 * (fit.residual / (1.0 - leverage)[:, None])) @ inverse
    at = np.searchsorted(every, columns)
    unit = np.ravel(problem.scale)[0] / scale[at]
    return fit.theta[at, 0] * unit, (influence[:, at] ** 2).sum(axis=0) * unit**2
