"""Tables as analysts have them: text, dates, gaps, identifiers, other separators and encodings; and
what is said about them."""

import json

import numpy as np
import pandas as pd
import pytest
from annealed.models import load_model
from annealed.models.tabular import encoding
from annealed.models.tabular.encoding import TableEncoding
from annealed.models.tabular.fitting import frames
from annealed.models.tabular.fitting import table as tables_encoding
from annealed.models.tabular.fitting.table import Table
from annealed.pipelines.tabular import tables
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file
from annealed.pipelines.tabular.tables import read_table
from helpers import run
from pyarrow import parquet


def passengers(n=400, seed=0):
    """Text, categories, dates, gaps, identifiers and a constant; the target depends on sex, class
    and age."""
    rng = np.random.default_rng(seed)
    sex, pclass = rng.choice(["male", "female"], n), rng.choice([1, 2, 3], n)
    age = np.round(rng.uniform(1, 80, n))
    f = 3.0 * (sex == "female") - 1.5 * (pclass - 2) - 0.05 * (age - 40) - 1.5
    frame = pd.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "name": [f"Passenger {i}" for i in rng.permutation(n)],
            "class": pclass,
            "sex": sex,
            "age": age,
            "port": rng.choice(["S", "C", "Q"], n, p=[0.7, 0.2, 0.1]),
            "ship": "Titanic",
            "boarded": (
                pd.Timestamp("1912-04-10") + pd.to_timedelta(rng.integers(0, 9, n), "D")
            ).astype(str),
            "fare": rng.gamma(2.0, 10.0, n).astype(object),
            "survived": np.where(rng.random(n) < 1 / (1 + np.exp(-f)), "yes", "no"),
        }
    )
    frame.loc[rng.random(n) < 0.15, "age"] = np.nan
    frame.loc[[3, 9, 11], "port"] = None
    frame.loc[[5, 6], "fare"] = "?"
    frame.loc[7, "fare"] = np.inf
    return frame


@pytest.fixture
def path(tmp_path):
    passengers().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def kinds(table):
    return {column.name: (column.kind, column.levels) for column in table.encoding.columns}


def test_what_becomes_of_each_column(path):
    table = read_table(path, Request("survived"))
    assert kinds(table) == {
        "class": ("number", ()),
        "sex": ("category", ("male",))
        if passengers()["sex"].value_counts().index[0] == "female"
        else ("category", ("female",)),
        "age": ("number", ()),
        "port": ("category", ("C", "Q", "(missing)")),
        "boarded": ("date", ()),
        "fare": ("number", ()),
    }
    assert table.left_out == {
        "id": "row numbers (override: --include COLUMN)",
        "name": (
            "text that identifies the rows, 400 distinct values in 400 rows (override: --as "
            "COLUMN=category)"
        ),
        "ship": "constant",
    }
    text = "; ".join(table.notes)
    assert (
        "cells that are not numbers, such as '?'" in text
        and "read as days since 1970-01-01: boarded" in text
    )
    assert not np.isnan(table.X).any() and table.X.shape == (400, 8)
    assert table.X[:, table.encoding.labels.index("port=(missing)")].sum() == 3


def test_selected_with_score_report_table_and_model(path, tmp_path):
    folder = tmp_path / "report"
    saved, out = tmp_path / "m.safetensors", tmp_path / "chosen.tsv"
    options = ("--report", folder, "--out", saved, "--table", out, "--exclude", "boarded", "--json")
    result = run("select", path, "--target", "survived", "-k", 3, *options)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert {s["name"] for s in record["selected"]} == {"sex", "class", "age"}
    assert record["scores"]["selected"]["accuracy"] > record["scores"]["baseline"]["accuracy"] + 0.1
    assert {"name": "boarded", "reason": "named by --exclude"} in record["left_out"]
    page = (folder / "select.html").read_text()
    assert (
        page.count("<svg") >= 5
        and "http" not in page
        and "src=" not in page
        and "Passenger" not in page
    )
    assert json.loads((folder / "select.json").read_text())["rows"] == record["selected"]
    chosen = pd.read_csv(out, sep="\t")
    assert set(chosen.columns) == {"sex", "class", "age", "survived"} and len(chosen) == 400

    model = load_model(saved)
    frame = pd.read_csv(path)
    predicted = model.predict(frame)
    assert np.mean(predicted == frame["survived"]) > 0.7
    result = run("predict", saved, out, "--json")
    answer = json.loads(result.stdout)
    assert answer["prediction"] == predicted.tolist()
    np.testing.assert_allclose(
        np.add(answer["probability of no"], answer["probability of yes"]), 1.0
    )
    assert run("predict", saved, path).stdout.startswith(
        "prediction,probability of no,probability of yes\n"
    )
    assert "tabular model" in run("models", "show", saved).stdout


