"""Trains how chin and ears are told from the rest of the face (``annealed faces train --mode``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.shape_model import ShapeModel, learn_shape
from ....models.keypoints.shape_regression import Context, Refinement, cut_window
from ....vision.images import read_image
from ....vision.pyramid import Level, gaussian_pyramid
from ....vision.windows.feature_pool import FeaturePool
from ..average_precision import judge, pooled
from ..data import KEYPOINTS, MIRROR, FaceImage
from .fitting import FitSettings, fit_offsets
from .views import SCALES_PER_OCTAVE, Near, each, gather_near, open_view

ANCHORS = ("left_eye", "right_eye", "left_nose", "right_nose", "left_mouth", "right_mouth")
_WEIGHTS = (0.0, 1.0, 3.0, 10.0, 30.0)  # of the verifier's score: the held-out photographs choose


@dataclass(frozen=True)
class ContextSettings:
    """How the context is learnt. Distances in IED.

    Attributes
    ----------
    noise : float
        Standard deviation of a detected anchor that the Gaussian model assumes.
    anchor_errors : tuple of float
        Standard deviations of the errors put on annotated anchors: eyes, nose sides, mouth corners.
    missing : float
        Share of the windows for which one anchor is left out.
    ied : tuple of float
        IED in pixels of the regressors' windows, one regressor after the other.
    repeat : int
        How often the last regressor is applied.
    jitter : float
        Standard deviation of the first answer around the truth, from which the second regressor learns.
    n_features : int
        Of each regressor.
    per_view : int
        Windows of each view.
    first_rows : int
        Rows of the first stage of a fit.
    shrinkage : float
        Ridge: windows of the same face are much alike.
    seed : int
        Of all draws.
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


def _look(image: FaceImage, mirrored: bool, finest: float) -> list[_View]:
    pixels = open_view(image, KEYPOINTS[0], mirrored).pixels
    faces, visible = image.faces, image.visible
    if mirrored:
        order = [KEYPOINTS.index(MIRROR[name]) for name in KEYPOINTS]
        faces = np.stack([pixels.shape[1] - 1 - faces[:, order, 0], faces[:, order, 1]], axis=-1)
        visible = visible[:, order]
    anchors = [KEYPOINTS.index(name) for name in ANCHORS]
    usable = np.isfinite(faces[:, anchors]).all(axis=(1, 2))
    if not usable.any():
        return []
    levels = gaussian_pyramid(pixels, SCALES_PER_OCTAVE, min_scale=finest / (1.5 * image.ied[usable].max()))
    return [_View(points[:, 0] + 1j * points[:, 1], seen, levels) for points, seen in zip(faces[usable], visible[usable])]


def shape_of(images: Sequence[FaceImage], noise: float) -> ShapeModel:
    """Relative positions of the nine keypoints, from faces and their mirror images."""
    faces = np.concatenate([image.faces for image in images])
    visible = np.concatenate([image.visible for image in images])
    order = [KEYPOINTS.index(MIRROR[name]) for name in KEYPOINTS]
    both = np.concatenate([faces, faces[:, order] * [-1, 1]])
    anchors = np.array([KEYPOINTS.index(name) for name in ANCHORS])
    return learn_shape(both, np.concatenate([visible, visible[:, order]]), KEYPOINTS, anchors, noise)


def train_context(
    keypoints: Sequence[str],
    images: Sequence[FaceImage],
    settings: ContextSettings,
    pool: FeaturePool,
    say: Callable[[str], None] = print,
    n_jobs: int = 1,
) -> Context:
    """Learn to tell some keypoints from the anchors.

    Parameters
    ----------
    keypoints : list of str
        Which ones, none of them an anchor. A right one is the mirror image of the left one.
    images : list of FaceImage
        Photographs to learn from; their mirror images are added.
    settings : ContextSettings
    pool : FeaturePool
    say : function
        Takes lines about the progress.
    n_jobs : int
        Threads that read photographs; the result does not depend on it.

    Returns
    -------
    Context
    """
    s = settings
    shape = shape_of(images, s.noise)
    errors = np.zeros(len(KEYPOINTS))
    errors[shape.anchors] = np.repeat(s.anchor_errors, 2)
    views = [(image, flip) for image in images for flip in (False, True)]
    refinements: dict[str, tuple[Refinement, ...]] = {}
    for name in dict.fromkeys(MIRROR[name] if name.startswith("right") else name for name in keypoints):
        k = KEYPOINTS.index(name)
        steps: list[Refinement] = []
        for stage, ied in enumerate(s.ied):

            def windows(number: int, image: FaceImage, flip: bool, stage: int = stage, ied: float = ied, k: int = k) -> Near:
                rng = np.random.default_rng([s.seed, 20, k, stage, number])
                patches, offsets = [], []
                for points, seen, levels in _look(image, flip, ied):
                    for _ in range(s.per_view if seen[k] else 0):
                        which = shape.anchors
                        if rng.random() < s.missing:
                            which = np.delete(which, rng.integers(len(which)))
                        noise = errors[which] * (rng.normal(size=len(which)) + 1j * rng.normal(size=len(which)))
                        expected, frame = shape.complete(points[which] + noise * abs(points[0] - points[1]), which)
                        place = expected[k]
                        if stage:
                            place = points[k] + frame.turn * s.jitter * complex(rng.normal(), rng.normal())
                        unit = frame.turn / ied
                        patches.append(cut_window(levels, place, unit, pool.window))
                        offset = (points[k] - place) / unit
                        offsets.append([offset.real, offset.imag])
                return Near(np.array(patches), np.array(offsets))

            patches, offsets = gather_near(views, windows, pool.window, n_jobs)
            fit = FitSettings(n_features=s.n_features, first_rows=s.first_rows, shrinkage=s.shrinkage)
            model = fit_offsets(patches, offsets, pool, fit, [s.seed, 21, k, stage])
            left = np.hypot(*(model.predict(patches[::7], pool) - offsets[::7]).T) / ied
            say(f"{name}: regressor {stage + 1} of the context on {len(patches)} windows, median error {np.median(left):.3f} IED")
            steps.append(Refinement(model, ied))
        steps += [steps[-1]] * (s.repeat - 1)
        if name in keypoints:
            refinements[name] = tuple(steps)
        if MIRROR[name] != name and MIRROR[name] in keypoints:
            refinements[MIRROR[name]] = tuple(replace(step, model=step.model.mirrored(pool)) for step in steps)
    return Context(shape, refinements)


