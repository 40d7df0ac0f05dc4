"""Forward-backward greedy selection (FoBa) for any smooth loss and for groups of columns.

The method is Algorithm 1 of Liu, Fujimaki, Ye, "Forward-backward greedy algorithms for general
convex smooth functions over a cardinality constraint".
"""

from dataclasses import field, replace

import numpy as np

from ..common import (
    check_greedy,
    check_real,
    group_codes,
    included_and_excluded,
    resolve_n_features,
)
from ..designs.base import Design
from ..objective import Loss, check_curvature, effective_rows
from ..parameters import estimator
from ..solvers import SHRINKAGE, SupportProblem, greedy_search, refit, strengths
from ..types import ArrayLike, Matrix
from .base import ScaledSelector, SelectingClassifier, SelectingRegressor

_NEWTON_TOLERANCE = 1e-10  # relative; small, since gains of features are compared


class _NewtonFit:
    """Refit on the active columns for any loss, by Newton's method from the previous solution."""

    def __init__(self, problem: SupportProblem) -> None:
        self.problem = problem
        y = problem.y
        self.Z = np.empty((len(y), 0))
        self.coef = np.empty((0, y.shape[1]))
        self.intercept = (
            problem.loss.best_constant(y, problem.sample_weight)
            if problem.fit_intercept
            else np.zeros(y.shape[1])
        )
        self._refit()

    def _refit(self) -> None:
        fit = refit(self.problem, self.Z, self.coef, self.intercept, tol=_NEWTON_TOLERANCE)
        self.coef, self.intercept, self.value = fit.theta, fit.intercept, fit.value

    def scores(self) -> np.ndarray:
        return self.Z @ self.coef + self.intercept

    def add(self, columns: np.ndarray) -> None:
        self.Z = np.hstack([self.Z, columns])
        self.coef = np.vstack([self.coef, np.zeros((columns.shape[1], self.coef.shape[1]))])
        self._refit()

    def remove(self, positions: np.ndarray) -> None:
        self.Z = np.delete(self.Z, positions, axis=1)
        self.coef = np.delete(self.coef, positions, axis=0)
        self._refit()

    def value_without(self, positions: np.ndarray) -> float:
        coef = self.coef.copy()
        coef[positions] = 0.0
        return self.problem.loss.value(
            self.problem.y, self.Z @ coef + self.intercept, self.problem.sample_weight
        ) + self.problem.penalty(coef)


class _QuadraticFit(_NewtonFit):
    """Refit for the squared loss, where the inverse Gram matrix is updated in blocks.

    Standardised columns have weighted mean zero, so the intercept is always the mean of y.
    """

    def _refit(self) -> None:
        self.inverse = np.empty((0, 0))
        self.target = np.empty((0, self.problem.y.shape[1]))
        self.weighted = np.empty((0, len(self.Z)))
        self.base = self.value = self.problem.loss.value(
            self.problem.y, self.scores(), self.problem.sample_weight
        )

    def _solve(self) -> None:
        self.coef = self.inverse @ self.target
        self.value = self.base - 0.5 * float((self.target * self.coef).sum())

    def add(self, columns: np.ndarray) -> None:
        weighted = columns.T * self.problem.sample_weight
        cross = self.weighted @ columns
        corner = weighted @ columns + 2.0 * self.problem.shrinkage * np.eye(columns.shape[1])
        moved = self.inverse @ cross
        schur = np.linalg.inv(corner - cross.T @ moved)
        side = -moved @ schur
        self.inverse = np.block([[self.inverse - side @ moved.T, side], [side.T, schur]])
        self.weighted = np.vstack([self.weighted, weighted])
        self.target = np.vstack([self.target, weighted @ (self.problem.y - self.intercept)])
        self.Z = np.hstack([self.Z, columns])
        self._solve()

    def remove(self, positions: np.ndarray) -> None:
        stay = np.delete(np.arange(len(self.coef)), positions)
        side = self.inverse[np.ix_(stay, positions)]
        self.inverse = self.inverse[np.ix_(stay, stay)] - side @ np.linalg.solve(
            self.inverse[np.ix_(positions, positions)], side.T
        )
        self.weighted, self.target, self.Z = self.weighted[stay], self.target[stay], self.Z[:, stay]
        self._solve()

    def value_without(self, positions: np.ndarray) -> float:
        # The gradient is zero at the minimum, so removing b costs b' H b / 2.
        b = self.coef[positions]
        gram = self.weighted[positions] @ self.Z[
            :, positions
        ] + 2.0 * self.problem.shrinkage * np.eye(len(positions))
        return self.value + 0.5 * float((b * (gram @ b)).sum())


