"""Readers of tracks, and tracks from a video."""

import json

import cv2
import numpy as np
import pytest
from annealed.pipelines.common.video import write_video
from annealed.pipelines.motion.segment import write_overlay
from annealed.vision.tracks.candidates import VIDEO_FAMILIES, candidates
from annealed.vision.tracks.completion import complete_tracks, thin_tracks
from annealed.vision.tracks.drawing import COLOURS, draw_tracks
from annealed.vision.tracks.io import TrackSequence, read_sequences, read_tracks
from annealed.vision.tracks.labels import misclassification
from annealed.vision.tracks.tracker import Tracker
from annealed.vision.tracks.video import open_video, read_frames
from helpers import run
from scipy.io import savemat


@pytest.mark.data
def test_official_files_and_npz_read_the_same(data_dir):
    official = read_sequences(data_dir / "hopkins155_official_sample")
    assert [s.name for s in official] == ["1R2RC", "1R2RCR_g12", "arm", "cars1", "kanatani1", "three-cars"]
    for sequence in official:
        other = read_tracks(data_dir / "hopkins155" / f"{sequence.name}.npz")
        np.testing.assert_array_equal(sequence.tracks, other.tracks)
        np.testing.assert_array_equal(sequence.labels, other.labels)
    assert official[1].video == "1R2RCR"
    assert official[0].n_motions == 3


def test_csv_in_any_order_with_gaps(tmp_path):
    path = tmp_path / "walk.csv"
    path.write_text("point,frame,x,y\nb,2,3.5,4\na,1,1,2\nb,1,3,4\na,3,1.5,2\n")
    sequence = read_tracks(path)
    assert sequence.name == "walk" and sequence.labels is None
    nan = np.nan
    np.testing.assert_array_equal(sequence.tracks[:, :, 0], [[1, 3], [nan, 3.5], [1.5, nan]])
    with pytest.raises(ValueError, match="walk: has no labels"):
        _ = sequence.n_motions


def test_labels_may_be_any_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", tracks=np.zeros((3, 4, 2)), labels=[7, 2, 7, 9])
    np.testing.assert_array_equal(read_tracks(tmp_path / "a.npz").labels, [1, 0, 1, 2])


def bad_files(folder):
    """Name, contents and expected message."""
    np.savez(folder / "none.npz", other=np.zeros(3))
    np.savez(folder / "flat.npz", tracks=np.zeros((3, 4)))
    np.savez(folder / "labels.npz", tracks=np.zeros((3, 4, 2)), labels=np.zeros(5))
    np.savez(folder / "object.npz", tracks=np.array([{}], dtype=object))
    (folder / "text.npz").write_text("no zip")
    savemat(folder / "a_truth.mat", {"y": np.zeros((3, 4, 5)), "s": np.ones((6, 1))})
    savemat(folder / "b_truth.mat", {"y": np.zeros((2, 4, 5)), "s": np.ones((4, 1))})
    savemat(folder / "c_truth.mat", {"x": np.zeros((3, 4, 5))})
    (folder / "d_truth.mat").write_text("no matlab")
    (folder / "column.csv").write_text("frame,point,x\n1,1,1\n")
    (folder / "words.csv").write_text("frame,point,x,y\n1,1,1,left\n")
    (folder / "twice.csv").write_text("frame,point,x,y\n1,1,1,1\n1,1,2,2\n")
    (folder / "empty.csv").write_text("")
    (folder / "other.txt").write_text("")


