"""Features computed from binary sensors for each minute."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

KINDS = ("on", "start", "history", "last")
# limits of the windows in which the sensor was on, in minutes before the current one
HISTORY = ((1, 5), (6, 30), (31, 120))


@dataclass(frozen=True)
class SensorMinutes:
    """States of the sensors in each minute.

    Attributes
    ----------
    times : ndarray of shape (n_minutes,), datetime64[m]
        Local times of the minutes, without gaps.
    sensors : tuple of str
        Names of the sensors.
    on : ndarray of shape (n_minutes, n_sensors), bool
        Whether the sensor was on at any time in the minute.
    started : ndarray of shape (n_minutes, n_sensors), float
        Second of the minute at which the last event of the sensor began, plus 1; 0 if no event
        began.
    activities : ndarray of shape (n_minutes,), str, or None
        Activity in each minute; None if unknown.
    """

    times: np.ndarray
    sensors: tuple[str, ...]
    on: np.ndarray
    started: np.ndarray
    activities: np.ndarray | None = None

    @property
    def truth(self) -> np.ndarray:
        """Return the activities, or raise a ValueError if they are unknown."""
        assert self.activities is not None
        return self.activities

    @property
    def days(self) -> np.ndarray:
        """Calendar day of each minute, as text."""
        return self.times.astype("datetime64[D]").astype(str)

    def keep(self, sensors: Sequence[str]) -> "SensorMinutes":
        """Return the data for the given sensors only.

        Parameters
        ----------
        sensors : sequence of str
            Names of the sensors.

        Returns
        -------
        SensorMinutes

        Raises
        ------
        ValueError
            If a sensor is missing.
        """
        for name in sensors:
            if name not in self.sensors:
                raise ValueError(
                    f"sensor {name!r} does not occur in the data; expected one of "
                    f"{', '.join(self.sensors)}"
                )
        columns = [self.sensors.index(name) for name in sensors]
        return replace(
            self, sensors=tuple(sensors), on=self.on[:, columns], started=self.started[:, columns]
        )


def check_kinds(kinds: Sequence[str]) -> None:
    """Check that there is at least one type of feature, and that all types are in ``KINDS``.

    Raises
    ------
    ValueError
        If a type is unknown, or ``kinds`` is empty.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ValueError(
            f"features {', '.join(unknown) or '(none)'} are not valid; "
            f"valid features are {', '.join(KINDS)}"
        )


def minute_features(minutes: SensorMinutes, kinds: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Compute the features, sorted by sensor, and the sensor to which each column belongs.

    The features "last" depend on all given sensors. To use only some of the sensors, apply
    :meth:`SensorMinutes.keep` first; otherwise, the features contain information about the others.

    Parameters
    ----------
    minutes : SensorMinutes
    kinds : sequence of str
        Types of features. "on" and "start" state whether the sensor was on, and whether an event
        began, in the minute. "history" states whether it was on in three preceding periods: 1 to 5,
        6 to 30 and 31 to 120 minutes earlier. "last" states whether it was activated last.

    Returns
    -------
    X : ndarray of shape (n_minutes, n_columns), float
        Values 0 or 1.
    sensors : ndarray of shape (n_columns,), int
        Index of the sensor for each column.

    Raises
    ------
    ValueError
        If a type is unknown.
    """
    check_kinds(kinds)
    made = {
        "on": lambda m: [m.on],
        "start": lambda m: [m.started > 0],
        "history": _history,
        "last": _last,
    }
    columns = np.stack([column for kind in kinds for column in made[kind](minutes)], axis=2)
    n, n_sensors, per_sensor = columns.shape
    return columns.reshape(n, n_sensors * per_sensor).astype(float), np.repeat(
        np.arange(n_sensors), per_sensor
    )


def _history(minutes: SensorMinutes) -> list[np.ndarray]:
    n = len(minutes.on)
    total = np.vstack([np.zeros((1, minutes.on.shape[1]), int), np.cumsum(minutes.on, axis=0)])
    now = np.arange(n)
    return [
        total[np.maximum(now - first + 1, 0)] > total[np.maximum(now - last, 0)]
        for first, last in HISTORY
    ]


def _last(minutes: SensorMinutes) -> list[np.ndarray]:
    any_start = np.asarray((minutes.started > 0).any(axis=1))
    when = np.maximum.accumulate(np.where(any_start, np.arange(len(any_start)), -1))
    fired = np.zeros(minutes.on.shape, bool)
    rows = np.flatnonzero(when >= 0)
    fired[rows, minutes.started[when[rows]].argmax(axis=1)] = True
    return [fired]
