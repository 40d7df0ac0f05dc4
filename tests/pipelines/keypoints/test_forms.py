"""One result in many forms: table, COCO and crops say what the JSON says, and a killed run goes
on."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import jsonschema
import numpy as np
import pytest
from annealed.models import align_face, load_model
from annealed.models.keypoints.face_alignment import EYES
from annealed.models.keypoints.instances.instance_finder import Instance, InstancePoint
from annealed.models.keypoints.instances.shape_models import Pose
from annealed.pipelines.common import image_folders
from annealed.pipelines.common.image_folders import list_inputs
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints import forms as forms_module
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.detect import FileDetections, sample_photograph
from annealed.pipelines.keypoints.forms import Finished, faces_table, write_coco, write_table
from helpers import run, save_tiny_detector
from PIL import Image
from typer.testing import CliRunner

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "schemas.json"


def made_face(eyes, person=None):
    """A face with two eyes and a chin, at ((x, y) of the left eye, (x, y) of the right one)."""
    points = {"left_eye": eyes[0], "right_eye": eyes[1], "chin": (eyes[0][0], eyes[0][1] + 60.0)}
    keypoints = {
        name: InstancePoint(*map(float, place), 0.9, 0.8) for name, place in points.items()
    }
    landmarks = np.array([*points.values()], float)
    box = (*landmarks.min(axis=0).tolist(), *landmarks.max(axis=0).tolist())
    return Instance(0.987654321, Pose(0.1, -0.2, 0.3), box, keypoints, landmarks, 40.0, 3.0, person)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Photographs in nested folders: the sample, shifted, one without a face, and a damaged one."""
    folder = tmp_path_factory.mktemp("photographs")
    face = sample_photograph()[40:230, 130:320]
    (folder / "b" / "deep").mkdir(parents=True)
    Image.fromarray(face).save(folder / "a.png")
    Image.fromarray(np.roll(face, 9, axis=1)).save(folder / "b" / "deep" / "a.png")
    Image.fromarray(np.full((60, 60, 3), 90, np.uint8)).save(folder / "b" / "nothing.png")
    (folder / "c.jpg").write_bytes(b"no photograph")
    return folder


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_table_json_and_coco_say_the_same(folder, tmp_path):
    pytest.importorskip("pyarrow")
    names = [tmp_path / name for name in ("t.csv", "t.parquet", "c.json", "second.json")]
    more = ("--landmarks", "--json", "--quiet", "--roll", 0)
    first = run(
        "faces",
        "detect",
        folder,
        "--out",
        names[0],
        "--coco",
        names[2],
        "--crops",
        tmp_path / "crops",
        *more,
    )
    second = run("faces", "detect", folder, "--out", names[1], "--coco", names[3], *more)
    assert first.exit_code == second.exit_code == 1  # one file is damaged, and said to be
    records = [json.loads(line) for line in first.stdout.splitlines()]
    assert [r["image"] for r in records] == [
        str(folder / name) for name in ("a.png", "b/deep/a.png", "b/nothing.png", "c.jpg")
    ]
    faces = [(record["image"], face) for record in records for face in record.get("faces", ())]
    rows, coco = rows_of(names[0]), json.loads(names[2].read_text())
    assert names[2].read_bytes() == names[3].read_bytes()
    import pandas as pd

    frame = pd.read_parquet(names[1])
    assert len(rows) == len(faces) == len(frame) == len(coco["annotations"]) == 2
    assert [image["file_name"] for image in coco["images"]] == [
        record["image"] for record in records[:3]
    ]
    for (image, face), row, of_parquet, annotation in zip(
        faces, rows, frame.to_dict("records"), coco["annotations"], strict=True
    ):
        points = [*face["keypoints"].values(), *face["landmarks"]]
        assert row["source"] == of_parquet["source"] == image and row["person"] == ""
        columns = [*(f"{name}_{part}" for name in face["keypoints"] for part in "xyp")]
        columns += [f"point{i}_{part}" for i in range(68) for part in "xy"]
        expected = [
            face["probability"],
            *face["box"],
            *face["pose"].values(),
            *(value for point in points for value in point),
        ]
        head = ["probability", "x0", "y0", "x1", "y1", "yaw", "pitch", "roll"]
        assert (
            [float(row[name]) for name in head + columns]
            == expected
            == [of_parquet[name] for name in head + columns]
        )
        assert annotation["keypoints"] == [value for x, y, *_ in points for value in (x, y, 2)]
        assert (
            annotation["score"] == face["probability"] and annotation["bbox"][:2] == face["box"][:2]
        )
    crops = sorted(path.name for path in (tmp_path / "crops").iterdir())
    assert crops == ["a_2_face1.png", "a_face1.png"]
    assert not list(tmp_path.glob("*.unfinished"))


