"""Progress of long work on stderr: a bar on a terminal and in notebooks, one line a minute
elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Self

#: From one line to the next where no bar can be shown.
SECONDS = 60.0


class _Lines:
    """A bar for what is no terminal: a line when a minute has passed, the first after ``wait``
    seconds, after the piece of work in hand; none unless ``shown``."""

    def __init__(self, iterable: Iterable | None, title: str | None, total: int | None, shown: bool, wait: float):
        self._iterable = () if iterable is None else iterable
        self._title, self._total = title, len(iterable) if total is None and isinstance(iterable, Sized) else total
        self._done, self._shown, self._wait = 0, shown, wait
        self._start = self._last = time.monotonic()

    def __iter__(self) -> Iterator[Any]:
        for item in self._iterable:
            yield item
            self.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to clear away."""

    def update(self, n: int = 1) -> None:
        self._done += n
        now = time.monotonic()
        if self._shown and now - self._last >= self._wait and self._done != self._total:
            self._last, self._wait, spent = now, SECONDS, now - self._start
            of = "" if self._total is None else f" of {self._total}"
            left = "" if self._total is None else f", about {spent / self._done * (self._total - self._done):.0f} s left"
            print(f"{self._title or 'progress'}: {self._done}{of} after {spent:.0f} s{left}", file=sys.stderr, flush=True)


def progress_bar(
    iterable: Iterable | None = None,
    *,
    title: str | None,
    total: int | None = None,
    shown: bool,
    leave: bool = True,
    wait: float = SECONDS,
) -> Any:
    """A bar on stderr over an iterable, or to be moved by ``update``; one that shows nothing unless
    ``shown``.

    ``leave``: whether the bar stays when the work is done. ``wait``: seconds before the first line
    where there is no bar.
    """
    shown = shown and sys.stderr is not None
    if not shown or (not sys.stderr.isatty() and "ipykernel" not in sys.modules):
        return _Lines(iterable, title, total, shown, wait)
    from tqdm import tqdm

    return tqdm(iterable, total=total, desc=title, leave=leave)
