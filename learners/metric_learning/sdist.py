"""sDist: a boosted sparse nonlinear metric (chapter 2 of the thesis), as metric learner, transformer and classifier."""

from __future__ import annotations

import copy
import numbers
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..common.targets import class_codes
from ..common.validation import check_integer, check_jobs, check_real, feature_names, is_size
from .boosting_run import SOLVERS, BoostingRun, class_scores, subspace
from .mixins import SubspaceMetricMixin


class SDist(ClassNamePrefixFeaturesOutMixin, SubspaceMetricMixin, ClassifierMixin, BaseEstimator):
    """Sparse nonlinear metric learnt by boosting, and a classifier by the nearest neighbours in it.

    The squared distance is (phi(a) - phi(b))' W (phi(a) - phi(b)), where phi holds columns of X and products of them, and W is a
    sum of sparse rank-one matrices: positive semi-definite and sparse by construction. Each step adds the direction that best
    moves each row's nearest neighbours of other classes away and those of its own class near (Algorithm 2.2 of the thesis).

    Parameters
    ----------
    n_neighbors : int or "auto"
        Neighbours of each kind (own class, other classes) that teach: k of (2.3). "auto" is 15, or half of the smallest class if
        that is more and there are over 20 columns per row: among so many columns the nearest rows are near by chance, and a
        mean over many of them is less noisy.
    n_neighbors_predict : int
        Neighbours that vote with ``classifier="knn"``.
    kappa : int or float
        Columns per step; a float is the share rho of the columns that the text uses (0.05-0.2: worse wherever it was tried).
    max_order : int
        Longest product of columns: 1 learns a linear metric.
    n_steps : int
        Boosting steps at most.
    shrinkage : float
        nu of (2.22).
    update_every : int
        Steps between two searches for the neighbours in the metric learnt so far.
    bagging, feature_fraction : float
        Shares of the rows and of the columns that each step sees; ``feature_fraction="sqrt"`` is the text's square root of p.
    standardize : bool
        Columns of unit variance (products too). False keeps scales that carry information.
    stopping : {None, "holdout", "oob", "complexity"}
        None takes all steps; "holdout" the step with the least error on ``validation_fraction`` of the rows, which are left out;
        "oob" the largest sum of improvements of the loss on the rows out of the bag (``bagging`` < 1); "complexity" (2.17).
    validation_fraction : float
        For ``stopping="holdout"``.
    complexity_weight : float
        lambda_C of (2.17).
    n_features_to_select : int or None
        Trim W at the end to the columns of the map (products count as one each) that add most to the mean distance: W_jj times the
        column's variance.
    seed_interactions : int
        Products proposed before the first step by a screen of all pairs against the class (O(n p^2) time): for data whose plain
        columns and neighbours carry nothing, such as XOR among many columns of equal scale.
    max_products : int or None
        Most products ever; None means three times the columns of X.
    classifier : {"knn", "base"}
        Predict by vote of the nearest neighbours, or by f_W of (2.3), the classes' mean distance over ``n_neighbors``.
    solver : {"power", "sgd"}
        Truncated power method, or stochastic (Oja) steps over sampled rows with informative truncation.
    start : {"lanczos", "ones"}
        Where the truncated power method starts; "ones" is the text's.
    initial : {"zero", "identity"}
        W_0; "identity" is the text's and makes W use every column.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads for the neighbours; the result does not depend on it.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray
    columns_ : list of tuple of int
        The columns of phi that W uses: (3,) is x3, (3, 17) is x3 x17.
    W_ : ndarray of shape (len(columns_), len(columns_))
    components_ : ndarray of shape (rank, len(columns_))
        L with W = L'L, strongest direction first.
    selected_features_ : ndarray of int
        Columns of X that occur in ``columns_``.
    interactions_ : list of str
        Names of the products in ``columns_``, by falling share of the mean squared distance.
    n_neighbors_ : int
        Neighbours of each kind that taught.
    n_steps_ : int
        Steps taken after stopping.
    path_ : list of (ndarray, ndarray, float)
        (support, values, weight) of each step, kept or not.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    A step costs O(n k + n p) time and the fit O(n p) memory: no p x p and no n x n matrix is formed. Differences from the text:
    (2.3) with S+ the positive class and S- the negative; W_0 = 0, which r_0 = y implies; a start from Lanczos steps; a shift
    only when the truncated power value falls; a few products per step in place of all S x A; no normalisation of the weights.
    With several classes, the neighbours of the own class stand against the nearest of all others.

    References
    ----------
    Chapter 2 of the thesis on sDist and stabilised truncated SGD: Algorithms 2.1 and 2.2, eqs. (2.3)-(2.22).

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

    def __init__(
        self,
        n_neighbors="auto",
        *,
        n_neighbors_predict=3,
        kappa=5,
        max_order=2,
        n_steps=150,
        shrinkage=0.03,
        update_every=20,
        bagging=1.0,
        feature_fraction=1.0,
        standardize=True,
        stopping=None,
        validation_fraction=0.2,
        complexity_weight=0.1,
        n_features_to_select=None,
        seed_interactions=0,
        max_products=None,
        classifier="knn",
        solver="power",
        start="lanczos",
        initial="zero",
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.n_neighbors = n_neighbors
        self.n_neighbors_predict = n_neighbors_predict
        self.kappa = kappa
        self.max_order = max_order
        self.n_steps = n_steps
        self.shrinkage = shrinkage
        self.update_every = update_every
        self.bagging = bagging
        self.feature_fraction = feature_fraction
        self.standardize = standardize
        self.stopping = stopping
        self.validation_fraction = validation_fraction
        self.complexity_weight = complexity_weight
        self.n_features_to_select = n_features_to_select
        self.seed_interactions = seed_interactions
        self.max_products = max_products
        self.classifier = classifier
        self.solver = solver
        self.start = start
        self.initial = initial
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y):
        """Learn the metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 stays float32 and takes half the time. Sparse columns stay where they are: products are of the columns as they
            come, where those of dense columns are of the centred ones (``standardize``).
        y : array-like of shape (n_samples,)
            Labels of any kind.

        Returns
        -------
        SDist
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter out of its range, or fewer than two classes.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        self.classes_, codes = class_codes(y)
        X = sp.csr_matrix(X) if sp.issparse(X) else X
        with np.errstate(over="ignore"):
            most = max(X.max(), -X.min())
            overflow = not np.isfinite(X.shape[1] * most**2)
        if overflow:
            raise ValueError(f"X holds values up to {most:g}, whose squares overflow {X.dtype}; expected numbers of moderate size")
        run = BoostingRun(self, X, codes)
        if not run.booster.path:
            warnings.warn("no direction lowers the loss: the learnt metric is zero everywhere", ConvergenceWarning, stacklevel=2)
        self._adopt(run, *run.best())
        return self

    def _check_parameters(self):
        if self.n_neighbors != "auto":
            check_integer("n_neighbors", self.n_neighbors, 1)
        for name in ("n_neighbors_predict", "max_order", "n_steps", "update_every"):
            check_integer(name, getattr(self, name), 1)
        for name in ("shrinkage", "bagging", "validation_fraction"):
            check_real(name, getattr(self, name), 0.0, 1.0, above=True)
        check_real("complexity_weight", self.complexity_weight, 0.0)
        check_integer("seed_interactions", self.seed_interactions, 0)
        for name, least in [("n_features_to_select", 1), ("max_products", 0)]:
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least)
        check_jobs(self.n_jobs)
        for name, choices in [
            ("stopping", (None, "holdout", "oob", "complexity")),
            ("classifier", ("knn", "base")),
            ("solver", tuple(SOLVERS)),
            ("start", ("lanczos", "ones")),
            ("initial", ("zero", "identity")),
        ]:
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r}; expected one of {choices}")
        if self.feature_fraction != "sqrt":
            check_real("feature_fraction", self.feature_fraction, 0.0, 1.0, above=True)
        if not is_size(self.kappa) or (self.kappa == 1.0 and not isinstance(self.kappa, numbers.Integral)):
            raise ValueError(f"kappa={self.kappa!r}; expected a positive integer or a share in (0, 1)")
        if self.stopping == "oob" and self.bagging >= 1:
            raise ValueError(f"stopping='oob' needs rows out of the bag; bagging={self.bagging!r}, expected less than 1")

    def _adopt(self, run, metric, n_steps):
        """Take over the metric of a run after its first ``n_steps`` steps."""
        self._features = run.features
        self._metric = metric
        self.n_neighbors_ = run.n_neighbors
        self.n_steps_ = n_steps
        self.path_ = run.booster.path
        self.W_ = metric.matrix
        self._variance = run.variance(metric)
        self.components_ = metric.factor()
        self.columns_ = [run.features.monomial(c) for c in metric.columns]
        self.selected_features_ = np.array(sorted({j for t in self.columns_ for j in t}), dtype=np.intp)
        self._n_features_out = len(self.components_) + (self.n_features_in_ if self.initial == "identity" else 0)
        self._codes = run.codes
        self._train = run.train_subspace(metric)

    @property
    def interactions_(self):
        """Names of the products that W uses, the largest share of the mean squared distance, W_jj times the variance, first."""
        check_is_fitted(self)
        names = feature_names(self)
        order = np.argsort(-np.diag(self.W_) * self._variance, kind="stable")
        return [self._features.name(self._metric.columns[i], names) for i in order if len(self.columns_[i]) > 1]

    def _subspace(self, X):
        return subspace(X, self._features, self._metric.columns, self.components_, self.initial == "identity")

    def _frozen_subspace(self):
        features, columns, L = copy.deepcopy(self._features), list(self._metric.columns), self.components_.copy()
        identity = self.initial == "identity"
        return lambda X: subspace(X, features, columns, L, identity)

    def _class_scores(self, X):
        """(n, n_classes): votes of the nearest neighbours, or minus the mean distance to each class' nearest."""
        Z = self.transform(X)
        return class_scores(self, Z, self._train, self._codes, len(self.classes_), self.n_neighbors_)

    def predict(self, X):
        """Predict the class of each row, by vote or by f_W > 0 (see ``classifier``)."""
        check_is_fitted(self)
        return self.classes_[self._class_scores(X).argmax(axis=1)]

    def predict_proba(self, X):
        """Return the share of the votes, or the softmax of -2 d_c that the exponential loss implies for "base"; (n, n_classes)."""
        check_is_fitted(self)
        scores = self._class_scores(X)
        return scores if self.classifier == "knn" else softmax(2.0 * scores, axis=1)

    def decision_function(self, X):
        """Score of the second class above the first, f_W of (2.3) for "base"; with several classes one column each."""
        check_is_fitted(self)
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
