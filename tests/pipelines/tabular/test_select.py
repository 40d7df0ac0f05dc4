"""``annealed select``: planted columns come back by name, and every column left out is named."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from annealed.models.tabular.fitting.settings import guess_task
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.tables import read_table
from helpers import run
from sklearn.datasets import dump_svmlight_file


def planted(n=400, m=30, true=(3, 7, 12), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + rng.normal(size=(n, 1))
    score = X[:, list(true)] @ np.array([2.0, -2.0, 1.5])[: len(true)]
    return X, score, [f"c{j}" for j in range(m)], [f"c{j}" for j in true]


def frame_of(X, names, **more):
    return pd.DataFrame(X, columns=names).assign(**more)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet"])
def test_planted_classes(tmp_path, suffix):
    X, score, names, true = planted()
    frame = frame_of(X, names, label=np.where(score > 0, "yes", "no"))
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    result = run("select", path, "--target", "label", "-k", 3, "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["task"] == "classification" and sorted(
        s["name"] for s in record["selected"]
    ) == sorted(true)
    signs = {s["name"]: np.sign(s["coefficient"]) for s in record["selected"]}
    assert signs == {"c3": 1, "c7": -1, "c12": 1}
    steps = ["read", "check", "sizes", "random halves of the rows", "fit"]
    assert list(record["seconds"]) == steps and min(record["seconds"].values()) >= 0


def test_regression_gives_coefficients_in_the_columns_units(tmp_path):
    X, score, names, true = planted()
    frame_of(X * 10, names, target=score + 5).to_csv(tmp_path / "t.csv", index=False)
    record = json.loads(
        run("select", tmp_path / "t.csv", "--target", "target", "-k", 3, "--json").stdout
    )
    assert record["task"] == "regression"
    assert {s["name"]: round(s["coefficient"], 3) for s in record["selected"]} == {
        "c3": 0.2,
        "c7": -0.2,
        "c12": 0.15,
    }
    strong = [s["name"] for s in record["selected"]]
    assert strong[2] == "c12"  # by falling effect
    table = run("select", tmp_path / "t.csv", "--target", "target", "-k", 3)
    assert all(name in table.stdout for name in true) and "regression, 400 rows" in table.stdout


def test_columns_left_out_or_imputed_are_named(tmp_path):
    X, score, names, true = planted()
    frame = frame_of(X, names, y=score > 0, same=1.0, words=[f"w{i}" for i in range(400)])
    frame["holes"] = np.where(np.arange(400) < 100, np.nan, X[:, 0])
    frame["empty"] = np.where(np.arange(400) < 201, np.nan, X[:, 1])
    frame.loc[5, "c3"] = np.inf
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run("select", tmp_path / "t.csv", "--target", "y", "-k", 3, "--json")
    assert result.exit_code == 0
    assert (
        "1 column dropped, text that identifies the rows, 400 distinct values in 400 rows "
        "(override: --as COLUMN=category): words"
    ) in result.stderr
    assert "1 column dropped, constant: same" in result.stderr
    assert (
        "2 columns with missing values, which are imputed with the median: c3, holes"
    ) in result.stderr
    assert "1 column dropped, more than half of the values missing: empty" in result.stderr
    assert {s["name"] for s in json.loads(result.stdout)["selected"]} == set(true)
    assert (
        run("select", tmp_path / "t.csv", "--target", "y", "-k", 3, "--json", "--quiet").stderr
        == ""
    )
    table = read_table(tmp_path / "t.csv", Request("y"))
    holes = table.X[:, table.names.index("holes")]
    np.testing.assert_allclose(holes[:100], np.median(X[100:, 0]))


def test_rows_without_target_are_left_out(tmp_path):
    X, score, names, _ = planted()
    y = np.where(score > 0, "a", "b").astype(object)
    y[:3] = None
    frame_of(X, names, y=y).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", Request("y"))
    assert len(table.y) == 397 and "3 rows dropped" in table.notes[0] and set(table.y) == {"a", "b"}


def test_npz_and_svmlight(tmp_path):
    X, score, names, true = planted()
    y = (score > 0).astype(int)
    np.savez(tmp_path / "t.npz", X=X, y=y, names=names)
    dump_svmlight_file(X, y, str(tmp_path / "t.svmlight"))
    for path, expected in (("t.npz", true), ("t.svmlight", ["3", "7", "12"])):
        result = run("select", tmp_path / path, "-k", 3, "--json")
        assert {s["name"] for s in json.loads(result.stdout)["selected"]} == set(expected)


def test_several_classes(tmp_path):
    X, _, names, true = planted(true=(3, 7))
    label = np.where(X[:, 3] > 0.8, "a", np.where(X[:, 7] > 0.3, "b", "c"))
    frame_of(X, names, y=label).to_csv(tmp_path / "t.csv", index=False)
    selected = json.loads(
        run("select", tmp_path / "t.csv", "--target", "y", "-k", 2, "--json").stdout
    )["selected"]
    assert {s["name"] for s in selected} == set(true) and all(
        s["coefficient"] > 0 for s in selected
    )


def test_guess_task():
    assert guess_task(np.array(["a", "b"])) == "classification"
    assert guess_task(np.arange(20) % 10) == "classification"
    assert guess_task(np.arange(19) % 10) == "regression"  # more than half as many values as rows
    assert guess_task(np.arange(11)) == "regression"


@pytest.mark.parametrize(
    "name, content, args, message",
    [
        ("gone.csv", None, ("--target", "y", "-k", 1), "gone.csv: no such file"),
        ("t.xls", "x", ("--target", "y", "-k", 1), "expected .csv"),
        ("t.csv", "a,y\n1,2\n", ("-k", 1), "the target is not set; expected --target COLUMN"),
        (
            "t.csv",
            "a,b\n1,2\n",
            ("--target", "y", "-k", 1),
            "column 'y' for the target does not exist; the columns are a, b",
        ),
        (
            "t.csv",
            "a,y\n1,2\n",
            ("--target", "y", "-k", 0),
            "-k 0 is not valid; expected an integer >= 1 or auto",
        ),
        (
            "t.csv",
            "a,y\nx,1\nx,0\n",
            ("--target", "y", "-k", 1),
            "no usable columns (1 column dropped, constant",
        ),
        ("t.csv", "a,y\n1,\n2,\n", ("--target", "y", "-k", 1), "the target is missing in all rows"),
        ("t.csv", "a,y\n1,b\n2,b\n", ("--target", "y", "-k", 1), "only one value ('b')"),
        (
            "t.csv",
            "a,y\n1,b\n2,c\n",
            ("--target", "y", "-k", 1, "--task", "regression"),
            "the target contains labels such as 'b'",
        ),
        (
            "t.csv",
            "a,y\n1,.5\n2,1\n",
            ("--target", "y", "-k", 1, "--task", "classification"),
            "contains continuous values such as 0.5",
        ),
        (
            "t.npz",
            "hello",
            ("--target", "y", "-k", 1),
            "already defines the target; remove --target y",
        ),
        ("t.csv", "", ("--target", "y", "-k", 1), "not a readable table"),
        ("t.csv", b"\xff\xfe\x00a\x80", ("--target", "y", "-k", 1), "with encoding utf-8"),
        ("t.parquet", "hello", ("--target", "y", "-k", 1), "not a readable table"),
        ("t.npz", "hello", ("-k", 1), "not a readable .npz file"),
        ("t.svm", "hello world", ("-k", 1), "not a readable svmlight file"),
    ],
)
def test_bad_input_is_one_line(tmp_path, name, content, args, message):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("select", tmp_path / name, *args)
    assert result.exit_code == 2 and result.stdout == ""
    line = result.stderr.strip().split("\n")[-1]
    assert line.startswith("annealed: ") and message in line, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"names": np.array("abc")}, "t.npz: there are 1 names for 3 columns"),
        ({"names": ["a", "a", "b"]}, "t.npz: two columns have the name 'a'"),
        (
            {"y": np.arange(30) + 1j},
            "t.npz: X has dtype float64 and shape (30, 3), and y has dtype complex128 and "
            "shape (30,)",
        ),
    ],
)
def test_bad_arrays_are_one_line(tmp_path, changed, message):
    np.savez(tmp_path / "t.npz", **{"X": np.eye(30, 3), "y": np.arange(30.0), **changed})
    result = run("select", tmp_path / "t.npz", "-k", 1)
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


def test_a_folder_and_a_file_without_rows(tmp_path):
    (tmp_path / "t.csv").mkdir()
    (tmp_path / "t.svm").touch()
    assert (
        "t.csv: the folder contains no .parquet files; expected"
        in run("select", tmp_path / "t.csv", "--target", "y", "-k", 1).stderr
    )
    assert "t.svm: the table has no rows" in run("select", tmp_path / "t.svm", "-k", 1).stderr


def test_more_than_there_are(tmp_path):
    X, score, names, _ = planted(m=5, true=(0, 1))
    frame_of(X[:, :5], names[:5], y=score).to_csv(tmp_path / "t.csv", index=False)
    result = run("select", tmp_path / "t.csv", "--target", "y", "-k", 9, "--json")
    assert result.exit_code == 0 and "only 5 usable columns" in result.stderr
    assert len(json.loads(result.stdout)["selected"]) == 5


def noise(tmp_path, y):
    X, _, names, _ = planted(n=len(y), m=13)
    frame_of(X, names, y=y).to_csv(tmp_path / "t.csv", index=False)
    return "select", tmp_path / "t.csv", "--target", "y", "-k", "auto"


def test_noise_gives_no_column_but_all_files(tmp_path):
    # How often noise has a column is measured in test_selection.py
    y = np.where(np.random.default_rng(2).random(100) < 0.7, "yes", "no")
    files = [
        "--table",
        tmp_path / "out.csv",
        "--out",
        tmp_path / "m.safetensors",
        "--report",
        tmp_path / "report",
    ]
    result = run(*noise(tmp_path, y), *files)
    assert result.exit_code == 0, result.output
    message = (
        r"no columns were selected, because no size .* by one standard error; "
        r"the best size, -k \d+, has a cross-validated accuracy of 0\.\d+"
    )
    assert re.search(message, result.stdout)
    assert list(pd.read_csv(tmp_path / "out.csv").columns) == ["y"]
    page = (tmp_path / "report" / "select.html").read_text()
    assert "<b>0</b> of 13 usable columns" in page and "by one standard error" in page
    predicted = run("predict", tmp_path / "m.safetensors", tmp_path / "t.csv")
    assert predicted.exit_code == 0, predicted.output
    assert [line.split(",")[0] for line in predicted.stdout.splitlines()] == [
        "prediction"
    ] + 100 * ["yes"]


def test_noise_gives_no_column_of_curves(tmp_path):
    y = np.random.default_rng(1).normal(5, 1, 60)
    result = run(
        *noise(tmp_path, y),
        "--response",
        "piecewise",
        "--json",
        "--out",
        tmp_path / "m.safetensors",
    )
    record = json.loads(result.stdout)
    assert (
        record["selected"] == [] and record["n_columns"] == 0 and record["path"][0]["columns"] == 0
    )
    assert record["stability"] is None
    assert record["best_size"] == min(record["path"][1:], key=lambda size: size["loss"])
    assert record["best_size"]["columns"] > 0 and abs(record["best_size"]["score"]) < 0.1
    predicted = run("predict", tmp_path / "m.safetensors", tmp_path / "t.csv")
    assert np.allclose([float(line) for line in predicted.stdout.splitlines()[1:]], y.mean())


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_columns_with_which_the_score_may_only_rise(tmp_path, response):
    X, score, names, _ = planted(n=200, m=8, true=(3, 7))
    frame = frame_of(
        X, names, day=pd.date_range("2020-01-01", periods=200).astype(str), price=score
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    asked = [
        "--monotone",
        "c3=-",
        "--monotone",
        "c7=-",
        "--monotone",
        "day=+",
        "--response",
        response,
    ]
    result = run(
        "select",
        tmp_path / "t.csv",
        "--target",
        "price",
        "-k",
        3,
        "--include",
        "c3",
        *asked,
        "--json",
    )
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    outcome = {column["name"]: column for column in record["selected"]}
    assert {"c3", "c7"} < set(outcome) and record["settings"]["monotone"] == [
        "c3=-",
        "c7=-",
        "day=+",
    ]
    if response == "linear":
        assert outcome["c3"]["coefficient"] == 0 and outcome["c7"]["coefficient"] < 0
    else:
        assert all(
            (np.diff(np.ravel(outcome[name]["curve"]["y"])) <= 0).all() for name in ("c3", "c7")
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("c1", "--monotone c1 is not valid; expected COLUMN=+ or COLUMN=-"),
        ("c1=up", "--monotone c1=up is not valid; expected COLUMN=+ or COLUMN=-"),
        ("c9=+", "column 'c9' cannot be used (not in the table)"),
        ("same=+", "column 'same' cannot be used (constant)"),
        ("town=+", "'town' is categorical; expected a column of numbers or dates"),
        ("c1=+", "the target has 3 classes; expected two classes, or regression"),
    ],
)
def test_bad_directions_are_one_line(tmp_path, given, message):
    X, score, names, _ = planted(n=60, m=3, true=(0, 1))
    frame = frame_of(
        X,
        names,
        same=1,
        town=np.resize(["a", "b"], 60),
        y=np.digitize(score, [-1, 1]) if given == "c1=+" else score > 0,
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(
        "select", tmp_path / "t.csv", "--target", "y", "-k", 2, "--monotone", given, "--quiet"
    )
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


def carded(folder, n=300):
    """A table of two classes with numbers, gaps, a category and dates; what decides is known."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 90, n), "town": rng.choice(["Paris", "Rome", "Oslo"], n)}
    )
    frame["noise"], frame["weight"] = rng.normal(size=n).round(3), rng.normal(70, 9, n).round(1)
    frame["since"] = (
        pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    ).astype(str)
    frame.loc[rng.random(n) < 0.3, "weight"] = np.nan
    score = (
        3 * (frame.age >= 60)
        - 2 * (frame.town == "Rome")
        + 2 * frame.weight.isna()
        + 2 * (frame.since >= "2021-03-01")
        - 2
    )
    frame["ill"] = np.where(rng.random(n) < 1 / (1 + np.exp(-2.0 * score)), "yes", "no")
    frame.to_csv(folder / "t.csv", index=False)
    return frame


