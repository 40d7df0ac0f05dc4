"""Problem that a call to ``fit`` solves, its solution, and the resulting fitted attributes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import validate_data

from ..common import (
    check_finite,
    check_offset,
    column_position,
    group_codes,
    included_and_excluded,
    validated,
)
from ..designs import Design, as_out_of_core, canonical, local
from ..objective import Loss, OffsetLoss, effective_rows
from ..solvers.annealing import Annealed, nearest_rising, strengths
from ..sources.matrix import PIECE_BYTES, OutOfCoreMatrix
from ..sources.moments import Moments
from .policy import Facts, Plan
from .settings import Constraints

FINITE = (
    "response='linear' requires finite numbers; use response='piecewise', which accepts NaN, "
    "or fill the missing values with SimpleImputer"
)


@dataclass
class FitProblem:
    """Problem that a call to ``fit`` solves.

    Attributes
    ----------
    X : array, sparse matrix or OutOfCoreMatrix of shape (n_samples, n_features)
        Validated training data.
    y : ndarray of shape (n_samples, n_outputs)
        Targets encoded for the loss. With an offset they are complex; see :class:`.OffsetLoss`.
    loss : Loss
        Loss function.
    weight : ndarray of shape (n_samples,)
        Row weights as given by the user. A row of weight two counts as two rows.
    shift, scale : ndarray of shape (n_outputs,) or float
        Constants such that ``scale * scores + shift`` is a prediction in the units of the user's
        targets.
    flat : bool
        Whether the user's targets, and hence ``coef_``, are one-dimensional.
    classification : bool
        Whether the targets are classes.
    names : ndarray of shape (n_features,) or None
        Column names.
    groups : ndarray of shape (n_features,), int, or None
        Index of each feature's group.
    allowed : ndarray of int or None
        Indices of the selectable columns; None if all are selectable. Features are numbered by
        their position in this array.
    included : ndarray of shape (n_features,), bool, or None
        Mask of the included features.
    bounds : (ndarray, ndarray) or None
        Lower and upper bounds on the coefficients of the raw columns, each of shape (n_features,).
    monotone : ndarray of shape (n_features,), int, or None
        Direction of each piecewise-linear response: +1 if non-decreasing, -1 if non-increasing,
        else 0.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    n_rows : float
        Sum of the row weights.
    n_features, n_units, n_included : int
        Number of selectable columns, number of groups (or, if there are none, of selectable
        columns), and number of included groups or columns.
    columns_per_unit : float
        Mean number of columns per group; 1 without groups.
    bounded : bool
        Whether any coefficient is bounded or any response is monotone.
    facts : Facts
        Properties that determine the plan for the fit.
    moments : Moments or None
        Moments of all rows; None until they are computed.
    """

    X: Any
    y: np.ndarray
    loss: Loss
    weight: np.ndarray
    shift: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0
    flat: bool = False
    classification: bool = False
    names: np.ndarray | None = None
    groups: np.ndarray | None = None
    allowed: np.ndarray | None = None
    included: np.ndarray | None = None
    bounds: tuple[np.ndarray, np.ndarray] | None = None
    monotone: np.ndarray | None = None

    sample_weight: np.ndarray = field(init=False)
    n_rows: float = field(init=False)
    n_features: int = field(init=False)
    n_units: int = field(init=False)
    n_included: int = field(init=False)
    columns_per_unit: float = field(init=False)
    bounded: bool = field(init=False)
    facts: Facts = field(init=False)
    moments: Moments | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.bounded = self.bounds is not None or self.monotone is not None
        self.n_rows = float(self.weight.sum())
        if not self.n_rows > 0:
            raise ValueError(
                "sample_weight is zero everywhere; at least one row must have a positive weight"
            )
        self.sample_weight = self.weight / self.n_rows
        self.n_features = self.X.shape[1] if self.allowed is None else len(self.allowed)
        self.n_units = self.n_features if self.groups is None else int(self.groups.max()) + 1
        included = np.zeros(0, int) if self.included is None else np.flatnonzero(self.included)
        self.n_included = len(included if self.groups is None else np.unique(self.groups[included]))
        self.columns_per_unit = self.n_features / self.n_units
        n_samples, n_outputs = self.y.shape
        if self.classification:
            counts = self.weight @ (self.y.real > 0)
            n_rarest = float(min(counts.min(), self.n_rows - counts.max()))
        else:
            n_rarest = self.loss.n_informative(self.y, self.weight)
        sparse = hasattr(self.X, "nnz")
        self.facts = Facts(
            loss=self.loss,
            classification=self.classification,
            n_samples=n_samples,
            n_features=self.n_features,
            n_units=self.n_units,
            n_outputs=n_outputs,
            n_rows=self.n_rows,
            n_rarest=n_rarest,
            sparse=sparse,
            share_stored=self.X.nnz / max(1, self.X.shape[0] * self.X.shape[1]) if sparse else 1.0,
            stored_per_row=self.X.nnz / n_samples if sparse else 0.0,
            bounded=self.bounded,
            grouped=self.groups is not None,
            out_of_core=isinstance(self.X, OutOfCoreMatrix),
        )

    @property
    def n_copies(self) -> float:
        """Sum of the row weights, or effective number of rows if the weights are not counts."""
        return effective_rows(self.weight)

    def with_offset(self, offset: Any) -> Self:
        """Return the problem with an offset added to the scores.

        The offset has shape (n_samples,) or (n_samples, n_outputs).
        """
        offset = check_offset(local(offset), *self.y.shape)
        return replace(self, y=self.y + 1j * offset, loss=OffsetLoss(self.loss))

    def columns(self, kept: np.ndarray) -> np.ndarray:
        """Return the indices in X of the given features."""
        return kept if self.allowed is None else self.allowed[kept]

    def rows(self, which: np.ndarray) -> Self:
        """Return the problem restricted to the given rows."""
        return replace(self, X=self.X[which], y=self.y[which], weight=self.weight[which])

    def bounds_of(self, kept: np.ndarray, design: Design) -> tuple[np.ndarray, ...]:
        """Return the bounds on the standardised coefficients of the k features ``kept``.

        The bounds have shape (k, 1, 1). ``design`` contains only these features.
        """
        unit = np.where(design.inv > 0, design.inv, 1.0) * float(np.ravel(self.scale)[0])
        return tuple((end[kept] / unit)[:, None, None] for end in self.bounds or ())

    def project(self, state: "Annealed | Solution") -> None:
        """Project the coefficients onto the constraints: bounds and monotone responses."""
        if self.bounds is not None:
            np.clip(state.coef, *self.bounds_of(state.kept, state.design), out=state.coef)
        if self.monotone is not None:
            sign, n_knots = self.monotone[state.kept], state.design.n_knots
            which, sign = np.flatnonzero(sign), sign[sign != 0, None, None]
            state.coef[which, :n_knots] = sign * nearest_rising(sign * state.coef[which, :n_knots])

    def factors(
        self, kept: np.ndarray, design: Design
    ) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
        """Return the basis and bounds for :func:`bounded_fit`.

        With monotone responses, the coefficients in this basis are the first value of each response
        and its increments, which the bounds restrict to one sign.
        """
        if self.monotone is None:
            return None, self.bounds_of(kept, design)
        sign = np.zeros((len(kept), design.width), int)
        sign[:, 1 : design.n_knots] = self.monotone[kept][:, None]
        curve = np.eye(design.width)
        curve[: design.n_knots, : design.n_knots] = np.tri(design.n_knots)
        basis = block_diag(*(curve if row.any() else np.eye(design.width) for row in sign))
        return basis, (np.where(sign > 0, 0.0, -np.inf), np.where(sign < 0, 0.0, np.inf))

    def constrained(self, constraints: Constraints, piecewise: bool) -> Self:
        """Return a copy of the problem with the given constraints.

        Constant columns are retained if they are included or belong to a group.

        Raises
        ------
        ValueError
            If a column is unknown, a column is both included and excluded, or bounds or directions
            are not valid.
        """
        c, n = constraints, self.X.shape[1]
        groups = group_codes(c.groups, n)
        included, excluded = included_and_excluded(c.include, c.exclude, n, self.names)
        bounds = None if c.bounds is None else _bounds(c.bounds, n, self.names)
        for name, value, misfit in (
            ("bounds", c.bounds, piecewise),
            ("monotone", c.monotone, False),
        ):
            if value is not None and (misfit or self.y.shape[1] > 1):
                what = (
                    "several outputs or piecewise-linear responses"
                    if name == "bounds"
                    else "several classes or outputs"
                )
                raise ValueError(f"{name}={value!r} is not available with {what}; use None")
        monotone = None if c.monotone is None else _directions(c.monotone, n, self.names)
        if monotone is not None and not piecewise:  # a sign constraint is a bound
            bounds, monotone = _signs(monotone, bounds, n, self.names), None
        stays = ~excluded
        if groups is None and self.allowed is not None:
            varies = included.copy()
            varies[self.allowed] = True
            stays = stays & varies if (stays & varies).any() else stays
        allowed = None if stays.all() else np.flatnonzero(stays)
        if allowed is not None:
            included = included[allowed]
            bounds = None if bounds is None else (bounds[0][allowed], bounds[1][allowed])
            monotone = None if monotone is None else monotone[allowed]
            groups = None if groups is None else np.unique(groups[allowed], return_inverse=True)[1]
        return replace(
            self,
            groups=groups,
            allowed=allowed,
            included=included if included.any() else None,
            bounds=bounds,
            monotone=monotone,
        )


def fit_problem(
    estimator: Any, X: Any, targets: np.ndarray, weight: np.ndarray, **facts: Any
) -> FitProblem:
    """Return the problem, with constraints, that an estimator solves on validated data."""
    names, allowed = getattr(estimator, "feature_names_in_", None), varying_columns(X, weight)
    problem = FitProblem(X, targets, estimator.loss_, weight, names=names, allowed=allowed, **facts)
    if estimator.constraints is None:
        return problem
    return problem.constrained(estimator.constraints, estimator._is_piecewise)


def varying_columns(X: Any, weight: np.ndarray) -> np.ndarray | None:
    """Return the columns of in-memory data that vary over the rows of positive weight.

    The schedule, the automatic choice of the size and the information criteria depend on the number
    of these columns. The result is None if all columns vary or all are constant. Rows are read in
    blocks, and only for columns that have been constant so far.

    Examples
    --------
    >>> varying_columns(np.array([[1.0, 2.0], [1.0, 3.0]]), np.ones(2))
    array([1])
    """
    (n, m), present = X.shape, weight > 0
    if isinstance(X, OutOfCoreMatrix) or not present.any():
        return None
    if sp.issparse(X):
        X = canonical(X if present.all() else X[present])
        non_zero = np.asarray((X != 0).sum(axis=0)).ravel()
        full = np.flatnonzero(non_zero == X.shape[0])  # others with values vary
        low, high = min_max_axis(X[:, full], axis=0)
        columns, start = np.union1d(np.flatnonzero(non_zero == 0), full[low == high]), n
    else:
        row, start = X[present.argmax()], 0
        columns = np.flatnonzero(np.isfinite(row))
    while start < n and len(columns):
        stop = start + max(1, PIECE_BYTES // (8 * len(columns)))
        same = (X[start:stop, columns] == row[columns])[present[start:stop]].all(axis=0)
        columns, start = columns[same], stop
    return np.delete(np.arange(m), columns) if 0 < len(columns) < m else None


def _directions(monotone: Any, n_features: int, names: np.ndarray | None) -> np.ndarray:
    """Return the monotone direction of each column: +1, -1 or 0."""
    directions = np.zeros(n_features, int)
    if not isinstance(monotone, dict):
        if np.shape(monotone) != (n_features,):
            raise ValueError(
                f"monotone={monotone!r} is not valid; "
                "expected {column: direction} or one of +1, 0, -1 for each column"
            )
        monotone = dict(enumerate(monotone))
    for column, direction in monotone.items():
        if isinstance(direction, str) or direction not in (-1, 0, 1):
            raise ValueError(
                f"monotone: {direction!r} is not a valid direction for column {column!r}; "
                "expected +1 or -1"
            )
        directions[column_position("monotone", column, n_features, names)] = direction
    return directions


def _signs(
    directions: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray] | None,
    n: int,
    names: np.ndarray | None,
) -> Any:
    """Return the bounds, including the signs that monotone linear responses require."""
    lower, upper = bounds or (np.full(n, -np.inf), np.full(n, np.inf))
    both = np.flatnonzero((directions != 0) & np.isfinite(np.minimum(-lower, upper)))
    if len(both):
        name = int(both[0]) if names is None else names[both[0]]
        raise ValueError(
            f"column {name!r} is in both bounds and monotone; name it in only one of them"
        )
    return np.where(directions > 0, 0.0, lower), np.where(directions < 0, 0.0, upper)


def _bounds(
    bounds: Any, n_features: int, names: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of all columns from one pair, a pair per column, or a dict of pairs."""
    lower, upper = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if isinstance(bounds, dict):
        pairs = {
            column_position("bounds", column, n_features, names): pair
            for column, pair in bounds.items()
        }
    elif np.shape(bounds) == (n_features, 2) and n_features != 1:
        pairs = dict(enumerate(bounds))
    else:
        lower[:], upper[:] = _pair(bounds)
        pairs = {}
    for column, pair in pairs.items():
        lower[column], upper[column] = _pair(pair)
    return lower, upper


