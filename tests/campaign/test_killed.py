"""Every command that writes, killed at random moments and with a full disk; resumed runs, and
several writers of one file: complete files, equal to those of an undisturbed run."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from types import SimpleNamespace

import cv2
import numpy as np
import pandas as pd
import pytest
from annealed.pipelines.common.samples import VIDEO, write_sample
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.data import schema_of
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.pipelines.keypoints.objects import read_objects
from annealed.pipelines.keypoints.training.train import train_keypoints
from commands import Command, path_options
from helpers import picture, rigid_motions
from originals import write_usps
from painted import GIVEN, POOL, folder_of
from PIL import Image
from skimage.data import astronaut

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "annealed.pipelines.cli"]
TRAINING = """
held_out = 0.25
[scan]
n_features = 10
first_rows = 200
n_steps = 4
final_steps = 6
rounds = 2
n_random = 200
per_round = 100
per_view = 20
views_per_round = 8
"""


def face_folder(folder):
    """Photographs of noise with two eyes."""
    rng, rows = np.random.default_rng(0), ["image,face,keypoint,x,y,visible"]
    folder.mkdir()
    for i in range(12):
        pixels = cv2.resize(
            rng.integers(60, 200, (12, 14, 3), dtype=np.uint8),
            (112, 96),
            interpolation=cv2.INTER_CUBIC,
        )
        x, y = (int(v) for v in rng.integers(20, 60, 2))
        for name, across in (("right_eye", 0), ("left_eye", 30)):
            cv2.circle(pixels, (x + across, y), 6, (250, 240, 230), 2)
            rows.append(f"p{i}.png,0,{name},{x + across},{y},1")
        cv2.imwrite(str(folder / f"p{i}.png"), pixels)
    assert {"left_eye", "right_eye"} <= set(KEYPOINTS)
    (folder / "keypoints.csv").write_text("\n".join(rows))
    return folder


def home_folder(folder):
    """Four days of a person who sleeps and cooks, with a sensor for each."""
    events, activities = ["start,end,sensor,type,place"], ["start,end,activity"]
    folder.mkdir()
    for day in ("2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"):
        for hour, activity, sensor in (
            (1, "Sleeping", "Bed,Pressure,Bedroom"),
            (9, "Cooking", "Stove,Heat,Kitchen"),
        ):
            activities.append(f"{day} 0{hour}:00:00,{day} {hour + 6:02d}:00:00,{activity}")
            events.append(f"{day} 0{hour}:05:00,{day} 0{hour}:55:00,{sensor}")
    (folder / "flat_events.csv").write_text("\n".join(events))
    (folder / "flat_activities.csv").write_text("\n".join(activities))
    return folder


# Each command that writes: IN is the folder of the inputs, OUT that of the outputs. A name has the
# words of the command, and, after a comma, what is written.
_EXPORTS = ("sql", "onnx", "c", "json", "xlsx", "csv")
_TRAINING = "--keypoint left_eye --mode scan --config IN/c.toml --n-background 0"
_FISH = "--window 0.85 --anchor head --anchor tail --features 5 --rounds 0"
COMMANDS = {
    "select": "IN/t.csv --target y -k 2 --out OUT/m.safetensors --table OUT/c.csv --report OUT/r",
    "predict, csv": "IN/m.safetensors IN/t.csv --out OUT/p.csv",
    "predict, parquet": "IN/m.safetensors IN/t.csv --out OUT/p.parquet",
    **{f"export, {kind}": f"IN/m.safetensors OUT/e.{kind}" for kind in _EXPORTS},
    "reproduce, rows": "fsa-regression --runs 1 --method FSA --checkpoint OUT/.cells --results "
    "OUT/results.json",
    "reproduce, figure": "fsa-schedules --figures OUT",
    "reproduce, pages": "--render OUT",
    "faces detect": "IN/faces_seen --out OUT/t.csv --coco OUT/t.json --crops OUT/c --overlay OUT/o "
    "--resume",
    "faces detect, video": "IN/v.avi --out OUT/t.parquet --overlay OUT/v.avi",
    "faces train": f"--data IN/faces --out OUT/m.safetensors {_TRAINING} --resume",
    "faces evaluate": "--data IN/faces --report OUT/r",
    "keypoints train": f"--data IN/fish --out OUT/m.safetensors --report OUT/r {_FISH} --resume",
    "keypoints detect": "IN/fish --model IN/fish.safetensors --out OUT/t.csv --coco OUT/t.json "
    "--overlay OUT/o --resume",
    "keypoints evaluate": "--data IN/fish --model IN/fish.safetensors --report OUT/r",
    "motion segment": "IN/sequences/s0.npz --motions 2 --out OUT/t.csv --overlay OUT/t.avi",
    "motion segment, video": "IN/moving.avi --motions 3 --out OUT/t.npz --masks OUT/m",
    "motion train": "--data IN/sequences --synthetic 0 --driving 0 --out OUT/m.safetensors",
    "motion evaluate": "--data IN/sequences --method fit --method fsa --partitions 2 --resume "
    "--report OUT/r",
    "pets train": "--data IN/pets --words 30 --select 20 --out OUT/m.safetensors",
    "pets classify": "IN/pets/ring/00.png IN/pets/cross/01.png --model IN/p.safetensors "
    "--overlay OUT/o",
    "pets evaluate": "--data IN/pets --model IN/p.safetensors --report OUT/r",
    "sensors train": "--data IN/home -k 1 --out OUT/m.safetensors",
    "sensors predict": "--data IN/home --model IN/h.safetensors --day 2024-03-02 --overlay "
    "OUT/d.png",
    "sensors evaluate": "--data IN/home -k 1 --method forward --folds 2 --report OUT/r --resume",
    "models convert": "motion --out OUT/m.safetensors",
    "data convert": "usps IN/usps OUT/data",
}
_ONCE = ("data convert", "reproduce, pages")  # with a whole result there is nothing to write
# Paths that are read; the label page (--label) is not interrupted here
READ = {
    *("--data", "--background", "--schema", "--boxes", "--config", "--test", "--model", "--label"),
    *("model", "table", "images", "files", "source"),
}
# Former names, and an option that is refused
OTHERS = {
    *("--save", "--tracks", "faces detect --table", "keypoints detect --table"),
    "keypoints detect --crops",
}


def test_every_output_is_tested():
    missing = []
    for command, name in path_options():
        tried = [text for key, text in COMMANDS.items() if key.partition(",")[0] == command]
        words = {word for text in tried for word in text.split()}
        argument = not name.startswith("-") and any("OUT" in word for word in words)
        if not {name, f"{command} {name}"} & {*words, *READ, *OTHERS} and not argument:
            missing.append(f"{command} {name}")
    assert not missing


def finish(command):
    code, output = Command(command).end()
    assert code == 0, output


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Small inputs for all commands."""
    place, rng = tmp_path_factory.mktemp("killed"), np.random.default_rng(9)
    X = rng.standard_normal((60, 4)).round(3)
    table = pd.DataFrame(X, columns=list("abcd"))
    table.assign(y=np.where(X[:, 0] > X[:, 1], "yes", "no")).to_csv(place / "t.csv", index=False)
    face_folder(place / "faces"), home_folder(place / "home")
    (place / "c.toml").write_text(TRAINING)
    (place / "faces_seen").mkdir()
    for i, side in enumerate((400, 350, 300)):
        Image.fromarray(astronaut()[:side, :400]).save(place / "faces_seen" / f"{i}.png")
    write_video(place / "v.avi", np.repeat(astronaut()[None, :256, 100:356], 4, axis=0), 10.0)
    images = read_objects(folder_of(place / "fish", 20), schema_of(place / "fish"))
    train_keypoints(
        images, [], place / "fish.safetensors", say=lambda line: None, pool=POOL, **GIVEN
    )
    write_sample(place / VIDEO)
    (place / "sequences").mkdir()
    for i in range(10):
        tracks, labels = rigid_motions(n_points=8, n_frames=6, seed=i)
        np.savez(place / "sequences" / f"s{i}.npz", tracks=tracks, labels=labels)
    for i, label in enumerate(["ring", "cross"] * 7):
        (place / "pets" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(label, i)).save(place / "pets" / label / f"{i:02d}.png")
    digits = [(rng.random((n, 256)), rng.integers(0, 10, n)) for n in (30, 10)]
    write_usps(place / "usps", *digits)
    page = place / "reproduce, pages"  # a checkout, which the command changes
    (page / "docs").mkdir(parents=True), (page / "experiments" / "results").mkdir(parents=True)
    record = {"name": "x", "columns": ["x", "y"], "rows": [[f"{i}", "0.5"] for i in range(200)]}
    (page / "experiments" / "results" / "campaign.json").write_text(json.dumps(record))
    for name in "ab":
        text = "<!-- table: campaign cells -->\n<!-- end of table -->\n"
        (page / "docs" / f"{name}.md").write_text(text)
    finish(
        ["select", place / "t.csv", "--target", "y", "-k", "2", "--out", place / "m.safetensors"]
    )
    finish(
        [
            "pets",
            "train",
            "--data",
            place / "pets",
            "--words",
            "30",
            "--select",
            "20",
            "--out",
            place / "p.safetensors",
        ]
    )
    finish(
        ["sensors", "train", "--data", place / "home", "-k", "1", "--out", place / "h.safetensors"]
    )
    return place


