"""Linear-chain conditional random field, and the base class of the sequence estimators."""

import warnings
from dataclasses import field
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from ..common import (
    SparseInputMixin,
    check_finite,
    check_sample_weight,
    check_squares,
    class_codes,
    validated,
)
from ..objective.chain import ChainLoss, chain_terms
from ..parameters import (
    check_choice,
    check_declared,
    check_integer,
    check_real,
    checked,
    estimator,
    limits,
)
from ..sklearn_bases import BaseEstimator, ClassifierMixin
from ..types import ArrayLike, Matrix
from .problem import ChainFit, ChainProblem, minimise


class Sequences(NamedTuple):
    """Assignment of rows to sequences.

    Attributes
    ----------
    offsets : ndarray of shape (n_sequences + 1,), int
        Index of the first row of each sequence in the ordered rows, followed by the number of rows.
    order : ndarray of shape (n_rows,), int, or None
        Row indices in the order of the sequences; None if the rows are already in this order.
    """

    offsets: np.ndarray
    order: np.ndarray | None

    def ordered(self, rows: Any) -> Any:
        """Return the rows of an array or sparse matrix, grouped by sequence."""
        return rows if self.order is None else rows[self.order]

    def restored(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows in their original order; this is the inverse of :meth:`ordered`."""
        if self.order is None:
            return rows
        out = np.empty_like(rows)
        out[self.order] = rows
        return out


def find_sequences(
    n_rows: int, lengths: ArrayLike | None = None, sequence: ArrayLike | None = None
) -> Sequences:
    """Determine the sequences from their lengths or from a sequence ID per row.

    If neither is given, all rows form a single sequence.

    Raises
    ------
    ValueError
        If both are given, the lengths are not positive integers that sum to the number of rows, or
        the number of IDs differs from the number of rows.

    Examples
    --------
    >>> find_sequences(5, lengths=[2, 3]).offsets
    array([0, 2, 5])
    >>> find_sequences(4, sequence=["b", "a", "b", "a"]).order  # in the order of their first rows
    array([0, 2, 1, 3])
    """
    if lengths is not None and sequence is not None:
        raise ValueError("lengths and sequence are both given; pass only one of them")
    if sequence is not None:
        return _from_ids(n_rows, np.asarray(sequence))
    if lengths is None:
        return Sequences(np.array([0, n_rows]), None)
    given = np.atleast_1d(np.asarray(lengths))
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given) or given.min() < 1:
        raise ValueError(
            f"lengths={_short(given)} is not valid; expected an integer >= 1 for each sequence"
        )
    if given.sum() != n_rows:
        raise ValueError(
            f"lengths add up to {given.sum()}; expected {n_rows}, the number of rows of X"
        )
    return Sequences(np.concatenate([[0], np.cumsum(given)]).astype(np.int64), None)


def _from_ids(n_rows: int, ids: np.ndarray) -> Sequences:
    if ids.shape != (n_rows,):
        raise ValueError(
            f"sequence has shape {ids.shape}; expected one id for each of the {n_rows} rows"
        )
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise ValueError("sequence contains NaN; expected one id for each row")
    _, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    return Sequences(
        offsets, None if (np.diff(codes) >= 0).all() else np.argsort(codes, kind="stable")
    )


def sequence_weights(weight: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the weight of each sequence, given the weights of its rows.

    Raises
    ------
    ValueError
        If the weights differ within a sequence.
    """
    least = np.minimum.reduceat(weight, offsets[:-1])
    most = np.maximum.reduceat(weight, offsets[:-1])
    uneven = np.flatnonzero(least < most)
    if len(uneven):
        s = uneven[0]
        raise ValueError(
            f"sample_weight varies from {least[s]:g} to {most[s]:g} in sequence {s}; "
            "expected one weight per sequence"
        )
    return most


def _short(values: np.ndarray) -> str:
    text = values.tolist() if values.ndim else values
    return str(text) if len(str(text)) < 60 else str(text)[:57] + "..."


@estimator
class BaseCRF(SparseInputMixin, ClassifierMixin, BaseEstimator):
    """Base class for the sequence estimators; a subclass implements ``_fit_problem``."""

    # With scikit-learn's metadata routing, cross-validation passes the sequence IDs on.
    __metadata_request__fit = {"sequence": True}  # noqa: RUF012
    __metadata_request__predict = {"sequence": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sequence": True}  # noqa: RUF012
    __metadata_request__score = {"sequence": True}  # noqa: RUF012

    ridge: float = checked(2.0, check_real, 0.0)
    fit_transitions: bool = checked(True, check_choice, (True, False))
    fit_intercept: bool = checked(True, check_choice, (True, False))
    max_iter: int = checked(1000, check_integer, 1)
    tol: float = checked(1e-9, check_real, 0.0, above=True)

    def _fit_problem(self, problem: ChainProblem) -> None:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise a ValueError if a parameter is not valid."""
        check_declared(self)

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        lengths: ArrayLike | None = None,
        sequence: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to labelled sequences.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows of all sequences, in order.
        y : array of shape (n_rows,)
            Labels of any type with at least two classes.
        lengths : array of shape (n_sequences,), int, or None, default None
            Number of rows of each sequence. None means a single sequence, unless ``sequence`` is
            given.
        sequence : array of shape (n_rows,) or None, default None
            Sequence ID of each row, as an alternative to ``lengths``. The rows of a sequence must
            be in order, but rows of other sequences may lie between them.
        sample_weight : array of shape (n_rows,) or None, default None
            Row weights, which must be equal within a sequence. None means equal weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If y contains a single class, X contains NaN, the lengths do not sum to the number of
            rows, weights differ within a sequence, or a parameter is out of range.
        """
        self._check_parameters()
        X, y = validated(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        check_finite(X)
        check_squares(X)
        sequences = find_sequences(X.shape[0], lengths, sequence)
        self.classes_, codes = class_codes(y)
        weight = sequences.ordered(check_sample_weight(sample_weight, X.shape[0]))
        problem = ChainProblem(
            sequences.ordered(X),
            sequences.ordered(codes),
            len(self.classes_),
            sequences.offsets,
            sequence_weights(weight, sequences.offsets),
            float(self.ridge),
            self.fit_intercept,
            self.fit_transitions,
        )
        self._fit_problem(problem)
        return self

    def _store(self, fit: ChainFit) -> None:
        """Set the fitted attributes from a fit on all columns."""
        if not fit.converged:
            warnings.warn(
                f"L-BFGS did not converge in max_iter={self.max_iter} iterations",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.coef_ = np.ascontiguousarray(fit.coef.T)
        self.transitions_, self.intercept_ = fit.transitions.copy(), fit.intercept.copy()
        self.objective_, self.n_iter_ = fit.value, fit.n_iter

    def _scores(
        self, X: Matrix, lengths: ArrayLike | None, sequence: ArrayLike | None
    ) -> tuple[np.ndarray, Sequences, ChainLoss]:
        """Compute the scores of the rows, ordered by sequence, and the loss of the sequences."""
        check_is_fitted(self)
        X = validated(
            self, X, accept_sparse="csr", dtype=np.float64, reset=False, ensure_all_finite=False
        )
        check_finite(X)
        sequences = find_sequences(X.shape[0], lengths, sequence)
        scores = sequences.ordered(X @ self.coef_.T + self.intercept_)
        return scores, sequences, ChainLoss(np.diff(sequences.offsets), self.transitions_)

    def predict(
        self,
        X: Matrix,
        lengths: ArrayLike | None = None,
        sequence: ArrayLike | None = None,
        method: str = "marginal",
    ) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows of all sequences.
        lengths, sequence : array or None, default None
            As in :meth:`fit`.
        method : {"marginal", "viterbi"}, default "marginal"
            Whether to predict the most probable label of each row ("marginal") or the most probable
            label sequence ("viterbi").

        Returns
        -------
        ndarray of shape (n_rows,)
            Predicted labels.
        """
        check_choice("method", method, ("marginal", "viterbi"))
        scores, sequences, loss = self._scores(X, lengths, sequence)
        codes = (
            loss.best_path(scores) if method == "viterbi" else loss.marginals(scores).argmax(axis=1)
        )
        return self.classes_[sequences.restored(codes)]

    def predict_proba(
        self, X: Matrix, lengths: ArrayLike | None = None, sequence: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict the label probabilities of each row, given all rows of its sequence.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows of all sequences.
        lengths, sequence : array or None, default None
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities in the order of ``classes_``.
        """
        scores, sequences, loss = self._scores(X, lengths, sequence)
        return sequences.restored(loss.marginals(scores))

    def log_likelihood(
        self,
        X: Matrix,
        y: ArrayLike,
        lengths: ArrayLike | None = None,
        sequence: ArrayLike | None = None,
    ) -> float:
        """Compute the log probability of the labels, summed over sequences.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows of all sequences.
        y : array of shape (n_rows,)
            True labels, all of which are in ``classes_``.
        lengths, sequence : array or None, default None
            As in :meth:`fit`.

        Returns
        -------
        float
            Log probability.

        Raises
        ------
        ValueError
            If a label did not occur in training, or the number of labels differs from the number of
            rows.
        """
        scores, sequences, _ = self._scores(X, lengths, sequence)
        labels = np.asarray(y)
        if labels.shape != (len(scores),):
            raise ValueError(
                f"y has shape {labels.shape}; expected one label for each of the {len(scores)} rows"
            )
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        unseen = self.classes_[codes] != labels
        if unseen.any():
            first = labels[unseen].tolist()[0]
            raise ValueError(
                f"y contains the label {first!r}, which was not seen during fit; "
                f"expected one of {self.classes_.tolist()}"
            )
        ones = np.ones(len(sequences.offsets) - 1)
        return -chain_terms(
            scores, sequences.ordered(codes), self.transitions_, sequences.offsets, ones
        )[0]

    def score(  # type: ignore[override]  # lengths has the position that it has in fit
        self,
        X: Matrix,
        y: ArrayLike,
        lengths: ArrayLike | None = None,
        sequence: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Compute the accuracy over rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows of all sequences.
        y : array of shape (n_rows,)
            True labels. A label that did not occur in training counts as an error.
        lengths, sequence : array or None, default None
            As in :meth:`fit`.
        sample_weight : array of shape (n_rows,) or None, default None
            Row weights.

        Returns
        -------
        float
            Accuracy, in [0, 1].
        """
        return float(
            accuracy_score(y, self.predict(X, lengths, sequence), sample_weight=sample_weight)
        )


@estimator
class LinearChainCRF(BaseCRF):
    """Linear-chain conditional random field, which labels each row given all rows of its sequence.

    The model is that of Lafferty et al. (2001) [1]_. L-BFGS minimises the convex objective::

        - sum over sequences of w log p(y | X) + ridge / 2 (||coef||^2 + ||transitions||^2)

    Here w is the weight of a sequence. The intercepts are not penalised. Without intercepts, the
    objective is that of crfsuite with the options ``feature.possible_states`` and
    ``feature.possible_transitions``.

    Parameters
    ----------
    ridge : float, default 2.0
        Non-negative factor of the penalty. It corresponds to twice ``c2`` in crfsuite.
    fit_transitions : bool, default True
        Whether to fit transition scores. Without them, the model is a logistic regression on single
        rows.
    fit_intercept : bool, default True
        Whether to fit an intercept for each class, which is not penalised.
    max_iter : int, default 1000
        Maximum number of L-BFGS iterations, at least 1.
    tol : float, default 1e-9
        Positive relative decrease in the objective below which the iterations end.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients of each class.
    transitions_ : ndarray of shape (n_classes, n_classes)
        Score of each transition from one class (row) to the next (column).
    intercept_ : ndarray of shape (n_classes,)
        Intercept of each class.
    objective_ : float
        Minimum of the objective.
    n_iter_ : int
        Number of L-BFGS iterations.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    See Also
    --------
    ForwardBackwardCRF : Selects columns or groups of columns by forward-backward search.
    FSACRF : Selects columns or groups of columns by annealing.

    Notes
    -----
    If scikit-learn's metadata routing is enabled, cross-validation passes ``sequence`` (sequence ID
    of each row, as an alternative to ``lengths``) to ``fit`` and ``score``. For example,
    ``cross_validate(model, X, y, params={"sequence": days, "groups": days},
    cv=LeaveOneGroupOut())`` uses one fold per day.

    References
    ----------
    .. [1] J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields: Probabilistic models
           for segmenting and labeling sequence data", International Conference on Machine Learning
           (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import LinearChainCRF
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(rng.permutation(np.arange(40) % 2), 5)          # labels that last five rows
    >>> X = y[:, None] + rng.normal(0, 1, (200, 1))
    >>> model = LinearChainCRF().fit(X, y, lengths=[100, 100])
    >>> rows_alone = LinearChainCRF(fit_transitions=False).fit(X, y)
    >>> bool(model.score(X, y, lengths=[100, 100]) > rows_alone.score(X, y))
    True
    """

    ridge: float = field(default=2.0, kw_only=False, metadata=limits(check_real, 0.0))

    def _fit_problem(self, problem: ChainProblem) -> None:
        self._store(minimise(problem, tol=self.tol, max_iter=self.max_iter))