def test_piecewise_responses_keep_gaps(path, tmp_path):
    result = run(
        "select",
        path,
        "--target",
        "survived",
        "-k",
        4,
        "--response",
        "piecewise",
        "--json",
        "--report",
        tmp_path / "r",
    )
    assert result.exit_code == 0, result.output
    (age,) = [s for s in json.loads(result.stdout)["selected"] if s["name"] == "age"]
    assert len(age["curve"]["x"]) == len(age["curve"]["y"]) and age["curve"]["missing"] is not None
    assert "with missing values, which have a separate response: age" in result.stderr


def test_unknown_levels_and_missing_columns_in_prediction(path, tmp_path):
    saved = tmp_path / "m.safetensors"
    assert run("select", path, "--target", "survived", "-k", 3, "--out", saved).exit_code == 0
    frame = passengers().drop(columns="survived").head(5)
    frame.loc[0, "sex"] = "other"
    frame.loc[1, "age"] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert (
        len(json.loads(run("predict", saved, tmp_path / "new.csv", "--json").stdout)["prediction"])
        == 5
    )
    frame.drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", saved, tmp_path / "new.csv", "--json")
    assert (
        result.exit_code == 2
        and "new.csv: the table has no column 'sex', which the model requires" in result.stderr
    )
    assert "error" in json.loads(result.stdout)


@pytest.mark.parametrize(
    "sep, name, encoding",
    [(";", "t.csv", None), ("\t", "t.csv", None), ("|", "t.csv", None), (";", "t.csv", "latin-1")],
)
def test_separators_and_encodings(tmp_path, sep, name, encoding):
    frame = passengers().rename(columns={"age": "âge"})
    frame["price"] = [f"{v:.2f}".replace(".", ",") for v in np.linspace(0, 5, len(frame))]
    frame.to_csv(tmp_path / name, index=False, sep=sep, encoding=encoding or "utf-8")
    table = read_table(tmp_path / name, Request("survived", encoding=encoding))
    assert {"âge", "price"} <= set(table.names) and kinds(table)["price"] == ("number", ())
    assert f"detected the separator {sep!r}" in table.notes[0]
    if encoding:
        result = run("select", tmp_path / name, "--target", "survived", "-k", 1)
        assert result.exit_code == 2 and "set --encoding, for example to latin-1" in result.stderr


