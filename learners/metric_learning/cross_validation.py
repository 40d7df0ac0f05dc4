"""Cross-validation of the settings of sDist.

One boosting run per fold covers every number of steps, columns and voting neighbours.
"""

import functools
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils.validation import check_is_fitted

from ..common import SparseInputMixin, check_jobs, check_real, class_codes, validated
from ..sklearn_bases import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from ..types import ArrayLike, Matrix
from .boosting_run import BoostingRun, class_scores
from .sdist import SDist

# one run covers all values
FROM_ONE_PATH = ("n_steps", "n_features_to_select", "n_neighbors_predict", "classifier")


def _of_best_estimator(method: Callable[..., Any]) -> Callable[..., Any]:
    """Delegate a method to ``best_estimator_``."""

    @functools.wraps(method)
    def delegate(self: "SDistCV", X: Matrix) -> np.ndarray:
        check_is_fitted(self)
        return getattr(self.best_estimator_, method.__name__)(X)

    return delegate


@dataclass(eq=False, repr=False, kw_only=True)
class SDistCV(
    SparseInputMixin, MetaEstimatorMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
    """Sparse nonlinear metric (:class:`SDist`) whose settings are chosen by cross-validation.

    The search minimises the cross-validated error rate over the settings in ``param_grid``, as in
    section 2.7 of [1]_. A model with the best settings is then fitted to all rows.

    Parameters
    ----------
    estimator : SDist or None, default None
        Estimator that provides the parameters outside ``param_grid``; None means default
        parameters.
    param_grid : dict or None, default None
        Dictionary that maps each parameter to a list of values. All values of ``n_steps``,
        ``n_features_to_select``, ``n_neighbors_predict`` and ``classifier`` are evaluated with a
        single boosting run. Every combination of other parameters requires one run per fold. If
        None, the values are 3, 5 and 10 for ``kappa``; 1 and 2 for ``max_order``; 25, 50, ..., 150
        for ``n_steps``; and 3 and 5 for ``n_neighbors_predict``.
    cv : int or splitter, default 5
        Number of folds, or a scikit-learn splitter.
    tolerance : float, default 0.0
        Number of standard errors by which the mean error may exceed the lowest error. Among the
        settings within this tolerance, the one with the fewest columns is chosen, and among these
        the one with the fewest steps. With 0, the setting with the lowest error is chosen.
    n_jobs : int or None, default None
        Number of parallel boosting runs; -1 means one per processor, and None means one. The result
        does not depend on it.

    Attributes
    ----------
    best_estimator_ : SDist
        Estimator with the best settings, fitted on all rows.
    best_params_ : dict
        Best settings.
    best_error_ : float
        Cross-validated error rate of the best settings.
    cv_results_ : list of dict
        One entry per combination. The keys are the names of the parameters, ``mean_error``,
        ``standard_error`` and ``n_columns`` (mean number of columns of phi in the metric).
    n_runs_ : int
        Number of boosting runs in the search.
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.

    Notes
    -----
    The class scores of ``decision_function`` are vote fractions or, with ``classifier="base"``,
    negated mean squared distances to the k nearest rows of each class. For two classes, it returns
    their difference.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), section 2.7.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import SDist, SDistCV
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> search = SDistCV(SDist(random_state=0), {"max_order": [1, 2], "n_steps": [10, 20]}, cv=3)
    >>> search = search.fit(X, X[:, 0] * X[:, 2] > 0)
    >>> search.best_params_["max_order"], search.n_runs_
    (2, 6)
    """

    estimator: SDist | None = field(default=None, kw_only=False)
    param_grid: Mapping[str, Sequence[Any]] | None = field(default=None, kw_only=False)
    cv: int | Any = 5
    tolerance: float = 0.0
    n_jobs: int | None = None

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Search for the best settings, and fit the model to all rows with these settings.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of any type.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If the grid contains an unknown parameter, or a value that :class:`SDist` rejects.
        """
        given = X
        X, y = validated(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        self.classes_, codes = class_codes(y)
        X = sp.csr_matrix(X) if sp.issparse(X) else X
        base = SDist() if self.estimator is None else self.estimator
        if not isinstance(base, SDist):
            raise ValueError(f"estimator={base!r} is not valid; expected an SDist or None")
        grid = self._grid(base)
        for settings in ParameterGrid(grid):  # validate before any run
            clone(base).set_params(**settings)._check_parameters()
        check_real("tolerance", self.tolerance, 0.0)
        check_jobs(self.n_jobs)
        served = {name: grid.pop(name, [getattr(base, name)]) for name in FROM_ONE_PATH}
        paths = list(ParameterGrid(grid))
        folds = list(check_cv(self.cv, codes, classifier=True).split(X, codes))
        jobs = [(path, train, test) for path in paths for train, test in folds]
        errors = Parallel(n_jobs=self.n_jobs)(
            delayed(_path_errors)(clone(base).set_params(**path), served, X, codes, train, test)
            for path, train, test in jobs
        )
        self.n_runs_ = len(jobs)
        self.cv_results_ = []
        for i, path in enumerate(paths):
            # shape (folds, combinations, 2): error and number of columns
            table = np.array(errors[i * len(folds) : (i + 1) * len(folds)])
            for values, fold_errors in zip(ParameterGrid(served), table.transpose(1, 0, 2)):
                spread = (
                    fold_errors[:, 0].std(ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else 0.0
                )
                error, n_columns = fold_errors.mean(axis=0)
                self.cv_results_.append(
                    {
                        **path,
                        **values,
                        "mean_error": float(error),
                        "standard_error": float(spread),
                        "n_columns": float(n_columns),
                    }
                )
        best = self._choose()
        self.best_error_ = best["mean_error"]
        self.best_params_ = {name: best[name] for name in [*grid, *served]}
        # X as passed in: product names are built from its column names.
        self.best_estimator_ = clone(base).set_params(**self.best_params_).fit(given, y)
        return self

    def _grid(self, base: SDist) -> dict[str, list[Any]]:
        grid = self.param_grid
        if grid is None:
            grid = {
                "kappa": [3, 5, 10],
                "max_order": [1, 2],
                "n_steps": list(range(25, 151, 25)),
                "n_neighbors_predict": [3, 5],
            }
        if not isinstance(grid, Mapping):
            raise ValueError(f"param_grid={grid!r} is not valid; expected a dict of lists, or None")
        for name, values in grid.items():
            if name not in base.get_params():
                raise ValueError(
                    f"param_grid contains {name!r}, which is not a parameter of SDist; "
                    f"valid parameters are {sorted(base.get_params())}"
                )
            if isinstance(values, (str, numbers.Number)) or len(values) == 0:
                raise ValueError(
                    f"param_grid[{name!r}]={values!r} is not valid; expected a list of values"
                )
        return {name: list(values) for name, values in grid.items()}

    def _choose(self) -> dict[str, Any]:
        least = min(self.cv_results_, key=lambda r: r["mean_error"])
        if self.tolerance == 0.0:
            return least
        limit = least["mean_error"] + self.tolerance * least["standard_error"]
        return min(
            (r for r in self.cv_results_ if r["mean_error"] <= limit),
            key=lambda r: (r["n_columns"], r["n_steps"], r["mean_error"]),
        )

    predict = _of_best_estimator(SDist.predict)
    predict_proba = _of_best_estimator(SDist.predict_proba)
    decision_function = _of_best_estimator(SDist.decision_function)
    transform = _of_best_estimator(SDist.transform)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that ``transform`` returns.

        Parameters
        ----------
        input_features : object, default None
            Ignored; present for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str
            Names sdist0, sdist1, ...
        """
        check_is_fitted(self)
        return self.best_estimator_.get_feature_names_out(None)


def _path_errors(
    model: SDist,
    served: dict[str, list[Any]],
    X: Matrix,
    codes: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
) -> list[tuple[float, int]]:
    """Compute the test error and number of columns of every combination that a path covers.

    The result has shape (n_combinations, 2).
    """
    model.set_params(n_steps=max(served["n_steps"]))
    n_classes = codes.max() + 1
    errors = {}

    def record(run: BoostingRun, n_steps: int) -> None:
        if n_steps not in served["n_steps"]:
            return
        for n in served["n_features_to_select"]:
            metric = run.trimmed(run.booster.metric, n)
            Z, known = run.subspace(X[test], metric), run.train_subspace(metric)
            for combination in ParameterGrid(
                {name: served[name] for name in ("n_neighbors_predict", "classifier")}
            ):
                scores = class_scores(
                    model.set_params(**combination), Z, known, run.codes, n_classes, run.n_neighbors
                )
                error = float(np.mean(scores.argmax(axis=1) != codes[test]))
                key = (n_steps, n, combination["n_neighbors_predict"], combination["classifier"])
                errors[key] = (error, len(metric.columns))

    run = BoostingRun(model, X[train], codes[train], record)
    # the run ended early: use its last metric
    for n_steps in range(len(run.booster.path) + 1, model.n_steps + 1):
        record(run, n_steps)
    return [
        errors[c["n_steps"], c["n_features_to_select"], c["n_neighbors_predict"], c["classifier"]]
        for c in ParameterGrid(served)
    ]
