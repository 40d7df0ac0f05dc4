"""What passes between the stages of ``fit``: the problem, its solution, and the attributes that the estimators get from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..designs.base import Design
from ..objective.losses import Loss
from ..solvers.annealing import strengths


@dataclass
class FitProblem:
    """What one call of ``fit`` has to solve.

    Attributes
    ----------
    X : array, sparse matrix or OutOfCoreMatrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples, n_outputs)
        Targets as the loss wants them.
    loss : Loss
    weight : ndarray of shape (n_samples,)
        Weights as given: a row of weight two counts as two rows.
    groups : ndarray of shape (n_features,), int, or None
        Number of each column's group.
    shift, scale : ndarray of shape (n_outputs,) or float
        Scores times ``scale`` plus ``shift`` are in the units of the user's targets.
    flat : bool
        Whether the user's targets were 1-D, so that ``coef_`` is too.
    classification : bool
    allowed : ndarray of int or None
        Columns that may be selected; None are all. Features are numbered among these.
    included : ndarray of shape (n_features,), bool, or None
        Features that stay.
    bounds : Bounds or None
        Of the coefficients, for each feature.
    """

    X: Any
    y: np.ndarray
    loss: Loss
    weight: np.ndarray
    groups: np.ndarray | None = None
    shift: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0
    flat: bool = False
    classification: bool = False
    allowed: np.ndarray | None = None
    included: np.ndarray | None = None
    bounds: Any = None

    def __post_init__(self):
        if not self.weight.sum() > 0:
            raise ValueError("sample_weight is zero everywhere; expected at least one row with a positive weight")

    @cached_property
    def sample_weight(self) -> np.ndarray:
        """Weights (n_samples,) that sum to one."""
        return self.weight / self.weight.sum()

    @property
    def n_rows(self) -> float:
        """Rows, each as often as its weight."""
        return float(self.weight.sum())

    @property
    def n_features(self) -> int:
        """Columns that may be selected."""
        return self.X.shape[1] if self.allowed is None else len(self.allowed)

    def columns(self, kept: np.ndarray) -> np.ndarray:
        """Columns of X behind features."""
        return kept if self.allowed is None else self.allowed[kept]

    @property
    def n_included(self) -> int:
        """Features (or groups) that stay."""
        if self.included is None:
            return 0
        return int(self.included.sum()) if self.groups is None else len(np.unique(self.groups[self.included]))

    @property
    def n_units(self) -> int:
        """Features to select from; groups of them, where there are any."""
        return self.n_features if self.groups is None else int(self.groups.max()) + 1


@dataclass
class Solution:
    """A model of one size: the selected columns (ascending), their standardised coefficients and what they reach."""

    kept: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    design: Design
    size: int
    value: float
    ebic: float
    loss_curve: np.ndarray
    alpha: float = 0.0
    alternatives: dict[int, list[tuple[int, float]]] = field(default_factory=dict)


def fitted_attributes(problem: FitProblem, solution: Solution, piecewise: bool) -> dict[str, Any]:
    """The fitted attributes of one solution by their names."""
    m, q = problem.X.shape[1], problem.y.shape[1]
    kept, design = problem.columns(solution.kept), solution.design
    raw, offset = design.unstandardise(solution.coef, solution.intercept)
    raw, offset = raw * problem.scale, offset * problem.scale + problem.shift
    support = np.zeros(m, bool)
    support[kept] = True
    importance = np.zeros(m)
    importance[kept] = strengths(solution.coef)
    found = {
        "support_": support,
        "feature_importances_": importance,
        "alpha_": solution.alpha,
        "alternatives_": {
            int(problem.columns(np.array(i))): [(int(problem.columns(np.array(j))), share) for j, share in others]
            for i, others in solution.alternatives.items()
        },
        "intercept_": offset[0] if problem.flat else offset,
        "loss_curve_": solution.loss_curve,
        "n_iter_": len(solution.loss_curve),
        "_flat": problem.flat,
    }
    if piecewise:
        found["knots_"] = design.knots  # type: ignore[attr-defined]
        # The hat functions add up to one, so a curve's level is free: its mean over the training rows becomes zero.
        level = np.einsum("kw,kwq->kq", design.mean, raw)
        raw = raw - level[:, None]
        found["intercept_"] = offset[0] + level.sum() if problem.flat else offset + level.sum(axis=0)
        found["responses_"] = raw[:, : design.n_knots]
        # Where training saw no NaN in a column, one met later says nothing.
        seen = design.has_missing(problem.weight > 0)
        found["missing_responses_"] = np.where(seen[:, None], raw[:, -1], 0.0)
    else:
        coef = np.zeros((q, m))
        coef[:, kept] = raw[:, 0].T
        found["coef_"] = coef[0] if problem.flat else coef
    return found
