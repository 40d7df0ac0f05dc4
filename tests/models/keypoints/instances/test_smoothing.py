"""Points smoothed over time: polynomial movements stay, noise is reduced, tracks are separate."""

import numpy as np
import pytest
from annealed.models.keypoints.instances.instance_finder import Instance, InstancePoint
from annealed.models.keypoints.instances.shape_models import Pose
from annealed.models.keypoints.instances.smoothing import smoothed


def frames_of(points, times, tracks=None):
    """Timed instances with the given points (n_frames, n_points, 2)."""
    tracks = [1] * len(times) if tracks is None else tracks
    return [
        (
            time,
            [
                Instance(
                    0.9,
                    Pose(0.0, 0.0, 0.0),
                    (0, 0, 1, 1),
                    {"chin": InstancePoint(*xy[0], 0.9, 0.8)},
                    xy,
                    40.0,
                    1.0,
                    track=track,
                )
            ],
        )
        for time, xy, track in zip(times, points, tracks, strict=True)
    ]


def points_after(frames, cutoff=5.0):
    return np.array([smoothed(frames, i, cutoff)[0].landmarks for i in range(len(frames))])


@pytest.mark.parametrize("rate, left", [(25.0, 0.75), (60.0, 0.5)])
def test_quadratic_movements_stay_and_noise_is_reduced(rate, left):
    rng = np.random.default_rng(0)
    times = (np.arange(160) + rng.uniform(-0.3, 0.3, 160)) / rate  # a variable frame rate
    moved = np.stack([300 * times + 800 * times**2, 50 - 90 * times], axis=1)[:, None]
    points, inner = moved + np.array([[0, 0], [10, 5]]), slice(1, -1)
    np.testing.assert_allclose(points_after(frames_of(points, times))[inner], points[inner])
    noise = rng.normal(size=points.shape)
    assert (points_after(frames_of(points + noise, times)) - points)[inner].std() < left


def test_a_lower_cutoff_smooths_more():
    times = np.arange(100) / 25
    noise = np.random.default_rng(0).normal(size=(100, 3, 2))
    spread = [points_after(frames_of(noise, times), cutoff).std() for cutoff in (1.0, 2.0, 5.0, 50)]
    assert sorted(spread) == spread and spread[0] < 0.4 and spread[-1] == pytest.approx(noise.std())


def test_the_response_falls_to_half_the_power_at_the_cutoff():
    times = np.arange(4000) / 1000
    for frequency, low, high in ((1.0, 0.98, 1.02), (5.0, 0.62, 0.78), (20.0, -0.3, 0.3)):
        wave = np.tile(np.sin(2 * np.pi * frequency * times)[:, None, None], (1, 1, 2))
        after = points_after(frames_of(wave, times)[1500:2501])[400:600, 0, 0]
        share = after @ wave[1900:2100, 0, 0] / (wave[1900:2100, 0, 0] ** 2).sum()
        assert low < share < high


def test_frames_beside_a_cut_and_at_the_ends():
    times = np.arange(20) / 25
    points = np.zeros((20, 2, 2))
    points[10:] += 100
    after = points_after(frames_of(points, times, [1] * 10 + [2] * 10))
    np.testing.assert_allclose(after, points, atol=1e-9)
    assert np.abs(points_after(frames_of(points, times)) - points).max() > 10
    # one side only: a linear movement stays, also in the last frame, as from a camera
    line = np.arange(20.0)[:, None, None] * np.ones((1, 2, 2))
    np.testing.assert_allclose(points_after(frames_of(line, times)), line, atol=1e-9)
    lone = frames_of(line[:1], times[:1])
    np.testing.assert_allclose(points_after(lone), line[:1], atol=1e-9)


def test_keypoints_and_box_follow_the_points():
    times = np.arange(5) / 25
    points = np.random.default_rng(0).normal(size=(5, 4, 2))
    (one,) = smoothed(frames_of(points, times), 2, 5.0)
    assert one.keypoints["chin"][:2] == pytest.approx(tuple(one.landmarks[0]))
    assert one.keypoints["chin"].probability == 0.9
    assert one.box == pytest.approx((*one.landmarks.min(axis=0), *one.landmarks.max(axis=0)))
    assert smoothed([(0.0, [])], 0, 5.0) == []
