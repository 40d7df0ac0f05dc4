"""Unusual tables, as people and programs export them, each with the columns expected of an analyst;
and copies of new rows."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

DATES = {"iso": "%Y-%m-%d", "day first": "%d/%m/%Y", "month first": "%m/%d/%Y", "dots": "%d.%m.%Y"}


@dataclass
class OddTable:
    """A table with a column ``target``, and the expected result of `annealed select`."""

    kind: str
    frame: pd.DataFrame
    # columns that must be selected
    selected: list[str] = field(default_factory=list)
    never: list[str] = field(default_factory=list)  # columns that must not be selected
    named: list[str] = field(default_factory=list)  # names required on stderr
    may_refuse: bool = False


def _numbers(rng, n, n_columns=3):
    X = rng.standard_normal((n, n_columns)).round(3)
    frame = pd.DataFrame(X, columns=["width", "height", "weight"][:n_columns])
    return frame, frame["width"] + 0.2 * rng.standard_normal(n)


def row_names(rng, n):
    frame, target = _numbers(rng, n)
    frame.insert(
        0, ["rownames", "Unnamed: 0", "id", "obs"][int(rng.integers(4))], np.arange(1, n + 1)
    )
    name = frame.columns[0]
    return OddTable("row names", frame.assign(target=target), ["width"], [name], [name])


def row_names_with_gaps(rng, n):
    """Rows were dropped after they were numbered; the target falls along the rows."""
    frame, target = _numbers(rng, n)
    frame.insert(0, "rownames", np.sort(rng.choice(np.arange(1, n + 8), n, replace=False)))
    return OddTable(
        "gaps", frame.assign(target=target - 0.02 * np.arange(n)), [], ["rownames"], ["rownames"]
    )


def years(rng, n):
    frame, target = _numbers(rng, n)
    frame.insert(1, "year", 1950 + np.arange(n))
    return OddTable("years", frame.assign(target=0.1 * target + 0.2 * np.arange(n)), ["year"])


def dates(rng, n, style):
    """The target follows the day; one of the days is above 12, so that the order is known."""
    frame, target = _numbers(rng, n)
    day = pd.Timestamp("2019-01-14") + pd.to_timedelta(np.sort(rng.integers(1, 700, n)), unit="D")
    target = 0.1 * target + 0.01 * (day - day[0]).days.to_numpy()
    day = pd.Series(day).dt.strftime(DATES[style])
    return OddTable("dates", frame.assign(sold=day, target=target), ["sold"])


def thousands(rng, n):
    frame, target = _numbers(rng, n)
    price = rng.integers(500, 90_000, n)
    return OddTable(
        "thousands",
        frame.assign(price=[f"{p:,}" for p in price], target=0.1 * target + price / 1e4),
        ["price"],
    )


def text_ids(rng, n):
    frame, target = _numbers(rng, n)
    frame.insert(0, "patient", [f"P{i:04d}" for i in range(n)])
    return OddTable(
        "text ids",
        frame.assign(target=target + (np.arange(n) < n // 2)),
        [],
        ["patient"],
        ["patient"],
    )


def ranks(rng, n):
    """Whole numbers 1 to n, each once, in no order: a predictor."""
    frame, target = _numbers(rng, n)
    rank = rng.permutation(n) + 1
    return OddTable(
        "ranks", frame.assign(literacy=rank, target=0.1 * target + rank / n * 5), ["literacy"]
    )


def constants(rng, n):
    frame, target = _numbers(rng, n)
    return OddTable(
        "constant",
        frame.assign(country="NO", unit=1.5, target=target),
        ["width"],
        ["country", "unit"],
        ["country", "unit"],
    )


def class_of_one_row(rng, n):
    frame, target = _numbers(rng, n)
    labels = np.where(target > 0, "high", "low").astype(object)
    labels[int(rng.integers(n))] = "once"
    return OddTable("one-row class", frame.assign(target=labels), ["width"], [], ["once"])


def tiny(rng, n):
    frame, target = _numbers(rng, int(rng.integers(1, 9)))
    return OddTable("tiny", frame.assign(target=target), may_refuse=True)


KINDS = [
    row_names,
    row_names_with_gaps,
    years,
    thousands,
    text_ids,
    ranks,
    constants,
    class_of_one_row,
    tiny,
]


def odd_tables(n_tables: int, seed: int):
    """``n_tables`` tables of all kinds in turn, of 24 to 60 rows; dates three times as often, in
    one style after the other."""
    styles = list(DATES)
    for i in range(n_tables):
        rng = np.random.default_rng([seed, i])
        n, at = int(rng.integers(24, 61)), i % (len(KINDS) + 3)
        yield (
            KINDS[at](rng, n)
            if at < len(KINDS)
            else dates(rng, n, styles[(i // (len(KINDS) + 3) + at) % len(styles)])
        )


@dataclass
class ChangedCopy:
    """New rows that differ from those of the training in one thing."""

    name: str
    frame: pd.DataFrame
    column: str  # must be named on stderr and in the notes
    refused: bool | None = False  # None: rejected, or reported


def training_table(seed: int) -> pd.DataFrame:
    """Age and city decide: both are selected."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 80),
            "city": rng.choice(["Rome", "Oslo", "Bern"], 80),
            "noise": rng.random(80).round(3),
        }
    )
    return frame.assign(
        target=0.1 * frame["age"] + 5.0 * (frame["city"] == "Oslo") + 0.1 * rng.standard_normal(80)
    )


def changed_copies(frame: pd.DataFrame, rng: np.random.Generator):
    """Rows that a model must report or reject."""
    new, rows = (
        frame.drop(columns="target").astype({"age": object}),
        rng.choice(len(frame), 5, replace=False),
    )

    def changed(column, value, rows=rows):
        copy = new.copy()
        copy.loc[rows, column] = value
        return copy

    yield ChangedCopy("an unknown level", changed("city", "Paris"), "city")
    yield ChangedCopy("a level in other letters", changed("city", "rome"), "city")
    yield ChangedCopy("an empty level", changed("city", None), "city")
    yield ChangedCopy("a cell that is not a number", changed("age", "forty"), "age")
    yield ChangedCopy("an empty cell", changed("age", None), "age")
    yield ChangedCopy("an empty column of levels", changed("city", None, new.index), "city")
    yield ChangedCopy(
        "an empty column of numbers", changed("age", None, new.index), "age", refused=None
    )
    yield ChangedCopy(
        "a column without a number", changed("age", "zzz", new.index), "age", refused=True
    )
