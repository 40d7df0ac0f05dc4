"""LogitBoost with weak learners on single features, Friedman et al. (2000).

Each round takes a Newton step over functions of a single feature. Let g and h be the gradient and
the curvature of the loss at the current scores. The weak learner f of a feature minimises sum_i
(g_i f(x_i) + h_i f(x_i)^2 / 2), and the feature with the lowest minimum is chosen. For the logistic
loss, this is the weighted least-squares fit of the working response.
"""

from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..common import AdditiveModel, resolve_n_features
from ..compilation import jit
from ..designs import canonical, encoded, even_knots, hat_basis, histograms, in_blocks, make_design
from ..objective.losses import Loss, check_bounded, check_curvature
from ..parameters import check_choice, check_declared, check_integer, check_real, checked, estimator
from ..types import Matrix, Seed
from .base import SelectingClassifier

# Bounds on the steps (heuristic)
# ridge of a weak learner relative to its curvature, for features that vary in few rows
_DAMPING = 1e-3
_MIN_CURVATURE = 1e-4  # minimum curvature of a row relative to the largest, if all rows fit well
_MAX_HALVINGS = 10  # maximum halvings of a step that increases the loss, before boosting ends


def _weighted_sums(
    columns: np.ndarray,
    mean: np.ndarray,
    inv: np.ndarray,
    features: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    out: np.ndarray,
) -> None:
    x = (columns[features] - mean[features, None]) * inv[features, None]
    out[:, 0], out[:, 1], out[:, 2] = x @ h, (x * x) @ h, x @ g


@jit(plain=_weighted_sums, fastmath={"reassoc", "contract"})
def weighted_sums(
    columns: np.ndarray,
    mean: np.ndarray,
    inv: np.ndarray,
    features: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    out: np.ndarray,
) -> None:
    """Compute the sums of h x, h x^2 and g x over rows for standardised features x.

    Here g and h are the gradient and curvature of each row. ``columns``, of shape (n_features,
    n_samples), contains the values before standardisation. Row i of ``out`` contains the three sums
    for column ``features[i]``.
    """
    for f in range(len(features)):
        j = features[f]
        column, m, s = columns[j], mean[j], inv[j]
        a = 0.0
        b = 0.0
        c = 0.0
        for i in range(len(column)):
            x = (column[i] - m) * s
            a += h[i] * x
            b += h[i] * x * x
            c += g[i] * x
        out[f, 0], out[f, 1], out[f, 2] = a, b, c


