"""Outputs are checked before any work: no command replaces what it reads, or a file that is not of
this program."""

import json
import os
import resource
from contextlib import contextmanager

import cv2
import numpy as np
import pytest
from annealed.models.files import write_model
from annealed.pipelines.common.outputs import check_outputs
from annealed.pipelines.common.video import write_video
from annealed.vision.tracks.video import read_frames
from helpers import run, save_tiny_detector
from PIL import Image


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_detector(tmp_path_factory.mktemp("model") / "tiny.safetensors")


@pytest.fixture
def photographs(tmp_path):
    """A folder of two PNGs, as one is likely to name for the overlays."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(folder / name)
    return folder


@pytest.fixture
def noise(tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "noise.mp4"
    write_video(path, iter(rng.integers(0, 256, (8, 64, 80, 3), dtype=np.uint8)), 10.0)
    return path


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def refused(result, words):
    assert result.exit_code == 2, result.output
    assert words in result.stderr and result.stderr.count("\n") == 1 and result.stdout == "", (
        result.output
    )


@contextmanager
def full_disk(n_bytes):
    """Files of this process cannot grow further: what a full disk does, without one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_overlays_into_the_folder_of_the_photographs(model, photographs):
    before = contents(photographs)
    images = sorted(photographs.iterdir())
    assert (
        run("faces", "detect", *images, "--model", model, "--overlay", photographs).exit_code == 0
    )
    after = contents(photographs)
    assert {name: after[name] for name in before} == before
    assert {p.name for p in set(after) - set(before)} == {"a_keypoints.png", "b_keypoints.png"}
    # Once more over the whole folder: what would be replaced is read now.
    images = sorted(photographs.iterdir())
    refused(
        run("faces", "detect", *images, "--model", model, "--overlay", photographs),
        "is an input of this command",
    )
    assert contents(photographs) == after


def test_overlay_of_one_photograph_into_its_folder(model, photographs):
    before = contents(photographs)
    assert (
        run(
            "faces", "detect", photographs / "a.png", "--model", model, "--overlay", photographs
        ).exit_code
        == 0
    )
    after = contents(photographs)
    assert {name: after[name] for name in before} == before and len(after) == 3


@pytest.mark.parametrize("other", ["same", "dotted", "symbolic link", "hard link"])
def test_an_output_that_is_the_input(model, photographs, monkeypatch, other):
    before = (photographs / "a.png").read_bytes()
    monkeypatch.chdir(photographs)
    name = {"same": "a.png", "dotted": "../photos/a.png"}.get(other, "link.png")
    if other == "symbolic link":
        os.symlink("a.png", name)
    elif other == "hard link":
        os.link("a.png", name)
    refused(
        run("faces", "detect", "a.png", "--model", model, "--overlay", name),
        "is an input of this command",
    )
    refused(run("pets", "classify", "a.png", "--overlay", name), "is an input of this command")
    assert (photographs / "a.png").read_bytes() == before


def test_the_model_is_an_input(model, photographs):
    before = model.read_bytes()
    refused(
        run("faces", "detect", photographs / "a.png", "--model", model, "--overlay", model),
        "is an input of this command",
    )
    assert model.read_bytes() == before


def test_videos_that_are_the_input(model, noise):
    before = noise.read_bytes()
    refused(
        run("faces", "detect", noise, "--model", model, "--overlay", noise),
        "is an input of this command",
    )
    refused(run("motion", "segment", noise, "--overlay", noise), "is an input of this command")
    assert noise.read_bytes() == before


def test_a_video_needs_a_video_s_name(tmp_path):
    np.savez(tmp_path / "t.npz", tracks=np.random.default_rng(0).uniform(size=(10, 20, 2)))
    refused(
        run("motion", "segment", tmp_path / "t.npz", "--overlay", tmp_path / "o.npz"),
        "ends in .mp4",
    )


def test_devices_are_left_alone(model, photographs):
    refused(
        run("faces", "detect", photographs / "a.png", "--model", model, "--overlay", "/dev/null"),
        "not a regular file",
    )
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize("out", ["photos/a.png", "photos", "none/m.safetensors"])
@pytest.mark.parametrize("group", ["faces", "motion", "pets"])
def test_a_model_replaces_models_only(photographs, group, out):
    before = contents(photographs)
    result = run(group, "train", "--data", photographs, "--out", photographs.parent / out)
    words = {
        "photos/a.png": "not an annealed model",
        "photos": "a folder",
        "none/m.safetensors": "the folder does not exist",
    }[out]
    refused(result, words)
    assert contents(photographs) == before


