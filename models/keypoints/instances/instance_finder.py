"""Detection of whole objects: assembly of candidates, refinement, and probabilities."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from ....vision.pyramid import Level
from ..windows.object_search import SAME_OCTAVES, SAME_RADIUS
from .assembly import NO_CANDIDATES, Assembler, Assembly, Candidates, Hypothesis
from .shape_models import Pose, RigidModel, is_same_instance, pose_of
from .shape_regression import ShapeClassifier, ShapeRegressor

_SURE = 0.9  # hypotheses near a face of at least this probability are not refined (heuristic)
# sum of scores from which a whole object is clearly a face, as in `InstanceFinder.likely_objects`
# (measured; a limit of 8 loses faces in synthetic views of held-out photographs)
_CLEAR = 14.0
_LIKELY = 0.5  # probability from which a hypothesis counts as a face
# probability from which a hypothesis may be a missed face, and the same as a share of the minimum
# probability (heuristic)
_MAY_BE, _MAY_BE_SHARE = 0.02, 0.1
MAX_INSTANCES = 12  # maximum number of refined hypotheses if only probable faces are requested
MAX_HYPOTHESES = 30  # the same if all faces are requested
POINT_INPUTS = 8
_MAX_LOG_ODDS = 30.0  # log-odds are clipped to this value, so that the exponential stays finite
# maximum change of the log-odds in the stages after the one that describes the shape (measured)
_MAX_CHANGE = 1.0
_EXACT = 0.003  # reference lengths: refinements that differ by less count as equal (heuristic)

# If there are several initial shapes: number of whole objects that are refined from each of them,
# relative sizes of the shapes, and mean distance in reference lengths up to which refined shapes
# agree (heuristic)
_N_STARTED, _STARTED_SIZES, _AGREE = 4, (0.9, 1.12), 0.3

# reference lengths of the larger face: faces with centres this close are duplicates (heuristic)
_SAME_PLACE = 0.6


def probability_of(log_odds: float | np.ndarray) -> float | np.ndarray:
    """Convert log-odds to probabilities."""
    return 1.0 / (1.0 + np.exp(-np.clip(log_odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)))


def log_odds_of(probability: float | np.ndarray) -> float | np.ndarray:
    """Convert probabilities to log-odds, which are finite even for 0 and 1."""
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))


def box_around(points: np.ndarray) -> tuple[float, float, float, float]:
    """Compute the bounding box (x0, y0, x1, y1) of n points, given as complex numbers."""
    x, y = points.real, points.imag
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


@dataclass(frozen=True)
class InstanceProbabilities:
    """Logistic regression models for probabilities, fitted to held-out photographs.

    Parameters
    ----------
    face : ndarray of shape (5,)
        Coefficients of the log-odds that an instance is a true object. They are the weights of the
        score of the shape classifier, the support, the logarithm of the reference length and the
        absolute yaw (see :class:`RefinedShape`), followed by a constant.
    within_10, within_5 : ndarray of shape (n_keypoints, 8)
        Coefficients of the log-odds that the distance of a keypoint from its true position is at
        most 10% or 5% of the reference length, given a true face. The columns are the weights of
        seven inputs, followed by a constant. The inputs are the log-odds of the face, the log-odds
        of the detection of the keypoint, an indicator of such a detection, its distance from the
        refined point in tenths of the reference length, the logarithm of the distance between the
        results of two refinements, the absolute yaw of the face, and the logarithm of the reference
        length.
    alone : float
        Constant that is added to the log-odds of detections outside the assembled faces.

    Notes
    -----
    Logarithms of reference lengths refer to a unit of 30 pixels.
    """

    face: np.ndarray
    within_10: np.ndarray
    within_5: np.ndarray
    alone: float


class InstancePoint(NamedTuple):
    """Keypoint of an instance.

    Parameters
    ----------
    x, y : float
        Position in image pixels.
    probability : float
        Probability that the distance from the true position is at most 10% of the reference length
        (see :class:`.Schema`).
    probability_5 : float
        Probability that the distance from the true position is at most 5% of the reference length.
    """

    x: float
    y: float
    probability: float
    probability_5: float


@dataclass(frozen=True)
class Instance:
    """One object in an image, such as a face.

    Parameters
    ----------
    probability : float
        Probability that the instance is a true object.
    pose : Pose
        Yaw, pitch and roll in radians.
    box : tuple of float
        Bounding box (x0, y0, x1, y1) of all points, in image pixels.
    keypoints : dict of str to InstancePoint
        Keypoints by name.
    landmarks : ndarray of shape (n, 2)
        All refined points, in image pixels; for example, the 68 points of the iBUG scheme if the
        model was trained on them.
    reference_length : float
        Reference length, in image pixels, that the object would have in a frontal view.
    support : float
        Sum of the log-odds of the detected keypoints and of the whole object, each minus the
        minimum log-odds of a candidate. The probability depends on it.
    person : int or None, default None
        Number of the person in a video, starting at 1; the same in all frames that show this
        person.
    appearance : ndarray of shape (n, 128) or None, default None
        Gradient histograms around the points, for comparing faces in different frames.
    track : int or None, default None
        Number of the track, an uninterrupted sequence of video frames in which the person is
        visible.
    """

    probability: float
    pose: Pose
    box: tuple[float, float, float, float]
    keypoints: dict[str, InstancePoint]
    landmarks: np.ndarray
    reference_length: float
    support: float
    person: int | None = None
    appearance: np.ndarray | None = field(default=None, repr=False, compare=False)
    track: int | None = field(default=None, repr=False, compare=False)

    @property
    def ied(self) -> float:
        """Former name of ``reference_length`` (until version 0.2)."""
        warnings.warn(
            "ied was renamed to reference_length; the old name will be removed in 0.4",
            FutureWarning,
            stacklevel=2,
        )
        return self.reference_length

    def places(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Return the positions of some keypoints.

        Parameters
        ----------
        names : sequence of str, optional
            Keypoint names; by default, all keypoints.

        Returns
        -------
        ndarray of shape (n,), complex
            Positions x + iy in image pixels.
        """
        return np.array(
            [
                complex(*self.keypoints[name][:2])
                for name in (self.keypoints if names is None else names)
            ]
        )

    def moved(self, x: float, y: float) -> "Instance":
        """Return a shifted copy of the instance.

        Parameters
        ----------
        x, y : float
            Shift in image pixels.

        Returns
        -------
        Instance
        """
        box = (self.box[0] + x, self.box[1] + y, self.box[2] + x, self.box[3] + y)
        keypoints = {
            name: point._replace(x=point.x + x, y=point.y + y)
            for name, point in self.keypoints.items()
        }
        return replace(self, box=box, keypoints=keypoints, landmarks=self.landmarks + [x, y])

    def record(self) -> dict:
        """Return the JSON object that the command line prints; it does not contain the landmarks.

        Returns
        -------
        dict
            JSON object with rounded numbers; ``person`` is included only if it is known.
        """
        return {
            **({} if self.person is None else {"person": self.person}),
            "probability": round(self.probability, 6),
            "pose": {name: round(angle, 4) for name, angle in self.pose._asdict().items()},
            "box": [round(v, 2) for v in self.box],
            "keypoints": {
                name: [round(p.x, 2), round(p.y, 2), round(p.probability, 6)]
                for name, p in self.keypoints.items()
            },
        }


