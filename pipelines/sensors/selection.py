"""Sensor selection by the methods of the paper, its baselines and annealing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...learners import FSACRF, ForwardBackwardCRF, LinearChainCRF, Schedule
from ...learners.sequences.lasso import lasso_path
from ...learners.sequences.problem import ChainFit, ChainProblem
from ...learners.solvers.greedy import Step
from ..common.config import check_names

# One sensor is dropped at a time. A few steps with all sensors are sufficient, and the fit
# converges after each drop.
_ANNEALED = partial(FSACRF, schedule=Schedule("linear", mu=1.0), steps_per_cut=100)
# Name -> estimator; "+swap" adds exchanges at each size.
_ESTIMATORS: dict[str, Callable[..., FSACRF | ForwardBackwardCRF]] = {
    "FoBa": ForwardBackwardCRF,
    "forward": partial(ForwardBackwardCRF, backward=False),
    "FoBa+swap": partial(ForwardBackwardCRF, polish="swap"),
    "annealed": partial(_ANNEALED, criterion="norm", polish=None),
    "annealed-objective": partial(_ANNEALED, polish=None),
    "annealed+swap": _ANNEALED,
}
# penalties on the norm of each sensor's coefficients, and on single coefficients (L1-CRF)
_PENALTIES = ("group lasso", "L1")
METHODS = (*_ESTIMATORS, *_PENALTIES)


@dataclass(frozen=True)
class SensorSelection:
    """Selection of a given number of sensors.

    Attributes
    ----------
    sensors : list of int
        Indices of the sensors in ascending order.
    shrunk : LinearChainCRF or None
        Model with the penalty that yields this selection; None for methods without a penalty.
    """

    sensors: list[int]
    shrunk: LinearChainCRF | None = None


def select_sensors(
    method: str,
    X: np.ndarray,
    y: np.ndarray,
    days: np.ndarray,
    groups: np.ndarray,
    sizes: range,
    ridge: float = 2.0,
) -> dict[int, SensorSelection]:
    """Select a subset of the sensors for each of the given subset sizes.

    Methods whose names end in "+swap" are run once for each size; other methods are run only once.

    Parameters
    ----------
    method : str
        One of ``METHODS``.
    X : ndarray of shape (n_minutes, n_columns)
    y : ndarray of shape (n_minutes,), str
        Activities.
    days : ndarray of shape (n_minutes,), str
        Day of each minute. The minutes of a day must be consecutive rows.
    groups : ndarray of shape (n_columns,), int
        Index of each column's sensor; the indices must be in ascending order.
    sizes : range
        Requested subset sizes. Penalised methods may not yield all of them.
    ridge : float, default 2.0
        L2 penalty of the fits.

    Returns
    -------
    dict of int to SensorSelection

    Raises
    ------
    ValueError
        If the method is unknown.
    """
    check_names("method", [method], METHODS)
    if method in _PENALTIES:
        return _penalised(X, y, days, groups, sizes, ridge, grouped=method == "group lasso")
    estimator = partial(_ESTIMATORS[method], feature_groups=groups, ridge=ridge)
    if method.endswith("+swap"):
        return {
            k: SensorSelection(estimator(k).fit(X, y, sequence=days).selected_groups_.tolist())
            for k in sizes
        }
    n_sensors = int(groups.max()) + 1
    if method.startswith("annealed"):
        steps = 2 * max(1, n_sensors - min(sizes))  # the schedule ends after half of the steps
        path = estimator(min(sizes), n_steps=steps).fit(X, y, sequence=days).path_
        start = range(n_sensors)
    else:
        path, start = estimator(max(sizes)).fit(X, y, sequence=days).path_, range(0)
    return {
        k: SensorSelection(sensors) for k, sensors in visited(path, start).items() if k in sizes
    }


def visited(path: list[Step], start: Iterable[int] = ()) -> dict[int, list[int]]:
    """Return, for each number of units, the units selected at the last step with this number.

    Examples
    --------
    >>> path = [Step("enter", 4, 9.0, 1), Step("enter", 2, 5.0, 2), Step("leave", 4, 6.0, 1)]
    >>> visited([*path, Step("enter", 3, 4.0, 2)])
    {0: [], 1: [2], 2: [2, 3]}
    """
    units = set(start)
    by_size = {len(units): sorted(units)}
    for step in path:
        units ^= {step.feature}  # the unit enters or leaves
        by_size[step.size] = sorted(units)
    return dict(sorted(by_size.items()))


def _penalised(
    X: np.ndarray,
    y: np.ndarray,
    days: np.ndarray,
    groups: np.ndarray,
    sizes: range,
    ridge: float,
    grouped: bool,
) -> dict[int, SensorSelection]:
    classes, problem = problem_of(X, y, days, ridge)
    by_size = {}
    for fit in lasso_path(problem, blocks_of(groups, len(classes), grouped)):
        sensors = np.unique(groups[fit.coef.any(axis=1)]).tolist()
        if len(sensors) in sizes:
            by_size[len(sensors)] = SensorSelection(sensors, classifier_of(classes, fit))
        if len(sensors) > max(sizes):
            break
    return by_size


def problem_of(
    X: np.ndarray, y: np.ndarray, days: np.ndarray, ridge: float
) -> tuple[np.ndarray, ChainProblem]:
    """Return the names of the activities and a :class:`ChainProblem` with all columns."""
    classes, codes = np.unique(y, return_inverse=True)
    begins = np.flatnonzero(np.r_[True, days[1:] != days[:-1]])
    return classes, ChainProblem(
        X, codes, len(classes), np.r_[begins, len(y)], np.ones(len(begins)), ridge
    )


def blocks_of(groups: np.ndarray, n_classes: int, grouped: bool) -> np.ndarray:
    """Return the block of each coefficient, as an array of shape (n_columns, n_classes).

    A block consists of the coefficients of a sensor, or of a single coefficient.
    """
    return (
        np.repeat(groups[:, None], n_classes, axis=1)
        if grouped
        else np.arange(len(groups) * n_classes).reshape(-1, n_classes)
    )


def classifier_of(classes: np.ndarray, fit: ChainFit) -> LinearChainCRF:
    """Convert a fitted chain to an estimator."""
    model = LinearChainCRF()
    model.classes_, model.n_features_in_ = classes, len(fit.coef)
    model.coef_, model.transitions_, model.intercept_ = fit.coef.T, fit.transitions, fit.intercept
    return model
