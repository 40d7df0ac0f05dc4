"""Small trainings of guides and the shape regressor on painted faces, and the command that writes them into one file."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.non_maximum_suppression import Localisation
from annealed.models.keypoints.shape_regression import Face, ShapeRegressor
from annealed.models.keypoints.window_models import KeypointModel
from annealed.pipelines.faces.data import KEYPOINTS
from annealed.pipelines.faces.training.cascade import cascade_for_recall, cheapest_order, expected_cost, soft_cascade, with_order
from annealed.pipelines.faces.training.fast_modes import ModeSettings, add_modes
from annealed.pipelines.faces.training.guided_search import GuideSettings, VerifierTraining, train_guide
from annealed.pipelines.faces.training.settings import TrainingSettings
from annealed.pipelines.faces.training.shape_regression import (
    ShapeSettings,
    calibrate_shape_regressor,
    shape_of,
    train_shape_regressor,
)
from annealed.pipelines.faces.training.train import train_detector
from annealed.pipelines.faces.training.views import held_out, open_view
from annealed.vision.pyramid import gaussian_pyramid
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.responses import Responses
from helpers import face_images

POOL = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "centre")}, sides=(3, 6), hog=None)
GUIDE = GuideSettings(n_offsets=40, n_prune=(5, 20), n_random=600, first_rows=500, per_level=4)
CONTEXT = ShapeSettings(n_features=40, per_view=3, first_rows=400, ied=(14.0, 20.0))
FACE = np.array(
    [[0.5, -0.4], [-0.5, -0.4], [0.2, 0.1], [-0.2, 0.1], [0.35, 0.45], [-0.35, 0.45], [1.1, -0.3], [-1.1, -0.3], [0, 1.1]]
)


def paint(seed):
    """Dots for all keypoints on a blurred ground; chin and ears lie where the rest does not tell."""
    rng = np.random.default_rng(seed)
    pixels = cv2.resize(rng.integers(90, 160, (10, 12, 3), dtype=np.uint8), (160, 140), interpolation=cv2.INTER_CUBIC)
    ied = rng.uniform(26, 34)
    points = np.array([rng.uniform(65, 95), rng.uniform(50, 75)]) + ied * FACE
    points[6:] += rng.normal(size=(3, 2)) * 0.12 * ied
    for k, (x, y) in enumerate(points):
        place = (round(16 * x), round(16 * y))
        cv2.circle(pixels, place, round(16 * ied * 0.13), (250, 250, 250) if k >= 6 else (10, 10, 10), -1, cv2.LINE_AA, 4)
        cv2.circle(pixels, place, round(16 * ied * 0.05), (200, 60, 60) if k < 4 else (60, 60, 200), -1, cv2.LINE_AA, 4)
    return pixels, points[None], np.ones((1, 9), bool)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    return face_images(tmp_path_factory.mktemp("dots"), map(paint, range(40)))


def views(images):
    return [(image, flip) for image in images for flip in (False, True)]


def test_a_guide_leads_to_the_keypoint(photographs):
    said = []
    guide, scores = train_guide("left_eye", views(photographs[:30]), views(photographs[30:]), GUIDE, POOL, say=said.append)
    assert scores["offset_error"] < 2.0 and scores["prune1_negatives"] < 0.9 and len(said) == 3
    near = 0
    for image in photographs[30:]:
        view = open_view(image, "left_eye", False)
        detector = KeypointDetector({"left_eye": None}, POOL, guides={"left_eye": guide})
        wanted = []
        for level in gaussian_pyramid(view.pixels):
            if 20 <= view.ied[0] * level.scale <= 40:
                for strip in detector.strips(level, "prune+regress"):
                    x, y = guide.windows(strip, POOL, True, 28.3)
                    wanted.append(level.to_image(np.column_stack([x, y])))
        distance = np.hypot(*(np.concatenate(wanted) - view.points[0]).T)
        near += distance.min() < 1.5
    assert near >= 9
    again, _ = train_guide("left_eye", views(photographs[:30]), views(photographs[30:]), GUIDE, POOL, False, said.append, 3)
    assert not again.prune
    np.testing.assert_array_equal(again.offsets.responses.values, guide.offsets.responses.values)


def test_a_verifier_learns_from_what_the_guide_points_at(photographs, tmp_path):
    guide, _ = train_guide("left_eye", views(photographs[:30]), views(photographs[30:]), GUIDE, POOL, say=lambda line: None)
    settings = TrainingSettings(
        n_features=30, first_rows=500, n_steps=6, final_steps=12, rounds=2, n_random=400, per_round=200, views_per_round=12,
        negative_distance=0.15, negative_pixels=4.0, held_out=0.25,
    )  # fmt: skip
    job = VerifierTraining(photographs, [], settings, POOL, tmp_path, lambda line: None, 1, {"left_eye": guide})
    positives, _, negatives = job._first_rows("left_eye")
    assert len(positives) and len(negatives) > 200
    for number in np.unique(negatives.keys >> 40)[:4].tolist():
        view = open_view(job.split.views[number][0], "left_eye", job.split.views[number][1])
        for k, level in enumerate(gaussian_pyramid(view.pixels)):
            mine = negatives.keys[(negatives.keys >> 32) == (number << 8) + k]
            xy = np.column_stack([mine & 0xFFFF, (mine >> 16) & 0xFFFF])
            assert set(map(tuple, xy.tolist())) <= set(map(tuple, job.candidates("left_eye")(level).tolist()))
            far = np.hypot(*(level.to_image(xy) - view.points[0]).T)
            assert (far >= max(0.15 * view.ied[0], 4 / level.scale)).all()
    made = job.train("left_eye", False)
    verifier = made.models["left_eye"]
    assert made.info["held_out"]["ap_10"] > 0.8 and verifier.localisation != Localisation()
    assert (verifier.thresholds > -np.inf).all()
    again = job.train("left_eye", True).models["left_eye"]
    np.testing.assert_array_equal(again.responses.values, verifier.responses.values)


def test_regression_predicts_better_than_the_shape_alone(photographs):
    regressor = train_shape_regressor(["chin", "left_ear", "right_ear"], photographs[:30], CONTEXT, POOL, lambda line: None)
    assert set(regressor.steps) == {"chin", "left_ear", "right_ear"}
    rng = np.random.default_rng(0)
    verifier = KeypointModel(POOL.features[:1], Responses([0], [1], np.zeros((1, 2))), 0.0, np.float32([-np.inf]))
    for name in regressor.steps:
        k, before, after = KEYPOINTS.index(name), [], []
        for image in photographs[30:]:
            view = open_view(image, name, False)
            points = image.faces[0, :, 0] + 1j * image.faces[0, :, 1]
            found = points[:6] + rng.normal(size=6) * 0.02 * image.ied[0]
            face, levels = Face(np.arange(6), found, 1.0), gaussian_pyramid(view.pixels)
            expected, _ = regressor.shape.predict(found, np.arange(6))
            place, transform, _ = regressor.predict(face, levels, name, POOL, verifier, 28.3)
            assert transform.ied == pytest.approx(image.ied[0], rel=0.1)
            before.append(abs(expected[k] - points[k]) / image.ied[0])
            after.append(abs(place - points[k]) / image.ied[0])
        assert np.median(after) < 0.6 * np.median(before), name


def test_the_shape_of_images_is_symmetric(photographs):
    shape = shape_of(photographs, 0.02)
    np.testing.assert_allclose(shape.mean[6], shape.mean[7] * [-1, 1], atol=1e-6)
    assert abs(shape.mean[8, 0]) < 1e-6
    assert isinstance(ShapeRegressor(shape).anchors, list) and ShapeRegressor(shape).anchors == list(KEYPOINTS[:6])


def cascade(seed=0, n=400):
    rng = np.random.default_rng(seed)
    features = POOL.features[rng.choice(len(POOL.features), 12, replace=False)]
    responses = Responses(np.full(12, -1), np.full(12, 0.5), rng.normal(size=(12, 5)))
    model = KeypointModel(features, responses, 0.0, np.full(12, -np.inf, np.float32))
    patches = rng.integers(0, 256, (n, 26, 26, 3), dtype=np.uint8)
    return model, patches, model.partial_scores(patches, POOL)


@pytest.mark.parametrize("loss", [0.0, 0.05, 0.3])
def test_a_soft_cascade_loses_what_is_stated(loss):
    model, patches, sums = cascade()
    limits = soft_cascade(model, POOL, patches, loss).thresholds
    lost = (sums < limits).any(axis=1)
    assert lost.mean() <= loss
    # Every threshold touches a window that is kept: none could be higher.
    np.testing.assert_array_equal(sums[~lost].min(axis=0), limits)


def test_a_cascade_that_keeps_keypoints():
    model, patches, sums = cascade()
    keypoint_of = np.repeat(np.arange(40), 10)
    kept, share = cascade_for_recall(model, POOL, patches, keypoint_of, 0.0)
    assert share > 0
    alive = (sums >= kept.thresholds).all(axis=1)
    assert len(np.unique(keypoint_of[alive])) == 40 and not alive.all()
    strict, none = cascade_for_recall(model, POOL, patches, np.arange(400), 0.0)
    assert none <= 0.0025 and (sums >= strict.thresholds).all()  # below 1 / 400 the quantile is the least sum


def test_the_cheapest_order():
    pool = FeaturePool()
    rng = np.random.default_rng(3)
    haar, hog = rng.choice(pool.n_haar, 30, replace=False), pool.n_haar + rng.choice(864, 10, replace=False)
    features = pool.features[np.concatenate([hog, haar])]
    windows = np.asarray(cv2.blur(rng.integers(0, 256, (600, 26 * 26, 3), dtype=np.uint8), (5, 1))).reshape(600, 26, 26, 3)
    values = pool.evaluate(windows, features)
    responses = Responses(values.min(axis=0), np.ptp(values, axis=0) / 6 + 1e-6, rng.normal(size=(40, 7)))
    model = KeypointModel(features, responses, 0.0, np.full(40, -np.inf, np.float32))
    order = np.argsort(-model.scores(windows, pool))
    positives, others = windows[order[:100]], windows[order[100:]]

    def limit(trial):
        return soft_cascade(trial, pool, positives, 0.02)

    first = with_order(model, pool, positives, others, 8)
    assert (first.features[:8, 0] < 6).all() and {*map(tuple, first.features)} == {*map(tuple, features)}
    best = cheapest_order(model, pool, positives, others, limit, 50.0)
    np.testing.assert_allclose(best.scores(windows, pool), model.scores(windows, pool), atol=1e-3)
    costs = [expected_cost(limit(with_order(model, pool, positives, others, n)), pool, others, 50.0) for n in (0, 8, 24, 30)]
    assert expected_cost(best, pool, others, 50.0) == min(costs) < costs[0]


def test_one_command_adds_all_modes(photographs, tmp_path):
    settings = TrainingSettings(
        n_features=20, first_rows=400, n_steps=5, final_steps=10, rounds=0, n_random=400, held_out=0.25,
    )  # fmt: skip
    few = photographs[:14]
    base = train_detector(few, [], tmp_path / "base.safetensors", settings, KEYPOINTS, say=lambda line: None, pool=POOL)
    out, said = tmp_path / "m.safetensors", []
    small = ModeSettings(
        replace(GUIDE, n_offsets=10, n_prune=(5,), n_random=200, first_rows=200, per_level=1),
        replace(CONTEXT, n_features=10, per_view=1),
        replace(settings, rounds=1, per_round=100, views_per_round=6, negative_distance=0.15, negative_pixels=4.0),
        0.25,
    )
    made = add_modes(base, few, [], out, "prune+regress", small, say=said.append)
    assert set(made.guides) == set(KEYPOINTS) and set(made.shape_regressor.steps) == {"chin", "left_ear", "right_ear"}
    assert "rejection_quantiles" in made.info["modes"] and set(made.info["modes"]["context"]) == set(made.shape_regressor.steps)
    # A predicted keypoint needs no verifier; a right side has the mirrored one.
    own = {name: guide.verifier for name, guide in made.guides.items()}
    assert {name for name, verifier in own.items() if verifier is None} == set(made.shape_regressor.steps)
    np.testing.assert_array_equal(own["right_nose"].features, own["left_nose"].mirrored(POOL, 28.3).features)
    assert set(made.info["modes"]["verifiers"]) == {"left_eye", "left_nose", "left_mouth"}
    pixels = open_view(few[0], "chin", False).pixels
    loaded = load_model(out)
    assert loaded.detect(pixels, mode="prune+regress") == made.detect(pixels, mode="prune+regress")
    again = tmp_path / "again.safetensors"
    (tmp_path / "m.safetensors.checkpoint").rename(tmp_path / "again.safetensors.checkpoint")
    add_modes(base, few, [], again, "prune+regress", small, resume=True, say=said.append)
    assert again.read_bytes() == out.read_bytes() and any("before" in line for line in said)
    with pytest.raises(ValueError, match="other settings"):
        add_modes(base, few, [], again, "regress", small, resume=True)
    held = [image for image in few if held_out(image, 0.25)]
    regressor, _ = calibrate_shape_regressor(made, held, 0.9)
    assert set(regressor.thresholds) == set(regressor.steps)