class _DesignModel:
    """Model refitted on columns of a design, for :func:`greedy_search`."""

    def __init__(self, design: Design, problem: SupportProblem, groups: np.ndarray | None) -> None:
        self.design, self.problem, self.groups = design, problem, groups
        self.labels = np.arange(design.n_features) if groups is None else groups
        self.n_units = int(self.labels.max()) + 1
        self.members = (
            None if groups is None else [np.flatnonzero(groups == g) for g in range(self.n_units)]
        )
        self.fit = (_QuadraticFit if problem.loss.is_quadratic else _NewtonFit)(problem)
        self.columns = np.empty(0, int)  # columns of the design in the order of fit.Z
        self.sizes = np.bincount(self.labels)

    def charges(self) -> np.ndarray:
        return self.problem.charges(self.sizes, self.fit.scores())

    @property
    def value(self) -> float:
        return self.fit.value

    def strengths(self) -> np.ndarray:
        problem = self.problem
        self._scores = self.fit.scores()
        return strengths(
            self.design.gradient(
                problem.loss.gradient(problem.y, self._scores, problem.sample_weight)
            ),
            self.groups,
        )

    def decreases(self, candidates: np.ndarray) -> np.ndarray:
        out = np.zeros(len(candidates))
        alone = replace(self.problem, offset=self._scores, fit_intercept=False)
        base = self.problem.loss.value(self.problem.y, self._scores, self.problem.sample_weight)
        for unit in np.flatnonzero(candidates).tolist():
            block = self._read(self._columns_of(unit))
            start = np.zeros((block.shape[1], self._scores.shape[1]))
            out[unit] = base - refit(alone, block, start, np.zeros(self._scores.shape[1])).value
        return out

    def add(self, unit: int) -> None:
        new = self._columns_of(unit)
        self.fit.add(self._read(new))
        self.columns = np.concatenate([self.columns, new])

    def remove(self, unit: int) -> None:
        positions = self._positions(unit)
        self.fit.remove(positions)
        self.columns = np.delete(self.columns, positions)

    def value_without(self, unit: int) -> float:
        return self.fit.value_without(self._positions(unit))

    def _columns_of(self, unit: int) -> np.ndarray:
        return np.array([unit]) if self.members is None else self.members[unit]

    def _positions(self, unit: int) -> np.ndarray:
        return np.flatnonzero(self.labels[self.columns] == unit)

    def _read(self, columns: np.ndarray) -> np.ndarray:
        return self.design.keep(columns).matrix().astype(np.float64)


@estimator
class _ForwardBackward(ScaledSelector):
    """Base class with the fit method of both estimators."""

    n_features_to_select: int | float | None = field(default=10, kw_only=False)
    loss: str | Loss = "auto"
    criterion: str = "gradient"
    delta: float | None = None
    epsilon: float | None = None
    backward: bool = True
    feature_groups: ArrayLike | None = None
    include: ArrayLike | None = None
    exclude: ArrayLike | None = None
    scaling: str = "standardize"
    ridge: float = 2.0 * SHRINKAGE
    fit_intercept: bool = True

    def _select(self, X: Matrix, y: np.ndarray, loss: Loss, weight: np.ndarray) -> None:
        check_greedy(self.criterion, self.delta, self.epsilon, self.n_features_to_select)
        check_real("ridge", self.ridge, 0.0)
        check_curvature(loss)
        included, excluded = included_and_excluded(
            self.include, self.exclude, X.shape[1], getattr(self, "feature_names_in_", None)
        )
        allowed = np.flatnonzero(~excluded)
        groups = group_codes(self.feature_groups, X.shape[1])
        numbers, groups = (
            (allowed, None) if groups is None else np.unique(groups[allowed], return_inverse=True)
        )
        fixed = (
            np.flatnonzero(included[allowed])
            if groups is None
            else np.unique(groups[included[allowed]])
        )
        size = (
            None
            if self.n_features_to_select is None
            else resolve_n_features(self.n_features_to_select, len(numbers))
        )
        if size is not None and len(fixed) > size:
            raise ValueError(
                f"include names {len(fixed)} features, more than n_features_to_select={size}"
            )
        n_rows, weight = effective_rows(weight), weight / weight.sum()
        design = self._make_design(X, weight)
        problem = SupportProblem(
            y, loss, weight, self.fit_intercept, shrinkage=0.5 * self.ridge, n_rows=n_rows
        )
        model = _DesignModel(design.keep(allowed) if excluded.any() else design, problem, groups)
        _, path = greedy_search(
            model,
            size or model.n_units,
            fixed=fixed.tolist(),
            criterion=self.criterion,
            backward=self.backward,
            delta=self.delta,
            epsilon=self.epsilon,
        )
        self.path_ = [step._replace(feature=int(numbers[step.feature])) for step in path]
        self.n_iter_ = len(path)
        order = np.argsort(model.columns)
        self._store(
            design, allowed[model.columns[order]], model.fit.coef[order], model.fit.intercept
        )


