"""Numbers printed in the papers, from ``printed_values.txt``."""

from collections.abc import Iterable
from pathlib import Path


def _read(path: Path) -> dict[str, dict[tuple[str, ...], float]]:
    """Read the numbers by table, method and keys of the row. The file has blocks of ``[table]``,
    ``keys | methods`` and rows.
    """
    tables: dict[str, dict[tuple[str, ...], float]] = {}
    for block in path.read_text(encoding="utf-8").split("[")[1:]:
        name, rest = block.split("]")
        head, *lines = (line for line in rest.splitlines() if line and not line.startswith("#"))
        keys, methods = (part.split() for part in head.split("|"))
        tables[name] = {}
        for line in lines:
            cells = line.split()
            row, numbers = cells[: len(keys)], cells[len(keys) :]
            values = {(method.replace("_", " "), *row): v for method, v in zip(methods, numbers)}
            tables[name] |= {key: float(v) for key, v in values.items() if v != "-"}
    return tables


TABLES = _read(Path(__file__).with_suffix(".txt"))


def printed(table: str, method: str, *row: str | int) -> float | None:
    """Return the printed number of a method in the row of a table with the given keys, or None.

    Examples
    --------
    >>> printed("clean", "FSL", 1000, 10, "DR")
    100.0
    """
    return TABLES.get(table, {}).get((method, *map(str, row)))


def printed_columns(
    table: str, method: str, row: Iterable[str | int], columns: Iterable[str]
) -> dict[str, float]:
    """Return the available printed numbers of a method in some columns, as ``paper_COLUMN``."""
    values = {f"paper_{column}": printed(table, method, *row, column) for column in columns}
    return {column: value for column, value in values.items() if value is not None}
