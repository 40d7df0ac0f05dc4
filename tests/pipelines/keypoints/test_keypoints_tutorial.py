"""The example of docs/keypoints.md, as it stands there."""

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = {
    "python": [sys.executable],
    "annealed": [sys.executable, "-c", "from annealed.pipelines.cli import main; main()"],
}


@pytest.mark.slow
def test_a_custom_object_in_fifteen_minutes(tmp_path):
    section = (
        (ROOT / "docs" / "keypoints.md")
        .read_text()
        .partition("## Example in fifteen minutes")[2]
        .partition("\n## ")[0]
    )
    lines = re.findall(r"^ {4}(.+)$", section, re.MULTILINE)
    assert len(lines) == 6
    printed = {}
    for line in lines:
        first, *rest = shlex.split(line.replace("examples/", f"{ROOT}/examples/"))
        done = subprocess.run([*PYTHON[first], *rest], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        printed[" ".join(rest[:2])] = done.stdout
    (whole,) = re.findall(r"\ball\b.*", printed["keypoints evaluate"])
    assert float(re.findall(r"0\.\d+|1\.0+", whole)[0]) >= 0.9, printed["keypoints evaluate"]
    rows, coco = (
        list(csv.DictReader((tmp_path / "mugs.csv").open())),
        json.loads((tmp_path / "mugs.json").read_text()),
    )
    assert len(rows) == len(coco["annotations"]) > 40 and float(rows[0]["rim_handle_x"]) > 0
    assert coco["categories"][0]["name"] == "mug" and len(coco["categories"][0]["skeleton"]) == 5
    assert (tmp_path / "keypoints.png").stat().st_size > 5_000
    assert "Learning curve" in (tmp_path / "report" / "keypoints.html").read_text()
