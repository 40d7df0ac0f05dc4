"""Sparse linear classifiers that learn from one row at a time: truncated gradient, RDA and FOBOS (chapter 3 of the thesis)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm import tqdm

from ..common.targets import SparseClassifierMixin, class_codes
from ..common.validation import check_integer, check_real, check_sample_weight
from ..designs.sparse import canonical
from ..objective.losses import LOSSES, LogisticLoss, Loss
from . import kernels as kernels


def margin_code(loss):
    """Number and parameter of a loss of the margin for the compiled loops.

    Parameters
    ----------
    loss : str or Loss
        A name, or an object.

    Returns
    -------
    kind : int
    parameter : float

    Raises
    ------
    ValueError
        If it has no compiled form.
    """
    known = loss if isinstance(loss, Loss) else LOSSES[loss]() if isinstance(loss, str) and loss in LOSSES else None
    code = None if known is None else known.kernel_code
    if code is None:
        names = sorted(name for name, cls in LOSSES.items() if cls().kernel_code is not None)
        raise ValueError(f"loss={loss!r} is not valid; expected one of {names} or such a loss of annealed.learners")
    return code


class OnlineClassifier(SparseClassifierMixin, SelectorMixin, BaseEstimator):
    """What the online learners share: labels, weights, one problem per class, prediction, selection.

    A learner supplies ``_new_state(n_features, rng)``, ``_learn(state, X, y, weight, rng, n_passes)`` and ``_weights(state)``; with
    more than two classes there is one state per class against the rest.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Learn from ``max_iter`` passes over the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Never made dense; dense rows are read as CSR.
        y : array-like of shape (n_samples,)
            Labels of any kind, two or more classes.
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter out of its range, or fewer than two classes.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_, _ = class_codes(y)
        self._begin(X.shape[1])
        self._update(X, y, sample_weight, self.max_iter, streaming=False)
        self.n_iter_ = self.max_iter
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from one pass over some rows of a stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like or None
            All labels that will ever come; needed in the first call.
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError
            If the first call has no ``classes``, or y holds others.
        """
        first = not hasattr(self, "classes_")
        if first:
            self._check_parameters()
            if classes is None:
                raise ValueError("classes=None; expected all labels in the first call of partial_fit")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first)
        check_classification_targets(y)
        if first:
            self.classes_, _ = class_codes(classes)
            self._begin(X.shape[1])
            self.n_iter_ = 0
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(f"classes={np.asarray(classes).tolist()} are not those of the first call, {self.classes_.tolist()}")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds {unknown.tolist()[0]!r}; expected only the classes {self.classes_.tolist()}")
        self._update(X, y, sample_weight, 1, streaming=True)
        self.n_iter_ += 1
        return self

    def _check_parameters(self):
        margin_code(self.loss)
        check_integer("max_iter", self.max_iter, 1)
        for name in ("learning_rate", "gamma"):
            if hasattr(self, name):
                check_real(name, getattr(self, name), 0.0, above=True)
        for name in ("gravity", "penalty", "rho"):
            if hasattr(self, name):
                check_real(name, getattr(self, name), 0.0)
        if hasattr(self, "burst_size"):
            check_integer("burst_size", self.burst_size, 1)

    def _begin(self, n_features):
        self._rng = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        self._row_length = None
        n_problems = 1 if len(self.classes_) == 2 else len(self.classes_)
        self._states = [self._new_state(n_features, self._rng) for _ in range(n_problems)]

    def _update(self, X, y, sample_weight, n_passes, streaming):
        weight = check_sample_weight(sample_weight, X.shape[0])
        if self.class_weight is not None:
            if streaming and self.class_weight == "balanced":
                raise ValueError("class_weight='balanced' is not known on a stream; expected a dict or sample_weight")
            present = np.isin(self.classes_, y)
            per_class = np.ones(len(self.classes_))
            per_class[present] = compute_class_weight(self.class_weight, classes=self.classes_[present], y=y)
            weight = weight * per_class[np.searchsorted(self.classes_, y)]
        X = canonical(sp.csr_array(X))
        if not X.data.all():  # a stored zero is no update
            X = X.copy()
            X.eliminate_zeros()
        if self._row_length is None:
            # The rate is relative to the mean squared length of a row: columns in other units need no other rate.
            with np.errstate(over="ignore"):
                square = float(X.multiply(X).sum()) / max(X.shape[0], 1)
            if not np.isfinite(square):
                raise ValueError(f"X holds values whose squares overflow {X.dtype}; expected finite numbers of moderate size")
            self._row_length = square if square > 0 else 1.0
        bar = tqdm(total=n_passes * len(self._states), desc=type(self).__name__, disable=not self.verbose)
        for c, state in enumerate(self._states):
            positive = self.classes_[1] if len(self._states) == 1 else self.classes_[c]
            signs = np.where(y == positive, 1.0, -1.0)
            self._learn(state, X, signs, weight, n_passes, streaming, bar)
        bar.close()
        pairs = [self._weights(state) for state in self._states]
        self.coef_ = np.array([w for w, _ in pairs])
        self.intercept_ = np.array([b for _, b in pairs])

    def _orders(self, n, n_passes):
        """One order of the rows per pass."""
        for _ in range(n_passes):
            yield self._rng.permutation(n) if self.shuffle else np.arange(n)

    def _get_support_mask(self):
        check_is_fitted(self)
        return (self.coef_ != 0).any(axis=0)

    def _scores(self, X):
        """Scores (n, 1 or n_classes) of raw rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return X @ self.coef_.T + self.intercept_

    @available_if(lambda self: self.loss == "logistic" or isinstance(self.loss, LogisticLoss))
    def predict_proba(self, X):
        """Probabilities, for the logistic loss only; several classes are normalised one against the rest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return super().predict_proba(X)

    @staticmethod
    def _probabilities(scores):
        if scores.ndim == 1:
            return SparseClassifierMixin._probabilities(scores)
        p = expit(scores)
        return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)


_SHARED = """loss : {"hinge", "logistic", "flipped_logistic", "huberised_hinge", "lorenz", "squared", "exponential"} or a Loss
        What one row costs; of the objects those of this package.
    max_iter : int
        Passes over the rows in ``fit``.
    class_weight : dict, "balanced" or None
    fit_intercept : bool
        The intercept is never shrunk.
    shuffle : bool
        A new order of the rows for every pass.
    random_state : int, RandomState or None
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray
    n_iter_ : int
        Passes made."""


def _document(cls):
    cls.__doc__ = cls.__doc__.replace("{shared}", _SHARED)
    return cls


@_document
class TruncatedGradientClassifier(OnlineClassifier):
    """Truncated gradient: SGD with a soft threshold after every few rows (Algorithm 3.1 of the thesis, after Langford et al.).

    Parameters
    ----------
    gravity : float
        g_0: every ``burst_size`` rows all coefficients shrink by ``burst_size * gravity``.
    burst_size : int
        K.
    learning_rate : float
        Step, divided by the mean squared length of a row.
    {shared}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TruncatedGradientClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> TruncatedGradientClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        gravity=1e-4,
        *,
        burst_size=5,
        learning_rate=0.3,
        loss="hinge",
        max_iter=20,
        class_weight=None,
        fit_intercept=True,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.gravity = gravity
        self.burst_size = burst_size
        self.learning_rate = learning_rate
        self.loss = loss
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _new_state(self, n_features, rng):
        return {"w": np.zeros(n_features), "done": np.zeros(n_features, np.int64), "b": 0.0, "t": 0}

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        number, h = margin_code(self.loss)
        rate = self.learning_rate / self._row_length
        for order in self._orders(len(y), n_passes):
            state["b"] = kernels.truncated_gradient_pass(
                X.data, X.indices, X.indptr, y, weight, order, number, h, rate, bool(self.fit_intercept), state["t"],
                int(self.burst_size), float(self.gravity), state["w"], state["done"], state["b"],
            )  # fmt: skip
            state["t"] += len(y)
            bar.update()

    def _weights(self, state):
        missed = (state["t"] // self.burst_size - state["done"]) * self.burst_size * self.gravity
        return np.sign(state["w"]) * np.maximum(np.abs(state["w"]) - missed, 0.0), state["b"]


@_document
class FOBOSClassifier(OnlineClassifier):
    """Forward-backward splitting with the absolute norm, (3.36) of the thesis (Duchi and Singer): a soft threshold after every row.

    Parameters
    ----------
    penalty : float
        lambda.
    learning_rate : float
        Row t takes the step ``learning_rate / sqrt(t)``, divided by the mean squared length of a row.
    {shared}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FOBOSClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> FOBOSClassifier(penalty=0.03, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        penalty=1e-3,
        *,
        learning_rate=1.0,
        loss="hinge",
        max_iter=20,
        class_weight=None,
        fit_intercept=True,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.loss = loss
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _new_state(self, n_features, rng):
        return {"w": np.zeros(n_features), "done": np.zeros(n_features), "b": 0.0, "t": 0, "total": 0.0}

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        number, h = margin_code(self.loss)
        rate = self.learning_rate / self._row_length
        for order in self._orders(len(y), n_passes):
            state["b"], state["total"] = kernels.fobos_pass(
                X.data, X.indices, X.indptr, y, weight, order, number, h, rate, bool(self.fit_intercept), state["t"],
                float(self.penalty), state["w"], state["done"], state["total"], state["b"],
            )  # fmt: skip
            state["t"] += len(y)
            bar.update()

    def _weights(self, state):
        return np.sign(state["w"]) * np.maximum(np.abs(state["w"]) - (state["total"] - state["done"]), 0.0), state["b"]


@_document
class RDAClassifier(OnlineClassifier):
    """Regularised dual averaging with the absolute norm, (3.35) of the thesis (Xiao).

    Parameters
    ----------
    penalty : float
        lambda.
    gamma : float
        Strength of the proximal term, times the mean squared length of a row; small values take large steps.
    rho : float
        The text's enhancement of sparsity, gamma rho / sqrt(t) added to lambda.
    {shared}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import RDAClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> RDAClassifier(penalty=0.2, random_state=0).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """

    def __init__(
        self,
        penalty=1e-3,
        *,
        gamma=1.0,
        rho=0.005,
        loss="hinge",
        max_iter=20,
        class_weight=None,
        fit_intercept=True,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.penalty = penalty
        self.gamma = gamma
        self.rho = rho
        self.loss = loss
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _new_state(self, n_features, rng):
        return {"g": np.zeros(n_features), "g0": 0.0, "t": 0}

    def _scale(self):
        return self.gamma * self._row_length

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        number, h = margin_code(self.loss)
        for order in self._orders(len(y), n_passes):
            state["g0"] = kernels.rda_pass(
                X.data, X.indices, X.indptr, y, weight, order, number, h, bool(self.fit_intercept), state["t"],
                float(self.penalty), self._scale(), float(self.rho), state["g"], state["g0"],
            )  # fmt: skip
            state["t"] += len(y)
            bar.update()

    def _weights(self, state):
        root = np.sqrt(state["t"])
        gamma = self._scale()
        mean = state["g"] / state["t"]
        w = -root / gamma * np.sign(mean) * np.maximum(np.abs(mean) - self.penalty - gamma * self.rho / root, 0.0)
        return w, -state["g0"] / (gamma * root)
