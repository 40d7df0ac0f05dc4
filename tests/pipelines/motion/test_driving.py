"""Made driving scenes: what their settings say, and that merging finds what moves in them."""

import numpy as np
import pytest
from annealed.pipelines.motion.driving import KINDS, TEST_KINDS, TRAINING_KINDS, driving_sequence
from annealed.vision.tracks.candidates import MERGED_FAMILIES, PAIR_FAMILIES, candidates
from annealed.vision.tracks.labels import misclassification
from annealed.vision.tracks.merging import merged
from annealed.vision.tracks.pairs.measures import moment_sums, motion_costs
from annealed.vision.tracks.tracks import Tracks


@pytest.mark.parametrize("kind", KINDS)
def test_scenes_are_what_their_kind_says(kind):
    scenes = [driving_sequence(kind, seed) for seed in range(6)]
    again = driving_sequence(kind, 3)
    np.testing.assert_array_equal(again.tracks, scenes[3].tracks)
    for scene in scenes:
        n_frames = len(scene.tracks)
        assert KINDS[kind].frames[0] <= n_frames <= KINDS[kind].frames[1]
        assert 2 <= scene.n_motions <= 6 and np.bincount(scene.labels).min() >= 8
        seen = np.isfinite(scene.tracks).all(axis=2).sum(axis=0)
        assert (seen >= min(n_frames, 5)).all()


def test_kinds_to_measure_on_are_unlike_those_to_train_on():
    assert not set(TRAINING_KINDS) & set(TEST_KINDS)
    lenses = [kind.lens for kind in TRAINING_KINDS.values()]
    assert (
        TEST_KINDS["wide"].lens[1] <= min(low for low, _ in lenses)
        and TEST_KINDS["long"].lens[0] >= 1.0
    )
    assert TEST_KINDS["long"].errors not in {kind.errors for kind in TRAINING_KINDS.values()}


def test_bodies_on_the_axis_are_small_and_a_static_camera_does_not_move():
    axis = [driving_sequence("axis", seed) for seed in range(6)]
    shares = [np.bincount(scene.labels)[1:].min() / len(scene.labels) for scene in axis]
    assert np.median(shares) < 0.05
    static, held = (driving_sequence(kind, 2) for kind in ("static", "hand-held"))
    moved = [
        np.nanmedian(np.ptp(scene.tracks[:, scene.labels == 0], axis=0)) for scene in (static, held)
    ]
    assert moved[0] < 3.0 < moved[1]


def best(scene, families):
    found = candidates(Tracks.completed(scene.tracks), scene.n_motions, families)
    return min(misclassification(scene.labels, candidate.labels) for candidate in found)


def test_merging_finds_small_bodies_before_a_deep_background():
    scenes = [
        driving_sequence(kind, seed) for kind in ("road", "street", "plain") for seed in range(4)
    ]
    divided, joined = (
        np.mean([best(scene, families) for scene in scenes])
        for families in (PAIR_FAMILIES, MERGED_FAMILIES)
    )
    assert joined < 0.5 * divided and joined < 0.06


def test_the_union_that_costs_least_is_joined():
    scene = driving_sequence("road", 0)
    tracks = Tracks.completed(scene.tracks)
    truth = scene.labels[tracks.canonical_order]
    parts = np.where(truth == 0, 10 + np.arange(len(truth)) % 3, truth)  # the background in three
    assert misclassification(truth, merged(tracks, parts, scene.n_motions)) == 0
    members = np.array([truth == 0, parts == 10, parts == 11, parts == 12])
    alone = motion_costs(tracks.pairs, members, moment_sums(tracks.pairs, members))
    assert alone[0] < alone[1:].sum()


def test_the_order_of_points_does_not_matter():
    scene = driving_sequence("plain", 1)
    order = np.random.default_rng(0).permutation(len(scene.labels))
    one, other = (
        candidates(Tracks.completed(t), 2, MERGED_FAMILIES[:1])
        for t in (scene.tracks, scene.tracks[:, order])
    )
    assert [misclassification(a.labels[order], b.labels) for a, b in zip(one, other)] == [0] * len(
        one
    )
