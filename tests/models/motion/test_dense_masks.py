"""Masks of moving objects in a rendered scene with known tracks and masks."""

import numpy as np
import pytest
from annealed.models.motion.dense_masks import background_of, label_maps, label_probabilities
from helpers import Scene


@pytest.fixture(scope="module")
def scene():
    """Frames, and tracks (F, P, 2) of random points of the background and the patches, with their
    labels."""
    made = Scene()
    rng = np.random.default_rng(0)
    points = [
        rng.uniform([30, 30], [330, 250], (60, 2)),
        rng.uniform(5, 90, (25, 2)),
        rng.uniform(5, 85, (25, 2)),
    ]
    tracks = np.array(
        [
            np.concatenate([p @ m[:, :2].T + m[:, 2] for p, m in zip(points, made.matrices(t))])
            for t in range(12)
        ]
    )
    return made, list(made.frames())[:12], tracks, np.repeat(np.arange(3), [60, 25, 25])


def test_pixels_get_the_motion_that_they_show(scene):
    made, frames, tracks, labels = scene
    assert background_of(tracks, labels) == 0
    x, y = np.meshgrid(np.arange(320.0), np.arange(240.0))
    pixels = np.stack([x.ravel(), y.ravel()], axis=1)
    for t, (frame, motions) in enumerate(label_maps(iter(frames), tracks, labels)):
        assert frame is frames[t]
        alone = np.where(np.arange(len(tracks)) == t, 0.0, np.nan)[:, None, None] + pixels
        truth = made.truth(alone).reshape(240, 320) if t == 5 else None
        if truth is not None:
            for k in (1, 2):
                overlap = ((motions == k) & (truth == k)).sum() / (
                    (motions == k) | (truth == k)
                ).sum()
                assert overlap > 0.9
    assert t == 11


def test_frames_without_tracks(scene):
    _, frames, tracks, labels = scene
    hidden = tracks.copy()
    hidden[3] = np.nan
    maps = [motions for _, motions in label_maps(iter(frames[:6]), hidden, labels)]
    assert len(maps) == 6 and (maps[3] == -1).all() and set(np.unique(maps[0])) <= {0, 1, 2}


def test_probabilities_say_which_labels_are_wrong(scene):
    _, _, tracks, labels = scene
    wrong = labels.copy()
    wrong[:2], wrong[5] = 1, -1
    probabilities = label_probabilities(tracks, wrong)
    assert (
        (probabilities[:2] < 0.1).all()
        and np.isnan(probabilities[5])
        and (probabilities[60:] > 0.9).all()
    )
