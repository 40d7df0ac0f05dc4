"""Tracking of instances in a video. Refinement starts from the anchors in the last frame."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import cv2
import numpy as np
from scipy.optimize import linear_sum_assignment

from ....learners.parameters import check_integer
from ....vision.pyramid import gaussian_pyramid
from .assembly import NO_CANDIDATES
from .instance_finder import Instance, InstanceFinder, probability_of, suppress_instances

# reference lengths around a face of the last frame that are searched in the next frame (heuristic)
_AROUND = 1.0
# pixels per reference length: no coarser level is needed to refine a face (heuristic)
_COARSEST = 12.0
# reference lengths per frame from which the motion of a face is predicted; refinement corrects
# slower motions, for which partial occlusions can be mistaken (heuristic)
_FAST = 0.2
_SAME_FACE = 0.5  # reference lengths that a lost face may have moved (heuristic)
_HALF_EVERY = 3  # number of frames between searches at half size
# reference lengths around the points of a face that are hidden in these searches
_HIDDEN = np.array([-0.3, -0.8, 0.3, 0.3])
_STEP = 1 / 25  # default frame interval in seconds
_AWAY = 0.2  # seconds without a face after which a new track begins (heuristic)
_CENTRE = 0.5 + 0.5j  # centre of the top left pixel, from its corner

# At a cut, a thumbnail changes by more than this number of grey levels on average, and by more than
# this multiple of the median of the last changes (heuristic)
_THUMBNAIL = (32, 24)
_CUT, _CUT_RATIO, _N_CHANGES = 12.0, 4.0, 10

REMEMBERED = 1.0  # seconds within which a lost person is searched for near its last position
MAX_PERSONS = 100  # number of persons, the last ones seen, that can be re-identified

# Chosen on copies of photographs held out from training (benchmarks/faces_persons.py). The distance
# between two views of one face is below 0.15 in 98% of the pairs if the head is rotated by up to 15
# degrees, and in 93% at 25 degrees; the distance between two people is above 0.21 in 99% of the
# pairs, and above 0.15 in 99.99%.
_BEST = 0.4  # share of the points that are compared; these agree best, others may be occluded
_MAX_DISTANCE, _MAX_DISTANCE_ELSEWHERE = 0.12, 0.15  # of two appearances of one person
_MAX_DISTANCE_OCCLUDED = 0.25  # the same for a person who reappears next to another
_MAX_COST, _MAX_COST_OCCLUDED = 2.0, 4.0  # sum of squares of three normalised differences
# maximum distances to another person, when last seen and now, of a person who may be occluded
_BESIDE, _BESIDE_NOW = 2.5, 3.0
_SIZE_RATIO = 1.5
# maximum distance of a face from its expected position in reference lengths
_REACH, _REACH_PER_SECOND = 0.5, 8.0
_NEVER = 100.0  # cost of forbidden pairs
_STEADY = 0.2  # seconds for which the motion of a person is extrapolated
_RENEWED = 0.2  # weight of the newest appearance and velocity


@dataclass(eq=False)
class _Sighting:
    """Instance in a frame: position, size, appearance (n, 128) with rows of length 1, and distance
    to the nearest other instance in reference lengths."""

    time: float
    centre: np.ndarray
    length: float
    appearance: np.ndarray
    nearest: float


@dataclass(eq=False)
class _Person:
    number: int
    last: _Sighting
    usual: np.ndarray  # running mean of the appearance
    track: int
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(2))
    placed: bool = True  # False if the last position is in another scene


@dataclass
class PersonTracker:
    """Tracker that assigns consecutive numbers, starting at 1, to the people in a video.

    Each face is compared with each person seen within the last second. The cost of an assignment
    combines the distance from the extrapolated position of the person, the difference in size and
    the difference in appearance. The latter is the cosine distance between histograms, averaged
    over the 40% of the points with the smallest distances. The assignment with the minimum total
    cost is chosen (Kuhn-Munkres). Faces that are not assigned, and all faces in a new scene, are
    then compared with all known people by appearance alone. A face that does not match any known
    person is treated as a new person.
    """

    _persons: list[_Person] = field(default_factory=list, init=False)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1), init=False)
    _tracks: Iterator[int] = field(default_factory=lambda: count(1), init=False)

    def update(
        self, instances: Sequence[Instance], time: float, new_scene: bool = False
    ) -> list[Instance]:
        """Assign the faces in the next frame to people and tracks.

        Parameters
        ----------
        instances : sequence of Instance
            Instances in the frame, including their ``appearance``.
        time : float
            Time in seconds, which must be later than in the last call.
        new_scene : bool, default False
            Whether this frame begins a new scene. Positions in earlier frames are then ignored.

        Returns
        -------
        list of Instance
            Instances with the numbers of people and tracks, in the same order.
        """
        seen = _sightings(instances, time)
        if new_scene:
            for earlier in self._persons:
                earlier.placed = False
        near = [p for p in self._persons if p.placed and time - p.last.time <= REMEMBERED]
        known = _assigned(seen, near, _cost)
        others = [sighting for sighting in seen if sighting not in known]
        known |= _assigned(others, [p for p in self._persons if p not in near], _cost_elsewhere)
        numbered = []
        for instance, sighting in zip(instances, seen, strict=True):
            if sighting in known:
                person = known[sighting]
                self._see(person, sighting, person in near)
            else:
                more = sighting, sighting.appearance, next(self._tracks)
                person = _Person(next(self._numbers), *more)
                self._persons.append(person)
            numbered.append(replace(instance, person=person.number, track=person.track))
        self._persons = sorted(self._persons, key=lambda p: p.last.time)[-MAX_PERSONS:]
        return numbered

    def _see(self, person: _Person, sighting: _Sighting, near: bool) -> None:
        step = sighting.time - person.last.time
        velocity = (sighting.centre - person.last.centre) / step
        person.velocity = near * ((1 - _RENEWED) * person.velocity + _RENEWED * velocity)
        if not near or step > _AWAY:
            person.track = next(self._tracks)
        person.last, person.placed = sighting, True
        # not if the face is partly occluded
        if _distance(person.usual, sighting.appearance) < _MAX_DISTANCE:
            person.usual = _unit((1 - _RENEWED) * person.usual + _RENEWED * sighting.appearance)


@dataclass
class CutDetector:
    """Detector of scene cuts, based on sudden changes in a thumbnail."""

    _last: np.ndarray | None = field(default=None, init=False)
    _changes: deque[float] = field(default_factory=lambda: deque(maxlen=_N_CHANGES), init=False)

    def update(self, frame: np.ndarray) -> bool:
        """Return whether a new scene begins with this frame; False for the first frame.

        The frame is a uint8 array of shape (H, W, 3).
        """
        thumbnail = cv2.resize(frame, _THUMBNAIL, interpolation=cv2.INTER_AREA).astype(np.float32)
        last, self._last = self._last, thumbnail
        if last is None:
            return False
        change = float(abs(thumbnail - last).mean())
        usual = float(np.median(self._changes or [0.0]))
        self._changes.append(change)
        return change > max(_CUT, _CUT_RATIO * usual)


@dataclass
class InstanceTracker:
    """Tracker for the instances in a video, such as faces.

    The whole frame is searched every few frames, at a scene cut, and when a face is lost and a
    search around its expected position does not detect it. In the other frames, each face is
    refined from its points in the previous frame, moved at constant velocity if it moves fast, and
    keeps its ``support`` (see :class:`Instance`) from the last detection. In every third frame, the
    rest of the image is searched at half size. A face is lost if its probability is too low, or if
    it coincides with another face. A
    :class:`~annealed.models.keypoints.instances.tracker.PersonTracker` assigns each face to a
    person.

    Parameters
    ----------
    finder : InstanceFinder
        Finder that refines the faces.
    search : function
        Function that detects faces in a single frame. It takes the image, of shape (H, W, 3), and
        its scale relative to the frames of the video, and returns instances.
    search_every : int, default 15
        Interval, in frames, at which the whole frame is searched.
    min_probability : float, default 0.5
        Minimum probability of a tracked face.

    Raises
    ------
    ValueError
        If ``search_every`` is less than 1.
    """

    finder: InstanceFinder
    search: Callable[[np.ndarray, float], Sequence[Instance]]
    search_every: int = 15
    min_probability: float = 0.5
    _instances: list[Instance] = field(default_factory=list, init=False)
    _velocities: dict[int | None, complex] = field(default_factory=dict, init=False)  # by track
    _persons: PersonTracker = field(default_factory=PersonTracker, init=False)
    _cuts: CutDetector = field(default_factory=CutDetector, init=False)
    _time: float = field(default=-np.inf, init=False)
    _left: int = field(default=0, init=False)  # frames until the next search

    def __post_init__(self) -> None:
        check_integer("search_every", self.search_every, 1)

    def update(self, frame: np.ndarray, time: float | None = None) -> list[Instance]:
        """Return the faces in the next frame, in order of decreasing probability.

        Parameters
        ----------
        frame : ndarray of shape (H, W, 3), uint8
        time : float, optional
            Time in seconds, which must be later than in the last call; by default, 1/25 second
            later.

        Returns
        -------
        list of Instance

        Raises
        ------
        ValueError
            If the time is not later than in the last call.
        """
        if time is None:
            time = max(self._time + _STEP, 0.0)
        if not time > self._time:
            raise ValueError(f"time={time} is not valid; expected a time later than {self._time}")
        step, self._time = time - self._time, time
        if new_scene := self._cuts.update(frame):
            self._left = 0
        followed = [
            self._follow(frame, instance, step * self._velocities.get(instance.track, 0j))
            for instance in self._instances
            if self._left
        ]
        here = [instance for instance in followed if instance is not None]
        if self._left and self._n_distinct(here) == len(followed):
            self._left -= 1
            entered = [] if self._left % _HALF_EVERY else self._entered(frame, here)
            seen = here + entered
        else:
            seen, self._left = list(self.search(frame, 1.0)), self.search_every - 1
        before = {instance.track: instance.places().mean() for instance in self._instances}
        self._instances = self._persons.update(seen, time, new_scene)
        self._velocities = {
            instance.track: (instance.places().mean() - before[instance.track]) / step
            for instance in self._instances
            if instance.track in before
        }
        return sorted(self._instances, key=lambda instance: -instance.probability)

    def _n_distinct(self, instances: Sequence[Instance]) -> int:
        return len(
            suppress_instances(
                [instance.places() for instance in instances],
                [instance.reference_length for instance in instances],
            )
        )

    def _entered(self, frame: np.ndarray, known: Sequence[Instance]) -> list[Instance]:
        """Detect faces in the frame at half size that are not among the known faces, which are
        hidden."""
        small = cv2.resize(frame, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        for instance in known:
            length = instance.reference_length
            x0, y0, x1, y1 = (np.array(instance.box) + length * _HIDDEN).clip(0) / 2
            small[int(y0) : int(y1) + 1, int(x0) : int(x1) + 1] = 128
        entered = [self._follow(frame, i, 0j, 2.0) for i in self.search(small, 0.5)]
        new = [instance for instance in entered if instance is not None]
        return new if self._n_distinct([*known, *new]) == len(known) + len(new) else []

    def _follow(
        self, frame: np.ndarray, instance: Instance, move: complex, scale: float = 1.0
    ) -> Instance | None:
        """Return the face in the next frame, or None if it is lost; ``scale`` is the scale of the
        frame relative to the last frame, and ``move`` is the expected motion x + iy."""
        length = instance.reference_length * scale
        move *= abs(move) >= _FAST * length
        points = (instance.landmarks + 0.5) * scale - 0.5 + [move.real, move.imag]
        low = np.floor(points.min(axis=0) - _AROUND * length).astype(int).clip(0)
        high = np.ceil(points.max(axis=0) + _AROUND * length).astype(int).clip(-1) + 1
        part = np.ascontiguousarray(frame[low[1] : high[1], low[0] : high[0]])
        if not part.size:
            return None
        corner, finder = complex(*low), self.finder
        levels = gaussian_pyramid(part, min_size=1, min_scale=min(1.0, _COARSEST / length))
        # The shape is completed from the anchors, as in a search; starting from the last shape
        # would accumulate errors.
        anchors = (instance.places(finder.anchors) + _CENTRE) * scale - _CENTRE
        shape, moved = finder.assembler.shape, move - corner
        start = shape.predict(anchors, shape.anchors)[0][len(anchors) :] + moved
        refined = finder.refine(start, instance.support, levels)
        log_odds = float(finder.trained.face @ refined.inputs)
        if probability_of(log_odds) < self.min_probability:
            near = [face.moved(*low) for face in self.search(part, 1.0)] if scale == 1 else []
            distance = [np.hypot(*(f.landmarks - points).mean(axis=0)) / length for f in near]
            return (
                near[int(np.argmin(distance))] if min(distance, default=1.0) < _SAME_FACE else None
            )
        refined = finder.refine_again(refined, levels)
        return finder.report(
            replace(refined, points=refined.points + corner), log_odds, NO_CANDIDATES
        )


def _sightings(instances: Sequence[Instance], time: float) -> list[_Sighting]:
    centres = np.array([instance.landmarks.mean(axis=0) for instance in instances]).reshape(-1, 2)
    apart = np.hypot(*(centres[:, None] - centres).T)
    np.fill_diagonal(apart, np.inf)
    seen = []
    for instance, centre, distances in zip(instances, centres, apart, strict=True):
        assert instance.appearance is not None
        length, appearance = instance.reference_length, _unit(instance.appearance)
        nearest = float(distances.min(initial=np.inf)) / length
        seen.append(_Sighting(time, centre, length, appearance, nearest))
    return seen


def _assigned(
    seen: Sequence[_Sighting],
    persons: Sequence[_Person],
    cost_of: Callable[[_Person, _Sighting], float],
) -> dict[_Sighting, _Person]:
    if not seen or not persons:
        return {}
    cost = np.array([[cost_of(person, sighting) for person in persons] for sighting in seen])
    rows, columns = linear_sum_assignment(cost)
    pairs = zip(rows, columns, strict=True)
    return {seen[i]: persons[j] for i, j in pairs if cost[i, j] < _NEVER}


def _cost(person: _Person, seen: _Sighting) -> float:
    """Compute the cost of matching a face with a person who was seen less than a second ago in the
    same scene."""
    last = person.last
    gap = seen.time - last.time
    expected = last.centre + person.velocity * min(gap, _STEADY)
    reach = (_REACH + _REACH_PER_SECOND * gap) * last.length
    distance = float(np.hypot(*(seen.centre - expected))) / reach
    if distance > 1:
        return _NEVER
    size = abs(np.log(seen.length / last.length)) / np.log(_SIZE_RATIO)
    occluded = last.nearest < _BESIDE and seen.nearest < _BESIDE_NOW
    limit = _MAX_DISTANCE_OCCLUDED if occluded else _MAX_DISTANCE
    cost = float(distance**2 + size**2 + (_unlikeness(person, seen) / limit) ** 2)
    return cost if cost <= (_MAX_COST_OCCLUDED if occluded else _MAX_COST) else _NEVER


def _cost_elsewhere(person: _Person, seen: _Sighting) -> float:
    """Compute the cost of matching a face with a person who was seen elsewhere or long ago."""
    unlikeness = _unlikeness(person, seen)
    return unlikeness if unlikeness < _MAX_DISTANCE_ELSEWHERE else _NEVER


def _unlikeness(person: _Person, seen: _Sighting) -> float:
    """Compute the distance from the person's mean or last appearance, whichever is smaller."""
    return min(_distance(a, seen.appearance) for a in (person.usual, person.last.appearance))


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Compute the mean cosine distance between two appearances with rows of length 1, over the
    points that agree best."""
    distances = np.sort(1 - np.einsum("ij,ij->i", a, b))
    return float(distances[: max(1, round(_BEST * len(distances)))].mean())


def _unit(appearance: np.ndarray) -> np.ndarray:
    """Scale the rows of an appearance to length 1."""
    length = np.linalg.norm(appearance, axis=1, keepdims=True)
    return np.asarray(appearance / np.maximum(length, 1e-12), np.float32)
