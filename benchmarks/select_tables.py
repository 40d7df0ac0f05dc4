"""`annealed select -k auto` on 60 tables: those in scikit-learn and statsmodels, and simulated
ones.

    python benchmarks/select_tables.py [--only NAME ...] [--decisions]

Each table is written as csv and read as a user's file would be. Prints the selected columns and
their number, and the first score on held-out rows, compared with ridge and gradient boosting on all
columns; with --decisions, also every line about columns (on stderr). For a table that cannot be
used, the reason is printed.
"""

import importlib
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from annealed.models.tabular.fitting.selection import shown
from annealed.pipelines.console import text
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file
from common import new_parser, print_head, print_line

SKLEARN = ("iris", "wine", "breast_cancer", "digits", "diabetes", "linnerud")
STATSMODELS = (
    "anes96 cancer ccard china_smoking co2 committee copper cpunish danish_data elnino engel fair "
    "fertility grunfeld heart"
    " interest_inflation longley macrodata modechoice nile randhie scotland spector stackloss "
    "star98 statecrime strikes sunspots"
)
LEVELS = ("low", "medium", "high")
MONTHS = np.array([3.0, 2.0, 1.0, 0.0, -1.0, -2.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])


def made(number):
    """Return one of 26 tables: 13 targets, each with two seeds and two numbers of rows."""
    rng, n = np.random.default_rng(number), (120, 600)[number // 13]
    X = rng.standard_normal((n, 12))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    day = pd.Timestamp("2019-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 1400, n)), "D")
    frame["day"], rank = day.strftime("%Y-%m-%d"), rng.integers(0, 3, n)
    frame["level"], frame["income"] = np.array(LEVELS)[rank], np.exp(rng.normal(8, 1, n)).round(2)
    frame["town"], noise = (
        rng.choice(["Oslo", "Rome", "Bonn", "Bern"], n),
        0.5 * rng.standard_normal(n),
    )
    line = X[:, 0] - X[:, 1]
    targets = {
        "line": line + noise,
        "month": MONTHS[day.month - 1] + noise,
        "weekend": 3.0 * (day.day_of_week >= 5) + noise,
        "trend": np.arange(n) * 4 / n + noise,
        "ranks": 1.5 * rank + line + noise,
        "logarithm": 1.5 * np.log(frame["income"]) + noise,
        "raw income": frame["income"] / 2000 + noise,
        "town": 2.0 * (frame["town"] == "Rome") + X[:, 2] + noise,
        "product": line + 1.5 * X[:, 0] * X[:, 1] + noise,
        "nothing": noise,
        "classes": np.where(line + noise > 0, "yes", "no"),
        "rare class": np.where(line + noise > 2.0, "yes", "no"),
        "three classes": np.array(LEVELS)[np.digitize(line + noise, [-0.7, 0.7])],
    }
    kind = list(targets)[number % 13]
    frame["target"] = targets[kind]
    frame.loc[rng.random(n) < 0.1, "x3"] = np.nan
    return f"{kind}, {n} rows", frame


def tables():
    """Yield names, and functions that return a frame and its target."""
    for name in SKLEARN:
        yield f"scikit-learn {name}", lambda name=name: of_sklearn(name)
    for name in STATSMODELS.split():
        yield f"statsmodels {name}", lambda name=name: of_statsmodels(name)
    for number in range(26):
        name, frame = made(number)
        yield f"synthetic: {name}", lambda frame=frame: (frame, "target")


def of_sklearn(name):
    bunch = getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(as_frame=True)
    target = bunch.target if bunch.target.ndim == 1 else bunch.target.iloc[:, 0]
    names = getattr(bunch, "target_names", None)
    words = (
        np.array(names)[target]
        if bunch.target.ndim == 1 and names is not None and name != "digits"
        else target
    )
    return bunch.data.assign(target=np.asarray(words)), "target"


def of_statsmodels(name):
    bunch = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas()
    names = getattr(bunch, "endog_name", None) or getattr(
        getattr(bunch, "endog", None), "name", None
    )
    names = names if isinstance(names, str) or names is None else names[0]
    data = (
        bunch.data.reset_index() if not isinstance(bunch.data.index, pd.RangeIndex) else bunch.data
    )
    return data, names if names in data else data.columns[-1]


def measured(folder, get):
    """Return a row of the table, and the lines about columns."""
    frame, target = get()
    path, lines = Path(folder) / "t.csv", []
    frame.to_csv(path, index=False)
    try:
        result = select_file(path, Request(str(target), "auto", boosting=True), note=lines.append)
    except ValueError as error:
        return [*frame.shape, "–", str(error).replace(str(path), "the table"), *["–"] * 4], lines
    columns, scores = [shown(column) for column in result.columns], result.validation.scores
    measure = next(iter(scores["selected"]))
    values = [scores[name][measure] for name in ("selected", "all columns", "boosting")]
    some = (
        ", ".join(columns[:4]) + (f" and {len(columns) - 4} more" if len(columns) > 4 else "")
        or "none"
    )
    return [*frame.shape, len(columns), some, measure.replace("R2", "R²"), *values], lines


def main(arguments=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[], help="run only tables whose names contain one of these"
    )
    parser.add_argument(
        "--decisions", action="store_true", help="also print the lines about columns"
    )
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print_head(
        "table",
        "rows",
        "columns",
        "number selected",
        "selected columns",
        "metric",
        "selection",
        "ridge, all columns",
        "boosting, all columns",
    )
    with TemporaryDirectory() as folder:
        for name, get in tables():
            if given.only and not any(word in name for word in given.only):
                continue
            row, lines = measured(folder, get)
            print_line(name, *map(text, row))
            if given.decisions:
                print("", *lines, sep="\n    ", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
