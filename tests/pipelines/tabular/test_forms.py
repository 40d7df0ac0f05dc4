"""What is taken of a column, through the command line: parts of dates, ranks of ordered levels."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import run

N = 400
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=N)
DAYS = pd.Timestamp("2020-01-06") + pd.to_timedelta(np.sort(RNG.integers(0, 1100, N)), "D")


def select(folder, frame, k, *options):
    """The record, and what was said."""
    frame.to_csv(folder / "t.csv", index=False)
    result = run("select", folder / "t.csv", "--target", "y", "-k", k, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def names(record):
    return [column["name"] for column in record["selected"]]


def predict(folder, frame, *options):
    frame.to_csv(folder / "new.csv", index=False)
    result = run("predict", folder / "m", folder / "new.csv", "--json", *options)
    return json.loads(result.stdout)


# -- dates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["%Y-%m-%d", "%d/%m/%Y"])
def test_weekends_are_found_and_predicted(tmp_path, style):
    frame = pd.DataFrame(
        {"day": DAYS.strftime(style), "x": NOISE, "y": 5.0 * (DAYS.day_of_week >= 5) + 0.1 * NOISE}
    )
    record, message = select(
        tmp_path,
        frame,
        1,
        "--out",
        tmp_path / "m",
        "--table",
        tmp_path / "o.csv",
        "--report",
        tmp_path,
    )
    assert names(record) == ["day (weekday)"] and record["scores"]["selected"]["R2"] > 0.95
    assert (
        "of date parts, one-hot encoded, which cannot be exported (override: --as COLUMN=date): "
        "day (year), day (month), day (weekday)"
    ) in message
    assert list(pd.read_csv(tmp_path / "o.csv").columns) == ["day", "y"]
    new = pd.DataFrame(
        {"day": pd.to_datetime(["2031-03-01", "2031-03-02", "2031-03-03"]).strftime(style)}
    )
    outcome = predict(tmp_path, new, "--contributions")
    assert outcome["prediction"] == pytest.approx([5, 5, 0], abs=0.2) and not outcome["notes"]
    assert outcome["contribution of day (weekday)"][0] - outcome["contribution of day (weekday)"][
        2
    ] == pytest.approx(5, abs=0.2)
    result = run("export", tmp_path / "m", tmp_path / "m.sql")
    assert (
        result.exit_code == 2
        and "'day (weekday)' cannot be exported; train the model with annealed select --as day=date"
        in result.stderr
    )


def test_the_trend_is_the_days(tmp_path):
    frame = pd.DataFrame(
        {"day": DAYS.strftime("%Y-%m-%d"), "x": NOISE, "y": 0.01 * np.arange(N) + 0.1 * NOISE}
    )
    record, _ = select(tmp_path, frame, 1)
    assert names(record) == ["day"]
    record, message = select(tmp_path, frame, 2, "--as", "day=date")
    assert sorted(names(record)) == ["day", "x"] and "date parts" not in message


def test_hours_vary_and_days_do_not_come_again(tmp_path):
    hours = pd.Timestamp("2020-01-06") + pd.to_timedelta(np.arange(N) % 240, "h")
    frame = pd.DataFrame(
        {"at": hours.astype(str), "x": NOISE, "y": np.where(hours.hour < 6, 3.0, 0.0) + 0.1 * NOISE}
    )
    record, message = select(tmp_path, frame, 1)
    assert (
        names(record) == ["at (hour)"]
        and "one-hot encoded, which cannot be exported (override: --as COLUMN=date): at (hour)"
        in message
    )


def test_an_empty_date_in_new_rows_is_said(tmp_path):
    frame = pd.DataFrame(
        {"day": DAYS.strftime("%Y-%m-%d"), "y": 5.0 * (DAYS.month == 6) + 0.1 * NOISE}
    )
    select(tmp_path, frame, 1, "--out", tmp_path / "m")
    result = predict(tmp_path, pd.DataFrame({"day": ["2024-06-01", None]}))
    assert (
        result["prediction"][0] > 4.5
        and "column 'day (month)', 2 cells: 1 empty" in result["notes"][0]
    )


# -- ranks -----------------------------------------------------------------------------------------

RANK = RNG.integers(0, 3, N)


@pytest.mark.parametrize(
    "levels",
    [
        ("low", "medium", "high"),
        ("Small", "Medium", "Large"),
        ("never", "sometimes", "always"),
        ("1 - poor", "2 - fair", "3 - good"),
        ("under 18", "18-64", "65+"),
    ],
)
def test_levels_in_an_order_are_ranks(tmp_path, levels):
    frame = pd.DataFrame(
        {"size": np.array(levels)[RANK], "x": NOISE, "y": 2.0 * RANK + 0.1 * NOISE}
    )
    record, message = select(tmp_path, frame, 1, "--out", tmp_path / "m")
    (column,) = record["selected"]
    assert (column["name"], column["kind"], column["ranks"]) == ("size", "rank", list(levels))
    assert column["coefficient"] == pytest.approx(2, abs=0.05)
    assert (
        f"such as {' < '.join(levels)}, encoded as ranks (override: --as COLUMN=category): size"
    ) in message
    outcome = predict(tmp_path, pd.DataFrame({"size": [*levels, "unheard of"]}), "--contributions")
    assert outcome["prediction"] == pytest.approx([0, 2, 4, 2], abs=0.2)
    assert (
        "1 without a rank, such as 'unheard of' (treated as the median of the training rows, 1)"
        in outcome["notes"][0]
    )
    result = run("export", tmp_path / "m", tmp_path / "m.sql")
    assert result.exit_code == 0 and f"= '{levels[2]}'" in (tmp_path / "m.sql").read_text()


def test_an_order_is_overruled(tmp_path):
    frame = pd.DataFrame(
        {"size": np.array(["low", "medium", "high"])[RANK], "y": 5.0 * (RANK == 1) + 0.1 * NOISE}
    )
    record, _ = select(tmp_path, frame, 1, "--as", "size=category")
    assert record["selected"][0]["kind"] == "category"
    record, _ = select(tmp_path, frame, 1, "--as", "size=medium<low<high")
    assert record["selected"][0]["ranks"] == ["medium", "low", "high"]


@pytest.mark.parametrize(
    "levels", [("red", "green", "blue"), ("low", "high"), ("Low", "low", "high"), ("1", "2", "3")]
)
def test_other_levels_stay(tmp_path, levels):
    frame = pd.DataFrame(
        {"a": np.array(levels)[RANK % len(levels)], "x": NOISE, "y": 2.0 * RANK + 0.1 * NOISE}
    )
    record, message = select(tmp_path, frame, 1)
    assert record["selected"][0]["kind"] in ("category", "number") and "ordinal" not in message


def test_a_score_card_names_the_level(tmp_path):
    words = np.array(["low", "medium", "high"])[RANK]
    frame = pd.DataFrame(
        {"size": words, "x": NOISE, "y": np.where(RANK + 0.3 * NOISE > 1.5, "yes", "no")}
    )
    record, _ = select(tmp_path, frame, 1, "--card")
    assert record["card"]["rules"][0]["rule"] == "size >= high"


# -- logarithms ------------------------------------------------------------------------------------

INCOME = np.exp(RNG.normal(7, 1.2, N)).round(2)


def test_a_logarithm_is_taken_where_it_says_more(tmp_path):
    frame = pd.DataFrame({"income": INCOME, "x": NOISE, "y": 2.0 * np.log(INCOME) + 0.1 * NOISE})
    options = (
        "--out",
        tmp_path / "m",
        "--table",
        tmp_path / "o.csv",
        "--report",
        tmp_path,
        "--test",
        tmp_path / "t.csv",
    )
    record, message = select(tmp_path, frame, 1, *options)
    (column,) = record["selected"]
    assert (column["name"], column["form"]) == ("income", "log") and column[
        "coefficient"
    ] == pytest.approx(2, abs=0.02)
    assert min(record["scores"][name]["R2"] for name in ("selected", "test")) > 0.99
    assert (
        "of skewed positive numbers, replaced by their logarithms" in message
        and "(override: --as COLUMN=number): income" in message
    )
    assert "log(income)" in (tmp_path / "select.html").read_text() and list(
        pd.read_csv(tmp_path / "o.csv")
    ) == ["income", "y"]
    result = predict(
        tmp_path, pd.DataFrame({"income": [np.e**7, np.e**8, -1.0]}), "--contributions"
    )
    assert result["prediction"][:2] == pytest.approx([14, 16], abs=0.1)
    assert result["prediction"][2] == pytest.approx(2 * np.log(np.median(INCOME)), abs=0.1)
    assert result["score"] == pytest.approx(result["prediction"])
    assert "1 without a number above 0, such as '-1'" in result["notes"][0]
    assert (
        run("export", tmp_path / "m", tmp_path / "m.sql").exit_code == 0
        and "LN(" in (tmp_path / "m.sql").read_text()
    )
    assert "log(income)" in run("select", tmp_path / "t.csv", "--target", "y", "-k", 1).stdout


@pytest.mark.parametrize(
    "options",
    [(), ("--as", "income=number"), ("--bounds", "income=0:"), ("--response", "piecewise")],
)
def test_the_number_itself_is_taken_where_it_says_more_or_is_asked_for(tmp_path, options):
    target = np.log(INCOME) if options else INCOME / 1000
    record, _ = select(
        tmp_path,
        pd.DataFrame({"income": INCOME, "x": NOISE, "y": target + 0.1 * NOISE}),
        1,
        *options,
    )
    assert names(record) == ["income"] and "form" not in record["selected"][0]


def test_a_logarithm_tells_classes_apart(tmp_path):
    frame = pd.DataFrame(
        {
            "income": INCOME,
            "x": NOISE,
            "y": np.where(np.log(INCOME) + 0.3 * NOISE > 7, "rich", "poor"),
        }
    )
    record, _ = select(tmp_path, frame, 1)
    assert record["selected"][0]["form"] == "log"


# -- the report and the time left ------------------------------------------------------------------


@pytest.mark.parametrize("classes", [False, True])
def test_the_pair_whose_product_adds_most(tmp_path, classes):
    a, b, c = RNG.normal(size=(3, N))
    score = a + b + c + 2.0 * a * c
    frame = pd.DataFrame(
        {"a": a, "b": b, "c": c, "y": np.where(score > 0, "yes", "no") if classes else score}
    )
    record, _ = select(tmp_path, frame, 3, "--report", tmp_path)
    assert sorted(record["interaction"]["columns"]) == ["a", "c"] and record["interaction"][
        "gain"
    ] > (0.05 if classes else 0.3)
    line = "Strongest interaction of two numeric columns: the product of "
    assert line in (tmp_path / "select.html").read_text() and "interaction" in json.loads(
        (tmp_path / "select.json").read_text()
    )
    record, _ = select(tmp_path, frame, 3)
    assert record["interaction"] is None  # refits are for reports


def test_long_work_says_the_time_left(tmp_path, monkeypatch):
    clock = iter(range(0, 10**6, 12))
    monkeypatch.setattr(
        "annealed.learners.common.progress.time.monotonic", lambda: float(next(clock))
    )
    frame = pd.DataFrame({"a": NOISE, "y": NOISE})
    _, message = select(tmp_path, frame, 1)
    assert "sizes: 1 of 5 after 12 s, about 48 s left" in message
    assert (
        "left" not in run("select", tmp_path / "t.csv", "--target", "y", "-k", 1, "--quiet").stderr
    )


def test_months_stand_in_their_order(tmp_path):
    frame = pd.DataFrame(
        {"day": DAYS.strftime("%Y-%m-%d"), "y": 5.0 * (DAYS.month == 6) + 0.1 * NOISE}
    )
    record, _ = select(tmp_path, frame, 1)
    levels = [entry["level"] for entry in record["selected"][0]["levels"]]
    assert levels == [
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "May",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Oct",
        "Nov",
        "Dec",
    ]
