"""Progress reports on stderr: a bar on a terminal, otherwise one line per minute."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from functools import partial
from typing import Any, Self

#: Interval between lines when no bar can be shown.
SECONDS = 60.0


class _Lines:
    """Progress lines for output that is not a terminal.

    The first line is printed after ``wait`` seconds, followed by one line per minute. Unless
    ``shown`` is set, no lines are printed.
    """

    def __init__(
        self,
        iterable: Iterable | None,
        title: str | None,
        total: int | None,
        shown: bool,
        wait: float,
    ):
        self._iterable = () if iterable is None else iterable
        self._title = title
        self._total = len(iterable) if total is None and isinstance(iterable, Sized) else total
        self._done, self._shown, self._wait = 0, shown, wait
        self._start = self._last = time.monotonic()

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self._iterable:
                yield item
                self.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing, since lines need no cleanup."""

    def update(self, n: int = 1) -> None:
        self._done += n
        now = time.monotonic()
        if self._shown and now - self._last >= self._wait and self._done != self._total:
            self._last, self._wait, spent = now, SECONDS, now - self._start
            of = "" if self._total is None else f" of {self._total}"
            left = (
                ""
                if self._total is None
                else f", about {spent / self._done * (self._total - self._done):.0f} s left"
            )
            print(
                f"{self._title or 'progress'}: {self._done}{of} after {spent:.0f} s{left}",
                file=sys.stderr,
                flush=True,
            )

    def describe(self, text: str) -> None:
        """Ignore the text that a bar would show."""


class _Bar(_Lines):
    """Rich progress bar, removed by :meth:`close` unless ``leave`` is set."""

    def __init__(
        self, iterable: Iterable | None, title: str | None, total: int | None, leave: bool
    ):
        from rich import progress
        from rich.console import Console

        super().__init__(iterable, title, total, shown=False, wait=SECONDS)
        plain = partial(progress.TextColumn, markup=False)
        columns = (
            plain("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            plain("{task.fields[note]}"),
        )
        self._rich = progress.Progress(
            *columns,
            console=Console(stderr=True),
            transient=not leave,
            redirect_stdout=False,  # do not redirect other output
            redirect_stderr=False,
        )
        self._task = self._rich.add_task(title or "", total=self._total, note="")

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def close(self) -> None:
        self._rich.stop()

    def update(self, n: int = 1) -> None:
        self._rich.advance(self._task, n)

    def describe(self, text: str) -> None:
        self._rich.update(self._task, note=text)


def progress_bar(
    iterable: Iterable | None = None,
    *,
    title: str | None,
    total: int | None = None,
    shown: bool,
    leave: bool = True,
    wait: float = SECONDS,
) -> Any:
    """Show a progress bar on stderr if ``shown`` is set.

    The bar follows an iterable, or is advanced by ``update`` in a ``with`` block.

    If ``leave`` is set, the bar remains after the work is done. ``wait`` is the delay, in seconds,
    before the first line is printed if no bar can be shown.
    """
    shown = shown and sys.stderr is not None
    if shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return _Bar(iterable, title, total, leave)
    return _Lines(iterable, title, total, shown, wait)
