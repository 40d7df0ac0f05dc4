"""What the user demands of a solution: columns that stay, columns that may not come, bounds of coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

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
    included, excluded = (_mask(name, getattr(e, name), n, names) for name in ("include", "exclude"))
    both = np.flatnonzero(included & excluded)
    if len(both):
        raise ValueError(f"column {_name(both[0], names)} is in include and in exclude; expected one of them")
    bounds = None if e.bounds is None else _bounds(e.bounds, n, names)
    if bounds is not None and (e._is_piecewise or problem.y.shape[1] > 1):
        raise ValueError(f"bounds={e.bounds!r} is not valid here; expected None with several outputs or piecewise-linear responses")
    allowed = groups = None
    if excluded.any():
        if excluded.all():
            raise ValueError(f"exclude={e.exclude!r} leaves no column; expected at least one")
        allowed = np.flatnonzero(~excluded)
        included = included[allowed]
        bounds = None if bounds is None else Bounds(bounds.lower[allowed], bounds.upper[allowed])
    if problem.groups is not None:
        groups = problem.groups if allowed is None else np.unique(problem.groups[allowed], return_inverse=True)[1]
    return replace(problem, groups=groups, allowed=allowed, included=included if included.any() else None, bounds=bounds)


def _mask(parameter: str, which, n_features: int, names) -> np.ndarray:
    """Columns given by index, by name or as a mask."""
    mask = np.zeros(n_features, bool)
    if which is None:
        return mask
    chosen = np.asarray([which] if isinstance(which, (str, Integral)) else which)
    if chosen.dtype == bool:
        if chosen.shape != (n_features,):
            raise ValueError(f"{parameter} has shape {chosen.shape}; expected one entry for each of the {n_features} features")
        return chosen.copy()
    for column in chosen.ravel().tolist():
        mask[_position(parameter, column, n_features, names)] = True
    return mask


def _position(parameter: str, column, n_features: int, names) -> int:
    if isinstance(column, str):
        found: np.ndarray = np.flatnonzero([] if names is None else names == column)
        if not len(found):
            known = "X has no column names" if names is None else "no column has that name"
            raise ValueError(f"{parameter}: {column!r} is not a column ({known})")
        return int(found[0])
    if not isinstance(column, Integral) or not 0 <= int(column) < n_features:
        raise ValueError(f"{parameter}: {column!r} is not a column; expected a name or a number from 0 to {n_features - 1}")
    return int(column)


def _name(column: int, names) -> str:
    return str(column) if names is None else repr(names[column])


def _bounds(bounds, n_features: int, names) -> Bounds:
    """Bounds as one pair for all, a pair per column, or pairs of some columns."""
    lower, upper = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if isinstance(bounds, dict):
        for column, pair in bounds.items():
            at = _position("bounds", column, n_features, names)
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
