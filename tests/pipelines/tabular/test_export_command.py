"""``annealed export`` and ``annealed predict --contributions``."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("export"), np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((200, 4)), columns=list("abcd")).assign(
        city=rng.choice(["Oslo", "Rome", "Bonn"], 200)
    )
    frame["y"] = np.where(frame["a"] + 2 * (frame["city"] == "Rome") > 0.5, "yes", "no")
    frame.loc[::9, "b"] = np.nan
    frame.to_csv(folder / "t.csv", index=False)
    done = run(
        "select",
        folder / "t.csv",
        "--target",
        "y",
        "-k",
        2,
        "--out",
        folder / "m.safetensors",
        "--report",
        folder / "report",
    )
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("suffix", ["sql", "onnx", "c", "json", "xlsx", "csv"])
def test_every_format(folder, suffix):
    done = run("export", folder / "m.safetensors", folder / f"out.{suffix}", "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert (
        record["file"].endswith(suffix)
        and record["bytes"] == (folder / f"out.{suffix}").stat().st_size > 100
    )


def test_options(folder):
    done = run(
        "export",
        folder / "m.safetensors",
        folder / "o.sql",
        "--table",
        "s.people",
        "--dialect",
        "sqlite",
        "--key",
        "d",
    )
    assert (
        done.exit_code == 0
        and "which require SQLite 3.35 or later" in done.stderr
        and done.stderr.count("\n") == 1
    )
    query = (folder / "o.sql").read_text()
    assert 'FROM "s"."people" AS t' in query and 't."d" AS k1' in query


@pytest.mark.parametrize(
    "options, message",
    [
        (["m.safetensors", "o.txt"], "expected a file name that ends in"),
        (["m.safetensors", "o.c", "--key", "d"], "keys is only available for .sql files"),
        (["m.safetensors", "o.sql", "--dialect", "oracle"], "expected one of postgres"),
        (["t.csv", "o.sql"], "not a safetensors file"),
        (["m.safetensors", "gone/o.sql"], "cannot be written"),
        (["gone.safetensors", "o.sql"], "no such file"),
        (["out.csv", "out.csv"], "is an input of this command"),
    ],
)
def test_mistakes_are_one_line(folder, options, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = run("export", *options)
    assert done.exit_code == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_contributions(folder):
    plain = run("predict", folder / "m.safetensors", folder / "t.csv", "--json")
    done = run("predict", folder / "m.safetensors", folder / "t.csv", "--contributions", "--json")
    result, before = json.loads(done.stdout), json.loads(plain.stdout)
    assert set(result) - set(before) == {
        "score",
        *(f"contribution of {name}" for name in ("a", "city", "(intercept)")),
    }
    parts = [result[f"contribution of {name}"] for name in ("a", "city", "(intercept)")]
    np.testing.assert_allclose(np.sum(parts, axis=0), result["score"], rtol=0, atol=1e-12)
    assert [score > 0 for score in result["score"]] == [
        answer == "yes" for answer in result["prediction"]
    ]


def test_the_report_explains_rows(folder):
    page = (folder / "report" / "select.html").read_text()
    section = page.partition("<h2>Explained rows</h2>")[2].partition("<h2>")[0]
    assert section.count("<details>") == 11 and section.count("<td>city</td>") == 11
    assert section.index(": no,") < section.index(": yes,")
