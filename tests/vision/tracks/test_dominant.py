"""The dominant motion: what deviates from it, candidates and measures of segmentations."""

import numpy as np
import pytest
from annealed.models import load_model
from annealed.vision.tracks.candidates import DOMINANT_FAMILIES, DominantFamily, candidates
from annealed.vision.tracks.dominant import MEASURES, dominant_measures, dominant_motion
from annealed.vision.tracks.labels import misclassification
from annealed.vision.tracks.pair_features import ALL_PARTS, PairFeatures
from annealed.vision.tracks.tracks import Tracks

AWAY, ONCOMING, CROSSING = 1, 2, 3


def body(rng, centre, size, n):
    return np.asarray(centre) + rng.uniform(-0.5, 0.5, (n, 3)) * size


def street(speed=0.45, seed=0):
    """Tracks (30, P, 2) and bodies seen from a camera that drives along a street: the static scene,
    a car ahead that draws away, an oncoming car, and a walker."""
    rng = np.random.default_rng(seed)
    ground = np.column_stack(
        [rng.uniform(-8, 8, 250), np.full(250, 1.5), np.exp(rng.uniform(np.log(18), 4.3, 250))]
    )
    sides = np.column_stack(
        [rng.choice([-8.0, 8.0], 250), rng.uniform(-5, 1.5, 250), rng.uniform(20, 70, 250)]
    )
    parts = [
        np.concatenate([ground, sides]),
        body(rng, [1.2, 0.8, 16], [1.8, 1.4, 0.2], 14),
        body(rng, [-2.5, 0.6, 42], [2.0, 1.8, 0.2], 14),
        body(rng, [-4.0, 0.6, 22], [0.8, 1.8, 0.2], 14),
    ]
    velocities = np.array([[0, 0, 0], [0, 0, 0.62], [0, 0, -0.35], [0.12, 0, 0.0]])
    labels = np.repeat(np.arange(4), [len(part) for part in parts])
    t = np.arange(30.0)[:, None, None]
    points = np.concatenate(parts) + t * velocities[labels] - t * [0, 0, speed]
    pixels = 460.0 * points[..., :2] / points[..., 2:] + [320, 180]
    return pixels + rng.normal(0, 0.1, pixels.shape), labels


@pytest.fixture(scope="module")
def scene():
    pixels, labels = street()
    tracks = Tracks(pixels)
    return tracks, labels[tracks.canonical_order], labels


def test_a_car_that_draws_away_lies_behind_the_camera(scene):
    tracks, labels, _ = scene
    dominant = dominant_motion(tracks)
    assert np.median(dominant.behind[labels == AWAY]) > 0.5
    assert (dominant.behind[labels == 0] < 0.2).all()
    assert np.median(dominant.outlying["essential"][labels == CROSSING]) > 0.5
    assert np.mean(dominant.outlying["essential"][labels == ONCOMING]) < 0.2


def test_the_focal_length_need_not_be_known(scene):
    """The extent of the points stands for the width of the image: here, half of it."""
    tracks, labels, _ = scene
    middle = np.abs(tracks.in_canonical_order - [320, 180]).max(axis=(0, 2)) < 110
    kept = middle | (labels > 0)
    part = Tracks(tracks.in_canonical_order[:, kept])
    of = labels[kept][part.canonical_order]
    assert np.median(dominant_motion(part).behind[of == AWAY]) > 0.5
    assert (dominant_motion(part).behind[of == 0] < 0.25).all()


def test_cars_on_the_axis_are_among_the_candidates(scene):
    tracks, _, labels = scene
    errors = {
        family.nearest: min(
            misclassification(labels, candidate.labels)
            for candidate in candidates(tracks, 4, (family,))
        )
        for family in DOMINANT_FAMILIES[:2]
    }
    assert errors[1] < 0.02


def test_the_shipped_model_segments_the_street(scene):
    tracks, _, labels = scene
    answer = load_model("motion").segment(tracks.coordinates, 4)
    assert misclassification(labels, answer.labels) < 0.06  # one motion for all: 0.08
    assert np.mean(answer.labels[labels == AWAY] == answer.labels[labels == 0][0]) < 0.3


def test_a_static_camera_sees_bodies_deviate_from_a_plane():
    pixels, labels = street(speed=0.0)
    tracks = Tracks(pixels)
    (candidate,) = candidates(tracks, 4, (DominantFamily("homography"),))
    assert misclassification(labels, candidate.labels) < 0.02


@pytest.mark.parametrize("family", DOMINANT_FAMILIES)
def test_the_order_of_points_does_not_matter(family):
    pixels, _ = street(seed=1)
    order = np.random.default_rng(0).permutation(pixels.shape[1])
    one, other = (candidates(t, 3, (family,)) for t in (pixels, pixels[:, order]))
    for a, b in zip(one, other, strict=True):
        assert misclassification(a.labels[order], b.labels) == 0


def test_measures_prefer_the_truth(scene):
    tracks, labels, _ = scene
    lost = np.where(labels == AWAY, 0, labels)
    halves = np.where((labels == 0) & (tracks.in_canonical_order[0, :, 0] > 320), 4, labels)
    values = dominant_measures(tracks, [labels, lost, halves])
    columns = {name: values[:, MEASURES.index(name)] for name in MEASURES}
    behind = columns["points behind, mean deviation within motions"]
    assert behind[0] < behind[1]
    others = columns["outliers of the essential matrix, share of the others in other motions"]
    assert others[0] < others[2]
    gap = columns["smallest depth gap of a motion that follows the dominant one"]
    assert gap[0] > gap[2]


@pytest.mark.parametrize("n_frames", [2, 3])
def test_few_points_frames_and_no_motion_have_measures(n_frames):
    rng = np.random.default_rng(0)
    still = np.broadcast_to(rng.uniform(0, 100, (1, 9, 2)), (n_frames, 9, 2))
    shifted = still + np.arange(n_frames)[:, None, None] * 3.0
    for pixels in (still, shifted, rng.uniform(0, 100, (n_frames, 9, 2))):
        values = PairFeatures(ALL_PARTS).compute(pixels, [np.arange(9) % 2, np.zeros(9, int)])
        assert np.isfinite(values).all()
        for family in DOMINANT_FAMILIES:
            for candidate in candidates(pixels, 2, (family,)):
                assert len(candidate.labels) == 9