def test_coco_is_read_by_pycocotools_and_by_us(folder, tmp_path):
    coco = pytest.importorskip("pycocotools.coco", reason="needs annealed[integrations]")
    photographs = tmp_path / "own"
    photographs.mkdir()
    (photographs / "a.png").write_bytes((folder / "a.png").read_bytes())
    assert (
        run(
            "faces", "detect", photographs / "a.png", "--coco", photographs / "c.json", "--quiet"
        ).exit_code
        == 0
    )
    read = coco.COCO(str(photographs / "c.json"))
    (annotation,) = read.loadAnns(read.getAnnIds())
    (image,) = read_annotations(photographs)
    np.testing.assert_allclose(
        np.reshape(annotation["keypoints"], (-1, 3))[:, :2], image.instances[0]
    )


class Killed(BaseException):
    pass


def test_a_killed_run_goes_on_and_gives_the_same(folder, tmp_path, monkeypatch):
    base = ("faces", "detect", folder, "--quiet", "--json", "--roll", 0, "--out")
    monkeypatch.setattr(image_folders, "MAX_FEW", 2)  # the rest is few, the whole is not
    whole = run(*base, tmp_path / "whole.csv")
    keep, stopped = Finished.add, tmp_path / "stopped.csv"

    def dying(self, record):
        keep(self, record)
        if self.n in (1, 3):
            with self.path.open("ab") as file:
                file.write(b'{"image": "half a li')
            raise Killed

    monkeypatch.setattr(Finished, "add", dying)
    for _ in range(2):
        with pytest.raises(Killed):
            CliRunner().invoke(
                run.__globals__["app"],
                [*map(str, (*base, stopped)), "--resume"],
                catch_exceptions=False,
            )
    assert not stopped.exists() and [path.name for path in tmp_path.glob("*.unfinished")] == [
        "stopped.csv.unfinished"
    ]
    monkeypatch.setattr(Finished, "add", keep)
    refused = run(*base, stopped)
    assert (
        refused.exit_code == 2 and "interrupted run; use --resume to continue it" in refused.stderr
    )
    other = run(*base, stopped, "--resume", "--landmarks")
    assert other.exit_code == 2 and "created with different settings or data" in other.stderr
    again = run(*base, stopped, "--resume")
    assert (
        again.exit_code == whole.exit_code == 1
        and stopped.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    )
    seconds = [
        [json.loads(line) | {"seconds": 0} for line in result.stdout.splitlines()]
        for result in (whole, again)
    ]
    assert seconds[0] == seconds[1] and not list(tmp_path.glob("*.unfinished"))


def test_exit_codes(folder, tmp_path):
    model = save_tiny_detector(tmp_path / "tiny.safetensors")
    bad, good = folder / "c.jpg", folder / "a.png"
    codes = [
        run("faces", "detect", *files, "--model", model).exit_code
        for files in ([good], [good, bad], [bad], [bad, bad])
    ]
    assert codes == [0, 1, 2, 2]


