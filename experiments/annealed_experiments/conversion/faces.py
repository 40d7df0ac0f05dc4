"""Conversion of annotated faces to the nine keypoints.

The data sets are AFLW (21 points), LFPW (35 named points) and HELEN (194 points). Photographs are
not copied: ``keypoints.csv`` refers to them by relative paths, and ``ignore.csv`` has a box for
every face without annotated eyes. Coordinates are those of the publishers, who do not document
their origin.
"""

import csv
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
from annealed.pipelines.common.image_folders import IMAGE_SUFFIXES
from annealed.pipelines.keypoints.faces import FACES, KEYPOINTS
from annealed.vision.images import image_size

from .files import find_file

Points = dict[str, tuple[float, float, bool]]  # x, y and visibility, by name
_EYES, _MOUTH = slice(0, 2), slice(4, 6)  # positions in KEYPOINTS
# Names of the points whose mean is the keypoint, with "Left" for the subject's left. If there are
# several groups, separated by "|", the first complete group is used.
_AFLW = {
    "eye": "{}EyeLeftCorner {}EyeRightCorner|{}EyeCenter",
    "nose": "Nose{}",
    "mouth": "Mouth{}Corner",
}
_AFLW |= {"ear": "{}Ear", "chin": "ChinCenter"}  # the ear is the lobe
_LFPW = {"eye": "{}_eye_out {}_eye_in|{}_eye_pupil", "nose": "{}_nose_out", "mouth": "{}_mouth_out"}
_LFPW |= {"ear": "{}_ear_canal", "chin": "chin"}
_AFLW_QUERIES = {
    "points": "SELECT face_id, descr, c.x, c.y FROM FeatureCoords AS c "
    "JOIN FeatureCoordTypes USING (feature_id)",
    "faces": "SELECT face_id, filepath FROM Faces JOIN FaceImages USING (file_id) ORDER BY face_id",
    "boxes": "SELECT face_id, x, y, w, h FROM FaceRect",
}
_LFPW_HIDDEN = (
    2  # from this type on, the pose hides the point; 1 means hair, glasses or similar objects
)
# Among HELEN's 194 points, the outline from ear to ear, the nose, the outer lips and the eyes are
# curves.
_JAW, _NOSE, _LIPS, _EYE_CURVES = (
    slice(0, 41),
    slice(41, 58),
    slice(58, 86),
    (slice(114, 134), slice(134, 154)),
)
_N_HELEN = 194


class _Faces:
    """Faces in the photographs of a folder and its subfolders: keypoints (9, 2) with NaN where
    missing, their visibility, and boxes of unannotated faces.
    """

    def __init__(self, folder: Path):
        self.by_name: dict[str, list[Path]] = {}  # image files by stem and by name
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in IMAGE_SUFFIXES:
                for key in {path.name.lower(), path.stem.lower()}:
                    self.by_name.setdefault(key, []).append(path)
        self.points: dict[Path, list[tuple[np.ndarray, np.ndarray]]] = {}
        self.ignore: dict[Path, list[tuple[float, ...]]] = {}
        self.missing = 0  # number of annotations without a photograph

    def add(
        self, name: str, xy: np.ndarray, visible: np.ndarray, box: tuple[float, ...] | None = None
    ) -> None:
        """Add a face of a named photograph; if an eye is missing, only the box of the face is
        added, if there is one."""
        parts = [part.lower() for part in re.split(r"[/\\]", name) if part]
        paths = self.by_name.get(parts[-1], []) if parts else []
        close = [
            path
            for path in paths
            if [p.lower() for p in path.parts[-len(parts) : -1]] == parts[:-1]
        ]
        if len(close or paths) != 1:  # missing or ambiguous
            self.missing += 1
        elif np.isfinite(xy[_EYES]).all():
            self.points.setdefault((close or paths)[0], []).append((xy, visible))
        elif box is not None:
            self.ignore.setdefault((close or paths)[0], []).append(box)


