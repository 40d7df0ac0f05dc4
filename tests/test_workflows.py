"""The files for a public forge: valid, and what they call is there."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_calls_is_there(path):
    jobs = yaml.safe_load(path.read_text())["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = {
        word
        for run in runs
        for word in re.findall(r"^make (\S+)", run)
        if not word.startswith('"$')
    }
    called |= {
        target
        for job in jobs.values()
        for target in job.get("strategy", {}).get("matrix", {}).get("target", ())
    }
    assert called <= TARGETS
    assert all(
        (ROOT / word).exists()
        for run in runs
        for word in run.split()
        if word.startswith((".ci/", "tests/"))
    )
    assert all(job["timeout-minutes"] for job in jobs.values())
    assert all(need in jobs for job in jobs.values() for need in [job.get("needs")] if need)
