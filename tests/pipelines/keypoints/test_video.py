"""Faces of video files: variable frame rates, cuts, ends, smoothed points, other objects."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints.instances.smoothing import MAX_FRAMES, smoothed
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints import video
from annealed.pipelines.keypoints.detect import sample_photograph
from annealed.pipelines.keypoints.drawing import draw_symbols
from annealed.pipelines.keypoints.faces import FACES

N_FRAMES, CUT = 14, 8


@pytest.fixture(scope="module")
def detector():
    return load_model("faces")


def scene(i):
    """A face that moves to the right; after a cut it is mirrored and looks to the other side."""
    pixels = sample_photograph()[20:250, 100 - 2 * i : 350 - 2 * i]
    noise = np.random.default_rng(i).integers(-6, 7, pixels.shape)
    pixels = np.clip(pixels + noise, 0, 255).astype(np.uint8)
    return pixels if i < CUT else np.ascontiguousarray(255 - (255 - pixels[:, ::-1]) // 2)


class Capture:
    """A file whose frames have the given times."""

    times = (0, 40, 80, 130, 130, 170, 250, 290, 330, 370, 370, 410, 470, 500)

    def __init__(self):
        self.i = -1

    def isOpened(self):
        return True

    def get(self, name):
        now = 1000.0 + self.times[min(self.i, N_FRAMES - 1)]
        return {cv2.CAP_PROP_POS_MSEC: now, cv2.CAP_PROP_FPS: 25.0}.get(name, 0.0)

    def read(self):
        self.i += 1
        known = self.i < N_FRAMES
        return known, cv2.cvtColor(scene(self.i), cv2.COLOR_RGB2BGR) if known else None

    def release(self):
        pass


@pytest.fixture
def results_of(detector, monkeypatch):
    monkeypatch.setattr(video, "open_video", lambda source: Capture())
    return lambda **options: list(video.detect_video(detector, "v.mp4", **options))


def test_variable_rates_cuts_and_ends(results_of):
    raw, smooth = results_of(smooth="off"), results_of()
    assert [result.frame for result in smooth] == list(range(N_FRAMES))
    times = np.array(Capture.times) / 1000
    times[[4, 5, 10]] = 0.17, 0.21, 0.41  # where they do not advance, by the frame rate
    times[11] = 0.45
    for results in (raw, smooth):
        np.testing.assert_allclose([result.time for result in results], times)
    for i, result in enumerate(smooth):
        np.testing.assert_array_equal(result.pixels, scene(i))
    frames = [(result.time, result.instances) for result in raw]
    tracks = [result.instances[0].track for result in raw]
    assert tracks == [1] * CUT + [2] * (N_FRAMES - CUT)
    for i, result in enumerate(smooth):
        (face,), (expected,) = result.instances, smoothed(frames, i, 5.0)
        np.testing.assert_allclose(face.landmarks, expected.landmarks)
        best = {d.keypoint: (d.x, d.y) for d in result.detections}
        assert best["chin"] == face.keypoints["chin"][:2]


def test_a_camera_is_smoothed_by_earlier_frames(detector, results_of):
    process = video.frame_processor(detector, "auto", video.DetectionOptions(roll=0.0))
    frames = [(result.time, result.instances) for result in results_of(smooth="off")]
    for i, (time, _) in enumerate(frames):
        (face,), (expected,) = process(scene(i), time).instances, smoothed(frames[: i + 1], i, 5.0)
        np.testing.assert_allclose(face.landmarks, expected.landmarks, atol=1e-9)


@pytest.mark.parametrize("smooth", [0, -1.0, "nan", "inf"])
def test_cutoff_frequencies_are_positive(results_of, smooth):
    message = f"smooth={float(smooth)} is not valid; expected a cut-off frequency above 0 Hz"
    with pytest.raises(ValueError, match=message):
        results_of(smooth=smooth)


def test_every_nth_frame_of_any_length(results_of, detector):
    assert [result.frame for result in results_of(every=3)] == [0, 3, 6, 9, 12]
    # a window longer than the file, and one longer than what is held
    assert [result.frame for result in results_of(smooth=0.01)] == list(range(N_FRAMES))
    held, limit = [], 2 * MAX_FRAMES + 5
    empty = results_of(every=100)[0]

    def endless():
        for i in range(limit):
            held.append(i)
            yield empty.pixels, replace(empty, frame=i, time=i / 25, instances=[])

    delayed = video._smoothed(
        endless(), 0.01, lambda instances: video.DetectionResult([], instances)
    )
    for i, (_, result) in enumerate(delayed):
        assert result.frame == i and len(held) - i <= MAX_FRAMES + 1
    assert i == limit - 1


def test_objects_of_a_video_have_their_category(detector, tmp_path):
    schema = replace(FACES, category="head", landmarks={}, landmark_mirror=())
    path = tmp_path / "v.avi"
    write_video(path, (scene(0) for _ in range(2)), 25.0)
    for result in video.detect_video(replace(detector, schema=schema), str(path)):
        (head,) = result.record()["objects"]
        assert head["category"] == "head" and head["person"] == 1 and "pose" not in head


def test_the_overlay_shows_the_number_of_the_person(results_of):
    (face,) = results_of(every=100)[0].instances
    drawn = []
    for person in (None, 1, 2):
        drawn.append(np.zeros((230, 250, 3), np.uint8))
        draw_symbols(drawn[-1], [], [replace(face, person=person)])
    assert (drawn[0] != drawn[1]).any() and (drawn[1] != drawn[2]).any()
