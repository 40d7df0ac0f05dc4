"""How many features ``n_features_to_select="auto"`` selects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ..designs.base import Design
from ..solvers.criteria import default_sizes, ebic
from ..sources.matrix import OutOfCoreMatrix
from .problem import FitProblem, Solution
from .refinement import supported_coefficients

# Coefficients that the rows support, below which held-out rows choose: the criterion then keeps one to six features on gene tables,
# and errs twice as often as twenty do. The simulated tables of Barbu et al. (2017), where it is right, support 14 and 60 or more.
_FEW_COEFFICIENTS, _FEW_COEFFICIENTS_OF_NUMBERS = 10.0, 30.0
_FOLDS = 5


def auto_size(estimator: Any, problem: FitProblem, design: Design) -> int:
    """The size of the least extended Bayesian information criterion; with few rows that of the least loss of held-out rows.

    Where no size is better than none by the criterion, one feature is selected.
    """
    sizes = np.unique(np.clip(default_sizes(problem.n_units, round(problem.n_rows)), max(1, problem.n_included), None))
    named = estimator._refinement._replace(alpha=0.0) if estimator._refinement.chooses_ridge else estimator._refinement
    tried = estimator._solve_path(problem, design, sizes, settings=named, patient=False)
    best = min(tried, key=lambda solution: solution.ebic)
    if not _has_few(problem) or estimator._is_piecewise:
        return best.size
    constant = np.broadcast_to(problem.loss.best_constant(problem.y, problem.sample_weight), problem.y.shape)
    value = problem.loss.value(problem.y, constant, problem.sample_weight)
    if best.ebic >= ebic(value, problem.n_rows, 0, problem.n_units, 0, squared=problem.loss.is_quadratic):
        return int(sizes[0])
    return _cross_validated(estimator, problem, sizes)


def _has_few(problem: FitProblem) -> bool:
    if not problem.loss.pointwise or isinstance(problem.X, OutOfCoreMatrix):
        return False
    return supported_coefficients(problem) < (_FEW_COEFFICIENTS if problem.classification else _FEW_COEFFICIENTS_OF_NUMBERS)


def _cross_validated(estimator, problem: FitProblem, sizes: np.ndarray) -> int:
    """Size of the least mean loss of held-out rows, one path per fold."""
    present = np.flatnonzero(problem.weight > 0)
    labels = problem.y[present].argmax(axis=1) if problem.y.shape[1] > 1 else problem.y[present, 0] > 0
    splitter = (StratifiedKFold if problem.classification else KFold)(_FOLDS, shuffle=True, random_state=0)
    total = np.zeros(len(sizes))
    sizes = sizes[sizes <= max(sizes[0], len(present) * (_FOLDS - 1) // (_FOLDS * 2))]
    total = np.zeros(len(sizes))
    for train, test in splitter.split(present, labels):
        train, test = present[train], present[test]
        part = replace(problem, X=problem.X[train], y=problem.y[train], weight=problem.weight[train])
        design = estimator._make_design(part)
        weight = problem.sample_weight[test]
        for i, solution in enumerate(estimator._solve_path(part, design, sizes)):
            total[i] += problem.loss.value(problem.y[test], _scores(problem, solution, test), weight)
    return int(sizes[np.argmin(total)])


def _scores(problem: FitProblem, solution: Solution, rows: np.ndarray) -> np.ndarray:
    """Scores of rows of X by a linear solution."""
    raw, offset = solution.design.unstandardise(solution.coef, solution.intercept)
    return problem.X[rows][:, problem.columns(solution.kept)] @ raw[:, 0] + offset
