"""The shape model, faces, predicted keypoints, and the file that holds them."""

from dataclasses import replace

import numpy as np
import pytest
from annealed.models import KeypointDetector, load_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.shape_model import learn_shape
from annealed.models.keypoints.shape_regression import RegressionStep, ShapeRegressor, cut_window
from annealed.vision import extract_patches
from annealed.vision.pyramid import gaussian_pyramid
from window_models import GUIDE, IMAGE, POOL, face_cascade, offset_regressor, random_classifier

NAMES = ("left_eye", "right_eye", "mouth", "chin")
MEAN = np.array([[0.5, -0.3], [-0.5, -0.3], [0, 0.6], [0, 1.2]])


def shape_model(noise=0.01):
    """Faces whose chin goes down twice as far as the mouth does."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=300) * 0.05
    faces = np.repeat(MEAN[None], 300, axis=0)
    faces[:, 2, 1] += low
    faces[:, 3, 1] += 2 * low
    similarity = rng.uniform(20, 60, 300) * np.exp(1j * rng.normal(size=300) * 0.1)
    z = similarity[:, None] * (faces[..., 0] + 1j * faces[..., 1]) + 100
    seen = np.ones((300, 4), bool)
    return learn_shape(np.stack([z.real, z.imag], axis=2), seen, NAMES, np.arange(3), noise)


def test_the_shape_model_predicts_what_is_missing():
    shape = shape_model()
    assert abs(shape.mean_points[0] - shape.mean_points[1]) == pytest.approx(1)
    rotation, shift = 40 * np.exp(0.2j), 200 + 90j
    for low in (-0.1, 0.0, 0.1):
        face = MEAN[:, 0] + 1j * (MEAN[:, 1] + np.array([0, 0, low, 2 * low]))
        image = rotation * face + shift
        expected, transform = shape.predict(image[:3], np.arange(3))
        assert abs(expected[3] - image[3]) < 0.02 * 40
        assert transform.ied == pytest.approx(40, rel=0.1) and np.angle(transform.scale_rotation) == pytest.approx(0.2, abs=0.02)
    image = rotation * (MEAN[:, 0] + 1j * MEAN[:, 1]) + shift
    expected, _ = shape.predict(image[[0, 2]], np.array([0, 2]))
    np.testing.assert_allclose(expected, image, atol=0.03 * 40)


def test_anchors_are_grouped_into_faces():
    regressor = ShapeRegressor(shape_model(0.02))
    rng = np.random.default_rng(1)
    centres, sizes = np.array([100 + 100j, 300 + 120j]), np.array([40.0, 60.0])
    detections = {}
    for i, name in enumerate(NAMES[:3]):
        place = centres + sizes * (MEAN[i, 0] + 1j * MEAN[i, 1]) + rng.normal(size=2)
        far = rng.uniform(500, 900, 5) + 1j * rng.uniform(500, 900, 5)
        xy, unit = np.append(place, far), np.append(sizes * 1.2, np.full(5, 30.0))
        score = np.append([8.0, 6.0], np.full(5, -1.0))
        detections[name] = np.column_stack([xy.real, xy.imag, score, 28.3 / unit])
    detections["mouth"] = detections["mouth"][1:]  # the first face's mouth was not found
    faces = regressor.faces(detections, dict.fromkeys(NAMES, 0.0), 28.3)
    by_size = {len(face.which): face for face in faces[:2]}
    np.testing.assert_array_equal(by_size[3].which, [0, 1, 2])
    np.testing.assert_array_equal(by_size[2].which, [0, 1])
    assert abs(by_size[2].found.mean() - (100 + 88j)) < 2
    assert [face.score for face in faces] == sorted((face.score for face in faces), reverse=True)
    assert all(len(face.which) >= 2 for face in faces)


def test_windows_of_a_face_are_rotated_and_scaled():
    levels = gaussian_pyramid(IMAGE)
    straight = cut_window(levels, 90 + 80j, 1 + 0j, 24)
    np.testing.assert_array_equal(straight, extract_patches(IMAGE, [90], [80])[0])
    quarter = cut_window(levels, 90 + 80j, 1j, 24)  # the patch's x runs down the image
    np.testing.assert_array_equal(quarter[13, 13:], IMAGE[80:93, 90])
    level = levels[4]
    x, y = level.to_image([30, 25])
    half = cut_window(levels, complex(x, y), 2 + 0j, 24)
    np.testing.assert_array_equal(half, extract_patches(level.image, [30], [25])[0])


def whole_detector():
    models = {name: random_classifier(i, 15, threshold=0.5) for i, name in enumerate(NAMES)}
    steps = (RegressionStep(offset_regressor(9, size=0.01), 14.0), RegressionStep(offset_regressor(10, size=0.01), 20.0))
    shape_regressor = ShapeRegressor(
        shape_model(), {"chin": steps}, classifier_weight=2.0, thresholds={"chin": 3.0}, min_face_score=-100.0
    )
    guides, cascade = dict.fromkeys(NAMES, GUIDE), face_cascade(*NAMES)
    return KeypointDetector(models, POOL, guides=guides, face_cascade=cascade, shape_regressor=shape_regressor)


def test_the_chin_is_predicted_from_the_anchors():
    detector = whole_detector()
    small = IMAGE[:120, :120]
    found = detector.detect(small, ["chin"], threshold=-np.inf, max_detections=5, mode="scan")
    assert found and {d.keypoint for d in found} == {"chin"}
    assert found == [d for d in detector.detect(small, threshold=-np.inf, max_detections=5, mode="scan") if d.keypoint == "chin"]
    assert detector.default_threshold("chin") == 3.0 and detector.default_threshold("chin", shape_regression=False) == 0.5
    # By hand, from the anchors' detections.
    regressor = detector.shape_regressor
    levels = detector.pyramid(small)
    faces = regressor.faces(detector.detect_anchors(levels, max_detections=5), dict.fromkeys(NAMES, 0.5), 28.3, 5)
    place, _, own = regressor.predict(faces[0], levels, "chin", POOL, detector.models["chin"], 28.3)
    assert any(d.x == place.real and d.score == pytest.approx(faces[0].score + 2 * own) for d in found)
    expected, transform = regressor.shape.predict(faces[0].found, faces[0].which)
    # The first prediction: the expected position moved by the mean of what the first regressor says.
    first = replace(regressor, steps={"chin": regressor.steps["chin"][:1]})
    steps = np.array([0, -1, 1, -1j, 1j])
    unit = transform.scale_rotation / 14
    patches = np.stack([cut_window(levels, expected[3] + unit * v, unit, 24) for v in steps])
    dx, dy = offset_regressor(9, size=0.01).predict(patches, POOL).T
    moved = expected[3] + unit * (steps + dx + 1j * dy).mean()
    assert first.predict(faces[0], levels, "chin", POOL, detector.models["chin"], 28.3).position == pytest.approx(moved)
    # Without it the chin is detected like everything else.
    alone = detector.detect(small, ["chin"], threshold=-np.inf, mode="scan", shape_regression=False)
    assert alone == KeypointDetector({"chin": detector.models["chin"]}, POOL).detect(small, threshold=-np.inf)


def test_anchors_need_a_shape_regressor():
    with pytest.raises(ValueError, match="no shape regressor"):
        KeypointDetector({"chin": random_classifier(1)}, POOL).detect_anchors(gaussian_pyramid(IMAGE))


def test_one_file_serves_all_modes(tmp_path):
    path = tmp_path / "d.safetensors"
    detector = whole_detector()
    detector.save(path)
    loaded = load_model(path)
    small = IMAGE[:100, :100]
    for mode in ("scan", "regress", "prune+regress"):
        assert loaded.detect(small, threshold=0.0, mode=mode) == detector.detect(small, threshold=0.0, mode=mode)
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a, h: a.pop("chin/offsets/coef"), "'chin/offsets/coef' is missing"),
        (lambda a, h: a.update({"chin/offsets/intercept": np.float32([0, np.inf])}), "that is no number"),
        (lambda a, h: h["guides"]["chin"].update(grid=0), "grid=0"),
        (lambda a, h: h["guides"].update(nose=h["guides"]["chin"]), "unknown keypoint 'nose'"),
        (lambda a, h: h["guides"]["chin"].pop("grid"), "damaged header"),
        (lambda a, h: a.update({"context/mean": a["context/mean"][:3]}), "'context/mean' is float64"),
        (lambda a, h: h["context"].update(noise=-1), "noise=-1"),
        (lambda a, h: h["context"].update(anchors=["chin"]), "anchors"),
        (lambda a, h: h["context"]["refinements"].update(chin=["x"]), "chin="),
        (lambda a, h: h["context"].update(thresholds=3), "damaged header"),
    ],
)
def test_damaged_parts(tmp_path, change, message):
    path = tmp_path / "d.safetensors"
    whole_detector().save(path)
    arrays, header = read_model(path, "keypoint detector")
    change(arrays, header)
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match=message) as error:
        load_model(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
