"""Progress bars, whose package is imported only where one is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class _Silent:
    """A bar that shows nothing."""

    def __init__(self, iterable: Iterable | None):
        self._iterable = iterable

    def __iter__(self):
        return iter(self._iterable or ())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def update(self, n: int = 1) -> None:
        pass

    def close(self) -> None:
        pass


def progress_bar(iterable: Iterable | None = None, *, title: str | None, total: int | None = None, shown: bool) -> Any:
    """A bar on stderr over an iterable, or to be moved by ``update``; one that shows nothing unless ``shown``."""
    if not shown:
        return _Silent(iterable)
    from tqdm import tqdm

    return tqdm(iterable, total=total, desc=title)
