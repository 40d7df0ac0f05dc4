"""Training of a model of the activities in a home, based on all or some of its sensors."""

import numpy as np

from ...learners import LinearChainCRF
from ...models.sensors.activity_model import ActivityModel
from ...models.sensors.features import minute_features
from ..common.config import check_names
from .evaluate import RIDGE, check_selection_kinds
from .readers import Home
from .selection import select_sensors

# methods, and their names in the tables
METHODS = {"annealed": "annealed+swap", "foba": "FoBa", "forward": "forward"}
FULL_KINDS = ("on", "start", "last")
SELECTION_KINDS = ("on", "start", "history")


def train_model(
    home: Home,
    n_sensors: int | None,
    kinds: tuple[str, ...] | None = None,
    method: str = "annealed",
) -> ActivityModel:
    """Train a model of the activities in a home.

    Parameters
    ----------
    home : Home
        Home with activities.
    n_sensors : int or None
        Number of sensors that the model uses; None means all sensors.
    kinds : tuple of str or None
        Kinds of features (see :func:`.minute_features`); None means ``FULL_KINDS``, or
        ``SELECTION_KINDS`` if sensors are selected.
    method : {"annealed", "foba", "forward"}
        Selection method.

    Returns
    -------
    ActivityModel

    Raises
    ------
    ValueError
        If the method is unknown, the number of sensors is out of range, or a feature depends on
        other sensors.
    """
    minutes = home.minutes
    check_names("method", [method], METHODS)
    if n_sensors is not None and not 1 <= n_sensors <= len(minutes.sensors):
        raise ValueError(
            f"n_sensors={n_sensors} is not valid; "
            f"expected an integer from 1 to {len(minutes.sensors)}, the number of sensors of "
            f"{home.name}"
        )
    kinds = kinds or (FULL_KINDS if n_sensors is None else SELECTION_KINDS)
    if n_sensors is not None:
        check_selection_kinds(kinds)
        X, groups = minute_features(minutes, kinds)
        selection = select_sensors(
            METHODS[method],
            X,
            minutes.truth,
            minutes.days,
            groups,
            range(n_sensors, n_sensors + 1),
            RIDGE,
        )[n_sensors]
        minutes = minutes.keep([minutes.sensors[i] for i in selection.sensors])
    X, _ = minute_features(minutes, kinds)
    model = LinearChainCRF(RIDGE).fit(X, minutes.truth, sequence=minutes.days)
    return ActivityModel(
        minutes.sensors,
        tuple(kinds),
        activities=tuple(map(str, model.classes_)),
        coef=model.coef_,
        transitions=model.transitions_,
        intercept=model.intercept_,
        training={
            "home": home.name,
            "days": len(np.unique(minutes.days)),
            "minutes": len(minutes.times),
            "sensors_of_home": len(home.minutes.sensors),
            "method": None if n_sensors is None else method,
            "ridge": RIDGE,
            "objective": float(model.objective_),
        },
    )
