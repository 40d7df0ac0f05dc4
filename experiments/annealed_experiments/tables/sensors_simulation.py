"""Simulated homes with known informative sensors.

Activities follow a Markov chain, and sensors are placed on a floor plan. As in Liu et al. (2014),
section 5, there are 40 sensors and 14 activities. Ten sensors observe the activities. Ten sensors
are noisy disjunctions of two of these, ten are noisy copies, and ten follow independent slow
chains. The constants are heuristic; they were chosen by the error of the true sensors (0.15 to
0.25) before any selection method was run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

N_ACTIVITIES = 14
N_PER_KIND = 10  # number of sensors of each of the four kinds
RADIUS = 0.18  # radius of a sensor's range relative to the side of the home
FIRES = 0.7  # firing probability in each minute of an activity at the sensor
FALSE_ALARM = 0.03
DURATIONS = (5.0, 50.0)  # minimum and maximum mean duration of an activity in minutes
COPY_KEEPS, COPY_INVENTS = (
    0.7,
    0.03,
)  # shares of the minutes that a copy repeats, and of those in which it fires at random
SLOW_MINUTES = 60.0  # mean duration of a state of the slow sensors


@dataclass(frozen=True)
class SimulatedHome:
    """Minutes of whole days in a simulated home.

    Attributes
    ----------
    on : ndarray of shape (n_minutes, 40), float
        1 in minutes in which a sensor fired.
    activities : ndarray of shape (n_minutes,), int
    days : ndarray of shape (n_minutes,), int
    true : ndarray of shape (10,), int
        Columns that depend on the activity, in ascending order.
    """

    on: np.ndarray
    activities: np.ndarray
    days: np.ndarray
    true: np.ndarray

    def part(self, days: range) -> SimulatedHome:
        """Return the data of some days."""
        rows = np.isin(self.days, days)
        return SimulatedHome(self.on[rows], self.activities[rows], self.days[rows], self.true)


def simulate_home(n_days: int = 20, minutes: int = 600, random_state: int = 0) -> SimulatedHome:
    """Simulate a home.

    Parameters
    ----------
    n_days : int, default 20
        Number of days, which are independent sequences; the tables train on the first half.
    minutes : int, default 600
        Number of minutes of each day.
    random_state : int, default 0
        Random seed of the home and of its days; the same seed gives the same first days.

    Returns
    -------
    SimulatedHome

    Examples
    --------
    >>> home = simulate_home(n_days=2, random_state=1)
    >>> home.on.shape, len(home.true)
    ((1200, 40), 10)
    """
    rng = np.random.default_rng(random_state)
    places, sensors = rng.random((N_ACTIVITIES, 2)), rng.random((N_PER_KIND, 2))
    distance = np.linalg.norm(places[:, None] - sensors, axis=2)
    fires = FALSE_ALARM + FIRES * np.exp(-0.5 * (distance / RADIUS) ** 2)
    duration = np.exp(rng.uniform(np.log(DURATIONS[0]), np.log(DURATIONS[1]), N_ACTIVITIES))
    following = rng.dirichlet(np.full(N_ACTIVITIES, 0.5), N_ACTIVITIES)
    pairs = np.array([rng.choice(N_PER_KIND, 2, replace=False) for _ in range(N_PER_KIND)])
    order = rng.permutation(4 * N_PER_KIND)
    on, activities = [], []
    for day in range(n_days):
        day_rng = np.random.default_rng([random_state, day])
        labels = _activities(day_rng, minutes, duration, following)
        true = day_rng.random((minutes, N_PER_KIND)) < fires[labels]
        either = true[:, pairs[:, 0]] | true[:, pairs[:, 1]]
        slow = (
            np.cumsum(day_rng.random((minutes, N_PER_KIND)) < 1.0 / SLOW_MINUTES, axis=0) % 2 == 1
        )
        on.append(np.hstack([true, _noisy(day_rng, either), _noisy(day_rng, true), slow])[:, order])
        activities.append(labels)
    days = np.repeat(np.arange(n_days), minutes)
    return SimulatedHome(
        np.concatenate(on).astype(float),
        np.concatenate(activities),
        days,
        np.flatnonzero(order < N_PER_KIND),
    )


def _activities(rng, minutes: int, duration: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Generate the labels of a day. Each activity ends with a probability of one over its mean
    duration, and is followed by another activity.
    """
    labels = np.empty(minutes, int)
    current = int(rng.integers(N_ACTIVITIES))
    for t in range(minutes):
        labels[t] = current
        if rng.random() < 1.0 / duration[current]:
            current = int(rng.choice(N_ACTIVITIES, p=following[current]))
    return labels


def _noisy(rng, on: np.ndarray) -> np.ndarray:
    return np.where(on, rng.random(on.shape) < COPY_KEEPS, rng.random(on.shape) < COPY_INVENTS)
