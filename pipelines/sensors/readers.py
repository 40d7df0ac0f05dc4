"""Readers for sensor data from homes, which convert timed events and activities to minutes.

Two layouts are supported:

* ``NAME_events.csv`` (start, end, sensor, type, place) with ``NAME_activities.csv`` (start, end,
  activity), as in the data of Ordonez et al. (2013)
* ``NAME-sensors.txt`` with ``NAME-activities.txt`` (start, end, id, tab-separated), and names in
  ``NAME-sensor_names.txt`` and ``NAME-activity_names.txt``, as in the data of van Kasteren et al.
  (2008)
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ...models.sensors.features import SensorMinutes

IDLE = "Idle"
_MAX_MINUTES = 2_000_000  # nearly four years; a longer span indicates a mistyped year


@dataclass(frozen=True)
class Home:
    """Sensor data of one home.

    Attributes
    ----------
    name : str
    minutes : SensorMinutes
        Sensor states in each minute, with the activities if they are known.
    places : tuple of str
        Place of each sensor; empty if unknown.
    notes : tuple of str
        One-line messages about the files.
    """

    name: str
    minutes: SensorMinutes
    places: tuple[str, ...]
    notes: tuple[str, ...] = ()


def home_names(folder: Path) -> list[str]:
    """List the names of the homes in a folder.

    Raises
    ------
    ValueError
        If the folder contains no homes.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    names = {
        path.name.removesuffix(end)
        for end in ("_events.csv", "-sensors.txt")
        for path in folder.glob(f"*{end}")
    }
    if not names:
        raise ValueError(
            f"{folder}: the folder contains no homes; expected NAME_events.csv or NAME-sensors.txt"
        )
    return sorted(names)


def read_home(folder: Path, name: str | None = None, labelled: bool = True) -> Home:
    """Read the files of a home.

    Parameters
    ----------
    folder : path
    name : str or None
        Name of the home. It may be None if the folder contains only one home.
    labelled : bool
        Whether activities are required.

    Returns
    -------
    Home

    Raises
    ------
    ValueError
        If the home is missing or a file is malformed. The message names the file and the line, and
        states what is expected.
    """
    names = home_names(folder)
    if name is None and len(names) > 1:
        raise ValueError(
            f"{folder}: the folder contains several homes ({', '.join(names)}); choose one of "
            "them with --home"
        )
    name = names[0] if name is None else name
    if name not in names:
        raise ValueError(
            f"{folder}: home {name!r} does not exist; expected one of {', '.join(names)}"
        )
    read = _read_csv if (folder / f"{name}_events.csv").is_file() else _read_text
    return make_home(name, *read(folder, name, labelled))


