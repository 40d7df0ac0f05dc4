"""Models with different numbers of features (sizes) from one annealing run."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from ..model_selection.size import default_sizes
from ..plots import plot_path
from ..sklearn_bases import BaseEstimator, MetaEstimatorMixin, clone
from ..solvers.annealing import Annealed
from .estimators import FSAEstimator
from .fit import condensed, information_criterion, solve_path
from .problem import fitted_attributes


class FSAPath(MetaEstimatorMixin, BaseEstimator):
    """Models with different numbers of features (sizes) from one annealing run.

    Each model minimises the same objective as an estimator of that size. Annealing (FSA, feature
    selection with annealing) reduces the number of features to the largest size and then to each
    smaller size in turn, so a path costs little more than a single fit. At each size, the model is
    refitted on the remaining features. If the estimator has ``Refinement(exchange=True)``, or with
    the parameter ``exchange``, some of them are exchanged for recently dropped features.

    Parameters
    ----------
    estimator : FSAClassifier, FSARegressor or FSARanker
        Estimator that defines the settings; its ``n_features_to_select`` is ignored.
    sizes : array of int or "auto", default "auto"
        Numbers of features, or of groups if the constraints define any. Size 0 denotes the best
        constant model. "auto" means the sizes from 1 to 8, followed by sizes that increase by about
        a fifth each. The largest is a third of the number of rows, but at least 10 and at most 300.
    exchange : bool, default False
        Whether to exchange features at each size, provided that the estimated cost is at most about
        ten milliseconds per size and there are enough rows (see :class:`Refinement`).
    trajectory : bool, default False
        Whether to store the coefficients after every step for ``plot_path``.

    Attributes
    ----------
    sizes_ : ndarray of shape (n_sizes,), int
        Sizes of the models, in ascending order.
    supports_ : ndarray of shape (n_sizes, n_features), bool
        Masks of the selected columns.
    losses_ : ndarray of shape (n_sizes,)
        Mean training loss at each size.
    ebic_ : ndarray of shape (n_sizes,)
        Extended Bayesian information criterion [1]_ at each size. It uses the sum of the sample
        weights as the number of rows.
    best_size_ : int
        Size with the lowest ``ebic_``.
    loss_curve_ : ndarray of shape (n_steps,)
        Mean training loss before each annealing step.
    trajectory_ : list of (ndarray, ndarray)
        For each step, the indices of the m remaining features and their standardised coefficients,
        of shape (m, width, n_outputs), with ``width`` coefficients per feature and output. The list
        is empty unless ``trajectory=True``.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    References
    ----------
    .. [1] J. Chen, Z. Chen, "Extended Bayesian information criteria for model selection with large
           model spaces", Biometrika 95 (2008).

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

    def __init__(
        self,
        estimator: FSAEstimator,
        sizes: Any = "auto",
        *,
        exchange: bool = False,
        trajectory: bool = False,
    ):
        self.estimator = estimator
        self.sizes = sizes
        self.exchange = exchange
        self.trajectory = trajectory

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit the models of all sizes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or None, default None
            Targets, as for the estimator's ``fit``.
        **fit_params
            Arguments passed to the estimator's ``fit``.

        Returns
        -------
        FSAPath
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or parameters are not valid for the estimator's ``fit``, or a size is not a
            non-negative integer.
        """
        if not isinstance(self.estimator, FSAEstimator):
            raise ValueError(
                f"estimator={self.estimator!r} is not valid; "
                "expected FSAClassifier, FSARegressor or FSARanker"
            )
        model = clone(self.estimator)
        settings = replace(model.fit_settings(), exchange_along_path=self.exchange)
        problem = model.encode(X, y, **fit_params)
        self.sizes_ = check_sizes(
            self.sizes, problem.n_units, round(problem.n_rows), problem.n_included
        )
        self.trajectory_: list[tuple[np.ndarray, np.ndarray]] = []

        def record(step: int, state: Annealed) -> None:
            self.trajectory_.append((state.kept.copy(), state.coef.copy()))

        problem = condensed(problem, settings)
        solutions = solve_path(
            problem, settings, self.sizes_, callbacks=[record] if self.trajectory else []
        )
        self.n_features_in_ = problem.X.shape[1]
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.losses_ = np.array([s.value for s in solutions])
        self.ebic_ = np.array([information_criterion(problem, s) for s in solutions])
        self.best_size_ = int(self.sizes_[np.argmin(self.ebic_)])
        self.loss_curve_ = solutions[0].loss_curve
        self.supports_ = np.zeros((len(self.sizes_), self.n_features_in_), bool)
        self._models = []
        for row, solution in zip(self.supports_, solutions):
            row[problem.columns(solution.kept)] = True
            fitted = copy.copy(model).set_params(n_features_to_select=max(solution.size, 1))
            fitted.__dict__.update(fitted_attributes(problem, solution))
            self._models.append(fitted)
        return self

    def get_estimator(self, k: int) -> FSAEstimator:
        """Return the fitted estimator of a given size.

        Parameters
        ----------
        k : int
            One of ``sizes_``.

        Returns
        -------
        FSAClassifier, FSARegressor or FSARanker
            Fitted estimator of this size.

        Raises
        ------
        ValueError
            If ``k`` is not in ``sizes_``.
        """
        check_is_fitted(self, "sizes_")
        where = np.flatnonzero(self.sizes_ == k)
        if not len(where):
            raise ValueError(f"k={k!r} is not on the path; expected one of {self.sizes_.tolist()}")
        return self._models[where[0]]

    def plot(self, **options: Any) -> Any:
        """Plot the coefficients along the path.

        Parameters
        ----------
        **options
            Options passed to :func:`annealed.learners.plots.plot_path`, such as ``against`` and
            ``ax``.

        Returns
        -------
        matplotlib.axes.Axes
            Axes of the plot.
        """
        return plot_path(self, **options)

    def score_path(
        self, X: Any, y: Any, scoring: str | Callable | None = None, **score_params: Any
    ) -> np.ndarray:
        """Compute the score of every model on new data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to score.
        y : array of shape (n_samples,)
            True targets.
        scoring : str, function or None, default None
            scikit-learn scorer or its name. None means the estimator's ``score`` method: accuracy
            for classifiers, and by default R^2 for regressors. Rankers require a scorer.
        **score_params
            Arguments passed to the scorer, such as ``sample_weight``.

        Returns
        -------
        ndarray of shape (n_sizes,)
            Score of the model at each size.
        """
        check_is_fitted(self, "sizes_")
        scorer = check_scoring(self.estimator, scoring)
        return np.array([scorer(model, X, y, **score_params) for model in self._models])


def check_sizes(sizes: Any, n_units: int, n_samples: int, n_included: int = 0) -> np.ndarray:
    """Validate the sizes of a path, and return the distinct sizes in ascending order.

    Sizes are clipped to the range from ``n_included`` to ``n_units``.

    Raises
    ------
    ValueError
        If a size is not a non-negative integer.
    """
    if isinstance(sizes, str) and sizes == "auto":
        return np.unique(np.clip(default_sizes(n_units, n_samples), n_included, None))
    values = np.asarray(sizes)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iu" or (values < 0).any():
        raise ValueError(f"sizes={sizes!r} is not valid; expected 'auto' or integers >= 0")
    return np.unique(np.where(values > 0, np.clip(values, n_included, n_units), 0))