@pytest.mark.parametrize(
    "name, message",
    [
        ("none.npz", "lacks the array 'tracks'"),
        ("flat.npz", r"shape \(3, 4\); expected \(frames, points, 2\)"),
        ("labels.npz", r"labels have shape \(5,\) for 4 points"),
        ("object.npz", "not a readable npz"),
        ("text.npz", "not a readable npz"),
        ("a_truth.mat", r"y is \(3, 4, 5\) and s \(6, 1\)"),
        ("b_truth.mat", r"y is \(2, 4, 5\)"),
        ("c_truth.mat", "lacks y"),
        ("d_truth.mat", "not a readable MATLAB file"),
        ("column.csv", "lacks the column 'y'"),
        ("words.csv", "column 'y' holds text"),
        ("twice.csv", "point 1 appears twice in frame 1"),
        ("empty.csv", "not a readable table"),
        ("other.txt", "unknown kind of tracks"),
        ("missing.npz", "no such file"),
    ],
)
def test_bad_files(tmp_path, name, message):
    bad_files(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        read_tracks(tmp_path / name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_folders(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        read_sequences(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="neither"):
        read_sequences(tmp_path)


def test_thin_tracks():
    tracks = np.zeros((4, 3, 2))
    tracks[1:, 1] = np.nan
    thin, kept = thin_tracks(tracks, 3)
    assert thin.shape == (4, 2, 2)
    np.testing.assert_array_equal(kept, [0, 2])
    assert TrackSequence("x", tracks).video == "x"


# -- videos ---------------------------------------------------------------------------------------------------------------


def texture(rng, height, width):
    """Grey random picture without aliasing, coloured a little."""
    coarse = rng.uniform(20, 235, (height // 8 + 2, width // 8 + 2)).astype(np.float32)
    grey = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).clip(0, 255)
    return np.stack([grey, 0.9 * grey, 0.8 * grey], axis=2).astype(np.uint8)


class Scene:
    """Two patches that turn and move over a moving background; knows what each pixel of a frame shows."""

    size = (320, 240)
    n_frames = 30

    def __init__(self):
        rng = np.random.default_rng(0)
        self.background = texture(rng, 320, 420)
        self.patches = [texture(rng, 96, 96), texture(rng, 90, 110)]

    def matrices(self, t):
        """Affine maps from the pictures into frame t."""
        maps = [np.array([[1, 0, -40 - 0.8 * t], [0, 1, -30 + 0.4 * t]])]
        for patch, (x, y, angle) in zip(
            self.patches, [(30 + 2.5 * t, 30 + 0.8 * t, 0.9 * t), (190 - 2.0 * t, 130 - 1.2 * t, -0.7 * t)]
        ):
            height, width = patch.shape[:2]
            m = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0)
            m[:, 2] += (x, y)
            maps.append(m)
        return maps

    def frames(self):
        for t in range(self.n_frames):
            maps = self.matrices(t)
            frame = cv2.warpAffine(self.background, maps[0], self.size)
            for patch, m in zip(self.patches, maps[1:]):
                inside = cv2.warpAffine(np.full(patch.shape[:2], 255, np.uint8), m, self.size)
                frame = np.where(inside[:, :, None] > 127, cv2.warpAffine(patch, m, self.size), frame)
            yield frame

    def truth(self, tracks):
        """What each track shows where it was first seen: 0 the background, 1 and 2 the patches."""
        labels = []
        for p in range(tracks.shape[1]):
            t = int(np.flatnonzero(np.isfinite(tracks[:, p, 0]))[0])
            label = 0
            for i, (patch, m) in enumerate(zip(self.patches, self.matrices(t)[1:])):
                x, y = np.linalg.solve(m[:, :2], tracks[t, p] - m[:, 2])
                if 0 <= x < patch.shape[1] and 0 <= y < patch.shape[0]:
                    label = i + 1
            labels.append(label)
        return np.array(labels)


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
        there = last[:, :2] @ np.linalg.solve(first[:, :2], tracks[seen[0], p] - first[:, 2]) + last[:, 2]
        errors.append(np.linalg.norm(there - tracks[seen[-1], p]))
    assert np.median(errors) < 0.5  # of a pixel, over the whole life of the track
    assert not np.isfinite(tracks).all(axis=(0, 2)).all(), "points come and go in this scene"


def test_candidates_of_a_video_hold_the_truth(scene_video):
    scene, path = scene_video
    tracks, _ = thin_tracks(Tracker().track(path), 8)
    found = candidates(complete_tracks(tracks), 3, VIDEO_FAMILIES)
    assert min(misclassification(scene.truth(tracks), c.labels) for c in found) <= 0.05


def test_a_video_goes_in_and_coloured_tracks_come_out(scene_video, tmp_path):
    scene, path = scene_video
    result = run("motion", "segment", path, "--motions", 3, "--overlay", tmp_path / "o.mp4", "--json")
    assert result.exit_code == 0, result.stderr
    labels = np.array(json.loads(result.stdout)["labels"])
    tracks = Tracker().track(path)
    truth = scene.truth(tracks)
    followed = labels >= 0
    seen = np.isfinite(tracks).all(axis=2)
    assert seen[:, followed].sum() > 0.9 * seen.sum()  # the others are seen in a few frames
    assert misclassification(truth[followed], labels[followed]) <= 0.05
    assert sum(1 for _ in read_frames(tmp_path / "o.mp4")) == scene.n_frames


def test_overlay_shows_the_colours(scene_video, tmp_path):
    scene, path = scene_video
    tracks = Tracker().track(path)
    write_overlay(path, tmp_path / "out.mp4", tracks, scene.truth(tracks))
    frames = list(read_frames(tmp_path / "out.mp4"))
    assert len(frames) == scene.n_frames
    for colour in COLOURS[:3].astype(int):
        assert (np.abs(frames[10].astype(int) - colour).sum(axis=2) < 60).sum() > 100
    assert [p.name for p in tmp_path.iterdir()] == ["out.mp4"]


def test_draw_tracks_leaves_the_frame_alone():
    frame = np.zeros((40, 40, 3), np.uint8)
    tracks = np.full((3, 2, 2), 20.0)
    drawn = draw_tracks(frame, tracks, np.array([0, -1]), 2)
    assert frame.max() == 0
    np.testing.assert_array_equal(drawn[20, 20], COLOURS[0])


def test_bad_videos(tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(ValueError, match=r"text\.mp4: cannot be opened as a video"):
        open_video(tmp_path / "text.mp4")
    with pytest.raises(ValueError, match="no such file"):
        Tracker().track(tmp_path / "none.mp4")
    write_video(tmp_path / "one.avi", iter([np.zeros((64, 64, 3), np.uint8)]), 25.0)
    with pytest.raises(ValueError, match="1 readable frame; motion needs at least 2"):
        Tracker().track(tmp_path / "one.avi")
    write_video(tmp_path / "black.avi", iter([np.zeros((64, 64, 3), np.uint8)] * 3), 25.0)
    with pytest.raises(ValueError, match="no corner"):
        Tracker().track(tmp_path / "black.avi")
    with pytest.raises(ValueError, match="cannot be written"):
        write_video(tmp_path / "nowhere" / "a.mp4", iter([np.zeros((64, 64, 3), np.uint8)]), 25.0)
