"""Every option of ``annealed select``, through the command line; and every parameter of the
estimators has one, or a reason."""

import inspect
import io
import json

import numpy as np
import pandas as pd
import pytest
from annealed.learners import Constraints, FSAClassifier, FSARegressor, ScoreCardClassifier
from annealed.learners.objective.losses import get_loss
from annealed.models.tabular.fitting.settings import _PARTS, NOT_SET, _with_params
from annealed.pipelines.cli.app import app
from annealed.pipelines.tabular import selection
from annealed.pipelines.tabular.request import Request
from helpers import run
from typer.main import get_command
from typer.testing import CliRunner

rng = np.random.default_rng(0)
N = 240
X = rng.normal(size=(N, 8))
NAMES = ["a", "b", "c", "lag_1", "lag_2", "lag_3", "age", "size"]
FRAME = pd.DataFrame(X.round(4), columns=NAMES)
SCORE = X @ [2.0, -1.5, 0.0, 0.8, 0.8, 0.0, -1.0, 0.3]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    FRAME.assign(
        y=(SCORE + rng.normal(size=N)).round(4), w=np.where(np.arange(N) < 200, 1.0, 0.0)
    ).to_csv(tmp_path / "numbers.csv", index=False)
    yes = SCORE + rng.normal(size=N) > 1.5
    FRAME.assign(
        ill=np.where(yes, "yes", "no"), day=pd.date_range("2020-01-01", periods=N).astype(str)
    ).to_csv(tmp_path / "classes.csv", index=False)
    return tmp_path


