"""Inputs of commands: files, folders, patterns, lists on stdin, and CSV files of annotations."""

import csv
import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path

from ...vision.images import image_size

# Maximum number of photographs, and maximum total number of pixels, for which a command compiles no
# code. Heuristic: with more, cached compiled code is faster; compiling takes as long as about fifty
# photographs.
MAX_FEW, MAX_FEW_PIXELS = 8, 16_000_000
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def list_images(folder: str | Path) -> list[Path]:
    """List the image files in a folder in order of name, or raise a ValueError if none exist."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    if not (paths := sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES)):
        raise ValueError(f"{folder}: the folder contains no images")
    return paths


def are_few(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether photographs are few and small enough to be processed without compilation.

    The limits are 8 photographs and 16 million pixels in total.
    """
    pixels = 0
    for path in paths[: MAX_FEW + 1]:
        with suppress(ValueError):  # an unreadable photograph takes no time
            pixels += prod(image_size(path))
    return len(paths) <= MAX_FEW and pixels <= MAX_FEW_PIXELS


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line numbers and rows of a CSV file with the given columns."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            if missing := [name for name in columns if name not in (reader.fieldnames or [])]:
                raise ValueError(
                    f"{path}: missing columns {', '.join(missing)}; expected {', '.join(columns)}"
                )
            yield from ((reader.line_num, row) for row in reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: the file is not a readable CSV file ({error})") from None


def list_inputs(names: Iterable[str], leave_out: Sequence[Path | None] = ()) -> list[str]:
    """List the files to which the arguments of a command refer, in the order of the arguments.

    Parameters
    ----------
    names : iterable of str
        Files, which need not exist; folders, which are searched recursively for images; patterns
        such as ``holiday/**/*.jpg``; or ``-`` for stdin, each line of which is one of these. Files
        in folders and files that match a pattern are listed in alphabetical order, so that runs are
        reproducible.
    leave_out : sequence of path or None
        Output folders, whose files are excluded if they are found in a folder or match a pattern.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If a folder contains no images, a pattern does not match any files, or stdin is empty.
    """
    written = [path.resolve() for path in leave_out if path is not None]
    given = (line for name in names for line in (_names_on_stdin() if name == "-" else [name]))
    return [file for name in given for file in _files_of(name, written)]


def _names_on_stdin() -> list[str]:
    if not (lines := [line for line in (line.rstrip("\r\n") for line in sys.stdin) if line]):
        raise ValueError("-: stdin is empty; expected a list of paths, one per line")
    return lines


def _files_of(name: str, written: Sequence[Path]) -> list[str]:
    path = Path(name)
    if path.is_dir():
        paths = [p for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES]
        hidden = [
            p for p in paths if any(part.startswith(".") for part in p.relative_to(path).parts)
        ]
        paths, expected = sorted(set(paths).difference(hidden)), "the folder contains no images"
    elif glob.has_magic(name) and not path.exists():
        paths, expected = (
            sorted(map(Path, glob.glob(name, recursive=True))),
            "no files match this pattern",
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
