"""Which faces of successive frames are one person: by place, size and looks, without knowing who it
is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from .instance_finder import Instance

REMEMBERED = 1.0  # seconds that a person who is lost can be found again
# Choices. On training photographs, turned and zoomed, the cosine distance of the appearances of one
# face lies below 0.05 in nine of ten pairs, that of two people above 0.4 in 99 of 100.
_UNLIKE = 0.3
_SIZE_RATIO = 1.5
# reference lengths that a face may lie from where it is expected
_REACH, _REACH_PER_SECOND = 0.5, 8.0
_MAX_COST = 2.0  # sum of the squares of the three differences in these units
# the same for a person seen so many seconds ago: what hides a part of a face changes its looks
_MAX_COST_NOW, _NOW = 6.0, 0.1
_NEVER = 100.0  # cost of what is not assigned
_STEADY = 0.2  # seconds for which a person is expected to move on
_RENEWED = 0.2  # weight of the newest appearance and velocity


@dataclass
class _Person:
    number: int
    instance: Instance  # as it was last seen, and when
    time: float
    usual: np.ndarray  # appearance: a running mean of what is like it
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass
class PersonTracker:
    """Numbers the persons of a video, from 1.

    A face is compared with each person of the last second: its distance from where the person would
    be by now, its size, and its appearance, the histograms that the refinement of its points has
    computed. The assignment with the least sum of costs is taken (Kuhn-Munkres); a face that is
    like nobody is a new person.
    """

    _persons: list[_Person] = field(default_factory=list, init=False)
    _n: int = field(default=0, init=False)

    def update(self, instances: Sequence[Instance], time: float) -> list[Instance]:
        """Return the faces of the next frame with the numbers of their persons.

        Parameters
        ----------
        instances : sequence of Instance
            Each with its appearance.
        time : float
            Seconds.

        Returns
        -------
        list of Instance
            In the same order.
        """
        self._persons = [person for person in self._persons if time - person.time <= REMEMBERED]
        cost = np.array([[_cost(person, instance, time) for person in self._persons] for instance in instances])
        known: dict[int, _Person] = {}
        if cost.size:
            rows, columns = linear_sum_assignment(cost)
            known = {int(i): self._persons[j] for i, j in zip(rows, columns) if cost[i, j] < _NEVER}
        numbered = []
        for i, instance in enumerate(instances):
            person = known.get(i)
            if person is None:
                self._n += 1
                person = _Person(self._n, instance, time, _unit(instance))
                self._persons.append(person)
            elif (step := time - person.time) > 0:
                velocity = (_centre(instance) - _centre(person.instance)) / step
                person.velocity = person.velocity + _RENEWED * (velocity - person.velocity)
                person.instance, person.time = instance, time
                # not while something hides a part of it
                if _unlike(person.usual, _unit(instance)) < _UNLIKE:
                    person.usual = (1 - _RENEWED) * person.usual + _RENEWED * _unit(instance)
            numbered.append(replace(instance, person=person.number))
        return numbered


def _cost(person: _Person, instance: Instance, time: float) -> float:
    gap = time - person.time
    expected = _centre(person.instance) + person.velocity * min(gap, _STEADY)
    reach = (_REACH + _REACH_PER_SECOND * gap) * person.instance.reference_length
    away = float(np.hypot(*(_centre(instance) - expected))) / reach
    size = abs(np.log(instance.reference_length / person.instance.reference_length)) / np.log(_SIZE_RATIO)
    unlike = min(_unlike(appearance, _unit(instance)) for appearance in (person.usual, _unit(person.instance)))
    cost = away**2 + size**2 + (unlike / _UNLIKE) ** 2
    return cost if away <= 1 and cost <= (_MAX_COST_NOW if gap <= _NOW else _MAX_COST) else _NEVER


def _unlike(appearance: np.ndarray, unit: np.ndarray) -> float:
    """Cosine distance to an appearance of length 1."""
    return 1 - float(appearance @ unit) / float(np.linalg.norm(appearance))


def _centre(instance: Instance) -> np.ndarray:
    return instance.landmarks.mean(axis=0)


def _unit(instance: Instance) -> np.ndarray:
    """The appearance as a vector of length 1."""
    assert instance.appearance is not None
    vector = instance.appearance.ravel().astype(float)
    return vector / max(np.linalg.norm(vector), 1e-12)
