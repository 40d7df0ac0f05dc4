"""Errors of every command: exit code 2, one line of at most 300 characters on stderr, and with
--json an object with `error`."""

import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from annealed.models import resolve_model
from annealed.models.files import read_header
from annealed.models.messages import MAX_MESSAGE
from annealed.pipelines.cli.app import app
from typer.testing import CliRunner


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "arguments",
    [
        ("faces", "detect", "--model", "nothing"),
        ("faces", "detect", "--threshold", "nan"),
        ("faces", "evaluate", "--data", "nothing"),
        ("motion", "segment", "nothing.npz"),
        ("motion", "evaluate", "--data", "nothing"),
        ("pets", "classify", "nothing.jpg"),
        ("pets", "evaluate", "--data", "nothing"),
        ("select", "nothing.csv", "--target", "y", "-k", "1"),
        ("models", "show", "nothing"),
        ("reproduce", "nothing"),
    ],
)
def test_every_command_says_its_error_as_json_too(arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    (record,) = map(json.loads, result.stdout.splitlines())
    (line,) = [line for line in result.stderr.splitlines() if "compiling" not in line]
    assert line == "annealed: " + record["error"] and len(record["error"]) <= MAX_MESSAGE


def test_a_name_that_is_no_text_gives_json_all_the_same():
    result = run("faces", "detect", "nothing\udcff.png", "--json")
    assert result.exit_code == 2 and result.stdout_bytes.isascii()
    assert json.loads(result.stdout)["image"] == "nothing\udcff.png"


def test_warnings_of_libraries_are_left_out_and_ours_are_lines(tmp_path, monkeypatch):
    def noisy(path):
        warnings.warn_explicit("of a library", UserWarning, "/elsewhere/library.py", 1)
        warnings.warn("ours", stacklevel=1)
        return read_header(path)

    import annealed.models.files as files

    monkeypatch.setattr("annealed.models.files.read_header", eval_in(files, noisy))
    result = run("models", "show", "motion", "--json")
    assert (
        result.exit_code == 0 and result.stderr == "annealed: ours\n" and json.loads(result.stdout)
    )


def eval_in(module, function):
    """The function as if it were written in that module."""
    code = function.__code__.replace(co_filename=module.__file__)
    return type(function)(code, {**globals(), "__name__": module.__name__})


def test_convert(tmp_path):
    shutil.copy(resolve_model("motion"), tmp_path / "m.safetensors")
    before = (tmp_path / "m.safetensors").read_bytes()
    assert run("models", "convert", tmp_path / "m.safetensors").exit_code == 0
    assert (tmp_path / "m.safetensors").read_bytes() == before
    converted = json.loads(
        run("models", "convert", "motion", "--out", tmp_path / "n.safetensors", "--json").stdout
    )
    assert converted == {
        "model": "motion",
        "kind": read_header(resolve_model("motion"))["kind"],
        "file": str(tmp_path / "n.safetensors"),
    }
    assert (tmp_path / "n.safetensors").read_bytes() == before
    (tmp_path / "letter.txt").write_text("mine")
    result = run("models", "convert", "motion", "--out", tmp_path / "letter.txt")
    assert result.exit_code == 2 and (tmp_path / "letter.txt").read_text() == "mine"


def test_select_has_no_raw_warning(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{b}" for a, b in rng.standard_normal((30, 2)).round(3))
    (tmp_path / "t.csv").write_text("a,y\n" + rows)
    result = run(
        "select", tmp_path / "t.csv", "--target", "y", "-k", "1", "--task", "classification"
    )
    assert "site-packages" not in result.stderr and "Warning" not in result.stderr


REAL = [
    "fsa-challenge",
    "kernel-real",
    "motion-table",
    "mslr-leukemia",
    "mslr-real",
    "online-tables",
    "public-tables",
]
REAL += ["sdist-real", "sensors", "faces-curves", "faces-modes"]
REAL_FIGURES = [
    "mslr-convergence",
    "mslr-sensitivity",
    "online-error",
    "pets-keypoints",
    "sdist-sensitivity",
]


@pytest.mark.parametrize("name", REAL + REAL_FIGURES)
def test_tables_of_real_data_have_no_folder_of_their_own(name, tmp_path, monkeypatch):
    """Nothing falls back to a folder beside the checkout: one line names what to give."""
    monkeypatch.delenv("ANNEALED_DATA", raising=False)
    result = run("reproduce", name, *(["--figures", tmp_path] if name in REAL_FIGURES else []))
    assert result.exit_code == 2 and result.stdout == "" and result.stderr.count("\n") == 1
    assert "use --data or the environment variable ANNEALED_DATA" in result.stderr and not list(
        tmp_path.iterdir()
    )


def test_output_that_cannot_hold_a_name(tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    code = (
        "from annealed.pipelines.cli import app, main; app.app = lambda: "
        "print('Gr\\xf6\\xdfe'); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Gr\\xf6\\xdfe\n", "")


@pytest.mark.parametrize(
    "command, code, line",
    [
        ("sys.exit()", 0, ""),
        (
            "raise KeyboardInterrupt",
            130,
            "annealed: interrupted\n",
        ),  # exec: as in the classes that libraries make of text
        ("sys.exit(130)", 130, "annealed: interrupted\n"),
    ],
)
def test_an_interrupt_is_one_line_and_is_ignored_after_the_end(command, code, line):
    script = f"""
import atexit, signal, sys
from annealed.pipelines.cli import app, main
atexit.register(signal.raise_signal, signal.SIGINT)
app.app = lambda: exec({command!r})
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", line)


@pytest.mark.parametrize(
    "files, message",
    [
        (["camera", "0"], "camera 0: cameras are not supported; expected files"),
        (["/dev/zero"], "not a regular file; expected tracks or a video"),
        (["."], "this is a folder; expected tracks or a video"),
    ],
)
def test_what_motion_segment_cannot_take(files, message):
    result = run("motion", "segment", *files)
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
