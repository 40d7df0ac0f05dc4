"""Finished parts of a long table, kept in a file as they come: an interrupted run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .console import plain


class Cells:
    """Results of parts of a table by their settings, in a file of JSON lines.

    Parameters
    ----------
    path : path or None
        The file; None keeps nothing.
    resume : bool
        Go on from what the file holds; otherwise it is started anew.

    Raises
    ------
    ValueError
        If there is no file to go on from, or it holds something else.

    Examples
    --------
    >>> cells = Cells()
    >>> cells.measure({"N": 300, "run": 0}, lambda: [0.9, 1.0])
    [0.9, 1.0]
    """

    def __init__(self, path: str | Path | None = None, resume: bool = False):
        self.path = None if path is None else Path(path)
        self._values: dict[str, Any] = {}
        if self.path is None:
            return
        if resume:
            self._read(self.path)
        else:
            try:
                self.path.write_text("")
            except OSError as error:
                raise ValueError(f"{self.path}: cannot be written ({error.strerror})") from None

    def _read(self, path: Path) -> None:
        if not path.is_file():
            raise ValueError(f"{path}: no such file; there is nothing to resume")
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # an interrupt may have cut the last line
        try:
            self._values = {json.dumps(key, sort_keys=True): value for key, value in map(json.loads, whole.splitlines())}
        except ValueError:
            raise ValueError(f"{path}: not a file of finished cells; run without --resume to start anew") from None
        if len(whole) < len(content):
            path.write_bytes(whole)

    def measure(self, key: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Return the kept value of ``key``, or make it and keep it; it must be plain numbers, strings, lists and dicts."""
        name = json.dumps(plain(key), sort_keys=True)
        if name not in self._values:
            value = plain(make())
            self._values[name] = value
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([plain(key), value]) + "\n")
        return self._values[name]
