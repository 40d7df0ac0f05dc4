"""Candidates and features of motion segmentation: outside truths and invariances."""

import numpy as np
import pandas as pd
import pytest
from annealed.vision.tracks.candidates import JOINED_FAMILIES, PAPER_FAMILIES, VIDEO_FAMILIES, SubspaceFamily, candidates
from annealed.vision.tracks.clustering import angular_affinity, k_means, spectral_clustering
from annealed.vision.tracks.completion import complete_tracks
from annealed.vision.tracks.features import PAPER_FEATURES, SegmentationFeatures, nearest_neighbours, subspace_distances
from annealed.vision.tracks.io import read_sequences
from annealed.vision.tracks.labels import canonical_labels, misclassification
from annealed.vision.tracks.representations import positions, velocities
from annealed.vision.tracks.tracks import Tracks
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

FEATURES = SegmentationFeatures(n_thresholds=5, neighbours=(3, 7))


def rigid_motions(n_motions=2, n_points=25, n_frames=15, noise=0.05, seed=0):
    """Affine projections of 3-D point clouds, each with its own rotation and translation."""
    rng = np.random.default_rng(seed)
    tracks, labels = [], []
    for k in range(n_motions):
        cloud = rng.uniform(-60, 60, (n_points, 3))
        axis = rng.standard_normal(3)
        axis /= np.linalg.norm(axis)
        cross = np.cross(np.eye(3), axis)
        place, speed = rng.uniform(100, 300, 2), rng.uniform(-4, 4, 2)
        frames = []
        for t in range(n_frames):
            angle = (0.03 + 0.02 * k) * t
            rotation = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
            frames.append((cloud @ rotation.T)[:, :2] + place + t * speed)
        tracks.append(np.array(frames))
        labels += [k] * n_points
    tracks = np.concatenate(tracks, axis=1)
    return tracks + noise * rng.standard_normal(tracks.shape), np.array(labels)


@pytest.mark.parametrize("n_motions", [1, 2, 3])
def test_rigid_motions_are_among_the_candidates(n_motions):
    tracks, truth = rigid_motions(n_motions)
    found = candidates(tracks, n_motions)
    assert min(misclassification(truth, c.labels) for c in found) == 0
    assert len({canonical_labels(c.labels).tobytes() for c in found}) == len(found)


def test_velocities_are_equation_20():
    tracks = np.random.default_rng(0).uniform(size=(4, 3, 2))
    for p in range(3):
        x, y = tracks[:, p].T
        expected = [x[0] - x[1], y[0] - y[1], x[1] - x[2], y[1] - y[2], x[2] - x[3], y[2] - y[3], x[3], y[3]]
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
    affinity = angular_affinity(np.linalg.svd(velocities(tracks), full_matrices=False)[0][:, :7], 2.0)
    root = np.diag(affinity.sum(axis=1) ** -0.5)
    rows = np.linalg.eigh(root @ affinity @ root)[1][:, -3:]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    reference = KMeans(3, n_init=50, random_state=0).fit_predict(rows)
    assert misclassification(reference, spectral_clustering(affinity, 3)) == 0


def test_k_means_finds_the_best_partition_of_few_points():
    points = np.random.default_rng(1).standard_normal((9, 2))

    def cost(labels):
        groups = [points[labels == k] for k in np.unique(labels)]
        return sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups)

    best = min(cost(np.array([(code >> i) & 1 for i in range(9)])) for code in range(2**8))
    assert cost(k_means(points, 2)) == pytest.approx(best)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 3), st.sampled_from(VIDEO_FAMILIES))
def test_order_of_points_does_not_matter(seed, n_motions, family):
    tracks, _ = rigid_motions(n_motions, 15, seed=seed)
    order = np.random.default_rng(seed).permutation(tracks.shape[1])
    plain = {canonical_labels(c.labels[order]).tobytes() for c in candidates(tracks, n_motions, (family,))}
    shuffled = {canonical_labels(c.labels).tobytes() for c in candidates(tracks[:, order], n_motions, (family,))}
    assert plain == shuffled


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
    far = cdist(points, points) if measure == "euclidean" else -(np.abs(1 - cdist(points, points, "cosine")))
    np.fill_diagonal(far, np.inf)
    np.testing.assert_array_equal(nearest_neighbours(points, 6, measure), np.argsort(far, axis=1)[:, :6])


def test_features_are_what_their_names_say():
    tracks, truth = rigid_motions(2, 12, noise=0.3)
    wrong = np.arange(24) % 2
    names = list(FEATURES.get_feature_names_out())
    features = FEATURES.compute(tracks, [truth, wrong])
    raw = positions(tracks) / np.sqrt(len(tracks))
    for row, labels in enumerate((truth, wrong)):
        distances = subspace_distances(raw, labels)
        assert features[row, names.index("raw: likelihood, mean distance")] == pytest.approx(np.log(distances.mean()), abs=1e-4)
        threshold = FEATURES.thresholds[2]
        share = features[row, names.index(f"raw: likelihood, share above {threshold:.3g}")]
        assert share == pytest.approx((distances >= threshold).mean())
        near = nearest_neighbours(raw, 3, "euclidean")
        cut = (labels[near] != labels[:, None]).mean()
        assert features[row, names.index("raw: prior, euclidean, 3 neighbours")] == pytest.approx(cut)


