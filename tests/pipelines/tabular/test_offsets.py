"""Offsets, exposures and losses with a log link in ``annealed select`` and ``predict``."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from annealed.learners import FSARegressor, TweedieLoss
from annealed.models import TabularModel, TabularSelector, explain, load_model
from helpers import run

rng = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(rng.standard_normal((N, 6)).round(3), columns=list("abcdef"))
FRAME["region"] = rng.choice(["north", "south"], N)
FRAME["years"] = rng.uniform(0.05, 1.0, N).round(3)
_MEAN = FRAME.years * np.exp(1.0 + 0.6 * FRAME.a - 0.5 * FRAME.c + 0.8 * (FRAME.region == "north"))
FRAME["claims"] = rng.poisson(_MEAN)
FRAME["cost"] = [round(rng.gamma(2.0 * n, 500.0), 2) if n else 0.0 for n in FRAME.claims]
FRAME["log_years"] = np.log(FRAME.years)
OTHERS = {"claims": ("cost",), "cost": ("claims",)}


def table(folder, frame=FRAME):
    path = folder / "claims.csv"
    frame.to_csv(path, index=False)
    return path


def arguments(path, target, *more, k=3, exclude="log_years"):
    excluded = [text for name in (*OTHERS[target], exclude) for text in ("--exclude", name)]
    return ("select", path, "--target", target, "-k", k, "--task", "regression", *excluded, *more)


def select(*given, **options):
    result = run(*arguments(*given, **options), "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "target, options",
    [
        ("claims", ("--loss", "poisson")),
        ("claims", ("--loss", "negative_binomial", "--param", "loss.dispersion=0.1")),
        ("cost", ("--loss", "tweedie", "--param", "loss.power=1.5")),
    ],
)
def test_true_columns_scores_and_calibration(target, options, tmp_path):
    path = table(tmp_path)
    record = select(path, target, *options, "--exposure", "years", k="auto")
    assert {column["name"] for column in record["selected"]} == {"a", "c", "region"}
    scores = record["scores"]
    assert [*scores["selected"]][:2] == ["D2", "R2"]
    assert scores["selected"]["D2"] > scores["all columns"]["D2"]
    without = select(path, target, *options, "--exclude", "years")
    assert scores["selected"]["D2"] > without["scores"]["selected"]["D2"] + 0.03
    groups = record["errors"]["calibration"]
    observed = np.average([g["observed"] for g in groups], weights=[g["rows"] for g in groups])
    expected = np.average([g["predicted"] for g in groups], weights=[g["rows"] for g in groups])
    assert observed == pytest.approx(expected, rel=0.05)


def test_an_exposure_is_an_offset_of_its_logarithm_and_of_the_estimator(tmp_path):
    path, model = table(tmp_path), tmp_path / "m.safetensors"
    record = select(path, "claims", "--loss", "poisson", "--exposure", "years", "--out", model)
    other = select(path, "claims", "--loss", "poisson", "--offset", "log_years", exclude="years")
    assert [c["coefficient"] for c in record["selected"]] == pytest.approx(
        [c["coefficient"] for c in other["selected"]], rel=1e-6
    )
    X = FRAME[["a", "c"]].assign(north=1.0 * (FRAME.region == "north"))
    fitted = FSARegressor(3, loss="poisson").fit(X, FRAME.claims, offset=FRAME.log_years)
    expected = fitted.predict(X, FRAME.log_years)
    kept = load_model(model)
    np.testing.assert_allclose(kept.predict(FRAME), expected, rtol=0.02)
    # Twice the exposure is twice the mean
    double = FRAME.assign(years=2.0 * FRAME.years)
    np.testing.assert_allclose(kept.predict(double), 2.0 * kept.predict(FRAME))
    shown = run("predict", model, path, "--contributions")
    predicted = pd.read_csv(io.StringIO(shown.stdout))
    np.testing.assert_allclose(predicted["prediction"], kept.predict(FRAME))
    np.testing.assert_allclose(predicted["contribution of years"], FRAME.log_years)
    np.testing.assert_allclose(
        explain(kept, FRAME).scores[:, 0], np.log(kept.predict(FRAME)), atol=1e-9
    )


@pytest.mark.parametrize("kind", ["selector", "out of core"])
def test_the_same_from_a_data_frame_and_out_of_core(kind, tmp_path):
    expected = select(table(tmp_path), "claims", "--loss", "poisson", "--exposure", "years")
    if kind == "selector":
        X = FRAME.drop(columns=["claims", "cost", "log_years"])
        selector = TabularSelector(3, task="regression", loss="poisson", exposure="years")
        columns = selector.fit(X, FRAME.claims).columns_
        np.testing.assert_allclose(
            selector.predict(X.assign(years=1.0)),
            np.exp(selector.explain(X).scores[:, 0] - FRAME.log_years),
        )
    else:
        pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
        FRAME.to_parquet(tmp_path / "t.parquet")
        path, more = tmp_path / "t.parquet", ("--loss", "poisson", "--exposure", "years")
        columns = select(path, "claims", *more, "--memory-limit", "1MB")["selected"]
    for ours, theirs in zip(columns, expected["selected"], strict=True):
        assert ours["name"] == theirs["name"]
        assert ours["coefficient"] == pytest.approx(theirs["coefficient"], rel=1e-3)


def test_report_and_test_rows(tmp_path):
    path, report, new = table(tmp_path), tmp_path / "report", tmp_path / "new.csv"
    FRAME.iloc[:100].to_csv(new, index=False)
    more = ("--loss", "tweedie", "--exposure", "years", "--test", new, "--report", report)
    record = select(path, "cost", *more)
    assert record["scores"]["test"]["D2"] > record["scores"]["baseline"]["D2"]
    page = (report / "select.html").read_text()
    assert "D²" in page and "logarithm of the prediction" in page


def test_offset_of_the_squared_loss(tmp_path):
    path = table(tmp_path, FRAME.assign(claims=3.0 * FRAME.a - 2.0 * FRAME.c + FRAME.years))
    record = select(path, "claims", "--offset", "years", k="auto")
    assert {column["name"] for column in record["selected"]} == {"a", "c"}
    assert record["scores"]["selected"]["R2"] == pytest.approx(1.0, abs=1e-4)
    assert record["scores"]["all columns"]["R2"] == pytest.approx(1.0, abs=1e-4)


def test_score_deviance(tmp_path):
    path = table(tmp_path)
    record = select(path, "claims", "--loss", "poisson", "--score", "deviance", k="auto")
    assert next(iter(record["scores"]["selected"])) == "deviance"
    assert record["scores"]["selected"]["deviance"] < record["scores"]["baseline"]["deviance"]


@pytest.mark.parametrize(
    "change, options, message",
    [
        ({"years": 0.0}, (), "exposure 'years' is 0.0 in row 1; expected positive numbers"),
        ({"years": -1.0}, (), "exposure 'years' is -1.0 in row 1; expected positive numbers"),
        ({"years": np.nan}, (), "exposure 'years' is nan in row 1; expected positive numbers"),
        ({"claims": -2}, (), "y contains -2; expected non-negative counts for loss='poisson'"),
        ({}, ("--offset", "a"), "--exposure is not available with --offset"),
        ({}, ("--intervals",), "--intervals is not available with --exposure"),
        ({}, ("--task", "classification"), "use --task regression"),
        ({}, ("--exposure", "gone"), "column 'gone' for --exposure does not exist"),
        ({}, ("--include", "years"), "column 'years' for --include does not exist"),
    ],
)
def test_bad_exposures_are_one_line(change, options, message, tmp_path):
    frame = FRAME.copy()
    for name, value in change.items():
        frame[name] = frame[name].where(frame.index > 0, value)
    given = arguments(table(tmp_path, frame), "claims", "--exposure", "years", "--quiet")
    if "classification" not in options:
        given = (*given, "--loss", "poisson")
    result = run(*given, *options)
    assert result.exit_code == 2 and message in result.stderr, result.output
    assert result.stderr.count("\n") == 1


def test_bad_exposures_of_a_prediction(tmp_path):
    path, model = table(tmp_path), tmp_path / "m.safetensors"
    select(path, "claims", "--loss", "poisson", "--exposure", "years", "--out", model)
    for frame, message in (
        (FRAME.drop(columns="years"), "the table has no column 'years', which the model requires"),
        (FRAME.assign(years=0.0), "exposure 'years' is 0.0 in row 1; expected positive numbers"),
    ):
        result = run("predict", model, table(tmp_path, frame))
        assert result.exit_code == 2 and message in result.stderr, result.output
    fitted = FSARegressor(2, loss=TweedieLoss()).fit(
        FRAME[["a", "c"]], FRAME.cost, offset=FRAME.log_years
    )
    with pytest.raises(ValueError, match=r"fitted with an offset; pass offset=\(column"):
        TabularModel.from_estimator(fitted)
