"""One tally for all trials, printed at the end and, on request, written into a file of results."""

import os
import time
from pathlib import Path

import pytest
from annealed_experiments.provenance import run_of, write
from trials import Tally

TALLY = Tally()


@pytest.fixture(scope="session")
def tally():
    return TALLY


def pytest_configure():
    TALLY.seconds["start"] = time.monotonic()


def pytest_terminal_summary(terminalreporter):
    if not TALLY.trials:
        return
    rows = [[kind, str(n), str(bad)] for kind, n, bad in TALLY.rows()]
    rows.append(
        ["total", *(str(sum(numbers)) for numbers in list(zip(*TALLY.rows(), strict=True))[1:])]
    )
    seconds = time.monotonic() - TALLY.seconds["start"]
    terminalreporter.section("trials")
    for line in (*map(" | ".join, rows), f"{seconds:.0f} s"):
        terminalreporter.line(line)
    if file := os.environ.get("ANNEALED_CAMPAIGN_RESULTS"):
        made = [run_of("python -m pytest -m slow tests/campaign", {})]
        content = {
            "name": "campaign",
            "made": made,
            "columns": ["category", "trials", "failures"],
            "rows": rows,
        }
        write(Path(file), content)
