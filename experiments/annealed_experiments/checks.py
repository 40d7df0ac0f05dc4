"""Recomputation of the cheapest cells of the stored tables for ``annealed reproduce --check``."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .data_folder import data_folder
from .provenance import table_of
from .registry import reproduce
from .render import row_key


@dataclass(frozen=True)
class Check:
    """Cells of a results file that are cheap to compute.

    Attributes
    ----------
    table : str
        Name in ``TABLES``, or a script with its arguments, in which DATA is the folder of the real
        data.
    columns : dict of float
        Compared columns, with the maximum accepted difference in each. In a table of a script, this
        is the difference of each number in a cell.
    options : dict
        Arguments of the table that restrict it to a few rows, with the stored number of runs.
    needs : str
        Data set in the folder of the real data; empty for simulated data.
    keys : tuple of str
        Columns that identify a row in the table of a script.
    package : str
        Package of a competitor that the table requires; empty for none.
    """

    table: str
    columns: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)
    needs: str = ""
    keys: tuple[str, ...] = ()
    package: str = ""


_MISSING = "missing"  # no such row in the file
_DETECTION = {"DR": 2.0, "PCD": 0.5}
_SMALLEST = {"methods": ["annealed"], "sizes": [(300, 10)]}
CHECKS = {
    "fsa-classification": Check("fsa-classification", _DETECTION | {"AUC": 0.002}, _SMALLEST),
    "fsa-classification-noisy": Check(
        "fsa-classification", _DETECTION | {"AUC": 0.005}, _SMALLEST | {"noisy": True}
    ),
    "fsa-regression": Check(
        "fsa-regression",
        _DETECTION | {"RMSE": 0.01},
        {"methods": ["annealed"], "sizes": [(300, 30)]},
    ),
    "fsa-wide": Check(
        "fsa-wide",
        _DETECTION | {"RMSE": 0.01},
        {"methods": ["annealed", "QTP"], "sizes": [(1000, 3)]},
    ),
    "fsa-off-design": Check("fsa-off-design", _DETECTION, _SMALLEST),
    "fsa-large": Check(
        "fsa-large",
        _DETECTION | {"AUC": 0.002},
        {"methods": ["annealed"], "sizes": [(1000, 10)], "runs": 10},
    ),
    "fsa-challenge": Check("fsa-challenge", {"valid": 1.0}, needs="dexter"),
    "sdist-variants": Check(
        "sdist-simulated",
        {"error": 0.02},
        {"sizes": [(500, 50)], "methods": ["sDist"], "runs": 3},
    ),
    "sensors-simulated": Check(
        "sensors-simulated", {"error": 0.005, "true": 0.2}, {"methods": ["forward"]}
    ),
    "public-tables": Check(
        "public-tables",
        {"error": 1.0},
        {"sets": ["dexter"], "methods": ["annealed"]},
        needs="dexter",
    ),
    "crf": Check(
        "benchmarks/crf.py DATA",
        {"objective": 0.01, "objective of crfsuite": 0.01, "equal Viterbi labels": 0.1},
        needs="sensors_adl",
        keys=("home",),
    ),
    "paths": Check(
        "benchmarks/paths.py", {"annealed": 0.4}, keys=("task, N, M, k",), package="abess"
    ),
}


def compare(name: str, results: Path, data_dir=None) -> list[dict[str, Any]]:
    """Compute the cells of a check.

    Parameters
    ----------
    name : str
        Name of a results file in ``CHECKS``.
    results : path
        Folder of the results files.
    data_dir : path or None, default None
        Folder of the real data.

    Returns
    -------
    list of dict
        One row per value with ``check``, ``row`` (the identity of the row), ``column``,
        ``computed``, ``stored`` ("missing" if the file has no such row), ``tolerance`` and
        ``equal``.
    """
    check = CHECKS[name]
    stored = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    pairs = _cells if check.keys else _values
    return [
        {
            "check": name,
            "row": row,
            "column": column,
            "computed": new,
            "stored": old,
            "tolerance": check.columns[column],
            "equal": _equal(new, old, check.columns[column]),
        }
        for row, column, new, old in pairs(check, stored, data_dir)
    ]


Pair = tuple[str, str, Any, Any]  # row, column, computed value, stored value


def _values(check: Check, stored: dict[str, Any], data_dir) -> Iterator[Pair]:
    """Yield the values of a table of the papers."""
    rows = {row_key(row): row for row in stored["rows"]}
    for row in reproduce(check.table, data_dir=data_dir, **check.options)["rows"]:
        key = row_key(row)
        text = " ".join(str(value) for value in key if value is not None)
        for column in check.columns:
            yield text, column, row.get(column), rows.get(key, {}).get(column, _MISSING)


def _cells(check: Check, stored: dict[str, Any], data_dir) -> Iterator[Pair]:
    """Yield the cells of the table of a script, without columns of times."""

    def by_key(columns, rows):
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        return {tuple(row[key] for key in check.keys): row for row in named}

    before = by_key(stored["columns"], stored["rows"])
    folder = str(data_folder(data_dir)) if check.needs else ""
    for key, row in by_key(*table_of(check.table.replace("DATA", folder))).items():
        for column in check.columns:
            yield " ".join(key), column, row[column], before.get(key, {}).get(column, _MISSING)


def _equal(new: Any, old: Any, tolerance: float) -> bool:
    """Return whether two values, or all numbers of two cells, differ by at most the tolerance."""
    if old == _MISSING:
        return False
    if isinstance(new, str) and isinstance(old, str):
        numbers = [re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", cell) for cell in (new, old)]
        return len(numbers[0]) == len(numbers[1]) and all(
            abs(float(a) - float(b)) <= tolerance for a, b in zip(*numbers, strict=True)
        )
    if new is None or old is None:
        return new is old
    return bool(abs(new - old) <= tolerance)


def selected(name: str | None, data_dir=None) -> list[str]:
    """Return the names of the checks to run: the given one, or all checks whose data and packages
    are present."""
    if name is not None and name not in CHECKS:
        raise ValueError(f"{name!r} has no check; expected one of {', '.join(CHECKS)}")
    if name is not None:
        return [name]
    try:
        folder = data_folder(data_dir)
    except ValueError:  # no data folder is set
        folder = None
    return [
        key
        for key, check in CHECKS.items()
        if (not check.needs or (folder is not None and (folder / check.needs).exists()))
        and (not check.package or find_spec(check.package))
    ]
