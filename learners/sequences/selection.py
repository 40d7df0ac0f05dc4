"""Conditional random fields with feature selection by forward-backward search or annealing."""

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ..common import SupportMixin, group_codes
from ..parameters import (
    check_choice,
    check_greedy,
    check_integer,
    checked,
    estimator,
    limits,
    resolve_n_features,
)
from ..solvers import Schedule, Step, as_schedule, greedy_search, step_counts, strongest
from ..types import ArrayLike
from .linear_chain import BaseCRF
from .problem import ChainProblem
from .units import UnitModel, exchange

_MAX_CUTS = 60  # number of cuts above which several units are dropped at a time (heuristic)


@estimator
class SelectingCRF(SupportMixin, BaseCRF):
    """Base class for conditional random fields that select columns or groups of columns."""

    n_features_to_select: int | float | None = field(default=10, kw_only=False)
    feature_groups: ArrayLike | None = field(default=None, kw_only=False)
    polish: str | None = checked(None, check_choice, (None, "swap"))
    per_class = False

    def _search(
        self, problem: ChainProblem, codes: np.ndarray, size: int
    ) -> tuple[UnitModel, list[Step]]:
        raise NotImplementedError

    def _fit_problem(self, problem: ChainProblem) -> None:
        n_features = problem.X.shape[1]
        given = group_codes(self.feature_groups, n_features)
        groups = np.arange(n_features) if given is None else given
        codes = np.repeat(groups[:, None], problem.n_classes, axis=1)
        if self.per_class:
            codes = codes * problem.n_classes + np.arange(problem.n_classes)
        size = n_units = int(codes.max()) + 1
        if self.n_features_to_select is not None:
            names = "coefficients" if self.per_class else "features" if given is None else "groups"
            size = resolve_n_features(self.n_features_to_select, n_units, names)
        model, self.path_ = self._search(problem, codes, size)
        if self.polish == "swap" and 0 < len(model.units) < n_units:
            self.path_ += exchange(model)
        model.keep(sorted(model.units), tol=self.tol, max_iter=self.max_iter)
        self.support_ = np.isin(np.arange(n_features), model.columns)
        labels = (
            np.arange(n_features)
            if self.feature_groups is None
            else np.asarray(self.feature_groups)
        )
        self.selected_groups_ = labels[
            [np.argmax(groups == group) for group in np.unique(groups[self.support_])]
        ]
        self._store(model.fit)
        self.coef_ = np.ascontiguousarray(model.coef().T)


