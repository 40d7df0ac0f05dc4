"""Selection with a controlled false discovery rate, and p-values for a given selection."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..common import (
    SupportMixin,
    check_finite,
    rollback_on_error,
)
from ..fsa import (
    FINITE,
    Constraints,
    FitProblem,
    FitSettings,
    FSAClassifier,
    FSAEstimator,
    FSAPath,
    FSARegressor,
)
from ..parameters import check_choice, check_declared, check_integer, check_real, checked, limits
from ..sklearn_bases import BaseEstimator, MetaEstimatorMixin, clone
from ..types import ArrayLike, Matrix, Seed
from .column_models import common_factors, standardised
from .conditional import conditional_pvalues
from .knockoffs import (
    Sampler,
    antisymmetric_statistics,
    e_values,
    exchangeability,
    gaussian_knockoffs,
    knockoff_threshold,
)

MIN_ROWS = 50  # minimum for useful power with many columns (heuristic)
# Heuristic limits for knockoffs in "auto": rows times fdr, and correlation of two columns
_ROWS_OF_KNOCKOFFS, _MAX_CORRELATION = 100, 0.7


@dataclass(eq=False, repr=False, kw_only=True)
class FDRSelector(MetaEstimatorMixin, SupportMixin, BaseEstimator):
    """Selector that controls the false discovery rate.

    A selected column is a false discovery if the target does not depend on it, given all other
    columns. The false discovery rate is the fraction of false discoveries among the selected
    columns (0 if no columns are selected), in expectation over training samples.

    Parameters
    ----------
    estimator : FSAClassifier or FSARegressor
        Base estimator. Its settings apply, except for ``n_features_to_select``. Columns included by
        its constraints are selected without a test.
    fdr : float, default 0.1
        Target level of the false discovery rate, in (0, 1).
    method : {"auto", "conditional", "knockoffs"}, default "auto"
        Selection method.

        * "conditional": distilled conditional randomisation test [1]_ of the columns selected by a
          preliminary fit, with at least twice as many columns as the extended BIC chooses. The
          Benjamini-Hochberg procedure over all columns follows. Unlike knockoffs, the method can
          select fewer than 1 / fdr columns.
        * "knockoffs": Model-X knockoffs+ [2]_. The method selects at least 1 / fdr columns or none.
          With many relevant columns and few rows, it selects more columns than the conditional
          test.
        * "auto": knockoffs if there are at least 100 / fdr rows, the leading singular values of the
          standardised columns have no large gap (a ratio above 1.3, a sign of common factors), and
          no two columns have an absolute correlation above 0.7. Otherwise, knockoffs based on an
          estimated covariance may be invalid, and the conditional test is used.
    knockoffs : "second_order" or function, default "second_order"
        Generator of the knockoffs. "second_order" means Gaussian knockoffs with estimated mean and
        covariance. A function takes X and a RandomState, and returns an array of the shape of X.
    n_draws : int, default 1
        Number of knockoff draws. The e-values of several draws are averaged [3]_, which makes the
        selection more stable but smaller.
    random_state : int, RandomState or None, default None
        Random seed for the knockoffs.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns, which may be empty.
    method_ : {"conditional", "knockoffs"}
        Method that was used.
    pvalues_ : ndarray of shape (n_features,)
        P-values of the conditional test (1 for columns that are not tested); NaN with knockoffs.
    statistics_ : ndarray of shape (n_features,)
        With the conditional test, the absolute t statistic of each column (0 if it is not tested).
        With knockoffs, the root mean square coefficient of each column minus that of its knockoff,
        summed over models of several sizes and averaged over the draws.
    selection_probabilities_ : ndarray of shape (n_features,)
        Fraction of the draws in which each column is selected; 0 or 1 for the conditional test.
    estimated_fdr_ : float
        Estimated fraction of false discoveries; NaN if nothing is selected.
    exchangeability_ : float
        P-value of a permutation test of the hypothesis that columns and knockoffs are exchangeable.
        A small value indicates invalid knockoffs. NaN with the conditional test.
    estimator_ : FSAClassifier or FSARegressor
        Estimator fitted on the selected columns; the best constant model if none are selected.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    References
    ----------
    .. [1] M. Liu, E. Katsevich, L. Janson, A. Ramdas, "Fast and powerful conditional randomization
           testing via distillation", Biometrika 109 (2022).
    .. [2] E. Candes, Y. Fan, L. Janson, J. Lv, "Panning for gold: Model-X knockoffs for high
           dimensional controlled variable selection", JRSS B 80 (2018).
    .. [3] Z. Ren, R. Barber, "Derandomised knockoffs: leveraging e-values for false discovery rate
           control", JRSS B 86 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FDRSelector, FSARegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 100))
    >>> y = X[:, :3].sum(axis=1) + rng.standard_normal(200)
    >>> FDRSelector(FSARegressor(), fdr=0.1).fit(X, y).get_support(indices=True)
    array([0, 1, 2])
    """

    estimator: FSAEstimator = field(kw_only=False)
    fdr: float = field(
        default=0.1,
        kw_only=False,
        metadata=limits(check_real, 0.0, 1.0, above=True, below=True),
    )
    method: str = checked("auto", check_choice, ("auto", "conditional", "knockoffs"))
    knockoffs: str | Sampler = "second_order"
    n_draws: int = checked(1, check_integer, 1)
    random_state: Seed = None

    def fit(self, X: Matrix, y: ArrayLike, **fit_params: Any) -> Self:
        """Select columns and fit the estimator on them.

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
        FDRSelector
            The fitted estimator.

        Raises
        ------
        ValueError
            If X is not dense, has fewer than 50 rows, contains NaN, or has constant or duplicate
            columns; if the loss has no second derivatives; if a parameter, such as ``fdr``, is out
            of range; or if the data or parameters are not valid for the estimator's ``fit``.
        """
        check_declared(self)
        if not callable(self.knockoffs):
            check_choice("knockoffs", self.knockoffs, ("second_order",))
        with rollback_on_error(self):
            self._fit(X, y, fit_params)
        return self

    def _fit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        model, problem, columns, included = checked_problem(self.estimator, X, y, fit_params)
        settings = fit_settings_of(model)
        if settings.response is None:
            bent = curved_column(problem.X, np.real(problem.y))
            if bent is not None:
                name = columns[bent] if problem.names is None else problem.names[columns[bent]]
                warnings.warn(
                    f"the target and another column depend nonlinearly on column {name}, but "
                    "the tests assume linear dependence, so the false discovery rate may exceed "
                    "the requested level; use response='piecewise'",
                    stacklevel=3,
                )
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.method_ = self.method
        if self.method == "auto":
            self.method_ = (
                "knockoffs" if _suit_knockoffs(standardised(problem.X), self.fdr) else "conditional"
            )
        units = units_of(problem)
        tested = np.setdiff1d(units, units[included])
        if self.method_ == "conditional":
            pvalues, statistics = conditional_pvalues(problem, settings)
            pvalues[units[included]] = 1.0
            chosen, self.estimated_fdr_ = _step_up(pvalues, self.fdr, len(tested))
            often, self.exchangeability_ = chosen.astype(float), np.nan
        else:
            pvalues = np.full(problem.n_units, np.nan)
            chosen, statistics, often = self._by_knockoffs(problem, settings, tested)
        chosen[units[included]], often[units[included]] = True, 1.0
        for name, values, fill in (
            ("support_", chosen, False),
            ("pvalues_", pvalues, np.nan if self.method_ == "knockoffs" else 1.0),
            ("statistics_", statistics, 0.0),
            ("selection_probabilities_", often, 0.0),
        ):
            every = np.full(self.n_features_in_, fill)
            every[columns] = values[units]
            setattr(self, name, every)
        self.estimator_ = _refitted(self.estimator, self.support_, X, y, fit_params)

    def _by_knockoffs(
        self, problem: FitProblem, settings: FitSettings, tested: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the selected units, their mean statistics, and their selection probabilities."""
        rng = check_random_state(self.random_state)
        draws = np.zeros((self.n_draws, problem.n_units))
        for i in range(self.n_draws):
            copies = (self.knockoffs if callable(self.knockoffs) else gaussian_knockoffs)(
                problem.X, rng
            )
            if np.shape(copies) != problem.X.shape:
                raise ValueError(
                    f"knockoffs returned an array of shape {np.shape(copies)}; "
                    f"expected {problem.X.shape}, the shape of X"
                )
            if i == 0:
                self.exchangeability_ = exchangeability(problem.X, copies, rng)
            draws[i, tested] = antisymmetric_statistics(problem, settings, copies, rng)[tested]
        selected = np.array([knockoff_threshold(W, self.fdr) <= W for W in draws])
        if self.n_draws == 1:
            chosen, (W,) = selected[0], draws
            negative = np.count_nonzero(np.min(W[chosen], initial=np.inf) <= -W)
            self.estimated_fdr_ = float((1 + negative) / chosen.sum()) if chosen.any() else np.nan
        else:
            e = e_values(draws, self.fdr)
            chosen, self.estimated_fdr_ = _step_up(
                1.0 / np.maximum(e, 1e-300), self.fdr, len(tested)
            )
        return chosen, draws.mean(axis=0), selected.mean(axis=0)

    def predict(self, X: Matrix) -> np.ndarray:
        """Predict with the estimator fitted on the selected columns.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows for which to predict labels or targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels or targets.
        """
        check_is_fitted(self, "support_")
        return self.estimator_.predict(X)


