"""Checks of output paths before a command starts, which protect existing files."""

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ...models.files import check_writable, read_header, replacing
from ...models.files import make_folder as make_folder  # re-exported for commands


def check_outputs(
    inputs: Iterable[str | Path | None],
    files: Iterable[Path | None] = (),
    model: Path | None = None,
    report: Path | None = None,
    report_files: Sequence[str] = (),
) -> None:
    """Check all outputs of a command before it starts.

    Parameters
    ----------
    inputs : iterable of path or None
        Inputs of the command. Names that do not refer to files, such as those of shipped models,
        are ignored.
    files : iterable of path or None
        Files to write. An existing file is replaced unless it is an input.
    model : path or None
        Model file to write. An existing file is replaced only if it is a model.
    report : path or None
        Folder for the report, which is created if it does not exist.
    report_files : sequence of str
        Patterns that match the files of the report. The first pattern matches the JSON file, by
        which an earlier report is recognised.

    Raises
    ------
    ValueError
        If an output is also an input (possibly through a link, or with different case on a
        case-insensitive file system), is not a regular file, cannot be written, is in a folder that
        does not exist, or would replace a file that another program wrote.
    """
    read = [Path(name) for name in inputs if name is not None]
    for path in (*files, model):
        if path is not None:
            _check_file(path, read)
    if model is not None and model.exists():
        try:
            read_header(model)
        except ValueError:
            raise ValueError(
                f"{model}: the file exists and is not an annealed model; use another name"
            ) from None
    if report is not None:
        _check_report(report, read, report_files)


def _check_file(path: Path, inputs: Sequence[Path]) -> None:
    check_writable(path)
    try:
        # root appears to have write permission in every folder, even in /proc
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be written ({error.strerror})") from None
    _check_no_input(path, inputs)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: the file cannot be written (not a regular file)")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{path}: the file cannot be written (it is read-only)")


def _check_no_input(path: Path, inputs: Sequence[Path]) -> None:
    for name in inputs:
        try:
            same = os.path.samefile(path, name)
        except (OSError, ValueError):  # one of the two files does not exist, so they differ
            continue
        if same:
            raise ValueError(f"{path}: the file is an input of this command; use another name")


def _check_report(folder: Path, inputs: Sequence[Path], patterns: Sequence[str]) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: this is a file; expected a folder")
    parent = folder.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ValueError(f"{folder}: the folder is not writable (no write permission for {parent})")
    present = (
        sorted({path for pattern in patterns for path in folder.glob(pattern)})
        if folder.is_dir()
        else []
    )
    for path in present:
        _check_no_input(path, inputs)
    if present and not _is_report(folder / patterns[0]):
        raise ValueError(
            f"{folder}: the folder contains {present[0].name}, which is not part of a report of "
            "this command; use another folder"
        )


def _is_report(path: Path) -> bool:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and {"name", "settings", "rows"} <= set(record)


def save_figure(path: Path, figure: Any, dpi: int = 110) -> None:
    """Write a matplotlib figure to a PNG file."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=dpi)


def overlay_paths(images: Sequence[str | Path], overlay: Path, ending: str) -> list[Path]:
    """Return the overlay path of each image.

    For a single image, the path is ``overlay`` itself, unless it is a folder. Otherwise, the paths
    are ``overlay/STEM_ENDING.png``. All paths are distinct, and the ending prevents photographs in
    the folder from being overwritten.

    Examples
    --------
    >>> names = overlay_paths(["a/x.jpg", "b/X.jpg"], Path("out"), "keypoints")
    >>> [path.as_posix() for path in names]
    ['out/x_keypoints.png', 'out/X_2_keypoints.png']
    """
    if len(images) == 1 and not overlay.is_dir():
        return [overlay]
    if overlay.exists() and not overlay.is_dir():
        raise ValueError(
            f"--overlay {overlay} is a file; expected a folder for the overlays of "
            f"{len(images)} images"
        )
    return [overlay / f"{stem}_{ending}.png" for stem in distinct_stems(images)]


def distinct_stems(images: Sequence[str | Path]) -> list[str]:
    """Return the stems of image names, made distinct (ignoring case) by adding numbers.

    Examples
    --------
    >>> distinct_stems(["a/x.jpg", "b/X.jpg", "y.png"])
    ['x', 'X_2', 'y']
    """
    stems: dict[str, str] = {}  # lower-case stem -> stem as given
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for image in images:
        stem = name = Path(image).stem
        while name.lower() in stems:
            name = f"{stem}_{next(numbers[stem.lower()])}"
        stems[name.lower()] = name
    return list(stems.values())
