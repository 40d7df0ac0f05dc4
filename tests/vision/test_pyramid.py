"""The pyramid's scales, positions and smoothing."""

import pickle
import weakref

import numpy as np
import pytest
from annealed.vision import Level, gaussian_pyramid, pyramid
from skimage.data import astronaut

PHOTO = astronaut()


def test_scales():
    levels = gaussian_pyramid(PHOTO)
    np.testing.assert_allclose(
        [level.scale for level in levels], 2.0 ** (-np.arange(len(levels)) / 4)
    )
    for level in levels:
        assert level.image.dtype == np.uint8
        np.testing.assert_allclose(level.image.shape[:2], 512 * level.scale, atol=1)
    assert 12 <= min(levels[-1].image.shape[:2]) < 12 * 2**0.25
    assert np.array_equal(levels[0].image, PHOTO)


def test_range_of_scales_gives_the_same_levels():
    everything = gaussian_pyramid(PHOTO[:300], max_scale=2.0)
    assert everything[0].scale == 2.0
    part = gaussian_pyramid(PHOTO[:300], min_scale=0.25, max_scale=0.6)
    assert [level.scale for level in part] == [
        level.scale for level in everything if 0.25 <= level.scale <= 0.6
    ]
    for level in part:
        (same,) = [other.image for other in everything if other.scale == level.scale]
        assert np.array_equal(level.image, same)
    assert gaussian_pyramid(PHOTO, max_scale=0.01) == []
    assert len(gaussian_pyramid(PHOTO, 1, min_scale=0.5)) == 2


def test_small_images():
    assert gaussian_pyramid(PHOTO[:1, :1]) == []
    assert (
        len(gaussian_pyramid(PHOTO[:1, :7], min_size=1)) == 4
    )  # sides round to 1 down to 2 ** -0.75
    assert len(gaussian_pyramid(PHOTO[:3, :400], min_size=1)) > 6


def test_positions():
    """A smooth blob stays where the coordinates say, on every level and for odd sizes."""
    ys, xs = np.mgrid[:331, :419]
    centre = np.array([271.3, 117.8])
    blob = 250 * np.exp(-((xs - centre[0]) ** 2 + (ys - centre[1]) ** 2) / (2 * 18.0**2))
    image = np.repeat(np.rint(blob).astype(np.uint8)[:, :, None], 3, axis=2)
    for level in gaussian_pyramid(image, min_scale=0.1, max_scale=1.5):
        weights = level.image[:, :, 0].astype(float)
        y, x = np.indices(weights.shape)
        centroid = np.array([(weights * x).sum(), (weights * y).sum()]) / weights.sum()
        np.testing.assert_allclose(level.to_image(centroid), centre, atol=0.1 + 0.05 / level.scale)
        np.testing.assert_allclose(level.from_image(level.to_image(centroid)), centroid)


def test_anti_aliasing():
    """Stripes finer than a level's pixels become grey there, not moire."""
    stripes = np.zeros((256, 256, 3), np.uint8)
    stripes[:, ::2] = 255
    for level in gaussian_pyramid(stripes, max_scale=0.5):
        inner = level.image[3:-3, 3:-3].astype(float)
        assert inner.std() < 12
        np.testing.assert_allclose(inner.mean(), 127.5, atol=3)
    flat = np.full((64, 90, 3), 93, np.uint8)
    assert all((level.image == 93).all() for level in gaussian_pyramid(flat, max_scale=2.0))


def test_bad_input():
    with pytest.raises(ValueError, match=r"expected a uint8 array of shape \(H, W, 3\)"):
        gaussian_pyramid(PHOTO[:, :, 0])
    with pytest.raises(ValueError, match="scales_per_octave=0"):
        gaussian_pyramid(PHOTO, 0)
    with pytest.raises(ValueError, match="max_scale=0"):
        gaussian_pyramid(PHOTO, max_scale=0)


@pytest.mark.parametrize("max_scale", [1.0, 2.0])
def test_large_levels_are_made_again_and_are_the_same(monkeypatch, max_scale):
    image = np.random.default_rng(0).integers(0, 256, (97, 131, 3), dtype=np.uint8)
    expected = gaussian_pyramid(image, max_scale=max_scale)
    monkeypatch.setattr(pyramid, "LARGE", 1000)
    monkeypatch.setattr(pyramid, "KEPT", 2000)
    levels = gaussian_pyramid(image, max_scale=max_scale)
    assert [level.scale for level in levels] == [level.scale for level in expected]
    for k in (*range(len(levels)), *reversed(range(len(levels)))):
        np.testing.assert_array_equal(levels[k].image, expected[k].image)
    first = weakref.ref(levels[1].image)
    assert levels[1].image is first()
    assert levels[2].image.size and first() is None, "two large levels in memory"


def test_parts_of_a_level_repeat_its_border():
    image = np.random.default_rng(0).integers(0, 256, (9, 12, 3), np.uint8)
    padded = np.pad(image, ((40, 40), (40, 40), (0, 0)), mode="edge")
    for x, y, width, height in ((2, 3, 5, 4), (-4, 6, 8, 9), (-15, -18, 6, 5), (13, 2, 7, 30)):
        expected = padded[y + 40 : y + 40 + height, x + 40 : x + 40 + width]
        np.testing.assert_array_equal(Level(image, 1.0).part(x, y, width, height), expected)
        matrix = np.array([[1.0, 0, x], [0, 1, y]])
        np.testing.assert_array_equal(
            Level(lambda: image, 1.0).warped(matrix, (width, height)), expected
        )


def test_levels_can_be_pickled():
    for level in gaussian_pyramid(np.arange(60 * 50 * 3, dtype=np.uint8).reshape(60, 50, 3)):
        again = pickle.loads(pickle.dumps(level))
        assert again.scale == level.scale
        np.testing.assert_array_equal(again.image, level.image)
