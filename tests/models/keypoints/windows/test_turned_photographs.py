"""Photographs rotated to search for rotated faces: detections are mapped back to the original."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints import DetectionOptions
from annealed.models.keypoints.windows import turned_photographs
from annealed.models.keypoints.windows.turned_photographs import (
    RotatedLevel,
    evened,
    evened_levels,
    turned,
    turned_maxima,
    turning,
)
from annealed.pipelines.keypoints.detect import sample_photograph
from annealed.pipelines.keypoints.faces import FACES
from annealed.vision.pyramid import Level, gaussian_pyramid, shrink

WIDTH, HEIGHT = 90, 50


def dot(x, y):
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[y - 1 : y + 2, x - 1 : x + 2] = 255
    return image


def brightest(levels):
    """One maximum on the largest level: the centre of the bright area; its score is the width of
    the level."""
    ys, xs = np.nonzero(levels[0].image[..., 0] > 120)
    x, y = levels[0].to_image([xs.mean(), ys.mean()])
    return {"spot": np.array([[x, y, levels[0].shape[1], levels[0].scale]])}


def whole(image):
    return [Level(image, 1.0)]


@pytest.mark.parametrize("degrees", [-30, 20, 90])
def test_nothing_is_cut_off_and_the_way_back_is_known(degrees):
    for x, y in ((4, 4), (84, 44), (60, 10)):
        shown, transform = turned(dot(x, y), degrees), turning(HEIGHT, WIDTH, degrees)[0]
        assert shown.dtype == np.uint8 and (
            degrees != 90 or abs(np.subtract(shown.shape[:2], (WIDTH, HEIGHT))).max() <= 1
        )
        place = brightest(whole(shown))["spot"][0, :2]
        np.testing.assert_allclose(place, transform[:, :2] @ [x, y] + transform[:, 2], atol=0.4)


def test_levels_are_rotated_like_the_photograph():
    photograph = sample_photograph()[:203, :301]
    matrix, size = turning(203, 301, 30)
    shown = turned(photograph, 30)
    for level in gaussian_pyramid(photograph)[:5]:
        rotated = RotatedLevel(level, matrix, size)
        expected = shown if level.scale == 1 else shrink(Level(shown, 1.0), level.scale).image
        assert rotated.image.shape[:2] == rotated.shape == expected.shape[:2]
        assert abs(rotated.image - expected.astype(float)).mean() < 4
        part = rotated.part(-3, 20, 40, 30)
        np.testing.assert_array_equal(part[:, 3:], rotated.image[20:50, :37])
        matrix_of_part = np.array([[2.0, 0, -3], [0, 2, 20]])
        np.testing.assert_array_equal(rotated.warped(matrix_of_part, (20, 15)), part[::2, ::2])


@pytest.mark.parametrize("degrees", [-30, 0, 45, 90, 200])
def test_spans_hold_the_pixels_of_the_photograph(degrees):
    matrix, size = turning(HEIGHT, WIDTH, degrees)
    for level in gaussian_pyramid(dot(60, 20))[:4]:
        rotated = RotatedLevel(level, matrix, size)
        (rows, columns), (height, width) = rotated.shape, level.shape
        first, last = rotated.spans(2, rows)
        assert first.shape == (rows - 2,) and (first >= 0).all() and (last <= columns).all()
        x, y = np.meshgrid(np.arange(columns), np.arange(2, rows))
        back = cv2.invertAffineTransform(matrix)
        at = level.from_image(rotated.to_image(np.stack([x, y], 2)) @ back[:, :2].T + back[:, 2])
        beyond = np.maximum(abs(at + 0.5 - np.array([width, height]) / 2) * 2, 0)
        beyond = (beyond - [width, height]).max(axis=2)  # positive outside the photograph
        inside = (x >= first[:, None]) & (x < last[:, None])
        assert inside[beyond < -2].all() and not inside[beyond > 2].any()
    np.testing.assert_array_equal(Level(dot(60, 20), 1.0).spans(3, 5), [[0, 0], [WIDTH, WIDTH]])


def test_maxima_of_both_sides_lie_in_the_original():
    levels = whole(dot(60, 20))
    (rows,) = turned_maxima(levels, (HEIGHT, WIDTH), (-30.0, 30.0), brightest).values()
    np.testing.assert_allclose(rows[:, :2], [[60, 20]] * 2, atol=0.4)
    assert (rows[:, 2] > WIDTH).all() and (rows[:, 3] == 1).all()


def test_large_levels_are_not_rotated(monkeypatch):
    monkeypatch.setattr(turned_photographs, "MAX_PIXELS", WIDTH * HEIGHT / 4)
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[16:24, 56:64] = 255  # its middle is 59.5, 19.5
    levels = gaussian_pyramid(image)
    (rows,) = turned_maxima(levels, image.shape, (30.0,), brightest).values()
    assert rows[0, 3] == 0.5
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


def test_lightness_is_equalised_on_every_level_that_is_not_too_large(monkeypatch):
    image = sample_photograph()
    levels = gaussian_pyramid(image)
    for limit, first in ((4_000_000, 0), (image.shape[0] * image.shape[1] // 2, 2)):
        monkeypatch.setattr(turned_photographs, "MAX_PIXELS", limit)
        light = evened_levels(levels, image.shape, 4)
        np.testing.assert_array_equal(light[0].image, evened(levels[first].image))
        scales = [level.scale for level in levels[first:]]
        np.testing.assert_allclose([level.scale for level in light], scales)
        shapes = [[level.shape for level in some] for some in (light, levels[first:])]
        assert abs(np.subtract(*shapes)).max() <= 1


@pytest.mark.parametrize(
    "height, width", [(1, 40_000), (30, 100_000), (1000, 12_000), (100_000, 20)]
)
def test_strips_are_rotated_on_levels_that_do_not_become_too_large(height, width):
    shapes = []

    def search(levels):
        shapes.append(levels[0].shape)
        return {"spot": np.array([[0.0, 0.0, 0.0, 1.0]])}

    levels = gaussian_pyramid(np.zeros((height, width, 3), np.uint8), min_size=1, min_scale=0.01)
    if height == 1:
        levels += [Level(np.zeros((1, 1600, 3), np.uint8), 0.04)]
    (rows,) = turned_maxima(levels, (height, width), (-30.0, 30.0), search).values()
    assert len(rows) == len(shapes) == 2 and all(
        h * w <= 1.01 * turned_photographs.MAX_TURNED for h, w in shapes
    )


@pytest.mark.parametrize(
    "height, width, scale", [(1600, 2400, 1.0), (1150, 3450, 1.0), (3000, 4000, 0.5)]
)
def test_levels_of_ordinary_photographs_are_limited_by_their_own_size(height, width, scale):
    scales = []

    def search(levels):
        scales.append(levels[0].scale)
        return {"spot": np.empty((0, 4))}

    levels = gaussian_pyramid(np.zeros((height, width, 3), np.uint8))
    turned_maxima(levels, (height, width), (30.0,), search)
    assert scales == [scale]


def test_a_strip_without_room_for_a_face_is_not_searched_turned(monkeypatch):
    monkeypatch.setattr("annealed.models.keypoints.detector.turned_maxima", None)
    assert load_model("faces").find(np.zeros((1, 100_000, 3), np.uint8)).instances == []