def select(path, target, *options, k=3):
    result = run("select", path, "--target", target, "-k", k, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def names(record):
    return {column["name"] for column in record["selected"]}


def refused(path, target, *options, k=3):
    result = run("select", path, "--target", target, "-k", k, "--quiet", *options)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.output
    return result.stderr


# -- every parameter -------------------------------------------------------------------------------

# parameters that have an option of their own
OPTIONS = {
    "n_features_to_select": "-k",
    "loss": "--loss",
    "response": "--response",
    "class_weight": "--class-weight",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "offset": "--offset",
    "groups": "--group",
    "include": "--include",
    "exclude": "--exclude",
    "bounds": "--bounds",
    "monotone": "--monotone",
}


def test_every_parameter_can_be_set_or_has_a_reason():
    offered = {
        option
        for parameter in get_command(app).commands["select"].params
        for option in parameter.opts
    }
    lacking = []
    for make in (FSAClassifier, FSARegressor, ScoreCardClassifier, Constraints, FSAClassifier.fit):
        for name in inspect.signature(make).parameters.keys() - {"self", "X", "y"}:
            custom = OPTIONS.get(name)
            free = (
                make in (FSAClassifier, FSARegressor, ScoreCardClassifier) and name not in NOT_SET
            )
            if not (custom in offered if custom else free or NOT_SET.get(name)):
                lacking.append(f"{make.__name__}: {name}")
    assert not lacking


VALUES = {
    "mu": 50,
    "n_steps": 80,
    "n_bins": 4,
    "bins": "quantile",
    "kind": "linear",
    "exchange": "true",
    "search": "false",
}


@pytest.mark.parametrize("owner", [*_PARTS, "loss"])
def test_every_parameter_of_a_part_can_be_set(owner):
    make = _PARTS.get(owner) or type(get_loss("quantile"))
    for name in inspect.signature(make).parameters:
        text = VALUES.get(name, 0.25)
        request = Request(response="piecewise", loss="quantile", param=(f"{owner}.{name}={text}",))
        result = getattr(getattr(_with_params(FSARegressor(loss="quantile"), request), owner), name)
        assert str(result).lower() == str(text)


def test_other_parameters(folder):
    path = folder / "numbers.csv"
    few = [
        "--param",
        "schedule.n_steps=30",
        "--param",
        "schedule.mu=5",
        "--param",
        "prior.shrinkage=100.0",
        "--param",
        "n_jobs=1",
    ]
    shrunk = select(path, "y", "--exclude", "w", *few)
    assert max(abs(column["coefficient"]) for column in shrunk["selected"]) < 0.1
    assert shrunk["settings"]["param"] == few[1::2]
    curves = select(path, "y", "--response", "piecewise", "--param", "response.n_bins=3")
    assert all(len(column["curve"]["x"]) == 4 for column in curves["selected"])
    card = select(folder / "classes.csv", "ill", "--card", "--param", "points=2")
    assert all(abs(row["points"]) <= 2 for row in card["card"]["rules"])


# -- one option after the other --------------------------------------------------------------------


def test_weight(folder):
    half = select(folder / "numbers.csv", "y", "--weight", "w")
    assert "w" not in names(half) and "w" not in [row["name"] for row in half["left_out"]]
    pd.read_csv(folder / "numbers.csv").head(200).to_csv(folder / "first.csv", index=False)
    first = select(folder / "first.csv", "y", "--exclude", "w")
    assert {c["name"]: pytest.approx(c["coefficient"]) for c in first["selected"]} == {
        c["name"]: c["coefficient"] for c in half["selected"]
    }
    assert "contains only numbers" in refused_npz(folder, "--weight", "w")


def refused_npz(folder, *options):
    np.savez(folder / "t.npz", X=X, y=SCORE)
    return run("select", folder / "t.npz", "-k", 2, *options).stderr


def test_class_weight(folder):
    rare = np.where(SCORE + np.random.default_rng(2).normal(size=N) > 4.0, "yes", "no")
    FRAME.assign(ill=rare).to_csv(folder / "rare.csv", index=False)
    plain, balanced = (
        select(folder / "rare.csv", "ill", *more) for more in ((), ("--class-weight", "balanced"))
    )
    assert (
        balanced["scores"]["selected"]["balanced accuracy"]
        > plain["scores"]["selected"]["balanced accuracy"]
    )
    heavy = select(folder / "rare.csv", "ill", "--class-weight", "yes=50", "--class-weight", "no=1")
    assert heavy["scores"]["selected"]["accuracy"] < plain["scores"]["selected"]["accuracy"]


def test_loss(folder):
    outlier = pd.read_csv(folder / "numbers.csv")
    outlier.loc[0, "y"] = 1e5
    outlier.to_csv(folder / "outlier.csv", index=False)
    robust, squared = (
        select(folder / "outlier.csv", "y", "--exclude", "w", "--loss", loss)
        for loss in ("huber", "squared")
    )
    by_name = {c["name"]: c["coefficient"] for c in robust["selected"]}
    assert by_name["a"] == pytest.approx(2.0, abs=0.2) and {"a", "b"} < set(by_name) != names(
        squared
    )
    upper = select(
        folder / "numbers.csv", "y", "--loss", "quantile", "--param", "loss.quantile=0.9"
    )
    assert upper["settings"]["loss"] == "quantile"


@pytest.mark.parametrize("score", ["average_precision", "roc_auc", "log_loss", "balanced_accuracy"])
def test_score_of_classes(folder, score):
    record = select(folder / "classes.csv", "ill", "--score", score, k="auto")
    word = score.replace("_", " ")
    assert next(iter(record["scores"]["selected"])) == word
    sign = -1 if score == "log_loss" else 1
    assert sign * record["scores"]["selected"][word] > sign * record["scores"]["baseline"][word]
    size = record["path"][2]
    assert size["loss"] == pytest.approx(-sign * np.mean(size["folds"]))
    assert (record["scores"]["all columns"][word] is None) == (score == "log_loss")


def test_score_of_numbers(folder):
    record = select(folder / "numbers.csv", "y", "--score", "mean_absolute_error")
    assert list(record["scores"]["selected"]) == ["mean absolute error", "R2"]


def test_bounds_and_groups(folder):
    path = folder / "numbers.csv"
    record = select(path, "y", "--bounds", "a=:0.5", "--bounds", "b=-0.25:0.25", "--exclude", "w")
    result = {c["name"]: c["coefficient"] for c in record["selected"]}
    assert (
        all(result.get(name, 0) <= most + 1e-9 for name, most in (("a", 0.5), ("b", 0.25)))
        and result.get("b", 0) >= -0.25 - 1e-9
    )
    together = select(path, "y", "--group", "lag_", "--exclude", "w", "--include", "lag_2")
    assert {"lag_1", "lag_2", "lag_3", "a", "b"} == names(together) and together["settings"][
        "group"
    ] == ["lag_"]


def test_time_orders_the_folds(folder):
    frame = pd.read_csv(folder / "classes.csv").sample(frac=1.0, random_state=0)
    frame.to_csv(folder / "mixed.csv", index=False)
    ordered, mixed = (
        select(folder / name, "ill", "--time", "day") for name in ("classes.csv", "mixed.csv")
    )
    assert (
        ordered["scores"]["baseline"] == mixed["scores"]["baseline"]
    )  # whatever the order of the rows
    assert len(ordered["path"][0]["folds"]) == 5
    # what held in the first half alone does not help later
    change = pd.DataFrame(
        {"x": X[:, 0], "hour": np.arange(N), "y": np.where(np.arange(N) < N / 2, 1, -1) * X[:, 0]}
    )
    change.to_csv(folder / "change.csv", index=False)
    assert (
        select(folder / "change.csv", "y", "--time", "hour", k=1)["scores"]["selected"]["R2"] < -0.2
    )


def test_a_test_file(folder):
    frame = pd.read_csv(folder / "classes.csv")
    frame.iloc[:160].to_csv(folder / "train.csv", index=False)
    frame.iloc[160:].to_csv(folder / "test.csv", index=False)
    record = select(
        folder / "train.csv",
        "ill",
        "--test",
        folder / "test.csv",
        "--out",
        folder / "m",
        "--score",
        "roc_auc",
    )
    rows = pd.read_csv(io.StringIO(run("predict", folder / "m", folder / "test.csv").stdout))
    right = rows["prediction"].to_numpy() == frame["ill"].to_numpy()[160:]
    assert (
        record["scores"]["test"]["accuracy"] == pytest.approx(right.mean())
        and record["scores"]["test"]["roc auc"] > 0.8
    )
    np.savez(folder / "train.npz", X=X[:160], y=SCORE[:160])
    np.savez(folder / "test.npz", X=X[160:], y=SCORE[160:])
    result = run("select", folder / "train.npz", "-k", 6, "--test", folder / "test.npz", "--json")
    assert json.loads(result.stdout)["scores"]["test"]["R2"] > 0.98


def test_a_test_file_that_cannot_judge(folder):
    frame = pd.read_csv(folder / "classes.csv")
    frame.to_csv(folder / "same.csv", index=False)
    notes = select(folder / "classes.csv", "ill", "--test", folder / "same.csv")["notes"]
    assert f"{N} of {N} test rows duplicate training rows, so the test score is optimistic" in notes
    new = frame.assign(ill=frame["ill"].str.upper())
    new.loc[:9, "ill"] = frame["ill"][:10]
    new.iloc[:50].to_csv(folder / "upper.csv", index=False)
    result = run(
        "select",
        folder / "classes.csv",
        "--target",
        "ill",
        "-k",
        2,
        "--test",
        folder / "upper.csv",
        "--json",
    )
    assert "annealed: 10 of 50 test rows duplicate training rows" in result.stderr
    line = next(line for line in json.loads(result.stdout)["notes"] if "have classes" in line)
    counts = frame["ill"].str.upper()[10:50].value_counts()
    shown = ", ".join(f"{label!r} ({counts[label]})" for label in counts.index)
    assert (
        line == "40 of 50 test rows have classes that do not occur in the training rows "
        f"and count as errors: {shown}"
    )
    other = frame.assign(a=frame["a"] + 1)
    other.to_csv(folder / "other.csv", index=False)
    assert "test rows" not in str(
        select(folder / "classes.csv", "ill", "--test", folder / "other.csv")["notes"]
    )


def test_classes_of_which_a_test_file_has_the_numbers_only(folder):
    frame = pd.DataFrame(
        {"x": X[:, 0], "y": np.where(X[:, 0] < -0.5, "none", np.where(X[:, 0] < 0.5, "1", "2"))}
    )
    frame.to_csv(folder / "t.csv", index=False)
    frame[frame["y"] != "none"].assign(x=lambda f: f["x"] + 1e-9).to_csv(
        folder / "new.csv", index=False
    )
    record = select(folder / "t.csv", "y", "--test", folder / "new.csv", k=1)
    assert record["scores"]["test"]["accuracy"] > 0.8


@pytest.mark.parametrize(
    "options",
    [
        ("--fdr", 2),
        ("-k", "some"),
        ("-k", 2, "--test", "gone.csv"),
        ("-k", 2, "--class-weight", "yes=nan"),
    ],
)
def test_values_are_checked_before_the_table_is_read(folder, options, monkeypatch):
    monkeypatch.setattr(selection, "read_table", lambda *given: pytest.fail("read"))
    result = run("select", folder / "classes.csv", "--target", "ill", *options)
    assert (
        result.exit_code == 2
        and result.stderr.count("\n") == 1
        and str(options[-1]).rpartition("=")[2] in result.stderr
    )


def test_seed(folder):
    first, again, other = (
        select(folder / "numbers.csv", "y", "--seed", seed)["scores"]["selected"]
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_boosting(folder):
    record = select(folder / "numbers.csv", "y", "--boosting")
    assert 0.3 < record["scores"]["boosting"]["R2"] < 1.0


def test_a_file_of_options(folder):
    (folder / "run.toml").write_text(
        'target = "y"\nk = "2"\nexclude = ["w", "a"]\nclass_weight = []\nmonotone = '
        '"age=-"\nseed = 3\n'
    )
    result = run(
        "select", folder / "numbers.csv", "--config", folder / "run.toml", "--json", "-k", 3
    )
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert len(record["selected"]) == 3 and "a" not in names(
        record
    )  # the line goes before the file
    assert record["settings"]["monotone"] == ["age=-"] and record["settings"]["seed"] == 3
    for text, message in (
        ("tagret = 1", "option 'tagret' is unknown"),
        ("target = {a = 1}", "target={'a': 1} is not valid; expected a single value"),
        ("target", "not a readable TOML or JSON file"),
        ("seed = 'x'", "Invalid value for '--seed'"),
    ):
        (folder / "run.toml").write_text(text)
        result = run(
            "select",
            folder / "numbers.csv",
            "--config",
            folder / "run.toml",
            "--target",
            "y",
            "-k",
            1,
        )
        assert result.exit_code == 2 and message in result.stderr, result.output


def test_stdin_and_spreadsheets(folder):
    text = (folder / "numbers.csv").read_bytes()
    done = CliRunner().invoke(
        app,
        ["select", "-", "--target", "y", "-k", "2", "--json", "--out", str(folder / "m")],
        input=text,
    )
    assert done.exit_code == 0, done.output
    pd.read_csv(folder / "numbers.csv").to_excel(folder / "numbers.xlsx", index=False)
    record = select(folder / "numbers.xlsx", "y", "--table", folder / "two.xlsx", k=2)
    assert names(record) == {c["name"] for c in json.loads(done.stdout)["selected"]} == {"a", "b"}
    assert set(pd.read_excel(folder / "two.xlsx").columns) == {"a", "b", "y"}
    rows = CliRunner().invoke(app, ["predict", str(folder / "m"), "-"], input=text)
    assert rows.exit_code == 0 and rows.stdout.count("\n") == N + 1
    with pd.ExcelWriter(folder / "both.xlsx") as book:
        for name in ("first", "second"):
            pd.read_csv(folder / "numbers.csv").to_excel(book, sheet_name=name, index=False)
    both = select(folder / "both.xlsx", "y", k=2)
    assert (
        "both.xlsx: the file has 2 sheets; only the first sheet, 'first', is read" in both["notes"]
    )
    header = CliRunner().invoke(app, ["predict", str(folder / "m"), "-"], input=b"a,b\n")
    assert header.exit_code == 2 and "stdin.csv: the table has no rows" in header.stderr
    (folder / "bad.xlsx").write_text("no sheet")
    assert "bad.xlsx: the file is not a readable .xlsx file" in refused(folder / "bad.xlsx", "y")


@pytest.mark.parametrize(
    "options, message",
    [
        (("--weight", "gone"), "column 'gone' for --weight does not exist"),
        (("--weight", "a"), "--weight a: the weight in row 2 is -"),
        (("--class-weight", "balanced"), "not available for regression"),
        (("--loss", "lorenz"), "--loss lorenz is not available for regression; expected one of"),
        (
            ("--score", "roc_auc"),
            (
                "--score roc_auc is not valid; expected one of r2, d2, "
                "deviance, mean_absolute_error, "
                "mean_squared_error for regression"
            ),
        ),
        (("--bounds", "a"), "--bounds a is not valid; expected COLUMN=LOW:HIGH"),
        (("--bounds", "gone=0:"), "--bounds gone=0:: column 'gone' cannot be used"),
        (("--bounds", "a=x:"), "--bounds a=x:: 'x' is not a number"),
        (("--bounds", "a=1:2"), "--bounds a=1:2 is not valid; expected bounds that include 0"),
        (
            ("--bounds", "a=0:", "--monotone", "a=+"),
            "column 'a' is named by both --bounds and --monotone",
        ),
        (("--group", "lead_"), "--group lead_: no usable column has this prefix"),
        (("--time", "gone"), "column 'gone' for --time does not exist"),
        (("--time", "a", "--row-groups", "b"), "--time is not available with --row-groups"),
        (("--test", "gone.csv"), "gone.csv: no such file"),
        (
            ("--as", "a=word"),
            "--as a=word is not valid; expected COLUMN=KIND, where KIND is "
            "one of number, category, date",
        ),
        (("--as", "gone=date"), "column 'gone' for --as does not exist"),
        (("--as", "a=date"), "--as a=date: the column cannot be used"),
        (("--param", "scaling"), "--param scaling is not valid; expected NAME=VALUE"),
        (("--param", "warm_start=true"), "--param warm_start=true: a command fits only one model"),
        (
            ("--param", "speed=3"),
            "--param speed=3: FSARegressor has no such parameter; expected one of fit_intercept",
        ),
        (("--param", "schedule.speed=3"), "expected one of kind, mu, n_steps"),
        (
            ("--param", "response.n_bins=3"),
            "this response has no parameters; use another --response",
        ),
        (("--param", "momentum=7"), "momentum=7"),
        (
            ("--monotone", "a=+", "--monotone", "a=-"),
            "--monotone a=+: 'a' is given twice; name it only once",
        ),
        (
            ("--intervals", "--response", "piecewise"),
            "--intervals is not available with --response piecewise",
        ),
        (("--weight", "w", "--intervals"), "--intervals is not available with --weight"),
    ],
)
def test_wrong_values_are_one_line(folder, options, message):
    assert message in refused(folder / "numbers.csv", "y", *options)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ("--class-weight", "maybe=2"),
            "--class-weight maybe=2 is not valid; expected balanced, or "
            "CLASS=NUMBER, where CLASS is one of no, "
            "yes",
        ),
        (
            ("--class-weight", "yes=nan"),
            "--class-weight yes=nan is not valid; expected a number in [0, 1e+100]",
        ),
        (
            ("--class-weight", "yes=1e308"),
            "--class-weight yes=1e308 is not valid; expected a number in [0, 1e+100]",
        ),
        (
            ("--class-weight", "yes=2", "--class-weight", "yes=3"),
            "'yes' is given twice; name it only once",
        ),
        (("--class-weight", "yes=much"), "--class-weight yes=much: 'much' is not a number"),
        (("--score", "r2"), "--score r2 is not valid; expected one of accuracy"),
        (("--card", "--loss", "logistic"), "--card is not available with --loss"),
        (("--time", "ill"), "no is neither a number nor a date"),
    ],
)
def test_wrong_values_for_classes_are_one_line(folder, options, message):
    assert message in refused(folder / "classes.csv", "ill", *options)


def test_similar_names_are_suggested(tmp_path):
    rng = np.random.default_rng(0)
    rows = "".join(f"{a:.3f},{b:.3f},{a:.2f}\n" for a, b in rng.standard_normal((60, 2)))
    (tmp_path / "t.csv").write_text("diagnosis,age,y\n" + rows)
    wrong = run("select", tmp_path / "t.csv", "--target", "diagnose", "-k", 1)
    assert wrong.exit_code == 2 and "(did you mean 'diagnosis'?)" in wrong.stderr
    wrong = run("select", tmp_path / "t.csv", "--target", "y", "-k", 1, "--loss", "hubber")
    assert wrong.exit_code == 2 and "(did you mean 'huber'?)" in wrong.stderr
    right = run("select", tmp_path / "t.csv", "--target", "y", "-k", 1)
    assert "reading t.csv: 60 rows, 2 usable columns; 5 folds" in right.stderr.splitlines()[0]
