"""The report of a training: its numbers, its pictures, and what is refused."""

import json
import re
from dataclasses import replace

import pytest
from annealed.models.keypoints.detector import KeypointDetector
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints import report as module
from annealed.pipelines.keypoints.data import schema_of
from annealed.pipelines.keypoints.objects import read_objects
from annealed.pipelines.keypoints.report import REPORT_FILES, write_report
from annealed.pipelines.keypoints.training import train as train_module
from annealed.pipelines.keypoints.training.train import (
    held_out_images,
    learning_curve,
    train_keypoints,
)
from painted import GIVEN, NAMES, POOL, folder_of
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    place = tmp_path_factory.mktemp("reported")
    data = folder_of(place / "train", 30)
    images = read_objects(data, schema_of(data))
    made, decisions = train_keypoints(
        images, [], place / "fish.safetensors", say=lambda line: None, pool=POOL, **GIVEN
    )
    test = held_out_images(made, images)
    # it would train twice; the slow test below does
    curve = [{"pictures": n, "pck": 0.9} for n in ((30 - len(test)) // 2, 30 - len(test))]
    record = write_report(place, made, decisions.lines(), test, len(images), curve)
    return place, images, made, decisions, record


def test_few_objects_of_any_rotation_are_shown_as_they_are(reported):
    _, images, made, _, _ = reported
    some = [replace(image, schema=replace(image.schema, upright=False)) for image in images[:3]]
    assert module._looks(made, some).count("<svg") == 18


def test_the_numbers(reported):
    place, images, made, _, record = reported
    assert json.loads((place / "keypoints.json").read_text()) == json.loads(json.dumps(record))
    test = held_out_images(made, images)
    assert 0 < len(test) < 15 and record["settings"]["held_out"] == len(test)
    assert [row["keypoint"] for row in record["rows"]] == [*NAMES, "all"]
    whole = record["rows"][-1]
    assert (
        whole["points"] == 3 * len(test)
        and whole["pck"] >= 0.8
        and 0.8 <= whole["average_precision"] <= 1
    )


@pytest.mark.slow
def test_the_learning_curve(reported):
    _, images, made, decisions, record = reported
    said = []
    rows = learning_curve(
        images, held_out_images(made, images), [], decisions, said.append, pool=POOL
    )
    assert [row["pictures"] for row in rows] == [
        row["pictures"] for row in record["learning_curve"]
    ]
    assert all(0 <= row["pck"] <= 1 for row in rows) and len(said) == 2


def test_the_page(reported):
    place, images, made, _, record = reported
    page = (place / "keypoints.html").read_text()
    for words in (
        "Precision and recall",
        "Errors by point",
        "Images with the largest errors",
        "Learning curve",
        "features of each detector",
        "Settings chosen",
    ):
        assert words in page
    assert "From 12 to 24 images the PCK changed by" in page and "at most 150 features" in page
    assert len(re.findall("<figure>", page)) == min(6, record["settings"]["held_out"])
    drawn = {name for name in (image.name for image in images) if f"{name}: " in page}
    assert drawn <= {image.name for image in held_out_images(made, images)}
    assert len(re.findall('width="144" role="img"', page)) == 3 * 6  # features of each detector
    assert "http" not in page.replace("http-equiv", "")  # nothing from elsewhere


def test_the_learning_curve_trains_on_parts_that_hold_no_test_picture(reported, monkeypatch):
    _, images, made, decisions, _ = reported
    test, seen = held_out_images(made, images), []

    def train(some, background, out, **given):
        seen.append((len(some) - len(test), given["n_features"], given["rounds"]))
        assert [image.name for image in some[-len(test) :]] == [image.name for image in test]
        return made, decisions

    monkeypatch.setattr(train_module, "train_keypoints", train)
    rows = learning_curve(images * 2, test, [], decisions, lambda line: None)
    assert seen == [(12, 40, 1), (24, 40, 1), (48, 40, 1)]
    assert [row["pictures"] for row in rows] == [12, 24, 48]
    assert learning_curve(images[:8], test, [], decisions, lambda line: None) == []


def test_a_page_of_a_detector_that_is_sure_of_nothing(reported, tmp_path, monkeypatch):
    _, images, made, decisions, _ = reported
    find, drawn = KeypointDetector.find, []

    def unsure(self, pixels, options=None):
        found = find(self, pixels, options)
        return found._replace(
            instances=[replace(face, probability=0.2) for face in found.instances]
        )

    monkeypatch.setattr(KeypointDetector, "find", unsure)
    monkeypatch.setattr(
        module, "draw_detections", lambda image, *shown: drawn.append(shown) or image
    )
    record = write_report(
        tmp_path, made, decisions.lines(), held_out_images(made, images), len(images), []
    )
    assert record["rows"][-1]["pck"] == 0 and record["rows"][-1]["median_error"] is None
    page = (tmp_path / "keypoints.html").read_text()
    assert drawn and all(shown == ([], []) for shown in drawn)
    assert "1 missing, 0 false" in page and "too few images for a learning curve" in page


def test_a_folder_of_something_else_is_refused(reported, tmp_path):
    place, *_ = reported
    (tmp_path / REPORT_FILES[0]).write_text("[]")
    options = [
        "--data",
        str(place / "train"),
        "--out",
        str(tmp_path / "x.safetensors"),
        "--report",
        str(tmp_path),
    ]
    made = CliRunner().invoke(app, ["keypoints", "train", *options])
    assert (
        made.exit_code == 2
        and "not part of a report of this command" in made.stderr
        and made.stderr.count("\n") == 1
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [REPORT_FILES[0]]
