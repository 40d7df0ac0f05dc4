"""Faces followed through frames in which a blob moves; a substitute for the refinement moves the
shape onto the blob."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from annealed.models.keypoints.instances import tracker as tracker_module
from annealed.models.keypoints.instances.assembly import Assembler, Candidates
from annealed.models.keypoints.instances.instance_finder import (
    InstanceFinder,
    InstanceProbabilities,
    RefinedShape,
)
from annealed.models.keypoints.instances.shape_models import RigidModel, learn_shape
from annealed.models.keypoints.instances.shape_regression import ShapeClassifier, ShapeRegressor
from annealed.models.keypoints.instances.tracker import CutDetector, InstanceTracker
from annealed.vision.pyramid import Level

HEAD = np.array(
    [
        [0.5, -0.5, 0],
        [-0.5, -0.5, 0],
        [0.2, 0.1, -0.4],
        [-0.2, 0.1, -0.4],
        [0.4, 0.5, 0],
        [-0.4, 0.5, 0],
        [0, 1.2, 0.1],
    ]
)
MIRROR = np.array([1, 0, 3, 2, 5, 4, 6], np.int32)
NO_CANDIDATES = Candidates(np.empty(0, np.int64), np.empty(0, complex), np.empty(0), np.empty(0))
NAMES = ("left_eye", "right_eye", "left_nose", "right_nose", "left_mouth", "right_mouth", "chin")


def frame(x, y, seen=True):
    """A grey frame with a bright blob."""
    pixels = np.full((120, 160, 3), 40, np.uint8)
    if seen:
        pixels[y - 3 : y + 4, x - 3 : x + 4] = 250
    return pixels


@dataclass(frozen=True)
class Blob(ShapeRegressor):
    """Moves a shape so that its middle is the blob's; the histograms say whether there was one."""

    def refine(self, levels, points, stops=None):
        bright = levels[0].image[..., 0] > 200
        ys, xs = np.nonzero(bright)
        if not len(xs):
            return points, np.zeros((1, 1), np.float32)
        return points - points.mean() + complex(xs.mean(), ys.mean()), np.ones((1, 1), np.float32)


def finder():
    rng = np.random.default_rng(0)
    faces = np.concatenate([HEAD[:6, :2], HEAD[:, :2]])[None] + rng.normal(size=(40, 1, 2))
    names = (*NAMES[:6], *(f"point{i}" for i in range(7)))
    shape = learn_shape(
        faces,
        np.ones((40, 13), bool),
        names,
        np.arange(6),
        0.02,
        np.hypot(*(faces[:, 0] - faces[:, 1]).T),
    )
    rigid = RigidModel(np.concatenate([HEAD[:6], HEAD]))
    assembler = Assembler(shape, shape.mean_points[None, :6], rigid, np.ones(6), np.zeros(6))
    regressor = Blob(
        HEAD[:, :2],
        np.empty((0, 7, 2), np.float32),
        (),
        np.eye(7),
        np.zeros((7, 2), np.float32),
        MIRROR,
    )
    classifier = ShapeClassifier(np.zeros(1, np.int32), np.full(1, 20.0, np.float32), -10.0)
    weights = np.zeros((7, 8))
    weights[:, 7] = 3.0
    return InstanceFinder(
        assembler,
        regressor,
        NAMES,
        classifier,
        InstanceProbabilities(np.array([1.0, 0, 0, 0, 0]), weights, weights, 0.0),
    )


def searching(whole, searched):
    """A search of a frame that records its calls; those at half size are negative."""

    def search(pixels, scale):
        searched.append(pixels if scale == 1 else -1)
        points = 24 * scale * (HEAD[:, 0] + 1j * HEAD[:, 1])
        points, histograms = whole.regressor.refine([Level(pixels, 1.0)], points)
        refined = RefinedShape(points, histograms, 10.0, 2.5, 24.0 * scale, np.zeros(7))
        return [whole.report(refined, 10.0, NO_CANDIDATES)] if histograms.any() else []

    return search


