"""Identities over frames, from synthetic detections with known truth; and the One-Euro filter."""

import numpy as np
import pytest
from annealed.models import Instance
from annealed.models.keypoints.instances.one_euro import OneEuroFilter
from annealed.models.keypoints.instances.shape_models import Pose
from annealed.models.keypoints.instances.tracker import MAX_PERSONS, REMEMBERED, PersonTracker

LOOKS = np.random.default_rng(0).uniform(size=(4, 8, 128)) ** 4  # dissimilarity 0.5
PLACES = np.array([[-0.5, 0], [0.5, 0], [0, 1]])


def seen(who, x, y, rng, ied=40.0, occluded=0):
    """A detection of a person: noisy position and appearance, with some points occluded."""
    landmarks = PLACES * ied + [x, y] + rng.normal(size=(3, 2))
    looks = LOOKS[who] + 0.05 * rng.normal(size=LOOKS[who].shape)
    looks[:occluded] = rng.uniform(size=(occluded, 128)) ** 4
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


def numbers(tracker, *frames):
    """Numbers of the persons in each frame: detections, time and new_scene."""
    return [[one.person for one in tracker.update(*frame)] for frame in frames]


def test_persons_are_found_again_by_appearance():
    rng, late = np.random.default_rng(0), 0.5 + 60 * REMEMBERED
    assert numbers(
        PersonTracker(),
        ([seen(0, 50, 50, rng)], 0.0),
        ([seen(1, 50, 50, rng)], 0.2),  # another person in the same place
        ([seen(0, 60, 50, rng)], 0.5),
        ([seen(2, 60, 50, rng), seen(0, 900, 400, rng)], late),
        ([seen(0, 60, 50, rng)], late + 0.04),  # nobody moves that fast
        ([], late + 0.1),
    ) == [[1], [2], [1], [3, 1], [4], []]


def test_a_scene_begins():
    rng, tracker = np.random.default_rng(0), PersonTracker()
    places = [(100, 100), (300, 100), (200, 300)]
    found = numbers(
        tracker,
        ([seen(who, *places[who], rng) for who in (0, 1)], 0.0),
        ([seen(who, *places[who], rng) for who in (0, 1)], 0.04),
        ([seen(who, *places[2 - who], rng) for who in (2, 1, 0)], 0.08, True),
    )
    assert found == [[1, 2], [1, 2], [3, 2, 1]]


def test_tracks_are_uninterrupted():
    rng, tracker = np.random.default_rng(0), PersonTracker()
    tracks = [
        tracker.update([seen(0, 100, 100, rng)], time, cut)[0].track
        for time, cut in ((0.0, False), (0.04, False), (0.08, True), (0.12, False), (0.5, False))
    ]
    assert tracks == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("beside", [False, True])
def test_a_person_half_occluded_by_another_keeps_the_number(beside):
    rng = np.random.default_rng(0)
    front = [seen(1, 160, 100, rng)] if beside else []
    whole, occluded = seen(0, 100, 100, rng), seen(0, 105, 100, rng, occluded=7)
    found = numbers(PersonTracker(), ([whole, *front], 0.0), ([occluded, *front], 0.2))
    assert found[1][0] == (1 if beside else 2)
    covered = seen(0, 105, 100, rng, occluded=4)  # less than 60%: like oneself everywhere
    assert numbers(PersonTracker(), ([whole], 0.0), ([covered], 0.2)) == [[1], [1]]


def test_memory_of_persons_is_bounded(monkeypatch):
    rng, tracker = np.random.default_rng(0), PersonTracker()
    looks = rng.uniform(size=(MAX_PERSONS + 5, 8, 128)) ** 4
    monkeypatch.setattr(f"{__name__}.LOOKS", looks)
    for who in range(len(looks)):
        tracker.update([seen(who, 50, 50, rng)], 2.0 * who)
    assert len(tracker._persons) == MAX_PERSONS
    last = len(looks) - 1
    again = numbers(tracker, *(([seen(who, 50, 50, rng)], 1e3 + who) for who in (last, 0)))
    assert again == [[last + 1], [last + 2]]  # the first one is forgotten


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
        ValueError,
        match=f"cutoff={cutoff}, speed_coefficient={coefficient} are not valid; expected",
    ):
        OneEuroFilter(cutoff, coefficient)


def test_time_goes_on():
    still = OneEuroFilter()
    still(np.zeros((1, 2)), 1.0)
    with pytest.raises(ValueError, match=r"time=1.0 is not valid; expected a time later than 1.0"):
        still(np.zeros((1, 2)), 1.0)
