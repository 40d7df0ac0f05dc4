"""One tally for all trials, printed at the end."""

import time

import pytest
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
