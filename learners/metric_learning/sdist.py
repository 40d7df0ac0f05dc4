"""sDist, a boosted sparse nonlinear metric: metric learner, transformer and classifier.

The method is described in chapter 2 of Ma (thesis).
"""

import copy
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..common import (
    SparseClassifierMixin,
    SparseInputMixin,
    class_codes,
    feature_names,
    validated,
)
from ..compilation import n_values, problem_size
from ..parameters import (
    check_choice,
    check_declared,
    check_integer,
    check_jobs,
    check_real,
    checked,
    is_size,
    limits,
)
from ..sklearn_bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from ..types import ArrayLike, Matrix, Seed
from .boosting import SOLVERS, SparseMetric
from .boosting_run import BoostingRun, class_scores, subspace


@dataclass(eq=False, repr=False, kw_only=True)
class SDist(
    SparseInputMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    SparseClassifierMixin,
    BaseEstimator,
):
    """Sparse nonlinear metric learnt by boosting, with a nearest-neighbour classifier.

    Each boosting step adds a sparse rank-one matrix (Algorithm 2.2 of [1]_) to minimise::

        sum_i exp(-f_W(x_i)),  f_W(x) = mean squared distance to the k nearest rows of other classes
                                         - mean squared distance to the k nearest rows of its class

    The squared distance is (phi(a) - phi(b))' W (phi(a) - phi(b)), where phi consists of columns of
    X and their products. W = W_0 + sum_m w_m xi_m xi_m' is positive semi-definite. Step m adds the
    direction xi_m with weight w_m.

    Parameters
    ----------
    n_neighbors : int or "auto", default "auto"
        Number k of neighbours, at least 1. "auto" means 15 or, if X has more than 20 columns per
        row, half the size of the smallest class, but at least 15.
    n_features_to_select : int or None, default None
        Maximum number of columns of phi in the metric: those that contribute most to the mean
        squared distance. None keeps all.
    n_neighbors_predict : int, default 3
        Number of neighbours that vote on a class, at least 1.
    max_order : int, default 2
        Maximum number of columns in a product; 1 means a linear metric.
    solver : {"power", "sgd"}, default "power"
        Method that computes the direction of a step.

        * "power": truncated power method (Algorithm 2.1 of [1]_);
        * "sgd": stochastic gradient steps (Oja's rule), truncated as in sections 3.3.1 and 3.3.3
          of [1]_.
    start : {"lanczos", "ones"}, default "lanczos"
        Initial vector of the truncated power method; [1]_ uses "ones".
    initial : {"zero", "identity"}, default "zero"
        Initial metric W_0, which the attributes do not include. With "identity", as in [1]_, the
        distance depends on all columns of X.
    kappa : int or float, default 5
        Number of non-zero entries in each direction xi_m, or a fraction of the columns of X, in (0,
        1) (rho in [1]_).
    n_steps : int, default 150
        Maximum number of boosting steps, at least 1.
    learning_rate : float, default 0.03
        Fraction of the optimal step length, in (0, 1] (nu in [1]_).
    update_every : int, default 20
        Number of steps between searches for neighbours, at least 1.
    bagging : float, default 1.0
        Fraction of the rows used in each step, in (0, 1].
    feature_fraction : float or "sqrt", default 1.0
        Fraction of the columns of phi that each step considers, in (0, 1]; "sqrt" means
        1/sqrt(n_features).
    standardize : bool, default True
        Whether to scale columns and products to unit variance.
    stopping : {"holdout", "oob", "complexity"} or None, default None
        Rule that chooses the number of steps.

        * None: all steps;
        * "holdout": lowest error on held-out rows;
        * "oob": lowest out-of-bag loss; requires ``bagging`` below 1;
        * "complexity": lowest training loss plus complexity penalty (eq. (2.17) of [1]_).
    validation_fraction : float, default 0.2
        Fraction of held-out rows for ``stopping="holdout"``, in (0, 1).
    complexity_weight : float, default 0.1
        Non-negative weight of the penalty (lambda_C in [1]_).
    seed_interactions : int, default 0
        Number of products of two columns, most correlated with the class, to add before the first
        step.
    max_products : int or None, default None
        Maximum number of products; None means three per column of X.
    classifier : {"knn", "base"}, default "knn"
        Prediction method.

        * "knn": majority vote of the nearest neighbours;
        * "base": class with the highest f_W (eq. (2.3) of [1]_).
    random_state : int, RandomState or None, default None
        Random seed.
    n_jobs, verbose : object
        As in :class:`FSAClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    columns_ : list of tuple of int
        Columns of phi in the metric: (3,) is x3, and (3, 17) is x3 x17.
    W_ : ndarray of shape (len(columns_), len(columns_))
        Matrix W. Its rows and columns correspond to ``columns_``.
    components_ : ndarray of shape (rank, len(columns_))
        Factor L of W = L'L, with the strongest direction first.
    selected_features_ : ndarray of int
        Columns of X in ``columns_``.
    interactions_ : list of str
        Names of the products, most important first.
    n_neighbors_, n_steps_ : int
        Number k of neighbours, and number of steps of the final metric.
    path_ : list of (ndarray, ndarray, float)
        Indices and values of the non-zero entries of xi_m, and w_m, for each step.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), chapters 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import SDist
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 10))
    >>> y = X[:, 2] * X[:, 7] > 0
    >>> model = SDist(seed_interactions=1, n_steps=20).fit(X, y)
    >>> model.interactions_[0]
    'x2*x7'
    """

    n_neighbors: int | str = field(
        default="auto", kw_only=False, metadata=limits(check_integer, 1, unless=("auto",))
    )
    n_features_to_select: int | None = checked(None, check_integer, 1, unless=(None,))
    n_neighbors_predict: int = checked(3, check_integer, 1)
    max_order: int = checked(2, check_integer, 1)
    solver: str = checked("power", check_choice, tuple(SOLVERS))
    start: str = checked("lanczos", check_choice, ("lanczos", "ones"))
    initial: str = checked("zero", check_choice, ("zero", "identity"))
    kappa: int | float = 5
    n_steps: int = checked(150, check_integer, 1)
    learning_rate: float = checked(0.03, check_real, 0.0, 1.0, above=True)
    update_every: int = checked(20, check_integer, 1)
    bagging: float = checked(1.0, check_real, 0.0, 1.0, above=True)
    feature_fraction: float | str = checked(1.0, check_real, 0.0, 1.0, above=True, unless=("sqrt",))
    standardize: bool = True
    stopping: str | None = checked(None, check_choice, (None, "holdout", "oob", "complexity"))
    validation_fraction: float = checked(0.2, check_real, 0.0, 1.0, above=True)
    complexity_weight: float = checked(0.1, check_real, 0.0)
    seed_interactions: int = checked(0, check_integer, 0)
    max_products: int | None = checked(None, check_integer, 0, unless=(None,))
    classifier: str = checked("knn", check_choice, ("knn", "base"))
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: bool = False

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows. Data of type float32 are not converted to float64, which halves the time.
            If ``standardize`` is set, products of dense columns use centred columns. Sparse columns
            are never centred, so their products use raw columns.
        y : array-like of shape (n_samples,)
            Labels of any type.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is out of range, or there are fewer than two classes.
        """
        self._check_parameters()
        X, y = validated(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        self.classes_, codes = class_codes(y)
        X = sp.csr_matrix(X) if sp.issparse(X) else X
        with np.errstate(over="ignore"):
            most = max(X.max(), -X.min())
            overflow = not np.isfinite(X.shape[1] * most**2)
        if overflow:
            raise ValueError(
                f"X contains values up to {most:g}, whose squares overflow {X.dtype}; rescale X"
            )
        with problem_size(n_values(X)):
            run = BoostingRun(self, X, codes)
        if not run.booster.path:
            warnings.warn(
                "no direction lowers the loss, so the learnt metric is zero everywhere",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._adopt(run, *run.best())
        return self

    def _check_parameters(self) -> None:
        check_declared(self)
        check_jobs(self.n_jobs)
        if not is_size(self.kappa) or (
            self.kappa == 1.0 and not isinstance(self.kappa, numbers.Integral)
        ):
            raise ValueError(
                f"kappa={self.kappa!r} is not valid; "
                "expected an integer >= 1 or a fraction in (0, 1)"
            )
        if self.stopping == "oob" and self.bagging >= 1:
            raise ValueError(
                f"stopping='oob' requires out-of-bag rows, but bagging={self.bagging!r} leaves "
                "none; use bagging < 1"
            )

    def _adopt(self, run: BoostingRun, metric: SparseMetric, n_steps: int) -> None:
        """Set the metric to that of a run after ``n_steps`` steps."""
        self._features = run.features
        self._metric = metric
        self.n_neighbors_ = run.n_neighbors
        self.n_steps_ = n_steps
        self.path_ = run.booster.path
        self.W_ = metric.matrix
        self._variance = run.variance(metric)
        self.components_ = metric.factor()
        self.columns_ = [run.features.monomial(c) for c in metric.columns]
        self.selected_features_ = np.array(
            sorted({j for t in self.columns_ for j in t}), dtype=np.intp
        )
        self._n_features_out = len(self.components_) + (
            self.n_features_in_ if self.initial == "identity" else 0
        )
        self._codes = run.codes
        self._train = run.train_subspace(metric)

    @property
    def interactions_(self) -> list[str]:
        """Names of the products in the metric, in descending order of importance.

        The importance of product j is its contribution to the mean squared distance: its variance
        times entry (j, j) of the matrix W of the metric.
        """
        check_is_fitted(self)
        names = feature_names(self)
        order = np.argsort(-np.diag(self.W_) * self._variance, kind="stable")
        return [
            self._features.name(self._metric.columns[i], names)
            for i in order
            if len(self.columns_[i]) > 1
        ]

    def transform(self, X: Matrix) -> np.ndarray:
        """Map rows to the learnt subspace, where the learnt distance is Euclidean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            Coordinates, with the strongest direction first. With ``initial="identity"``, they
            follow all columns of X.
        """
        check_is_fitted(self)
        rows = validated(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        rows = sp.csr_matrix(rows) if sp.issparse(rows) else rows
        return subspace(
            rows, self._features, self._metric.columns, self.components_, self.initial == "identity"
        )

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Compute the learnt distance between the two rows of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or two of (n_pairs, n_features)
            Pairs of rows, as one array or as two matrices, which may be sparse.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Distances. They form a pseudometric: different points may have distance zero.

        Raises
        ------
        ValueError
            If the pairs do not have one of these shapes.
        """
        check_is_fitted(self)
        if isinstance(pairs, tuple):
            if len(pairs) != 2:
                raise ValueError(
                    f"pairs is a tuple of {len(pairs)} matrices; "
                    "expected 2 of shape (n_pairs, n_features)"
                )
            left, right = pairs
            if np.shape(left) != np.shape(right):
                raise ValueError(
                    f"pairs has matrices of shapes {np.shape(left)} and {np.shape(right)}; "
                    "expected equal shapes"
                )
        else:
            pairs = np.asarray(pairs)
            if pairs.ndim != 3 or pairs.shape[1] != 2:
                raise ValueError(
                    f"pairs has shape {pairs.shape}; expected (n_pairs, 2, {self.n_features_in_})"
                )
            left, right = pairs[:, 0], pairs[:, 1]
        return np.linalg.norm(self.transform(left) - self.transform(right), axis=1)

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Compute the similarity of the two rows of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or two of (n_pairs, n_features)
            Pairs of rows, as for :meth:`pair_distance`.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Negated distances, so that more similar pairs have higher scores.
        """
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """Return the learnt distance as a function, for the ``metric`` of scikit-learn estimators.

        Returns
        -------
        callable
            Function ``metric(u, v, squared=False)`` that returns the distance between two rows u
            and v, or its square. It does not change when the estimator is fitted again.
        """
        check_is_fitted(self)
        features, columns, L = (
            copy.deepcopy(self._features),
            list(self._metric.columns),
            self.components_.copy(),
        )
        identity, shape = self.initial == "identity", (self.n_features_in_,)

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            if not np.shape(u) == np.shape(v) == shape:
                raise ValueError(
                    f"u and v have shapes {np.shape(u)} and {np.shape(v)}; expected {shape}"
                )
            a, b = (
                subspace(np.asarray(x, dtype=float)[None], features, columns, L, identity)
                for x in (u, v)
            )
            square = float(np.sum((a - b) ** 2))
            return square if squared else square**0.5

        return metric

    def _scores(self, X: Matrix) -> np.ndarray:
        """Compute the class scores (n, n_classes).

        Scores are vote fractions of the nearest neighbours, or the negative mean distances to the
        nearest rows of each class.
        """
        return class_scores(
            self, self.transform(X), self._train, self._codes, len(self.classes_), self.n_neighbors_
        )

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Vote fractions. With ``classifier="base"``, the probabilities are the softmax of -2
            times the mean squared distance to the k nearest rows of each class, as implied by the
            exponential loss.
        """
        scores = self._scores(X)
        return scores if self.classifier == "knn" else softmax(2.0 * scores, axis=1)