@estimator
class ForwardBackwardClassifier(_ForwardBackward, SelectingClassifier):
    """Classifier with forward-backward greedy selection (FoBa, [1]_).

    A greedy search selects at most k features (or groups) to minimise the objective::

        sum_i w_i loss(y_i, coef . x_i + intercept) + ridge / 2 ||coef||^2

    Here x_i is a row of the scaled columns, and the row weights w_i sum to one. Each step adds the
    best feature according to ``criterion`` and refits all coefficients. It then removes features as
    long as a removal raises the objective by less than half the decrease that was achieved when the
    current number of features was reached.

    Parameters
    ----------
    n_features_to_select : int, float or None, default 10
        Number k of features (or groups, if given) to select, or a fraction of them. The search
        stops earlier if ``delta`` or ``epsilon`` requires it. None means no limit, and requires one
        of these thresholds.
    loss : str or Loss, default "auto"
        Smooth pointwise loss with second derivatives.

        * "auto" or "logistic": logistic loss, or multinomial loss for more than two classes;
        * "flipped_logistic", "huberised_hinge", "lorenz" or "squared": as in
          :class:`FSAClassifier`;
        * "exponential": see :class:`ExponentialLoss`;
        * a :class:`Loss` object.
    criterion : {"gradient", "objective"}, default "gradient"
        Criterion that determines which feature is added.

        * "gradient": largest absolute derivative (FoBa-gdt). For a feature or group with several
          coefficients, it is the root mean square of the derivatives;
        * "objective": largest decrease in the objective when only the coefficients of the feature
          change (FoBa-obj), which is many times slower.
    delta : float or None, default None
        Positive threshold for the criterion "objective": the search stops when no addition lowers
        the objective by at least ``delta``.
    epsilon : float or None, default None
        Positive threshold for the criterion "gradient": the search stops when no feature has an
        absolute derivative of at least ``epsilon``.
    backward : bool, default True
        Whether to take backward steps. Without them, the search with the criterion "gradient" is
        Forward-gdt [1]_ or, for the squared loss, orthogonal matching pursuit.
    feature_groups : array of shape (n_features,) or None, default None
        Group label of each column. A group is added or removed as a whole.
    include, exclude : array of int or str, mask of shape (n_features,), or None, default None
        Columns that are always selected (with their groups), and columns that are never selected,
        given by index, by name or as a mask.
    scaling : {"standardize", "none"}, default "standardize"
        "standardize" scales each column to variance one; "none" divides all columns by the same
        number.
    ridge : float, default 1e-4
        Non-negative factor of the ridge penalty. Without a penalty, the objective has no minimum
        for separable classes.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is neither penalised nor dropped.
    class_weight : dict, "balanced" or None, default None
        Factors for the row weights, as ``{label: factor}``. "balanced" gives all classes the same
        total weight. None means no factors.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the unscaled columns; 0 for columns that are not selected.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept of each output.
    path_ : list of (action, feature, objective, size)
        Steps of the search, as named tuples with the fields ``action`` ("enter" or "leave"),
        ``feature`` (index of the feature or of the group; groups are numbered from 0 in the order
        of their first columns), ``objective`` (after the refit) and ``size`` (number of selected
        features or groups).
    n_iter_ : int
        Number of forward and backward steps.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    References
    ----------
    .. [1] J. Liu, R. Fujimaki, J. Ye, "Forward-Backward Greedy Algorithms for General Convex Smooth
           Functions over A Cardinality Constraint", International Conference on Machine Learning
           (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import ForwardBackwardClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> model = ForwardBackwardClassifier(2).fit(X, X[:, 3] > X[:, 7])
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> [(step.action, step.feature) for step in model.path_]
    [('enter', 3), ('enter', 7)]
    """


class ForwardBackwardRegressor(_ForwardBackward, SelectingRegressor):
    """Regressor with forward-backward greedy selection (FoBa, [1]_).

    A greedy search selects at most k features (or groups) to minimise the objective::

        sum_i w_i loss(y_i, coef . x_i + intercept) + ridge / 2 ||coef||^2

    Here x_i is a row of the scaled columns, and the row weights w_i sum to one. Each step adds the
    best feature according to ``criterion`` and refits all coefficients. It then removes features as
    long as a removal raises the objective by less than half the decrease that was achieved when the
    current number of features was reached. Several outputs share the selected features.

    Parameters
    ----------
    n_features_to_select : int, float or None, default 10
        As in :class:`ForwardBackwardClassifier`.
    loss : str or Loss, default "auto"
        Smooth pointwise loss with second derivatives.

        * "auto" or "squared": half the squared error, on targets scaled to mean 0 and variance 1;
        * "huber" or "quantile": as in :class:`FSARegressor`, but on targets scaled to mean 0 and
          variance 1;
        * a :class:`Loss` object.
    criterion, delta, epsilon, backward, feature_groups, include, exclude : object
        As in :class:`ForwardBackwardClassifier`.
    scaling : {"standardize", "none"}, default "standardize"
        As in :class:`ForwardBackwardClassifier`.
    ridge : float, default 1e-4
        Non-negative factor of the ridge penalty.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is neither penalised nor dropped.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of the unscaled columns; 0 for columns that are not selected.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of each output.
    path_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ForwardBackwardClassifier`.

    References
    ----------
    .. [1] J. Liu, R. Fujimaki, J. Ye, "Forward-Backward Greedy Algorithms for General Convex Smooth
           Functions over A Cardinality Constraint", International Conference on Machine Learning
           (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import ForwardBackwardRegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> y = X[:, 4] + 2 * X[:, 9]
    >>> ForwardBackwardRegressor(None, epsilon=0.1).fit(X, y).get_support(indices=True)
    array([4, 9])
    """