def selection_pvalues(
    estimator: FSAEstimator, X: Matrix, y: ArrayLike, **fit_params: Any
) -> np.ndarray:
    """Compute a p-value for each column that a fitted FSA estimator has selected.

    FSA means feature selection with annealing. The null hypothesis is that the target does not
    depend on the column, given all other columns. The test is the distilled conditional
    randomisation test; see :class:`FDRSelector`. Within the test, the target is predicted from as
    many columns as the estimator has selected. Each p-value is valid for a column that is specified
    in advance. To test many columns, use :class:`FDRSelector`.

    Parameters
    ----------
    estimator : FSAClassifier or FSARegressor
        Fitted estimator.
    X : array of shape (n_samples, n_features)
        Training data: dense, without NaN, and without constant or duplicate columns.
    y : array of shape (n_samples,)
        Training targets.
    **fit_params
        Arguments that were passed to the estimator's ``fit``.

    Returns
    -------
    ndarray of shape (k,)
        P-values in the order of ``get_support(indices=True)``. The columns of a group share a
        p-value. The p-value of an included column is NaN.

    Raises
    ------
    ValueError
        If X is not dense, has fewer than 50 rows, contains NaN, or has constant or duplicate
        columns; if the loss has no second derivatives; or if the data or parameters are not valid
        for the estimator's ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARegressor, selection_pvalues
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 100))
    >>> y = X[:, 0] + X[:, 1] + rng.standard_normal(200)
    >>> selection_pvalues(FSARegressor(3).fit(X, y), X, y) < 1e-6
    array([ True,  True, False])
    """
    check_is_fitted(estimator, "support_")
    model, problem, columns, included = checked_problem(estimator, X, y, fit_params)
    units, support = units_of(problem), estimator.support_[columns]
    candidates = np.unique(units[support])
    pvalues, _ = conditional_pvalues(problem, fit_settings_of(model), candidates=candidates)
    return np.where(included, np.nan, pvalues[units])[support]


