"""Results of single cells of a table, kept in a file, so that a long table can be made in pieces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Cells:
    """Remembers what cells of a table gave.

    Parameters
    ----------
    path : path or None
        File of JSON lines ``[key, value]``, one per finished cell, made when missing; None remembers nothing beyond this run. A
        last line that an interruption cut short is dropped.
    watch : function or None
        Called with the key of each cell before it is made.

    Raises
    ------
    ValueError
        If the file is something else, or cannot be written.

    Examples
    --------
    >>> cells = Cells()
    >>> cells({"N": 100}, lambda: {"error": 0.25}), cells({"N": 100}, lambda: {"error": 0.5})
    ({'error': 0.25}, {'error': 0.25})
    """

    def __init__(self, path: str | Path | None = None, watch: Callable[[dict[str, Any]], object] | None = None):
        self.path = None if path is None else Path(path)
        self.watch = watch
        self._known: dict[str, Any] = {}
        if self.path is None:
            return
        # Said now rather than after the first cell, which may take long.
        if self.path.is_dir() or not os.access(self.path if self.path.exists() else self.path.parent, os.W_OK):
            raise ValueError(f"{self.path}: expected a file that can be written")
        if not self.path.exists():
            return
        lines = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            if number == len(lines) and (not line or line.startswith(b"[{")):
                break
            try:
                key, value = json.loads(line)
            except (ValueError, TypeError):
                raise ValueError(f"{self.path}: line {number} is no finished cell of a table; expected [key, value]") from None
            self._known[json.dumps(key, sort_keys=True)] = value
        if lines[-1]:
            with self.path.open("r+b") as file:
                file.truncate(self.path.stat().st_size - len(lines[-1]))

    @classmethod
    def of(cls, checkpoint: str | Path | Cells | None) -> Cells:
        """The cells of a file, or those given."""
        return checkpoint if isinstance(checkpoint, Cells) else cls(checkpoint)

    def __contains__(self, key: dict[str, Any]) -> bool:
        """Whether a cell is finished."""
        return json.dumps(key, sort_keys=True) in self._known

    def __call__(self, key: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Value of a cell; ``make()`` is called, and its result (what JSON can hold) kept, if the key is new."""
        name = json.dumps(key, sort_keys=True)
        if name not in self._known:
            if self.watch is not None:
                self.watch(key)
            value = make()
            line = json.dumps([key, value], sort_keys=True)
            self._known[name] = json.loads(line)[1]
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(line + "\n")
        return self._known[name]
