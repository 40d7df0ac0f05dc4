"""Inputs of a command: files, folders, patterns, or a list on stdin."""

import glob
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .image_folders import IMAGE_SUFFIXES


def list_inputs(names: Iterable[str], leave_out: Sequence[Path | None] = ()) -> list[str]:
    """List the files that the arguments of a command refer to, in their order.

    Parameters
    ----------
    names : iterable of str
        Files, which need not exist; folders, searched recursively for images; patterns such as
        ``holiday/**/*.jpg``; ``-`` for stdin, each line of which is one of these. The files of
        folders and patterns are listed in alphabetical order, so that runs are reproducible.
    leave_out : sequence of path or None
        Output folders, which are excluded from the search in folders and patterns.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If a folder holds no image, a pattern matches no file, or stdin is empty.
    """
    written = [path.resolve() for path in leave_out if path is not None]
    given = (line for name in names for line in (_names_on_stdin() if name == "-" else [name]))
    return [file for name in given for file in _files_of(name, written)]


def _names_on_stdin() -> list[str]:
    lines = [line for line in (line.rstrip("\r\n") for line in sys.stdin) if line]
    if not lines:
        raise ValueError("-: expected a list of paths on stdin, one per line")
    return lines


def _files_of(name: str, written: Sequence[Path]) -> list[str]:
    path = Path(name)
    if path.is_dir():
        paths = [p for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES]
        hidden = [
            p for p in paths if any(part.startswith(".") for part in p.relative_to(path).parts)
        ]
        paths, expected = sorted(set(paths).difference(hidden)), "no image in this folder"
    elif glob.has_magic(name) and not path.exists():
        paths, expected = (
            sorted(map(Path, glob.glob(name, recursive=True))),
            "no file matches this pattern",
        )
    else:
        return [name]
    kept = [
        str(p)
        for p in paths
        if p.is_file() and not any(folder in p.resolve().parents for folder in written)
    ]
    if not kept:
        raise ValueError(f"{name}: {expected}")
    return kept
