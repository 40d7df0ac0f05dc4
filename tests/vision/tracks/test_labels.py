"""Canonical labels, and the error of a segmentation."""

import numpy as np
from annealed.vision.tracks.labels import by_size, misclassification
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=30), st.permutations([5, 6, 7, 8]))
def test_misclassification_ignores_names(truth, names):
    truth = np.array(truth)
    assert misclassification(truth, np.array(names)[truth]) == 0.0
    other = np.roll(truth, 1)
    assert (
        misclassification(truth, other)
        == misclassification(np.array(names)[truth], other)
        == misclassification(other, truth)
    )


def test_labels_by_size():
    np.testing.assert_array_equal(by_size(np.array([5, 5, 1, 2, 2, 2])), [1, 1, 2, 0, 0, 0])
