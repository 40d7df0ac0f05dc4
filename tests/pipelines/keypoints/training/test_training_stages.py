"""Small trainings of guides and whole faces on painted faces, and the command that writes them into
one file."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints.detections import DetectionOptions
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.windows.window_models import KeypointModel, Localisation
from annealed.pipelines.keypoints.faces import ANCHORS, KEYPOINTS
from annealed.pipelines.keypoints.training.instances.augmentation import AugmentationSettings
from annealed.pipelines.keypoints.training.instances.probabilities import ProbabilitySettings
from annealed.pipelines.keypoints.training.instances.refinement import RegressionSettings
from annealed.pipelines.keypoints.training.instances.shapes import AssemblySettings
from annealed.pipelines.keypoints.training.instances.train import minimum_support
from annealed.pipelines.keypoints.training.stages import (
    DetectorSettings,
    train_detector,
    train_face_cascade,
    train_guides,
    train_second,
)
from annealed.pipelines.keypoints.training.windows.cascade import (
    cascade_for_recall,
    cheapest_order,
    expected_cost,
    with_order,
)
from annealed.pipelines.keypoints.training.windows.classifier import TrainingJob
from annealed.pipelines.keypoints.training.windows.fitting import TrainingSettings
from annealed.pipelines.keypoints.training.windows.guided_search import (
    GuidedTraining,
    GuideSettings,
    train_guide,
)
from annealed.pipelines.keypoints.training.windows.second_node import SecondNodeSettings
from annealed.pipelines.keypoints.training.windows.views import FACE, expected_positions, open_view
from annealed.vision.pyramid import gaussian_pyramid
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.responses import Responses
from clusters import assert_same_on_a_cluster
from helpers import face_images

POOL = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "centre")}, sides=(3, 6), hog=None)
GUIDE = GuideSettings(n_offsets=40, first_rows=500, per_level=4)
SMALL = TrainingSettings(
    n_features=30,
    first_rows=500,
    n_steps=6,
    final_steps=12,
    rounds=1,
    n_random=400,
    per_round=200,
    views_per_round=12,
)
NEAR = replace(SMALL, negative_distance=0.15, negative_pixels=4.0)
COPIES = AugmentationSettings(copies=1, incomplete=0.0)
FACES = {
    "assembly": AssemblySettings(ied=(24.0,)),
    "refinement": RegressionSettings(COPIES, 2, 1, (20, 24), (5, 4), 60, 10),
    # Some starts so far away that they end beside the face: false shapes to learn from.
    "probabilities": ProbabilitySettings(
        20, augmentation=replace(COPIES, shifted=0.6, scaled=0.3), ied=(24.0,)
    ),
}
WHOLE = DetectorSettings(
    0.25,
    SMALL,
    replace(SMALL, ied_low=7.07, ied_high=14.14, lost_fraction=0.05),
    GUIDE,
    NEAR,
    **FACES,
    second_node=SecondNodeSettings(
        n_features=40, first_rows=400, n_steps=6, final_steps=12, sides=(6, 12)
    ),
)
LAYOUT = np.array(
    [
        [0.5, -0.4],
        [-0.5, -0.4],
        [0.2, 0.1],
        [-0.2, 0.1],
        [0.35, 0.45],
        [-0.35, 0.45],
        [1.1, -0.3],
        [-1.1, -0.3],
        [0, 1.1],
    ]
)


def paint(seed):
    """Dots for all keypoints on a blurred ground; chin and ears lie where the rest does not
    tell."""
    rng = np.random.default_rng(seed)
    pixels = cv2.resize(
        rng.integers(90, 160, (10, 12, 3), dtype=np.uint8),
        (160, 140),
        interpolation=cv2.INTER_CUBIC,
    )
    ied = rng.uniform(26, 34)
    points = np.array([rng.uniform(65, 95), rng.uniform(50, 75)]) + ied * LAYOUT
    points[6:] += rng.normal(size=(3, 2)) * 0.12 * ied
    for k, (x, y) in enumerate(points):
        place = (round(16 * x), round(16 * y))
        cv2.circle(
            pixels,
            place,
            round(16 * ied * 0.13),
            (250, 250, 250) if k >= 6 else (10, 10, 10),
            -1,
            cv2.LINE_AA,
            4,
        )
        cv2.circle(
            pixels,
            place,
            round(16 * ied * 0.05),
            (200, 60, 60) if k < 4 else (60, 60, 200),
            -1,
            cv2.LINE_AA,
            4,
        )
    return pixels, points[None], np.ones((1, 9), bool)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    return face_images(tmp_path_factory.mktemp("dots"), map(paint, range(40)))


def views(images):
    return [(image, flip) for image in images for flip in (False, True)]


def test_a_guide_leads_to_the_keypoint(photographs):
    said = []
    guide, scores = train_guide(
        "left_eye", views(photographs[:30]), views(photographs[30:]), GUIDE, POOL, said.append
    )
    assert scores["offset_error"] < 2.0 and len(said) == 1
    near = 0
    for image in photographs[30:]:
        view = open_view(image, "left_eye", False)
        detector = KeypointDetector({"left_eye": None}, POOL, guides={"left_eye": guide})
        wanted = []
        for level in gaussian_pyramid(view.pixels):
            if 20 <= view.reference_length[0] * level.scale <= 40:
                for strip in detector.search.strips(level, "regress"):
                    x, y = guide.windows(strip, POOL, guide.grid_points(strip), 28.3)
                    wanted.append(level.to_image(np.column_stack([x, y])))
        distance = np.hypot(*(np.concatenate(wanted) - view.points[0]).T)
        near += distance.min() < 1.5
    assert near >= 9
    again, _ = train_guide(
        "left_eye", views(photographs[:30]), views(photographs[30:]), GUIDE, POOL, said.append, 3
    )
    np.testing.assert_array_equal(again.offsets.responses.values, guide.offsets.responses.values)


def test_the_middle_of_a_face(photographs):
    image = photographs[0]
    view = open_view(image, FACE, False)
    np.testing.assert_allclose(view.points, image.instances[:, :6].mean(axis=1))
    assert (
        view.visible.all()
        and not open_view(replace(image, visible=np.zeros((1, 9), bool)), FACE, False).visible.any()
    )
    expected = expected_positions(photographs)
    np.testing.assert_allclose(expected["left_eye"], [0.5, -0.45], atol=1e-6)
    np.testing.assert_allclose(expected["right_nose"], np.array(expected["left_nose"]) * [-1, 1])
    only_eyes = replace(
        image, instances=np.where(np.arange(9)[:, None] < 2, image.instances, np.nan)
    )
    assert set(expected_positions([only_eyes])) == {"left_eye", "right_eye"}


def job(photographs, folder, **options):
    stages = ("face_cascade", "second_node", "guide", "classifier")
    return TrainingJob(
        photographs,
        [],
        WHOLE,
        stages,
        ["left_eye", "right_eye"],
        POOL,
        folder,
        say=lambda line: None,
        **options,
    )


def test_classifiers_learn_from_what_cascade_and_guide_point_at(photographs, tmp_path):
    work = job(photographs, tmp_path)
    detector, facts = train_face_cascade(work, KeypointDetector({}, POOL))
    assert facts["held_out"]["ap_10"] > 0.3 and detector.face_cascade.coarser == pytest.approx(
        2**-1.5
    )
    detector, facts = train_second(work, detector)
    # The dots differ from everything else: both nodes find nearly all, and little else.
    assert facts["passed"] >= 0.9 * facts["objects"] and facts["false_per_view"] < 2
    assert facts["detected"] >= 0.95 * facts["passed"]
    second = detector.face_cascade.second
    again, same = train_second(replace(work, resume=True), detector)
    np.testing.assert_array_equal(
        again.face_cascade.second.classifier.thresholds, second.classifier.thresholds
    )
    assert same == facts and second.pool.window == 48
    view = open_view(photographs[0], FACE, False)
    objects = detector.search.objects(detector.search.pyramid(view.pixels))
    assert np.hypot(*(objects[0, :2] - view.points[0])) < 0.35 * view.reference_length[0]
    assert 28.3 / objects[0, 3] == pytest.approx(view.reference_length[0], rel=0.4)
    detector, _ = train_guides(work, detector)
    assert set(detector.guides) == {"left_eye", "right_eye"}
    training = GuidedTraining(
        work, WHOLE.classifier, face_cascade=detector.face_cascade, guides=detector.guides
    )
    positives, _, negatives = training._first_rows("left_eye")
    assert len(positives) and len(negatives) > 200
    for number in np.unique(negatives.keys >> 40)[:4].tolist():
        view = open_view(work.split.views[number][0], "left_eye", work.split.views[number][1])
        levels = gaussian_pyramid(view.pixels)
        for k, (level, proposed) in enumerate(zip(levels, training.candidates("left_eye")(levels))):
            mine = negatives.keys[(negatives.keys >> 32) == (number << 8) + k]
            xy = np.column_stack([mine & 0xFFFF, (mine >> 16) & 0xFFFF])
            assert set(map(tuple, xy.tolist())) <= set(map(tuple, proposed.tolist()))
            far = np.hypot(*(level.to_image(xy) - view.points[0]).T)
            assert (far >= max(0.15 * view.reference_length[0], 4 / level.scale)).all()
    made = training.train("left_eye")
    classifier = made.models["left_eye"]
    assert made.info["held_out"]["ap_10"] > 0.8 and classifier.localisation != Localisation()
    assert (classifier.thresholds > -np.inf).all()
    again = GuidedTraining(
        replace(work, resume=True), WHOLE.classifier, detector.face_cascade, detector.guides
    ).train("left_eye")
    np.testing.assert_array_equal(
        again.models["left_eye"].responses.values, classifier.responses.values
    )


def cascade(seed=0, n=400):
    rng = np.random.default_rng(seed)
    features = POOL.features[rng.choice(len(POOL.features), 12, replace=False)]
    responses = Responses(np.full(12, -1), np.full(12, 0.5), rng.normal(size=(12, 5)))
    model = KeypointModel(features, responses, 0.0, np.full(12, -np.inf, np.float32))
    patches = rng.integers(0, 256, (n, 26, 26, 3), dtype=np.uint8)
    return model, patches, model.partial_scores(patches, POOL)


def test_a_cascade_that_keeps_keypoints():
    model, patches, sums = cascade()
    keypoint_of = np.repeat(np.arange(40), 10)
    kept, share = cascade_for_recall(model, POOL, patches, keypoint_of, 0.0)
    assert share > 0
    alive = (sums >= kept.thresholds).all(axis=1)
    assert len(np.unique(keypoint_of[alive])) == 40 and not alive.all()
    strict, none = cascade_for_recall(model, POOL, patches, np.arange(400), 0.0)
    # below 1 / 400 the quantile is the least sum
    assert none <= 0.0025 and (sums >= strict.thresholds).all()


def test_the_cheapest_order():
    pool = FeaturePool()
    rng = np.random.default_rng(3)
    haar, hog = (
        rng.choice(pool.n_haar, 30, replace=False),
        pool.n_haar + rng.choice(864, 10, replace=False),
    )
    features = pool.features[np.concatenate([hog, haar])]
    windows = np.asarray(
        cv2.blur(rng.integers(0, 256, (600, 26 * 26, 3), dtype=np.uint8), (5, 1))
    ).reshape(600, 26, 26, 3)
    values = pool.evaluate(windows, features)
    responses = Responses(
        values.min(axis=0), np.ptp(values, axis=0) / 6 + 1e-6, rng.normal(size=(40, 7))
    )
    model = KeypointModel(features, responses, 0.0, np.full(40, -np.inf, np.float32))
    order = np.argsort(-model.scores(windows, pool))
    positives, others = windows[order[:100]], windows[order[100:]]

    def limit(trial):
        sums = trial.partial_scores(positives, pool)
        return replace(trial, thresholds=np.sort(sums, axis=0)[2])

    first = with_order(model, pool, positives, others, 8)
    assert (first.features[:8, 0] < 6).all() and {*map(tuple, first.features)} == {
        *map(tuple, features)
    }
    best = cheapest_order(model, pool, positives, others, limit, 50.0)
    np.testing.assert_allclose(best.scores(windows, pool), model.scores(windows, pool), atol=1e-3)
    costs = [
        expected_cost(limit(with_order(model, pool, positives, others, n)), pool, others, 50.0)
        for n in (0, 8, 24, 30)
    ]
    assert expected_cost(best, pool, others, 50.0) == min(costs) < costs[0]


def test_one_training_gives_all_modes(photographs, tmp_path):
    out, said = tmp_path / "m.safetensors", []
    options = {"say": said.append, "pool": POOL}
    made = train_detector(photographs[:14], [], out, WHOLE, **options)
    assert (
        list(made.models) == list(ANCHORS)
        and made.keypoints == list(KEYPOINTS)
        and set(made.guides) == set(ANCHORS)
        and made.resolve(DetectionOptions()).mode == "prune+regress"
    )
    np.testing.assert_array_equal(
        made.models["right_nose"].features, made.models["left_nose"].mirrored(POOL, 28.3).features
    )
    info = made.info
    assert (
        info["photographs"] == [image.name for image in photographs[:14]]
        and info["settings"]["guide"]["n_offsets"] == 40
    )
    assert (
        set(info["stages"]) == {"face_cascade", "second_node", "guide", "classifier", *FACES}
        and "version" in info["package"]
    )
    assert set(info["stages"]["classifier"]) == {"left_eye", "left_nose", "left_mouth"}
    pixels = open_view(photographs[0], "chin", False).pixels
    loaded = load_model(out)
    for mode in ("scan", "regress", "prune+regress"):
        assert loaded.detect(pixels, mode=mode) == made.detect(pixels, mode=mode)

    def train(out, say, n_jobs):
        train_detector(photographs[:14], [], out, WHOLE, say=say, n_jobs=n_jobs, pool=POOL)

    assert_same_on_a_cluster(train, out, "fitted", tmp_path)
    # The same training again, from nothing and from the checkpoints of every stage: the same bytes.
    again = tmp_path / "again.safetensors"
    train_detector(photographs[:14], [], again, WHOLE, n_jobs=2, **options)
    assert again.read_bytes() == out.read_bytes() and not any("already" in line for line in said)
    again.unlink()
    said.clear()
    train_detector(photographs[:14], [], again, WHOLE, resume=True, **options)
    assert (
        again.read_bytes() == out.read_bytes()
        and sum("already finished" in line for line in said) == 11
    )
    other = replace(WHOLE, guide=replace(GUIDE, n_offsets=20))
    with pytest.raises(
        ValueError,
        match=r"left_eye\.guide\.safetensors: the file was created with different settings",
    ):
        train_detector(photographs[:14], [], again, other, resume=True, **options)
    assert any("hours of processor time" in line for line in said)


def test_hypotheses_of_objects_that_share_support_are_all_refined():
    supports = np.arange(400.0).tolist()
    assert minimum_support(supports, 0.005, shared=False) == pytest.approx(1.995)
    assert minimum_support(supports, 0.005, shared=True) == 0.0
    assert minimum_support(supports[:100], 0.005, shared=False) == 0.0