@estimator
class ForwardBackwardCRF(SelectingCRF):
    """Sparse linear-chain CRF whose columns are selected by forward-backward greedy search [2]_.

    A conditional random field (CRF) labels each row given all rows of its sequence. A greedy search
    (FoBa) over the coefficients of at most k columns or groups of columns (units) minimises::

        - sum over sequences of w log p(y | X) + ridge / 2 (||coef||^2 + ||transitions||^2)

    Here w is the weight of a sequence, and p is the linear-chain CRF of [1]_ (see
    :class:`LinearChainCRF`). Transition scores and intercepts are not subject to selection.

    Parameters
    ----------
    n_features_to_select : int, float or None, default 10
        Number k of units to select, or a fraction of them. The search stops earlier if ``delta`` or
        ``epsilon`` requires it. None means no limit, and requires one of these thresholds.
    feature_groups : array of shape (n_features,) or None, default None
        Group label of each column, such as its sensor. A group is added or removed as a whole. None
        means that every column is a unit.
    backward : bool, default True
        Whether to take backward steps: units are removed as long as a removal raises the objective
        by less than half the decrease that was achieved when the current number of units was
        reached.
    polish : {"swap"} or None, default None
        Refinement of the selection. "swap" exchanges selected units for others, one at a time, as
        long as this lowers the objective after refitting. None omits it.
    criterion : {"gradient", "objective"}, default "gradient"
        Criterion that determines which unit is added.

        * "gradient": largest root mean square of the derivatives with respect to the coefficients
          of the unit, on standardised columns (FoBa-gdt);
        * "objective": largest decrease in the objective when only the coefficients of the unit
          change (FoBa-obj). Every step requires a small minimisation for every unit, so this suits
          small problems only.
    delta : float or None, default None
        Positive threshold for the criterion "objective": the search stops when no addition lowers
        the objective by at least ``delta``. None means no threshold.
    epsilon : float or None, default None
        Positive threshold for the criterion "gradient": the search stops when the root mean square
        of the derivatives is below ``epsilon`` for every unit. None means no threshold.
    per_class : bool, default False
        Whether a unit is the coefficient of a column for a single class, as in section 5 of [2]_.
        The index of a unit is then ``column * n_classes + class``, and a column is selected if any
        of its coefficients is selected.
    ridge, fit_transitions, fit_intercept, max_iter, tol : object
        As in :class:`LinearChainCRF`.

    Attributes
    ----------
    classes_, coef_, transitions_, intercept_, objective_, n_iter_
        As in :class:`LinearChainCRF`.
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    selected_groups_ : ndarray of shape (k,)
        Labels of the selected groups in the order of their first columns. Without groups, indices
        of the selected columns.
    path_ : list of (action, feature, objective, size)
        Steps of the search, as named tuples with the fields ``action`` ("enter" or "leave"),
        ``feature`` (index of the feature or of the group; groups are numbered from 0 in the order
        of their first columns), ``objective`` (after the refit; NaN if not computed) and ``size``
        (number of selected units).
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    See Also
    --------
    FSACRF : Selects the units by annealing.
    LinearChainCRF : Uses all columns; has the same methods.

    References
    ----------
    .. [1] J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields: Probabilistic models
           for segmenting and labeling sequence data", International Conference on Machine Learning
           (2001).
    .. [2] J. Liu, R. Fujimaki, J. Ye, "Forward-Backward Greedy Algorithms for General Convex Smooth
           Functions over A Cardinality Constraint", International Conference on Machine Learning
           (2014), section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import ForwardBackwardCRF
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(rng.permutation(np.arange(40) % 2), 5)
    >>> X = rng.normal(0, 1, (200, 6))
    >>> X[:, 4] += 2 * y
    >>> model = ForwardBackwardCRF(1).fit(X, y, lengths=[100, 100])
    >>> model.selected_groups_
    array([4])
    """

    backward: bool = field(
        default=True, kw_only=False, metadata=limits(check_choice, (True, False))
    )
    criterion: str = "gradient"
    delta: float | None = None
    epsilon: float | None = None
    per_class: bool = checked(False, check_choice, (True, False))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_greedy(self.criterion, self.delta, self.epsilon, self.n_features_to_select)

    def _search(
        self, problem: ChainProblem, codes: np.ndarray, size: int
    ) -> tuple[UnitModel, list[Step]]:
        model = UnitModel(problem, codes)
        thresholds: dict[str, Any] = {"delta": self.delta, "epsilon": self.epsilon}
        _, path = greedy_search(
            model, size, criterion=self.criterion, backward=self.backward, **thresholds
        )
        return model, path


