"""Output formats of detections: a table, COCO keypoints and aligned crops."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.files import make_folder, replacing
from ...models.keypoints import DetectionOptions, KeypointDetector, Schema, align_face, check_size
from ...models.keypoints.instances.assembly import Assembly
from ..common import append, check_header, check_outputs, header_line, open_locked, whole_lines
from .detect import FileDetections
from .drawing import square_around, write_image

if TYPE_CHECKING:
    import pandas as pd

_WHOLE = ("frame", "person")  # integer columns, empty for photographs
_FIRST = (
    "source",
    "frame",
    "time",
    "person",
    "probability",
    "x0",
    "y0",
    "x1",
    "y1",
    "yaw",
    "pitch",
    "roll",
)
_BATCH = 2000  # number of rows in memory at a time
_CROP = 1.2  # side of an object's crop relative to the larger side of its box (heuristic)


def columns_of(keypoints: Iterable[str], n_landmarks: int = 0, category: bool = False) -> list[str]:
    """Return the column names of the table of detections, including the category if requested.

    Examples
    --------
    >>> columns_of(["chin"], 2)[-8:]
    ['roll', 'chin_x', 'chin_y', 'chin_p', 'point0_x', 'point0_y', 'point1_x', 'point1_y']
    """
    return [
        *_FIRST,
        *(["category"] if category else []),
        *(f"{name}_{part}" for name in keypoints for part in "xyp"),
        *(f"point{i}_{part}" for i in range(n_landmarks) for part in "xy"),
    ]


def rows_of(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the known values of a row of the table of detections for each object in a record."""
    # bytes that are not valid UTF-8 are escaped
    source = record["image"].encode(errors="backslashreplace").decode()
    of_image: dict[str, Any] = {
        "source": source,
        **{name: record[name] for name in ("frame", "time") if name in record},
    }
    for instance in record.get("faces", record.get("objects", ())):
        row = (
            of_image
            | {k: instance[k] for k in ("probability", "person", "category") if k in instance}
            | instance.get("pose", {})
        )
        row |= zip(("x0", "y0", "x1", "y1"), instance["box"])
        for name, point in instance["keypoints"].items():
            row.update({f"{name}_{part}": value for part, value in zip("xyp", point)})
        for i, (x, y) in enumerate(instance.get("landmarks", ())):
            row |= {f"point{i}_x": x, f"point{i}_y": y}
        yield row


def faces_table(results: Iterable[FileDetections], landmarks: bool = False) -> pd.DataFrame:
    """Convert the detections in photographs or frames to a table with one row per face.

    Parameters
    ----------
    results : iterable of FileDetections
        Results of ``detect_files`` or ``detect_video``.
    landmarks : bool, default False
        Whether to include all points of the faces in addition to the keypoints.

    Returns
    -------
    pandas.DataFrame
        Table with the columns of ``annealed faces detect --out``: source, frame, time in seconds,
        person, probability, box and keypoints in pixels, and yaw, pitch and roll in radians.

    Examples
    --------
    >>> from annealed.models import DetectionOptions, load_model
    >>> from annealed.pipelines.keypoints.detect import detect_files
    >>> table = faces_table(detect_files(load_model("faces"), [], DetectionOptions()))
    >>> table.loc[0, "source"], round(table.loc[0, "chin_x"])
    ('astronaut', 222)
    """
    import pandas as pd

    rows = [row for result in results for row in rows_of(result.record(landmarks))]
    columns = dict.fromkeys([*_FIRST, *(name for row in rows for name in row)])
    return pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(_WHOLE, "Int64"))


