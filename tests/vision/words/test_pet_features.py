"""Columns of photographs: names, head boxes, sizes."""

import cv2
import numpy as np
import pytest
import scipy.sparse as sp
from annealed.vision import PetFeatures, Photograph, colour_histogram
from helpers import photographs, picture

N_WORDS = 40


@pytest.fixture(scope="module")
def features():
    return PetFeatures(N_WORDS, side=120, head_side=64, random_state=0).fit(photographs(16)[0])


def test_colour_histogram():
    image = np.array([[[255, 0, 128], [0, 26, 25]]], np.uint8)
    histogram = colour_histogram(image)
    assert (
        histogram.shape == (1000,)
        and histogram.sum() == 2
        and histogram[905] == 1
        and histogram[10] == 1
    )


def test_columns_are_named(features):
    names = features.get_feature_names_out()
    assert len(names) == len(set(names)) == 6 * N_WORDS + 1000
    assert names[5 * N_WORDS] == "head word 0" and names[-1] == "colour 9 9 9"
    X = features.transform(photographs(2)[0] + photographs(2, heads=False)[0])
    assert sp.issparse(X) and X.dtype == np.float32
    heads = X[:, 5 * N_WORDS : 6 * N_WORDS]
    assert heads[:2].nnz and not heads[2:].nnz


def test_size_of_a_photograph_hardly_matters(features):
    image = picture("ring", 5)
    large = cv2.resize(image, None, fx=2, fy=2, interpolation=cv2.INTER_LINEAR)
    small, doubled = (features.row(Photograph(im)) for im in (image, large))
    assert small @ doubled > 0.85 * (small @ small)


@pytest.mark.parametrize(
    "box", [(0, 0, 200, 50), (-9, 0, 50, 50), (30, 30, 20, 50), (float("nan"), 0, 5, 5)]
)
def test_boxes_outside_are_refused(features, box):
    with pytest.raises(ValueError, match="head box"):
        features.row(Photograph(picture("ring", 1), box))


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (7, 5)])
def test_tiny_images_have_columns(features, shape):
    row = features.row(Photograph(np.full((*shape, 3), 7, np.uint8)))
    assert np.isfinite(row).all()
