"""Commands under attack: damaged tables, kill -9, a full disk, places that cannot be written,
several writers."""

import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest
from annealed.models.files import read_header
from annealed.pipelines.cli.app import app
from annealed.pipelines.common.video import write_video
from helpers import rigid_motions, run, save_tiny_detector
from PIL import Image
from trials import damaged, judged
from typer.main import get_command

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "annealed.pipelines.cli"]


def test_damaged_tables(tally, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(8)
    X = rng.standard_normal((40, 5)).round(3)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        price=(X[:, 1] - X[:, 3]).round(3), kind=["u", "v"] * 20
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", X=X, y=X[:, 1], names=list("abcde"))
    lines = [
        f"{v} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) for v, row in zip(X[:, 1], X)
    ]
    (tmp_path / "a.svm").write_text("\n".join(lines))
    for name in ("a.csv", "a.tsv", "a.parquet", "a.npz", "a.svm"):
        data, path = (tmp_path / name).read_bytes(), tmp_path / ("x" + name)
        target = ["--target", "price"] if name[2:] in ("csv", "tsv", "parquet") else []
        for i in range(30):
            path.write_bytes(damaged(data, rng))
            result = run("select", path, *target, "-k", "2", "--json")
            failure = (
                f"{result.exception!r}"
                if result.exit_code == 1
                else judged(result.exit_code, result.stdout, result.stderr)
            )
            tally.note("tables", f"{name} {i}", failure)
    tally.check("tables")


def leaves(command, path=()):
    below = getattr(command, "commands", {})
    return (
        [leaf for name, part in below.items() for leaf in leaves(part, (*path, name))]
        if below
        else [path]
    )


def test_help_and_unknown_options(tally):
    for path in leaves(get_command(app)):
        for arguments, code in (
            (("--help",), 0),
            (("-h",), 0),
            (("--no-such-option",), 2),
            (("x",) * 9 + ("--no",), 2),
        ):
            result = run(*path, *arguments)
            failure = (
                None
                if result.exit_code == code and (code == 0 or not result.stdout)
                else f"{result.exit_code}"
            )
            tally.note("command line", " ".join((*path, *arguments)), failure)
    tally.check("command line")


@pytest.fixture
def place(tmp_path):
    """Small inputs for every command."""
    rng = np.random.default_rng(9)
    save_tiny_detector(tmp_path / "tiny.safetensors")
    Image.fromarray(rng.integers(0, 256, (200, 240, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    write_video(tmp_path / "v.avi", rng.integers(0, 256, (12, 64, 80, 3), dtype=np.uint8), 10.0)
    (tmp_path / "sequences").mkdir()
    for i in range(10):
        tracks, labels = rigid_motions(n_points=8, n_frames=6, seed=i)
        np.savez(tmp_path / "sequences" / f"s{i}.npz", tracks=tracks, labels=labels)
    return tmp_path


def limited(size):
    """Files may grow to so many bytes: what a full disk does, without one."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_full_disk(tally, place):
    rng = np.random.default_rng(10)
    out = place / "out"
    detector = ("--model", str(place / "tiny.safetensors"))
    commands = {
        "overlay.png": ["faces", "detect", str(place / "a.png"), *detector, "--json", "--overlay"],
        "overlay.avi": ["faces", "detect", str(place / "v.avi"), *detector, "--json", "--overlay"],
        "tracks.avi": [
            "motion",
            "segment",
            str(place / "sequences" / "s0.npz"),
            "--motions",
            "2",
            "--json",
            "--overlay",
        ],
        "m.safetensors": ["models", "convert", "motion", "--out"],
    }
    for name, command in commands.items():
        target = out / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        subprocess.run([*COMMAND, *command, target], check=True, capture_output=True, timeout=300)
        whole = target.stat().st_size
        for i in range(3):
            for old in (True, False):
                target.write_bytes(b"old") if old and name != "m.safetensors" else target.unlink(
                    missing_ok=True
                )
                before = target.read_bytes() if target.exists() else None
                size = int(rng.integers(1, whole))
                done = subprocess.run(
                    [*COMMAND, *command, target],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    preexec_fn=limited(size),
                )
                after = target.read_bytes() if target.exists() else None
                failure = (
                    judged(done.returncode, done.stdout, done.stderr)
                    if "--json" in command
                    else None
                )
                if failure is None and (
                    done.returncode != 2
                    or before != after
                    or len(list(out.iterdir())) > (after is not None)
                ):
                    failure = (
                        f"exit code {done.returncode}, left "
                        f"{[path.name for path in out.iterdir()]}: {done.stderr[-200:]}"
                    )
                tally.note("full disk", f"{name} {i} {size} of {whole}", failure)
    tally.check("full disk")


@pytest.mark.skipif(os.name != "posix", reason="needs rights of files")
def test_places_that_cannot_be_written(tally, place):
    data = (place / "tiny.safetensors").read_bytes()
    folder = place / "file.txt"
    folder.write_text("mine")
    missing = place / "nowhere"
    for where in (folder / "x.png", missing / "x.png", place):
        for command in (
            [
                "faces",
                "detect",
                place / "a.png",
                place / "a.png",
                "--model",
                place / "tiny.safetensors",
                "--overlay",
                folder,
            ],
            ["faces", "train", "--data", place, "--out", where],
            ["motion", "train", "--data", place / "sequences", "--out", where],
            ["motion", "evaluate", "--data", place / "sequences", "--report", folder],
            ["pets", "train", "--data", place, "--out", where],
            ["pets", "evaluate", "--data", place, "--report", folder],
            ["models", "convert", "motion", "--out", where],
        ):
            result = run(*command)
            failure = (
                None
                if result.exit_code == 2 and folder.read_text() == "mine"
                else f"{result.exit_code} {result.stderr}"
            )
            tally.note("unwritable locations", " ".join(map(str, command)), failure)
    assert (place / "tiny.safetensors").read_bytes() == data and read_header(
        place / "tiny.safetensors"
    )
    tally.check("unwritable locations")