def aflw(source: Path, folder: Path, name: str) -> list[str]:
    """Read the database ``aflw.sqlite``, which has no entries for hidden points. The ear is its
    lobe."""
    path = find_file(source, "aflw.sqlite")
    faces = _Faces(path.parent if source.is_file() else source)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = {key: database.execute(query).fetchall() for key, query in _AFLW_QUERIES.items()}
    except sqlite3.Error as error:
        raise ValueError(f"{path}: the file is not the AFLW database ({error})") from None
    named: dict[int, Points] = {}
    for face, point, x, y in rows["points"]:
        named.setdefault(face, {})[point] = (float(x), float(y), True)
    boxes = {
        face: (float(x), float(y), float(x) + float(w), float(y) + float(h))
        for face, x, y, w, h in rows["boxes"]
    }
    for face, file in rows["faces"]:
        faces.add(file, *_nine(named.get(face, {}), _AFLW, ("Left", "Right")), boxes.get(face))
    return _write(faces, path, folder)


def lfpw(source: Path, folder: Path, name: str) -> list[str]:
    """Read tables of tab-separated points from the rows with the workers' averages. Photographs are
    named by the end of their URL.
    """
    tables = (
        [source]
        if source.is_file()
        else sorted(p for p in source.rglob("*.csv") if "lfpw" in p.name.lower())
    )
    if not tables:
        raise ValueError(
            f"{source}: kbvt_lfpw_v1_train.csv is in neither the folder nor its subfolders; "
            "expected the LFPW tables"
        )
    faces = _Faces(source.parent if source.is_file() else source)
    for path in tables:
        with path.open(newline="", encoding="latin-1") as file:
            reader = csv.DictReader(file, delimiter="\t")
            address = (reader.fieldnames or [""])[0]
            if not {"worker", "left_eye_out_x", "left_eye_out_y"} <= set(reader.fieldnames or []):
                raise ValueError(
                    f"{path}: the column worker, left_eye_out_x or left_eye_out_y is missing; "
                    "expected the tab-separated LFPW table"
                )
            for row in reader:
                if row["worker"] == "average":
                    points = _lfpw_points(path, reader.line_num, row)
                    faces.add(
                        row[address].rsplit("/", 1)[-1], *_nine(points, _LFPW, ("left", "right"))
                    )
    return _write(faces, tables[0], folder)


def _lfpw_points(path: Path, line: int, row: dict[str, str]) -> Points:
    points = {}
    for column in row:
        if column is not None and column.endswith("_x") and (row[column] or "").strip():
            point = column.removesuffix("_x")
            try:
                kind = float(row.get(f"{point}_t") or 0)
                points[point] = (float(row[column]), float(row[f"{point}_y"]), kind < _LFPW_HIDDEN)
            except (KeyError, TypeError, ValueError):
                raise ValueError(
                    f"{path}, line {line}: {point} is not numeric; expected x, y and type"
                ) from None
    return points


def helen(source: Path, folder: Path, name: str) -> list[str]:
    """Read the files ``annotation/N.txt``, which contain the name of the photograph and 194 lines
    ``x , y``. The ears are the ends of the outline.
    """
    paths = sorted(source.rglob("annotation/*.txt")) or sorted(
        path for path in source.glob("*.txt") if path.stem.isdigit()
    )
    if not paths:
        raise ValueError(
            f"{source}: annotation/1.txt is in neither the folder nor its subfolders; expected "
            "the HELEN files"
        )
    faces = _Faces(source)
    for path in paths:
        lines = path.read_text(encoding="latin-1").split("\n")
        try:
            xy = np.array([line.split(",") for line in lines[1:] if line.strip()], float)
        except ValueError:
            raise ValueError(
                f"{path}: the file is not a HELEN annotation file; "
                f"expected a name and {_N_HELEN} lines 'x , y'"
            ) from None
        if xy.shape != (_N_HELEN, 2) or not np.isfinite(xy).all():
            raise ValueError(
                f"{path}: the points have shape {xy.shape}; expected {_N_HELEN} lines 'x , y'"
            )
        faces.add(lines[0].strip(), _nine_of_194(xy), np.ones(len(KEYPOINTS), bool))
    return _write(faces, paths[0], folder)


