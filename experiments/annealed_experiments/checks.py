"""Recomputation of the cheapest cells of the stored tables for ``annealed reproduce --check``."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .data_folder import data_folder
from .registry import reproduce
from .render import row_key


@dataclass(frozen=True)
class Check:
    """Cells of a results file that are cheap to compute.

    Attributes
    ----------
    table : str
        Name in ``TABLES``.
    columns : dict of float
        Compared columns, with the maximum accepted difference in each.
    options : dict
        Arguments of the table that restrict it to a few rows, with the stored number of runs.
    needs : str
        Data set in the folder of the real data; empty for simulated data.
    """

    table: str
    columns: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)
    needs: str = ""


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
        ``computed``, ``stored`` (None if the file has no such row), ``tolerance`` and ``equal``.
    """
    check = CHECKS[name]
    stored = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    rows = {row_key(row): row for row in stored["rows"]}
    compared = []
    for row in reproduce(check.table, data_dir=data_dir, **check.options)["rows"]:
        key = row_key(row)
        old = rows.get(key, {})
        for column, tolerance in check.columns.items():
            new, before = row.get(column), old.get(column)
            known = new is not None and before is not None
            compared.append(
                {
                    "check": name,
                    "row": " ".join(str(value) for value in key if value is not None),
                    "column": column,
                    "computed": new,
                    "stored": before,
                    "tolerance": tolerance,
                    "equal": abs(new - before) <= tolerance
                    if known
                    else bool(old) and new is before,
                }
            )
    return compared


def selected(name: str | None, data_dir=None) -> list[str]:
    """Return the names of the checks to run: the given one, or all checks whose data are
    present."""
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
        if not check.needs or (folder is not None and (folder / check.needs).exists())
    ]
