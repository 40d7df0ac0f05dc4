"""What a command with several inputs reads: files, folders, patterns, or a list on stdin."""

import glob
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .image_folders import IMAGE_SUFFIXES


def list_inputs(names: Iterable[str], leave_out: Sequence[Path | None] = ()) -> list[str]:
    """Name each file that some arguments stand for, in their order.

    Parameters
    ----------
    names : iterable of str
        Files, which need not be there; folders, for their images and those of the folders in them;
        patterns such as ``holiday/**/*.jpg``; ``-`` for the lines of stdin, each one of these.
        Folders and patterns are listed in alphabetical order, so that a later run sees the same.
    leave_out : sequence of path or None
        Folders that the command writes to: what lies there is not read from a folder or pattern.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If a folder holds no image, a pattern fits no file, or stdin names nothing.
    """
    written = [path.resolve() for path in leave_out if path is not None]
    given = (line for name in names for line in (_names_on_stdin() if name == "-" else [name]))
    return [file for name in given for file in _files_of(name, written)]


def _names_on_stdin() -> list[str]:
    lines = [line for line in (line.rstrip("\r\n") for line in sys.stdin) if line]
    if not lines:
        raise ValueError("-: expected a list of paths on stdin, one a line")
    return lines


def _files_of(name: str, written: Sequence[Path]) -> list[str]:
    path = Path(name)
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES]
        hidden = [
            p for p in found if any(part.startswith(".") for part in p.relative_to(path).parts)
        ]
        found, expected = sorted(set(found).difference(hidden)), "no image in this folder"
    elif glob.has_magic(name) and not path.exists():
        found, expected = (
            sorted(map(Path, glob.glob(name, recursive=True))),
            "no file fits this pattern",
        )
    else:
        return [name]
    kept = [
        str(p)
        for p in found
        if p.is_file() and not any(folder in p.resolve().parents for folder in written)
    ]
    if not kept:
        raise ValueError(f"{name}: {expected}")
    return kept
