"""The probabilities of detected objects are fitted to what the detector reports."""

from types import SimpleNamespace

import numpy as np
from annealed.models.keypoints.instances.instance_finder import probability_of
from annealed.pipelines.keypoints.training.instances.probabilities import (
    ProbabilitySettings,
    distinct_hypotheses,
    fit_probabilities,
    reported_faces,
    train_classifier,
)


def hypothesis(inputs, is_face):
    """Return a judged hypothesis with three keypoints."""
    return SimpleNamespace(
        refined=SimpleNamespace(inputs=inputs),
        candidates=None,
        is_face=is_face,
        is_false=not is_face,
        truth=np.zeros(3, complex),
        reference_length=10.0,
    )


FINDER = SimpleNamespace(
    keypoints=("a", "b", "c"),
    own_detections=lambda refined, candidates: (np.zeros(3, complex), np.zeros(3)),
    point_inputs=lambda refined, log_odds, positions, log_odds_of: np.full((3, 8), 1.0),
    combined=lambda refined, positions: np.zeros(3, complex),
)


def inputs_of(scores):
    """Return the inputs of hypotheses that differ in their scores alone."""
    return np.column_stack([scores, np.zeros((len(scores), 3)), np.ones(len(scores))])


def test_probabilities_are_calibrated_on_what_is_reported():
    """The best of several false hypotheses has a higher score than a single one."""
    rng = np.random.default_rng(0)
    true, false = rng.normal(2, 1, 4000), rng.normal(-2, 1, (4000, 20))
    hypotheses = [hypothesis(row, True) for row in inputs_of(true[:400])] + [
        hypothesis(row, False) for row in inputs_of(false[:400, 0])
    ]
    reported = [(row, True) for row in inputs_of(true)] + [
        (row, False) for row in inputs_of(false.max(axis=1))
    ]
    at_once = fit_probabilities(FINDER, hypotheses, [[0, 1, 2]], 1.0)
    final = fit_probabilities(FINDER, hypotheses, [[0, 1, 2]], 1.0, reported)
    rows, labels = np.array([row for row, _ in reported]), np.array([y for _, y in reported])
    errors = []
    for face in (at_once.face, final.face):
        p = probability_of(rows @ face)
        band = (p > 0.3) & (p < 0.7)
        errors.append(abs(p[band].mean() - labels[band].mean()))
    assert errors[1] < 0.05 < 0.2 < errors[0]
    one_class = fit_probabilities(FINDER, hypotheses, [[0, 1, 2]], 1.0, reported[:10])
    np.testing.assert_array_equal(one_class.face, at_once.face)


def test_reported_faces_are_compared_with_the_annotations():
    points = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 8.0]])

    def instance(shift):
        places = points + shift
        return SimpleNamespace(
            places=lambda: places @ [1, 1j],
            landmarks=places,
            appearance=np.ones((3, 2)),
            support=2.0,
            reference_length=30.0,
            pose=SimpleNamespace(yaw=-0.5),
        )

    instances = [instance([shift, 0.0]) for shift in (1.0, 2.0, 40.0, 80.0)]
    finder = SimpleNamespace(
        classifier=SimpleNamespace(score=lambda histograms: histograms.sum()),
        regressor=SimpleNamespace(to_keypoints=np.eye(3)),
        anchors=("a", "b"),
    )
    detector = SimpleNamespace(
        finder=finder,
        find=lambda pixels, min_probability: SimpleNamespace(instances=instances),
    )
    image = SimpleNamespace(
        pixels=lambda: None,
        points=points[None] @ [1, 1j],
        reference_length=np.array([10.0]),
        ignore=np.array([[75.0, -5.0, 100.0, 20.0]]),
    )
    result = list(reported_faces(detector, [image], ProbabilitySettings(), 1))
    # 0.1 and 4 lengths from the face; 0.2 lengths is neither, and the last one is to be ignored.
    assert [is_face for _, is_face in result] == [True, False]
    np.testing.assert_allclose(result[0][0], [6.0, 2.0, 0.0, 0.5, 1.0])
    inexact = ProbabilitySettings(reported=(0.5, 0.5))
    result = list(reported_faces(detector, [image], inexact, 1))
    assert [is_face for _, is_face in result] == [True, True, False]


def test_distinct_hypotheses_are_those_that_the_detector_reports():
    made = [
        SimpleNamespace(refined=SimpleNamespace(inputs=np.full(5, float(i))), error=error)
        for i, error in enumerate((0.1, 0.2, 3.0, 4.0))
    ]
    log_odds = (3.0, 2.0, 1.0, -9.0)  # the last one is too improbable to be reported
    finder = SimpleNamespace(distinct=lambda shapes: list(zip(log_odds, shapes, strict=True)))
    result = list(distinct_hypotheses(finder, [made], ProbabilitySettings()))
    # an error of 0.2 lengths is neither correct nor incorrect
    assert [(row[0], is_face) for row, is_face in result] == [(0.0, True), (2.0, False)]


def test_the_classifier_of_objects_learns_from_detected_shapes():
    rng = np.random.default_rng(0)

    def shape(is_face):
        values = rng.normal(is_face, 0.2, (2, 128)).astype(np.float32)
        refined = SimpleNamespace(histograms=values)
        return SimpleNamespace(refined=refined, is_face=is_face, is_false=not is_face)

    judged = [[shape(True), shape(False)] for _ in range(40)]
    image = SimpleNamespace(schema=SimpleNamespace(landmarks={}))
    finder = SimpleNamespace(regressor=None)  # there are no copies to refine
    classifier, facts = train_classifier(finder, [image], judged, ProbabilitySettings())
    assert facts == {"faces": 40, "false_shapes": 40}
    scores = [[classifier.score(one.refined.histograms) for one in made] for made in judged]
    assert min(np.transpose(scores)[0]) > 0 > max(np.transpose(scores)[1])
