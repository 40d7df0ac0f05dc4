"""Classifier of refined shapes, and probabilities fitted on held-out photographs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.linear_model import LogisticRegression

from .....learners.fsa.estimators import FSAClassifier
from .....learners.objective.priors import Prior
from .....models.keypoints.detector import KeypointDetector
from .....models.keypoints.instances import (
    Candidates,
    Instance,
    InstanceFinder,
    InstanceProbabilities,
    RefinedShape,
    ShapeClassifier,
    log_odds_of,
)
from ....common.file_map import Jobs
from ...data import AnnotatedImage, in_boxes
from ..windows.views import each
from .augmentation import AugmentationSettings
from .refinement import describe_runs, move_runs, start_runs
from .shapes import SearchedImage

# Mean keypoint errors, in reference lengths, below which a refined shape counts as a face and above
# which it counts as background
_TRUE, _FALSE = 0.15, 0.3
# Minimum probability of the reported faces to which probabilities are fitted (heuristic)
_LOW = 0.02
# minimum number of detected objects that train the classifier instead of augmented copies
# (heuristic)
_MIN_DETECTED = 30
# Shrinkage of the classifier of objects other than faces. Many of its rows are nearly equal, since
# several hypotheses end at the same object, so that a penalty chosen by leaving out one row is too
# weak. Chosen on rendered frames of rods, with other shapes than on the documentation page
_SHRINKAGE = 0.03


@dataclass(frozen=True)
class ProbabilitySettings:
    """Settings of the classifier of refined shapes, and of the probabilities of faces.

    Parameters
    ----------
    n_features : int
        Number of histogram values that the shape classifier selects.
    described : int
        Index of the refinement stage whose histograms the classifier uses; see
        :class:`.ShapeRegressor`.
    augmentation : AugmentationSettings
        Augmentation of the classifier's training faces.
    photographs : int
        Number of photographs with faces that provide false shapes for the classifier, in addition
        to photographs without faces.
    hypotheses : int
        Number of assembled shapes with the highest scores that are refined in each photograph.
    ied : tuple of float
        Reference lengths in pixels. Held-out photographs are searched at their original size and
        reduced to each of these reference lengths.
    background : int
        Interval n: every n-th photograph without faces is held out.
    regularisation : float
        Inverse ridge penalty of the logistic regressions on standardised inputs.
    lost_fraction : float
        Maximum fraction of the detected held-out faces that are rejected before refinement.
    own_weights : tuple of float
        Weights to choose from. The position of an anchor is the weighted mean of its detected
        position, with the chosen weight, and its refined position.
    by_anchors : bool
        Whether only the anchors determine whether a shape is a face. Other points, such as the tip
        of a needle, may move too freely to be informative.
    reported : tuple of float
        Limits of the mean keypoint error, in reference lengths. When probabilities are fitted, a
        reported shape is treated as a face below the first limit and as background above the
        second.
    seed : int
        Random seed.
    """

    n_features: int = 1200
    described: int = 2
    augmentation: AugmentationSettings = field(
        default_factory=lambda: AugmentationSettings(copies=2)
    )
    photographs: int = 900
    hypotheses: int = 12
    ied: tuple[float, ...] = (36.0, 26.0, 20.0)
    background: int = 5
    regularisation: float = 1.0
    lost_fraction: float = 0.005
    own_weights: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    by_anchors: bool = False
    reported: tuple[float, float] = (_TRUE, _FALSE)
    seed: int = 0

    def judged(self, finder: InstanceFinder) -> slice:
        """Return the indices of the keypoints whose errors determine whether a shape is a face."""
        return slice(len(finder.anchors) if self.by_anchors else None)


@dataclass(frozen=True)
class ScoredHypothesis:
    """Hypothesis about a face in a searched photograph, with its refined shape.

    Attributes
    ----------
    refined : RefinedShape
    truth : ndarray of shape (n_keypoints,), complex
        Keypoints of the nearest annotated face; NaN if no face is annotated.
    error : float
        Mean distance from these keypoints, in reference lengths; infinite if no face is annotated.
    reference_length : float
        Reference length of the nearest annotated face, in pixels; NaN if no face is annotated.
    candidates : Candidates
        All candidates in the photograph.
    """

    refined: RefinedShape
    truth: np.ndarray
    error: float
    reference_length: float
    candidates: Candidates

    @property
    def is_face(self) -> bool:
        """Whether the hypothesis is a face."""
        return self.error < _TRUE

    @property
    def is_false(self) -> bool:
        """Whether the hypothesis is background.

        Some hypotheses are neither faces nor background.
        """
        return self.error > _FALSE


def judged_hypotheses(
    finder: InstanceFinder,
    searched: Iterable[SearchedImage],
    reference_length: float,
    settings: ProbabilitySettings,
    twice: bool = True,
) -> Iterator[list[ScoredHypothesis]]:
    """Refine the best hypotheses in each photograph, and match them to the annotations."""
    judged = settings.judged(finder)
    for view in searched:
        candidates = finder.assembler.candidates(view.maxima, reference_length)
        made, shapes, n = [], [], settings.hypotheses
        for hypothesis in finder.with_whole(
            finder.assembler.assemble(candidates, finder.assembly, n),
            finder.assembler.whole_objects(view.maxima, reference_length),
            n,
        ):
            refined = finder.refine(
                hypothesis.points[len(finder.anchors) :], hypothesis.score, view.levels
            )
            shapes.append(finder.refine_again(refined, view.levels) if twice else refined)
        for refined in finder.share_support(shapes):
            if view.is_ignored(refined.points):
                continue
            keypoints = finder.regressor.to_keypoints @ refined.points
            faces = view.keypoints(finder.regressor.to_keypoints)
            best, error = _nearest(keypoints, faces, view.reference_length, judged)
            truth = faces[best] if len(faces) else np.full(len(keypoints), np.nan + 0j)
            ied = float(view.reference_length[best]) if len(faces) else np.nan
            made.append(ScoredHypothesis(refined, truth, error, ied, candidates))
        yield made


def _nearest(
    keypoints: np.ndarray, faces: np.ndarray, reference_length: np.ndarray, judged: slice
) -> tuple[int, float]:
    """Return the index of the annotated face nearest to some keypoints (n,), complex, and their
    mean distance in its reference lengths; -1 and infinity without faces."""
    if not len(faces):
        return -1, np.inf
    errors = abs(faces - keypoints)[:, judged].mean(axis=1) / reference_length
    return int(errors.argmin()), float(errors.min())


def reported_faces(
    detector: KeypointDetector,
    images: Sequence[AnnotatedImage],
    settings: ProbabilitySettings,
    n_jobs: Jobs,
) -> Iterator[tuple[np.ndarray, bool]]:
    """Yield, for each reported face, the inputs of its probability and whether it is correct.

    Faces are detected with the default options, but with a low minimum probability. A detector
    searches an image up to four times and reports the best of many hypotheses. Probabilities fitted
    to the hypotheses of a single search would therefore be overconfident.
    """
    finder = detector.finder
    assert finder is not None and finder.classifier is not None  # from the stages before
    matrix, judged = finder.regressor.to_keypoints, settings.judged(finder)

    def search(image: AnnotatedImage) -> tuple[AnnotatedImage, list[Instance]]:
        return image, detector.find(image.pixels(), min_probability=_LOW).instances

    for image, instances in each(images, search, n_jobs):
        faces = image.points @ matrix.T if len(image.points) else np.empty(0)
        for i in instances:
            _, error = _nearest(i.places(), faces, image.reference_length, judged)
            middle = i.landmarks.mean(axis=0, keepdims=True)
            if (
                not settings.reported[0] <= error <= settings.reported[1]
                and not in_boxes(middle, image.ignore)[0]
            ):
                assert i.appearance is not None  # of a detected face
                refined = RefinedShape(
                    i.landmarks,
                    i.appearance,
                    finder.classifier.score(i.appearance),
                    i.support,
                    i.reference_length,
                    yaw=i.pose.yaw,
                )
                yield refined.inputs, error < settings.reported[0]


def distinct_hypotheses(
    finder: InstanceFinder, judged: Iterable[list[ScoredHypothesis]], settings: ProbabilitySettings
) -> Iterator[tuple[np.ndarray, bool]]:
    """Yield the same as :func:`reported_faces` for the hypotheses of photographs that the detector
    searches only once."""
    for made in judged:
        errors = {id(shape.refined): shape.error for shape in made}
        for log_odds, refined in finder.distinct([shape.refined for shape in made]):
            unclear = settings.reported[0] <= errors[id(refined)] <= settings.reported[1]
            if log_odds >= log_odds_of(_LOW) and not unclear:
                yield refined.inputs, errors[id(refined)] < settings.reported[0]


def train_classifier(
    finder: InstanceFinder,
    images: Sequence[AnnotatedImage],
    judged: Iterable[list[ScoredHypothesis]],
    settings: ProbabilitySettings,
) -> tuple[ShapeClassifier, dict]:
    """Train a classifier that separates refined faces from refined false hypotheses.

    The faces are taken from augmented copies. Other objects are taken from the hypotheses if these
    include at least `_MIN_DETECTED` correct ones, since copies are easier to recognise than the
    shapes that the classifier will score.
    """
    regressor, shapes = finder.regressor, [shape for made in judged for shape in made]
    true = [shape.refined.histograms.ravel() for shape in shapes if shape.is_face]
    false = [shape.refined.histograms.ravel() for shape in shapes if shape.is_false]
    if images[0].schema.landmarks or len(true) < _MIN_DETECTED:
        runs = start_runs(
            images, finder.assembler.shape, settings.augmentation, 1, [settings.seed, 50]
        )
        values, stages = np.empty((0, 0), np.float32), regressor.stages
        for number, stage in enumerate(stages):
            features, units = describe_runs(runs, regressor, stage.ied, stage.cell)
            move_runs(runs, regressor, stage, features, units)
            values = features if number == regressor.described else values
        if regressor.described == len(stages):
            values, _ = describe_runs(runs, regressor, stages[-1].ied, stages[-1].cell)
        errors = runs.errors(regressor.to_keypoints)[:, settings.judged(finder)].mean(axis=1)
        true, false = list(values[errors < _TRUE]), [*values[errors > _FALSE], *false]
    rows, labels = np.array([*true, *false], np.float32), np.arange(len(true + false)) < len(true)
    if not labels.any():
        raise ValueError(f"none of the {len(rows)} refined shapes is a face; expected at least one")
    facts = {"faces": len(true), "false_shapes": len(false)}
    if labels.all():  # without negatives, the candidates alone decide
        return ShapeClassifier(np.zeros(1, np.int32), np.zeros(1, np.float32), 0.0), facts
    model = FSAClassifier(
        min(settings.n_features, rows.shape[1]),
        loss="logistic",
        prior=None if images[0].schema.landmarks else Prior(_SHRINKAGE),
        class_weight="balanced",
        n_jobs=1,
    ).fit(rows, labels)
    kept = model.get_support(indices=True)
    coefficients = np.asarray(model.coef_)[0, kept].astype(np.float32)
    return ShapeClassifier(
        kept.astype(np.int32), coefficients, float(np.ravel(model.intercept_)[0])
    ), facts


def choose_own_weights(
    finder: InstanceFinder,
    judged: Sequence[ScoredHypothesis],
    weights: Sequence[float],
    alike: Sequence[list[int]],
) -> np.ndarray:
    """Choose, for each anchor, the weight of its detections that minimises the mean error.

    Errors are clipped at 10% of the reference length. The anchors in each group of ``alike`` have
    the same weight. See ``own_weights`` in :class:`ProbabilitySettings`.
    """
    n = len(finder.anchors)
    errors = np.zeros((len(weights), n))
    for shape in judged:
        keypoints = (finder.regressor.to_keypoints @ shape.refined.points)[:n]
        detected = finder.own_detections(shape.refined, shape.candidates)[0][:n]
        for row, weight in zip(errors, weights):
            moved = np.where(
                np.isfinite(detected), keypoints + weight * (detected - keypoints), keypoints
            )
            row += np.minimum(abs(moved - shape.truth[:n]) / shape.reference_length, 0.1)
    chosen = np.zeros(n)
    for group in alike:
        chosen[group] = weights[int(errors[:, group].sum(axis=1).argmin())]
    return chosen


def fit_probabilities(
    finder: InstanceFinder,
    judged: Sequence[ScoredHypothesis],
    keypoints_alike: Sequence[Sequence[int]],
    regularisation: float,
    reported: Sequence[tuple[np.ndarray, bool]] = (),
) -> InstanceProbabilities:
    """Fit logistic regressions for faces and for their keypoints.

    The keypoints in each group of ``keypoints_alike``, such as a mirror pair, share one fit. The
    regression for faces is fitted to ``reported`` (see `reported_faces`) if this includes both
    correct and incorrect faces, and to ``judged`` otherwise.
    """
    known = [shape for shape in judged if shape.is_face or shape.is_false]
    if len({is_face for _, is_face in reported}) < 2:
        reported = [(shape.refined.inputs, shape.is_face) for shape in known]
    inputs, is_face = zip(*reported, strict=True)
    face = _logistic(np.array(inputs), np.array(is_face), regularisation)
    n = len(finder.keypoints)
    rows, within = [], []
    for shape in known:
        if shape.is_face:
            detected, detected_log_odds = finder.own_detections(shape.refined, shape.candidates)
            rows.append(
                finder.point_inputs(
                    shape.refined, float(face @ shape.refined.inputs), detected, detected_log_odds
                )
            )
            within.append(
                abs(finder.combined(shape.refined, detected) - shape.truth) / shape.reference_length
            )
    all_inputs, errors = np.array(rows), np.array(within)
    fitted = {}
    for tolerance in (0.1, 0.05):
        weights = np.zeros((n, all_inputs.shape[2]))
        for group in keypoints_alike:
            mine = all_inputs[:, list(group)].reshape(-1, all_inputs.shape[2])
            weights[list(group)] = _logistic(
                mine, (errors[:, list(group)] <= tolerance).ravel(), regularisation
            )
        fitted[tolerance] = weights
    return InstanceProbabilities(face, fitted[0.1], fitted[0.05], 0.0)


def _logistic(inputs: np.ndarray, y: np.ndarray, regularisation: float) -> np.ndarray:
    """Return the weights (p,) of a logistic regression on inputs whose last column is one. The
    penalty applies to standardised inputs.
    """
    # If there is a single class, its share is smoothed by half an example added to each class
    if y.all() or not y.any():
        share = (y.sum() + 0.5) / (len(y) + 1)
        return np.append(np.zeros(inputs.shape[1] - 1), np.log(share / (1 - share)))
    values = inputs[:, :-1]
    mean, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 1e-9, scale, np.inf)
    model = LogisticRegression(C=regularisation, max_iter=1000).fit((values - mean) / scale, y)
    weights = model.coef_[0] / scale
    return np.append(weights, model.intercept_[0] - mean @ weights)