class WeakLearners:
    """Base class for weak learners; gradients ``g`` and curvatures ``h`` have shape (n, q)."""

    def _solve(
        self, g: np.ndarray, h: np.ndarray, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the parameters (f, width) and gains (f,) of ``features`` for one output."""
        raise NotImplementedError

    def _response(self, feature: int, parameters: np.ndarray) -> np.ndarray:
        """Compute the scores (n, q) of a feature with parameters (q, width)."""
        raise NotImplementedError

    def gains(self, g: np.ndarray, h: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Compute the decrease in the quadratic model of the loss achieved by each feature."""
        gains = (self._solve(g[:, q], h[:, q], features)[1] for q in range(g.shape[1]))
        return sum(gains, np.zeros(len(features)))

    def step(self, g: np.ndarray, h: np.ndarray, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a weak learner's scores, of shape (n, q), and parameters, of shape (q, width)."""
        parameters = np.stack(
            [self._solve(g[:, q], h[:, q], np.array([feature]))[0][0] for q in range(g.shape[1])]
        )
        return self._response(feature, parameters), parameters


class LinearLearners(WeakLearners):
    """Weak learners f(x) = a + b x, whose gains are measured relative to a constant."""

    def __init__(self, X: Matrix, weight: np.ndarray) -> None:
        self.design = make_design(X, weight)
        if sp.issparse(X):
            self.columns = canonical(sp.csc_array(X))
            self.squares = self.columns.astype(np.float64).power(2)
        else:
            self.columns, self.squares = np.ascontiguousarray(X.T), None

    def _sums(self, g: np.ndarray, h: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Compute the sums (3, f) of h x, h x^2 and g x over rows for standardised ``features``.

        Only the stored values of sparse features are read.
        """
        mean, inv = self.design.mean[:, 0], self.design.inv
        if self.squares is None:
            out = np.empty((len(features), 3))
            weighted_sums(self.columns, mean, inv, features, g, h, out)
            return out.T
        a, b, c = self.columns.T @ h, self.squares.T @ h, self.columns.T @ g
        b = (b - 2.0 * mean * a + mean**2 * h.sum()) * inv**2
        return np.stack([(a - mean * h.sum()) * inv, b, (c - mean * g.sum()) * inv])[:, features]

    def _solve(
        self, g: np.ndarray, h: np.ndarray, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        a, b, c = self._sums(g, h, features)
        total = h.sum()
        if total <= 0:
            return np.zeros((len(features), 2)), np.zeros(len(features))
        curvature = b - a * a / total + _DAMPING * total
        slope = -(c - a * g.sum() / total) / curvature
        return np.column_stack([-(g.sum() + a * slope) / total, slope]), 0.5 * slope**2 * curvature

    def _response(self, feature: int, parameters: np.ndarray) -> np.ndarray:
        x = self.design.keep(np.array([feature])).matrix().astype(np.float64)
        return x * parameters[:, 1] + parameters[:, 0]


class CodeLearners(WeakLearners):
    """Weak learners that are functions of a feature's code, which is a bin or a position in a bin.

    Parameters
    ----------
    codes : ndarray of shape (n_blocks, m, ROWS), uint8
        Codes of the values, such as those of :func:`~annealed.learners.designs.encoded`.
    n_samples : int
        Number of rows; the last block may be padded.
    basis : ndarray of shape (256, width)
        Values of the basis functions at every code. A weak learner is a linear combination of them.
    """

    def __init__(self, codes: np.ndarray, n_samples: int, basis: np.ndarray) -> None:
        self.codes, self.n_samples, self.basis = codes, n_samples, basis
        self.products = (basis[:, :, None] * basis[:, None, :]).reshape(256, -1)

    def _solve(
        self, g: np.ndarray, h: np.ndarray, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        right = histograms(self.codes, features, g) @ self.basis
        left = (histograms(self.codes, features, h) @ self.products).reshape(
            len(features), *[self.basis.shape[1]] * 2
        )
        left = left + _DAMPING * max(h.sum(), 1e-300) * np.eye(self.basis.shape[1])
        values = -np.linalg.solve(left, right[:, :, None])[:, :, 0]
        return values, -0.5 * (values * right).sum(axis=1)

    def _response(self, feature: int, parameters: np.ndarray) -> np.ndarray:
        return (self.basis @ parameters.T)[self.codes[:, feature].ravel()[: self.n_samples]]


class TableLearners(CodeLearners):
    """Weak learners that are constant in each of ``n_bins`` bins, or linear between knots.

    The codes are the bins or, for linear pieces, those of
    :func:`~annealed.learners.designs.encoded`.
    """

    def __init__(self, X: Matrix, n_bins: int, response: str) -> None:
        self.knots = even_knots(X.min(axis=0), X.max(axis=0), n_bins)
        if response == "constant":
            places = [
                np.searchsorted(knots[1:-1], x, side="right")
                for knots, x in zip(self.knots, X.T, strict=True)
            ]
            codes = np.stack([in_blocks(place.astype(np.uint8)) for place in places], axis=1)
            basis = np.eye(256, n_bins)
        else:
            codes, basis = encoded(np.asarray(X), self.knots, False)[0], hat_basis(n_bins)
        super().__init__(codes, len(X), basis)


class Boosted(NamedTuple):
    """Result of :func:`boost`.

    It contains the feature of each weak learner, the loss before the first round and after each
    round, the sum of the parameters of each feature, and the initial constant of each output.
    """

    rounds: list[int]
    curve: list[float]
    responses: dict[int, np.ndarray]
    constant: np.ndarray


def boost(
    learners: Any,
    n_features: int,
    y: np.ndarray,
    loss: Loss,
    weight: np.ndarray,
    *,
    k: int,
    n_rounds: int,
    subsample: float = 1.0,
    learning_rate: float = 1.0,
    random_state: Seed = None,
) -> Boosted:
    """Boost weak learners on single features until more than k features would be selected.

    Each round adds the weak learner that most reduces a quadratic approximation of the loss.

    Parameters
    ----------
    learners : object
        Weak learners, with the methods ``gains`` and ``step`` of :class:`WeakLearners`.
    n_features : int
        Number of features of ``learners``.
    y, weight : ndarray of shape (n, q) and (n,)
        Encoded targets, and row weights that sum to one.
    loss : Loss
        Loss with bounded curvature.
    k, n_rounds, subsample, learning_rate, random_state
        As in :class:`LogitBoostClassifier`.
    """
    rng = check_random_state(random_state)
    everything = np.arange(n_features)
    n_tried = max(1, round(subsample * n_features))
    constant = loss.best_constant(y, weight)
    scores = np.tile(constant, (len(y), 1))
    value = loss.value(y, scores, weight)
    curve, rounds = [value], []
    responses: dict[int, Any] = {}
    for _ in range(n_rounds):
        g = loss.gradient(y, scores, weight)
        h = np.maximum(
            loss.curvature(y, scores, weight), _MIN_CURVATURE * loss.max_curvature * weight[:, None]
        )
        tried = (
            everything
            if n_tried == len(everything)
            else np.sort(rng.choice(everything, n_tried, replace=False))
        )
        feature = int(tried[np.argmax(learners.gains(g, h, tried))])
        if feature not in responses and len(responses) == k:
            break
        step, parameters = learners.step(g, h, feature)
        rate = learning_rate
        for _ in range(_MAX_HALVINGS):
            new_value = loss.value(y, scores + rate * step, weight)
            if new_value <= value:
                break
            rate *= 0.5
        else:
            break  # even a small step does not lower the loss
        scores, value = scores + rate * step, new_value
        responses[feature] = responses.get(feature, 0.0) + rate * parameters
        rounds.append(feature)
        curve.append(value)
    return Boosted(rounds, curve, responses, constant)


@estimator
class LogitBoostClassifier(SelectingClassifier):
    """LogitBoost classifier that uses at most k features, after Friedman et al. [1]_.

    Round t of boosting adds a weak learner f_t on a single feature j(t). At most k different
    features are used. The objective is::

        sum_i w_i loss(y_i, F(x_i)),   F(x) = constant + sum_t learning_rate f_t(x_j(t))

    The row weights w_i sum to one. Each round adds the weak learner that most reduces a quadratic
    approximation of the loss. Boosting ends when more than k features would be selected.

    Parameters
    ----------
    n_features_to_select : int or float, default 10
        Maximum number k of features, or a fraction of them. Fewer features are selected if
        ``n_rounds`` is reached first.
    loss : str or Loss, default "auto"
        Pointwise loss with bounded curvature; the values are those of :class:`TISPClassifier`.
        "auto" means "logistic", which gives LogitBoost.
    response : {"linear", "constant", "piecewise"}, default "linear"
        Type of the weak learners.

        * "linear": a linear function;
        * "constant": a constant in each bin;
        * "piecewise": a piecewise-linear function with knots at the bin edges.
    n_bins : int, default 6
        Number of bins between the minimum and maximum of each column, from 1 to 126, for "constant"
        and "piecewise".
    n_rounds : int, default 500
        Maximum number of weak learners, at least 1.
    subsample : float, default 1.0
        Fraction of the features that is tried in each round, in (0, 1]. The values 1 and 0.1 give
        the methods that [2]_ calls LB and LB1.
    learning_rate : float, default 1.0
        Positive factor by which every weak learner is multiplied.
    class_weight : dict, "balanced" or None, default None
        Factors for the row weights, as ``{label: factor}``. "balanced" gives all classes the same
        total weight. None means no factors.
    random_state : int, RandomState or None, default None
        Random seed; only used if ``subsample`` is below 1.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the unscaled columns; only for linear responses.
    knots_ : ndarray of shape (n_selected, n_bins + 1)
        Knots of each selected feature, in column order; not for linear responses.
    responses_ : ndarray of shape (n_selected, n_bins or n_bins + 1, n_outputs)
        Response to each selected feature: the sum of its weak learners in each bin ("constant") or
        at each knot ("piecewise"). There is one output for two classes, otherwise one per class.
        Not for linear responses.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept of each output.
    rounds_ : ndarray of shape (n_iter_,), int
        Feature of each weak learner.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first round and after each round; it never increases.
    n_iter_ : int
        Number of rounds.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    References
    ----------
    .. [1] J. Friedman, T. Hastie, R. Tibshirani, "Additive Logistic Regression: a Statistical View
           of Boosting", The Annals of Statistics 28 (2000).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import LogitBoostClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 50))
    >>> LogitBoostClassifier(2).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """

    n_features_to_select: int | float = field(default=10, kw_only=False)
    loss: str | Loss = "auto"
    response: str = checked("linear", check_choice, ("linear", "constant", "piecewise"))
    n_bins: int = checked(6, check_integer, 1, 126)
    n_rounds: int = checked(500, check_integer, 1)
    subsample: float = checked(1.0, check_real, 0.0, 1.0, above=True)
    learning_rate: float = checked(1.0, check_real, 0.0, above=True)
    random_state: Seed = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.response == "linear"
        return tags

    def _select(self, X: Matrix, y: np.ndarray, loss: Loss, weight: np.ndarray) -> None:
        check_declared(self)
        check_bounded(loss)
        check_curvature(loss)
        k = resolve_n_features(self.n_features_to_select, X.shape[1])
        weight = weight / weight.sum()
        used = weight > 0
        if not used.all():  # rows of zero weight must not affect the bins
            X, y, weight = X[used], y[used], weight[used]
        learners: Any = (
            LinearLearners(X, weight)
            if self.response == "linear"
            else TableLearners(X, self.n_bins, self.response)
        )
        boosted = boost(
            learners,
            X.shape[1],
            y,
            loss,
            weight,
            k=k,
            n_rounds=self.n_rounds,
            subsample=self.subsample,
            learning_rate=self.learning_rate,
            random_state=self.random_state,
        )
        self.rounds_ = np.array(boosted.rounds, dtype=int)
        self.loss_curve_ = np.array(boosted.curve)
        self.n_iter_ = len(boosted.rounds)
        kept = np.array(sorted(boosted.responses), dtype=int)
        width = 2 if self.response == "linear" else learners.basis.shape[1]
        table = np.array([boosted.responses[j] for j in kept]).reshape(len(kept), y.shape[1], width)
        if self.response == "linear":
            self._store(
                learners.design, kept, table[:, :, 1], boosted.constant + table[:, :, 0].sum(axis=0)
            )
            return
        self.support_ = np.isin(np.arange(X.shape[1]), kept)
        self.intercept_ = boosted.constant
        self.knots_ = learners.knots[kept]
        self.responses_ = table.transpose(0, 2, 1)

    def _scores(self, X: Matrix) -> np.ndarray:
        if self.response == "linear":
            return super()._scores(X)
        check_is_fitted(self)
        return AdditiveModel.from_estimator(self).scores(self._validate(X, reset=False))
