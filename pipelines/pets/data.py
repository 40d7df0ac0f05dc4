"""Readers for labelled photographs in a folder."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...vision import Photograph, read_image
from ..common import IMAGE_SUFFIXES, FileMap, by_processes, read_rows
from ..console import naming

BOX_COLUMNS = ("head_xmin", "head_ymin", "head_xmax", "head_ymax")
SPECIES = {"1": "cat", "2": "dog"}  # third column of the official lists


@dataclass(frozen=True)
class PetFile:
    """Labelled photograph on disk.

    Attributes
    ----------
    path : Path
    label : str
    head : tuple of four float or None
        Head box x_min, y_min, x_max, y_max in pixels.
    breed : str
        Breed; empty if unknown.
    split : str
        "train" or "test"; empty if the data have no split.
    """

    path: Path
    label: str
    head: tuple[float, float, float, float] | None = None
    breed: str = ""
    split: str = ""

    def read(self, side: int | None = None) -> Photograph:
        """Read the photograph, and resize its longer side to ``side`` pixels.

        A ValueError that names the file is raised if it cannot be read.
        """
        photograph = Photograph(read_image(self.path), self.head)
        with naming(self.path):
            return photograph if side is None else photograph.resized(side)


@dataclass
class Photographs(Sequence[Photograph]):
    """Sequence of photographs that are read on demand, since they may not fit into memory."""

    files: Sequence[PetFile]
    side: int

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Photograph:  # type: ignore[override]  # no slices
        return self.files[index].read(self.side)


def read_pets(folder: str | Path) -> list[PetFile]:
    """List the photographs in a folder.

    Four layouts are supported:

    * ``labels.csv`` with the columns ``image`` and ``label``, and optionally ``head_xmin,
      head_ymin, head_xmax, head_ymax``, ``breed`` and ``split``
    * the official Oxford-IIIT tree (``images/``, ``annotations/``)
    * files named ``CLASS.NUMBER.jpg``, as in Kaggle's "Dogs vs. Cats", in the folder or in its
      subfolder ``train``
    * one subfolder per class
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    if (folder / "labels.csv").is_file():
        files = _from_table(folder)
    elif (folder / "annotations" / "list.txt").is_file():
        files = _from_official(folder)
    elif named := _from_names(folder) or _from_names(folder / "train"):
        files = named
    else:
        folders = sorted(
            path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
        )
        files = [PetFile(path, sub.name) for sub in folders for path in _images(sub)]
    if not files:
        raise ValueError(
            f"{folder}: the folder contains no photographs; "
            "expected labels.csv, the Oxford-IIIT tree, CLASS.NUMBER.jpg, or one subfolder per "
            "class"
        )
    classes = sorted({f.label for f in files})
    if len(classes) < 2:
        raise ValueError(
            f"{folder}: the folder contains only one class ({classes[0]!r}); expected at least two"
        )
    return files


def _from_names(folder: Path) -> list[PetFile]:
    """List photographs ``CLASS.NUMBER.jpg`` by class and number; the list is empty if any file has
    another kind of name."""
    files = []
    for path in _images(folder) if folder.is_dir() else []:
        if (match := re.fullmatch(r"([^.]+)\.(\d+)", path.stem)) is None:
            return []
        files.append((match[1], int(match[2]), path))
    return [PetFile(path, label) for label, _, path in sorted(files)]


def _images(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")
    )


def _from_table(folder: Path) -> list[PetFile]:
    table = folder / "labels.csv"
    files = []
    for line, row in read_rows(table, ("image", "label")):
        where = f"{table}, line {line}"
        name, label = (row["image"] or "").strip(), (row["label"] or "").strip()
        if not name or not label:
            raise ValueError(f"{where}: the image or the label is missing; expected both")
        split = (row.get("split") or "").strip()
        if split not in ("", "train", "test"):
            raise ValueError(f"{where}: split={split!r} is unknown; expected train or test")
        box = [(row.get(column) or "").strip() for column in BOX_COLUMNS]
        files.append(
            PetFile(folder / name, label, _box(box, where), (row.get("breed") or "").strip(), split)
        )
    return files


def _box(texts: Sequence[str], where: str) -> tuple[float, float, float, float] | None:
    if not any(texts):
        return None
    try:
        x0, y0, x1, y1 = (float(t) for t in texts)
    except ValueError:
        raise ValueError(
            f"{where}: the head box is ({', '.join(texts)}); expected four numbers, or none"
        ) from None
    return x0, y0, x1, y1


def _from_official(folder: Path) -> list[PetFile]:
    splits: dict[str, str] = {}
    for split, name in (("train", "trainval.txt"), ("test", "test.txt")):
        if (folder / "annotations" / name).is_file():
            splits |= {row[0]: split for row in _official_rows(folder / "annotations" / name)}
    return [
        PetFile(
            folder / "images" / f"{name}.jpg",
            SPECIES[species],
            _official_head(folder / "annotations" / "xmls" / f"{name}.xml"),
            breed=name.rsplit("_", 1)[0],
            split=splits.get(name, ""),
        )
        for name, _, species, _ in _official_rows(folder / "annotations" / "list.txt")
    ]


def _official_rows(path: Path) -> Iterable[list[str]]:
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not (row := text.split()) or row[0].startswith("#"):
            continue
        if len(row) != 4 or row[2] not in SPECIES:
            raise ValueError(
                f"{path}, line {line}: {text!r} is not valid; expected a name, a class, a "
                "species (1 or 2) and a breed"
            )
        yield row


def _official_head(path: Path) -> tuple[float, float, float, float] | None:
    if not path.is_file():
        return None
    try:
        box = ET.parse(path).getroot().find("object/bndbox")
        texts = [
            "" if box is None else box.findtext(tag, "") for tag in ("xmin", "ymin", "xmax", "ymax")
        ]
    except ET.ParseError as error:
        raise ValueError(f"{path}: the XML file is damaged ({error})") from None
    return _box([t.strip() for t in texts], str(path))


def usable(
    files: Sequence[PetFile], side: int, file_map: FileMap | None = None
) -> tuple[list[PetFile], list[str]]:
    """Return the usable photographs, and a one-line message about each unusable photograph.

    A photograph is usable if it can be read and its head box lies inside the image.
    """
    reasons = list((file_map or by_processes())(_reason, side, files))
    return [file for file, reason in zip(files, reasons) if reason is None], [
        reason for reason in reasons if reason is not None
    ]


def _reason(side: int, file: PetFile) -> str | None:
    """Return the reason why a photograph cannot be read, or None."""
    try:
        file.read(side)
    except ValueError as error:
        return str(error)
    return None
