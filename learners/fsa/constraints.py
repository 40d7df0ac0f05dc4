"""What the user demands of a solution: columns that stay, columns that may not come, bounds of coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..common.columns import column_position, included_and_excluded
from ..designs.base import Design
from .problem import FitProblem


@dataclass(frozen=True)
class Bounds:
    """Bounds of the coefficients of raw columns.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_features,)
    """

    lower: np.ndarray
    upper: np.ndarray

    def of(self, kept: np.ndarray, design: Design, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (k, 1, 1) of the standardised coefficients of the features ``kept`` of a design that holds these alone."""
        unit = np.where(design.inv > 0, design.inv, 1.0) * scale
        return (self.lower[kept] / unit)[:, None, None], (self.upper[kept] / unit)[:, None, None]


def constrained(estimator: Any, problem: FitProblem) -> FitProblem:
    """The problem with ``include``, ``exclude`` and ``bounds`` of the estimator.

    Raises
    ------
    ValueError
        For columns that are not there, that are both in and out, and for bounds that cannot be met.
    """
    e, n = estimator, problem.X.shape[1]
    if e.include is None and e.exclude is None and e.bounds is None:
        return problem
    names = getattr(e, "feature_names_in_", None)
    included, excluded = included_and_excluded(e.include, e.exclude, n, names)
    bounds = None if e.bounds is None else _bounds(e.bounds, n, names)
    if bounds is not None and (e._is_piecewise or problem.y.shape[1] > 1):
        raise ValueError(f"bounds={e.bounds!r} is not valid here; expected None with several outputs or piecewise-linear responses")
    allowed = groups = None
    if excluded.any():
        allowed = np.flatnonzero(~excluded)
        included = included[allowed]
        bounds = None if bounds is None else Bounds(bounds.lower[allowed], bounds.upper[allowed])
    if problem.groups is not None:
        groups = problem.groups if allowed is None else np.unique(problem.groups[allowed], return_inverse=True)[1]
    return replace(problem, groups=groups, allowed=allowed, included=included if included.any() else None, bounds=bounds)


def _bounds(bounds, n_features: int, names) -> Bounds:
    """Bounds as one pair for all, a pair per column, or pairs of some columns."""
    lower, upper = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if isinstance(bounds, dict):
        for column, pair in bounds.items():
            at = column_position("bounds", column, n_features, names)
            lower[at], upper[at] = _pair(pair)
    elif np.shape(bounds) == (n_features, 2) and n_features != 1:
        for at, pair in enumerate(bounds):
            lower[at], upper[at] = _pair(pair)
    else:
        lower[:], upper[:] = _pair(bounds)
    return Bounds(lower, upper)


def _pair(pair) -> tuple[float, float]:
    try:
        low, high = (np.inf * sign if end is None else float(end) for end, sign in zip(pair, (-1, 1), strict=True))
    except (TypeError, ValueError):
        low = high = np.nan
    if not low <= 0 <= high:
        raise ValueError(
            f"bounds: {pair!r} is not valid; expected (least, greatest) with least <= 0 <= greatest, None for no bound"
        )
    return low, high


def without_names(problem: FitProblem) -> dict[str, Any]:
    """The parameters for the same columns in an array without names."""
    n = problem.X.shape[1]
    allowed = np.arange(n) if problem.allowed is None else problem.allowed
    included = None if problem.included is None else allowed[problem.included]
    bounds = None
    if problem.bounds is not None:
        bounds = {int(j): pair for j, *pair in zip(allowed, problem.bounds.lower, problem.bounds.upper, strict=True)}
    return {
        "include": included,
        "exclude": None if problem.allowed is None else np.setdiff1d(np.arange(n), allowed),
        "bounds": bounds,
    }
