"""Progress on stderr, with and without a terminal."""

import io
import sys

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
    assert (
        capsys.readouterr().err == "files: 3 of 7 after 75 s, about 100 s left\n"
        "files: 6 of 7 after 150 s, about 25 s left\n"
    )


@pytest.mark.parametrize("n, quiet", [(2, False), (3, False), (7, True)])
def test_none_within_a_minute_and_none_with_quiet(clock, capsys, n, quiet):
    work(clock, [1] * n, quiet=quiet)
    assert capsys.readouterr().err == ""


def test_steps_without_a_known_end(clock, capsys):
    with progress.progress_bar(title="steps", shown=True) as bar:
        for _ in range(3):
            clock[0] += 61
            bar.update(10)
    assert capsys.readouterr().err.splitlines() == [
        f"steps: {10 * n} after {61 * n} s" for n in (1, 2, 3)
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress_bar(title="fits [a]", total=4, shown=True) as bar:
        for n in range(4):
            bar.describe(f"alpha={n}")
            print("a result")
            bar.update()
    drawn = sys.stderr.getvalue()
    assert "fits [a]" in drawn and "4/4" in drawn and "alpha=3" in drawn and "after" not in drawn
    assert capsys.readouterr().out == "a result\n" * 4


def test_a_bar_ends_with_its_iterable_and_with_an_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.progress_bar([1, 2], title="files", shown=True, leave=False)) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        for item in progress.progress_bar([0], title="files", shown=True):
            1 / item
    shown, hidden = "\x1b[?25h", "\x1b[?25l"  # the cursor
    assert sys.stderr.getvalue().count(shown) == sys.stderr.getvalue().count(hidden) == 2


def test_no_bar_on_a_terminal_that_cannot_move_its_cursor(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.progress_bar([1, 2], title="files", shown=True)) == [1, 2]
    assert sys.stderr.getvalue() == ""
