"""Features of segmentations: values by name, and invariances."""

import numpy as np
import pytest
from annealed.vision.tracks.features import (
    PAPER_FEATURES,
    SegmentationFeatures,
    nearest_neighbours,
    subspace_distances,
)
from annealed.vision.tracks.tracks import positions
from helpers import rigid_motions
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

FEATURES = SegmentationFeatures(n_thresholds=5, neighbours=(3, 7))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 4), st.integers(2, 30))
def test_features_ignore_order_and_names_and_have_one_length(seed, n_motions, n_frames):
    rng = np.random.default_rng(seed)
    tracks, _ = rigid_motions(n_motions, 8, n_frames, seed=seed)
    labels = rng.integers(0, n_motions, tracks.shape[1])
    labels[:n_motions] = np.arange(n_motions)
    plain = FEATURES.compute(tracks, [labels])
    order, names = rng.permutation(len(labels)), rng.permutation(n_motions) + 10
    changed = FEATURES.compute(tracks[:, order], [names[labels][order]])
    np.testing.assert_allclose(changed, plain, rtol=1e-7, atol=1e-9)
    assert plain.shape == (1, len(FEATURES.get_feature_names_out()))
    assert np.isfinite(plain).all()


def test_distances_agree_with_least_squares():
    rng = np.random.default_rng(0)
    for width in (2, 5, 40):
        points, labels = rng.standard_normal((30, width)), rng.integers(0, 2, 30)
        expected = np.empty(30)
        for k in (0, 1):
            centred = points[labels == k] - points[labels == k].mean(axis=0)
            axes = np.linalg.svd(centred)[2][:3]
            expected[labels == k] = np.linalg.norm(centred - centred @ axes.T @ axes, axis=1)
        np.testing.assert_allclose(subspace_distances(points, labels), expected, atol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_few_points_fit_perfectly(size):
    points = np.random.default_rng(0).standard_normal((size + 20, 10))
    labels = np.arange(size + 20) < size
    assert subspace_distances(points, labels)[:size].max() < 1e-7


@pytest.mark.parametrize("measure", ["euclidean", "angular"])
def test_neighbours_agree_with_brute_force(measure):
    points = np.random.default_rng(0).standard_normal((25, 4))
    far = (
        cdist(points, points)
        if measure == "euclidean"
        else -(np.abs(1 - cdist(points, points, "cosine")))
    )
    np.fill_diagonal(far, np.inf)
    np.testing.assert_array_equal(
        nearest_neighbours(points, 6, measure), np.argsort(far, axis=1)[:, :6]
    )


def test_features_are_what_their_names_say():
    tracks, truth = rigid_motions(2, 12, noise=0.3)
    wrong = np.arange(24) % 2
    names = list(FEATURES.get_feature_names_out())
    features = FEATURES.compute(tracks, [truth, wrong])
    raw = positions(tracks) / np.sqrt(len(tracks))
    for row, labels in enumerate((truth, wrong)):
        distances = subspace_distances(raw, labels)
        assert features[row, names.index("raw: likelihood, mean distance")] == pytest.approx(
            np.log(distances.mean()), abs=1e-4
        )
        threshold = FEATURES.thresholds[2]
        share = features[row, names.index(f"raw: likelihood, share above {threshold:.3g}")]
        assert share == pytest.approx((distances >= threshold).mean())
        near = nearest_neighbours(raw, 3, "euclidean")
        cut = (labels[near] != labels[:, None]).mean()
        assert features[row, names.index("raw: prior, euclidean, 3 neighbours")] == pytest.approx(
            cut
        )


def test_the_papers_pool_has_more_than_2000_features():
    names = PAPER_FEATURES.get_feature_names_out()
    assert len(names) > 2000
    assert len(set(names)) == len(names)
    tracks, truth = rigid_motions(2, 12)
    assert PAPER_FEATURES.compute(tracks, [truth]).shape == (1, len(names))


def test_more_smallest_than_dimensions():
    with pytest.raises(
        ValueError, match="n_smallest=4 is not valid; expected at most 2, the number of dimensions"
    ):
        SegmentationFeatures(dimensions=(2.0, 4.0))
