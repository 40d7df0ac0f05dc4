"""Rendering of the tables in the pages from the stored results.

A page contains blocks ``<!-- table: NAME VIEW -->`` ... ``<!-- end of table -->``. Each block is
filled from ``experiments/results/NAME.json``, which ``annealed reproduce NAME --results FILE``
writes, in the format given by the view. The numbers of the README, which has no comments, are
listed in ``experiments/results/PAGE_numbers.toml``.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from annealed.models.files import replacing
from annealed.pipelines.console import markdown_table

from .provenance import run_of, write

Record = dict[str, Any]  # name, settings and rows of a table

_LABELS = {
    "L1": "L1, liblinear",
    "EL": "elastic net, SGD",
    "EL, early stopping": "elastic net, SGD, early stopping",
    "MCP": "MCP, skglm",
    "SCAD": "SCAD, skglm",
    "RFE": "RFE, scikit-learn",
    "L2": "L2, all columns",
}
_REGRESSION_LABELS = {"L1": "L1, LARS", "EL": "elastic net, coordinate descent"}
_PAPERS_OWN = ("FSA", "FSV", "FSL")  # the papers' algorithm with three losses
_BLOCK = re.compile(
    r"(<!-- table: (?P<name>\S+) (?P<view>\S+) -->\n).*?(<!-- end of table -->)", re.S
)
_NUMBER = re.compile(
    r"(<!-- number: (?P<name>\S+) (?P<facts>[^>]*?) -->).*?(<!-- end of number -->)"
)


def _percent(value: float) -> str:
    """Format a percentage as an integer, or with one decimal just below 100.

    Examples
    --------
    >>> _percent(99.96), _percent(100.0), _percent(41.3)
    ('99.9', '100', '41')
    """
    return f"{min(value, 99.9):.1f}" if 99.5 <= value < 100.0 else f"{value:.0f}"


def _decimals(value: float) -> str:
    """Format a number with three decimals below 0.1, two below ten, and one otherwise.

    Examples
    --------
    >>> _decimals(0.0123), _decimals(0.5), _decimals(12.34)
    ('0.012', '0.50', '12.3')
    """
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


_table = partial(markdown_table, cell=lambda value: "" if value is None else str(value))


def _beside(row: dict[str, Any], what: str, form: Callable[[float], str]) -> str:
    """Return our number, or a dash if there is none, followed by the printed number after a
    slash."""
    ours, theirs = row.get(what), row.get(f"paper_{what}")
    if theirs is None:
        return "" if ours is None else form(ours)
    return f"{'-' if ours is None else form(ours)} / {form(theirs)}"


def _by_size(record: Record) -> dict[tuple, dict[str, dict[str, Any]]]:
    """Return the rows by design and method, small k first."""
    by_size: dict[Any, dict[str, dict[str, Any]]] = {}
    for row in record["rows"]:
        size = (row.get("task", ""), row["k"], row["N"], row["M"], row.get("columns", ""))
        by_size.setdefault(size, {})[row["method"]] = row
    return dict(sorted(by_size.items()))


_Z = 1.959963984540054  # normal quantile of a 95% interval


def _wilson(share: float, runs: int) -> tuple[float, float]:
    """Return the 95% interval of Wilson (1927) for a share of independent runs.

    Examples
    --------
    >>> low, high = _wilson(1.0, 20)
    >>> round(low, 3), high
    (0.839, 1.0)
    """
    shrunk = 1.0 + _Z**2 / runs
    centre = (share + _Z**2 / (2 * runs)) / shrunk
    half = _Z / shrunk * np.sqrt(share * (1.0 - share) / runs + (_Z / (2 * runs)) ** 2)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _rate(row: dict[str, Any]) -> str:
    """Return DR with its 95% interval, and the printed number."""
    ours, *theirs = _beside(row, "DR", _percent).split(" / ")
    if row.get("DR") is not None:
        ours += " [{:.0f}-{:.0f}]".format(
            *(100.0 * end for end in _wilson(row["DR"] / 100.0, row["runs"]))
        )
    return " / ".join([ours, *theirs])


def _methods(record: Record, *without: str) -> list[str]:
    return [
        name
        for name in dict.fromkeys(row["method"] for row in record["rows"])
        if name not in without
    ]


def _runs(row: dict[str, Any]) -> str:
    """Return the number of runs in brackets, unless it is 100."""
    return "" if row["runs"] == 100 else f" ({row['runs']})"


def _full(record: Record) -> str:
    """Render one table per size with the runs, DR with its interval, PCD, quality and seconds of
    every method."""
    text = ""
    for (_, k, n, m, _), methods in _by_size(record).items():
        quality = "RMSE" if "RMSE" in next(iter(methods.values())) else "AUC"
        labels = _LABELS | (_REGRESSION_LABELS if quality == "RMSE" else {})
        form = _decimals if quality == "RMSE" else "{:.3f}".format
        cells = []
        for name, row in methods.items():
            shares = [_rate(row), _beside(row, "PCD", _percent)]
            cells.append(
                [
                    labels.get(name, name),
                    row["runs"],
                    *shares,
                    _beside(row, quality, form),
                    _decimals(row["seconds"]),
                ]
            )
        text += f"\n### N = {n}, {'' if m == 1000 else f'M = {m}, '}k = {k}\n\n" + _table(
            ["method", "runs", "DR", "PCD", quality, "seconds"], cells
        )
    return text + "\n"


def _detection(record: Record) -> str:
    """Render DR and PCD by method and size, with printed numbers after a slash, and the runs in
    brackets unless there are 100.
    """
    sizes = _by_size(record)

    def cell(row: dict[str, Any] | None) -> str:
        if row is None:
            return ""
        values = [[row.get(kind + what) for what in ("DR", "PCD")] for kind in ("", "paper_")]
        ours, theirs = (
            " ".join(_percent(value) for value in pair if value is not None) for pair in values
        )
        return (f"{ours or '-'} / {theirs}" if theirs else ours) + _runs(row)

    head = ["method", *(f"{n}, {k}" for _, k, n, _, _ in sizes)]
    return _table(
        head,
        (
            [name, *(cell(methods.get(name)) for methods in sizes.values())]
            for name in _methods(record, "L2")
        ),
    )


def _summary(record: Record) -> str:
    """Render DR / PCD / milliseconds by size for a few methods, with the runs in brackets unless
    there are 100, and the best DR of the papers.
    """
    names = [
        name for name in ("annealing alone", "annealed", "abess", "LB") if name in _methods(record)
    ]
    lines = []
    for (task, k, n, m, columns), methods in _by_size(record).items():
        head = ", ".join(str(part) for part in (task, n, m, k, columns) if part != "")
        paper = [
            methods[name]["paper_DR"]
            for name in _PAPERS_OWN
            if methods.get(name, {}).get("paper_DR") is not None
        ]
        cells = [
            f"{_percent(row['DR'])} / {_percent(row['PCD'])} / "
            f"{1000 * row['seconds']:.0f}{_runs(row)}"
            if row
            else ""
            for row in map(methods.get, names)
        ]
        if any(cells) or not names:
            lines.append([head, _percent(max(paper)) if paper else "", *cells])
    first = "task, N, M, k, columns" if "task" in record["rows"][0] else "N, M, k"
    return _table([first, "paper", *names], lines)


def _rows(record: Record, columns: str = "", form: str = ".3g") -> str:
    """Render the rows unchanged, with a column per key or the columns of ``rows:KEY,...:FORM``.
    Printed numbers follow a slash.
    """
    keys = [
        key
        for key in dict.fromkeys(key for row in record["rows"] for key in row)
        if not key.startswith(("paper_", "made"))
    ]
    keys = columns.split(",") if columns else keys

    def cell(row: dict[str, Any], key: str) -> str:
        return (
            _beside(row, key, lambda value: format(value, form))
            if isinstance(row.get(key), float)
            else str(row.get(key, ""))
        )

    return _table(
        [key.replace("_", " ") for key in keys],
        ([cell(row, key) for key in keys] for row in record["rows"]),
    )


def _cells(record: Record) -> str:
    """Render columns and cells as stored in the file."""
    return _table(record["columns"], record["rows"])


def _pivot(record: Record, keys: str, across: str, values: str, form: str) -> str:
    """Render a pivot table, with lines by some keys, columns by the values of another, and cells of
    one or more numbers, as in ``pivot:setup,tau:method:recovered,seconds:.3g``.
    """
    rows = [row for row in record["rows"] if row[across] is not None]
    heads = list(dict.fromkeys(row[across] for row in rows))
    lines: dict[tuple, dict[Any, str]] = {}
    for row in rows:
        cell = ", ".join(
            filter(
                None,
                (
                    _beside(row, value, lambda number: format(number, form))
                    for value in values.split(",")
                ),
            )
        )
        lines.setdefault(tuple(row.get(key) for key in keys.split(",")), {})[row[across]] = cell
    return _table(
        [*keys.split(","), *heads],
        ([*line, *map(cells.get, heads)] for line, cells in lines.items()),
    )


_ONLINE = {
    "stabilised": "annealed stages",
    "threshold": "threshold, Algorithm 3.4",
    "SGD": "plain SGD",
    **{name: name for name in ("truncated gradient", "RDA", "FOBOS")},
}


def _online(record: Record) -> str:
    """Render error, share of columns and kappa of each learner by data set and loss.

    Balanced errors are in brackets. The second kappa of the other learners counts as many columns
    as the annealed stages have.
    """
    lines: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in record["rows"]:
        lines.setdefault((row["data"], row["loss"]), {})[row["method"]] = row

    def share(value: float) -> str:
        return f"{100 * value:.{1 if value >= 0.01 else 2}f}"

    def cell(name: str, row: dict[str, Any] | None) -> str:
        if row is None:
            return "not run"
        error = f"{100 * row['error']:.1f}"
        if row["data"] == "dorothea":  # a tenth of its rows are positive
            error += f" ({100 * row['balanced_error']:.1f})"
        kappas = [row["kappa"]] if name == "stabilised" else [row["kappa"], row["kappa_equal_k"]]
        return f"{error} / {share(row['nonzero'])} / {', '.join(f'{k:.2f}' for k in kappas)}"

    cells = []
    for (data, loss), methods in lines.items():
        ours = methods["stabilised"]
        text = "-"
        if ours["paper_error"] is not None:
            shares = (f"{100 * ours[f'paper_{what}']:.2f}" for what in ("error", "nonzero"))
            text = " / ".join([*shares, f"{ours['paper_kappa']:.2f}"])
        values = (cell(name, methods.get(name)) for name in _ONLINE)
        cells.append([f"{data}, {loss}", *values, f"{ours['pass_ratio']:.1f}", text])
    head = ["data set, loss", *_ONLINE.values(), "time of one pass", "Ma (thesis)"]
    return _table(head, cells)


_ALL = (_cells, _rows, _full, _detection, _summary, _pivot, _online)
VIEWS: dict[str, Callable[..., str]] = {view.__name__.removeprefix("_"): view for view in _ALL}


def render_page(page: Path, results: Path) -> str:
    """Return the text of a Markdown page with its tables filled from the files ``NAME.json`` in the
    results folder.
    """

    def record(name: str) -> Record:
        file = results / f"{name}.json"
        if not file.is_file():
            raise ValueError(
                f"{page}: {file} is missing; create it with annealed reproduce NAME --results"
            )
        return json.loads(file.read_text())

    def fill(block: re.Match[str]) -> str:
        view, *options = block["view"].split(":")
        if view not in VIEWS:
            raise ValueError(
                f"{page}: view {view!r} is unknown; expected one of {', '.join(VIEWS)}"
            )
        return block[1] + VIEWS[view](record(block["name"]), *options) + block[4]

    def value(name: str, facts: str) -> str:
        key, *pairs = shlex.split(facts)
        table = record(name)
        rows = [
            dict(zip(table["columns"], row)) if "columns" in table else row for row in table["rows"]
        ]
        rows = [
            row
            for row in rows
            if all(str(row.get(pair.split("=")[0])) == pair.split("=")[1] for pair in pairs)
        ]
        if len(rows) != 1:
            raise ValueError(
                f"{page}: {len(rows)} rows of {name} have {' '.join(pairs)}; expected one"
            )
        key, _, how = key.partition("#")
        cell = rows[0][key]
        if isinstance(cell, str):
            return re.findall(r"-?\d[\d.]*", cell)[int(how or 1) - 1]
        return format(cell, how) if how else _percent(cell)

    def number(mark: re.Match[str]) -> str:
        return mark[1] + value(mark["name"], mark["facts"]) + mark[4]

    text = _NUMBER.sub(number, _BLOCK.sub(fill, page.read_text(encoding="utf-8")))
    for place, source in numbers_beside(page, results).items():
        pattern = r"-?\d[\d.]*".join(map(re.escape, place.split("{}")))
        matches = re.findall(pattern, text)
        if len(matches) != 1:
            raise ValueError(f"{page}: {place!r} occurs {len(matches)} times; expected once")
        text = text.replace(matches[0], place.format(value(*source.split(maxsplit=1))))
    return text


def numbers_beside(page: Path, results: Path) -> dict[str, str]:
    """Return the numbers of a page without comments: the text with ``{}`` for the number -> its
    source in comment syntax.
    """
    if page.parent == results.parent:  # the README of the experiments has comments
        return {}
    file = results / f"{page.stem.lower()}_numbers.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def pages_of(checkout: Path) -> list[Path]:
    """Return the pages that :func:`render` writes."""
    folders = ("docs/**", "experiments/pages", "experiments/notebook", "models/weights")
    pages = {page for folder in folders for page in checkout.glob(f"{folder}/*.md")}
    return sorted({*pages, *checkout.glob("README.md"), *checkout.glob("experiments/README.md")})


def render(checkout: Path) -> list[Path]:
    """Write the tables and numbers of all pages of a checkout, and return the pages that changed.

    They come from ``experiments/results``. ``<!-- number: NAME KEY FACT=VALUE ... -->`` before
    ``<!-- end of number -->`` is the value of one row: an integer percentage (in another format
    with ``KEY#.2f``), or the first number in a text cell (the second with ``KEY#2``).
    """
    results = checkout / "experiments" / "results"
    if not results.is_dir():
        raise ValueError(
            f"{results}: no such folder; expected the files written by annealed reproduce NAME "
            "--results"
        )
    changed = []
    for page in pages_of(checkout):
        text = render_page(page, results)
        if text != page.read_text(encoding="utf-8"):
            with replacing(page) as temporary:
                temporary.write_text(text, encoding="utf-8")
            changed.append(page)
    return changed


def update(file: Path, record: dict[str, Any], command: str) -> None:
    """Store the rows of a record in a results file, which is created if missing.

    The record is that printed by ``annealed reproduce NAME --json``. Rows with the same design and
    method are replaced, and other rows are retained. For each row, the file records the run that
    ``made`` it: command, date, commit, versions, processor, seeds, fingerprint of the code, and
    settings. The settings of the file are those that all runs share.
    """
    rows, made, settings = {}, [], record["settings"]
    if file.is_file():
        try:
            old = json.loads(file.read_text(encoding="utf-8"))
            same = old["name"] == record["name"] and old["settings"].get("noisy") == record[
                "settings"
            ].get("noisy")
            rows, made = {row_key(row): row for row in old["rows"]}, old["made"]
            settings = {
                key: value for key, value in settings.items() if value == old["settings"].get(key)
            }
        except (ValueError, TypeError, KeyError):
            same = False
        if not same:
            raise ValueError(f"{file}: expected results of {record['name']} with the same labels")
    rows |= {row_key(row): row | {"made": len(made)} for row in record["rows"]}
    made = [*made, run_of(command, record["settings"])]
    used = sorted({row["made"] for row in rows.values()})  # runs without rows are not retained
    write(
        file,
        {
            "name": record["name"],
            "settings": settings,
            "made": [made[i] for i in used],
            "rows": [row | {"made": used.index(row["made"])} for row in rows.values()],
        },
    )


def row_key(row: dict[str, Any]) -> tuple:
    """Return the key that identifies a row."""
    names = (
        "data loss task case noise_scale tenth N M p k mu columns setup selected tau r method "
        "parameter value"
    )
    return tuple(row.get(name) for name in f"{names} pool category motions home features".split())
