"""Decisions on small tables, typed here, as an analyst would take them; each is said in a line."""

import json

import numpy as np
import pandas as pd
import pytest
from annealed.models.files import read_model, write_model
from annealed.models.tabular.encoding import TableEncoding
from annealed.models.tabular.fitting.settings import guess_task
from annealed.models.tabular.fitting.table import Table
from annealed.models.tabular.fitting.validation import HeldOut, folds, measures
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.tables import read_table
from helpers import run

HEIGHT = list(range(58, 73))  # of women, and their weight: McNeil, Interactive Data Analysis, 1977
WEIGHT = [115, 117, 120, 123, 126, 129, 132, 135, 139, 142, 146, 150, 154, 159, 164]
LONGLEY = """GNP,Unemployed,Year,Employed
234.289,235.6,1947,60.323
259.426,232.5,1948,61.122
258.054,368.2,1949,60.171
284.599,335.1,1950,61.187
328.975,209.9,1951,63.221
346.999,193.2,1952,63.639
365.385,187.0,1953,64.989
363.112,357.8,1954,63.761
397.469,290.4,1955,66.019
419.180,282.2,1956,67.857
442.769,293.6,1957,68.169
444.546,468.1,1958,66.513
482.704,381.3,1959,68.655
502.601,393.1,1960,69.564
518.173,480.6,1961,69.331
554.894,400.7,1962,70.551
"""
rng = np.random.default_rng(0)
N = 60
X = np.round(rng.normal(size=N), 3)