def _nine_of_194(xy: np.ndarray) -> np.ndarray:
    """Return the keypoints of HELEN's curves: the means of the eyes, the ends of the nose and lips
    along the line of the eyes, and the ends of the outline.
    """
    eyes = np.array([xy[curve].mean(axis=0) for curve in _EYE_CURVES])
    lips, jaw = xy[_LIPS], xy[_JAW]
    down = lips.mean(axis=0) - eyes.mean(axis=0)
    to_left = np.array(
        [down[1], -down[0]]
    )  # towards the subject's left, the direction of increasing x in an upright face
    eyes = eyes[np.argsort(-(eyes @ to_left))]
    ends = [
        part[np.argsort(-(part @ to_left))[[0, -1]]] for part in (xy[_NOSE], lips, jaw[[0, -1]])
    ]
    return np.concatenate([eyes, *ends, jaw[len(jaw) // 2][None]])


def _nine(
    points: Points, scheme: dict[str, str], sides: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nine keypoints from named points, with NaN if some are missing, and their
    visibility."""
    xy, visible = np.full((len(KEYPOINTS), 2), np.nan), np.zeros(len(KEYPOINTS), bool)
    for i, keypoint in enumerate(KEYPOINTS):
        side = sides[keypoint.startswith("right")]
        for names in scheme[keypoint.split("_")[-1]].format(*[side] * 3).split("|"):
            present = [points[name] for name in names.split() if name in points]
            if len(present) == len(names.split()):
                xy[i] = np.mean([p[:2] for p in present], axis=0)
                visible[i] = all(p[2] for p in present)
                break
    return xy, visible


def names_are_the_viewers(faces: Iterable[np.ndarray]) -> bool:
    """Return whether "left" in the names of points means the viewer's left.

    If the subject's left eye is on the right-hand side of an upright face, the cross product of the
    eye line and the direction to the mouth is positive for any rotation of the face. The result is
    the majority vote of the faces.
    """
    xy = np.array(list(faces))
    across, down = xy[:, 0] - xy[:, 1], xy[:, _MOUTH].mean(axis=1) - xy[:, _EYES].mean(axis=1)
    signs = np.sign(across[:, 0] * down[:, 1] - across[:, 1] * down[:, 0])
    return bool(np.nansum(signs) < 0)


def _write(faces: _Faces, source: Path, folder: Path) -> list[str]:
    """Write ``keypoints.csv`` and ``ignore.csv`` and return notes for the user."""
    every = [xy for listed in faces.points.values() for xy, _ in listed]
    if not every:
        raise ValueError(
            f"{source}: no face has both a photograph and two annotated eyes ({faces.missing} "
            "photographs are missing)"
        )
    order = FACES.mirror_order if names_are_the_viewers(every) else list(range(len(KEYPOINTS)))
    rows, boxes = [], []
    for image, listed in sorted(faces.points.items()):
        width, height = image_size(image)
        path = Path(os.path.relpath(image.resolve(), folder.resolve())).as_posix()
        for number, (xy, visible) in enumerate(listed):
            for keypoint, (x, y), seen in zip(KEYPOINTS, xy[order], visible[order], strict=True):
                inside = -0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5
                if inside or keypoint.endswith("eye"):
                    rows.append(
                        [path, number, keypoint, f"{x:.2f}", f"{y:.2f}", int(seen and inside)]
                    )
        boxes += [[path, *(f"{v:.1f}" for v in box)] for box in faces.ignore.get(image, ())]
    tables = {
        "keypoints": ("image face keypoint x y visible", rows),
        "ignore": ("image x0 y0 x1 y1", boxes),
    }
    for name, (columns, lines) in tables.items():
        pd.DataFrame(lines, columns=columns.split()).to_csv(
            folder / f"{name}.csv", index=False, lineterminator="\r\n"
        )
    notes = [
        f"{len(every)} faces in {len(faces.points)} photographs (the photographs are not copied)"
    ]
    if boxes:
        notes.append(f"the boxes of {len(boxes)} faces without both eyes are in ignore.csv")
    if faces.missing:
        notes.append(
            f"{faces.missing} annotated faces were skipped because their photographs are missing"
        )
    return notes
