"""Candidate segmentations: known motions, invariances, checks of tracks, the published numbers."""

import annealed.vision.tracks.candidates as candidates_module
import numpy as np
import pytest
from annealed.vision.tracks.candidates import (
    ALL_FAMILIES,
    JOINED_FAMILIES,
    PAPER_FAMILIES,
    VIDEO_FAMILIES,
    candidates,
)
from annealed.vision.tracks.features import SegmentationFeatures
from annealed.vision.tracks.io import read_sequences
from annealed.vision.tracks.labels import canonical_labels, misclassification
from annealed.vision.tracks.tracks import Tracks
from helpers import rigid_motions
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("n_motions", [1, 2, 3])
def test_rigid_motions_are_among_the_candidates(n_motions):
    tracks, truth = rigid_motions(n_motions)
    listed = candidates(tracks, n_motions)
    assert min(misclassification(truth, c.labels) for c in listed) == 0
    assert len({canonical_labels(c.labels).tobytes() for c in listed}) == len(listed)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 3), st.sampled_from(VIDEO_FAMILIES))
def test_order_of_points_does_not_matter(seed, n_motions, family):
    tracks, _ = rigid_motions(n_motions, 15, seed=seed)
    order = np.random.default_rng(seed).permutation(tracks.shape[1])
    plain = {
        canonical_labels(c.labels[order]).tobytes()
        for c in candidates(tracks, n_motions, (family,))
    }
    shuffled = {
        canonical_labels(c.labels).tobytes()
        for c in candidates(tracks[:, order], n_motions, (family,))
    }
    assert plain == shuffled


def test_the_work_for_one_number_of_motions_serves_the_others(monkeypatch):
    coordinates, _ = rigid_motions(3, 12)
    alone = [
        {canonical_labels(c.labels).tobytes() for c in candidates(coordinates, k, ALL_FAMILIES)}
        for k in (2, 3, 4, 5)
    ]
    calls = []
    compute = candidates_module.leading_eigenvectors
    monkeypatch.setattr(
        candidates_module, "leading_eigenvectors", lambda *args: calls.append(1) or compute(*args)
    )
    tracks = Tracks(coordinates)
    together = [
        {canonical_labels(c.labels).tobytes() for c in candidates(tracks, k, ALL_FAMILIES)}
        for k in (2, 3, 4, 5)
    ]
    assert together == alone
    recipes = {
        (family, d)
        for family in ALL_FAMILIES
        for k in (2, 3, 4, 5)
        for d in family.dimensions(tracks, k)
    }
    assert len(calls) == len(recipes)


@pytest.mark.parametrize(
    "shape, n_motions, message",
    [
        ((1, 20, 2), 2, "1 frame;"),
        ((5, 7, 2), 2, "7 points for 2 motions; expected at least 4 points per motion, 8"),
        ((5, 20, 2), 0, "n_motions=0 is not valid; expected an integer from 1"),
        (
            (5, 20, 2),
            21,
            "n_motions=21 is not valid; expected an integer from 1 to 20, the number of points",
        ),
        ((5, 20), 2, r"shape \(5, 20\)"),
    ],
)
def test_bad_tracks(shape, n_motions, message):
    with pytest.raises(ValueError, match=message):
        candidates(np.random.default_rng(0).uniform(size=shape), n_motions)


def test_missing_entries_are_named():
    tracks = np.zeros((3, 9, 2))
    tracks[1, 4] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
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
    """Reproduce the published row of velocity clustering (the rule) and the best candidates of both
    sets of families."""
    column = list(FEATURES.get_feature_names_out()).index("raw: likelihood, mean distance")
    rule, oracle = [], {PAPER_FAMILIES: [], JOINED_FAMILIES: []}
    for number, s in enumerate(read_sequences(data_dir / "hopkins155")):
        order = np.random.default_rng(number).permutation(len(s.labels))
        for families, errors in oracle.items():
            listed = candidates(s.tracks[:, order], s.n_motions, families)
            all_errors = [100 * misclassification(s.labels[order], c.labels) for c in listed]
            errors.append(min(all_errors))
            if families == PAPER_FAMILIES:
                features = FEATURES.compute(s.tracks[:, order], [c.labels for c in listed])
                rule.append(all_errors[int(np.argmin(features[:, column]))])
    assert len(rule) == 155
    assert np.mean(rule) == pytest.approx(0.99, abs=0.05)
    assert np.mean(oracle[PAPER_FAMILIES]) == pytest.approx(0.39, abs=0.02)
    assert np.mean(oracle[JOINED_FAMILIES]) == pytest.approx(0.22, abs=0.02)


FEATURES = SegmentationFeatures(n_thresholds=5, neighbours=(3, 7))
