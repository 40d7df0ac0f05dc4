"""Images that are strips, and options out of range: an answer or one line, in bounded memory, with
as many processes as cores."""

import os
import resource
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from annealed.pipelines.common.video import write_video
from helpers import rigid_motions, run, save_tiny_detector
from PIL import Image
from trials import judged

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs rusage")]
COMMAND = [sys.executable, "-m", "annealed.pipelines.cli"]
MAX_BYTES = 1 << 29  # resident, Python and libraries included
PATIENCE = 60  # seconds after which a command counts as hanging


# A process of its own, as a child begins with the peak of the process that forked it: the tests.
WATCH = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
open(sys.argv[1], "w").write(f"{code} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
"""


def measured(*arguments):
    """Exit code (None: it hung), stdout, stderr and peak resident bytes of a command in a session
    of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "found")
        watch = [sys.executable, "-c", WATCH, result, *COMMAND, *map(str, arguments)]
        with subprocess.Popen(
            watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as child:
            try:
                out, err = child.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                return None, "", "", 0
        with open(result) as file:
            code, peak = map(int, file.read().split())
    return code, out, err, peak * (1 if sys.platform == "darwin" else 1024)


def test_strips(tally, tmp_path):
    model, path = save_tiny_detector(tmp_path / "tiny.safetensors"), tmp_path / "strip.png"
    Image.new("L", (64, 64), 90).save(path)
    # compiles, where nothing is kept yet
    assert run("faces", "detect", path, "--model", model, "--json").exit_code in (0, 2)
    for size in ((1, 40_000), (1, 100_000), (100_000, 1), (12, 60_000), (2, 2), (8_000, 300)):
        for shown in ((),) if max(size) < 100_000 else ((), ("--model", model)):
            Image.new("L", size, 90).save(path)
            code, out, err, peak = measured("faces", "detect", path, *shown, "--json")
            failure = "it hung" if code is None else judged(code, out, err)
            if failure is None and peak > MAX_BYTES:
                failure = f"{peak / 2**30:.2f} GiB"
            tally.note("very narrow images", f"{size} {shown[:1]}", failure)
    tally.check("very narrow images")


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(31)
    save_tiny_detector(tmp_path / "tiny.safetensors")
    for name in ("a.png", "b.png"):
        Image.fromarray(rng.integers(0, 256, (90, 100, 3), dtype=np.uint8)).save(tmp_path / name)
    write_video(tmp_path / "v.avi", rng.integers(0, 256, (6, 64, 80, 3), dtype=np.uint8), 10.0)
    tracks, labels = rigid_motions(n_points=8, n_frames=6)
    np.savez(tmp_path / "s.npz", tracks=tracks, labels=labels)
    X = rng.standard_normal((40, 4))
    np.savez(tmp_path / "t.npz", X=X, y=X[:, 1], names=list("abcd"))
    return tmp_path


SENSELESS = ("-1", "0", "nan", "1e400", "100000000000000000000", "", "x", "0x10", "½")


def test_options_out_of_range(tally, place):
    detect = ("faces", "detect", place / "a.png", "--model", place / "tiny.safetensors", "--json")
    commands = [
        (detect, ("--threshold", "--min-probability", "--min-size", "--max-size", "--size")),
        (("motion", "segment", place / "s.npz", "--json"), ("--motions",)),
        (("select", place / "t.npz", "--json"), ("-k",)),
        (
            ("select", place / "t.npz", "-k", "2", "--json"),
            ("--task", "--response", "--sep", "--encoding", "--include", "--row-groups"),
        ),
    ]
    for command, options in commands:
        for option in options:
            for value in SENSELESS:
                result = run(*command, option, value)
                failure = f"{result.exception!r}" if result.exit_code == 1 else None
                # An option that is unknown, or of another type, is explained on stderr alone.
                if failure is None and (result.stdout or result.exit_code == 0):
                    failure = judged(result.exit_code, result.stdout, result.stderr)
                tally.note("options out of range", f"{command[0]} {option} {value!r}", failure)
    tally.check("options out of range")


def test_many_jobs(tally, place):
    """No more processes than photographs and cores: each would write a line of its own on stderr if
    it failed."""
    for jobs in ("2", "1000", "100000"):
        code, out, err, _ = measured(
            "faces",
            "detect",
            place / "a.png",
            place / "b.png",
            "--model",
            place / "tiny.safetensors",
            "--jobs",
            jobs,
            "--json",
        )
        failure = "it hung" if code is None else judged(code, out, err)
        if failure is None and (len(out.splitlines()) != 2 or len(err.splitlines()) > 3):
            failure = f"{out[:200]} {err[:200]}"
        tally.note("options out of range", f"--jobs {jobs}", failure)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    tally.check("options out of range")