@dataclass
class _Told:
    """What the context says in one photograph: places per keypoint, faces' and verifiers' scores, IED."""

    image: FaceImage
    face: np.ndarray
    ied: np.ndarray
    place: dict[str, np.ndarray] = field(default_factory=dict)
    verified: dict[str, np.ndarray] = field(default_factory=dict)


def calibrate_context(
    detector: KeypointDetector, images: Sequence[FaceImage], precision: float, mode: str = "scan", n_jobs: int = 1
) -> tuple[Context, dict[str, dict[str, float]]]:
    """Centre the last answers, and choose the verifier's weight and the default threshold, on photographs that were not fitted.

    Unlike everything else this looks at photographs only, not at their mirror images: annotators have habits.

    Returns
    -------
    context : Context
    scores : dict of str to dict
        AP at 5 % and 10 % per keypoint.
    """
    context = detector.context
    assert context is not None
    names = list(context.refinements)

    def look(image: FaceImage) -> _Told:
        pixels = read_image(image.path)
        levels = detector.pyramid(pixels)
        peaks = detector.anchor_peaks(levels, mode)
        faces = context.faces(peaks, {name: detector.classifier(name, mode).threshold for name in context.anchors}, 10)
        told = _Told(image, np.array([face.score for face in faces]), np.empty(0))
        frames = [context.shape.complete(face.found, face.which)[1] for face in faces]
        told.ied = np.array([abs(frame.turn) for frame in frames])
        for name in names:
            answers = [context.place(face, levels, name, detector.pool, detector.models[name]) for face in faces]
            told.place[name] = np.array([place for place, _, _ in answers], complex)
            told.verified[name] = np.array([verified for _, _, verified in answers])
        return told

    tellings = list(each(images, look, n_jobs))
    refinements, shifts = dict(context.refinements), {}
    for name in names:
        k = KEYPOINTS.index(name)
        errors = []
        for told in tellings:
            for points, seen, ied in zip(told.image.faces, told.image.visible, told.image.ied):
                if seen[k] and len(told.face):
                    error = (complex(*points[k]) - told.place[name]) / ied
                    errors.append(error[np.argmin(abs(error))])
        near = np.array([error for error in errors if abs(error) < 0.3] or [0j])
        shifts[name] = complex(np.median(near.real), np.median(near.imag))
        last = refinements[name][-1]
        moved = (last.model.intercept + last.ied * np.array([shifts[name].real, shifts[name].imag])).astype(np.float32)
        refinements[name] = (*refinements[name][:-1], Refinement(replace(last.model, intercept=moved), last.ied))

    def curve_of(name: str, weight: float, tolerance: float):
        k = KEYPOINTS.index(name)
        judged = []
        for told in tellings:
            place = told.place[name] + shifts[name] * told.ied
            score = told.face + weight * told.verified[name]
            image = told.image
            xy = np.stack([place.real, place.imag], axis=1)
            judged.append(judge(xy, score, image.faces[:, k], image.visible[:, k], image.ied, image.ignore, tolerance))
        return pooled(judged)

    weight = max(_WEIGHTS, key=lambda w: np.mean([curve_of(name, w, 0.1).average_precision for name in names]))
    scores = {}
    thresholds = {}
    for name in names:
        coarse = curve_of(name, weight, 0.1)
        scores[name] = {"ap_5": curve_of(name, weight, 0.05).average_precision, "ap_10": coarse.average_precision}
        recall, threshold = coarse.at_precision(precision)
        balanced, lower = coarse.at_balance()
        if recall < 0.5 * balanced:  # that precision costs too much
            threshold = lower
        thresholds[name] = threshold if np.isfinite(threshold) else 0.0
    # Faces that hardly ever give a right answer above the default thresholds need not be looked at.
    answering = [np.empty(0)]
    for told in tellings:
        points = told.image.faces[..., 0] + 1j * told.image.faces[..., 1]
        for name in names:
            k = KEYPOINTS.index(name)
            distance = abs((told.place[name] + shifts[name] * told.ied)[:, None] - points[:, k]) / told.image.ied
            right = ((distance <= 0.1) & told.image.visible[:, k]).any(axis=1)
            answering.append(told.face[right & (told.face + weight * told.verified[name] >= thresholds[name])])
    enough = np.concatenate(answering)
    least = float(np.quantile(enough, 0.02)) if len(enough) else 0.0
    return replace(context, refinements=refinements, weight=weight, thresholds=thresholds, least=least), scores
