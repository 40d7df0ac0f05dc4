"""Trains the cascaded shape regression that predicts chin and ears (``annealed faces train --mode``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.guided_search import Mode
from ....models.keypoints.shape_model import ShapeModel, learn_shape
from ....models.keypoints.shape_regression import RegressionStep, ShapeRegressor, cut_window
from ....vision.images import read_image
from ....vision.pyramid import Level, gaussian_pyramid
from ....vision.windows.feature_pool import FeaturePool
from ..average_precision import NEAR, Curve, judge, pooled
from ..data import KEYPOINTS, MIRROR, MIRROR_ORDER, FaceImage
from .fitting import FitSettings, fit_offsets
from .views import SCALES_PER_OCTAVE, Near, each, gather_near, open_view

ANCHORS = ("left_eye", "right_eye", "left_nose", "right_nose", "left_mouth", "right_mouth")
_WEIGHTS = (0.0, 1.0, 3.0, 10.0, 30.0)  # of the classifier's score: the held-out photographs select one
_MATCH = 0.3  # IED: errors of position are measured on predictions this near. A choice


@dataclass(frozen=True)
class ShapeSettings:
    """Settings of the shape regressor. Distances are in IED.

    Parameters
    ----------
    noise : float
        Standard deviation of a detected anchor that the point distribution model assumes.
    anchor_errors : tuple of float
        Standard deviations of the random errors added to annotated anchors: eyes, nose sides, mouth corners.
    missing : float
        Share of the windows for which one anchor is left out.
    ied : tuple of float
        IED in pixels of the regressors' windows, one regressor after the other.
    repeat : int
        Number of times that the last regressor is applied.
    jitter : float
        Standard deviation of the first prediction around the annotation in the training of the second regressor.
    n_features : int
        Features of each regressor.
    per_view : int
        Windows from each view.
    first_rows : int
        Rows of the first stage of a fit.
    shrinkage : float
        Ridge penalty; windows of the same face are much alike.
    seed : int
        Seed of all random choices.
    """

    noise: float = 0.02
    anchor_errors: tuple[float, float, float] = (0.025, 0.035, 0.045)
    missing: float = 0.2
    ied: tuple[float, float] = (12.0, 20.0)
    repeat: int = 2
    jitter: float = 0.08
    n_features: int = 500
    per_view: int = 6
    first_rows: int = 4_000
    shrinkage: float = 0.3
    seed: int = 0


class _View(NamedTuple):
    """All keypoints of one face in a view, complex; which are visible; the view's pyramid."""

    points: np.ndarray
    visible: np.ndarray
    levels: list[Level]


def _open_faces(image: FaceImage, mirrored: bool, finest: float) -> list[_View]:
    pixels = open_view(image, KEYPOINTS[0], mirrored).pixels
    shown = image.mirrored(pixels.shape[1]) if mirrored else image
    anchors = [KEYPOINTS.index(name) for name in ANCHORS]
    usable = np.isfinite(shown.faces[:, anchors]).all(axis=(1, 2))
    if not usable.any():
        return []
    levels = gaussian_pyramid(pixels, SCALES_PER_OCTAVE, min_scale=finest / (1.5 * image.ied[usable].max()))
    points = shown.faces[usable, :, 0] + 1j * shown.faces[usable, :, 1]
    return [_View(place, seen, levels) for place, seen in zip(points, shown.visible[usable])]


def shape_of(images: Sequence[FaceImage], noise: float) -> ShapeModel:
    """Relative positions of the nine keypoints, from faces and their mirror images."""
    faces = np.concatenate([image.faces for image in images])
    visible = np.concatenate([image.visible for image in images])
    both = np.concatenate([faces, faces[:, MIRROR_ORDER] * [-1, 1]])
    anchors = np.array([KEYPOINTS.index(name) for name in ANCHORS])
    return learn_shape(both, np.concatenate([visible, visible[:, MIRROR_ORDER]]), KEYPOINTS, anchors, noise)


