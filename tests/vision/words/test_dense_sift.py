"""Dense SIFT against OpenCV's descriptor."""

import cv2
import numpy as np
import pytest
from annealed.vision import DenseSift
from helpers import picture


@pytest.mark.parametrize("size, shape", [(2.0, (61, 83)), (5.5, (61, 83)), (13.0, (40, 90))])
def test_sift_is_opencvs(size, shape):
    image = picture("cross", 1, shape)
    ours = DenseSift(sizes=(size,), step=7).describe(image)
    keypoints = [cv2.KeyPoint(float(x), float(y), size, 0.0) for x, y in ours.positions]
    keypoints_used, theirs = cv2.SIFT_create().compute(
        cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), keypoints
    )
    assert len(keypoints_used) == len(keypoints)
    difference = np.abs(theirs - ours.values.astype(np.float32))
    assert (
        difference.max() <= 2 and difference.mean() < 0.02
    )  # OpenCV's angles and exponentials are approximate


def test_sift_of_the_mirror_image():
    image = picture("ring", 2, (60, 81))
    mirrored = DenseSift(step=10).describe(image[:, ::-1])
    ours = DenseSift(step=10).describe(image).mirrored()
    by_place = {
        (x, y, s): v.astype(int)
        for (x, y), s, v in zip(mirrored.positions, mirrored.sizes, mirrored.values)
    }
    for (x, y), s, value in zip(ours.positions, ours.sizes, ours.values):
        assert np.abs(by_place[x, y, s] - value).max() <= 1


def test_sift_grid_is_centred_and_flat_images_are_zero():
    described = DenseSift(sizes=(4.0,), step=8).describe(np.full((1, 30, 3), 9, np.uint8))
    np.testing.assert_array_equal(described.positions[:, 0], [2, 10, 18, 26])
    assert not described.values.any()


@pytest.mark.parametrize("bad", [{"sizes": ()}, {"sizes": (0.0,)}, {"step": 0}, {"sigma": 0.5}])
def test_sift_refuses(bad):
    with pytest.raises(ValueError, match="expected"):
        DenseSift(**bad)
