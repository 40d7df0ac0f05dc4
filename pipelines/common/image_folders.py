"""Image files in folders, and tables of annotations for them."""

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ...vision.images import image_size

# Maximum number of photographs, and of their pixels in total, for which a command compiles nothing.
# A choice: with more, cached compiled code is faster; compiling takes as long as about fifty
# photographs.
MAX_FEW, MAX_FEW_PIXELS = 8, 16_000_000
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def list_images(folder: str | Path) -> list[Path]:
    """List the image files of a folder, at least one, sorted by name."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    if not paths:
        raise ValueError(f"{folder}: no image in this folder")
    return paths


def are_few(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether photographs are few and small enough for uncompiled loops: at most 8
    photographs with 16 million pixels in total."""
    pixels = 0
    for path in paths[: MAX_FEW + 1]:
        with suppress(ValueError):  # an unreadable one takes no time
            width, height = image_size(path)
            pixels += width * height
    return len(paths) <= MAX_FEW and pixels <= MAX_FEW_PIXELS


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line numbers and rows of a CSV file with required columns."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            missing = [name for name in columns if name not in (reader.fieldnames or [])]
            if missing:
                raise ValueError(
                    f"{path}: expected the columns {', '.join(columns)}; missing: "
                    f"{', '.join(missing)}"
                )
            yield from ((reader.line_num, row) for row in reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: not a readable CSV file ({error})") from None
