"""One tally for all trials, printed at the end and, on request, written into a page."""

import os
import re
import time
from pathlib import Path

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
    lines = ["| class | trials | failures |", "|---|---|---|", *(f"| {kind} | {n} | {bad} |" for kind, n, bad in TALLY.rows())]
    seconds = time.monotonic() - TALLY.seconds["start"]
    total = sum(n for _, n, _ in TALLY.rows())
    lines.append(f"| all | {total} | {sum(bad for _, _, bad in TALLY.rows())} |")
    terminalreporter.section("trials")
    for line in (*lines, f"{seconds:.0f} s"):
        terminalreporter.line(line)
    if page := os.environ.get("ANNEALED_CAMPAIGN_PAGE"):
        path = Path(page)
        table = "<!-- trials -->\n" + "\n".join(lines) + "\n<!-- end of trials -->"
        path.write_text(re.sub(r"<!-- trials -->.*<!-- end of trials -->", lambda _: table, path.read_text(), flags=re.DOTALL))
