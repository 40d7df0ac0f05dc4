"""Progress of long work on stderr: a bar on a terminal and in notebooks, one line a minute
elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sized
from typing import Any

#: From one line to the next where no bar can be shown.
SECONDS = 60.0


class _Lines:
    """A bar for what is no terminal: a line when a minute has passed, after the piece of work in
    hand; none unless ``shown``."""

    def __init__(self, iterable: Iterable | None, title: str | None, total: int | None, shown: bool):
        self._iterable = () if iterable is None else iterable
        self._title, self._total = title, len(iterable) if total is None and isinstance(iterable, Sized) else total
        self._done, self._shown = 0, shown
        self._start = self._last = time.monotonic()

    def __iter__(self):
        for item in self._iterable:
            yield item
            self.update()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self) -> None:
        """Nothing to clear away."""

    def update(self, n: int = 1) -> None:
        self._done += n
        now = time.monotonic()
        if self._shown and now - self._last >= SECONDS and self._done != self._total:
            self._last = now
            of = "" if self._total is None else f" of {self._total}"
            print(f"{self._title or 'progress'}: {self._done}{of} after {now - self._start:.0f} s", file=sys.stderr, flush=True)


def progress_bar(
    iterable: Iterable | None = None, *, title: str | None, total: int | None = None, shown: bool, leave: bool = True
) -> Any:
    """A bar on stderr over an iterable, or to be moved by ``update``; one that shows nothing unless
    ``shown``.

    ``leave``: whether the bar stays when the work is done.
    """
    shown = shown and sys.stderr is not None
    if not shown or (not sys.stderr.isatty() and "ipykernel" not in sys.modules):
        return _Lines(iterable, title, total, shown)
    from tqdm import tqdm

    return tqdm(iterable, total=total, desc=title, leave=leave)