def csv(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    return tmp_path / "t.csv"


def rows(*cells):
    return "\n".join(cells) + "\n"


NUMBERS = [f"{i % 7},{i * 0.37:.2f},{(i * i) % 11}" for i in range(40)]


@pytest.mark.parametrize(
    "text, options, message",
    [
        (
            rows("a,y,b", *NUMBERS[:17], "1,?,2", *NUMBERS),
            (),
            "1 of 58 cells of the target 'y' is not a number, such as '?' in row 18",
        ),
        (
            rows("a,y,b", *NUMBERS, "1,inf,2"),
            (),
            "t.csv: the target 'y' contains infinity in row 41",
        ),
        (
            rows("a,y", *(f"{i % 7},2020-01-{i % 28 + 1:02d}" for i in range(40))),
            (),
            "contains dates such as '2020-01-01'",
        ),
        (
            rows("a,y", *(f"{i % 7},w{i}" for i in range(40))),
            (),
            "40 distinct labels in 40 rows; expected several rows",
        ),
        (rows("y,y,b", *NUMBERS), (), "two columns have the name 'y'"),
        (rows("a,y,a", *NUMBERS), (), "two columns have the name 'a'"),
        (
            rows("a,y,b", *NUMBERS),
            ("--exclude", "z"),
            "column 'z' for --exclude does not exist; the columns are a, b",
        ),
        (
            rows("a,y,b", *NUMBERS),
            ("--row-groups", "z"),
            "column 'z' for --row-groups does not exist",
        ),
        (rows("a,y,b", *NUMBERS), ("--encoding", "utf-99"), "expected a known encoding"),
        (
            rows("a,y,b", *NUMBERS),
            ("--table", "x.xls"),
            "--table x.xls is not valid; expected a file name that ends in .csv",
        ),
        (
            rows("a,y,b", *NUMBERS),
            ("-k", "many"),
            "-k many is not valid; expected an integer >= 1 or auto",
        ),
        (
            rows("a,y,b", "1,2,3", "3,4,9"),
            ("-k", "auto"),
            "2 rows are too few for cross-validation",
        ),
    ],
)
def test_bad_tables(tmp_path, text, options, message):
    result = run("select", csv(tmp_path, text), "--target", "y", "-k", 1, *options, "--json")
    assert result.exit_code == 2 and message in result.stderr, result.output
    assert message in json.loads(result.stdout)["error"] and "Traceback" not in result.output


@pytest.mark.parametrize("large", [False, True])
def test_rows_that_end_in_a_separator(tmp_path, monkeypatch, large):
    if large:
        monkeypatch.setattr(tables, "_SMALL", 0)
        monkeypatch.setattr(tables, "_MIN_ROWS", 7)
        monkeypatch.setattr(tables, "BLOCK", 1)
    X = np.random.default_rng(0).integers(-9, 9, (60, 3))
    lines = [f"{3 * a - b + 0.01 * c:.2f},{a},{b},{c}," for a, b, c in X]
    csv(tmp_path, rows("y,a,b,c", *lines))
    message = "t.csv: the rows, unlike the header, end with a separator"
    options = ("--out", tmp_path / "m", "--table", tmp_path / "o.csv", "--json")
    result = run("select", tmp_path / "t.csv", "--target", "y", "-k", 2, *options)
    record = json.loads(result.stdout)
    assert {column["name"] for column in record["selected"]} == {"a", "b"} and record["scores"][
        "selected"
    ]["R2"] > 0.99
    assert message in result.stderr and any(message in line for line in record["notes"])
    assert pd.read_csv(tmp_path / "o.csv")["y"][0] == float(lines[0].split(",")[0])
    csv(tmp_path, rows("a,b,c", "1,0,0,", "0,1,0,", "2,0,0,"))
    result = run("predict", tmp_path / "m", tmp_path / "t.csv", "--json")
    record = json.loads(result.stdout)
    assert record["prediction"] == pytest.approx([3, -1, 6], abs=0.2)
    assert message in result.stderr and message in record["notes"][0]
    record = json.loads(
        run(
            "predict", tmp_path / "m", csv(tmp_path, rows("a,b,c", "1,0,0", "0,1,0")), "--json"
        ).stdout
    )
    assert not record["notes"]


def test_rows_with_one_cell_more(tmp_path):
    named = csv(
        tmp_path, rows("a,y,b", *(f'"{i}",{line}' for i, line in enumerate(NUMBERS)))
    )  # as R writes them
    record = json.loads(run("select", named, "--target", "y", "-k", 1, "--json").stdout)
    assert (
        "one cell more than the header; the first cell is treated as the row name"
        in record["notes"][0]
    )
    assert read_table(named, Request("y")).X[:, 0].tolist() == [i % 7 for i in range(40)]
    for lines in (
        [f"{line},9" for line in NUMBERS],
        [f"{i / 3},{line}" for i, line in enumerate(NUMBERS)],
    ):
        result = run("select", csv(tmp_path, rows("a,y,b", *lines)), "--target", "y", "-k", 1)
        assert (
            result.exit_code == 2
            and "rows have 4 cells; expected 3, as in the header" in result.stderr
        )


def test_lists_are_left_out(tmp_path):
    frame = pd.DataFrame(
        {
            "a": np.arange(40.0) ** 2,
            "l": [[1.0, 2.0]] * 39 + [None],
            "d": [{"x": i} for i in range(40)],
            "y": np.arange(40.0),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", Request("y"))
    assert table.names == ["a"] and table.left_out == dict.fromkeys(
        "ld", "neither numbers, dates nor text"
    )
    result = run("select", tmp_path / "t.parquet", "--target", "y", "-k", 1, "--include", "l")
    assert (
        result.exit_code == 2
        and "--include l: this column cannot be used (neither numbers, dates nor text)"
        in result.stderr
    )


def test_columns_that_must_stay(path):
    options = ("--target", "survived", "--json", "--include", "port")
    for k in (2, "auto"):
        record = json.loads(run("select", path, "-k", k, *options).stdout)
        assert {"port", "sex"} <= {s["name"] for s in record["selected"]}
    for more, message in (
        (("-k", 1, "--include", "age"), "--include names 2 columns"),
        (("-k", 2, "--include", "ship"), "--include ship: this column cannot be used (constant)"),
        (("-k", 2, "--exclude", "port"), "column 'port' is named by both --include and --exclude"),
    ):
        result = run("select", path, *options, *more)
        assert result.exit_code == 2 and message in result.stderr, result.output


def test_no_output_replaces_the_table(tmp_path):
    table = csv(tmp_path, rows("a,y,b", *NUMBERS))
    for option in ("--table", "--out"):
        result = run("select", table, "--target", "y", "-k", 1, option, table)
        assert result.exit_code == 2 and "is an input of this command" in result.stderr
    result = run("predict", table, table)
    assert result.exit_code == 2 and "not a safetensors file" in result.stderr


def test_names_with_blanks_row_numbers_and_large_identifiers(tmp_path):
    frame = pd.DataFrame({"": range(40), " y": np.arange(40) % 7, "b ": np.arange(40) % 5})
    frame["key"] = [2**63 - 1 - i for i in range(40)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", Request("y"))
    assert table.names == ["b"]
    assert (
        "2 columns dropped, row numbers (override: --include COLUMN): Unnamed: 0, key"
        in table.notes
    )


def test_queries_of_svmlight_group_the_rows(tmp_path):
    lines = [f"{i % 2} qid:{i // 10} 1:{i % 7} 2:{(i * i) % 5 + i % 2}" for i in range(60)]
    (tmp_path / "t.svm").write_text("\n".join(lines))
    table = read_table(tmp_path / "t.svm", Request(None))
    assert len(np.unique(table.row_groups)) == 6 and "are in the same fold" in table.notes[0]
    (tmp_path / "e.svm").write_text("")
    result = run("select", tmp_path / "e.svm", "-k", 1)
    assert result.exit_code == 2 and "e.svm: the table has no rows" in result.stderr


def test_matrix_model_predicts_npz_and_csv(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 9))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 2] - X[:, 5])
    np.savez(tmp_path / "t.npz", X=X, y=y, names=[f"g{j}" for j in range(9)])
    saved, out = tmp_path / "m.safetensors", tmp_path / "o.npz"
    assert run("select", tmp_path / "t.npz", "-k", 2, "--out", saved, "--table", out).exit_code == 0
    pd.DataFrame(X, columns=[f"g{j}" for j in range(9)]).to_csv(tmp_path / "t.csv", index=False)
    answers = [
        json.loads(run("predict", saved, tmp_path / name, "--json").stdout)["prediction"]
        for name in ("t.npz", "t.csv", "o.npz")
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-9)
    assert answers[0] == answers[2] and np.corrcoef(answers[0], y)[0, 1] > 0.95


def test_a_large_parquet_file_is_read_by_blocks_of_columns(tmp_path, monkeypatch):
    """Broken numbers in single precision where that is enough; all else as of a small file."""
    pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "broken": rng.standard_normal(50),
            "gaps": np.where(np.arange(50) % 7, rng.random(50), np.nan),
            "offset": 1e9 + rng.random(50),
            "whole": np.arange(50),
            "word": rng.choice(["a", "b"], 50),
            "day": pd.date_range("2020-01-01", periods=50),
            "kind": pd.Categorical(rng.choice(["x", "y"], 50)),
        },
        index=pd.Index(np.arange(50) + 3, name="row"),
    )
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=20)
    small = tables.read_frame(tmp_path / "table.parquet")
    monkeypatch.setattr(tables, "_SMALL", 0)
    monkeypatch.setattr(tables, "BLOCK", 150)  # three columns
    large = tables.read_frame(tmp_path / "table.parquet")
    assert list(large.columns) == list(small.columns) and len(large) == 50
    for name in frame.columns:
        narrow = name in ("broken", "gaps")
        assert large[name].dtype == (np.float32 if narrow else small[name].dtype)
        np.testing.assert_array_equal(
            large[name].to_numpy(),
            small[name].astype(np.float32 if narrow else small[name].dtype).to_numpy(),
        )


