"""Base class for the online sparse linear classifiers."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..common import (
    SparseClassifierMixin,
    SparseInputMixin,
    check_sample_weight,
    check_two_classes,
    class_codes,
    progress_bar,
    stream_codes,
    validated,
    weighted_classes,
)
from ..compilation import VALUES_PER_ROW, problem_size
from ..designs.sparse import canonical
from ..objective.losses import LOSSES, Loss, losses_for
from ..parameters import check_declared, check_integer, checked, estimator
from ..sklearn_bases import BaseEstimator, SelectorMixin
from ..types import ArrayLike, ClassWeight, Matrix, Seed
from .kernels import Descent

# Warn if the column means account for this fraction of the mean squared row length, as estimated
# from this number of rows. With twenty columns of variance one, the accuracy of all learners
# decreases by at most 0.04 up to a fraction of 0.9 (means of 3), and to chance level at 0.99.
_MAX_SHARE_OF_MEANS, _MIN_ROWS = 0.95, 10


def margin_code(loss: str | Loss) -> tuple[int, float]:
    """Return the code and the parameter of a margin loss for the compiled loops.

    Parameters
    ----------
    loss : str or Loss
        Name of a loss, or a loss object.

    Returns
    -------
    kind : int
        Code of the loss.
    parameter : float
        Parameter of the loss.

    Raises
    ------
    ValueError
        If the loss has no compiled form.
    """
    known = LOSSES[loss]() if isinstance(loss, str) and loss in LOSSES else loss
    code = known.kernel_code if isinstance(known, Loss) else None
    if code is None:
        raise ValueError(
            f"loss={loss!r} is not valid; expected one of {sorted(losses_for('online'))} or the "
            "corresponding loss object"
        )
    return code


@estimator
class OnlineClassifier(SparseInputMixin, SparseClassifierMixin, SelectorMixin, BaseEstimator):
    """Base class for the online learners, with label encoding, row weights and prediction.

    A learner defines ``_new_state``. It also defines ``_learn``, which processes rows with labels
    -1 and +1, and ``_weights``, which returns the coefficients and the intercept. With more than
    two classes, there is one state per class (one-vs-rest).
    """

    loss: str | Loss = "hinge"
    fit_intercept: bool = True
    max_iter: int = checked(20, check_integer, 1)
    class_weight: ClassWeight = None
    random_state: Seed = None
    verbose: bool = False
    _new_state: ClassVar[Callable[..., Any]]
    _learn: ClassVar[Callable[..., None]]
    _weights: ClassVar[Callable[..., tuple[np.ndarray, float]]]

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the rows in ``max_iter`` passes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows. Dense rows are converted to CSR format.
        y : array-like of shape (n_samples,)
            Labels of any type with at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

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
        X, y = validated(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_, _ = class_codes(y)
        check_two_classes(y, check_sample_weight(sample_weight, X.shape[0]))
        self._begin(X.shape[1])
        self._update(X, y, sample_weight, self.max_iter, streaming=False)
        self.n_iter_ = self.max_iter
        return self

    def partial_fit(
        self,
        X: Matrix,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from a batch of rows in a single pass.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Batch of rows.
        y : array-like of shape (n_samples,)
            Labels of the batch.
        classes : array-like or None, default None
            All class labels that occur in the stream; required for the first batch.
        sample_weight : array-like of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If ``classes`` is missing for the first batch, or y contains labels that are not in
            ``classes``.
        """
        first = not hasattr(self, "classes_")
        if first:
            self._check_parameters()
        X, y = validated(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first
        )
        stream_codes(self, y, classes)
        if first:
            self._begin(X.shape[1])
            self.n_iter_ = 0
        self._update(X, y, sample_weight, 1, streaming=True)
        self.n_iter_ += 1
        return self

    def _check_parameters(self) -> None:
        margin_code(self.loss)
        check_declared(self)

    def _descent(self, scale: float) -> Descent:
        return Descent(*margin_code(self.loss), bool(self.fit_intercept), float(scale))

    def _begin(self, n_features: int) -> None:
        self._rng = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        self._row_length: Any = None  # mean squared row length, None before the first row
        self._first_rows: tuple[int, np.ndarray, float] | None = (0, np.zeros(n_features), 0.0)
        n_problems = 1 if len(self.classes_) == 2 else len(self.classes_)
        self._states = [self._new_state(n_features, self._rng) for _ in range(n_problems)]

    def _update(
        self,
        X: Matrix,
        y: np.ndarray,
        sample_weight: ArrayLike | None,
        n_passes: int,
        streaming: bool,
    ) -> None:
        weight = check_sample_weight(sample_weight, X.shape[0])
        if self.class_weight is not None:
            if streaming and self.class_weight == "balanced":
                raise ValueError(
                    "class_weight='balanced' cannot be computed on a stream; use a dict or pass "
                    "sample_weight"
                )
            codes = np.searchsorted(self.classes_, y)
            weight = weighted_classes(self.class_weight, self.classes_, codes, weight)
        X = canonical(sp.csr_array(X))
        if not X.data.all():  # stored zeros must not cause updates
            X = X.copy()
            X.eliminate_zeros()
        if self._row_length is None:
            # The step size is relative to the mean squared row length, so it does not depend on
            # units.
            with np.errstate(over="ignore"):
                square = float(X.multiply(X).sum()) / max(X.shape[0], 1)
            if not np.isfinite(square):
                raise ValueError(
                    f"X contains values whose squares overflow {X.dtype}; expected finite "
                    "values of moderate magnitude"
                )
            self._row_length = square if square > 0 else 1.0
        self._warn_of_means(X)
        with progress_bar(
            title=type(self).__name__, total=n_passes * len(self._states), shown=self.verbose
        ) as bar:
            for c, state in enumerate(self._states):
                positive = self.classes_[1] if len(self._states) == 1 else self.classes_[c]
                signs = np.where(y == positive, 1.0, -1.0)
                # Streams are long, so compiled code is used from the start.
                with problem_size(
                    np.inf
                    if streaming
                    else VALUES_PER_ROW * X.shape[0] * n_passes * len(self._states)
                ):
                    self._learn(state, X, signs, weight, n_passes, streaming, bar)
        pairs = [self._weights(state) for state in self._states]
        self.coef_ = np.array([w for w, _ in pairs])
        self.intercept_ = np.array([b for _, b in pairs])

    def _warn_of_means(self, X: Matrix) -> None:
        """Warn if the column means dominate the row lengths, and hence the step size."""
        if self._first_rows is None:
            return
        n, total, square = self._first_rows
        n, total = n + X.shape[0], total + np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
        square += float(X.data.astype(np.float64) @ X.data)
        self._first_rows = None if n >= _MIN_ROWS else (n, total, square)
        share = float(total @ total) / n / square if square > 0 else 0.0
        if n >= _MIN_ROWS and share > _MAX_SHARE_OF_MEANS:
            warnings.warn(
                f"the columns of X are far from zero (their means account for {share:.2%} of "
                "the mean squared norm of a row, which determines the step size); "
                f"{type(self).__name__} expects centred columns, for example from StandardScaler",
                stacklevel=4,
            )

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return (self.coef_ != 0).any(axis=0)

    def _scores(self, X: Matrix) -> np.ndarray:
        """Compute the scores (n, 1 or n_classes) of raw rows."""
        check_is_fitted(self)
        X = validated(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return X @ self.coef_.T + self.intercept_

    @available_if(lambda self: getattr(self.loss, "name", self.loss) == "logistic")
    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Predict class probabilities; only available for the logistic loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows for which to predict probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return super().predict_proba(X)

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if scores.ndim == 1:
            return super()._probabilities(scores)
        p = expit(scores)
        return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
