"""Commands that are killed at random moments and resume, and several that write one file: the
result of an undisturbed run."""

import json
import shutil
import signal
import subprocess
import sys
import time

import cv2
import numpy as np
import pytest
from annealed.pipelines.keypoints.faces import KEYPOINTS
from helpers import rigid_motions

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
        tally.note("writers at a time", str(writer), failure)
    tally.check("writers at a time")