def select(tmp_path, frame, target, k=1, *options):
    """Return the record, and stderr."""
    if isinstance(frame, str):
        (tmp_path / "t.csv").write_text(frame)
    else:
        frame.to_csv(tmp_path / "t.csv", index=False)
    result = run("select", tmp_path / "t.csv", "--target", target, "-k", k, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def names(record):
    return [column["name"] for column in record["selected"]]


# -- ids -------------------------------------------------------------------------------------------


def test_height_of_women_is_no_id(tmp_path):
    women = pd.DataFrame({"rownames": range(1, 16), "height": HEIGHT, "weight": WEIGHT})
    record, stderr = select(tmp_path, women, "weight", "auto")
    assert names(record) == ["height"] and record["scores"]["selected"]["R2"] > 0.98
    assert "1 column dropped, row numbers (override: --include COLUMN): rownames" in stderr
    assert [out["name"] for out in record["left_out"]] == ["rownames"]
    record, _ = select(tmp_path, women, "weight", 2, "--include", "rownames")
    assert set(names(record)) == {"rownames", "height"}


def test_years_are_kept(tmp_path):
    record, _ = select(tmp_path, LONGLEY, "Employed", 3)
    assert set(names(record)) == {"GNP", "Unemployed", "Year"} and not record["left_out"]


# numbers of rows, some of which were dropped
GAPS = np.delete(np.arange(1, N + 6), [3, 9, 20, 40, 41])


@pytest.mark.parametrize(
    "name, values, first, out",
    [
        ("rownames", GAPS, False, True),
        ("Unnamed: 0", GAPS, True, True),
        ("ID", GAPS[::-1], False, True),
        ("Index", GAPS, True, True),
        ("obs", GAPS * 1.0, False, True),
        ("customer_id", GAPS * 17, False, True),
        ("t", np.arange(N), True, True),
        ("t", np.arange(1, N + 1), True, True),
        ("t", np.arange(1, N + 1), False, False),  # counts, but does not stand first
        ("t", np.arange(1, N + 1)[::-1], True, False),
        ("rank", rng.permutation(N) + 1, True, False),
        ("year", np.arange(1900, 1900 + N), True, False),
        ("id", GAPS // 2, False, False),  # of pairs of rows
        ("id", GAPS + 0.5, False, False),
        ("paid", GAPS, False, False),
        ("age", GAPS, True, False),
    ],
)
def test_what_numbers_the_rows(tmp_path, name, values, first, out):
    columns = {name: values, "x": X} if first else {"x": X, name: values}
    pd.DataFrame(columns).assign(y=X + rng.normal(size=N)).to_csv(tmp_path / "t.csv", index=False)
    assert (name in read_table(tmp_path / "t.csv", Request("y")).left_out) == out


def test_rows_without_target_do_not_hide_an_id(tmp_path):
    y = np.where(np.arange(N) % 9 == 4, np.nan, X)
    pd.DataFrame({"n": range(N), "x": X, "y": y}).to_csv(tmp_path / "t.csv", index=False)
    assert "n" in read_table(tmp_path / "t.csv", Request("y")).left_out


def test_text_ids_are_left_out(tmp_path):
    people = pd.DataFrame(
        {"id": [f"P{i:04d}" for i in range(N)], "x": X, "y": ["a"] * 30 + ["b"] * 30}
    )
    record, stderr = select(tmp_path, people, "y")
    assert names(record) == ["x"]
    assert (
        "1 column dropped, text that identifies the rows, 60 distinct values in 60 rows "
        "(override: --as COLUMN=category): id"
    ) in stderr


def test_a_level_needs_two_rows(tmp_path):
    words = [f"w{i // 2}" for i in range(20)] + [f"v{i}" for i in range(10)]
    pd.DataFrame({"word": words, "y": X[:30]}).to_csv(tmp_path / "t.csv", index=False)
    (column,) = read_table(tmp_path / "t.csv", Request("y")).encoding.columns
    assert {column.reference, *column.levels} == {*(f"w{i}" for i in range(10)), "(other)"}
    np.testing.assert_allclose(column.shares, [2 / 30] * 9 + [10 / 30])


# -- numbers and dates -----------------------------------------------------------------------------

PEOPLE = rng.integers(900, 900_000, N)
DAYS = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.permutation(365)[:N], "D")
Y = PEOPLE / 1e5 + (DAYS - DAYS.min()).days.to_numpy() / 100


def test_thousands_separators(tmp_path):
    table = pd.DataFrame({"people": [f"{p:,}" for p in PEOPLE], "x": X, "y": Y})
    record, stderr = select(tmp_path, table, "y", 1, "--out", tmp_path / "m")
    assert names(record) == ["people"] and record["selected"][0]["kind"] == "number"
    assert (
        f"1 column of numbers with thousands separators, such as {PEOPLE[0]:,} (override: "
        "--as COLUMN=category): people"
    ) in stderr
    same = []
    for text in (
        'people\n"2,523"\n"1,234,567"\n17\n',
        "people\n2523\n1234567\n17\n",
        "people;x\n2,523;1\n1,234,567;1\n17;1\n",
    ):
        (tmp_path / "new.csv").write_text(text)
        result = run("predict", tmp_path / "m", tmp_path / "new.csv", "--json")
        separated = ["new.csv: detected the separator ';' instead of ','"] if ";" in text else []
        assert json.loads(result.stdout)["notes"] == separated, result.output
        same.append(json.loads(result.stdout)["prediction"])
    assert same[0] == same[1] == same[2]
    (tmp_path / "new.csv").write_text("people;x\n2,523;1\n")  # alone it could be a decimal comma
    assert (
        json.loads(run("predict", tmp_path / "m", tmp_path / "new.csv", "--json").stdout)[
            "prediction"
        ]
        == same[0][:1]
    )


def test_thousands_in_the_target_and_what_is_none(tmp_path):
    pd.DataFrame({"x": PEOPLE, "y": [f"{p:,}" for p in PEOPLE]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    table = read_table(tmp_path / "t.csv", Request("y"))
    np.testing.assert_array_equal(table.y, PEOPLE)
    assert "the target 'y' contains numbers with thousands separators" in table.notes
    # decimal commas between quotes, of which one looks like the other kind
    cells = ["1,5", "2,523", "3,1"] * 20
    pd.DataFrame({"x": X, "odd": cells, "y": Y}).to_csv(tmp_path / "t.csv", index=False)
    result = read_table(tmp_path / "t.csv", Request("y")).encoding.columns
    assert {column.name: column.kind for column in result}["odd"] == "category"


def test_new_cells_with_a_comma_are_no_thousands_where_training_had_none(tmp_path):
    table = pd.DataFrame({"x": X, "y": 3.0 * X + 0.1 * rng.normal(size=N)})
    select(tmp_path, table, "y", 1, "--out", tmp_path / "m")
    (tmp_path / "new.csv").write_text('x\n"1,025"\n0.5\n')
    record = json.loads(run("predict", tmp_path / "m", tmp_path / "new.csv", "--json").stdout)
    assert record["prediction"][0] < 100.0
    assert any("without a number, such as '1,025'" in note for note in record["notes"])


def test_decimal_commas_are_no_thousands(tmp_path):
    cells = [f"{p / 1000:.3f}".replace(".", ",") for p in PEOPLE]
    frame = pd.DataFrame({"good": cells, "bad": ["?", *cells[1:]], "y": X})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    table = read_table(tmp_path / "t.csv", Request("y"))
    np.testing.assert_allclose(table.X[1:, 0], PEOPLE[1:] / 1000)
    np.testing.assert_allclose(table.X[1:, 1], PEOPLE[1:] / 1000)


@pytest.mark.parametrize(
    "order, style",
    [("dayfirst", "%d/%m/%Y"), ("monthfirst", "%m/%d/%Y"), ("dayfirst", "%d.%m.%Y 12:00")],
)
def test_dates_in_two_orders(tmp_path, order, style):
    table = pd.DataFrame({"day": DAYS.strftime(style), "x": X, "y": Y - PEOPLE / 1e5})
    record, stderr = select(tmp_path, table, "y", 1, "--out", tmp_path / "m")
    assert names(record) == ["day"] and record["selected"][0]["kind"] == "date"
    assert (
        f"1 column of dates such as {table['day'][0]}, read as {order} (override: --dates)"
        in stderr
    )
    (tmp_path / "new.csv").write_text(
        f"day\n{pd.Timestamp('2019-02-03').strftime(style)}\n2019-02-03{style[8:]}\n"
    )
    result = json.loads(run("predict", tmp_path / "m", tmp_path / "new.csv", "--json").stdout)
    assert result["prediction"][0] == pytest.approx(result["prediction"][1]) and not result["notes"]


def test_dates_that_could_be_both_are_asked_for(tmp_path):
    day, month = rng.integers(1, 13, (2, N))
    table = pd.DataFrame(
        {
            "day": [f"{d:02d}/{m:02d}/2019" for d, m in zip(day, month)],
            "x": X,
            "y": 30 * month + day,
        }
    )
    record, stderr = select(tmp_path, table, "y")
    assert (
        names(record) == ["x"] and "expected --dates dayfirst or --dates monthfirst: day" in stderr
    )
    for order, better in (("dayfirst", True), ("monthfirst", False)):
        record, _ = select(tmp_path, table, "y", 1, "--dates", order)
        assert (record["scores"]["all columns"]["R2"] > 0.9) == better


# -- targets ---------------------------------------------------------------------------------------


def test_a_class_of_one_row_is_put_aside(tmp_path):
    kind = np.array(["x"] * 50 + ["z"] * 49 + ["one"])
    b = (kind == "x") * 2 + rng.normal(size=100)
    record, stderr = select(
        tmp_path, pd.DataFrame({"a": rng.normal(size=100), "b": b, "kind": kind}), "kind", "auto"
    )
    assert names(record) == ["b"] and record["n_rows"] == 99
    assert "class one has only one row (row 100), which was dropped" in stderr
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i % 3},x\n" for i in range(9)) + "5,y\n")
    result = run("select", tmp_path / "t.csv", "--target", "y", "-k", "auto")
    assert (
        result.exit_code == 2
        and "-k auto: the single row of class y is too few for cross-validation" in result.stderr
    )


def test_numbers_taken_as_classes_or_not(tmp_path):
    assert (
        guess_task(np.arange(8)) == "regression"
        and guess_task(np.repeat(np.arange(8), 2)) == "classification"
    )
    record, stderr = select(tmp_path, pd.DataFrame({"x": np.arange(8) ** 2, "y": range(8)}), "y")
    assert (
        record["task"] == "regression"
        and "the target has 8 distinct numbers in 8 rows, too many for classes" in stderr
    )
    doses = pd.DataFrame({"x": X, "y": np.arange(N) % 6})
    record, stderr = select(tmp_path, doses, "y")
    assert record["task"] == "classification"
    assert (
        "the 6 distinct numbers of the target are treated as classes (override: --task regression)"
        in stderr
    )
    assert (
        "treated as classes" not in select(tmp_path, doses, "y", 1, "--task", "classification")[1]
    )


def test_scores_are_those_of_all_held_out_rows_together(tmp_path):
    # two rows a fold
    frame = pd.DataFrame({"x": X[:9], "y": np.round(X[:9] * 3 + rng.normal(size=9), 2)})
    record, _ = select(tmp_path, frame, "y")
    y, held_out = frame["y"].to_numpy(), np.empty(9)
    for train, test in folds(Table(y[:, None], y, TableEncoding(())), "regression"):
        held_out[test] = y[train].mean()
    assert record["scores"]["baseline"] == pytest.approx(
        measures("regression", HeldOut(y, held_out))
    )
    (size,) = record["path"]
    assert size["score"] == pytest.approx(record["scores"]["selected"]["R2"])


# -- prediction ------------------------------------------------------------------------------------

CITY = np.repeat(["Rome", "Oslo", "Bonn"], [40, 24, 16])
AGE = np.tile(np.arange(20, 60, 2), 4)


@pytest.fixture(params=["linear", "piecewise"])
def city_model(tmp_path, request):
    frame = pd.DataFrame(
        {"age": AGE, "city": CITY, "y": 0.1 * AGE + 3.0 * (CITY == "Oslo") - 2.0 * (CITY == "Bonn")}
    )
    select(tmp_path, frame, "y", 2, "--out", tmp_path / "m", "--response", request.param)
    return tmp_path / "m"


def predict(model, text, *options):
    table = model.parent / "new.csv"
    table.write_text(text)
    result = run("predict", model, table, "--json", *options)
    return result, json.loads(result.stdout)


def test_predict_says_what_it_does_not_know(city_model):
    result, outcome = predict(
        city_model,
        "age,city\nforty,Rome\n50,Paris\n50,\n50, Rome \n,Oslo\n50,Rome\n50,Oslo\n50,Bonn\n",
    )
    assert result.stderr.splitlines() == ["annealed: " + note for note in outcome["notes"]]
    age, city = outcome["notes"]
    fill = "the median of the training rows, 39" if "median" in age else "missing"
    assert age == (
        f"column 'age', 8 cells: 1 without a number, such as 'forty' (treated as {fill}); 1 "
        f"empty (treated as {fill})"
    )
    assert (
        "1 with a value that the model does not know, such as 'Paris' (treated as the mean "
        "of the levels)"
    ) in city
    p = outcome["prediction"]
    mean = 0.5 * p[5] + 0.3 * p[6] + 0.2 * p[7]  # by the rows of training
    assert (
        p[1] == pytest.approx(mean)
        and p[2] == p[1]
        and p[3] == p[5]
        and p[6] - p[5] == pytest.approx(3.0, abs=0.1)
    )


def test_predict_without_doubt_says_nothing(city_model):
    result, outcome = predict(city_model, "age,city\n50,Rome\n")
    assert outcome["notes"] == [] and result.stderr == ""


def test_a_column_without_a_number_is_refused(city_model):
    result, outcome = predict(city_model, "age,city\nzzz,Rome\nzzz,Oslo\n,Oslo\n")
    assert (
        result.exit_code == 2
        and "column 'age' contains values such as 'zzz'; expected numbers" in outcome["error"]
    )


def test_an_empty_column_is_refused_unless_it_may_be(city_model):
    result, outcome = predict(city_model, "age,city\n,Rome\n,Oslo\n")
    assert result.exit_code == 2
    assert (
        "column 'age' is empty in all 2 rows; use --allow-empty to predict from the other columns"
        in outcome["error"]
    )
    result, outcome = predict(city_model, "age,city\n,Rome\n,Oslo\n", "--allow-empty")
    assert (
        result.exit_code == 0
        and ("column 'age', 2 cells: 2 empty (treated as") in outcome["notes"][0]
    )
    result, outcome = predict(city_model, "age,city\n,Rome\n")  # one person whose age is not known
    assert result.exit_code == 0 and "1 empty" in outcome["notes"][0]


def test_rare_and_missing_levels_take_the_unknown(tmp_path):
    words = np.array(["a"] * 30 + ["b"] * 25 + ["c", "d", "e"] + [""] * 2)
    frame = pd.DataFrame({"word": words, "y": 2.0 * (words == "b") + 5.0 * (words == "")})
    select(tmp_path, frame, "y", 1, "--out", tmp_path / "m")
    _, result = predict(tmp_path / "m", "word,x\nc,1\nnew,1\n,1\n")
    assert result["prediction"][0] == result["prediction"][1] != result["prediction"][2]
    assert (
        "treated as the level (other)" in result["notes"][0]
        and "1 empty (treated as the level (missing))" in result["notes"][0]
    )


def test_files_from_before_there_were_shares(city_model):
    arrays, header = read_model(city_model, "tabular model")
    for column in header["encoding"]:
        del column["shares"], column["style"]
    kept = {key: value for key, value in header.items() if key not in ("format", "version", "kind")}
    write_model(city_model, "tabular model", arrays, kept)
    _, result = predict(city_model, "age,city\n50,Paris\n50,Rome\n")
    assert result["prediction"][0] == result["prediction"][1]


def test_separators_of_several_characters(tmp_path):
    (tmp_path / "t.csv").write_text(
        "a\ty\n" + "".join(f"{i % 7}\t{i % 7 + i % 3 / 10}\n" for i in range(20))
    )
    result = run("select", tmp_path / "t.csv", "--target", "y", "-k", 1, "--sep", "//")
    assert (
        result.exit_code == 2
        and result.stderr == "annealed: --sep // is not valid; expected a single character\n"
    )
    assert (
        run("select", tmp_path / "t.csv", "--target", "y", "-k", 1, "--sep", r"\t").exit_code == 0
    )