def curved_column(X: np.ndarray, targets: np.ndarray) -> int | None:
    """Return the column on which a target and another column depend nonlinearly, if any.

    The squares of each column, after removal of their linear trend, are tested for covariance with
    the targets and with the other columns. Each of the two sets of tests has a total level of 0.005
    (Bonferroni correction). Values are clipped at three standard deviations to limit the influence
    of heavy tails. If several columns are significant, the most significant one is returned.
    """
    Z = standardised(np.clip(standardised(X), -3.0, 3.0))
    n, m = Z.shape
    bend = Z**2 - 1.0 - (Z**3).mean(axis=0) * Z
    bend /= np.maximum(np.sqrt(n * (bend**2).mean(axis=0)), 1e-300)

    def clarity(W: np.ndarray, columns: np.ndarray) -> np.ndarray:
        left = np.sqrt(np.maximum(1.0 - (W.T @ Z[:, columns] / n) ** 2, 1e-12))
        return np.abs(W.T @ bend[:, columns]) / left / -ndtri(0.005 / (W.shape[1] * m))

    of_targets = clarity(standardised(targets), np.arange(m)).max(axis=0)
    bent = np.flatnonzero(of_targets > 1.0)
    others = clarity(Z, bent)
    others[bent, np.arange(len(bent))] = 0.0
    both = np.minimum(of_targets[bent], others.max(axis=0))
    return int(bent[both.argmax()]) if (both > 1.0).any() else None


def units_of(problem: FitProblem) -> np.ndarray:
    """Return the group index of each feature; without groups, each feature is a group."""
    return np.arange(problem.n_features) if problem.groups is None else problem.groups


def fit_settings_of(model: FSAEstimator) -> FitSettings:
    """Return an estimator's fit settings, for fits in which the caller sets the size."""
    return replace(model.fit_settings(), undecided=False, title=None)