def test_a_face_is_followed_between_searches():
    whole, searched = finder(), []
    tracker = InstanceTracker(whole, searching(whole, searched), search_every=4)
    for i in range(9):
        (face,) = tracker.update(frame(60 + 3 * i, 50 + i))
        np.testing.assert_allclose(face.landmarks.mean(axis=0), [60 + 3 * i, 50 + i], atol=0.01)
        assert face.support == 2.5 and face.probability > 0.9 and n_full(searched) == 1 + i // 4


@dataclass(frozen=True)
class NearBlob(Blob):
    """Moves a shape by at most five pixels."""

    def refine(self, levels, points, stops=None):
        moved, histograms = super().refine(levels, points, stops)
        near = abs(moved.mean() - points.mean()) <= 5
        return (moved, histograms) if near else (points, 0 * histograms)


def test_the_motion_of_a_face_is_predicted_from_its_velocity():
    whole, searched = finder(), []
    regressor = NearBlob(**{f.name: getattr(whole.regressor, f.name) for f in fields(Blob)})
    tracker = InstanceTracker(
        replace(whole, regressor=regressor), searching(whole, searched), search_every=100
    )
    times = np.array([0, 1, 2, 3, 5, 6]) / 25  # a frame is missing
    for i, time in enumerate(times):
        x = [20, 25, 35, 49, 77, 91][i]
        (face,) = tracker.update(frame(x, 50), time)
        np.testing.assert_allclose(face.landmarks.mean(axis=0), [x, 50], atol=0.01)
    assert n_full(searched) == 1


def test_a_lost_face_is_searched_for_at_once():
    whole, searched = finder(), []
    tracker = InstanceTracker(whole, searching(whole, searched), search_every=100)
    assert tracker.update(frame(60, 50)) and tracker.update(frame(62, 50)) and len(searched) == 1
    assert tracker.update(frame(0, 0, seen=False)) == [] and len(searched) == 3
    assert searched[1].size < searched[2].size  # around its last position, then everywhere
    # Too far from the last shape: the face is lost until the next search.
    small = InstanceTracker(whole, searching(whole, searched), search_every=2)
    assert small.update(frame(20, 20)) and small.update(frame(150, 110)) and len(searched) == 6


def test_an_improbable_face_is_detected_again_around_its_last_position(monkeypatch):
    whole, searched = finder(), []
    tracker = InstanceTracker(whole, searching(whole, searched))
    (before,) = tracker.update(frame(60, 50))
    monkeypatch.setattr(tracker_module, "probability_of", lambda log_odds: 0.1)
    (now,) = tracker.update(frame(62, 51))
    assert len(searched) == 2 and searched[1].size < searched[0].size
    np.testing.assert_allclose(now.landmarks, before.landmarks + [2, 1], atol=1)


def n_full(searched):
    return sum(isinstance(pixels, np.ndarray) for pixels in searched)


def test_a_face_that_enters_is_detected_at_half_size():
    whole, searched = finder(), []
    tracker = InstanceTracker(whole, searching(whole, searched), search_every=100)
    assert not tracker.update(frame(0, 0, seen=False)) and n_full(searched) == 1
    found = [tracker.update(frame(60 + i, 50)) for i in range(4)]
    i = next(i for i, faces in enumerate(found) if faces)
    assert i < 3 and n_full(searched) == 1 and len(found[3]) == 1
    np.testing.assert_allclose(found[i][0].landmarks.mean(axis=0), [60 + i, 50], atol=0.01)
    assert found[i][0].reference_length == pytest.approx(24, rel=0.05)


