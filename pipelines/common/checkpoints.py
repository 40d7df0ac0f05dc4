"""Checkpoints: finished pieces of long work in files, so that an interrupted run goes on and gives
the same result.

One mechanism for all pipelines. Pieces that JSON can hold are cells of one file
(:class:`Checkpoint`); models and arrays are safetensors files of their own (:func:`write_part`,
:func:`read_part`, and :func:`is_finished` for a model in its own format). Every file says what it
was made from, and is used again for the same settings and data only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...models.files import read_header, read_model, write_model

FORMAT = "annealed checkpoint"
VERSION = 1
# of every file; the keys of the header are sorted
_BEGINNING = json.dumps({"format": FORMAT})[:-1].encode()


class Checkpoint:
    """Finished cells of long work.

    The file holds JSON lines: a header that says what the file is and from which settings and data,
    then one line ``[key, value]`` per finished cell. A last line that an interruption cut short is
    dropped. Several processes may write to the same file: each line is appended as a whole under a
    lock.

    Parameters
    ----------
    path : path or None, default None
        The file, made when missing. None remembers nothing beyond this run.
    made_from : dict or None, default None
        Settings and data that all cells depend on; what JSON can hold. What differs from cell to
        cell belongs to the key.
    watch : function or None, default None
        Called with the key of each cell before it is made.
    resume : bool, default True
        Go on from the finished cells of the file. False: a file that already holds finished cells
        is refused, so that they are not lost.

    Raises
    ------
    ValueError
        If the file is something else, cannot be written, belongs to other settings or data, or
        holds finished cells that must not be used. Nothing is changed then: a foreign file is never
        written to, and no file is ever deleted.

    Examples
    --------
    >>> cells = Checkpoint()
    >>> cells({"N": 100}, lambda: {"error": 0.25}), cells({"N": 100}, lambda: {"error": 0.5})
    ({'error': 0.25}, {'error': 0.25})
    """

    def __init__(
        self,
        path: str | Path | None = None,
        made_from: dict[str, Any] | None = None,
        watch: Callable[[dict[str, Any]], object] | None = None,
        resume: bool = True,
    ):
        self.path = None if path is None else Path(path)
        self.watch = watch
        self._known: dict[str, Any] = {}
        if self.path is None:
            return
        # Said now rather than after the first cell, which may take long.
        if self.path.is_dir() or not os.access(
            self.path if self.path.exists() else self.path.parent, os.W_OK
        ):
            raise ValueError(f"{self.path}: expected a file that can be written")
        self._header = _line({"format": FORMAT, "version": VERSION, "made_from": made_from or {}})
        with open_locked(self.path) as file:
            lines = self._whole_lines(file)
            if not resume and len(lines) > 1:
                raise ValueError(
                    f"{self.path}: holds finished results; go on from them with --resume, or take another folder"
                )
            if lines and resume:
                self._read(lines, made_from or {})
            else:
                file.truncate(0)
                file.seek(0)
                file.write(self._header)

    def _whole_lines(self, file: Any) -> list[bytes]:
        """Lines of the file, all of it; a last line that was cut short is removed."""
        file.seek(0)
        content = file.read()
        if content and not content.startswith(_BEGINNING):
            raise ValueError(
                f"{self.path}: expected a checkpoint of this program, or no file of this name"
            )
        *lines, rest = content.split(b"\n")
        if rest:
            file.truncate(len(content) - len(rest))
        file.seek(0, os.SEEK_END)
        return lines

    def _read(self, lines: list[bytes], made_from: dict[str, Any]) -> None:
        try:
            header = json.loads(lines[0])
        except ValueError:
            raise ValueError(f"{self.path}: damaged (its first line is no header)") from None
        if header.get("version") != VERSION:
            raise ValueError(
                f"{self.path}: checkpoint of version {header.get('version')}, expected {VERSION}"
            )
        check_made_from(self.path, header.get("made_from"), made_from)
        for number, line in enumerate(lines[1:], 2):
            try:
                key, value = json.loads(line)
            except (ValueError, TypeError):
                raise ValueError(
                    f"{self.path}: line {number} is no finished cell; expected [key, value]"
                ) from None
            self._known[_name(key)] = value

    @classmethod
    def of(
        cls, checkpoint: str | Path | Checkpoint | None, made_from: dict[str, Any] | None = None
    ) -> Checkpoint:
        """Return the checkpoint given, or that of a file."""
        return checkpoint if isinstance(checkpoint, Checkpoint) else cls(checkpoint, made_from)

    def __contains__(self, key: dict[str, Any]) -> bool:
        """Whether a cell is finished."""
        return _name(key) in self._known

    def __call__(self, key: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Value of a cell; ``make()`` is called, and its result kept, if the key is new.

        The result is what JSON gives back, in every run alike: tuples and arrays become lists.
        """
        name = _name(key)
        if name not in self._known:
            if self.watch is not None:
                self.watch(key)
            line = _line([key, make()])
            self._known[name] = json.loads(line)[1]
            if self.path is not None:
                with open_locked(self.path) as file:
                    # Another process may have died in the middle of a line, or somebody may have
                    # removed the file.
                    file.write(line if self._whole_lines(file) else self._header + line)
        return self._known[name]


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _line(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, default=np.ndarray.tolist).encode() + b"\n"


def open_locked(path: Path, wait: bool = True) -> Any:
    """Return a file, open for reading and writing and made when missing, that no other process has
    until it is closed.

    Raises
    ------
    ValueError
        If it cannot be written; without ``wait`` also if another process has it.
    """
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            import fcntl
        except ImportError:  # Windows: several writers are not guarded from each other
            return file
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"{path}: another run writes it; expected to wait for its end, or another output"
        ) from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror or error})") from None
    return file


def check_made_from(path: Path | None, found: Any, wanted: dict[str, Any]) -> None:
    """Raise a ValueError if a file was made from other settings or data than those of this run;
    tuples count as lists."""
    if found != json.loads(json.dumps(wanted)):
        raise ValueError(
            f"{path}: made from other settings or data; start again, or in another place"
        )


def is_finished(path: Path, made_from: dict[str, Any]) -> bool:
    """Whether a part of a training (a model file with ``info["made_from"]``, or a part with
    ``made_from``) is there.

    A file that is damaged, or made from other settings or data, is a ValueError.
    """
    if not path.is_file():
        return False
    header = read_header(path)
    check_made_from(
        path, header.get("made_from", header.get("info", {}).get("made_from")), made_from
    )
    return True


def write_part(
    path: Path, kind: str, arrays: dict[str, np.ndarray], made_from: dict[str, Any], **more: Any
) -> None:
    """Keep arrays of some kind in a safetensors file, written as a whole or not at all; ``more``
    goes into the header."""
    write_model(path, kind, arrays, {"made_from": made_from, **more})


def read_part(
    path: Path, kind: str, made_from: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Arrays and header that :func:`write_part` kept, or None where there is no file; errors as of
    :func:`is_finished`."""
    return read_model(path, kind) if is_finished(path, made_from) else None
