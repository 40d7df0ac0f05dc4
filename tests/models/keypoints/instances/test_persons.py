"""Identities over frames, from synthetic detections with known truth; and smoothed points."""

import numpy as np
import pytest
from annealed.models import Instance, OneEuroFilter
from annealed.models.keypoints.instances.shape_models import Pose
from annealed.models.keypoints.instances.tracker import REMEMBERED, PersonTracker

LOOKS = np.random.default_rng(0).uniform(size=(4, 8, 128)) ** 4  # dissimilarity 0.5


def seen(who, x, y, rng, ied=40.0):
    """A detection of a person: noisy position and appearance."""
    landmarks = np.array([[-0.5, 0], [0.5, 0], [0, 1]]) * ied + [x, y] + rng.normal(size=(3, 2))
    looks = LOOKS[who] + 0.05 * rng.normal(size=LOOKS[who].shape)
    return Instance(
        0.9, Pose(0.0, 0.0, 0.0), (0, 0, 1, 1), {}, landmarks, ied, 1.0, appearance=looks
    )


def switches(paths, n_frames, rng):
    """Identity switches of persons whose paths give (x, y), or None while they are hidden."""
    tracker, last, n = PersonTracker(), {}, 0
    for t in range(n_frames):
        shown = [(who, place) for who, path in enumerate(paths) if (place := path(t)) is not None]
        shown = [shown[i] for i in rng.permutation(len(shown))]
        for (who, _), face in zip(
            shown,
            tracker.update([seen(who, *place, rng) for who, place in shown], t / 25),
            strict=True,
        ):
            n += last.get(who, face.person) != face.person
            last[who] = face.person
    assert len(set(last.values())) == len(paths)
    return n


@pytest.mark.parametrize("seed", range(10))
def test_persons_who_cross_leave_and_come_back_keep_their_numbers(seed):
    rng = np.random.default_rng(seed)
    y, speed = rng.uniform(100, 110, 2), rng.uniform(4, 8)

    def hidden_while_they_cross(t):
        return None if abs(speed * t - 200) < 40 else (300 - speed * t, y[1])

    def away(t):
        return None if 20 <= t < 40 else (400.0, 300.0 + 3 * t if t < 20 else 250.0)

    assert (
        switches([lambda t: (speed * t - 100, y[0]), hidden_while_they_cross, away], 80, rng) == 0
    )


def test_who_was_away_for_long_or_is_unlike_is_a_new_person():
    rng, tracker = np.random.default_rng(0), PersonTracker()
    (first,) = tracker.update([seen(0, 50, 50, rng)], 0.0)
    (other,) = tracker.update([seen(1, 50, 50, rng)], 0.2)
    (again,) = tracker.update([seen(0, 60, 50, rng)], 0.5)
    (late,) = tracker.update([seen(0, 60, 50, rng)], 0.5 + REMEMBERED + 0.1)
    far = tracker.update([seen(0, 900, 50, rng)], 1.64)
    assert [first.person, other.person, again.person, late.person, far[0].person] == [1, 2, 1, 3, 4]
    assert tracker.update([], 1.7) == []


def test_still_at_rest_and_quick_at_speed():
    rng = np.random.default_rng(0)
    for rate in (25, 30):
        noise = 0.002 * rng.normal(size=(400, 68, 2))
        still = OneEuroFilter()
        quiet = np.array([still(points, i / rate) for i, points in enumerate(noise)])[rate:]
        assert quiet.std() <= noise[rate:].std() / 3
        # one eye distance (40 pixels) a second
        moving = OneEuroFilter()
        places = [np.array([[40.0 * i / rate, 7.0]]) for i in range(100)]
        lag = [
            (place - moving(place, i / rate, 40.0))[0, 0] * rate / 40
            for i, place in enumerate(places)
        ]
        assert 0 < max(lag[rate:]) <= 1


@pytest.mark.parametrize(
    "cutoff, coefficient", [(0, 1), (-1, 1), (np.nan, 1), (np.inf, 1), (1, -1), (1, np.nan)]
)
def test_settings_of_the_filter(cutoff, coefficient):
    with pytest.raises(
        ValueError, match=f"cutoff={cutoff}, speed_coefficient={coefficient}: expected"
    ):
        OneEuroFilter(cutoff, coefficient)


def test_time_goes_on():
    still = OneEuroFilter()
    still(np.zeros((1, 2)), 1.0)
    with pytest.raises(ValueError, match=r"time=1.0: expected a time after 1.0"):
        still(np.zeros((1, 2)), 1.0)
