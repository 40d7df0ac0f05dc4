"""Score cards: single-column rules with integer points that sum to a risk score."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..common import (
    AdditiveModel,
    SparseClassifierMixin,
    SupportMixin,
    check_integer,
    feature_names,
    rollback_on_error,
    validated,
)
from ..compilation import problem_size
from ..designs.responses import PiecewiseLinear
from ..objective.losses import LogisticLoss
from ..sklearn_bases import BaseEstimator
from ..solvers.newton import Fit, SupportProblem, refit
from .estimators import FSAClassifier

_MAX_SCALES = 40  # scale factors tried for rounding the coefficients (heuristic)
_BLOCK = 256  # rules evaluated at a time


@dataclass(eq=False, repr=False, kw_only=True)
class ScoreCardClassifier(SparseClassifierMixin, SupportMixin, BaseEstimator):
    """Score card for two classes: k rules such as ``age >= 60``, each with integer points.

    Annealing (:class:`FSAClassifier`) with the logistic loss selects k of the candidate rules, one
    for each threshold of each column. The coefficients are multiplied by a range of factors and
    rounded to integers, as in [1]_. The best rounded coefficients are then changed in steps of one
    to minimise the loss. A logistic curve maps the total of the points to a probability, as in
    [2]_.

    Parameters
    ----------
    n_features_to_select : int, default 5
        Maximum number k of rules. Several rules may use the same column. Rules whose points round
        to 0 are dropped, so the number n_rules of the remaining rules may be smaller than k.
    points : int, default 5
        Maximum absolute value of the points of a rule.
    n_thresholds : int, default 9
        Maximum number of thresholds per column. They are placed at quantiles, which are deciles by
        default. A column with NaN also has the rule ``is missing``.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Class labels in ascending order. Positive points favour the second class.
    rule_columns_ : ndarray of shape (n_rules,), int
        Column index of each rule; the rules are sorted by column.
    rule_thresholds_ : ndarray of shape (n_rules,)
        Threshold of each rule. A rule holds for values >= its threshold; NaN denotes the rule ``is
        missing``.
    points_ : ndarray of shape (n_rules,), int
        Points of each rule.
    risk_table_ : ndarray of shape (n_totals, 2)
        Every possible total in ascending order, and the corresponding probability of
        ``classes_[1]``.
    scale_ : float
        Log odds per point.
    intercept_ : ndarray of shape (1,)
        Log odds at a total of 0.
    support_ : ndarray of shape (n_features,), bool
        Mask of the columns with a rule.
    knots_, responses_, missing_responses_ : ndarray
        Step functions, in log odds, of the m columns with a rule: knots of shape (m, t + 2), values
        between the knots of shape (m, t + 1, 1), and values for NaN of shape (m, 1), where t is the
        largest number of thresholds of a column.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    References
    ----------
    .. [1] J. Liu, C. Zhong, B. Li, M. Seltzer, C. Rudin, "FasterRisk: Fast and Accurate
           Interpretable Risk Scores", Advances in Neural Information Processing Systems 35 (2022).
    .. [2] J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to
           Regularized Likelihood Methods", Advances in Large Margin Classifiers (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import ScoreCardClassifier
    >>> X = np.random.default_rng(0).integers(20, 80, (500, 8)).astype(float)
    >>> ill = (X[:, 2] > 50) & (X[:, 5] < 60)
    >>> card = ScoreCardClassifier(2).fit(X, ill)
    >>> for rule, points in card.rules():
    ...     print(f"{rule:10}{points:+d}")
    x2 >= 49  +1
    x5 >= 62  -1
    >>> card.risk_table_[:, 0].astype(int), card.risk_table_[:, 1].round(3)
    (array([-1,  0,  1]), array([0.   , 0.005, 0.878]))
    """

    n_features_to_select: int = field(default=5, kw_only=False)
    points: int = 5
    n_thresholds: int = 9

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the rules, their points and the risk table.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training data; may contain NaN.
        y : array of shape (n_samples,)
            Class labels; exactly two classes.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

        Returns
        -------
        ScoreCardClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are not exactly two classes, X contains infinity, all columns are constant, or
            a parameter is out of range.
        """
        for name, most in (("n_features_to_select", None), ("points", 1000), ("n_thresholds", 125)):
            check_integer(name, getattr(self, name), 1, most)
        with rollback_on_error(self):
            X, y = validated(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
            targets, _, weight = self._encode_labels(y, "logistic", sample_weight, len(X))
            if len(self.classes_) > 2:
                raise ValueError(
                    "Only binary classification is supported; "
                    f"y contains {len(self.classes_)} classes"
                )
            columns, thresholds = candidate_rules(X, weight, self.n_thresholds)
            if not len(columns):
                raise ValueError("all columns of X are constant; at least one must vary")
            held = rule_matrix(X, columns, thresholds)
            different = np.sort(
                _different(held[weight > 0].T)[0]
            )  # the result must not depend on their order
            selector = FSAClassifier(self.n_features_to_select, loss="logistic")
            selector.fit(held[:, different], targets[:, 0], sample_weight=weight)
            chosen, coef = different[selector.support_], selector.coef_[0, selector.support_]
            points, fit = _whole_points(held[:, chosen], targets[:, 0], weight, coef, self.points)
            chosen, self.points_ = chosen[points != 0], points[points != 0]
            self.rule_columns_, self.rule_thresholds_ = columns[chosen], thresholds[chosen]
            self._tabulate(X, float(fit.theta[0, 0]), fit.intercept)
        return self

    def _tabulate(self, X: np.ndarray, scale: float, intercept: np.ndarray) -> None:
        """Set the risk table and the step functions."""
        self.scale_, self.intercept_ = scale, intercept
        self.support_ = np.isin(np.arange(X.shape[1]), self.rule_columns_)
        selected = np.flatnonzero(self.support_)
        steps = ~np.isnan(self.rule_thresholds_)
        most = np.bincount(self.rule_columns_[steps], minlength=1).max(initial=0)
        self.knots_ = np.empty((len(selected), most + 2))
        self.responses_ = np.zeros((len(selected), most + 1, 1))
        self.missing_responses_ = np.zeros((len(selected), 1))
        totals = np.zeros(1, int)
        for j, column in enumerate(selected):
            column_rules = steps & (self.rule_columns_ == column)
            gap = ~steps & (self.rule_columns_ == column)
            cuts = self.rule_thresholds_[column_rules]
            sums = np.append(0, np.cumsum(self.points_[column_rules]))
            self.knots_[j] = np.nanmax(X[:, column])  # above the last threshold
            self.knots_[j, 0], self.knots_[j, 1 : len(sums)] = np.nanmin(X[:, column]), cuts
            self.responses_[j, :, 0] = scale * sums[np.minimum(np.arange(most + 1), len(cuts))]
            self.missing_responses_[j] = scale * self.points_[gap].sum()
            totals = np.unique(np.add.outer(totals, np.append(sums, self.points_[gap])))
        self.risk_table_ = np.column_stack(
            [totals, self._probabilities(totals * scale + intercept)[:, 1]]
        )

    def rules(self) -> list[tuple[str, int]]:
        """Return the rules as text, with their points.

        Returns
        -------
        list of (str, int)
            Rules, such as "age >= 60" or "age is missing", and their points.
        """
        check_is_fitted(self)
        names = feature_names(self)[self.rule_columns_]
        words = ["is missing" if np.isnan(t) else f">= {t:.10g}" for t in self.rule_thresholds_]
        return [
            (f"{name} {word}", int(p))
            for name, word, p in zip(names, words, self.points_, strict=True)
        ]

    def total_points(self, X: Any) -> np.ndarray:
        """Compute the total points of each row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,), int
            Total points of each row.
        """
        return (
            rule_matrix(self._checked(X), self.rule_columns_, self.rule_thresholds_) @ self.points_
        ).astype(int)

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validated(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")

    def _scores(self, X: Any) -> np.ndarray:
        X = self._checked(X)
        return AdditiveModel.from_estimator(self).scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags


def candidate_rules(
    X: np.ndarray, weight: np.ndarray, n_thresholds: int
) -> tuple[np.ndarray, np.ndarray]:
    """List the column and threshold of every candidate rule.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    weight : ndarray of shape (n_samples,)
        Row weights.
    n_thresholds : int
        Maximum number of thresholds per column.

    Returns
    -------
    columns : ndarray of shape (n_rules,), int
        Column index of each rule; the rules are sorted by column.
    thresholds : ndarray of shape (n_rules,)
        Threshold of each rule. The thresholds of a column exceed its minimum and are in ascending
        order. NaN denotes the rule ``is missing`` for a column that contains NaN.
    """
    ordered, features = np.sort(X[weight > 0], axis=0), np.arange(X.shape[1])  # NaN comes last
    with problem_size(X.size * n_thresholds):
        cuts = PiecewiseLinear(n_thresholds + 1, bins="quantile").knots(X, weight)[:, 1:-1].T
    behind = np.array([(ordered < row).sum(axis=0) for row in cuts])
    values = ordered[np.minimum(behind, len(ordered) - 1), features]
    new = values > np.vstack([ordered[0], values[:-1]])
    gaps = np.isnan(ordered[-1]) & ~np.isnan(ordered[0])
    columns, places = np.nonzero(np.vstack([new, gaps]).T)
    return columns, np.vstack([values, np.full(len(features), np.nan)])[places, columns]


def rule_matrix(X: np.ndarray, columns: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Evaluate rules on rows of X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows on which the rules are evaluated.
    columns, thresholds : ndarray of shape (n_rules,)
        Rules, as returned by :func:`candidate_rules`.

    Returns
    -------
    ndarray of shape (n_samples, n_rules), float32
        1 where a rule holds, else 0.
    """
    out = np.empty((len(X), len(columns)), np.float32)
    for block in np.array_split(np.arange(len(columns)), len(columns) // _BLOCK + 1):
        values, cuts = X[:, columns[block]], thresholds[block]
        out[:, block] = np.where(np.isnan(cuts), np.isnan(values), values >= cuts)
    return out


def _different(held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first occurrence of each distinct 0/1 row, and the index of every row."""
    bits = np.ascontiguousarray(np.packbits(held.astype(bool), axis=1))
    return np.unique(bits.view(f"S{bits.shape[1]}")[:, 0], return_index=True, return_inverse=True)[
        1:
    ]


def _whole_points(
    held: np.ndarray, y: np.ndarray, weight: np.ndarray, coef: np.ndarray, most: int
) -> tuple[np.ndarray, Fit]:
    """Return the integer points with the lowest loss, and the logistic curve of their total.

    The points have the signs of the coefficients.
    """
    first, place = _different(held)
    patterns = held[first].astype(np.int64)
    counts = np.array([np.bincount(place, weight * (y == side)) for side in (-1, 1)])
    totals = counts.sum(axis=1)
    # Platt's targets keep the slope finite
    share = np.array([1.0, totals[1] + 1.0]) / (totals + 2.0)
    counts = np.array([counts.T @ (1.0 - share), counts.T @ share]) / totals.sum()
    sign = np.where(coef < 0, -1, 1)

    def curve(points: np.ndarray) -> Fit:
        total = patterns @ points
        mass = np.array([np.bincount(total - total.min(), row) for row in counts])
        z = np.tile(np.arange(mass.shape[1]) + total.min(), 2)[:, None].astype(float)
        sides = np.repeat([-1.0, 1.0], mass.shape[1])[:, None]
        problem = SupportProblem(sides, LogisticLoss(), mass.ravel(), shrinkage=1e-9)
        return refit(problem, z, np.zeros((1, 1)), np.zeros(1), tol=1e-9)

    scales = np.linspace(1.0, most, min(4 * most - 3, _MAX_SCALES)) / np.abs(coef).max(
        initial=1e-300
    )
    tried = np.unique(
        [sign * np.minimum(np.rint(np.abs(scale * coef)), most).astype(int) for scale in scales],
        axis=0,
    )
    best, points = min(
        ((curve(points), points) for points in tried), key=lambda pair: pair[0].value
    )
    improved = True
    while improved:
        improved = False
        for j in range(len(points)):
            for step in (-1, 1):
                other = points.copy()
                other[j] += step
                if 0 <= sign[j] * other[j] <= most and (new := curve(other)).value < best.value * (
                    1.0 - 1e-9
                ):
                    best, points, improved = new, other, True
    points = points // max(1, np.gcd.reduce(points))  # an equivalent card
    return points, curve(points)