class FoundInstances(NamedTuple):
    """Result of a search for instances.

    Parameters
    ----------
    instances : list of Instance
        Detected instances.
    complete : bool
        Whether there is at least one likely face and no doubtful hypothesis.
    doubtful : list of tuple of float
        Bounding boxes (x0, y0, x1, y1) of the doubtful hypotheses, i.e. those with an intermediate
        probability; empty if there is no likely face.
    """

    instances: list[Instance]
    complete: bool
    doubtful: list[tuple[float, float, float, float]]


@dataclass(frozen=True)
class RefinedShape:
    """Refined shape, with the values from which the probability of the instance is computed.

    Attributes
    ----------
    points : ndarray of shape (n,), complex
        Refined points in image pixels.
    histograms : ndarray of shape (n, 128), float32
        Gradient histograms around the points.
    score : float
        Score of the shape classifier.
    support : float
        Support, as in :class:`Instance`.
    reference_length : float
        Reference length in image pixels.
    disagreement : ndarray of shape (n_keypoints,)
        Distance between the two positions of each keypoint after refinements from different initial
        shapes, in units of the reference length; None before the second refinement.
    yaw : float
        Estimated yaw in radians.
    """

    points: np.ndarray
    histograms: np.ndarray
    score: float
    support: float
    reference_length: float
    disagreement: np.ndarray | None = None
    yaw: float = 0.0

    @property
    def inputs(self) -> np.ndarray:
        """Inputs for the probability of an instance, with a final 1 for the constant."""
        size = np.log(self.reference_length / 30.0)
        return np.array([self.score, self.support, size, abs(self.yaw), 1.0])