def test_the_papers_pool_has_more_than_2000_features():
    names = PAPER_FEATURES.get_feature_names_out()
    assert len(names) > 2000
    assert len(set(names)) == len(names)
    tracks, truth = rigid_motions(2, 12)
    assert PAPER_FEATURES.compute(tracks, [truth]).shape == (1, len(names))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=30), st.permutations([5, 6, 7, 8]))
def test_misclassification_ignores_names(truth, names):
    truth = np.array(truth)
    assert misclassification(truth, np.array(names)[truth]) == 0.0
    other = np.roll(truth, 1)
    assert misclassification(truth, other) == misclassification(np.array(names)[truth], other) == misclassification(other, truth)


@pytest.mark.parametrize(
    "shape, n_motions, message",
    [
        ((1, 20, 2), 2, "1 frame;"),
        ((5, 7, 2), 2, "7 points for 2 motions; expected at least 4 points per motion, 8"),
        ((5, 20, 2), 0, "motions is 0; expected a number from 1"),
        ((5, 20, 2), 21, "motions is 21; expected a number from 1 to the number of points, 20"),
        ((5, 20), 2, r"shape \(5, 20\)"),
    ],
)
def test_bad_tracks(shape, n_motions, message):
    with pytest.raises(ValueError, match=message):
        candidates(np.random.default_rng(0).uniform(size=shape), n_motions)


def test_missing_entries_are_named():
    tracks = np.zeros((3, 9, 2))
    tracks[1, 4] = np.nan
    with pytest.raises(ValueError, match="missing"):
        Tracks(tracks)


def test_points_that_do_not_move_or_coincide_do_not_crash():
    tracks = np.zeros((6, 12, 2))
    tracks[:, 6:] += np.arange(6)[:, None, None]
    for c in candidates(tracks, 2, VIDEO_FAMILIES):
        assert np.isfinite(FEATURES.compute(tracks, [c.labels])).all()


def test_two_frames_are_enough_for_an_answer():
    tracks, _ = rigid_motions(3, 10, 2)
    assert candidates(tracks, 3, VIDEO_FAMILIES)


@pytest.mark.data
@pytest.mark.slow
def test_acceptance_numbers_on_hopkins155(data_dir):
    """The published row of velocity clustering (the rule) and the best candidates of both sets of families."""
    column = list(FEATURES.get_feature_names_out()).index("raw: likelihood, mean distance")
    rule, oracle = [], {PAPER_FAMILIES: [], JOINED_FAMILIES: []}
    for number, s in enumerate(read_sequences(data_dir / "hopkins155")):
        order = np.random.default_rng(number).permutation(len(s.labels))
        for families, errors in oracle.items():
            found = candidates(s.tracks[:, order], s.n_motions, families)
            all_errors = [100 * misclassification(s.labels[order], c.labels) for c in found]
            errors.append(min(all_errors))
            if families == PAPER_FAMILIES:
                features = FEATURES.compute(s.tracks[:, order], [c.labels for c in found])
                rule.append(all_errors[int(np.argmin(features[:, column]))])
    assert len(rule) == 155
    assert np.mean(rule) == pytest.approx(0.99, abs=0.05)
    assert np.mean(oracle[PAPER_FAMILIES]) == pytest.approx(0.39, abs=0.02)
    assert np.mean(oracle[JOINED_FAMILIES]) == pytest.approx(0.22, abs=0.02)


@pytest.mark.parametrize("kind", ["entries", "ends"])
def test_completed_tracks_are_segmented_as_well(kind):
    tracks, truth = rigid_motions(2, 30, 20)
    rng = np.random.default_rng(2)
    seen = rng.random(tracks.shape[:2]) > 0.2
    if kind == "ends":
        start, stop = rng.integers(0, 8, 60), rng.integers(12, 20, 60)
        seen = (np.arange(20)[:, None] >= start) & (np.arange(20)[:, None] <= stop)
    full = complete_tracks(np.where(seen[:, :, None], tracks, np.nan))
    np.testing.assert_array_equal(full[seen], tracks[seen])
    # The plain answer, to stay where a point was seen last (or first), is several times as far away.
    stay = pd.DataFrame(np.where(seen[:, :, None], tracks, np.nan).reshape(20, -1)).ffill().bfill().to_numpy().reshape(tracks.shape)
    far = [np.median(np.linalg.norm(guess - tracks, axis=2)[~seen]) for guess in (full, stay)]
    assert far[0] < far[1] / 3
    assert min(misclassification(truth, c.labels) for c in candidates(full, 2, (SubspaceFamily(), *VIDEO_FAMILIES))) <= 0.05


def test_complete_tracks_refuses_points_never_seen():
    tracks = np.random.default_rng(0).uniform(size=(5, 9, 2))
    assert complete_tracks(tracks) is tracks
    tracks[:, 3] = np.nan
    with pytest.raises(ValueError, match=r"1 of 9 points are never seen .*point 3"):
        complete_tracks(tracks)
    with pytest.raises(ValueError, match="9 of 9 points are never seen"):
        complete_tracks(np.full((5, 9, 2), np.nan))