def make_home(name: str, events: pd.DataFrame, activities: pd.DataFrame | None) -> Home:
    """Create a home from events (start, end, sensor, place) and activities (start, end, activity).

    The data are restricted to the time span of the activities.

    Raises
    ------
    ValueError
        If there are no events or no activities, or they span too many years.
    """
    for table, what in ((events, "sensor events"), (activities, "activities")):
        if table is not None and not len(table):
            raise ValueError(f"{name}: the file contains no {what}")
    tables = [events] if activities is None else [events, activities]
    begin = min(table.start.min() for table in tables).floor("min")
    end = max(table.end.max() for table in tables).floor("min")
    # pandas can represent at most 292 years
    n = int((end.to_pydatetime() - begin.to_pydatetime()).total_seconds() // 60) + 1
    if n > _MAX_MINUTES:
        raise ValueError(
            f"{name}: the times from {begin} span {n} minutes, which is too long for a single "
            "recording; check for a mistyped year"
        )
    sensors = sorted(events.sensor.unique())
    places = events.drop_duplicates("sensor").set_index("sensor").place
    on, started = np.zeros((n, len(sensors)), bool), np.zeros((n, len(sensors)))
    first, last = _minute(events.start, begin), _minute(events.end, begin)
    for column, a, b, second in zip(
        events.sensor.map({sensor: i for i, sensor in enumerate(sensors)}),
        first,
        last,
        events.start.dt.second,
        strict=True,
    ):
        on[a : b + 1, column] = True
        started[a, column] = max(started[a, column], 1.0 + second)
    times = np.datetime64(begin, "m") + np.arange(n, dtype="timedelta64[m]")
    labels, notes = (None, []) if activities is None else _labels(name, activities, begin, n)
    known = slice(None)
    if activities is not None:  # activities were recorded only between the first and the last one
        known = slice(
            _minute(activities.start, begin).min(), _minute(activities.end, begin).max() + 1
        )
    on = on[known]
    minutes = SensorMinutes(
        times[known], tuple(sensors), on, started[known], None if labels is None else labels[known]
    )
    days = minutes.days
    quiet = [day for day in np.unique(days) if not on[days == day].any()]
    notes += [f"{name}: no sensor was on during {', '.join(quiet)}"] if quiet else []
    return Home(name, minutes, tuple(places[sensors].astype(str)), tuple(notes))


def _minute(times: pd.Series, begin: pd.Timestamp) -> np.ndarray:
    return ((times - begin).dt.total_seconds() // 60).astype(int).to_numpy()


def _labels(
    name: str, activities: pd.DataFrame, begin: pd.Timestamp, n: int
) -> tuple[np.ndarray, list[str]]:
    """Determine the activity that covers most of each minute, or ``IDLE`` if there is none.
    Overlaps are reported in the notes."""
    kinds = sorted(activities.activity.unique())
    seconds = np.zeros((n, len(kinds)))
    ordered = activities.sort_values("start", kind="stable")
    starts = (ordered.start - begin).dt.total_seconds().to_numpy()
    # the last second is included
    ends = np.maximum((ordered.end - begin).dt.total_seconds().to_numpy(), starts) + 1.0
    for kind, a, b in zip(
        ordered.activity.map({kind: i for i, kind in enumerate(kinds)}), starts, ends, strict=True
    ):
        rows = np.arange(int(a // 60), min(int((b - 1) // 60), n - 1) + 1)
        seconds[rows, kind] += np.minimum(b, 60.0 * (rows + 1)) - np.maximum(a, 60.0 * rows)
    labels = np.array(kinds, dtype=object)[seconds.argmax(axis=1)]
    labels[seconds.max(axis=1) == 0] = IDLE
    overlapping = np.flatnonzero(starts[1:] < np.maximum.accumulate(ends)[:-1] - 1.0)
    notes = []
    if len(overlapping):
        first = ordered.iloc[overlapping[0] + 1]
        notes.append(
            f"{name}: {len(overlapping)} activities overlap an earlier one, the first being "
            f"{first.activity} at {first.start}; "
            "each minute is assigned to the activity that covers most of it"
        )
    return labels.astype(str), notes


def _read_csv(folder: Path, name: str, labelled: bool) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    events = _table(folder / f"{name}_events.csv", "sensor", "type", "place")
    events["sensor"] = events.place + "_" + events.sensor + "_" + events.type
    return events, _activities(folder / f"{name}_activities.csv", labelled)


def _read_text(folder: Path, name: str, labelled: bool) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    events = _table(folder / f"{name}-sensors.txt", "sensor")
    names, places = _names(folder / f"{name}-sensor_names.txt")
    events["place"] = events.sensor.map(places).fillna("")
    events["sensor"] = [f"{names[i]} ({i})" if i in names else i for i in events.sensor]
    if (activities := _activities(folder / f"{name}-activities.txt", labelled)) is not None:
        activities["activity"] = activities.activity.replace(
            _names(folder / f"{name}-activity_names.txt")[0]
        )
    return events, activities


def _activities(path: Path, labelled: bool) -> pd.DataFrame | None:
    if labelled and not path.is_file():
        raise ValueError(f"{path}: no such file; this file must contain the activities of the home")
    return _table(path, "activity") if labelled else None


def _table(path: Path, what: str, *more: str) -> pd.DataFrame:
    """Read the start and end, the sensor or activity, and further text columns. A .txt file has no
    header and may have empty trailing columns."""
    header = path.suffix == ".csv"
    columns = ("start", "end", what, *more)
    sep, form = (",", "%Y-%m-%d %H:%M:%S") if header else ("\t", "%d-%b-%Y %H:%M:%S")
    try:
        raw = pd.read_csv(
            path,
            sep=sep,
            header=0 if header else None,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=True,
        )
    except pd.errors.EmptyDataError:
        raise ValueError(
            f"{path}: the file is empty; expected the columns {', '.join(columns)}"
        ) from None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: the file is not a readable table ({' '.join(str(error).split())})"
        ) from None
    if not header:
        raw = raw.rename(columns=dict(enumerate(columns)))
    if missing := [name for name in columns if name not in raw]:
        raise ValueError(f"{path}: column {missing[0]!r} is missing; expected {', '.join(columns)}")
    table = raw[list(columns)].apply(lambda column: column.str.strip())

    def refuse(bad: pd.Series, problem: str) -> None:
        """Raise an error about the first bad line; words in braces in the message are replaced by
        its cells."""
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise ValueError(f"{path}:{row + 1 + header}: " + problem.format(**table.iloc[row]))

    refuse(table[what] == "", f"the {what} is empty; expected a name")
    for column in ("start", "end"):
        parsed = pd.to_datetime(table[column], format=form, errors="coerce")
        refuse(parsed.isna(), f"{column} {{{column}!r}} is not a time; expected {form}")
        table[column] = parsed
    refuse(table.end < table.start, "the end {end} is before the start {start}")
    return table


def _names(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Read the name and place of each id; the result is empty if the file is missing."""
    if not path.is_file():
        return {}, {}
    rows = [
        [field.strip() for field in line.split(",")]
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    return {row[0]: row[1] for row in rows if len(row) > 1}, {
        row[0]: row[2] for row in rows if len(row) > 2
    }
