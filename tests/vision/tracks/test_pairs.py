"""Models between two frames: exact fits, invariances, missing entries."""

import numpy as np
import pytest
from annealed.vision.tracks.candidates import PAIR_FAMILIES, PairFamily, candidates
from annealed.vision.tracks.features import SegmentationFeatures
from annealed.vision.tracks.labels import canonical_labels, misclassification
from annealed.vision.tracks.pair_features import PARTS, JoinedFeatures, PairFeatures
from annealed.vision.tracks.pairs.frame_pairs import KERNELS, FramePairs, frame_pairs
from annealed.vision.tracks.pairs.geometry import GEOMETRIES, distances, fit, moments
from annealed.vision.tracks.pairs.measures import SIGMA, moment_sums, motion_costs
from annealed.vision.tracks.tracks import Tracks
from helpers import rigid_motions
from scipy.spatial.transform import Rotation


def two_views(rng, n=40, planar=False, affine=False):
    """Points of one rigid body in two frames, about unit spread."""
    points = rng.uniform(-1, 1, (n, 3))
    if planar:
        points[:, 2] = 0.3 * points[:, 0] - 0.2 * points[:, 1]
    views = []
    for angle, place in ((0.0, (0, 0, 4)), (0.25, (0.3, -0.2, 3.5))):
        seen = Rotation.from_rotvec(angle * np.array([0.3, 1.0, 0.2])).apply(points) + place
        views.append(seen[:, :2] if affine else seen[:, :2] / seen[:, 2:] * 4)
    return np.concatenate(views, axis=1)


@pytest.mark.parametrize(
    "name, view",
    [
        ("affinity", {"planar": True, "affine": True}),
        ("homography", {"planar": True}),
        ("fundamental", {}),
        ("epipolar", {"affine": True}),
    ],
)
def test_a_model_fits_what_it_is_exact_for(name, view):
    rows = two_views(np.random.default_rng(0), **view)
    rows = rows - rows.mean(axis=0)
    model = fit(name, moments(name, rows).sum(axis=0)[None])
    assert distances(name, model, rows).max() < 1e-4
    minimal = next(g.n_minimal for g in GEOMETRIES if g.name == name)
    few = fit(name, moments(name, rows[:minimal]).sum(axis=0)[None])
    assert np.median(distances(name, few, rows)) < 1e-2
    elsewhere = rows + np.random.default_rng(1).normal(0, 0.3, rows.shape)
    assert distances(name, model, elsewhere).mean() > 0.05


@pytest.mark.parametrize("name", ["homography", "fundamental"])
def test_first_order_distances_are_those_of_small_errors(name):
    """Sampson's distance of slightly moved points is at most, and mostly close to, the
    displacement."""
    rng = np.random.default_rng(0)
    rows = two_views(rng, planar=name == "homography")
    model = fit(name, moments(name, rows).sum(axis=0)[None])
    moved = rng.normal(0, 1e-3, rows.shape)
    apart = distances(name, model, rows + moved)[0]
    assert (apart <= 1.02 * np.linalg.norm(moved, axis=1) + 1e-6).all() and apart.mean() > 3e-4


def test_pairs_hold_what_is_seen_in_both_frames():
    tracks, _ = rigid_motions(2, 20, 32)
    seen = np.random.default_rng(0).random(tracks.shape[:2]) < 0.7
    pairs = frame_pairs(tracks, seen)
    assert 17 <= len(pairs) <= 20 and sorted({pair.second - pair.first for pair in pairs}) == [
        2,
        4,
        8,
        16,
    ]
    for pair in pairs:
        assert (seen[pair.first, pair.points] & seen[pair.second, pair.points]).all()
        assert pair.is_long == (pair.second - pair.first >= 8)
        apart = tracks[pair.first, pair.points] - tracks[pair.first, pair.points[0]]
        np.testing.assert_allclose(
            (pair.rows[:, :2] - pair.rows[0, :2]) * pair.scale, apart, atol=1e-9
        )
    assert frame_pairs(tracks[:, :7], seen[:, :7]) == []


def test_kernels_are_shares_and_do_not_read_what_is_not_seen():
    tracks, truth = rigid_motions(2, 20, 16)
    seen = np.random.default_rng(0).random(tracks.shape[:2]) < 0.8
    one = FramePairs(tracks, seen).kernels
    other = FramePairs(np.where(seen[:, :, None], tracks, 1e6), seen).kernels
    assert list(one) == list(KERNELS)
    for name, kernel in one.items():
        np.testing.assert_array_equal(kernel, other[name])
        np.testing.assert_array_equal(kernel, kernel.T)
        assert not kernel.diagonal().any() and kernel.min() >= 0
    same = truth[:, None] == truth
    assert (
        one["epipolar"].max() <= 1
        and one["epipolar"][same].mean() > 1.5 * one["epipolar"][~same].mean()
    )


def test_candidates_from_pairs_with_missing_entries():
    tracks, truth = rigid_motions(2, 25, 20)
    gaps = tracks.copy()
    gaps[12:, ::3] = np.nan
    for values in (tracks, gaps):
        listed = candidates(Tracks.completed(values), 2, PAIR_FAMILIES)
        assert min(misclassification(truth, one.labels) for one in listed) == 0
        assert all(one.family.startswith("pairs, ") for one in listed)