def test_a_score_card(tmp_path):
    frame = carded(tmp_path)
    arguments = ("select", tmp_path / "t.csv", "--target", "ill", "-k", 4, "--card", "--quiet")
    result = run(
        *arguments, "--json", "--report", tmp_path / "report", "--out", tmp_path / "m.safetensors"
    )
    assert result.exit_code == 0, result.output
    card = json.loads(result.stdout)["card"]
    points = {row["rule"]: row["points"] for row in card["rules"]}
    assert card["class"] == "yes" and all(
        isinstance(value, int) and 0 < abs(value) <= 5 for value in points.values()
    )
    assert [re.sub(r"\d+$", "", rule) for rule in points if rule.startswith("age")] == ["age >= "]
    assert points["town=Rome"] < 0 < points["weight is missing"]
    assert any(re.fullmatch(r"since >= 202[01]-\d\d-\d\d", rule) for rule in points)
    assert sum(row["rows"] for row in card["risk"]) == 300
    by_hand = np.zeros(300, int)
    for rule, value in points.items():
        name, _, cut = rule.partition(" >= ")
        holds = (
            frame.town == "Rome"
            if rule == "town=Rome"
            else frame.weight.isna()
            if not cut
            else None
        )
        by_hand += (
            value
            * (
                frame[name] >= (float(cut) if name == "age" else cut) if holds is None else holds
            ).to_numpy()
        )
    risk = {row["points"]: row["probability"] for row in card["risk"]}
    predicted = pd.read_csv(
        io.StringIO(run("predict", tmp_path / "m.safetensors", tmp_path / "t.csv").stdout)
    )
    assert np.allclose(
        predicted["probability of yes"], [risk[total] for total in by_hand], atol=1e-9
    )
    page = (tmp_path / "report" / "select.html").read_text()
    assert "Score card" in page and "town=Rome" in page and "Alternatives" not in page
    table = run(*arguments).stdout
    assert "score card" in table and "probability of yes" in table and "town=Rome" in table


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        (
            "ill",
            ("-k", "auto"),
            "-k auto is not available for a score card; use -k with the number of rules",
        ),
        (
            "ill",
            ("-k", 3, "--response", "piecewise"),
            "--card is not available with --response piecewise",
        ),
        ("ill", ("-k", 3, "--include", "age"), "--card is not available with --include"),
        ("ill", ("-k", 3, "--monotone", "age=+"), "--card is not available with --monotone"),
        ("town", ("-k", 3), "--card: the target has 3 distinct values; expected two classes"),
    ],
)
def test_what_a_score_card_does_not_take_is_one_line(tmp_path, target, more, message):
    carded(tmp_path, 60)
    result = run("select", tmp_path / "t.csv", "--target", target, *more, "--card", "--quiet")
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
