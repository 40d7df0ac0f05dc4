"""Conversion of the tracks of Hopkins155 and the homes of Ordonez et al. (2013)."""

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from annealed.vision.tracks.io import TRUTH, read_sequences

from .files import find_file

_NOT_OF_THE_BENCHMARK = ("dancing",)  # five motions; not among the 155 sequences
_HEADER_LINES = 2  # names and a dashed line


def hopkins155(source: Path, folder: Path, name: str) -> list[str]:
    """Write ``NAME.npz`` with the tracks and labels of each sequence, without unpacking the videos
    in the archive.
    """
    if source.is_file():
        with TemporaryDirectory() as place:
            _extract_truth(source, Path(place))
            sequences = read_sequences(place)
    else:
        sequences = read_sequences(_tree(source))
    kept = [one for one in sequences if one.name not in _NOT_OF_THE_BENCHMARK]
    for one in kept:
        arrays: dict[str, Any] = {"tracks": one.tracks} | (
            {} if one.labels is None else {"labels": one.labels}
        )
        np.savez_compressed(folder / f"{one.name}.npz", **arrays)
    left_out = [
        f"skipped because it is not part of the benchmark: {one.name}"
        for one in sequences
        if one not in kept
    ]
    return [f"{len(kept)} sequences of {len({one.video for one in kept})} videos", *left_out]


def _tree(source: Path) -> Path:
    """Return the source or the subfolder that contains the folders NAME."""
    if any(source.glob(f"*/*{TRUTH}")):
        return source
    below = sorted(
        path for path in source.iterdir() if path.is_dir() and any(path.glob(f"*/*{TRUTH}"))
    )
    if len(below) != 1:
        raise ValueError(
            f"{source}: the folder contains no NAME/NAME{TRUTH}; expected the "
            "Hopkins155 tree or its archive"
        )
    return below[0]


def _extract_truth(archive: Path, place: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as content:
            for member in content.namelist():
                name = Path(member).name  # the archive must not determine the folder
                if name.endswith(TRUTH):
                    target = place / name.removesuffix(TRUTH) / name
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(content.read(member))
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ValueError(
            f"{archive}: the file is not a readable zip archive ({str(error)[:100]})"
        ) from None
    if not any(place.iterdir()):
        raise ValueError(
            f"{archive}: the archive contains no NAME{TRUTH}; expected the Hopkins155 archive"
        )


def ordonez(source: Path, folder: Path, name: str) -> list[str]:
    """Write ``NAME_events.csv`` and ``NAME_activities.csv`` for each home; activities that end
    before they start are repaired.
    """
    notes = []
    for home in ("ordonezA", "ordonezB"):
        events = _tabbed(
            find_file(source, f"{home}_Sensors.txt"), ["start", "end", "sensor", "type", "place"]
        )
        events.to_csv(folder / f"{home}_events.csv", index=False)
        path = find_file(source, f"{home}_ADLs.txt")
        activities = _tabbed(path, ["start", "end", "activity"])
        ends = [
            _repaired(path, start, end)
            for start, end in zip(activities.start, activities.end, strict=True)
        ]
        changed = sum(new != old for new, old in zip(ends, activities.end, strict=True))
        activities.insert(2, "end_as_published", activities.end)
        activities["end"] = ends
        activities.to_csv(folder / f"{home}_activities.csv", index=False)
        notes.append(
            f"{home}: {len(events)} events, {len(activities)} activities; {changed} end times "
            "before the start time were corrected"
        )
    return notes


def _tabbed(path: Path, columns: list[str]) -> pd.DataFrame:
    """Read rows of fields that are separated by one or more tabs."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        fields = [field.strip() for field in line.split("\t") if field.strip()]
        if number <= _HEADER_LINES or not fields:
            continue
        if len(fields) != len(columns):
            raise ValueError(
                f"{path}, line {number}: the line has {len(fields)} fields; expected "
                f"{', '.join(columns)} separated by tabs"
            )
        rows.append(fields)
    return pd.DataFrame(rows, columns=columns)


def _repaired(path: Path, start: str, end: str) -> str:
    """Repair an end before its start, which gets the day and hour of the start and keeps its
    minutes and seconds."""
    try:
        begin, stop = pd.Timestamp(start), pd.Timestamp(end)
    except ValueError:
        raise ValueError(
            f"{path}: {start!r} to {end!r} is not a valid interval; expected times such as "
            "2011-11-28 02:27:59"
        ) from None
    if stop >= begin:
        return end
    stop = begin.normalize() + pd.Timedelta(
        hours=begin.hour, minutes=stop.minute, seconds=stop.second
    )
    return str(stop if stop >= begin else stop + pd.Timedelta(hours=1))