def test_features_do_not_depend_on_order_and_names():
    tracks, truth = rigid_motions(3, 15, 12, noise=0.5)
    tracks[8:, ::4] = np.nan
    labels = [truth, (truth + (np.arange(45) % 5 == 0)) % 3]
    order = np.random.default_rng(0).permutation(45)
    a = PairFeatures().compute(Tracks.completed(tracks), labels)
    b = PairFeatures().compute(
        Tracks.completed(tracks[:, order]), [2 - one[order] for one in labels]
    )
    assert np.isfinite(a).all()
    np.testing.assert_allclose(a, b, atol=1e-5)
    one, other = (
        candidates(Tracks.completed(values), 3, (PairFamily("homography"),))
        for values in (tracks, tracks[:, order])
    )
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(canonical_labels(x.labels[order]), canonical_labels(y.labels))


def test_the_truth_fits_better():
    tracks, truth = rigid_motions(2, 30, 20, noise=0.3)
    wrong = truth.copy()
    wrong[:6] = 1
    values = PairFeatures().compute(tracks, [truth, wrong])
    names = PairFeatures().get_feature_names_out()
    for part in (
        "epipolar, all gaps: likelihood, mean residual",
        "fundamental, long gaps: likelihood, rms residual",
        "GRIC",
        "cut",
    ):
        for column in [i for i, name in enumerate(names) if part in name]:
            if "GRIC" not in part or "best" in names[column]:
                assert values[0, column] < values[1, column], names[column]


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_the_features(part):
    tracks, truth = rigid_motions(2, 10, 9)
    whole, single = PairFeatures(), PairFeatures((part,))
    names = single.get_feature_names_out()
    at = [list(whole.get_feature_names_out()).index(name) for name in names]
    np.testing.assert_array_equal(
        single.compute(tracks, [truth]), whole.compute(tracks, [truth])[:, at]
    )
    assert single.is_prior().all() == (part == "cuts")


def test_parts_side_by_side():
    tracks, truth = rigid_motions(2, 10, 9)
    joined = JoinedFeatures()
    names = joined.get_feature_names_out()
    assert len(set(names)) == len(names) == 709 == len(joined.features()) == len(joined.is_prior())
    both = joined.compute(tracks, [truth])
    np.testing.assert_array_equal(both[:, :496], SegmentationFeatures().compute(tracks, [truth]))
    with pytest.raises(
        ValueError, match="feature part 'cut' is unknown; expected one of residuals"
    ):
        PairFeatures(("cut",))


@pytest.mark.parametrize("motions", [1, 2])
def test_few_points_and_frames_have_features_too(motions):
    tracks, _ = rigid_motions(2, 5, 2)
    labels = np.arange(10) % motions
    assert np.isfinite(JoinedFeatures().compute(tracks, [labels])).all()
    alone = np.full((2, 10, 2), np.nan)
    alone[:, :4] = tracks[:, :4]
    alone[0, 4:] = tracks[0, 4:]
    assert np.isfinite(PairFeatures().compute(Tracks.completed(alone), [labels])).all()


def test_costs_of_motions_are_those_of_the_best_model_in_each_pair_of_frames():
    """Models that cannot be the best are not fitted; motions with few or no points also have a
    cost."""
    tracks, truth = rigid_motions(2, 30, 20, noise=0.3)
    tracks[12:, ::4] = np.nan
    tracks = Tracks.completed(tracks)
    rng = np.random.default_rng(0)
    members = np.array(
        [
            truth == 0,
            truth == 1,
            truth >= 0,
            rng.random(len(truth)) < 0.3,
            np.arange(len(truth)) < 4,
            truth < 0,
        ]
    )
    sums = moment_sums(tracks.pairs, members)
    parts = {name: array[0] + array[1] for name, array in sums.items()}
    for name, array in sums.items():
        np.testing.assert_allclose(parts[name], array[2], rtol=1e-9, atol=1e-9)
    direct = np.zeros(len(members))
    for pair in tracks.pairs.pairs:
        each = []
        for geometry in GEOMETRIES:
            one = members[:, pair.points].astype(float)
            sizes = one.sum(axis=1)
            fitted = np.tensordot(
                np.where(sizes[:, None] < geometry.n_minimal + 2, 1.0, one),
                moments(geometry.name, pair.rows),
                1,
            )
            apart = (
                distances(geometry.name, fit(geometry.name, fitted), pair.rows) * pair.scale / SIGMA
            )
            robust = (one * np.minimum(apart**2, 2.0 * (4 - geometry.dimension))).sum(axis=1)
            parameters = np.log(4.0) * geometry.dimension * sizes + geometry.n_parameters * np.log(
                4.0 * np.maximum(sizes, 1)
            )
            each.append(np.where(sizes > 0, robust + parameters, 0.0))
        direct += np.min(each, axis=0)
    np.testing.assert_allclose(motion_costs(tracks.pairs, members, sums), direct, rtol=1e-5)


def test_only_columns_that_are_asked_for_are_computed():
    tracks, truth = rigid_motions(2, 15, 12, noise=0.3)
    features = JoinedFeatures()
    labels = [truth, 1 - truth, np.arange(len(truth)) % 2]
    whole = features.compute(tracks, labels)
    columns = np.array([3, 30, 255, 490, 496, 640, 660, 708])
    some = features.compute(tracks, labels, columns)
    np.testing.assert_array_equal(some[:, columns], whole[:, columns])
    assert some.shape == whole.shape and (some == 0).all(axis=0).sum() > 200
    assert not features.compute(tracks, labels, np.array([], int)).any()