@estimator
class FSACRF(SelectingCRF):
    """Sparse linear-chain CRF whose columns are selected by annealing [2]_.

    A conditional random field (CRF) labels each row given all rows of its sequence. The objective,
    over the coefficients of at most k columns or groups of columns (units), is::

        - sum over sequences of w log p(y | X) + ridge / 2 (||coef||^2 + ||transitions||^2)

    Here w is the weight of a sequence, and p is the linear-chain CRF of [1]_ (see
    :class:`LinearChainCRF`). Transition scores and intercepts are not subject to selection.
    Annealing starts with all units, and drops the weakest units on a schedule until k remain.
    Between the cuts (removals of units), L-BFGS minimises the objective; gradient steps would be
    small, since no tight bound on the curvature is available.

    Parameters
    ----------
    n_features_to_select : int or float, default 10
        Number k of units to select, or a fraction of them.
    feature_groups : array of shape (n_features,) or None, default None
        As in :class:`ForwardBackwardCRF`.
    polish : {"swap"} or None, default "swap"
        Refinement of the selection. "swap" exchanges selected units for others, one at a time, as
        long as this lowers the objective after refitting. None omits it.
    criterion : {"norm", "objective"}, default "objective"
        Criterion that determines which units are dropped.

        * "norm": smallest root mean square of the coefficients on standardised columns;
        * "objective": smallest increase in the objective when the unit is removed. This requires
          one pass over the data for each unit before each cut.
    schedule : str, Schedule or function, default "linear"
        Number of units that remain after each step; see :class:`Schedule`. "linear" drops the same
        number of units in each cut.
    n_steps : int or None, default None
        Number of steps in the schedule. A step that drops no unit is skipped. None means twice the
        number of units to drop, so that "linear" drops one unit at a time, but at most 120.
    steps_per_cut : int, default 1000
        Maximum number of L-BFGS iterations before each cut. The default is normally enough for
        convergence.
    ridge, fit_transitions, fit_intercept, max_iter, tol : object
        As in :class:`LinearChainCRF`.

    Attributes
    ----------
    classes_, coef_, transitions_, intercept_, objective_, n_iter_
        As in :class:`LinearChainCRF`.
    support_, selected_groups_, n_features_in_, feature_names_in_
        As in :class:`ForwardBackwardCRF`.
    path_ : list of (action, feature, objective, size)
        As in :class:`ForwardBackwardCRF`, except that the objective of a dropped unit is that
        before the cut.

    See Also
    --------
    ForwardBackwardCRF : Selects the units by forward-backward search.
    LinearChainCRF : Uses all columns; has the same methods.

    References
    ----------
    .. [1] J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields: Probabilistic models
           for segmenting and labeling sequence data", International Conference on Machine Learning
           (2001).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSACRF
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(rng.permutation(np.arange(40) % 2), 5)
    >>> X = rng.normal(0, 1, (200, 6))
    >>> X[:, 4] += 2 * y
    >>> sensors = ["door", "door", "bed", "bed", "tap", "tap"]
    >>> FSACRF(1, sensors).fit(X, y, lengths=[100, 100]).selected_groups_
    array(['tap'], dtype='<U4')
    """

    criterion: str = checked("objective", check_choice, ("norm", "objective"))
    schedule: str | Schedule | Callable[[int, int, int], np.ndarray] = "linear"
    n_steps: int | None = checked(None, check_integer, 1, unless=(None,))
    steps_per_cut: int = checked(1000, check_integer, 1)
    polish: str | None = checked("swap", check_choice, (None, "swap"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_features_to_select is None:
            raise ValueError(
                "n_features_to_select=None is not valid; "
                "expected an integer >= 1 or a fraction in (0, 1]"
            )

    def _search(
        self, problem: ChainProblem, codes: np.ndarray, size: int
    ) -> tuple[UnitModel, list[Step]]:
        n_units = int(codes.max()) + 1
        n_steps = self.n_steps or max(1, 2 * min(n_units - size, _MAX_CUTS))
        counts = step_counts(as_schedule(self.schedule, mu=1.0), n_units, size, n_steps)
        model = UnitModel(problem, codes, list(range(n_units)), problem.start())
        model.keep(model.units, max_iter=self.steps_per_cut)
        path: list[Step] = []
        for count in np.unique(counts[counts < n_units])[::-1]:
            weak = model.costs() if self.criterion == "objective" else model.sizes()
            stay = strongest(weak, int(count))
            dropped = np.delete(np.arange(len(model.units)), stay)
            path += [
                Step("leave", model.units[i], model.value, len(model.units) - n)
                for n, i in enumerate(dropped[np.argsort(weak[dropped], kind="stable")], 1)
            ]
            model.keep([model.units[i] for i in stay], max_iter=self.steps_per_cut)
        model.keep(model.units)
        return model, path
