"""Ctrl-C at moments of a first call, while modules load, while code is compiled and while it is
not: one line and 130, and in Python an interrupt."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from annealed.pipelines.common.image_folders import MAX_FEW
from helpers import save_tiny_detector
from PIL import Image

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs signals")]
FIT = """
import signal
import numpy as np
from annealed.learners import FSAClassifier
X = np.random.default_rng(0).normal(size=(30_000, 80))
FSAClassifier(2, verbose=True).fit(X, X[:, 3] > X[:, 5])
signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of Python itself is not what is tried
"""


def interrupted(command, cache, seconds, compiles=True):
    """Exit code and stderr of a command that gets Ctrl-C some seconds after its start, or after it
    has said that it compiles."""
    shutil.rmtree(cache, ignore_errors=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    limit = threading.Timer(90, child.kill)
    limit.start()
    message = ""
    for line in child.stderr if compiles else ():
        message += line
        if "compiling" in line:
            break
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    message += child.stderr.read()
    code = child.wait()
    limit.cancel()
    return code, message


def test_interrupted_first_commands(tally, tmp_path):
    path, model = tmp_path / "a.png", save_tiny_detector(tmp_path / "tiny.safetensors")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 240, 3), dtype=np.uint8)).save(
        path
    )
    command = [
        sys.executable,
        "-m",
        "annealed.pipelines.cli",
        "faces",
        "detect",
        "--model",
        str(model),
    ]
    rng = np.random.default_rng(32)
    # more than a few photographs: their loops are compiled
    for compiles, moments in ((True, rng.uniform(0.0, 6.0, 6)), (False, rng.uniform(0.1, 1.0, 8))):
        for seconds in moments:
            photographs = [str(path)] * (MAX_FEW + 1 if compiles else 1)
            code, message = interrupted(
                [*command, *photographs], tmp_path / "cache", seconds, compiles
            )
            good = code == 0 or (code == 130 and "interrupted" in message.splitlines()[-1])
            failure = (
                None
                if good and "Traceback" not in message
                else f"exit code {code}: {message[-400:]}"
            )
            tally.note("Ctrl-C during a first call", f"faces detect, {seconds:.1f} s", failure)
    tally.check("Ctrl-C during a first call")


def test_interrupted_first_fits(tally, tmp_path):
    for seconds in np.random.default_rng(33).uniform(0.0, 5.0, 4):
        code, message = interrupted([sys.executable, "-c", FIT], tmp_path / "cache", seconds)
        good = code == 0 or (
            code in (-signal.SIGINT, 130) and message.splitlines()[-1] == "KeyboardInterrupt"
        )
        tally.note(
            "Ctrl-C during a first call",
            f"fit, {seconds:.1f} s",
            None if good else f"exit code {code}: {message[-400:]}",
        )
    tally.check("Ctrl-C during a first call")
