"""Tracks with gaps."""

import numpy as np
import pandas as pd
import pytest
from annealed.vision.tracks.candidates import VIDEO_FAMILIES, SubspaceFamily, candidates
from annealed.vision.tracks.completion import complete_tracks, thin_tracks
from annealed.vision.tracks.io import TrackSequence
from annealed.vision.tracks.labels import misclassification
from helpers import rigid_motions


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
    # The baseline, the last (or first) seen position, is several times as far away.
    stay = (
        pd.DataFrame(np.where(seen[:, :, None], tracks, np.nan).reshape(20, -1))
        .ffill()
        .bfill()
        .to_numpy()
        .reshape(tracks.shape)
    )
    far = [np.median(np.linalg.norm(guess - tracks, axis=2)[~seen]) for guess in (full, stay)]
    assert far[0] < far[1] / 3
    assert (
        min(
            misclassification(truth, c.labels)
            for c in candidates(full, 2, (SubspaceFamily(), *VIDEO_FAMILIES))
        )
        <= 0.05
    )


def test_complete_tracks_refuses_points_never_seen():
    tracks = np.random.default_rng(0).uniform(size=(5, 9, 2))
    assert complete_tracks(tracks) is tracks
    tracks[:, 3] = np.nan
    with pytest.raises(ValueError, match=r"1 of 9 points are not visible in any frame, .*point 3"):
        complete_tracks(tracks)
    with pytest.raises(ValueError, match="9 of 9 points are not visible in any frame"):
        complete_tracks(np.full((5, 9, 2), np.nan))


def test_thin_tracks():
    tracks = np.zeros((4, 3, 2))
    tracks[1:, 1] = np.nan
    thin, kept = thin_tracks(tracks, 3)
    assert thin.shape == (4, 2, 2)
    np.testing.assert_array_equal(kept, [0, 2])
    assert TrackSequence("x", tracks).video == "x"
