"""What all tests share: where the real data lie, and which tests the gate may skip."""

import os
import re

import pytest
from real_data import data_dir, mark_real_data, no_line_on_compiling  # noqa: F401

GATE = bool(os.environ.get("ANNEALED_GATE"))
# What the extra `test` does not bring. Any other skip hides a test, and fails the gate.
# SCIPY_ARRAY_API: scikit-learn skips a check of its own without it.
MAY_SKIP = re.compile(
    r"real data not found|needs annealed\[(torch|bench|integrations)\]|needs a (CUDA device|browser|server)|SCIPY_ARRAY_API"
)
# The inner loop, about a minute: pytest -m quick
QUICK = (
    "learners/common",
    "learners/model_selection",
    "learners/objective",
    "learners/test_constructors.py",
    "models/motion",
    "models/test_files.py",
    "test_architecture.py",
    "test_language.py",
    "vision/test_images.py",
    "vision/test_pyramid.py",
    "vision/tracks",
)
skipped: dict[str, str] = {}


def pytest_collection_modifyitems(items):
    mark_real_data(items)
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(QUICK):
            item.add_marker(pytest.mark.quick)


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        note_skip(report)


def pytest_collectreport(report):
    if report.skipped:
        note_skip(report)


def note_skip(report):
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not MAY_SKIP.search(reason):
        skipped[report.nodeid] = reason


def pytest_sessionfinish(session, exitstatus):
    if GATE and skipped and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if GATE and skipped:
        terminalreporter.section("skipped, and the gate does not allow it", red=True)
        for test, reason in skipped.items():
            terminalreporter.line(f"{test}: {reason}")
