"""Affinities, spectral clustering and k-means against their definitions and scikit-learn."""

import numpy as np
import pytest
from annealed.vision.tracks.clustering import (
    angular_affinity,
    embedded_clusters,
    k_means,
    leading_eigenvectors,
)
from annealed.vision.tracks.labels import misclassification
from annealed.vision.tracks.tracks import velocities
from helpers import rigid_motions
from sklearn.cluster import KMeans


def test_velocities_are_equation_20():
    tracks = np.random.default_rng(0).uniform(size=(4, 3, 2))
    for p in range(3):
        x, y = tracks[:, p].T
        expected = [
            x[0] - x[1],
            y[0] - y[1],
            x[1] - x[2],
            y[1] - y[2],
            x[2] - x[3],
            y[2] - y[3],
            x[3],
            y[3],
        ]
        np.testing.assert_allclose(velocities(tracks)[p], expected)


def test_affinity_is_equation_21_with_zero_diagonal():
    points = np.random.default_rng(0).standard_normal((6, 3))
    affinity = angular_affinity(points, 2.0)
    for i in range(6):
        for j in range(6):
            cosine = points[i] @ points[j] / np.linalg.norm(points[i]) / np.linalg.norm(points[j])
            assert affinity[i, j] == pytest.approx(0.0 if i == j else cosine**4)


@pytest.mark.parametrize("seed", range(5))
def test_spectral_clustering_is_that_of_ng_jordan_and_weiss(seed):
    tracks, _ = rigid_motions(3, 20, seed=seed)
    affinity = angular_affinity(
        np.linalg.svd(velocities(tracks), full_matrices=False)[0][:, :7], 2.0
    )
    root = np.diag(affinity.sum(axis=1) ** -0.5)
    rows = np.linalg.eigh(root @ affinity @ root)[1][:, -3:]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    reference = KMeans(3, n_init=50, random_state=0).fit_predict(rows)
    for n_vectors in (3, 5):  # those of more clusters serve fewer
        assert (
            misclassification(
                reference, embedded_clusters(leading_eigenvectors(affinity, n_vectors), 3)
            )
            == 0
        )


def test_k_means_finds_the_best_partition_of_few_points():
    points = np.random.default_rng(1).standard_normal((9, 2))

    def cost(labels):
        groups = [points[labels == k] for k in np.unique(labels)]
        return sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups)

    best = min(cost(np.array([(code >> i) & 1 for i in range(9)])) for code in range(2**8))
    assert cost(k_means(points, 2)) == pytest.approx(best)