def test_known_faces_are_hidden_at_half_size():
    whole, searched = finder(), []

    def search(pixels, scale):
        if scale < 1:
            searched.append(pixels.max())
        return searching(whole, [])(pixels, scale)

    tracker = InstanceTracker(whole, search, search_every=100)
    for i in range(7):
        assert len(tracker.update(frame(60 + i, 50))) == 1
    assert searched == [128, 128]


def test_a_scene_cut_is_searched_and_begins_tracks():
    whole, searched = finder(), []
    tracker = InstanceTracker(whole, searching(whole, searched), search_every=100)
    other = np.maximum(frame(120, 70), 90)
    frames = [frame(60, 50)] * 12 + [other] * 3
    faces = [tracker.update(pixels, i / 25)[0] for i, pixels in enumerate(frames)]
    assert n_full(searched) == 2 and isinstance(searched[-1], np.ndarray)
    assert [face.track for face in faces] == [1] * 12 + [2] * 3
    assert {face.person for face in faces} == {1}  # by appearance
    np.testing.assert_allclose(faces[12].landmarks.mean(axis=0), [120, 70], atol=0.01)


def test_cuts_are_sudden_changes():
    rng = np.random.default_rng(0)
    scenes = rng.integers(0, 255, (3, 24, 32, 3), np.uint8).repeat(10, axis=1).repeat(10, axis=2)
    cuts = CutDetector()
    still = [np.clip(scenes[i // 12] + rng.normal(0, 5, (240, 320, 3)), 0, 255) for i in range(36)]
    still = [pixels.astype(np.uint8) for pixels in still]
    assert [i for i, pixels in enumerate(still) if cuts.update(pixels)] == [12, 24]
    moving = [np.roll(scenes[0], 4 * i, axis=1) for i in range(30)]  # a fast pan
    found = [cuts.update(pixels) for pixels in (*still[-12:], *moving)]
    assert not any(found[12 + 8 :])


@pytest.mark.parametrize("damaged", [0, 128, 255])
def test_a_damaged_frame_interrupts_a_track_but_not_a_person(damaged):
    whole = finder()
    tracker = InstanceTracker(whole, searching(whole, []), search_every=100)
    found = []
    for i in range(12):
        pixels = frame(60 + i, 50)
        found.append(tracker.update(np.full_like(pixels, damaged) if i == 6 else pixels, i / 25))
    assert [[face.person for face in faces] for i, faces in enumerate(found) if i != 6] == [
        [1]
    ] * 11
    middles = [faces[0].landmarks[:, 0].mean() for i, faces in enumerate(found) if i != 6]
    np.testing.assert_allclose(middles, [60 + i for i in range(12) if i != 6], atol=0.05)


def test_times_increase():
    tracker = InstanceTracker(finder(), searching(finder(), []))
    assert tracker.update(frame(60, 50), 1.5)
    for time in (1.5, 1.0, np.nan):
        with pytest.raises(
            ValueError, match=f"time={time} is not valid; expected a time later than 1.5"
        ):
            tracker.update(frame(60, 50), time)
    assert tracker.update(frame(60, 50))


@pytest.mark.parametrize(
    "options, message",
    [({"search_every": 0}, "search_every=0"), ({"search_every": -1}, "search_every=-1")],
)
def test_senseless_numbers(options, message):
    with pytest.raises(ValueError, match=message):
        InstanceTracker(finder(), lambda frame, scale: [], **options)


def test_two_tracks_on_one_face_are_searched_again():
    whole = finder()
    searches = []

    def search(pixels, scale):
        searches.append(len(searches))
        found = searching(whole, [])(pixels, scale)
        if len(searches) > 1:
            return found
        (face,) = found
        other = replace(
            face, keypoints={name: p._replace(x=p.x + 60) for name, p in face.keypoints.items()}
        )
        return [face, replace(other, landmarks=face.landmarks + [60, 0])]

    tracker = InstanceTracker(whole, search)
    assert len(tracker.update(frame(60, 50))) == 2
    assert len(tracker.update(frame(60, 50))) == 1 and len(searches) == 3
