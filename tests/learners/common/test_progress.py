"""Progress where stderr is no terminal."""

import pytest
from annealed.learners.common import progress
from annealed.pipelines import console


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass, set by the test."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def work(clock, items, **options):
    for _ in console.progress(items, description="files", **options):
        clock[0] += 25


def test_one_line_a_minute(clock, capsys):
    work(clock, [1] * 7, quiet=False)
    assert capsys.readouterr().err == "files: 3 of 7 after 75 s, about 100 s left\nfiles: 6 of 7 after 150 s, about 25 s left\n"


@pytest.mark.parametrize("n, quiet", [(2, False), (3, False), (7, True)])
def test_none_within_a_minute_and_none_with_quiet(clock, capsys, n, quiet):
    work(clock, [1] * n, quiet=quiet)
    assert capsys.readouterr().err == ""


def test_steps_without_a_known_end(clock, capsys):
    with progress.progress_bar(title="steps", shown=True) as bar:
        for _ in range(3):
            clock[0] += 61
            bar.update(10)
    assert capsys.readouterr().err.splitlines() == [f"steps: {10 * n} after {61 * n} s" for n in (1, 2, 3)]
