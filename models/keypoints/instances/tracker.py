"""Tracks instances through a video: the anchors of one frame start the refinement of the next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from ....vision.pyramid import gaussian_pyramid
from .assembly import NO_CANDIDATES
from .instance_finder import Instance, InstanceFinder, probability_of, suppress_instances
from .one_euro import OneEuroFilter

# reference lengths around a face of the last frame that are searched in the next one. A choice
_AROUND = 1.0
_STEP = 1 / 25  # default frame interval in seconds
_AWAY = 0.2  # seconds without a face after which its filter is reset. A choice

REMEMBERED = 1.0  # seconds within which a lost person can be re-identified
# Choices. On training photographs, turned and zoomed, the cosine distance of the appearances of one
# face lies below 0.05 in nine of ten pairs, that of two people above 0.4 in 99 of 100.
_MAX_APPEARANCE_DISTANCE = 0.3
_SIZE_RATIO = 1.5
# maximum distance of a face from its expected position in reference lengths
_REACH, _REACH_PER_SECOND = 0.5, 8.0
_MAX_COST = 2.0  # sum of the squares of the three normalised differences
# the same for a person seen this many seconds ago: occlusion changes the appearance
_MAX_COST_NOW, _NOW = 6.0, 0.1
_NEVER = 100.0  # cost of forbidden pairs
_STEADY = 0.2  # seconds for which the motion of a person is extrapolated
_RENEWED = 0.2  # weight of the newest appearance and velocity


@dataclass
class _Person:
    number: int
    instance: Instance  # the last instance, and its time
    time: float
    usual: np.ndarray  # running mean of the appearance
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass
class PersonTracker:
    """Numbers the persons of a video, from 1.

    A face is compared with each person of the last second by its distance from the person's
    extrapolated position, its size, and its appearance, the histograms from the refinement of its
    points. The assignment with the minimum total cost is taken (Kuhn-Munkres); a face that matches
    no one is a new person.
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
            Time in seconds.

        Returns
        -------
        list of Instance
            In the same order.
        """
        self._persons = [person for person in self._persons if time - person.time <= REMEMBERED]
        cost = np.array(
            [[_cost(person, instance, time) for person in self._persons] for instance in instances]
        )
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
                # not while it is partly occluded
                if _cosine_distance(person.usual, _unit(instance)) < _MAX_APPEARANCE_DISTANCE:
                    person.usual = (1 - _RENEWED) * person.usual + _RENEWED * _unit(instance)
            numbered.append(replace(instance, person=person.number))
        return numbered


@dataclass
class InstanceTracker:
    """Tracks the instances of a video.

    Every few frames, and when a face is lost, the whole frame is searched. In between, each face is
    refined from its keypoints in the last frame, and keeps the support of its detections. It is
    lost when its probability is too low, or when it coincides with another one. Faces have the
    number of their person (:class:`~annealed.models.keypoints.instances.tracker.PersonTracker`).

    Parameters
    ----------
    finder : InstanceFinder
    search : function
        Takes a frame (H, W, 3) and returns its faces, without earlier frames.
    search_every : int, default 10
        Number of frames between searches.
    smooth : float or None, default None
        Cut-off frequency at rest in Hz of the filter that smooths the points of a person
        (:class:`~annealed.models.keypoints.instances.one_euro.OneEuroFilter`); None: no filter.
    min_probability : float, default 0.5
        Minimum probability of a tracked face.

    Raises
    ------
    ValueError
        For numbers outside their range.
    """

    finder: InstanceFinder
    search: Callable[[np.ndarray], Sequence[Instance]]
    search_every: int = 10
    smooth: float | None = None
    min_probability: float = 0.5
    _instances: list[Instance] = field(default_factory=list, init=False)
    _persons: PersonTracker = field(default_factory=PersonTracker, init=False)
    _filters: dict[int, OneEuroFilter] = field(default_factory=dict, init=False)
    _time: float = field(default=-_STEP, init=False)
    _left: int = field(default=0, init=False)  # frames until the next search

    def __post_init__(self) -> None:
        if self.search_every < 1:
            raise ValueError(
                f"search_every={self.search_every}: expected a whole number of at least 1"
            )
        if self.smooth is not None and not 0 < self.smooth < np.inf:
            raise ValueError(f"smooth={self.smooth}: expected a cut-off frequency above 0 Hz")

    def update(self, frame: np.ndarray, time: float | None = None) -> list[Instance]:
        """Return the faces of the next frame by falling probability.

        Parameters
        ----------
        frame : ndarray of shape (H, W, 3), uint8
        time : float, optional
            Time in seconds, later than the last one; by default 1/25 later.

        Returns
        -------
        list of Instance
        """
        followed = (
            [self._follow(frame, instance) for instance in self._instances]
            if self._left > 0
            else []
        )
        here = [instance for instance in followed if instance is not None]
        apart = suppress_instances(
            [instance.places() for instance in here],
            [instance.reference_length for instance in here],
        )
        if self._left > 0 and len(apart) == len(followed):
            self._left -= 1
            self._instances = here
        else:
            self._instances, self._left = list(self.search(frame)), self.search_every - 1
        self._time = self._time + _STEP if time is None else time
        shown = self._persons.update(self._instances, self._time)
        if self.smooth is not None:
            self._filters = {
                number: kept
                for number, kept in self._filters.items()
                if self._time - kept.time <= _AWAY
            }
            shown = [self._still(instance, self.smooth) for instance in shown]
        return sorted(shown, key=lambda instance: -instance.probability)

    def _follow(self, frame: np.ndarray, instance: Instance) -> Instance | None:
        """The face in the next frame, None if it is lost."""
        low = (
            np.floor(instance.landmarks.min(axis=0) - _AROUND * instance.reference_length)
            .astype(int)
            .clip(0)
        )
        high = (
            np.ceil(instance.landmarks.max(axis=0) + _AROUND * instance.reference_length).astype(
                int
            )
            + 1
        )
        part = np.ascontiguousarray(frame[low[1] : max(high[1], 0), low[0] : max(high[0], 0)])
        if not part.size:
            return None
        corner = complex(*low)
        finder = self.finder
        # Completed from the anchors, as in a search: starting from the last shape, errors would
        # accumulate.
        anchors = instance.places(finder.anchors)
        shape = finder.assembler.shape
        points = shape.predict(anchors, shape.anchors)[0][len(anchors) :]
        # The smallest frame of the cascade needs a level of its resolution; smaller levels are not
        # needed.
        smallest = (
            min((stage.ied for stage in finder.regressor.stages), default=1)
            / instance.reference_length
        )
        levels = gaussian_pyramid(part, min_size=1, min_scale=min(1.0, 0.8 * smallest))
        refined = finder.refine(points - corner, instance.support, levels)
        log_odds = float(finder.trained.face @ refined.inputs)
        if probability_of(log_odds) < self.min_probability:
            return None
        refined = finder.refine_again(refined, levels)
        return finder.report(
            replace(refined, points=refined.points + corner), log_odds, NO_CANDIDATES
        )

    def _still(self, instance: Instance, cutoff: float) -> Instance:
        """The face with its points filtered; the filter of a person who was away is reset."""
        assert instance.person is not None
        keep = self._filters.setdefault(instance.person, OneEuroFilter(cutoff))
        names = list(instance.keypoints)
        points = np.array([*instance.landmarks, *((p.x, p.y) for p in instance.keypoints.values())])
        points = keep(points, self._time, instance.reference_length)
        landmarks, places = points[: -len(names)], points[-len(names) :].tolist()
        keypoints = {
            name: instance.keypoints[name]._replace(x=x, y=y)
            for name, (x, y) in zip(names, places, strict=True)
        }
        box = (*landmarks.min(axis=0).tolist(), *landmarks.max(axis=0).tolist())
        return replace(instance, keypoints=keypoints, landmarks=landmarks, box=box)


def _cost(person: _Person, instance: Instance, time: float) -> float:
    gap = time - person.time
    expected = _centre(person.instance) + person.velocity * min(gap, _STEADY)
    reach = (_REACH + _REACH_PER_SECOND * gap) * person.instance.reference_length
    distance = float(np.hypot(*(_centre(instance) - expected))) / reach
    size = abs(np.log(instance.reference_length / person.instance.reference_length)) / np.log(
        _SIZE_RATIO
    )
    dissimilarity = min(
        _cosine_distance(appearance, _unit(instance))
        for appearance in (person.usual, _unit(person.instance))
    )
    cost = distance**2 + size**2 + (dissimilarity / _MAX_APPEARANCE_DISTANCE) ** 2
    return (
        cost if distance <= 1 and cost <= (_MAX_COST_NOW if gap <= _NOW else _MAX_COST) else _NEVER
    )


def _cosine_distance(appearance: np.ndarray, unit: np.ndarray) -> float:
    """Cosine distance to an appearance of length 1."""
    return 1 - float(appearance @ unit) / float(np.linalg.norm(appearance))


def _centre(instance: Instance) -> np.ndarray:
    return instance.landmarks.mean(axis=0)


def _unit(instance: Instance) -> np.ndarray:
    """The appearance as a vector of length 1."""
    assert instance.appearance is not None
    vector = instance.appearance.ravel().astype(float)
    return vector / max(np.linalg.norm(vector), 1e-12)