def checked_problem(
    estimator: FSAEstimator, X: Any, y: Any, fit_params: dict[str, Any]
) -> tuple[FSAEstimator, FitProblem, np.ndarray, np.ndarray]:
    """Validate the data, and return a copy of the estimator and the problem to solve.

    The problem contains only the selectable columns. The function also returns the indices of these
    columns, and the mask of the columns that are always included.

    Raises
    ------
    ValueError
        If X is not dense, has fewer than 50 rows, contains NaN, or has constant or duplicate
        columns; if the loss has no second derivatives; or if the data or parameters are not valid
        for the estimator's ``fit``.
    """
    if not isinstance(estimator, FSAClassifier | FSARegressor):
        raise ValueError(
            f"estimator={estimator!r} is not valid; expected FSAClassifier or FSARegressor"
        )
    model = clone(estimator)
    problem = model.encode(X, y, **fit_params)
    if not isinstance(problem.X, np.ndarray):
        raise ValueError(
            f"X is a {type(problem.X).__name__}, but tests of columns require a dense array"
        )
    if not problem.loss.has_curvature:
        raise ValueError(
            f"loss={estimator.loss!r} has no second derivatives, but tests of columns require them"
        )
    if len(problem.X) < MIN_ROWS:
        raise ValueError(
            f"X has {len(problem.X)} rows, but tests of columns require at least {MIN_ROWS}"
        )
    check_finite(problem.X, problem.names, FINITE)
    columns = problem.columns(np.arange(problem.n_features))
    included = np.zeros(len(columns), bool) if problem.included is None else problem.included
    problem = replace(
        problem,
        X=np.ascontiguousarray(problem.X[:, columns]),
        allowed=None,
        included=None,
        bounds=None,
    )
    _check_columns(problem.X, columns if problem.names is None else problem.names[columns])
    return model, problem, columns, included


def _check_columns(X: np.ndarray, names: np.ndarray) -> None:
    """Check that no column is constant or a copy of another column."""
    constant = X.min(axis=0) == X.max(axis=0)
    if constant.any():
        raise ValueError(
            f"column {names[int(constant.argmax())]} is constant, so it cannot be tested; "
            "exclude it"
        )
    Z = np.round(standardised(X), 9)
    Z *= np.where(Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])] < 0, -1.0, 1.0)
    _, first, which = np.unique(Z, axis=1, return_index=True, return_inverse=True)
    copies = np.flatnonzero(first[which.ravel()] != np.arange(Z.shape[1]))
    if len(copies):
        original = names[first[which.ravel()[copies[0]]]]
        raise ValueError(
            f"column {names[copies[0]]} is a copy of column {original}, so no test can "
            "distinguish them; exclude one of them"
        )


def _suit_knockoffs(Z: np.ndarray, fdr: float) -> bool:
    """Return whether "auto" uses knockoffs; see :class:`FDRSelector`."""
    if len(Z) * fdr < _ROWS_OF_KNOCKOFFS or common_factors(Z).shape[1]:
        return False
    return bool(np.abs(np.triu(Z.T @ Z / len(Z), 1)).max() <= _MAX_CORRELATION)


def _step_up(pvalues: np.ndarray, fdr: float, n_tests: int) -> tuple[np.ndarray, float]:
    """Apply the procedure of Benjamini and Hochberg (1995), and estimate the resulting FDR."""
    order = np.argsort(pvalues, kind="stable")
    estimated = pvalues[order] * n_tests / np.arange(1, len(pvalues) + 1)
    good = np.flatnonzero(estimated <= fdr)
    chosen = np.isin(np.arange(len(pvalues)), order[: good[-1] + 1 if len(good) else 0])
    return chosen, float(estimated[good[-1]]) if len(good) else np.nan


def _refitted(
    estimator: FSAEstimator, support: np.ndarray, X: Any, y: Any, fit_params: dict[str, Any]
) -> FSAEstimator:
    """Return the estimator fitted on the selected columns, or the best constant."""
    model = clone(estimator)
    constraints = Constraints() if model.constraints is None else clone(model.constraints)
    if not support.any():
        return FSAPath(model, sizes=[0]).fit(X, y, **fit_params).get_estimator(0)
    groups = constraints.groups
    size = int(support.sum()) if groups is None else len(np.unique(np.asarray(groups)[support]))
    model.set_params(
        n_features_to_select=size, constraints=constraints.set_params(exclude=~support)
    )
    return model.fit(X, y, **fit_params)
