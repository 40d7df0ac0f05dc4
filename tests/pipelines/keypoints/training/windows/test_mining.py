"""Windows to learn from, and a whole small training: marks pasted into noise are found again,
resumed or not."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.files import read_model, write_model
from annealed.pipelines.keypoints.faces import FACES, KEYPOINTS
from annealed.pipelines.keypoints.training.stages import DetectorSettings, train_detector
from annealed.pipelines.keypoints.training.windows.fitting import TrainingSettings
from annealed.pipelines.keypoints.training.windows.guided_search import GUIDED, GuideSettings
from annealed.pipelines.keypoints.training.windows.views import (
    View,
    Windows,
    each,
    held_out,
    join,
    open_view,
    pack_keys,
    positive_windows,
    sample_view,
    unpack_keys,
    without_objects,
)
from annealed.vision.pyramid import Level, gaussian_pyramid
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.patches import extract_patches
from helpers import face_images

EYES = ("left_eye", "right_eye")
POOL = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "4")}, sides=(3, 6), hog=None)
SETTINGS = TrainingSettings(
    n_features=30,
    first_rows=600,
    n_steps=6,
    final_steps=12,
    rounds=2,
    n_random=600,
    per_round=200,
    per_view=20,
    views_per_round=16,
)
WHOLE = DetectorSettings(held_out=0.25, scan=SETTINGS)


def paint(seed, eyes=True):
    """A picture of noise with a face of two marks, 30 px apart, that are mirror images of each
    other."""
    rng = np.random.default_rng(seed)
    pixels = cv2.resize(
        rng.integers(60, 200, (12, 14, 3), dtype=np.uint8), (112, 96), interpolation=cv2.INTER_CUBIC
    )
    faces, visible = np.full((1, 9, 2), np.nan), np.zeros((1, 9), bool)
    right = np.array([rng.integers(20, 60), rng.integers(20, 75)])
    faces[0, :2] = right + [30, 0], right
    visible[0, :2] = True
    for (x, y), side in zip(faces[0, :2].astype(int), (1, -1)):
        cv2.line(pixels, (x - 6, y), (x + 6, y), (250, 240, 230), 3)
        cv2.line(pixels, (x, y - 6), (x, y + 6), (10, 20, 10), 3)
        cv2.rectangle(
            pixels, (x + 4 * side - 1, y + 4), (x + 4 * side + 1, y + 7), (240, 20, 20), -1
        )
    return pixels, faces, visible


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    return face_images(tmp_path_factory.mktemp("crosses"), map(paint, range(12)))


def test_mirrored_views(photographs):
    image = photographs[0]
    plain, mirrored = open_view(image, "left_eye", False), open_view(image, "left_eye", True)
    np.testing.assert_array_equal(mirrored.pixels, plain.pixels[:, ::-1])
    np.testing.assert_allclose(plain.points, image.instances[:, 0])
    # In the mirror, the right eye stands where a left eye would.
    np.testing.assert_allclose(
        mirrored.points, [[111 - image.instances[0, 1, 0], image.instances[0, 1, 1]]]
    )
    boxed = replace(image, ignore=np.array([[1.0, 2, 5, 9]]))
    np.testing.assert_allclose(open_view(boxed, "chin", True).ignore, [[106, 2, 110, 9]])
    assert not open_view(image, "chin", False).visible.any()


def test_background_is_far_from_every_point(photographs):
    view = open_view(replace(photographs[0], ignore=np.array([[0.0, 0, 5, 5]])), "left_eye", False)
    (x, y), far = view.points[0], 0.5 * 30
    xy = np.array([[x + far - 0.1, y], [x + far + 0.1, y], [x, y - far - 0.1], [3.0, 3.0]])
    assert view.is_background(xy, 0.5).tolist() == [False, True, True, False]
    # Nobody said where the chin is: nothing near the face is called background.
    chin = open_view(photographs[0], "chin", False)
    middle = chin.middle[0]
    assert chin.is_background(
        np.array([middle, middle + [0, 59], middle + [0, 61]]), 0.5
    ).tolist() == [False, False, True]


def test_positive_windows(photographs):
    view = open_view(photographs[3], "left_eye", False)
    levels = gaussian_pyramid(view.pixels)
    # IED 30 on level 0: the levels with 20 to 40 px are 0 to 2.
    found = [positive_windows(level, view, (20.0, 40.0), 1.0) for level in levels]
    assert [len(f) > 0 for f in found] == [True, True, True] + [False] * (len(levels) - 3)
    for level, xy in zip(levels, found):
        point = level.from_image(view.points[0])
        every = [
            (i, j)
            for j in range(-2, 100)
            for i in range(-2, 120)
            if np.hypot(i - point[0], j - point[1]) <= 1.0
        ]
        if len(xy):
            assert set(map(tuple, xy.tolist())) == set(every)


def test_positive_windows_of_a_point_at_the_frame_lie_inside():
    level, none = Level(np.zeros((40, 60, 3), np.uint8), 1.0), np.zeros((0, 4))
    points = np.array([[0.0, 0.0], [59.0, 39.0]])
    view = View(level.image, points, np.ones(2, bool), np.array([24.0, 24.0]), points, none)
    found = positive_windows(level, view, (20.0, 40.0), 1.0)
    assert found.tolist() == [[0, 0], [0, 1], [1, 0], [58, 39], [59, 38], [59, 39]]


def test_sampled_windows(photographs):
    options = {"settings": TrainingSettings(), "n_random": 300, "window": POOL.window}
    positives, negatives = sample_view(photographs[1], True, 5, "left_eye", **options)
    again = sample_view(photographs[1], True, 5, "left_eye", **options)[1]
    np.testing.assert_array_equal(negatives.keys, again.keys)
    assert len(set(negatives.keys.tolist())) == len(negatives) > 200 and len(positives) >= 6
    assert not set(positives.keys.tolist()) & set(negatives.keys.tolist())
    view = open_view(photographs[1], "left_eye", True)
    levels = gaussian_pyramid(view.pixels)
    for key, patch in zip(negatives.keys.tolist(), negatives.patches):
        number, level, y, x = unpack_keys(key)
        assert number == 5
        np.testing.assert_array_equal(
            patch, extract_patches(levels[level].image, [x], [y], POOL.window)[0]
        )
        assert view.is_background(levels[level].to_image([[x, y]]), 0.5).all()


def test_keys_and_joins():
    keys = pack_keys(3, 2, np.array([5]), np.array([7]))
    assert keys.tolist() == [(3 << 40) + (2 << 32) + (5 << 16) + 7]
    windows = Windows(np.zeros((1, 26, 26, 3), np.uint8), keys, np.zeros(1, np.float32))
    assert len(join([windows, windows])) == 2 and len(join([])) == 0


def test_threads_keep_the_order():
    assert list(each(range(50), lambda i: i * i, 3)) == [i * i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(each([1, 0], lambda i: 1 // i, 2))


def test_held_out_is_a_fixed_share(photographs):
    images = [
        replace(photographs[0], path=photographs[0].path.with_name(f"{i}.png")) for i in range(2000)
    ]
    assert 0.08 < np.mean([held_out(image, 0.1) for image in images]) < 0.12
    assert [held_out(i, 0.1) for i in images[:50]] == [held_out(i, 0.1) for i in images[:50]]


def train(images, out, keypoints=("left_eye",), say=lambda line: None, **options):
    return train_detector(
        images, [], out, WHOLE, list(keypoints), "scan", say=say, pool=POOL, **options
    )


@pytest.fixture(scope="module")
def trained(photographs, tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "marks.safetensors"
    lines = []
    train(photographs, out, EYES, lines.append)
    return out, lines


def test_training_finds_the_marks(trained):
    out, lines = trained
    detector = load_model(out)
    assert detector.keypoints == ["left_eye", "right_eye"]
    hits = 0
    for seed in range(100, 110):
        pixels, faces, _ = paint(seed)
        found = detector.detect(pixels, threshold=-np.inf)
        for name in detector.keypoints:
            best = next(d for d in found if d.keypoint == name)
            hits += np.hypot(*(np.array([best.x, best.y]) - faces[0, KEYPOINTS.index(name)])) <= 3.0
    assert hits >= 18
    assert any("round 1" in line for line in lines)
    made = detector.info["stages"]["scan"]["left_eye"]
    assert made["rounds"][0]["added"] > 0 and made["rows"]["negative"] > 600
    assert detector.info["settings"]["scan"]["rounds"] == 2 and 0 <= made["held_out"]["ap_10"] <= 1


def test_threads_do_not_change_the_model(photographs, trained, tmp_path):
    train(photographs, tmp_path / "m.safetensors", EYES, n_jobs=3)
    assert (tmp_path / "m.safetensors").read_bytes() == trained[0].read_bytes()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("stop", ["fitted", "calibrated"])
def test_resumed_training_gives_the_same_file(photographs, trained, tmp_path, stop):
    out = tmp_path / "m.safetensors"

    def kill(line):
        if stop in line:
            raise Killed

    with pytest.raises(Killed):
        train(photographs, out, EYES, kill)
    assert not out.exists()
    lines = []
    train(photographs, out, EYES, lines.append, resume=True)
    assert out.read_bytes() == trained[0].read_bytes()
    # Done before: the next call only puts the file together.
    lines.clear()
    train(photographs, out, ("left_eye",), lines.append, resume=True)
    assert lines[0] == "left_eye: scan: already finished"
    assert load_model(out).keypoints == ["left_eye"]


def test_checkpoints_of_other_settings_are_refused(photographs, trained):
    out = trained[0]
    with pytest.raises(ValueError, match="created with different settings or data"):
        train(photographs[:-1], out, resume=True)


def test_a_checkpoint_is_whole_or_absent(photographs, tmp_path, monkeypatch):
    out = tmp_path / "m.safetensors"

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(ValueError, match="No space left on device"):
        train(photographs, out)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []


def test_the_reference_inter_eye_distance_is_that_of_the_training(photographs, trained, tmp_path):
    assert load_model(trained[0]).reference_length == 28.3
    out = tmp_path / "large.safetensors"
    other = {"ied_low": 25.0, "ied_high": 50.0}
    rest = {"guide": GuideSettings(**other), "classifier": replace(GUIDED, **other)}
    settings = DetectorSettings(0.25, replace(SETTINGS, rounds=0, **other), **rest)
    made = train_detector(
        photographs, [], out, settings, list(EYES), "scan", say=lambda line: None, pool=POOL
    )
    assert (
        made.reference_length
        == load_model(out).reference_length
        == pytest.approx((25 * 50) ** 0.5, abs=0.05)
    )
    with pytest.raises(ValueError, match="expected the same range"):
        DetectorSettings(scan=replace(SETTINGS, **other))
    # Files from before the field was written have the default.
    arrays, header = read_model(out, "keypoint detector")
    del header["reference_ied"]
    write_model(out, "keypoint detector", arrays, header)
    assert load_model(out).reference_length == 28.3


def test_nothing_to_learn_from(photographs, tmp_path):
    out = tmp_path / "m.safetensors"
    with pytest.raises(ValueError, match="chin: no face with a reference length above"):
        train(photographs, out, ("chin",))
    with pytest.raises(ValueError, match="too few"):
        train(photographs[:1], out)
    with pytest.raises(ValueError, match="cannot be written"):
        train(photographs, tmp_path / "no" / "m.safetensors")


def test_trained_as():
    assert [FACES.trained_as(k) for k in ("left_eye", "right_ear", "chin")] == [
        "left_eye",
        "left_ear",
        "chin",
    ]


def test_without_faces_everything_is_background(photographs):
    (image,) = without_objects([photographs[0].path], FACES)
    assert open_view(image, "chin", True).is_background(np.array([[5.0, 5.0]]), 0.5).all()
