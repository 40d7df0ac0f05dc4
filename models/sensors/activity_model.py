"""Trained model of activities: a conditional random field on the features of binary sensors."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ...learners import ChainLoss
from ..files import ModelFile, check_array
from .features import SensorMinutes, check_kinds, minute_features


@dataclass(frozen=True)
class ActivityModel(ModelFile):
    """Model that predicts the activity in a home for each minute from binary sensors.

    Attributes
    ----------
    sensors : tuple of str
        Names of the sensors, in the order of the columns.
    kinds : tuple of str
        Types of features that are computed for each sensor; see :func:`.features.minute_features`.
    activities : tuple of str
        Names of the activities.
    coef : ndarray of shape (n_activities, n_columns)
        Coefficients of the feature columns.
    transitions : ndarray of shape (n_activities, n_activities)
        Score of each transition, indexed by the previous and the next activity.
    intercept : ndarray of shape (n_activities,)
        Intercept of each activity.
    training : dict
        Settings and data of the training, stored in the header of the model file.
    """

    KIND: ClassVar[str] = "activity model"
    sensors: tuple[str, ...]
    kinds: tuple[str, ...]
    activities: tuple[str, ...]
    coef: np.ndarray
    transitions: np.ndarray
    intercept: np.ndarray
    training: dict[str, Any] = field(default_factory=dict)

    def predict_proba(self, minutes: SensorMinutes) -> np.ndarray:
        """Predict the probability of each activity in each minute, given the whole day.

        Parameters
        ----------
        minutes : SensorMinutes
            Sensor data that include at least the sensors of the model.

        Returns
        -------
        ndarray of shape (n_minutes, n_activities)

        Raises
        ------
        ValueError
            If a sensor is missing.
        """
        X, _ = minute_features(minutes.keep(self.sensors), self.kinds)
        lengths = np.unique(minutes.days, return_counts=True)[1]
        return ChainLoss(lengths, self.transitions).marginals(X @ self.coef.T + self.intercept)

    def predict(self, minutes: SensorMinutes) -> np.ndarray:
        """Predict the most probable activity for each minute.

        Parameters
        ----------
        minutes : SensorMinutes
            Sensor data that include at least the sensors of the model.

        Returns
        -------
        ndarray of shape (n_minutes,), str
        """
        return np.array(self.activities)[self.predict_proba(minutes).argmax(axis=1)]

    def _to_file(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {"coef": self.coef, "transitions": self.transitions, "intercept": self.intercept}
        return arrays, {
            "summary": f"activities of a home from {len(self.sensors)} binary sensors",
            "sensors": list(self.sensors),
            "features": list(self.kinds),
            "activities": list(self.activities),
            "training": self.training,
        }

    @classmethod
    def _from_file(cls, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        sensors, kinds, activities = (
            tuple(map(str, header[key])) for key in ("sensors", "features", "activities")
        )
        check_kinds(kinds)
        k = len(activities)
        n_columns = len(sensors) * sum(3 if kind == "history" else 1 for kind in kinds)
        return cls(
            sensors,
            kinds,
            activities,
            coef=check_array(path, arrays, "coef", np.float64, (k, n_columns)),
            transitions=check_array(path, arrays, "transitions", np.float64, (k, k)),
            intercept=check_array(path, arrays, "intercept", np.float64, (k,)),
            training=dict(header["training"]),
        )