def _pair(pair: Any) -> tuple[float, float]:
    try:
        low, high = (
            np.inf * sign if end is None else float(end)
            for end, sign in zip(pair, (-1, 1), strict=True)
        )
    except (TypeError, ValueError):
        low = high = np.nan
    if not low <= 0 <= high:
        raise ValueError(
            f"bounds: {pair!r} is not valid; expected (lower, upper) with lower <= 0 <= upper, "
            "where None means no bound"
        )
    return low, high


@dataclass
class Solution:
    """Fitted model: its features in ascending order, their coefficients, and the objective."""

    kept: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    design: Design
    size: int
    value: float
    loss_curve: np.ndarray
    ridge: float = 0.0
    plan: Plan | None = None
    done: tuple[str, ...] = ()  # descriptions of the steps that produced the model
    alternatives: dict[int, list[tuple[int, float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Annealed, size: int, ridge: float = 0.0) -> Self:
        """Return the solution at the final state of annealing, without the objective."""
        return cls(
            state.kept,
            state.coef,
            state.intercept,
            state.design,
            size,
            np.nan,
            np.array(state.loss_curve),
            ridge=ridge,
            done=("annealing alone",),
        )

    def scores(self, problem: FitProblem, rows: np.ndarray) -> np.ndarray:
        """Compute the scores of the given rows of X for linear responses."""
        raw, offset = self.design.unstandardise(self.coef, self.intercept)
        return problem.X[rows][:, problem.columns(self.kept)] @ raw[:, 0] + offset


def fitted_attributes(problem: FitProblem, solution: Solution, size_by: str = "") -> dict[str, Any]:
    """Return a dict of the fitted attributes of a solution.

    ``size_by`` describes how the size was chosen.
    """
    m, q = problem.X.shape[1], problem.y.shape[1]
    columns = np.arange(problem.n_features) if problem.allowed is None else problem.allowed
    alternatives = {
        int(columns[i]): [(int(columns[j]), share) for j, share in others]
        for i, others in solution.alternatives.items()
    }
    kept, design = columns[solution.kept], solution.design
    raw, offset = design.unstandardise(solution.coef, solution.intercept)
    raw, offset = raw * problem.scale, offset * problem.scale + problem.shift
    importance = np.zeros(m)
    importance[kept] = strengths(solution.coef)
    reasons = () if solution.plan is None else solution.plan.reasons
    attributes = {
        "support_": np.isin(np.arange(m), kept),
        "feature_importances_": importance,
        "ridge_": solution.ridge,
        "refinement_": size_by + "; ".join((", ".join(solution.done), *reasons)),
        "alternatives_": alternatives,
        "intercept_": offset[0] if problem.flat else offset,
        "loss_curve_": solution.loss_curve,
        "n_iter_": len(solution.loss_curve),
    }
    if design.width == 1:
        coef = np.zeros((q, m))
        coef[:, kept] = raw[:, 0].T
        return attributes | {"coef_": coef[0] if problem.flat else coef}
    # The hat functions sum to one, so the level of a response is arbitrary. Its mean over the
    # training rows is set to zero.
    level = np.einsum("kw,kwq->kq", design.mean, raw)
    raw = raw - level[:, None]
    # NaN contributes nothing in columns that have no NaN in the training data.
    seen = design.has_missing(problem.weight > 0)
    attributes.update(
        knots_=design.knots,  # type: ignore[attr-defined]
        intercept_=offset[0] + level.sum() if problem.flat else offset + level.sum(axis=0),
        responses_=raw[:, : design.n_knots],
        missing_responses_=np.where(seen[:, None], raw[:, -1], 0.0),
    )
    return attributes


# -- validation of X: by scikit-learn, or without reading the data if out of core ------------------


def check_data(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    piecewise: bool,
    reset: bool = True,
    **options: Any,
) -> Any:
    """Validate X, or X and y; only dense matrices may contain NaN.

    If ``reset`` is set, ``n_features_in_`` and ``feature_names_in_`` are stored.
    """
    out_of_core = as_out_of_core(X)
    if out_of_core is not None:
        return _check_out_of_core(estimator, out_of_core, y, reset=reset, **options)
    options |= {
        "accept_sparse": False if piecewise else ("csr", "csc"),
        "dtype": [np.float64, np.float32],
        "reset": reset,
    }
    checked = validated(
        estimator,
        X,
        y,
        ensure_all_finite="allow-nan" if piecewise and not reset else False,
        **options,
    )
    matrix = checked[0] if isinstance(checked, tuple) else checked
    # A dense training matrix is checked in the first pass over the data.
    if sp.issparse(matrix) or not (piecewise or reset):
        check_finite(matrix, getattr(estimator, "feature_names_in_", None), FINITE)
    return checked


def _check_out_of_core(
    estimator: Any, X: OutOfCoreMatrix, y: Any, *, reset: bool, **options: Any
) -> Any:
    """Validate shapes, names and targets without reading the values of X."""
    like = np.broadcast_to(np.zeros((), X.dtype), X.shape)
    if not reset:
        named = like
        if X.names is not None:
            import pandas as pd

            named = pd.DataFrame(columns=X.names)
        validate_data(estimator, named, reset=False, skip_check_array=True)
        return X
    checked = validated(
        estimator, like, local(y), dtype=X.dtype, ensure_all_finite=False, **options
    )
    if X.names is not None:
        estimator.feature_names_in_ = np.asarray(X.names, dtype=object)
    return (X, checked[1]) if isinstance(checked, tuple) else X


@contextmanager
def reported_steps(
    reporter: Any, problem: FitProblem
) -> Iterator[tuple[Callable[[int, Annealed], None], ...]]:
    """Yield the functions to call after each annealing step, one per callback of ``reporter``.

    Callbacks require scikit-learn 1.9 or later.
    """
    data = {"estimator": reporter, "X": problem.X, "y": problem.y}
    context = reporter._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(**data)

    def report(_: int, state: Annealed) -> None:
        step = context.subcontext(task_name="step")
        step.call_on_fit_task_begin(**data)
        so_far = Solution.of(state, 0)
        step.call_on_fit_task_end(
            **data, reconstruction_attributes=lambda: fitted_attributes(problem, so_far)
        )

    yield (report,)
    context.call_on_fit_task_end(**data)
