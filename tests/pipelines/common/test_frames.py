"""``annealed keypoints frames``: the frames of a video that differ most."""

import cv2
import numpy as np
import pytest
from annealed.pipelines.common.video import write_video
from annealed.vision.images import read_image
from helpers import run


def scene(position, level, jitter=0):
    """A disc on a grey background."""
    pixels = np.full((48, 64, 3), level, np.uint8)
    cv2.circle(pixels, (position, 24), 10, (255 - level, 40 + jitter, 40), -1)
    return pixels


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """A video of three scenes of different length, with slight changes within each."""
    path = tmp_path_factory.mktemp("video") / "scenes.avi"
    scenes = [(14, 60)] * 20 + [(32, 140)] * 6 + [(50, 220)] * 4
    write_video(path, [scene(*one, jitter=i % 3) for i, one in enumerate(scenes)], 10)
    return path


def test_one_frame_of_each_scene(video, tmp_path):
    result = run("keypoints", "frames", video, tmp_path / "out", "--n", 3)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert result.stdout.split() == [str(tmp_path / "out" / name) for name in names]
    numbers = [int(name.removesuffix(".png")) for name in names]
    assert [number < 20 for number in numbers] == [True, False, False]
    assert 20 <= numbers[1] < 26 <= numbers[2] < 30
    for name, level in zip(names, (60, 140, 220)):
        assert abs(int(read_image(tmp_path / "out" / name)[0, 0, 0]) - level) < 8
    again = run("keypoints", "frames", video, tmp_path / "again", "--n", 3)
    assert again.stdout == result.stdout.replace("/out/", "/again/")


def test_all_frames_and_repeated_frames(video, tmp_path):
    assert len(run("keypoints", "frames", video, tmp_path / "all", "--n", 30).stdout.split()) > 3
    write_video(tmp_path / "static.avi", [scene(32, 140)] * 8, 10)
    static = run("keypoints", "frames", tmp_path / "static.avi", tmp_path / "one", "--n", 4)
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["000000.png"]
    assert "only 1 distinct frames; expected 4" in static.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("gone.avi", "new"), "gone.avi: no such file"),
        (("text.avi", "new"), "text.avi: the file cannot be read as a video"),
        (
            ("VIDEO", "new", "--n", 31),
            "--n 31 is not valid; expected an integer from 1 to 30, the number of",
        ),
        (("VIDEO", "new", "--n", 0), "--n 0 is not valid; expected an integer from 1"),
        (
            ("VIDEO", "full"),
            "full: the folder or file already exists; expected a new or empty folder",
        ),
        (
            ("VIDEO", "text.avi"),
            "text.avi: the folder or file already exists; expected a new or empty folder",
        ),
    ],
)
def test_bad_input_is_one_line(video, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.avi").write_text("not a video")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "annotations.json").write_text("{}")
    result = run("keypoints", "frames", *[video if a == "VIDEO" else a for a in arguments])
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists() and len(list((tmp_path / "full").iterdir())) == 1
