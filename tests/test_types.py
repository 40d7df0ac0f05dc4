"""Constructors are typed: a type checker reports wrong names and types where they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import annealed
import pytest

MISTYPED = Path(__file__).parent / "support" / "mistyped.py"


def test_four_mistakes_are_four_errors(tmp_path):
    pytest.importorskip("mypy", reason="needs annealed[test]: mypy")
    source = MISTYPED.read_text()
    (tmp_path / MISTYPED.name).write_text(source)  # outside of the package
    folder = Path(annealed.__file__).parents[1]
    path = (
        "" if folder.name == "site-packages" else str(folder)
    )  # mypy finds what is installed by itself
    options = [
        "--config-file=",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        "--cache-dir=cache",
        "--no-error-summary",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, MISTYPED.name],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    names = ["lss", "nosuch", "n_features_to_select", "fit_intercept"]
    lines = [
        number
        for number, line in enumerate(source.splitlines(), 1)
        if any(name in line for name in names)
    ]
    found = re.findall(
        r"^mistyped\.py:(\d+): error: .*\"(\w+)\" (?:for|to) ", done.stdout, re.MULTILINE
    )
    assert found == list(zip(map(str, lines), names, strict=True)), done.stdout + done.stderr
    assert done.stdout.count("error:") == 4
