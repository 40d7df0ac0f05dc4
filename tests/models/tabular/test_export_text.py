"""Queries give the same results on tables of numbers and of text, as ``.import`` of SQLite loads a
CSV file."""

import os
import shutil

import exported
import numpy as np
import pandas as pd
import pytest
from annealed.models import TabularModel
from annealed.pipelines.tabular.prediction import predict_table
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file

N = 300
SEEDS = range(int(os.environ.get("ANNEALED_FUZZ", 4)))
PLACES = [
    pytest.param(
        "sqlite", marks=pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
    ),
    "duckdb",
    pytest.param(
        "postgres",
        marks=pytest.mark.skipif("ANNEALED_POSTGRES" not in os.environ, reason="needs a server"),
    ),
]


def table_of(rng, n, odd):
    """Numbers, truth values, words and dates with gaps; with ``odd`` also cells that no training
    row has."""

    def some(values, *strange):
        cells = np.array(values, object)
        cells[rng.random(n) < 0.15] = None
        for cell in strange if odd else ():
            cells[rng.random(n) < 0.03] = cell
        return cells

    size = rng.gamma(2.0, 10.0, n)
    return pd.DataFrame(
        {
            "row": np.arange(n),
            "x": some(rng.normal(size=n).round(3), 1e300, -1e15, "1e3"),
            "z": some(
                rng.normal(size=n), "", "abc", "NA", " 2.5 ", "12x", "0x10", "1e400", "inf", "-"
            ),
            "count": some(rng.integers(0, 50, n), "+7", "3.", ".5", "n/a"),
            "size": some(size, 0, -1, "?"),
            "member": rng.random(n) < 0.4,
            "paid": some(rng.random(n) < 0.5),
            "code": some(rng.choice(["1", "True", "t", "x"], n), "0", "true", "f", "y"),
            "class": some(rng.integers(1, 4, n), 7),
            "city": some(
                rng.choice(["Oslo", "Rome", "Łódź", "St. John's"], n), "Bern", " Rome ", "ROME", "'"
            ),
            "people": some([f"{v:,}" for v in rng.integers(1000, 9_000_000, n)], "2500"),
            "grade": some(rng.choice(["low", "medium", "high"], n), "great"),
            "day": some(
                [str(day) for day in np.datetime64("2021-01-01") + rng.integers(0, 500, n)],
                "soon",
                "2021-02-03 12:30:00",
            ),
        }
    )


@pytest.fixture(scope="module", params=SEEDS)
def model(request, tmp_path_factory):
    """A model of a table, its rows in two files, and what it predicts for the second."""
    seed, folder = request.param, tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(seed)
    frame, weights = table_of(rng, N, False), rng.normal(size=6)
    x, z, code = (
        pd.to_numeric(frame[name], errors="coerce").fillna(0) for name in ("x", "z", "code")
    )
    score = (
        weights[0] * x
        + weights[1] * z
        + 2 * weights[2] * frame["member"]
        + 2 * weights[3] * (frame["code"] == "True")
    )
    score += 2 * weights[4] * (frame["paid"] == True) + weights[5] * code + 0.2 * rng.normal(size=N)  # noqa: E712
    frame["y"] = [score, np.where(score > 0, "yes", "no"), np.digitize(score, [-1, 1])][seed % 3]
    frame.to_csv(folder / "t.csv", index=False)
    table_of(rng, N, True).to_csv(folder / "new.csv", index=False)
    kinds = ("day=date", "class=category", "code=category", "paid=category")
    options = {
        "response": ("linear", "piecewise")[seed % 2],
        "kinds": kinds,
        "task": ("regression", *2 * ["classification"])[seed % 3],
    }
    select_file(folder / "t.csv", Request("y", "9", **options)).to_model("y").save(folder / "m")
    return folder


def same(result, expected):
    for name in expected.select_dtypes("float"):
        got = result[name.replace("probability of ", "probability_")].to_numpy(float)
        np.testing.assert_allclose(got, expected[name], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_a_table_of_text(model, place):
    pytest.importorskip(place) if place == "duckdb" else None
    expected = predict_table(model / "m", model / "new.csv")
    result = exported.as_text(
        TabularModel.load(model / "m"), model / "new.csv", model, place, keys=["row"]
    )
    same(result.iloc[result["row"].astype(int).argsort()], expected)


@pytest.mark.parametrize("place", [exported.in_sqlite, exported.in_duckdb])
def test_a_table_of_types(model, place):
    pytest.importorskip("duckdb")
    expected, frame = predict_table(model / "m", model / "new.csv"), pd.read_csv(model / "new.csv")
    same(place(TabularModel.load(model / "m"), frame, model), expected)


@pytest.mark.parametrize("place", [exported.in_sqlite, exported.in_duckdb])
def test_another_level_is_no_spelling_of_true(tmp_path, place):
    pytest.importorskip("duckdb")
    frame = pd.DataFrame(
        {
            "a": ["1", "True", "t", "x"] * 30,
            "b": [True, False, None] * 40,
            "y": [5.0, -5.0, 2.0, 0.0] * 30,
        }
    )
    frame["y"] += np.where(frame["b"] == True, 3.0, 0.0)  # noqa: E712
    frame["y"] += np.random.default_rng(0).normal(0, 0.01, 120)
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = select_file(
        tmp_path / "t.csv", Request("y", "2", kinds=("a=category", "b=category"))
    ).to_model("y")
    np.testing.assert_allclose(
        place(result, frame, tmp_path)["prediction"], result.predict(frame), atol=1e-9
    )
    text = frame.astype(object).where(frame.notna(), None)
    np.testing.assert_allclose(
        place(result, text.assign(b=text["b"].map({True: "TRUE", False: "0"})), tmp_path)[
            "prediction"
        ],
        result.predict(frame),
        atol=1e-9,
    )
