"""Search and reading of downloaded files."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def find_file(source: Path, *names: str) -> Path:
    """Return the first of the named files in ``source`` or its subfolders, possibly compressed
    (.gz, .bz2) or in a different case.

    A ValueError is raised if the file is missing, or if two different files have the same name.
    """
    if source.is_file():
        source = source.parent
    wanted = [name.lower() + ending for name in names for ending in ("", *OPENERS)]
    by_name: dict[str, list[Path]] = {}
    for path in sorted(source.rglob("*")):
        if path.name.lower() in wanted and path.is_file():
            by_name.setdefault(path.name.lower(), []).append(path)
    for name in wanted:
        paths = by_name.get(name, [])
        if len({path.read_bytes() for path in paths}) > 1:
            raise ValueError(
                f"{source}: {paths[0]} and {paths[1]} differ; expected a single {paths[0].name}"
            )
        if paths:
            return paths[0]
    raise ValueError(
        f"{source}: {' or '.join(names)} is in neither the folder nor its subfolders; expected "
        "the files as distributed"
    )


def open_file(path: Path, mode: str = "rt") -> IO[Any]:
    """Open a possibly compressed file."""
    return OPENERS.get(path.suffix.lower(), open)(path, mode)


def numbers(path: Path, n_columns: int, **options: Any) -> np.ndarray:
    """Read the numbers of a text file, (n, n_columns), float32, or raise a ValueError that names
    the file. ``options`` are those of ``numpy.loadtxt``."""
    try:
        with open_file(path) as lines:
            table = np.loadtxt(lines, dtype=np.float32, ndmin=2, **options)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"{path}: the file is not a numeric table ({' '.join(str(error).split())})"
        ) from None
    if table.shape[1] != n_columns:
        raise ValueError(f"{path}: the table has {table.shape[1]} columns; expected {n_columns}")
    return table