def test_a_model_may_be_replaced(tmp_path):
    path = tmp_path / "m.safetensors"
    write_model(path, "any kind", {}, {})
    check_outputs([tmp_path], model=path)


REPORTS = {"faces": "report.html", "motion": "table.md", "pets": "words_whole.png"}


@pytest.mark.parametrize("group", REPORTS)
def test_a_report_replaces_reports_only(tmp_path, group):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / REPORTS[group]).write_text("a year of work")
    arguments = (group, "evaluate", "--data", tmp_path, "--report", folder)
    refused(run(*arguments), f"contains {REPORTS[group]}, which is not part of a report")
    assert (folder / REPORTS[group]).read_text() == "a year of work"
    record = {"name": f"{group} evaluate", "settings": {}, "rows": []}
    (folder / ("report.json" if group == "faces" else "results.json")).write_text(
        json.dumps(record)
    )
    result = run(*arguments)
    # the data are complained of now
    assert result.exit_code == 2 and "no report" not in result.stderr
    refused(
        run(group, "evaluate", "--data", tmp_path, "--report", folder / REPORTS[group]),
        "expected a folder",
    )


def test_other_files_of_a_report_folder_stay(tmp_path):
    (tmp_path / "thesis.txt").write_text("a year of work")
    check_outputs([], report=tmp_path, report_files=["results.json", "table.md"])


def test_the_disk_is_full_while_a_video_is_written(tmp_path):
    frames = np.random.default_rng(2).integers(0, 256, (40, 120, 160, 3), dtype=np.uint8)
    for suffix in ("avi", "mp4"):
        path = tmp_path / f"o.{suffix}"
        path.write_bytes(b"old")
        with (
            full_disk(100_000),
            pytest.raises(ValueError, match=r"frames can be read back|cannot be written"),
        ):
            write_video(path, iter(frames), 10.0)
        assert [p.name for p in tmp_path.iterdir()] == [path.name] and path.read_bytes() == b"old"
        write_video(path, iter(frames), 10.0)
        assert sum(1 for _ in read_frames(path)) == 40
        with full_disk(path.stat().st_size - 100), pytest.raises(ValueError, match="written"):
            write_video(path, iter(frames), 10.0)  # all frames of .avi, without its index
        path.unlink()


def test_the_disk_is_full_while_faces_are_marked(model, tmp_path):
    frames = np.random.default_rng(2).integers(0, 256, (40, 120, 160, 3), dtype=np.uint8)
    write_video(tmp_path / "in.avi", iter(frames), 10.0)
    arguments = (
        "faces",
        "detect",
        tmp_path / "in.avi",
        "--model",
        model,
        "--every",
        20,
        "--overlay",
    )
    # everything is compiled from here on
    assert run(*arguments, tmp_path / "first.avi").exit_code == 0
    with full_disk(100_000):
        result = run(*arguments, tmp_path / "o.avi")
    assert result.exit_code == 2 and "frames can be read back" in result.stderr, result.output
    assert {p.name for p in tmp_path.iterdir()} == {"in.avi", "first.avi"}


def test_a_video_keeps_the_rights_of_new_files(tmp_path):
    mask = os.umask(0o027)
    try:
        write_video(tmp_path / "o.avi", iter([np.zeros((16, 16, 3), np.uint8)]), 10.0)
    finally:
        os.umask(mask)
    assert (tmp_path / "o.avi").stat().st_mode & 0o777 == 0o640
    assert cv2.VideoCapture(str(tmp_path / "o.avi")).isOpened()


def test_evidence_of_several_photographs(monkeypatch, photographs):
    from annealed.pipelines import console, pets

    class Classifier:
        classes = ("cat", "dog")

        def predict_proba(self, items):
            return np.array([[0.25, 0.75]])

        def explain(self, photograph):
            return None

    monkeypatch.setattr(console, "load_model_of", lambda kind, model: Classifier())
    monkeypatch.setattr(pets, "draw_evidence", lambda path, explained: path.write_bytes(b"picture"))
    before = contents(photographs)
    assert (
        run("pets", "classify", *sorted(photographs.iterdir()), "--overlay", photographs).exit_code
        == 0
    )
    after = contents(photographs)
    assert {name: after[name] for name in before} == before
    assert {p.name for p in set(after) - set(before)} == {"a_evidence.png", "b_evidence.png"}
