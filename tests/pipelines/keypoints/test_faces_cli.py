"""The command line as a contract: JSON lines, exit codes, one line per failure, nothing
half-written."""

import io
import json
import os
import struct
import subprocess
import sys

import cv2
import numpy as np
import pytest
from annealed import __version__
from annealed.models.keypoints.detector import Detection
from annealed.pipelines.common import file_map
from annealed.pipelines.common.outputs import overlay_paths
from annealed.pipelines.keypoints import detect as faces_detect
from annealed.pipelines.keypoints.drawing import draw_detections
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from helpers import run, save_tiny_detector
from PIL import Image

POOL = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "centre")}, sides=(4,), hog=None)


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def model(folder):
    return save_tiny_detector(folder / "tiny.safetensors")


@pytest.fixture(scope="module")
def pixels():
    rng = np.random.default_rng(0)
    return cv2.resize(
        rng.integers(0, 256, (9, 11, 3), dtype=np.uint8), (88, 72), interpolation=cv2.INTER_CUBIC
    )


@pytest.fixture(scope="module")
def good(folder, pixels):
    path = folder / "good.png"
    Image.fromarray(pixels).save(path)
    return path


def test_version_and_cheap_start():
    assert run("--version").stdout.strip() == f"annealed {__version__}"
    code = "import sys, annealed.pipelines.cli.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numba", "pandas", "sklearn", "cv2", "skimage", "scipy", "matplotlib"} & set(loaded)


def test_detect_json(model, good):
    result = run("faces", "detect", good, "--model", model, "--json")
    assert result.exit_code == 0 and result.stderr == ""
    (record,) = lines(result)
    assert (
        list(record) == ["image", "width", "height", "seconds", "detections", "faces"]
        and record["faces"] == []
    )
    assert record["image"] == str(good) and (record["width"], record["height"]) == (88, 72)
    assert 0 < record["seconds"] < 30
    assert record["detections"] and all(
        list(d) == ["keypoint", "x", "y", "score", "size", "probability"]
        for d in record["detections"]
    )
    scores = [d["score"] for d in record["detections"]]
    assert scores == sorted(scores, reverse=True) and min(scores) >= 0.8
    assert {d["keypoint"] for d in record["detections"]} == {"left_eye", "chin"}


def test_the_sample_photograph_shows_one_face(tmp_path):
    picture = tmp_path / "out.png"
    (record,) = lines(run("faces", "detect", "--json", "--landmarks", "--overlay", picture))
    (face,) = record["faces"]
    assert (
        face["probability"] > 0.9
        and len(face["keypoints"]) == len(record["detections"]) == 9
        and picture.is_file()
    )
    assert len(face["landmarks"]) == 68 and abs(face["pose"]["roll"]) < 0.2
    x, y, probability = face["keypoints"]["left_eye"]
    assert np.hypot(x - 247, y - 103) < 4 and probability > 0.9
    assert all(
        d["probability"] == pytest.approx(1 / (1 + np.exp(-d["score"])), abs=1e-6)
        for d in record["detections"]
    )
    (certain,) = lines(run("faces", "detect", "--json", "--min-probability", 1))
    assert certain["faces"] == certain["detections"] == []


def test_points_in_boxes_of_known_faces(tmp_path):
    picture, boxes, table = tmp_path / "a.png", tmp_path / "boxes.csv", tmp_path / "t.csv"
    Image.fromarray(faces_detect.sample_photograph()).save(picture)
    boxes.write_text("image,x0,y0,x1,y1\na.png,180,87,271,178\na.png,20,300,90,370\n")
    (record,) = lines(run("faces", "detect", picture, "--boxes", boxes, "--json", "--out", table))
    first, second = (face["probability"] for face in record["faces"])
    assert first > 0.9 > 0.5 > second
    for text, message in (
        ("b.png,1,2,3,4", "line 2: image='b.png' is not one of the photographs"),
        ("a.png,3,2,1,4", "line 2: the box (3, 2, 1, 4) is not valid; expected x0 < x1"),
        ("a.png,900,2,950,4", "expected a box inside the image of 512 x 512 pixels"),
    ):
        boxes.write_text(f"image,x0,y0,x1,y1\n{text}\n")
        result = run("faces", "detect", picture, "--boxes", boxes)
        assert result.exit_code == 2 and message in " ".join(result.stderr.split())
    assert "requires photographs with distinct names" in " ".join(
        run("faces", "detect", "--boxes", boxes).stderr.split()
    )