def test_columns_of_a_wide_parquet_file_are_read_in_parts(monkeypatch, tmp_path):
    """Each column takes several kilobytes until a read ends."""
    frame = pd.DataFrame(np.arange(10.0).reshape(2, 5), columns=list("edcba"))
    frame["word"] = ["u", "v"]
    frame.to_parquet(tmp_path / "table.parquet")
    whole = tables.read_frame(tmp_path / "table.parquet")
    widths, plain = [], parquet.ParquetFile.read
    monkeypatch.setattr(
        parquet.ParquetFile,
        "read",
        lambda file, columns, **options: (
            widths.append(len(columns)) or plain(file, columns=columns, **options)
        ),
    )
    monkeypatch.setattr(tables, "_TOGETHER", 4)
    pd.testing.assert_frame_equal(tables.read_frame(tmp_path / "table.parquet"), whole)
    assert widths == [4, 2]


def test_columns_of_numbers_are_decided_together_as_they_are_one_by_one(monkeypatch, tmp_path):
    rng, n = np.random.default_rng(0), 60
    frame = passengers(n).drop(columns=["boarded", "name"])
    for j in range(12):
        frame[f"x{j}"] = rng.standard_normal(n)
    frame["whole"], frame["flag"], frame["same"] = rng.integers(0, 9, n), rng.random(n) > 0.5, 7.0
    frame["gaps"], frame["infinite"] = (
        np.where(np.arange(n) % 9, frame.x0, np.nan),
        np.where(np.arange(n) == 5, np.inf, frame.x1),
    )
    frame["empty"], frame["skewed"], frame["offset"] = (
        np.nan,
        np.exp(2.0 * frame.x2),
        1e9 + frame.x3,
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    for request in (
        Request("survived"),
        Request("survived", response="piecewise"),
        Request("survived", exclude=["x3"], include=["x4"]),
    ):
        monkeypatch.setattr(encoding, "BLOCK", 4 * n)
        monkeypatch.setattr(frames, "BLOCK", 4 * n)
        together = read_table(tmp_path / "t.csv", request)
        with monkeypatch.context() as patch:
            patch.setattr(encoding, "number_blocks", lambda frame, names: iter(()))
            patch.setattr(tables_encoding, "number_blocks", lambda frame, names: iter(()))
            one_by_one = read_table(tmp_path / "t.csv", request)
        assert together.encoding == one_by_one.encoding and together.notes == one_by_one.notes
        assert together.left_out == one_by_one.left_out and together.skewed == one_by_one.skewed
        np.testing.assert_array_equal(together.X, one_by_one.X)
    assert "skewed" in read_table(tmp_path / "t.csv", Request("survived")).skewed


def test_the_work_per_column_does_not_grow_with_the_columns(monkeypatch, tmp_path):
    """No column goes through all others: the properties that do are asked as often."""
    calls = []
    for name, owner in (("groups", TableEncoding), ("names", Table)):
        original = getattr(owner, name).fget
        monkeypatch.setattr(
            owner, name, property(lambda self, f=original, name=name: calls.append(name) or f(self))
        )
    counts = []
    for n_columns in (20, 200):
        rng = np.random.default_rng(0)
        X = np.exp(1.5 * rng.standard_normal((60, n_columns)))  # all are skewed
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)]).assign(
            y=X[:, 0] > X[:, 1]
        )
        frame.to_csv(tmp_path / "t.csv", index=False)
        calls.clear()
        result = select_file(tmp_path / "t.csv", Request("y", k=2))
        assert len(result.logarithms) > n_columns / 4
        counts.append(len(calls))
    assert counts[1] <= counts[0] + 10


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_cells_and_columns_that_lose_the_others(tmp_path, suffix):
    """One cell of 1e12, a spread of 1e-4 about 1e10, and, in csv, squares that overflow."""
    X = np.random.default_rng(0).standard_normal((200, 5))
    y, path = X[:, 0] - 2 * X[:, 1], tmp_path / f"t.{suffix}"
    X[17, 2], X[:, 3] = 1e12, 1e10 + 1e-4 * X[:, 3]
    X[:, 4] = 0
    X[9, 4] = 1  # rare, but no other number is lost
    frame = pd.DataFrame(X, columns=list("abcde"))
    if suffix == "csv":
        frame = frame.assign(
            y=y, f=1e200 * X[:, 0], g=np.where(np.arange(200) < 5, np.nan, X[:, 2])
        )
        frame.to_csv(path, index=False)
    else:
        np.savez(path, X=X, y=y, names=list("abcde"))
    table = read_table(path, Request(target="y" if suffix == "csv" else None))
    notes = "; ".join(table.notes)
    assert "dominates the variance; check it: c" in notes
    assert "near the numerical precision; subtract a constant: d" in notes
    assert ": e" not in notes and ", e" not in notes
    if suffix == "csv":
        assert "check it: c, g" in notes
        assert table.left_out["f"] == "numbers up to 3e+200, whose squares overflow"


def test_a_damaged_page_of_parquet(tmp_path):
    from pyarrow import Table as Arrow
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    numbers = {"x": np.arange(400.0) + 0.1, "y": np.sin(np.arange(400.0))}
    parquet.write_table(
        Arrow.from_pydict(numbers),
        path,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    at = data.index(np.float64(200.1).tobytes())
    data[at : at + 60] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"t\.parquet: the file is not a readable table"):
        read_table(path, Request(target="y"))
