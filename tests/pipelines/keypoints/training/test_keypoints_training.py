"""A small training on painted objects: from a COCO file to detections, in both rotations."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints.windows.object_search import WHOLE
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints.data import AnnotatedImage, read_annotations, schema_of
from annealed.pipelines.keypoints.measures import errors_of, score
from annealed.pipelines.keypoints.objects import check_rotation, read_objects, rotate_upright
from annealed.pipelines.keypoints.training.instances import refinement, train
from annealed.pipelines.keypoints.training.instances.augmentation import (
    AugmentationSettings,
    copies,
)
from annealed.pipelines.keypoints.training.train import SIDES, Decisions, decide, train_keypoints
from annealed.pipelines.keypoints.training.windows import classifier
from annealed.pipelines.keypoints.training.windows.classifier import ClassifierTraining
from annealed.vision.images import read_image
from clusters import assert_same_on_a_cluster
from painted import GIVEN as OF_ALL
from painted import NAMES, POOL, folder_of, paint
from typer.testing import CliRunner

GIVEN = {**OF_ALL, "anchors": ("fin", "head", "tail")}  # not in the order of the annotations
SCHEMAS = Path(__file__).resolve().parents[4] / "docs" / "schemas.json"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place, said = tmp_path_factory.mktemp("fish"), []
    data = folder_of(place / "train", 30)
    images = read_objects(data, schema_of(data))
    made, _ = train_keypoints(
        images, [], place / "fish.safetensors", say=said.append, pool=POOL, **GIVEN
    )
    return place, images, made, said


def test_objects_are_found(trained):
    place, _, made, said = trained
    test = folder_of(place / "test", 8, first=500)
    images = read_annotations(test, schema_of(test))
    found = [
        [
            np.array([face.keypoints[n][:2] for n in NAMES])
            for face in made.find(image.pixels()).instances
        ]
        for image in images
    ]
    rows = score(images, found)
    assert rows[-1]["pck"] >= 0.8, rows
    assert any("windows of 0.85" in line for line in said) and any(
        "40 features" in line for line in said
    )
    assert made.schema.anchors == GIVEN["anchors"] and made.category == "fish"


def test_the_time_left_is_a_range(trained):
    said = [line.split("scan: ")[1] for line in trained[3] if "keypoints left" in line]
    # of three points: nothing to compare the first with, and nothing left after the last
    assert said[0] == "2 keypoints left"
    low, high = re.fullmatch("1 keypoints left, (.*) to (.*) min", said[1]).groups()
    assert len(said) == 2 and 0 <= float(low) <= float(high)


def test_copies_are_partly_covered(trained):
    plain = AugmentationSettings(copies=2, blurred=0.0, compressed=0.0, brightened=0.0)
    both = (copies(trained[1][:5], replace(plain, covered=share), [0]) for share in (0.0, 1.0))
    for seen, hidden in zip(*both, strict=True):
        np.testing.assert_array_equal(seen.points, hidden.points)
        box = np.ptp(seen.points.real) * np.ptp(seen.points.imag)
        ys, xs = np.nonzero(seen.pixels != hidden.pixels)
        assert len(xs) and len(xs) < 0.5 * box  # a part of the box, and nothing beside it
        assert xs.min() >= seen.points.real.min() - 1 and xs.max() <= seen.points.real.max() + 1
        assert ys.min() >= seen.points.imag.min() - 1 and ys.max() <= seen.points.imag.max() + 1


def test_whole_objects_are_searched(trained):
    _, images, made, _ = trained
    pool, scores = made.face_cascade.pool, made.finder.assembler.slope
    assert pool.window == 48 and len(scores) == len(NAMES) + 1 and scores[-1] > 0
    assert made.info["stages"]["face_cascade"]["held_out"]["ap_25"] >= 0.9
    # Without its points an object is found by its whole.
    levels = made.search.pyramid(images[0].pixels())
    maxima = made.anchor_maxima(levels, made.finder.anchors)
    whole = {name: maxima[name][:0] for name in NAMES} | {WHOLE: maxima[WHOLE]}
    found = made.finder.find(whole, levels, made.reference_length, 0.0).instances
    places = np.array([[*found[0].keypoints[name][:2]] for name in NAMES])
    error = np.hypot(*(places - images[0].instances[0]).T).mean()
    assert error < 0.25 * images[0].reference_length[0]


def test_a_trial_names_its_point(trained, tmp_path, monkeypatch):
    images, said, measured = trained[1], [], {"ap_25": 0.5}
    one = SimpleNamespace(info={"held_out": measured})
    monkeypatch.setattr(ClassifierTraining, "train", lambda training, name: one)
    split = SimpleNamespace(held_out_views=[])
    job = SimpleNamespace(split=split, pool=POOL, say=None, n_jobs=1, views=lambda copies: [])
    decided = decide(images, lambda *some: job, said.append, side=0.85)
    assert len(said) == len(NAMES) and set(decided.anchors) == set(NAMES)
    for number, (name, line) in enumerate(zip(NAMES, said), start=1):
        end = f"{len(images)} images, {name} (point {number} of {len(NAMES)})"
        assert line == f"trial: windows of 0.85 reference lengths, {end}"


def test_only_the_best_points_are_tried_at_all_sides(trained, monkeypatch):
    images, tried = trained[1], []
    order = {name: number for number, name in enumerate(reversed(NAMES), start=1)}

    def train_trial(training, name):
        side = min(SIDES, key=lambda side: abs(24 / side - training.settings.reference_length))
        tried.append((side, name))
        precision = 0.1 * order[name] + (side == 1.7)
        return SimpleNamespace(info={"held_out": {"ap_25": precision}})

    monkeypatch.setattr(ClassifierTraining, "train", train_trial)
    split = SimpleNamespace(held_out_views=[])
    job = SimpleNamespace(split=split, pool=POOL, say=None, n_jobs=1, views=lambda copies: [])
    decided = decide(images, lambda *some: job, lambda line: None)
    best = sorted(NAMES, key=order.get)[-2:]
    assert decided.side == 1.7 and set(decided.precision) == set(NAMES)
    assert {name for side, name in tried if side < 1} == set(best)
    assert len(tried) == len(set(tried)) == 2 * len(NAMES) + 4


def test_what_is_held_in_memory_does_not_grow_with_the_pictures(trained, tmp_path, monkeypatch):
    _, images, made, _ = trained
    monkeypatch.setattr(classifier, "_MAX_VIEWS", 12)
    monkeypatch.setattr(refinement, "MAX_VALUES", 2**20)
    monkeypatch.setattr(train, "_MAX_SEARCHED", 4)
    few, _ = train_keypoints(
        images, [], tmp_path / "few.safetensors", say=lambda line: None, pool=POOL, **GIVEN
    )
    runs, positive = (
        [model.info["stages"]["refinement"]["runs"] for model in (made, few)],
        [model.info["stages"]["scan"]["head"]["rows"]["positive"] for model in (made, few)],
    )
    assert runs[1] * 3 * 128 <= 2**20 < runs[0] * 3 * 128
    assert positive[0] / 3 < positive[1] < positive[0] * 2 / 3


def test_resumed_training_is_the_same(trained):
    place, images, _, _ = trained
    out = place / "again.safetensors"
    (place / "fish.safetensors.checkpoint").rename(place / "again.safetensors.checkpoint")
    train_keypoints(images, [], out, resume=True, say=lambda line: None, pool=POOL, **GIVEN)
    (place / "again.safetensors.checkpoint").rename(place / "fish.safetensors.checkpoint")
    assert out.read_bytes() == (place / "fish.safetensors").read_bytes()


@pytest.mark.slow
def test_a_training_on_a_cluster(trained, tmp_path):
    place, images, _, _ = trained

    def train(out, say, n_jobs):
        train_keypoints(images, [], out, say=say, n_jobs=n_jobs, pool=POOL, **GIVEN)

    assert_same_on_a_cluster(train, place / "fish.safetensors", "mining", tmp_path)


def test_commands(trained):
    place, _, _, _ = trained
    model, picture = str(place / "fish.safetensors"), str(place / "train" / "000.png")
    made = CliRunner().invoke(
        app, ["keypoints", "detect", picture, "--model", model, "--json", "--quiet"]
    )
    record = json.loads(made.stdout)
    assert made.exit_code == 0 and "faces" not in record
    (found,) = record["objects"]
    assert (
        list(found) == ["category", "probability", "box", "keypoints"]
        and found["category"] == "fish"
    )
    # in the order of the annotations, not of the detectors
    assert load_model(model).keypoints == NAMES != list(GIVEN["anchors"])
    assert set(found["keypoints"]) == set(NAMES)
    assert all(len(p) == 3 for p in found["keypoints"].values())
    made = CliRunner().invoke(
        app,
        [
            "keypoints",
            "evaluate",
            "--data",
            str(place / "train"),
            "--model",
            model,
            "--json",
            "--quiet",
        ],
    )
    rows = json.loads(made.stdout)["rows"]
    assert (
        made.exit_code == 0
        and [row["keypoint"] for row in rows] == [*NAMES, "all"]
        and rows[-1]["pck"] > 0.8
    )
    for command in (["evaluate", "--data", str(place / "train")], ["detect", picture]):
        made = CliRunner().invoke(app, ["keypoints", *command, "--model", "faces"])
        assert made.exit_code == 2 and f"annealed faces {command[0]}" in made.stderr


def test_the_record_has_its_schema_and_other_forms(trained, tmp_path):
    place, _, _, _ = trained
    model, folder, table, coco = (
        str(place / "fish.safetensors"),
        place / "few",
        tmp_path / "t.csv",
        tmp_path / "c.json",
    )
    folder_of(folder, 4, first=700)
    files = ["--out", str(table), "--coco", str(coco), "--overlay", str(tmp_path / "drawn")]
    made = CliRunner().invoke(
        app, ["keypoints", "detect", str(folder), "--model", model, "--json", "--quiet", *files]
    )
    records = [json.loads(line) for line in made.stdout.splitlines()]
    assert made.exit_code == 0 and len(records) == 4
    schema = json.loads(SCHEMAS.read_text())
    for record in records:
        jsonschema.validate(record, {**schema, "$ref": "#/$defs/annealed keypoints detect"})
    rows, kept = list(csv.DictReader(table.open())), json.loads(coco.read_text())
    (category,) = kept["categories"]
    assert category["name"] == "fish" and category["keypoints"] == NAMES
    assert (
        len(rows)
        == len(kept["annotations"])
        == sum(len(record["objects"]) for record in records)
        > 0
    )
    assert (
        float(rows[0]["head_x"]) == records[0]["objects"][0]["keypoints"]["head"][0]
        and rows[0]["yaw"] == ""
    )
    # What was found is data for the next training, in the same form.
    (folder / "annotations.json").write_text(coco.read_text().replace(f"{folder}/", ""))
    assert (
        schema_of(folder).keypoints == tuple(NAMES)
        and len(read_annotations(folder, schema_of(folder))) == 4
    )
    words = ["--model", model, "--crops", str(tmp_path / "crops"), "--size", "64", "--quiet"]
    made = CliRunner().invoke(app, ["keypoints", "detect", str(folder), *words])
    assert made.exit_code == 0 and len(list((tmp_path / "crops").iterdir())) == len(rows)
    crop, first = read_image(tmp_path / "crops" / "000_object1.png"), records[0]["objects"][0]
    low, high = np.reshape(first["box"], (2, 2))
    x, y = (np.array(first["keypoints"]["tail"][:2]) - (low + high) / 2) / (1.2 * max(high - low))
    assert crop.shape == (64, 64, 3) and crop[round(32 + 64 * y), round(32 + 64 * x)].max() < 60


def test_the_precision_is_that_of_pycocotools_on_the_coco_file(trained, tmp_path):
    coco = pytest.importorskip("pycocotools.coco", reason="needs annealed[integrations]")
    from pycocotools.cocoeval import COCOeval

    model, folder = str(trained[0] / "fish.safetensors"), folder_of(tmp_path / "own", 12, first=900)
    own = json.loads((folder / "annotations.json").read_text())
    for one in own["annotations"]:
        area = one["bbox"][2] * one["bbox"][3] * (0.5 if one["id"] % 2 else 1.0)
        # pycocotools takes the id 0 for "not matched"
        one.update(id=one["id"] + 1, area=area, iscrowd=0, num_keypoints=3)
        one["keypoints"][1] += one["id"]  # some are less similar
    (folder / "annotations.json").write_text(json.dumps(own))
    words = ["--model", model, "--quiet"]
    ran = CliRunner().invoke(
        app, ["keypoints", "evaluate", "--data", str(folder), "--json", *words]
    )
    whole = json.loads(ran.stdout)["rows"][-1]
    found = tmp_path / "found.json"
    CliRunner().invoke(app, ["keypoints", "detect", str(folder), "--coco", str(found), *words])
    results = json.loads(found.read_text())
    names = {image["id"]: Path(image["file_name"]).name for image in results["images"]}
    number = {image["file_name"]: image["id"] for image in own["images"]}
    for one in results["annotations"]:
        one |= {"image_id": number[names[one["image_id"]]], "category_id": 7}
    truth = coco.COCO(str(folder / "annotations.json"))
    judged = COCOeval(truth, truth.loadRes(results["annotations"]), "keypoints")
    judged.params.kpt_oks_sigmas = np.full(len(NAMES), 0.05)
    judged.evaluate()
    judged.accumulate()
    expected = judged.eval["precision"][:, :, 0, 0, 0].mean()
    assert whole["oks_ap"] == pytest.approx(expected, abs=1e-6) and 0.2 < expected < 0.99
    assert whole["objects"] == 12 and whole["detected"] >= 0.8 and whole["pck_detected"] > 0.5


def test_objects_in_all_directions_get_a_line(trained, in_any_rotation):
    assert check_rotation(trained[1]) is None and check_rotation(in_any_rotation) is None
    upright = [
        replace(image, schema=replace(image.schema, upright=True)) for image in in_any_rotation
    ]
    assert re.fullmatch(
        r"the rotation of objects has a standard deviation of \d+ degrees; "
        "use --rotation free",
        check_rotation(upright),
    )


@pytest.fixture(scope="module")
def in_any_rotation(tmp_path_factory):
    data = folder_of(tmp_path_factory.mktemp("turned") / "train", 40, turn=1.0)
    return read_objects(data, replace(schema_of(data), upright=False))


def test_objects_are_turned_upright(in_any_rotation):
    images, upright = in_any_rotation, rotate_upright(in_any_rotation)
    assert len(upright) == 2 * len(images)
    directions = np.array(
        [(image.instances[0, 1] - image.instances[0, 0]) @ [1, 1j] for image in upright]
    )
    spread = np.angle(directions / np.mean(directions / abs(directions)))
    assert abs(spread).max() < np.radians(25)
    for image in upright[:6]:  # the picture is turned with its points
        x, y = np.round(image.instances[0, 1]).astype(int)
        assert image.pixels()[y, x].max() < 60


@pytest.mark.slow
def test_objects_are_found_in_any_rotation(in_any_rotation, tmp_path):
    images = in_any_rotation
    made, _ = train_keypoints(
        images, [], tmp_path / "fish.safetensors", say=lambda line: None, pool=POOL, **GIVEN
    )
    made = load_model(tmp_path / "fish.safetensors")
    assert not made.schema.upright and made.finder.assembler.max_turn == pytest.approx(np.pi)
    pictures = [paint(900 + i, 1.0) for i in range(6)]
    tests = [replace(images[0], instances=points[None]) for _, points in pictures]
    names = images[0].schema.keypoints
    found = [
        [np.array([face.keypoints[n][:2] for n in names]) for face in made.find(pixels).instances]
        for pixels, _ in pictures
    ]
    assert score(tests, found)[-1]["pck"] > 0.6


def test_decisions_are_said_and_become_settings():
    decided = Decisions(SIDES[1], 1.0, ("a", "b"), 300, 3, {"a": 0.5, "b": 0.25})
    assert (
        decided.lines()[1]
        == "detectors for a, b; average precision of a trial: a 0.50, b 0.25 (--anchor)"
    )
    settings = decided.settings(120)
    assert settings.scan.n_features == 300 and settings.scan.reference_length == pytest.approx(
        24 / SIDES[1], abs=0.05
    )


def test_errors_are_those_of_the_nearest_object():
    schema = schema_of_points()
    faces = np.array([[[0.0, 0], [40, 0]], [[100, 0], [140, 0]]])
    boxes = np.array([[0.0, -20, 40, 20], [100, -20, 140, 20]])
    image = AnnotatedImage(
        None,
        faces,
        np.array([[True, True], [True, False]]),
        np.zeros((0, 4)),
        schema=schema,
        boxes=boxes,
    )
    found = [faces[1] + [2, 0], faces[0] + [0, 8], np.array([[300.0, 0], [340, 0]])]
    errors, false = errors_of(image, found)
    np.testing.assert_allclose(errors, [[0.2, 0.2], [0.05, np.nan]])
    assert false == 1
    errors, false = errors_of(image, [])
    np.testing.assert_array_equal(errors, [[np.inf, np.inf], [np.inf, np.nan]])
    assert false == 0
    rows = score([image], [found], [[], [faces[0]]])
    assert [row["pck"] for row in rows] == [0.5, 0.0, pytest.approx(1 / 3)]
    assert rows[-1]["false_per_image"] == 1 and rows[-1]["false_per_background_image"] == 0.5


def schema_of_points():
    from annealed.models.keypoints.schema import Schema

    return Schema("pair", ("a", "b"))
