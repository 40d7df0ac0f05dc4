"""The fitted attributes of a solution, in the units of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..solvers.annealing import strengths
from .problem import FitProblem, Solution


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