def train_shape_regressor(
    keypoints: Sequence[str],
    images: Sequence[FaceImage],
    settings: ShapeSettings,
    pool: FeaturePool,
    say: Callable[[str], None] = print,
    n_jobs: int = 1,
) -> ShapeRegressor:
    """Train the prediction of some keypoints, none of them an anchor, from the anchors.

    Mirror images are added to the photographs; a right keypoint is the mirror image of the left one.
    """
    s = settings
    shape = shape_of(images, s.noise)
    errors = np.zeros(len(KEYPOINTS))
    errors[shape.anchors] = np.repeat(s.anchor_errors, 2)
    views = [(image, flip) for image in images for flip in (False, True)]
    cascades: dict[str, tuple[RegressionStep, ...]] = {}
    for name in dict.fromkeys(MIRROR[name] if name.startswith("right") else name for name in keypoints):
        k = KEYPOINTS.index(name)
        steps: list[RegressionStep] = []
        for stage, ied in enumerate(s.ied):

            def windows(number: int, image: FaceImage, flip: bool, stage: int = stage, ied: float = ied, k: int = k) -> Near:
                rng = np.random.default_rng([s.seed, 20, k, stage, number])
                patches, offsets = [], []
                for points, seen, levels in _open_faces(image, flip, ied):
                    for _ in range(s.per_view if seen[k] else 0):
                        which = shape.anchors
                        if rng.random() < s.missing:
                            which = np.delete(which, rng.integers(len(which)))
                        noise = errors[which] * (rng.normal(size=len(which)) + 1j * rng.normal(size=len(which)))
                        expected, transform = shape.predict(points[which] + noise * abs(points[0] - points[1]), which)
                        position = expected[k]
                        if stage:
                            position = points[k] + transform.scale_rotation * s.jitter * complex(rng.normal(), rng.normal())
                        unit = transform.scale_rotation / ied
                        patches.append(cut_window(levels, position, unit, pool.window))
                        offset = (points[k] - position) / unit
                        offsets.append([offset.real, offset.imag])
                return Near(np.array(patches), np.array(offsets))

            patches, offsets = gather_near(views, windows, pool.window, n_jobs)
            fit = FitSettings(n_features=s.n_features, first_rows=s.first_rows, shrinkage=s.shrinkage)
            model = fit_offsets(patches, offsets, pool, fit, [s.seed, 21, k, stage])
            left = np.hypot(*(model.predict(patches[::7], pool) - offsets[::7]).T) / ied
            say(f"{name}: regression step {stage + 1} on {len(patches)} windows, median error {np.median(left):.3f} IED")
            steps.append(RegressionStep(model, ied))
        steps += [steps[-1]] * (s.repeat - 1)
        if name in keypoints:
            cascades[name] = tuple(steps)
        if MIRROR[name] != name and MIRROR[name] in keypoints:
            cascades[MIRROR[name]] = tuple(replace(step, model=step.model.mirrored(pool)) for step in steps)
    return ShapeRegressor(shape, cascades)


@dataclass
class _Predictions:
    """Faces of one photograph: their scores and IED, and per keypoint the predicted positions and the classifier's scores."""

    image: FaceImage
    face: np.ndarray
    ied: np.ndarray
    positions: dict[str, np.ndarray] = field(default_factory=dict)
    own: dict[str, np.ndarray] = field(default_factory=dict)

    def scores(self, name: str, weight: float) -> np.ndarray:
        """Scores of a keypoint's predictions."""
        return self.face + weight * self.own[name]

    def moved(self, name: str, shift: complex) -> np.ndarray:
        """Positions after a shift in units of the IED."""
        return self.positions[name] + shift * self.ied


def _predict_all(
    detector: KeypointDetector, regressor: ShapeRegressor, images: Sequence[FaceImage], mode: str, n_jobs: int
) -> list[_Predictions]:
    thresholds = {name: detector.models[name].threshold for name in regressor.anchors}
    max_faces = 10  # a choice: most photographs hold one

    def predict(image: FaceImage) -> _Predictions:
        levels = detector.pyramid(read_image(image.path))
        faces = regressor.faces(detector.detect_anchors(levels, mode), thresholds, detector.reference_ied, max_faces)
        ied = [regressor.shape.predict(face.found, face.which)[1].ied for face in faces]
        made = _Predictions(image, np.array([face.score for face in faces]), np.array(ied))
        for name in regressor.steps:
            model, pool, unit = detector.models[name], detector.pool, detector.reference_ied
            found = [regressor.predict(face, levels, name, pool, model, unit) for face in faces]
            made.positions[name] = np.array([one.position for one in found], complex)
            made.own[name] = np.array([one.classifier_score for one in found])
        return made

    return list(each(images, predict, n_jobs))