@dataclass(frozen=True)
class InstanceFinder:
    """Finder of whole objects, given candidates for some of the keypoints (the anchors).

    Parameters
    ----------
    assembler : Assembler
        Assembler of candidates into hypotheses.
    regressor : ShapeRegressor
        Regressor that refines the points of a hypothesis.
    keypoints : tuple of str
        Names of all keypoints, beginning with the anchors.
    classifier : ShapeClassifier or None
        Classifier of shapes; None during training.
    probabilities : InstanceProbabilities or None
        Models for the probabilities; None during training.
    own_weight : ndarray of shape (n_anchors,)
        Weight w in [0, 1] for each anchor. Its reported position is w times the detected position
        plus 1 - w times the refined position.
    own_radius : float
        Maximum distance, in reference lengths, between the detected and refined positions of an
        anchor; more distant detections are ignored.
    min_support : float
        Minimum score of a hypothesis. Other hypotheses are not refined, unless all hypotheses are
        requested.
    assembly : str
        Default method of assembly, "2d" or "3d".
    """

    assembler: Assembler
    regressor: ShapeRegressor
    keypoints: tuple[str, ...]
    classifier: ShapeClassifier | None = None
    probabilities: InstanceProbabilities | None = None
    own_weight: np.ndarray | None = None
    own_radius: float = 0.12
    min_support: float = 0.0
    assembly: str = Assembly.TWO

    @property
    def anchors(self) -> list[str]:
        """Names of the anchors, which are the detected keypoints."""
        return list(self.keypoints[: len(self.assembler.shape.anchors)])

    @property
    def trained(self) -> InstanceProbabilities:
        """Return the probability models, or raise a ValueError if they are not trained."""
        if self.probabilities is None:
            raise ValueError(
                "the model was not trained to predict probabilities; expected a fully trained model"
            )
        return self.probabilities

    @cached_property
    def rigid(self) -> RigidModel:
        """Rigid model of the refined points."""
        return RigidModel(self.assembler.rigid.points[len(self.anchors) :])

    def refine(
        self,
        points: np.ndarray,
        support: float,
        levels: Sequence[Level],
        min_log_odds: float = -np.inf,
    ) -> RefinedShape:
        """Refine all points of a face, given as n complex numbers, in an image pyramid.

        ``support`` is the score of the hypothesis. The last stages are skipped if they are unlikely
        to raise the log-odds of the instance to ``min_log_odds``.
        """

        def described(points: np.ndarray, histograms: np.ndarray) -> RefinedShape:
            score = 0.0 if self.classifier is None else self.classifier.score(histograms)
            length, yaw = self.regressor.align(points).reference_length, self._pose(points).yaw
            return RefinedShape(points, histograms, score, support, length, yaw=yaw)

        background: list[RefinedShape] = []  # the described shape, if refinement stops at it

        def is_background(points: np.ndarray, histograms: np.ndarray) -> bool:
            shape = described(points, histograms)
            if self.trained.face @ shape.inputs < min_log_odds - _MAX_CHANGE:
                background.append(shape)
            return bool(background)

        refined = self.regressor.refine(
            levels, points, is_background if min_log_odds > -np.inf else None
        )
        return background[0] if background else described(*refined)

    def refine_again(self, refined: RefinedShape, levels: Sequence[Level]) -> RefinedShape:
        """Refine a second time, starting from the mean shape at the same position.

        The result contains the mean of the two refined shapes and the distances between them.
        """
        start = self.regressor.align(refined.points).to_image(self.regressor.mean_points)
        points, _ = self.regressor.refine(levels, start)
        disagreement = (
            abs(self.regressor.to_keypoints @ (points - refined.points)) / refined.reference_length
        )
        return replace(refined, points=(refined.points + points) / 2, disagreement=disagreement)

    def likely_objects(
        self,
        levels: Sequence[Level],
        reference_length: float,
        min_score: float,
        objects: np.ndarray,
    ) -> np.ndarray:
        """Return the whole objects that resemble a face, and the objects near them.

        Objects are rows of an array of shape (n, 4), with the columns x, y, score and scale. An
        object resembles a face if its score plus the score of the shape classifier is at least
        ``min_score``. The classifier is applied to the mean shape, placed at the object and refined
        by the first stages. At most ``2 * MAX_INSTANCES`` such objects are used, those with the
        highest sums. Objects within a reference length of them are also returned.

        If the sum is at least `_CLEAR`, the object is moved to the refined shape, and the objects
        within a reference length whose sums are lower are dropped, since they are parts of it.
        """
        if self.classifier is None:
            return objects
        centres, lengths = objects[:, 0] + 1j * objects[:, 1], reference_length / objects[:, 3]
        objects, total, mean = objects.copy(), objects[:, 2].copy(), self.regressor.mean_points
        for i, (centre, length) in enumerate(zip(centres, lengths)):
            shape = self.regressor.refine(levels, centre + length * mean, lambda *_: True)
            total[i] += self.classifier.score(shape[1])
            if total[i] >= _CLEAR:
                at = self.regressor.align(shape[0])
                objects[i, [0, 1, 3]] = (
                    at.translation.real,
                    at.translation.imag,
                    reference_length / at.reference_length,
                )
        likely = [i for i in np.argsort(-total)[: 2 * MAX_INSTANCES] if total[i] >= min_score]
        near = abs(centres[:, None] - centres[likely]) <= lengths[likely]
        parts = near & (total[likely] >= _CLEAR) & (total[:, None] < total[likely])
        return objects[near.any(axis=1) & ~parts.any(axis=1)]

    @cached_property
    def _starts(self) -> np.ndarray:
        """Shapes from which whole objects are refined, with the centre of their anchors at zero.

        They are the complete shapes among the templates, or the mean shape if there are none.
        """
        n, assembler = len(self.anchors), self.assembler
        complete = assembler.templates.shape[1] > n
        shapes = assembler.templates[1:] if complete else assembler.shape.mean_points[None]
        return shapes - shapes[:, :n].mean(axis=1, keepdims=True)

    def find(
        self,
        maxima: dict[str, np.ndarray],
        levels: Sequence[Level],
        reference_length: float,
        min_probability: float = 0.5,
        assembly: str | None = None,
    ) -> FoundInstances:
        """Detect faces.

        Parameters
        ----------
        maxima : dict of str to ndarray of shape (n, 4)
            Local maxima of the scores of each anchor, with the columns x, y (image pixels), score
            and scale.
        levels : list of Level
            Pyramid of the image, from large to small.
        reference_length : float
            Reference length of the objects on which the detector was trained, in pixels of a
            pyramid level.
        min_probability : float, default 0.5
            Minimum probability of a face; 0 returns all hypotheses.
        assembly : {"2d", "3d"}, optional
            Method of assembly; by default, that of the model.

        Returns
        -------
        FoundInstances
            Distinct faces in order of decreasing probability.

        Raises
        ------
        ValueError
            If the probabilities are not trained.
        """
        weights, n = self.trained.face, len(self.anchors)
        candidates = self.assembler.candidates(maxima, reference_length)
        max_instances, min_support = (
            (MAX_INSTANCES, self.min_support) if min_probability > 0 else (MAX_HYPOTHESES, 0.0)
        )
        min_log_odds = float(log_odds_of(min(min_probability, _MAY_BE)))
        shapes: list[RefinedShape] = []
        sure: list[RefinedShape] = []
        assembled = self.assembler.assemble(
            candidates, assembly or self.assembly, max_instances, min_support
        )
        for hypothesis in self.with_whole(
            assembled,
            self.assembler.whole_objects(maxima, reference_length),
            max_instances,
            min_support,
        ):
            if any(
                is_same_instance(
                    hypothesis.points[:n], self._anchors_of(instance), instance.reference_length
                )
                for instance in sure
            ):
                continue
            refined = self.refine(hypothesis.points[n:], hypothesis.score, levels, min_log_odds)
            shapes.append(refined)
            sure += [refined] if weights @ refined.inputs > log_odds_of(_SURE) else []
        instances = self.distinct(self.share_support(shapes))
        probability = np.array([probability_of(log_odds) for log_odds, _ in instances])
        reported = [entry for entry, p in zip(instances, probability) if p >= min_probability]
        likely = bool((probability >= _LIKELY).any())
        doubted = max(_MAY_BE, _MAY_BE_SHARE * min_probability)
        doubtful = [
            box_around(instance.points)
            for (_, instance), p in zip(instances, probability)
            if likely and doubted <= p < _LIKELY
        ]
        return FoundInstances(
            [
                self.report(self.refine_again(instance, levels), odds, candidates)
                for odds, instance in reported
            ],
            likely and not doubtful,
            doubtful,
        )

    def distinct(self, shapes: Sequence[RefinedShape]) -> list[tuple[float, RefinedShape]]:
        """Return the distinct shapes, preceded by their log-odds, by decreasing log-odds."""
        ranked = [(float(self.trained.face @ shape.inputs), shape) for shape in shapes]
        ranked.sort(key=lambda entry: -entry[0])
        anchors = [self._anchors_of(shape) for _, shape in ranked]
        lengths = [shape.reference_length for _, shape in ranked]
        return [ranked[i] for i in suppress_instances(anchors, lengths)]

    def with_whole(
        self, assembled: list[Hypothesis], whole: Candidates, n: int, min_support: float = 0.0
    ) -> list[Hypothesis]:
        """Combine hypotheses with the detected whole objects, and return the n best hypotheses.

        A whole object increases the support of the hypotheses at its position. It also yields a
        separate hypothesis, whose initial shape is the mean shape. If there are several initial
        shapes, the best whole objects yield further hypotheses, in addition to n.
        """
        if not len(whole.anchor):
            return assembled
        assembler, first, starts = self.assembler, len(self.anchors), self._starts
        strength = np.maximum(whole.log_odds - assembler.min_log_odds, 0.0)
        hypotheses, several = list(assembled), len(starts) > 1
        n_started, sizes = (_N_STARTED, _STARTED_SIZES) if several else (len(strength), (1.0,))
        started = zip(whole.position[:n_started], whole.reference_length[:n_started].tolist())
        for (at, length), size, shape in product(started, sizes, starts):
            points = at + size * length * shape
            hypotheses.append(Hypothesis(np.empty(0, np.int64), 0.0, points, size * length))
        n += len(hypotheses) - len(assembled) if several else 0
        for i, made in enumerate(hypotheses):
            distance = abs(whole.position - made.points[:first].mean()) / made.reference_length
            near = (distance <= SAME_RADIUS) & (
                abs(np.log2(whole.reference_length / made.reference_length)) <= SAME_OCTAVES
            )
            hypotheses[i] = replace(made, score=made.score + float(strength[near].max(initial=0.0)))
        hypotheses.sort(key=lambda made: -made.score)
        return [made for made in hypotheses if made.score >= min_support][:n]

    def share_support(self, shapes: Sequence[RefinedShape]) -> Sequence[RefinedShape]:
        """Give each refined shape the largest support of all shapes that agree with it.

        If whole objects have a single initial shape, the shapes are returned unchanged.
        """
        if not len(shapes) or len(self._starts) == 1:
            return shapes
        points = np.stack([shape.points for shape in shapes])
        reach = _AGREE * np.array([[shape.reference_length] for shape in shapes])
        agree = abs(points[:, None] - points).mean(axis=2) <= reach
        support = np.where(agree, [shape.support for shape in shapes], 0.0).max(axis=1)
        return [replace(shape, support=best) for shape, best in zip(shapes, support.tolist())]

    def placed(self, box: Sequence[float], levels: Sequence[Level]) -> Instance:
        """Locate a face in a box (x0, y0, x1, y1) by refining the mean shape."""
        mean = self.regressor.mean_points
        size = max(
            float(
                np.sqrt(
                    (box[2] - box[0]) * (box[3] - box[1]) / (np.ptp(mean.real) * np.ptp(mean.imag))
                )
            ),
            1.0,
        )
        middle = complex(
            (mean.real.min() + mean.real.max()) / 2, (mean.imag.min() + mean.imag.max()) / 2
        )
        start = complex(box[0] + box[2], box[1] + box[3]) / 2 + size * (mean - middle)
        refined = self.refine_again(self.refine(start, 0.0, levels), levels)
        return self.report(refined, float(self.trained.face @ refined.inputs), NO_CANDIDATES)

    def _anchors_of(self, refined: RefinedShape) -> np.ndarray:
        return (self.regressor.to_keypoints @ refined.points)[: len(self.anchors)]

    def own_detections(
        self, refined: RefinedShape, candidates: Candidates
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the complex positions and the log-odds of the detected keypoints of a face.

        Both are NaN for keypoints without a detection.
        """
        keypoints = self.regressor.to_keypoints @ refined.points
        position, log_odds = np.full(len(keypoints), np.nan + 0j), np.full(len(keypoints), np.nan)
        for i in range(len(self.anchors) if len(candidates.anchor) else 0):
            near = np.flatnonzero(
                (candidates.anchor == i)
                & (
                    abs(candidates.position - keypoints[i])
                    <= self.own_radius * refined.reference_length
                )
            )
            if len(near):  # sorted by decreasing log-odds
                position[i], log_odds[i] = (
                    candidates.position[near[0]],
                    candidates.log_odds[near[0]],
                )
        return position, log_odds

    def combined(self, refined: RefinedShape, positions: np.ndarray) -> np.ndarray:
        """Compute the reported positions of the keypoints, as complex numbers.

        They are weighted means of the refined and the detected positions.
        """
        keypoints = self.regressor.to_keypoints @ refined.points
        if self.own_weight is not None:
            weight = np.append(self.own_weight, np.zeros(len(keypoints) - len(self.own_weight)))
            keypoints = np.where(
                np.isfinite(positions), keypoints + weight * (positions - keypoints), keypoints
            )
        return keypoints

    def report(self, refined: RefinedShape, log_odds: float, candidates: Candidates) -> Instance:
        """Return an instance with the pose and probabilities of a refined shape."""
        positions, log_odds_of = self.own_detections(refined, candidates)
        places = self.combined(refined, positions)
        pose = self._pose(refined.points)
        inputs = self.point_inputs(refined, log_odds, positions, log_odds_of, pose)
        probability = float(probability_of(log_odds))
        within_10 = np.asarray(
            probability * probability_of((self.trained.within_10 * inputs).sum(axis=1))
        )
        within_5 = np.minimum(
            within_10, probability * probability_of((self.trained.within_5 * inputs).sum(axis=1))
        )
        points = {
            name: InstancePoint(float(place.real), float(place.imag), float(p), float(q))
            for name, place, p, q in zip(self.keypoints, places, within_10, within_5, strict=True)
        }
        return Instance(
            probability,
            pose,
            box_around(refined.points),
            points,
            np.stack([refined.points.real, refined.points.imag], axis=1),
            refined.reference_length,
            refined.support,
            None,
            refined.histograms,
        )

    def _pose(self, points: np.ndarray) -> Pose:
        """Estimate yaw, pitch and roll."""
        if self.rigid.points[:, 2].any():
            return pose_of(self.rigid.fit(points)[0])
        return Pose(0.0, 0.0, float(np.angle(self.regressor.align(points).scale_rotation)))

    def point_inputs(
        self,
        refined: RefinedShape,
        log_odds: float,
        positions: np.ndarray,
        log_odds_of: np.ndarray,
        pose: Pose | None = None,
    ) -> np.ndarray:
        """Compute the inputs for the probabilities of the keypoints, after two refinements.

        The result has shape (n_keypoints, 8). ``positions`` contains the detections of the
        keypoints, or NaN for keypoints without a detection. ``pose`` is computed unless it is
        given.
        """
        assert refined.disagreement is not None, "refined once only"
        distance = (
            abs(positions - self.regressor.to_keypoints @ refined.points) / refined.reference_length
        )
        present = np.isfinite(log_odds_of)
        of_own = (
            np.where(present, np.clip(log_odds_of, -6.0, 6.0), 0.0),
            present,
            np.where(present, distance * 10, 0.0),
        )
        turned = abs((pose or self._pose(refined.points)).yaw)
        columns = (
            np.clip(log_odds, -8.0, 8.0),
            *of_own,
            np.log(refined.disagreement + _EXACT),
            turned,
            np.log(refined.reference_length / 30.0),
            1.0,
        )
        return np.stack(np.broadcast_arrays(*columns), axis=1)


def suppress_instances(keypoints: Sequence[np.ndarray], ied: Sequence[float]) -> list[int]:
    """Return the distinct faces in a list that is sorted by decreasing probability.

    A face is dropped if its keypoints coincide with those of a more probable face, or if it has
    about the same position and size.

    Parameters
    ----------
    keypoints : list of ndarray of shape (n,), complex
        Keypoints of each face, in image pixels.
    ied : list of float
        Reference length of each face, in image pixels.

    Returns
    -------
    list of int
        Indices of the distinct faces.
    """
    kept: list[int] = []
    for i, points in enumerate(keypoints):
        if not any(
            is_same_instance(points, keypoints[k], ied[k])
            or abs(points.mean() - keypoints[k].mean()) < _SAME_PLACE * max(ied[i], ied[k])
            for k in kept
        ):
            kept.append(i)
    return kept
