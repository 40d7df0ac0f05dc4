"""Features computed from binary sensors for each minute."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

KINDS = ("on", "start", "history", "last")
HISTORY = (
    (1, 5),
    (6, 30),
    (31, 120),
)  # limits of the windows in which the sensor was on, in minutes before the current one


@dataclass(frozen=True)
class SensorMinutes:
    """States of the sensors in each minute.

    Attributes
    ----------
    times : ndarray of shape (n_minutes,), datetime64[m]
        Local times of the minutes, without gaps.
    sensors : tuple of str
    on : ndarray of shape (n_minutes, n_sensors), bool
        Whether the sensor was on at any time in the minute.
    started : ndarray of shape (n_minutes, n_sensors), float
        One plus the second at which the sensor's last event in the minute began; 0 if no event
        began.
    activities : ndarray of shape (n_minutes,), str, or None
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
        """Return the data of the given sensors alone, so that features depend only on them.

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
    """Check that there is at least one kind of feature, and that all kinds are in ``KINDS``.

    Raises
    ------
    ValueError
        If a kind is unknown, or ``kinds`` is empty.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ValueError(
            f"features {', '.join(unknown) or '(none)'} are not valid; "
            f"valid features are {', '.join(KINDS)}"
        )


def minute_features(minutes: SensorMinutes, kinds: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Compute the feature columns, ordered by sensor, and the sensor of each column.

    The kind "last" depends on all given sensors. For a subset of the sensors, apply
    :meth:`SensorMinutes.keep` first; otherwise, the features contain information about the other
    sensors.

    Parameters
    ----------
    minutes : SensorMinutes
    kinds : sequence of str
        Kinds of features, from ``KINDS``. "on" and "start" refer to the minute itself. "history"
        refers to the 5, 30 and 120 minutes before it; each of these windows excludes the shorter
        ones. "last" refers to the sensor that was activated last.

    Returns
    -------
    X : ndarray of shape (n_minutes, n_columns), float
        Features, 0 or 1.
    sensors : ndarray of shape (n_columns,), int

    Raises
    ------
    ValueError
        If a kind is unknown.
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
