"""Training stages for whole faces: assembly, refinement and probabilities."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from .....models.keypoints.detector import KeypointDetector
from .....models.keypoints.instances.instance_finder import InstanceFinder, probability_of
from ...data import AnnotatedImage, annotated
from ...measures import HIT, judge
from ..synthetic_views import hard_augmentations, hard_views
from ..windows import Split, TrainingJob
from .probabilities import (
    ProbabilitySettings,
    choose_own_weights,
    distinct_hypotheses,
    fit_probabilities,
    judged_hypotheses,
    reported_faces,
    train_classifier,
)
from .refinement import RegressionSettings, train_regressor, unrefined
from .shapes import AssemblySettings, SearchedImage, learn_assembler, score_log_odds, search_all

# maximum number of photographs whose hypotheses are in memory; of more, every n-th is used
# (heuristic)
_MAX_SEARCHED = 2000
_YAW_SEEDS = (1, 2)  # seeds of additional copies with a yaw that calibrate probabilities
_HARDER = 4  # every n-th harder copy trains the classifier of shapes (heuristic)


def train_assembly(
    job: TrainingJob, detector: KeypointDetector, settings: AssemblySettings
) -> tuple[KeypointDetector, dict]:
    """Fit the shape models, and calibrate the anchor scores on held-out photographs."""
    assembler = learn_assembler(job.split.fitted, settings)
    calibration, empty = job.split.calibration, held_out(job.split, settings.background)
    searched = search_all(
        detector, job.schema.anchors, [*calibration, *empty], (None, *settings.ied), job.n_jobs
    )
    cascade = detector.face_cascade
    whole = cascade is not None and bool(cascade.second or cascade.pool)
    slope, offset = score_log_odds(searched, job.schema, whole)
    assembler = replace(assembler, slope=slope, offset=offset)
    n = len(assembler.shape.mean) - len(job.schema.anchors)
    finder = InstanceFinder(assembler, unrefined(assembler.shape, job.schema), job.schema.keypoints)
    job.say(
        f"assembly: learning the shapes of {len(annotated(job.split.fitted))} photographs with "
        f"{n} points"
    )
    return replace(detector, finder=finder), {
        "points": n,
        "slope": slope.tolist(),
        "offset": offset.tolist(),
    }


def train_refinement(
    job: TrainingJob, detector: KeypointDetector, settings: RegressionSettings
) -> tuple[KeypointDetector, dict]:
    """Train the cascade that refines all points of a face."""
    finder = detector.finder
    assert finder is not None  # set by the stage before
    regressor, facts = train_regressor(job.split.fitted, finder.assembler.shape, settings, job.say)
    return replace(detector, finder=replace(finder, regressor=regressor)), facts


def train_probabilities(
    job: TrainingJob, detector: KeypointDetector, settings: ProbabilitySettings
) -> tuple[KeypointDetector, dict]:
    """Train the shape classifier, and calibrate the probabilities on held-out photographs."""
    finder, unit, s, schema = detector.finder, detector.reference_length, settings, job.schema
    assert finder is not None  # set by the stages before
    learnt = [
        image for image in backgrounds(job.split) if image not in held_out(job.split, s.background)
    ]
    harder = hard_views(job.split.fitted, s.seed)[::_HARDER] if schema.landmarks else []
    some = [*annotated(job.split.fitted)[: s.photographs], *harder]
    described = min(s.described, len(finder.regressor.stages) - bool(schema.landmarks))
    finder = replace(finder, regressor=replace(finder.regressor, described=described))
    false = judged_hypotheses(
        finder,
        search_all(detector, schema.anchors, [*some, *_thinned(learnt)], n_jobs=job.n_jobs),
        unit,
        s,
        twice=False,  # the classifier uses the histograms of the first refinement
    )
    classifier, facts = train_classifier(finder, [*job.split.fitted, *harder], false, s)
    job.say(
        f"probabilities: classifier trained on {facts['faces']} faces and "
        f"{facts['false_shapes']} false shapes"
    )
    finder = replace(finder, classifier=classifier)

    views = _thinned([*annotated(job.split.calibration), *held_out(job.split, s.background)])
    # Photographs of faces mostly show upright heads in good light.
    augmented = []
    if schema.landmarks:
        augmented = [view for kind in hard_augmentations(views).values() for view in kind]
        originals = [view for view in annotated(views) if view.view is None]
        for seed in _YAW_SEEDS:
            augmented += job.yaw_augmentations(originals, seed)
    shown = ((views, (None, *s.ied)), (augmented, (None,)))
    searched = chain(
        *(
            search_all(detector, schema.anchors, pictures, ied, job.n_jobs)
            for pictures, ied in shown
        )
    )
    judged = list(judged_hypotheses(finder, searched, unit, s))
    shapes = [shape for made in judged for shape in made]
    true = [shape for shape in shapes if shape.is_face]
    if not true:
        raise ValueError(
            "no face was detected in the held-out photographs; expected at least one to calibrate "
            "probabilities"
        )
    support = minimum_support(
        [shape.refined.support for shape in true], s.lost_fraction, shared=not schema.landmarks
    )
    job.say(
        f"probabilities: calibrated on {len(true)} faces and {len(shapes) - len(true)} other "
        "held-out shapes"
    )
    own_weight = choose_own_weights(finder, true, s.own_weights, schema.alike(schema.anchors))
    finder = replace(finder, own_weight=own_weight, min_support=support)
    alike = schema.alike(schema.keypoints)
    probabilities = fit_probabilities(finder, shapes, alike, s.regularisation)
    finder = replace(finder, probabilities=probabilities)
    detector = replace(detector, finder=finder)
    # upright objects are searched only once, so that the detector reports distinct hypotheses
    reported = list(
        reported_faces(detector, [*views, *augmented], s, job.n_jobs)
        if schema.landmarks or not schema.upright
        else distinct_hypotheses(finder, judged, s)
    )
    probabilities = fit_probabilities(finder, shapes, alike, s.regularisation, reported)
    finder = replace(finder, probabilities=probabilities)
    alone = alone_log_odds(
        finder, search_all(detector, schema.anchors, views, n_jobs=job.n_jobs), unit
    )
    finder = replace(finder, probabilities=replace(probabilities, alone=alone))
    return replace(detector, finder=finder), facts | {
        "own_weight": own_weight.tolist(),
        "shapes": len(shapes),
    }


def _thinned(images: list[AnnotatedImage]) -> list[AnnotatedImage]:
    return images[:: max(1, -(-len(images) // _MAX_SEARCHED))]


def backgrounds(split: Split) -> list[AnnotatedImage]:
    """Return the photographs without faces."""
    return [image for image, mirrored in split.views if not mirrored and not len(image.instances)]


def held_out(split: Split, every: int) -> list[AnnotatedImage]:
    """Return every n-th photograph without faces; these are not used to fit shapes."""
    return backgrounds(split)[::every]


def minimum_support(supports: Sequence[float], lost_fraction: float, *, shared: bool) -> float:
    """Return the support below which hypotheses are not refined.

    It is 0, which is slower, if there are too few correct hypotheses with known ``supports`` to
    lose a fraction of them, or if shapes that agree share their support. Hypotheses have less
    support before they are refined.
    """
    if shared or len(supports) * lost_fraction < 1:
        return 0.0
    return float(np.quantile(supports, lost_fraction))


def alone_log_odds(
    finder: InstanceFinder, searched: Iterable[SearchedImage], reference_length: float
) -> float:
    """Return the constant that is added to the log-odds of candidates outside assembled faces.

    It is chosen so that the probabilities of these candidates sum to the number of correct ones.
    """
    log_odds: list[float] = []
    correct = 0
    for view in searched:
        instances = finder.find(view.maxima, view.levels, reference_length, 0.0).instances
        truth, ied = view.keypoints(finder.regressor.to_keypoints), view.reference_length
        candidates = finder.assembler.candidates(view.maxima, reference_length)
        for i, name in enumerate(finder.anchors):
            mine = candidates.anchor == i
            place = candidates.position[mine]
            explained = np.zeros(len(place), bool)
            for instance in instances:
                explained |= (
                    abs(place - instance.places([name])) <= 0.15 * instance.reference_length
                )
            place, score = place[~explained], candidates.log_odds[mine][~explained]
            points = np.stack([truth[:, i].real, truth[:, i].imag], axis=1)
            one = judge(
                np.stack([place.real, place.imag], axis=1),
                score,
                points,
                np.ones(len(points), bool),
                ied,
                tolerance=0.1,
            )
            correct += int((one.outcome == HIT).sum())
            log_odds += score.tolist()
    if not log_odds:
        return 0.0
    values, share, low, high = np.array(log_odds), (correct + 0.5) / len(log_odds), -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if np.mean(probability_of(values + middle)) > share else (middle, high)
        )
    return min(middle, 0.0)
