"""Checkpoints of long computations, so that an interrupted run resumes with the same result.

Results that can be stored as JSON are cells of one file (:class:`Checkpoint`). Models and arrays
are stored in separate safetensors files (:func:`write_part`, :func:`read_part` and, for model
files, :func:`is_finished`). Each file records the settings and data from which it was computed and
is reused only for the same settings and data.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...models.files import read_header, read_model, write_model

FORMAT = "annealed checkpoint"
VERSION = 1
# first characters of every file; the keys of the header are sorted
_BEGINNING = json.dumps({"format": FORMAT})[:-1].encode()


class Checkpoint:
    """Finished parts (cells) of a long computation, stored in a file.

    The file contains JSON lines: a header with its format, settings and data, followed by one line
    ``[key, value]`` for each finished cell. An incomplete last line is dropped. Several processes
    may write to the same file, since each line is appended atomically under a lock.

    Parameters
    ----------
    path : path or None, default None
        Checkpoint file, which is created if it does not exist. If None, the cells are stored in
        memory, for this run only.
    made_from : dict or None, default None
        Settings and data on which all cells depend, as JSON values. Settings of a single cell are
        part of its key.
    resume : bool, default True
        Whether to resume from the finished cells in the file. If False, an error is raised if the
        file contains finished cells, so that they are not lost.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, cannot be written, belongs to different settings or data,
        or contains finished cells and ``resume`` is False. The file is not changed in these cases.

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
        resume: bool = True,
    ):
        self.path = None if path is None else Path(path)
        self._known: dict[str, Any] = {}
        if self.path is None:
            return
        # reported now rather than after the first cell, which may take a long time
        if self.path.is_dir() or not os.access(
            self.path if self.path.exists() else self.path.parent, os.W_OK
        ):
            raise ValueError(
                f"{self.path}: the file cannot be written (it is a folder or not writable)"
            )
        self._header = header_line(made_from or {})
        with open_locked(self.path) as file:
            lines = list(whole_lines(self.path, file))
            if not resume and len(lines) > 1:
                raise ValueError(
                    f"{self.path}: the file contains finished results; use --resume or another "
                    "folder"
                )
            if lines and resume:
                self._read(lines, made_from or {})
            else:
                file.truncate(0)
                append(self.path, file, self._header)

    def _read(self, lines: list[bytes], made_from: dict[str, Any]) -> None:
        check_header(self.path, lines[0], made_from)
        for number, line in enumerate(lines[1:], 2):
            try:
                key, value = json.loads(line)
            except (ValueError, TypeError):
                raise ValueError(
                    f"{self.path}: line {number} is not a valid result; expected [key, value]"
                ) from None
            self._known[_name(key)] = value

    def __contains__(self, key: dict[str, Any]) -> bool:
        """Return whether a cell is finished."""
        return _name(key) in self._known

    def __call__(self, key: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Return the value of a cell; if it is missing, call ``make()`` and store the result.

        The value always passes through JSON, which converts tuples and arrays to lists.
        """
        name = _name(key)
        if name not in self._known:
            line = _line([key, make()])
            self._known[name] = json.loads(line)[1]
            if self.path is not None:
                with open_locked(self.path) as file:
                    # another process may have died in the middle of a line, or the file may have
                    # been removed
                    known = list(whole_lines(self.path, file))
                    append(self.path, file, line if known else self._header + line)
        return self._known[name]


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _line(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, default=np.ndarray.tolist).encode() + b"\n"


def header_line(made_from: dict[str, Any]) -> bytes:
    """Return the header line for a file of finished parts."""
    return _line({"format": FORMAT, "version": VERSION, "made_from": made_from})


def whole_lines(path: Path, file: Any) -> Iterator[bytes]:
    """Yield the complete lines in a file of finished parts, and remove an incomplete last line.

    Raises
    ------
    ValueError
        If the file does not begin with a header.
    """
    file.seek(0)
    for number, line in enumerate(file):
        if number == 0 and not line.startswith(_BEGINNING[: len(line)]):
            raise ValueError(
                f"{path}: the file exists and is not an annealed checkpoint; use another name"
            )
        if not line.endswith(b"\n"):
            file.truncate(file.tell() - len(line))
            file.seek(0, os.SEEK_END)
            return
        yield line


def append(path: Path, file: Any, line: bytes) -> None:
    """Append a line to an open file of finished parts.

    A ValueError that names the file is raised if it cannot be written.
    """
    try:
        file.seek(0, os.SEEK_END)
        while line:  # unbuffered, so that closing the file writes nothing
            line = line[os.write(file.fileno(), line) :]
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be written ({error.strerror})") from None


def check_header(path: Path | None, line: bytes, made_from: dict[str, Any]) -> None:
    """Check that the first line is a header with the format, settings and data of this run."""
    try:
        header = json.loads(line)
    except ValueError:
        raise ValueError(f"{path}: the file is damaged (the first line is not a header)") from None
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path}: the checkpoint has version {header.get('version')}; expected {VERSION}"
        )
    check_made_from(path, header.get("made_from"), made_from)


def open_locked(path: Path, wait: bool = True) -> Any:
    """Open a file, which may not exist yet, for reading and writing under an exclusive lock.

    Raises
    ------
    ValueError
        If the file cannot be written, or if ``wait`` is False and another process holds the lock.
    """
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            import fcntl
        except ImportError:  # Windows has no such locks
            return file
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"{path}: the file is in use by another run; choose another output, or wait until "
            "that run ends"
        ) from None
    except OSError as error:
        raise ValueError(
            f"{path}: the file cannot be written ({error.strerror or error})"
        ) from None
    return file


def check_made_from(path: Path | None, recorded: Any, expected: dict[str, Any]) -> None:
    """Check that the settings and data recorded in a file equal those of this run.

    A tuple and a list with the same items are considered equal.
    """
    if recorded != json.loads(json.dumps(expected)):
        raise ValueError(
            f"{path}: the file was created with different settings or data; use the same "
            "settings and data, or choose another output"
        )


def is_finished(path: Path, made_from: dict[str, Any]) -> bool:
    """Return whether the file with a part of a training run exists.

    It is a file whose header contains ``made_from``, or a model file with
    ``info["made_from"]``.

    A ValueError is raised if the file is damaged or was created with different settings or data.
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
    """Write arrays to a safetensors file atomically, with the entries of ``more`` in its header."""
    write_model(path, kind, arrays, {"made_from": made_from, **more})


def read_part(
    path: Path, kind: str, made_from: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return the arrays and the header of a part, or None if the file does not exist.

    The function raises the same errors as :func:`is_finished`.
    """
    return read_model(path, kind) if is_finished(path, made_from) else None