def write_table(path: Path, records: Iterable[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write the table of detections, which has one row per face, as .csv or .parquet.

    An existing file is replaced atomically.
    """
    rows = (row for record in records for row in rows_of(record))
    with replacing(path) as temporary:
        if path.suffix.lower() == ".csv":
            with temporary.open(
                "w", newline="", encoding="utf-8", errors="backslashreplace"
            ) as file:
                writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        else:
            _write_parquet(temporary, rows, columns)


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]], columns: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = dict.fromkeys(("source", "category"), pa.string()) | dict.fromkeys(_WHOLE, pa.int64())
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in columns])
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema))


def write_coco(
    path: Path, finished: Iterable[dict[str, Any]], categories: Sequence[dict[str, Any]]
) -> None:
    """Write COCO keypoints, with one image per photograph or frame and one annotation per object.

    The categories are those that `coco_category` returns. Coordinates are the same as in the JSON
    records, where (0, 0) is the centre of the top-left pixel. Every point has visibility 2, and
    ``score`` is the probability of the object. Video frames are named in the form ``NAME#000012``.
    """
    named = {category["name"]: category for category in categories}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, record in enumerate(finished, 1):
        if "width" in record:
            name = (
                f"{record['image']}#{record['frame']:06d}" if "frame" in record else record["image"]
            )
            images.append(
                {
                    "id": number,
                    "file_name": name,
                    "width": record["width"],
                    "height": record["height"],
                }
            )
        for instance in record.get("faces", record.get("objects", ())):
            category = named.get(instance.get("category"), categories[0])
            places = instance["keypoints"]
            points = [places[name] for name in category["keypoints"] if name in places]
            points += instance.get("landmarks", ())
            x0, y0, x1, y1 = instance["box"]
            width, height = round(x1 - x0, 2), round(y1 - y0, 2)
            entry = {
                "id": len(annotations) + 1,
                "image_id": number,
                "category_id": category["id"],
                "iscrowd": 0,
                "score": instance["probability"],
                "bbox": [x0, y0, width, height],
                "area": round(width * height, 2),
                "num_keypoints": len(points),
                **({"track_id": instance["person"]} if "person" in instance else {}),
                "keypoints": [value for x, y, *_ in points for value in (x, y, 2)],
            }
            annotations.append(entry)
    with replacing(path) as temporary:
        temporary.write_text(
            json.dumps({"images": images, "annotations": annotations, "categories": categories}),
            encoding="ascii",
        )


def coco_category(
    keypoints: Sequence[str], n_landmarks: int = 0, schema: Schema | None = None, number: int = 1
) -> dict[str, Any]:
    """Return the COCO category, with its id, of objects with a given schema (default: faces)."""
    names = [*keypoints, *(f"point{i}" for i in range(n_landmarks))]
    category = {
        "id": number,
        "name": "face",
        "supercategory": "person",
        "keypoints": names,
        "skeleton": [],
    }
    if schema is not None:
        bones = [[names.index(name) + 1 for name in bone] for bone in schema.skeleton]
        category |= {"name": schema.category, "supercategory": "", "skeleton": bones}
    return category


def write_crops(stem: Path, result: FileDetections, size: int) -> None:
    """Write crops of the objects, in order of decreasing probability.

    Crops are aligned faces (``STEM_face1.png``) or squares around other objects
    (``STEM_object1.png``). Crops from video frames are named in the form
    ``STEM_000012_person3.png``.
    """
    kind = "face" if result.category is None else "object"
    every = [instance for part in result.parts for instance in part.instances]
    for number, instance in enumerate(every, 1):
        name = f"{kind}{number}" if instance.person is None else f"person{instance.person}"
        frame = "" if result.frame is None else f"{result.frame:06d}_"
        assert result.pixels is not None
        box = np.reshape(instance.box, (2, 2))
        crop = (
            align_face(result.pixels, instance, size)
            if kind == "face"
            else square_around(
                result.pixels, box.mean(axis=0), _CROP * float(np.ptp(box, axis=0).max()), size
            )
        )
        write_image(stem.with_name(f"{stem.name}_{frame}{name}.png"), crop)


@dataclass(frozen=True)
class Forms:
    """Output files of a detection run.

    Parameters
    ----------
    table : path or None
        Path of the table of detections (.csv or .parquet), which has one row per face.
    coco : path or None
        Path of the COCO keypoint file (.json).
    crops : path or None
        Folder for aligned crops.
    size : int
        Side of the crops in pixels.
    landmarks : bool
        Whether to include all points of a face in the table and the COCO file.
    """

    table: Path | None = None
    coco: Path | None = None
    crops: Path | None = None
    size: int = 112
    landmarks: bool = False

    @property
    def files(self) -> list[Path]:
        """Files that are written once all results are available."""
        return [path for path in (self.table, self.coco) if path is not None]

    def check(self, inputs: Sequence[str], options: DetectionOptions) -> None:
        """Check that the outputs can be written, and create the folder for the crops.

        Raises
        ------
        ValueError
            If a suffix is not supported, a file cannot be written, the size is out of range, or the
            detector does not assemble instances.
        ModuleNotFoundError
            If the package that writes .parquet files is not installed.
        """
        for name, path, endings in (
            ("out", self.table, (".csv", ".parquet")),
            ("coco", self.coco, (".json",)),
        ):
            if path is not None and path.suffix.lower() not in endings:
                raise ValueError(
                    f"--{name} {path} is not valid; expected a file name that ends in "
                    f"{' or '.join(endings)}"
                )
        if (self.files or self.crops) and options.assembly == Assembly.NONE:
            raise ValueError(
                "tables, COCO files and crops require assembled faces; use an assembly other than "
                "'none'"
            )
        check_size(self.size)
        if self.table is not None and self.table.suffix.lower() == ".parquet":
            import pyarrow.parquet  # noqa: F401
        check_outputs(inputs, self.files)
        make_folder(self.crops)

    def unfinished(
        self, models: Sequence[Path], images: Sequence[str], options: DetectionOptions, resume: bool
    ) -> Finished:
        """Open the records of photographs that an earlier run has processed."""
        inputs = hashlib.sha256("\n".join(images).encode("utf-8", "surrogateescape")).hexdigest()
        crops = None if self.crops is None else [str(self.crops), self.size]
        made_from: dict[str, Any] = {
            "model": hashlib.sha256(b"".join(m.read_bytes() for m in models)).hexdigest(),
            "inputs": inputs,
            "options": asdict(options),
            "landmarks": self.landmarks,
            "crops": crops,
        }
        return Finished(self.files[0], made_from, resume)

    def write(
        self, finished: Iterable[dict[str, Any]], detectors: Sequence[KeypointDetector]
    ) -> None:
        """Write the output files from the records, which are read once for each file."""
        finders = [d.finder for d in detectors if d.finder is not None]
        if not finders:
            return
        n_points = [len(f.regressor.mean_points) if self.landmarks else 0 for f in finders]
        if self.table is not None:
            columns = columns_of(
                dict.fromkeys(name for d in detectors for name in d.keypoints),
                max(n_points),
                len(detectors) > 1,
            )
            write_table(self.table, finished, columns)
        if self.coco is not None:
            described = [
                coco_category(d.keypoints, n, None if d.category is None else d.schema, number)
                for number, (d, n) in enumerate(zip(detectors, n_points, strict=True), 1)
            ]
            write_coco(self.coco, finished, described)


class Finished:
    """Records of a run, stored next to the output so that an interrupted run can be resumed.

    The file ``OUT.unfinished`` contains JSON lines: a header with the settings and inputs of the
    run, followed by one record per photograph or frame. A record is written as soon as it is
    finished. Only one record is in memory at a time. The file is locked until :meth:`close` is
    called.

    Parameters
    ----------
    out : path
        Output file.
    made_from : dict
        Settings and inputs of the run, as JSON values.
    resume : bool
        Whether to resume from the records in the file. If False, an error is raised if the file
        exists.

    Raises
    ------
    ValueError
        If the file has a different format, cannot be written, belongs to different settings or
        inputs, is in use by another process, or exists although ``resume`` is False.
    """

    def __init__(self, out: Path, made_from: dict[str, Any], resume: bool = False):
        self.path = out.with_name(out.name + ".unfinished")
        if self.path.exists() and not resume:
            raise ValueError(
                f"{self.path}: the file belongs to an interrupted run; "
                "use --resume to continue it, or remove the file"
            )
        self._file = open_locked(self.path, wait=False)
        try:
            lines = whole_lines(self.path, self._file)
            if (header := next(lines, None)) is None:
                append(self.path, self._file, header_line(made_from))
            else:
                check_header(self.path, header, made_from)
            self.n = sum(1 for _ in lines)
        except ValueError:
            self.close()
            raise

    def add(self, record: dict[str, Any]) -> None:
        """Append a record."""
        append(self.path, self._file, json.dumps(record).encode() + b"\n")
        self.n += 1

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        self._file.readline()
        yield from map(json.loads, self._file)

    def remove(self) -> None:
        """Remove the file after all outputs have been written."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()
