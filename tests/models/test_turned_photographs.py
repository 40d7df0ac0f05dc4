"""Photographs turned for the search of turned faces: what is found in them lies where it does in the original."""

import numpy as np
import pytest
from annealed.models.keypoints.turned_photographs import turned, turned_maxima

WIDTH, HEIGHT = 90, 50


def dot(x, y):
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[y - 1 : y + 2, x - 1 : x + 2] = 255
    return image


def brightest(image):
    """One maximum: the middle of what is bright; its score is the width of the image."""
    ys, xs = np.nonzero(image[..., 0] > 120)
    return {"spot": np.array([[xs.mean(), ys.mean(), image.shape[1], 0.5]])}


@pytest.mark.parametrize("degrees", [-30, 20, 90])
def test_nothing_is_cut_off_and_the_way_back_is_known(degrees):
    for x, y in ((4, 4), (84, 44), (60, 10)):
        shown, back = turned(dot(x, y), degrees)
        assert shown.dtype == np.uint8 and (degrees != 90 or abs(np.subtract(shown.shape[:2], (WIDTH, HEIGHT))).max() <= 1)
        place = brightest(shown)["spot"][0, :2]
        np.testing.assert_allclose(place @ back[:, :2].T + back[:, 2], [x, y], atol=0.4)


def test_maxima_of_both_sides_lie_in_the_original():
    (rows,) = turned_maxima(dot(60, 20), (-30.0, 30.0), brightest).values()
    np.testing.assert_allclose(rows[:, :2], [[60, 20]] * 2, atol=0.4)
    assert (rows[:, 2] > WIDTH).all() and (rows[:, 3] == 0.5).all()
