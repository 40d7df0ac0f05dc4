"""Tracks from a video of a known scene."""

import numpy as np
import pytest
from annealed.pipelines.common.video import write_video
from annealed.pipelines.motion.drawing import COLOURS, draw_tracks
from annealed.vision.tracks.candidates import VIDEO_FAMILIES, candidates
from annealed.vision.tracks.completion import complete_tracks, thin_tracks
from annealed.vision.tracks.labels import misclassification
from annealed.vision.tracks.tracker import Tracker
from annealed.vision.tracks.video import open_video, read_frames
from helpers import Scene


@pytest.fixture(scope="session")
def scene_video(tmp_path_factory):
    scene = Scene()
    path = tmp_path_factory.mktemp("video") / "scene.avi"
    write_video(path, scene.frames(), 25.0)
    return scene, path


def test_tracks_follow_the_scene(scene_video):
    scene, path = scene_video
    tracks = Tracker().track(path)
    assert tracks.shape[0] == scene.n_frames
    truth = scene.truth(tracks)
    assert (np.bincount(truth) >= 20).all()
    errors = []
    for p in range(tracks.shape[1]):
        seen = np.flatnonzero(np.isfinite(tracks[:, p, 0]))
        first, last = scene.matrices(seen[0])[truth[p]], scene.matrices(seen[-1])[truth[p]]
        expected = (
            last[:, :2] @ np.linalg.solve(first[:, :2], tracks[seen[0], p] - first[:, 2])
            + last[:, 2]
        )
        errors.append(np.linalg.norm(expected - tracks[seen[-1], p]))
    assert np.median(errors) < 0.5  # of a pixel, over the whole life of the track
    assert not np.isfinite(tracks).all(axis=(0, 2)).all(), "points come and go in this scene"


def test_candidates_of_a_video_hold_the_truth(scene_video):
    scene, path = scene_video
    tracks, _ = thin_tracks(Tracker().track(path), 8)
    listed = candidates(complete_tracks(tracks), 3, VIDEO_FAMILIES)
    assert min(misclassification(scene.truth(tracks), c.labels) for c in listed) <= 0.05


def test_draw_tracks_leaves_the_frame_alone():
    frame = np.zeros((40, 40, 3), np.uint8)
    tracks = np.full((3, 2, 2), 20.0)
    drawn = draw_tracks(frame, tracks, np.array([0, -1]), 2)
    assert frame.max() == 0
    np.testing.assert_array_equal(drawn[20, 20], COLOURS[0])


def test_bad_videos(tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(ValueError, match=r"text\.mp4: the file cannot be read as a video"):
        open_video(tmp_path / "text.mp4")
    with pytest.raises(ValueError, match="no such file"):
        Tracker().track(tmp_path / "none.mp4")
    write_video(tmp_path / "one.avi", iter([np.zeros((64, 64, 3), np.uint8)]), 25.0)
    with pytest.raises(ValueError, match="1 readable frame; expected at least 2"):
        Tracker().track(tmp_path / "one.avi")
    write_video(tmp_path / "black.avi", iter([np.zeros((64, 64, 3), np.uint8)] * 3), 25.0)
    with pytest.raises(ValueError, match="no trackable corners"):
        Tracker().track(tmp_path / "black.avi")
    with pytest.raises(ValueError, match="cannot be written"):
        write_video(tmp_path / "nowhere" / "a.mp4", iter([np.zeros((64, 64, 3), np.uint8)]), 25.0)


def test_a_video_that_is_cut_short_is_said(scene_video, tmp_path):
    scene, path = scene_video
    whole = path.read_bytes()
    (tmp_path / "half.avi").write_bytes(whole[: len(whole) // 2])
    with pytest.warns(
        UserWarning, match=rf"half\.avi: only \d+ of {scene.n_frames} frames could be read"
    ):
        assert 0 < len(list(read_frames(tmp_path / "half.avi"))) < scene.n_frames