def test_a_video_is_a_table_of_frames(tmp_path):
    face = sample_photograph()[40:230, 130:320]
    write_video(tmp_path / "clip.avi", (face for _ in range(4)), 10.0)
    more = (
        "--out",
        tmp_path / "t.csv",
        "--coco",
        tmp_path / "c.json",
        "--crops",
        tmp_path / "crops",
        "--json",
        "--landmarks",
    )
    result = run("faces", "detect", tmp_path / "clip.avi", "--every", 2, *more)
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in result.stdout.splitlines()]
    rows = rows_of(tmp_path / "t.csv")
    assert [(row["frame"], row["time"]) for row in rows] == [("0", "0.0"), ("2", "0.2")]
    assert [float(row["point67_x"]) for row in rows] == [
        record["faces"][0]["landmarks"][67][0] for record in records
    ]
    images = json.loads((tmp_path / "c.json").read_text())["images"]
    assert [image["file_name"] for image in images] == [
        f"{tmp_path / 'clip.avi'}#00000{i}" for i in (0, 2)
    ]
    assert len(list((tmp_path / "crops").iterdir())) == 2
    refused = run("faces", "detect", tmp_path / "clip.avi", "--out", tmp_path / "t.csv", "--resume")
    assert refused.exit_code == 2 and "--resume is only available for photographs" in refused.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ("--out", "t.xlsx"),
            "--out t.xlsx is not valid; expected a file name that ends in .csv or .parquet",
        ),
        (("--coco", "c.txt"), "--coco c.txt is not valid; expected a file name that ends in .json"),
        (
            ("--crops", "crops", "--size", "4"),
            "size=4 is not valid; expected an integer from 8 to 4096",
        ),
        (("--resume",), "--resume is only available for photographs with --out or --coco"),
        (("--out", "t.csv", "--assembly", "none"), "use an assembly other than 'none'"),
        (("--out", "no/t.csv"), "no/t.csv: the file cannot be written"),
        (("no/*.jpg",), "no/*.jpg: no files match this pattern"),
        (("empty",), "empty: the folder contains no images"),
        (("-",), "-: stdin is empty; expected a list of paths"),
    ],
)
def test_bad_forms_are_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    result = run("faces", "detect", *arguments)
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1, (
        result.output
    )
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_inputs(tmp_path, monkeypatch):
    for name in (
        "b/x.JPG",
        "b/.hidden/y.png",
        "b/notes.txt",
        "a.png",
        "b/crops/a_face1.png",
        "[odd].png",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert list_inputs([".", "none.png"], [tmp_path / "b" / "crops"]) == [
        "[odd].png",
        "a.png",
        "b/x.JPG",
        "none.png",
    ]
    assert list_inputs(["[odd].png", "**/*.JPG"]) == ["[odd].png", "b/x.JPG"]
    listed = CliRunner().invoke(
        run.__globals__["app"], ["faces", "detect", "-", "--json"], input="no.png\n\nno2.png\n"
    )
    assert [json.loads(line)["image"] for line in listed.stdout.splitlines()] == [
        "no.png",
        "no2.png",
    ] and listed.exit_code == 2


@pytest.mark.parametrize("size", [8, 112, 300])
@pytest.mark.parametrize("ied", [6.0, 40.0, 170.0])
def test_the_eyes_of_a_crop_lie_in_the_template(size, ied):
    """Two discs at the eyes of a turned face are found where the template says."""
    step = ied * np.exp(0.4j)
    left, right = complex(300.3, 200.7) + step / 2, complex(300.3, 200.7) - step / 2
    face, image = (
        made_face([(left.real, left.imag), (right.real, right.imag)]),
        np.zeros((480, 640, 3), np.uint8),
    )
    for eye in (left, right):
        centre = [round(v * 16) for v in (eye.real, eye.imag)]
        cv2.circle(image, centre, round(16 * ied / 5), (255, 255, 255), -1, cv2.LINE_AA, 4)
    crop = align_face(image, face, size)[..., 0].astype(float)
    assert crop.shape == (size, size)
    for name, part in (("right_eye", np.s_[:, : size // 2]), ("left_eye", np.s_[:, size // 2 :])):
        y, x = np.indices(crop.shape)
        found = np.array([(crop * v)[part].sum() / crop[part].sum() for v in (x, y)])
        np.testing.assert_allclose(
            found, np.array(EYES[name]) * size - 0.5, atol=max(0.25, 0.03 * size / ied)
        )


def test_crops_that_make_no_sense():
    face = made_face([(3.0, 4.0), (3.0, 4.0)])
    with pytest.raises(ValueError, match="expected both eyes, at different positions"):
        align_face(np.zeros((9, 9, 3), np.uint8), face)
    outside = align_face(
        np.full((9, 9, 3), 200, np.uint8), made_face([(900.0, 900.0), (860.0, 900.0)]), 32
    )
    assert outside.shape == (32, 32, 3) and not outside.any()


def test_forms_of_made_records(tmp_path):
    pixels = np.zeros((50, 60, 3), np.uint8)
    result = FileDetections(
        "clip.mp4",
        pixels,
        0.1,
        [],
        [made_face([(30.0, 20.0), (10.0, 20.0)], 7)],
        frame=3,
        time=0.12,
    )
    frame = faces_table(
        [result, FileDetections("x.png", error="x.png: no such file")], landmarks=True
    )
    assert frame.loc[0, ["source", "frame", "time", "person", "chin_y", "point2_y"]].tolist() == [
        "clip.mp4",
        3,
        0.12,
        7,
        80.0,
        80.0,
    ]
    assert len(frame) == 1 and len(faces_table([])) == 0
    write_coco(
        tmp_path / "c.json",
        [result.record(), {"image": "x.png", "error": "no"}],
        [forms_module.coco_category(["left_eye", "right_eye", "chin"])],
    )
    coco = json.loads((tmp_path / "c.json").read_text())
    assert coco["annotations"][0]["track_id"] == 7 and coco["images"] == [
        {"id": 1, "file_name": "clip.mp4#000003", "width": 60, "height": 50}
    ]
    write_table(tmp_path / "t.csv", [], forms_module.columns_of(["chin"]))
    assert (tmp_path / "t.csv").read_text().endswith("roll,chin_x,chin_y,chin_p\n")


def test_two_runs_do_not_share_an_output(folder, tmp_path):
    whole, shared = tmp_path / "whole.csv", tmp_path / "shared.csv"
    assert run("faces", "detect", folder, "--quiet", "--roll", 0, "--out", whole).exit_code == 1
    add, seconds = Finished.add, []
    command = ("faces", "detect", folder, "--quiet", "--roll", 0, "--out", shared, "--resume")

    def with_a_second_run(self, record):
        add(self, record)
        if self.n == 2:
            again = [sys.executable, "-m", "annealed.pipelines.cli", *map(str, command)]
            seconds.append(subprocess.run(again, capture_output=True, text=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Finished, "add", with_a_second_run)
        assert run(*command).exit_code == 1
    (second,) = seconds
    assert second.returncode == 2 and not second.stdout
    assert (
        second.stderr.count("\n") == 1
        and f"{shared.name}.unfinished: the file is in use by another run" in second.stderr
    )
    assert shared.read_bytes() == whole.read_bytes() and not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_name_that_is_not_utf8(suffix, folder, tmp_path):
    import pandas as pd

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b\udcff.png").write_bytes((folder / "a.png").read_bytes())
    out = tmp_path / f"t.{suffix}"
    assert (
        run(
            "faces", "detect", tmp_path / "in", "--quiet", "--json", "--roll", 0, "--out", out
        ).exit_code
        == 0
    )
    assert set((pd.read_csv if suffix == "csv" else pd.read_parquet)(out)["source"]) == {
        f"{tmp_path}/in/b\\udcff.png"
    }


@pytest.mark.parametrize("content", [b"mine\n", b"mine", b'{"format": "other"}\n'])
def test_a_file_of_somebody_else_is_kept(content, folder, tmp_path):
    foreign = tmp_path / "t.csv.unfinished"
    foreign.write_bytes(content)
    result = run("faces", "detect", folder, "--out", tmp_path / "t.csv", "--resume")
    assert (
        result.exit_code == 2
        and "is not an annealed checkpoint" in result.stderr
        and foreign.read_bytes() == content
    )


@pytest.mark.parametrize("source, code", [(["clip.avi"], 130), (["camera", "0"], 0)])
def test_an_interrupt_ends_a_video_and_is_how_one_leaves_a_camera(
    source, code, tmp_path, monkeypatch
):
    def frames(*_):
        yield FileDetections("x", np.zeros((50, 60, 3), np.uint8), 0.1, [], [], frame=0)
        raise KeyboardInterrupt

    monkeypatch.setattr("annealed.pipelines.keypoints.detect_video", frames)
    result = run("faces", "detect", *source, "--out", tmp_path / "t.csv")
    assert result.exit_code == code and (tmp_path / "t.csv").exists() == (code == 0)


@pytest.fixture(scope="module")
def heads_and_masks(tmp_path_factory):
    """Two models of faces as models of other objects."""
    place, faces = tmp_path_factory.mktemp("models"), load_model("faces")
    for category in ("head", "mask"):
        schema = replace(faces.schema, category=category, landmarks={}, landmark_mirror=())
        replace(faces, schema=schema).save(place / f"{category}.safetensors")
    return [str(place / f"{category}.safetensors") for category in ("head", "mask")]


def test_several_models_report_their_categories(folder, heads_and_masks, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    outputs = [
        *("--out", tmp_path / "t.csv", "--coco", tmp_path / "c.json"),
        *("--crops", tmp_path / "crops", "--overlay", tmp_path / "drawn"),
    ]
    more = ("--json", "--quiet", "--roll", 0)
    first, second = (("--model", model) for model in heads_and_masks)
    both = run("keypoints", "detect", folder, *second, *first, *more, *outputs)
    alone = run("keypoints", "detect", folder, *first, *more, "--out", tmp_path / "one.csv")
    run("keypoints", "detect", folder, *second, *first, *more, "--out", tmp_path / "t.parquet")
    assert both.exit_code == alone.exit_code == 1  # one file is damaged
    schema, rows = json.loads(SCHEMAS.read_text()), rows_of(tmp_path / "t.csv")
    n_objects = 0
    for line, of_one in zip(both.stdout.splitlines(), alone.stdout.splitlines(), strict=True):
        record, one = json.loads(line), json.loads(of_one)
        jsonschema.validate(record, {**schema, "$ref": "#/$defs/annealed keypoints detect"})
        for part in ("detections", "objects"):
            named = [entry["category"] for entry in record.get(part, ())]
            n = len(one.get(part, ()))
            assert named == ["mask"] * n + ["head"] * n
            heads = [{**entry, "category": "head"} for entry in one.get(part, ())]
            assert record.get(part, [])[n:] == heads
        n_objects += len(record.get("objects", ()))
    assert [row["category"] for row in rows] == ["mask", "head"] * 2 and n_objects == 4
    assert list(pd.read_parquet(tmp_path / "t.parquet")["category"]) == ["mask", "head"] * 2
    (row, _), (_, head, *_) = rows_of(tmp_path / "one.csv"), rows
    assert head == row | {"category": "head"} and "category" not in row
    coco = json.loads((tmp_path / "c.json").read_text())
    assert [one["category_id"] for one in coco["annotations"]] == [1, 2, 1, 2]
    assert [(one["id"], one["name"]) for one in coco["categories"]] == [(1, "mask"), (2, "head")]
    assert len(list((tmp_path / "crops").iterdir())) == 4
    assert len(list((tmp_path / "drawn").iterdir())) == 3
    shown = run("keypoints", "detect", folder / "a.png", *second, *first, "--roll", 0).stdout
    assert "1 mask" in shown and "1 head" in shown


def test_several_models_that_do_not_fit(folder, heads_and_masks):
    head, mask = (("--model", model) for model in heads_and_masks)
    picture = folder / "a.png"
    for words, message in (
        ([picture, *head, *mask, *head], "have the categories head, mask, head; expected one"),
        ([picture, *head, *mask, "--keypoint", "chin"], "expected a single model"),
        (["camera", "0", *head, *mask], "expected a single model"),
    ):
        made = run("keypoints", "detect", *words)
        assert made.exit_code == 2 and message in made.stderr and made.stderr.count("\n") == 1
    twice = run("faces", "detect", picture, "--model", "faces", "--model", "faces")
    assert twice.exit_code == 2 and "have the categories face, face" in twice.stderr
