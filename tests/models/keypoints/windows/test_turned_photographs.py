"""Photographs rotated to search for rotated faces: detections are mapped back to the original."""

from dataclasses import replace

import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints import DetectionOptions
from annealed.models.keypoints.windows import turned_photographs
from annealed.models.keypoints.windows.turned_photographs import turned, turned_maxima, turning
from annealed.pipelines.keypoints.detect import sample_photograph
from annealed.pipelines.keypoints.faces import FACES

WIDTH, HEIGHT = 90, 50


def dot(x, y):
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[y - 1 : y + 2, x - 1 : x + 2] = 255
    return image


def brightest(image, factor=1.0):
    """One maximum: the centre of the bright area; its score is the width of the image."""
    ys, xs = np.nonzero(image[..., 0] > 120)
    return {"spot": np.array([[xs.mean(), ys.mean(), image.shape[1], 0.5]])}


@pytest.mark.parametrize("degrees", [-30, 20, 90])
def test_nothing_is_cut_off_and_the_way_back_is_known(degrees):
    for x, y in ((4, 4), (84, 44), (60, 10)):
        shown, transform = turned(dot(x, y), degrees), turning(HEIGHT, WIDTH, degrees)[0]
        assert shown.dtype == np.uint8 and (
            degrees != 90 or abs(np.subtract(shown.shape[:2], (WIDTH, HEIGHT))).max() <= 1
        )
        place = brightest(shown)["spot"][0, :2]
        np.testing.assert_allclose(place, transform[:, :2] @ [x, y] + transform[:, 2], atol=0.4)


def test_maxima_of_both_sides_lie_in_the_original():
    (rows,) = turned_maxima(dot(60, 20), (-30.0, 30.0), brightest).values()
    np.testing.assert_allclose(rows[:, :2], [[60, 20]] * 2, atol=0.4)
    assert (rows[:, 2] > WIDTH).all() and (rows[:, 3] == 0.5).all()


def test_large_photographs_are_shrunk_first(monkeypatch):
    monkeypatch.setattr(turned_photographs, "MAX_PIXELS", WIDTH * HEIGHT / 4)
    factors = []

    def search(pixels, factor):
        factors.append(factor)
        return brightest(pixels)

    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[16:24, 56:64] = 255  # its middle is 59.5, 19.5
    (rows,) = turned_maxima(image, (30.0,), search).values()
    assert factors == [0.5] and rows[0, 3] == 0.25
    np.testing.assert_allclose(rows[:, :2], [[59.5, 19.5]], atol=0.8)


def test_a_face_that_is_turned_far_is_found_in_its_place():
    """The shipped model on a part of the sample photograph."""
    shown, (transform, _) = turned(sample_photograph()[20:220, 120:320], 48), turning(200, 200, 48)
    detector = load_model("faces")
    objects = replace(detector, schema=replace(FACES, landmarks=()))
    both = [(one, angle) for one in (detector, objects) for angle in (None, 20)]
    rolls = [one.resolve(DetectionOptions(roll=angle)).roll for one, angle in both]
    assert rolls == [30, 20, 0, 20]  # other objects are searched once by default
    assert detector.find(shown, roll=0).instances == []
    (face,) = detector.find(shown).instances
    assert face.probability > 0.9 and np.degrees(face.pose.roll) == pytest.approx(-46, abs=8)
    places = np.array(
        [[face.keypoints[name].x, face.keypoints[name].y] for name in ("left_eye", "right_eye")]
    )
    np.testing.assert_allclose(
        places, np.array([[127, 84], [83.5, 81.5]]) @ transform[:, :2].T + transform[:, 2], atol=3
    )


@pytest.mark.parametrize(
    "height, width", [(1, 40_000), (30, 100_000), (1000, 12_000), (100_000, 20)]
)
def test_strips_are_shrunk_by_their_size_once_turned(height, width):
    shapes = []

    def search(pixels, factor):
        shapes.append(pixels.shape)
        return {"spot": np.array([[0.0, 0.0, 0.0, 1.0]])}

    (rows,) = turned_maxima(np.zeros((height, width, 3), np.uint8), (-30.0, 30.0), search).values()
    assert len(rows) == len(shapes) == 2 and all(
        h * w <= 1.01 * turned_photographs.MAX_TURNED for h, w, _ in shapes
    )


@pytest.mark.parametrize(
    "height, width, factor", [(1600, 2400, 1.0), (1150, 3450, 1.0), (3000, 4000, 3**-0.5)]
)
def test_ordinary_photographs_are_shrunk_by_their_own_size(height, width, factor):
    factors = []

    def search(pixels, factor):
        factors.append(factor)
        return {"spot": np.empty((0, 4))}

    turned_maxima(np.zeros((height, width, 3), np.uint8), (30.0,), search)
    assert factors == [pytest.approx(factor)]


def test_a_strip_without_room_for_a_face_is_not_searched_turned(monkeypatch):
    monkeypatch.setattr("annealed.models.keypoints.detector.turned_maxima", None)
    assert load_model("faces").find(np.zeros((1, 100_000, 3), np.uint8)).instances == []