def _median_error(predictions: Sequence[_Predictions], name: str) -> complex:
    """Median vector from the predictions of a keypoint to the annotations, in IED: annotators are not symmetric."""
    k = KEYPOINTS.index(name)
    errors = []
    for made in predictions:
        for points, seen, ied in zip(made.image.faces, made.image.visible, made.image.ied):
            if seen[k] and len(made.face):
                error = (complex(*points[k]) - made.positions[name]) / ied
                errors.append(error[np.argmin(abs(error))])
    near = np.array([error for error in errors if abs(error) < _MATCH] or [0j])
    return complex(np.median(near.real), np.median(near.imag))


def _curve(predictions: Sequence[_Predictions], name: str, shift: complex, weight: float, tolerance: float) -> Curve:
    k = KEYPOINTS.index(name)
    judged = []
    for made in predictions:
        image, moved = made.image, made.moved(name, shift)
        xy = np.stack([moved.real, moved.imag], axis=1)
        points, seen = image.faces[:, k], image.visible[:, k]
        judged.append(judge(xy, made.scores(name, weight), points, seen, image.ied, image.ignore, tolerance))
    return pooled(judged)


def _min_face_score(
    predictions: Sequence[_Predictions], shifts: dict[str, complex], weight: float, thresholds: dict[str, float]
) -> float:
    """Score that all but 2 % of the faces with a correct prediction above the default thresholds reach: others can be skipped."""
    correct_faces = [np.empty(0)]
    for made in predictions:
        points = made.image.faces[..., 0] + 1j * made.image.faces[..., 1]
        for name, shift in shifts.items():
            k = KEYPOINTS.index(name)
            distance = abs(made.moved(name, shift)[:, None] - points[:, k]) / made.image.ied
            correct = ((distance <= NEAR) & made.image.visible[:, k]).any(axis=1)
            correct_faces.append(made.face[correct & (made.scores(name, weight) >= thresholds[name])])
    scores = np.concatenate(correct_faces)
    return float(np.quantile(scores, 0.02)) if len(scores) else 0.0


def calibrate_shape_regressor(
    detector: KeypointDetector, images: Sequence[FaceImage], precision: float, mode: str = Mode.SCAN, n_jobs: int = 1
) -> tuple[ShapeRegressor, dict[str, dict[str, float]]]:
    """Centre the predictions, and select the classifier's weight and the default thresholds, on held-out photographs.

    Unlike everything else this uses photographs only, not their mirror images: annotators are not symmetric. Anchors are
    detected in that mode. Scores: average precision at 5 % and 10 % IED per keypoint.
    """
    regressor = detector.shape_regressor
    if regressor is None:
        raise ValueError("the detector has no shape regressor to calibrate")
    predictions = _predict_all(detector, regressor, images, mode, n_jobs)
    names = list(regressor.steps)
    shifts = {name: _median_error(predictions, name) for name in names}
    steps = dict(regressor.steps)
    for name, shift in shifts.items():
        last = steps[name][-1]
        moved = (last.model.intercept + last.ied * np.array([shift.real, shift.imag])).astype(np.float32)
        steps[name] = (*steps[name][:-1], RegressionStep(replace(last.model, intercept=moved), last.ied))

    def curve_of(name: str, weight: float, tolerance: float) -> Curve:
        return _curve(predictions, name, shifts[name], weight, tolerance)

    weight = max(_WEIGHTS, key=lambda w: np.mean([curve_of(name, w, NEAR).average_precision for name in names]))
    scores, thresholds = {}, {}
    for name in names:
        coarse = curve_of(name, weight, NEAR)
        scores[name] = {"ap_5": curve_of(name, weight, 0.05).average_precision, "ap_10": coarse.average_precision}
        recall, threshold = coarse.at_precision(precision)
        balanced, lower = coarse.at_balance()
        if recall < 0.5 * balanced:  # that precision costs too much
            threshold = lower
        thresholds[name] = threshold if np.isfinite(threshold) else 0.0
    least = _min_face_score(predictions, shifts, weight, thresholds)
    made = replace(regressor, steps=steps, classifier_weight=weight, thresholds=thresholds, min_face_score=least)
    return made, scores