def test_detect_options(model, good):
    base = ("faces", "detect", good, "--model", model, "--json")
    (only,) = lines(run(*base, "--keypoint", "chin", "--threshold", "1.2"))
    assert {d["keypoint"] for d in only["detections"]} == {"chin"} and min(
        d["score"] for d in only["detections"]
    ) >= 1.2
    (sized,) = lines(run(*base, "--min-size", 30, "--max-size", 50))
    assert all(30 <= d["size"] <= 50 for d in sized["detections"])
    table = run("faces", "detect", good, "--model", model)
    assert table.exit_code == 0 and "left_eye" in table.stdout and "88x72" in table.stdout


def test_the_sample_photograph(model, monkeypatch, pixels):
    monkeypatch.setattr(faces_detect, "sample_photograph", lambda: pixels)
    (record,) = lines(run("faces", "detect", "--model", model, "--json"))
    assert record["image"] == "astronaut" and record["detections"]


def bad_images(folder, pixels):
    """Name, bytes and the words of the complaint; None where an answer is expected all the same."""
    jpeg = io.BytesIO()
    Image.fromarray(pixels).save(jpeg, "jpeg")
    jpeg = jpeg.getvalue()
    cmyk, exif = io.BytesIO(), io.BytesIO()
    Image.fromarray(pixels).convert("CMYK").save(cmyk, "jpeg")
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(pixels).save(exif, "jpeg", exif=turned, quality=95)
    sixteen = cv2.imencode(".png", pixels.astype(np.uint16)[:, :, ::-1] * 257)[1].tobytes()
    one = cv2.imencode(".png", pixels[:1, :1])[1].tobytes()
    return {
        "truncated.jpg": (jpeg[: len(jpeg) // 2], "damaged"),
        "text.png": (b"I am no picture", "not a readable image"),
        "empty.png": (b"", "empty"),
        "cmyk.jpg": (cmyk.getvalue(), None),
        "turned.jpg": (exif.getvalue(), None),
        "sixteen.png": (sixteen, None),
        "one.png": (one, None),
        "missing.png": (None, "no such file"),
    }


def test_bad_images_among_good_ones(model, good, folder, pixels, tmp_path):
    cases = bad_images(folder, pixels)
    paths = []
    for name, (data, _) in cases.items():
        paths.append(tmp_path / name)
        if data is not None:
            paths[-1].write_bytes(data)
    out = tmp_path / "pictures"
    result = run("faces", "detect", *paths, good, "--model", model, "--json", "--overlay", out)
    assert result.exit_code == 1
    records = {record["image"]: record for record in lines(result)}
    assert list(records) == [str(p) for p in [*paths, good]]
    complaints = result.stderr.splitlines()
    for (name, (_, words)), path in zip(cases.items(), paths):
        record = records[str(path)]
        mine = [c for c in complaints if name in c]
        if words is None:
            assert "error" not in record and not mine
        else:
            assert (
                list(record) == ["image", "error"] and words in record["error"] and len(mine) == 1
            )
    assert len(complaints) == sum(words is not None for _, words in cases.values())
    assert records[str(paths[4])]["width"] == 72  # the EXIF orientation is followed
    assert records[str(paths[6])]["detections"] == []
    sixteen, eight = records[str(paths[5])], records[str(good)]
    assert sixteen["detections"] == eight["detections"]
    written = {p.name for p in out.iterdir()}
    assert written == {
        f"{name}_keypoints.png" for name in ("cmyk", "turned", "sixteen", "one", "good")
    }


def test_overlay(model, good, tmp_path):
    picture = tmp_path / "o.png"
    assert run("faces", "detect", good, "--model", model, "--overlay", picture).exit_code == 0
    drawn = cv2.imread(str(picture))
    factor = -(-480 // 72)
    assert drawn.shape[1] == 88 * factor and drawn.shape[0] > 72 * factor
    # A format that nobody knows: one line, exit code 2, nothing left behind; the answer is still
    # given.
    result = run(
        "faces", "detect", good, "--model", model, "--overlay", tmp_path / "o.xyz", "--json"
    )
    assert (
        result.exit_code == 2
        and "expected a file name that ends in .png" in result.stderr
        and len(lines(result)) == 1
    )
    assert [p.name for p in tmp_path.iterdir()] == ["o.png"]
    result = run("faces", "detect", good, good, "--model", model, "--overlay", picture)
    assert result.exit_code == 2 and "expected a folder" in result.stderr
    result = run("faces", "detect", good, "--model", model, "--overlay", tmp_path / "no" / "o.png")
    assert result.exit_code == 2 and "cannot be written" in result.stderr


def test_drawn_marks_have_the_keypoints_colour():
    image = np.zeros((600, 600, 3), np.uint8)
    drawn = draw_detections(image, [Detection("chin", 300.0, 200.0, 1.0, 60.0)])
    assert tuple(drawn[200, 300]) == (204, 121, 200) and tuple(drawn[400, 300]) == (0, 0, 0)
    assert draw_detections(np.zeros((1, 1, 3), np.uint8), []).shape[1] == 8


def test_pictures_with_the_same_name(tmp_path):
    paths = overlay_paths(["a/x.jpg", "b/X.jpg", "b/x_2.png"], tmp_path, "keypoints")
    assert [p.name for p in paths] == [
        "x_keypoints.png",
        "X_2_keypoints.png",
        "x_2_2_keypoints.png",
    ]


@pytest.mark.parametrize(
    "args, message",
    [
        (("--keypoint", "nose"), "keypoint 'nose' is unknown; expected one of left_eye, chin"),
        (("--min-size", "1"), "min_size=1"),
        (("--min-size", "nan"), "min_size=nan"),
        (("--max-size", "3"), "max_size=3"),
        (
            ("--assembly", "2d"),
            "assembly='2d' is not available for this model; use assembly='none'",
        ),
        (("--assembly", "flat"), "assembly='flat' is unknown; expected one of none, 2d, 3d"),
        (("--min-probability", "0.5"), "min_probability=0.5 requires assembled faces"),
    ],
)
def test_bad_options_are_one_line(model, good, args, message):
    result = run("faces", "detect", good, "--model", model, *args)
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and message in result.stderr


def test_bad_models_are_one_line(model, good, tmp_path):
    damaged = tmp_path / "damaged.safetensors"
    whole = model.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    for data in (whole[: len(whole) // 2], b"junk", whole[: 8 + size] + b"", b""):
        damaged.write_bytes(data)
        result = run("faces", "detect", good, "--model", damaged)
        assert (
            result.exit_code == 2
            and result.stderr.count("\n") == 1
            and str(damaged) in result.stderr
        )
    result = run("faces", "detect", good, "--model", "nobody")
    assert (
        result.exit_code == 2
        and "model 'nobody' is neither a file nor a shipped model" in result.stderr
    )


def write_data(folder, image, n=2):
    rows = ["image,face,keypoint,x,y,visible"]
    for i in range(n):
        name = f"{'ab'[i % 2]}_{i}.png"
        Image.fromarray(image).save(folder / name)
        rows += [
            f"{name},0,{k},{10 + 4 * j + 20 * (j == 0)},{20 + 3 * j},1"
            for j, k in enumerate(KEYPOINTS)
        ]
    (folder / "keypoints.csv").write_text("\n".join(rows) + "\n")


def test_evaluate(model, pixels, tmp_path):
    data, background, report = tmp_path / "data", tmp_path / "background", tmp_path / "report"
    data.mkdir()
    background.mkdir()
    write_data(data, pixels)
    for i in range(3):
        Image.fromarray(pixels).save(background / f"{i}.png")
    more = ("--background", background, "--skip-background", 1, "--report", report)
    result = run("faces", "evaluate", "--data", data, "--model", model, "--json", *more)
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["name"] == "faces evaluate" and record["settings"]["background"] == 2
    rows = record["rows"]
    assert [(r["keypoint"], r["source"], r["tolerance"]) for r in rows] == [
        (k, s, t) for k in ("left_eye", "chin") for s in ("all", "a", "b") for t in (0.05, 0.1)
    ]
    assert all(0 <= r["ap"] <= 1 for r in rows) and rows[0]["points"] == 2
    assert rows[0]["false_per_background_image"] > 0
    assert {p.name for p in report.iterdir()} == {"report.json", "report.html"}
    assert json.loads((report / "report.json").read_text()) == record
    page = (report / "report.html").read_text()
    assert "<td>left_eye</td><td class=n>all</td><td class=n>0.050</td><td class=n>2</td>" in page
    assert page.count("<svg") == 2 and all(
        f"<h2>{name}</h2>" in page for name in ("left_eye", "chin")
    )
    assert "points that no detection hit" in page and "http" not in page
    table = run("faces", "evaluate", "--data", data, "--model", model, "--keypoint", "chin")
    assert table.exit_code == 0 and "chin" in table.stdout and "left_eye" not in table.stdout
    (data / "a_0.png").write_bytes(b"junk")
    result = run("faces", "evaluate", "--data", data, "--model", model, "--json")
    assert (
        result.exit_code == 1 and "a_0.png" in result.stderr and json.loads(result.stdout)["rows"]
    )
    result = run("faces", "evaluate", "--data", tmp_path / "no", "--model", model)
    assert result.exit_code == 2 and "no such folder" in result.stderr


def test_train_complains_early(pixels, tmp_path):
    write_data(tmp_path, pixels)
    base = ("faces", "train", "--data", tmp_path)
    for args, message in (
        (("--out", tmp_path / "no" / "m.safetensors"), "cannot be written"),
        (("--out", tmp_path / "m.safetensors", "--keypoint", "nose"), "keypoint 'nose' is unknown"),
        (("--out", tmp_path / "m.safetensors", "--config", tmp_path / "no.toml"), "no.toml"),
        (
            ("--out", tmp_path / "m.safetensors", "--dask", "tcp://127.0.0.1:9"),
            "tcp://127.0.0.1:9: no scheduler responds",
        ),
        (
            ("--out", tmp_path / "m.safetensors", "--dask", "tcp://x:1", "--jobs", 2),
            "--jobs 2 is not available with --dask",
        ),
        (("--out", tmp_path / "m.safetensors"), "too few"),
    ):
        result = run(*base, *args, "--quiet")
        assert (
            result.exit_code == 2 and result.stderr.count("\n") == 1 and message in result.stderr
        ), result.stderr
    assert not list(tmp_path.glob("*.safetensors"))


def test_models(model):
    listed = run("models", "list", "--json")
    assert listed.exit_code == 0 and isinstance(json.loads(listed.stdout), list)
    assert run("models", "list").exit_code == 0
    shown = run("models", "show", model, "--json")
    assert json.loads(shown.stdout)["keypoints"] == ["left_eye", "chin"]
    assert '"summary": "tiny"' in run("models", "show", model).stdout
    assert run("models", "show", "nobody").exit_code == 2


@pytest.fixture(scope="module")
def video(folder, pixels):
    path = folder / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10.0, (88, 72))
    for shift in range(6):
        writer.write(cv2.cvtColor(np.roll(pixels, 3 * shift, axis=1), cv2.COLOR_RGB2BGR))
    writer.release()
    return path


def test_video(folder, model, video):
    out = folder / "marked.avi"
    result = run(
        "faces", "detect", video, "--model", model, "--every", 2, "--overlay", out, "--json"
    )
    assert result.exit_code == 0, result.output
    found = lines(result)
    assert [(f["frame"], f["time"], f["width"]) for f in found] == [
        (0, 0.0, 88),
        (2, 0.2, 88),
        (4, 0.4, 88),
    ]
    assert (
        all(f["detections"] and f["seconds"] > 0 for f in found) and "per second" in result.stderr
    )
    marked = cv2.VideoCapture(str(out))
    assert sum(marked.read()[0] for _ in range(20)) == 6
    assert "left_eye" in run("faces", "detect", video, "--model", model).stdout


class StandIn:
    """A camera that shows a few frames, until somebody presses Ctrl-C."""

    def __init__(self, source):
        assert source == 0
        self.left, self.released = 5, False

    def isOpened(self):
        return True

    def get(self, _):
        return 0.0  # many cameras do not tell their rate

    def read(self):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return True, np.full((72, 88, 3), 40 * self.left, np.uint8)

    def release(self):
        self.released = True


def test_camera(folder, model, monkeypatch):
    opened, real = [], cv2.VideoCapture

    def capture(source, *reader):
        if source != 0:  # the written video is read back
            return real(source, *reader)
        opened.append(StandIn(source))
        return opened[-1]

    monkeypatch.setattr(cv2, "VideoCapture", capture)
    clock = iter((7.0, 7.1, 7.1, 7.4, 7.5))
    monkeypatch.setattr("annealed.pipelines.keypoints.video.monotonic", lambda: next(clock))
    out = folder / "seen.avi"
    result = run(
        "faces", "detect", "camera", 0, "--model", model, "--every", 2, "--overlay", out, "--json"
    )
    assert result.exit_code == 0, result.output
    assert [(f["image"], f["frame"], f["time"]) for f in lines(result)] == [
        ("camera 0", frame, time) for frame, time in ((0, 0.0), (2, 0.14), (4, 0.5))
    ]
    assert "3 frames processed" in result.stderr and opened[0].released
    marked = real(str(out))
    assert sum(marked.read()[0] for _ in range(20)) == 5


def test_bad_videos(folder, model, video):
    broken = folder / "broken.mp4"
    broken.write_bytes(b"no video")
    for arguments, message in (
        ([broken], "cannot be read as a video"),
        ([folder / "none.mp4"], "no such file"),
        (["camera"], "expected the number of a camera"),
        (["camera", "x"], "expected the number of a camera"),
        ([video, "a.png"], "expected a single video"),
        ([video, "--every", 0], "--every 0"),
        (
            [video, "--smooth", "much"],
            "smooth='much' is not valid; expected auto, off or a cut-off frequency in Hz",
        ),
        ([video, "--smooth", 0.5], "smooth=0.5 requires assembled faces"),
        ([video, "--overlay", folder / "x.nonsense"], "x.nonsense"),
        ([video, "--overlay", folder / "x.png"], "expected a file name that ends in .mp4"),
        ([video, "--overlay", folder / "none" / "x.mp4"], "the folder does not exist"),
        (["--overlay", folder / "none" / "x.png"], "the folder does not exist"),
        (["--every", 0], "--every 0"),
        ([video, "--mode", "regress"], "use mode='scan'"),
        ([video, "--mode", "fast"], "expected one of scan"),
    ):
        result = run("faces", "detect", *arguments, "--model", model)
        assert (
            result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
        ), (arguments, result.output)
    assert not list(folder.glob(".x*")) and not (folder / "x.nonsense").exists()


def test_photographs_in_parallel(folder, model, pixels):
    paths = []
    for i in range(3):
        paths.append(folder / f"p{i}.png")
        Image.fromarray(np.roll(pixels, 5 * i, axis=1)).save(paths[-1])
    one, two = (
        lines(run("faces", "detect", *paths, "--model", model, "--json", "--jobs", n))
        for n in (1, 2)
    )
    assert [r["detections"] for r in one] == [r["detections"] for r in two] and [
        r["image"] for r in one
    ] == list(map(str, paths))


def test_a_table_says_at_once_that_its_checkpoint_cannot_be_written(tmp_path):
    result = run(
        "reproduce", "fsa-regression", "--checkpoint", tmp_path / "no folder" / "cells", "--runs", 1
    )
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "cannot be written" in result.stderr


def test_a_package_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "annealed_experiments.registry", None)
    result = run("reproduce", "fsa-regression", "--runs", 1)
    assert result.exit_code == 2
    assert result.stderr.startswith("annealed: ")
    assert result.stderr.count("\n") == 1


def test_seconds_without_compiling(monkeypatch, model, pixels):
    """What is compiled while the clock runs is taken off."""
    clock, spent = iter([10.0, 15.0]), iter([1.0, 5.5])
    monkeypatch.setattr(faces_detect.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(faces_detect, "seconds_compiling", lambda: next(spent))

    assert faces_detect.timed(lambda frame: [], pixels) == ([], 0.5)


def test_quiet_reaches_the_compiler(model, good, monkeypatch):
    monkeypatch.setenv("ANNEALED_QUIET", "")
    assert run("faces", "detect", good, "--model", model, "--quiet").exit_code == 0
    assert os.environ["ANNEALED_QUIET"] == "1"


def test_warmup(monkeypatch):
    from annealed.pipelines import warmup

    done = []
    monkeypatch.setattr(
        warmup, "PARTS", {"one": lambda: done.append(1), "two": lambda: done.append(2)}
    )
    (record,) = lines(run("warmup", "two", "--json", "--quiet"))
    assert (
        done == [2] and record["rows"][0]["part"] == "two" and record["rows"][0]["compiling"] == 0
    )
    bad = run("warmup", "three", "--json")
    assert bad.exit_code == 2 and "three" in bad.stderr


@pytest.mark.parametrize(
    "asked, n_images, expected",
    [(100_000, 3, 2), (2, 3, 2), (100_000, 1, 1), (0, 3, 2), (0, 1, 1), (1, 3, 1)],
)
def test_jobs_are_no_more_than_photographs_and_cores(
    monkeypatch, model, good, asked, n_images, expected
):
    used = []
    monkeypatch.setattr("annealed.learners.compilation.all_threads", lambda: 2)
    monkeypatch.setattr(
        file_map, "by_processes", lambda n_jobs: used.append(n_jobs) or (lambda *_: iter(()))
    )
    result = run("faces", "detect", *[good] * n_images, "--model", model, "--jobs", asked)
    assert result.exit_code == 0 and used == (
        [expected] if asked != 1 else []
    )  # one: in this process
    assert result.stderr == (
        f"--jobs {asked}: reduced to {expected}, because there are "
        f"{n_images} photographs and 2 cores\n"
        if asked > expected
        else ""
    )


def test_no_fewer_jobs_than_none(model, good):
    result = run("faces", "detect", good, "--model", model, "--jobs", -1)
    assert result.exit_code == 2 and "--jobs -1" in result.stderr


@pytest.mark.parametrize("name", ["x.heic", "x", "/proc/x.png"])
def test_pictures_that_cannot_be_written_are_said_before_any_work(
    monkeypatch, folder, model, good, name
):
    monkeypatch.setattr(faces_detect, "detect_files", None)
    result = run("faces", "detect", good, "--model", model, "--overlay", folder / name)
    assert (
        result.exit_code == 2
        and result.stdout == ""
        and result.stderr.count("\n") == 1
        and name in result.stderr
    )


@pytest.mark.parametrize("content", [None, b"no video"])
def test_errors_of_videos_name_the_video(folder, model, content):
    path = folder / f"broken{content is None}.mp4"
    if content:
        path.write_bytes(content)
    result = run("faces", "detect", path, "--model", model, "--json")
    (record,) = lines(result)
    assert (
        result.exit_code == 2
        and record["image"] == str(path)
        and str(path) in record["error"]
        and result.stderr.count("\n") == 1
    )


@pytest.mark.parametrize("name", ["camera:0", "0", "camera0"])
def test_cameras_by_other_names(model, name):
    result = run("faces", "detect", name, "--model", model)
    assert (
        result.exit_code == 2
        and result.stderr == f"annealed: {name}: no such file; use camera 0 to read from a camera\n"
    )


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["a.gif", "a.tif"])
def test_further_frames_are_said_to_be_left_out(folder, model, pixels, good, name, jobs):
    first, *others = (Image.fromarray(np.roll(pixels, 20 * i, axis=1)) for i in range(3))
    first.save(folder / name, save_all=True, append_images=others)
    result = run("faces", "detect", folder / name, good, "--model", model, "--json", "--jobs", jobs)
    assert (
        result.exit_code == 0
        and result.stderr
        == f"annealed: {folder / name}: the file has 3 frames or pages; only the first is used\n"
    )
    if name == "a.tif":
        one, two = lines(result)
        assert one["detections"] == two["detections"]


@pytest.mark.parametrize("name", ["a.HEIC", "a.svg"])
def test_a_hint_to_convert(folder, model, name):
    (folder / name).write_bytes(b"<svg/>")
    result = run("faces", "detect", folder / name, "--model", model)
    assert result.exit_code == 2 and result.stderr.endswith(
        "not a readable image; convert it to PNG or JPEG\n"
    )
