"""The example of docs/keypoints.md, as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = {"python": [sys.executable], "annealed": [sys.executable, "-c", "from annealed.pipelines.cli import main; main()"]}


@pytest.mark.slow
def test_a_custom_object_in_fifteen_minutes(tmp_path):
    section = (ROOT / "docs" / "keypoints.md").read_text().partition("## A custom object")[2].partition("\n## ")[0]
    lines = re.findall(r"^ {4}(.+)$", section, re.MULTILINE)
    assert len(lines) == 5
    printed = {}
    for line in lines:
        first, *rest = shlex.split(line.replace("examples/", f"{ROOT}/examples/"))
        done = subprocess.run([*PYTHON[first], *rest], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        printed[" ".join(rest[:2])] = done.stdout
    (whole,) = re.findall(r"\ball\b.*", printed["keypoints evaluate"])
    assert float(re.findall(r"0\.\d+|1\.0+", whole)[0]) >= 0.9, printed["keypoints evaluate"]
    assert (tmp_path / "found.png").stat().st_size > 5_000