def contents(folder):
    """The files under their final names, without times; of workbooks the cells, of the results of a
    table the rows."""
    times = re.compile(rb'("?\w*seconds\w*"?: *)[\d.e-]+')
    return {
        str(path.relative_to(folder)): times.sub(rb"\1", _bytes(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(
            part.startswith(".") or part.endswith((".checkpoint", ".unfinished"))
            for part in path.relative_to(folder).parts
        )
    }


def _bytes(path):
    try:
        if path.suffix == ".xlsx":
            return zipfile.ZipFile(path).read("xl/worksheets/sheet1.xml")
        if path.name == "results.json":
            rows = json.loads(path.read_text())["rows"]
            return json.dumps([row | {"made": 0, "seconds": 0} for row in rows]).encode()
    except (ValueError, zipfile.BadZipFile):
        pass
    return path.read_bytes()


@pytest.fixture(scope="module", params=COMMANDS)
def trial(request, place):
    """An undisturbed run of a command, and how to begin it again."""
    name, out = request.param, place / "out"

    def clear(full=False):
        shutil.rmtree(out, ignore_errors=True)
        given = place / "undisturbed" if full else place / name
        shutil.copytree(given, out) if given.is_dir() else out.mkdir()

    words = [*name.partition(",")[0].split(), *COMMANDS[name].split()]
    words = [w.replace("IN/", f"{place}/").replace("OUT", str(out)) for w in words]
    clear()
    before, begun = contents(out), time.monotonic()
    finish(words)
    seconds, result = time.monotonic() - begun, contents(out)
    shutil.rmtree(place / "undisturbed", ignore_errors=True)
    shutil.copytree(out, place / "undisturbed")
    return SimpleNamespace(
        name=name, words=words, out=out, clear=clear, before=before, seconds=seconds, result=result
    )


def unfinished(trial):
    """The names of files that are neither those of before nor those of a whole run."""
    return [
        name
        for name, content in contents(trial.out).items()
        if content not in (trial.result.get(name), trial.before.get(name))
    ]


def test_killed(tally, trial):
    rng = np.random.default_rng(15)
    trial.clear()
    for share in rng.uniform(0.1, 1.0, 3):
        Command(trial.words).kill(share * trial.seconds)
        half = unfinished(trial)
        tally.note("killed", f"{trial.name} {share:.2f}", half and f"unfinished: {half}")
    code, output = Command(trial.words).end()
    failure = (
        output[-300:]
        if code
        else None
        if contents(trial.out) == trial.result
        else f"another result: {unfinished(trial)}"
    )
    tally.note("killed", trial.name, failure)
    tally.check("killed")


def test_full_disk(tally, trial, place):
    rng = np.random.default_rng(10)
    names = [name for name, content in trial.result.items() if content != trial.before.get(name)]
    largest = max((place / "undisturbed" / name).stat().st_size for name in names)
    for i in range(3):
        trial.clear(full=i < 2 and trial.name not in _ONCE)
        size = int(rng.integers(1, largest))
        code, output = Command(trial.words, size).end()
        rest = [str(p) for p in trial.out.rglob(".*") if re.search(r"\.[0-9a-f]{8}\.?\w*$", p.name)]
        failure = (
            f"exit code {code}: {output[-300:]}"
            if code not in (1, 2) or "Traceback" in output
            else f"no file named: {output[-300:]}"
            if str(trial.out) not in output
            and not re.search(r"/\S+: the file cannot be written", output)
            else unfinished(trial) + rest
        )
        tally.note("full disk", f"{trial.name} {i} {size} of {largest}", failure)
    tally.check("full disk")


def kill_and_resume(tally, kind, command, resumed, result, clear, n, seed):
    """Kill a command at random moments, let it resume, and compare the result with that of an
    undisturbed run.

    ``result(stdout)`` reads what the command made, ``clear()`` removes it and the checkpoints.
    """
    rng = np.random.default_rng(seed)
    clear()
    start = time.monotonic()
    done = subprocess.run(
        [*COMMAND, *command], check=True, capture_output=True, text=True, timeout=600
    )
    seconds, first = time.monotonic() - start, result(done.stdout)
    for i in range(n):
        clear()
        for _ in range(2):
            child = subprocess.Popen(
                [*COMMAND, *command, *resumed], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                child.wait(float(rng.uniform(0.3, 0.95)) * seconds)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
        done = subprocess.run(
            [*COMMAND, *command, *resumed], capture_output=True, text=True, timeout=600
        )
        failure = (
            done.stderr[-300:]
            if done.returncode
            else None
            if result(done.stdout) == first
            else "another result"
        )
        tally.note("killed and resumed", f"{kind} {i}", failure)
    tally.check("killed and resumed")


def test_killed_faces_train(tally, tmp_path):
    (tmp_path / "c.toml").write_text(TRAINING)
    data, out = face_folder(tmp_path / "photographs"), tmp_path / "made" / "m.safetensors"
    command = [
        "faces",
        "train",
        "--data",
        data,
        "--out",
        out,
        "--keypoint",
        "left_eye",
        "--mode",
        "scan",
    ]
    command += ["--config", tmp_path / "c.toml", "--n-background", "0"]

    def clear():
        shutil.rmtree(out.parent, ignore_errors=True)
        out.parent.mkdir()

    kill_and_resume(
        tally, "faces train", command, ["--resume"], lambda _: out.read_bytes(), clear, 3, 12
    )


def test_killed_motion_evaluate(tally, tmp_path):
    report, data = tmp_path / "report", tmp_path / "sequences"
    data.mkdir()
    for i in range(10):
        tracks, labels = rigid_motions(n_points=8, n_frames=6, seed=i)
        np.savez(data / f"s{i}.npz", tracks=tracks, labels=labels)
    command = [
        "motion",
        "evaluate",
        "--data",
        data,
        "--method",
        "fit",
        "--method",
        "fsa",
        "--partitions",
        "2",
        "--report",
        report,
    ]

    def rows(_):
        return json.loads(next(report.glob("*.json")).read_text())["rows"]

    clear = lambda: shutil.rmtree(report, ignore_errors=True)  # noqa: E731
    kill_and_resume(tally, "motion evaluate", command, ["--resume"], rows, clear, 3, 11)


def test_killed_sensors_evaluate(tally, tmp_path):
    report, data = tmp_path / "report", home_folder(tmp_path / "home")
    command = [
        "sensors",
        "evaluate",
        "--data",
        data,
        "-k",
        "1",
        "--method",
        "forward",
        "--folds",
        "2",
        "--report",
        report,
    ]

    def rows(_):
        return json.loads((report / "results.json").read_text())["rows"]

    clear = lambda: shutil.rmtree(report, ignore_errors=True)  # noqa: E731
    kill_and_resume(tally, "sensors evaluate", command, ["--resume"], rows, clear, 2, 13)


def test_killed_reproduce(tally, tmp_path):
    cells = tmp_path / "cells"
    command = [
        "reproduce",
        "fsa-regression",
        "--runs",
        "2",
        "--method",
        "FSA",
        "--json",
        "--checkpoint",
        cells,
    ]

    def rows(stdout):
        return [
            {key: value for key, value in row.items() if key != "seconds"}
            for row in json.loads(stdout)["rows"]
        ]

    kill_and_resume(
        tally, "reproduce", command, [], rows, lambda: cells.unlink(missing_ok=True), 3, 14
    )


WRITER = """
import sys
from annealed.pipelines.common.checkpoints import Checkpoint
cells = Checkpoint(sys.argv[1], {"a": 1})
for i in range(200):
    cells({"writer": sys.argv[2], "i": i}, lambda: {"x": [i] * 50})
"""


def test_two_writers(tally, tmp_path):
    path = tmp_path / "cells"
    children = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(3)
    ]
    codes = [child.wait(120) for child in children]
    lines = path.read_text().splitlines()
    cells = [json.loads(line) for line in lines[1:]]
    for writer, code in enumerate(codes):
        whole = sum(
            key["writer"] == str(writer) and value == {"x": [key["i"]] * 50} for key, value in cells
        )
        failure = None if code == 0 and whole == 200 else f"exit code {code}, {whole} of 200 cells"
        tally.note("concurrent writers", str(writer), failure)
    tally.check("concurrent writers")
