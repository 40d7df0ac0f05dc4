"""`annealed select` on tables in Parquet files that are not read whole."""

import json

import numpy as np
import pandas as pd
import pytest
from annealed.models.tabular.encoding import ColumnEncoding, TableEncoding
from annealed.pipelines.tabular.out_of_core import EncodedSource
from helpers import run

pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
N = 6000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((N, 6)).round(3), columns=list("abcdef"))
    frame["town"] = rng.choice(["Bonn", "Kiel", "Ulm"], N)
    frame["w"] = rng.integers(1, 4, N)
    score = 2 * frame["b"] - frame["e"] + 1.5 * (frame["town"] == "Kiel")
    frame["y"] = np.where(score + 0.5 * rng.standard_normal(N) > 0.5, "yes", "no")
    frame.loc[::7, "a"] = np.nan
    frame.loc[5::11, "town"] = None
    return frame


@pytest.fixture
def folder(frame, tmp_path):
    """The same table in three files, with several groups of rows."""
    (tmp_path / "big" / "more").mkdir(parents=True)
    for name, rows in (("1", slice(0, 2000)), ("2", slice(2000, 2500)), ("more/3", slice(2500, N))):
        frame[rows].to_parquet(tmp_path / "big" / f"{name}.parquet", row_group_size=700)
    return tmp_path / "big"


def select(*arguments):
    return run("select", *arguments, "--target", "y", "--json")


@pytest.mark.parametrize("limit", [(), ("--memory-limit", "200KB")])
def test_a_folder_equals_the_table_in_memory(frame, folder, tmp_path, limit):
    """The same columns and coefficients; with little memory encoding and scores come of fewer
    rows."""
    frame.to_parquet(tmp_path / "whole.parquet")
    options = ("-k", 3, "--weight", "w")
    here, there = (json.loads(select(*place, *options).stdout) for place in ((tmp_path / "whole.parquet",), (folder, *limit)))
    assert there["task"] == here["task"] and there["n_rows"] == N
    one, two = ({c["name"]: c["coefficient"] for c in found["selected"]} for found in (here, there))
    assert one.keys() == two.keys() == {"b", "e", "town"}
    np.testing.assert_allclose([two[name] for name in one], list(one.values()), rtol=1e-4)
    if limit:
        assert "columns are read as 1000 of 6000 rows show, which are spread evenly" in there["notes"]
        assert any(note.startswith("folds, stability and p-values on 10") for note in there["notes"])  # and 20 of each class
    else:
        assert {**there, "settings": None, "selected": None} == {**here, "settings": None, "selected": None}


def test_a_model_and_a_report(frame, folder, tmp_path):
    frame.iloc[:100].to_parquet(tmp_path / "new.parquet")
    model, report = tmp_path / "m.safetensors", tmp_path / "report"
    result = select(folder, "-k", "auto", "--memory-limit", "300KB", "--save", model, "--report", report)
    assert result.exit_code == 0 and (report / "select.html").exists()
    predicted = json.loads(run("predict", model, tmp_path / "new.parquet", "--json").stdout)
    truth = frame["y"].iloc[:100].tolist()
    assert np.mean([p == y for p, y in zip(next(v for k, v in predicted.items() if k.startswith("pred")), truth)]) > 0.8


def test_blocks_of_an_encoding(frame, folder):
    columns = (ColumnEncoding("a", fill=0.5), ColumnEncoding("town", "category", None, ("Kiel", "(missing)"), "Bonn", (0.3, 0.1)))
    encoding = TableEncoding((*columns, ColumnEncoding("f")))
    source, expected = EncodedSource(folder, encoding, np.float64), encoding.encode(frame)
    for columns in (np.arange(4), np.array([1, 3]), np.array([2])):
        for rows in (slice(0, N), slice(650, 2600), slice(2499, 2501)):
            out = np.empty((rows.stop - rows.start, len(columns)))
            source.read(rows, columns, out)
            assert (out == expected[rows][:, columns]).all()


def test_bad_input_is_one_line(frame, folder, tmp_path):
    part = folder / "2.parquet"
    whole = part.read_bytes()
    (tmp_path / "empty").mkdir()
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")

    for content, message in (
        (whole[:-100], "2.parquet: "),
        (whole[: len(whole) // 2], "2.parquet: "),
        (frame[["a", "y"]].to_parquet(), "big: 2.parquet: column 'b': no such column; expected double as in 1.parquet"),
        (frame.assign(a="x").to_parquet(), "big: 2.parquet: column 'a': "),
    ):
        part.write_bytes(content)
        result = select(folder, "-k", 2)
        assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1, result.stderr
    part.write_bytes(whole)
    for arguments, message in (
        ((tmp_path / "empty", "-k", 2), "a folder, expected a table in .parquet, or a folder of such files"),
        ((tmp_path / "t.csv", "-k", 2, "--memory-limit", "1MB"), "t.csv: expected a table in .parquet, or a folder"),
        ((folder, "-k", 2, "--memory-limit", "much"), "memory_limit='much' is not valid"),
        ((folder, "-k", 2, "--card"), "--card: needs the table in memory"),
        ((folder, "--fdr", 0.1), "--fdr: needs the table in memory"),
        ((folder, "-k", 2, "--out", tmp_path / "o.csv"), "o.csv: not of a table that is out of core"),
        ((folder, "-k", 2, "--weight", "v", "--memory-limit", "100KB"), "no column 'v'"),
    ):
        result = select(*arguments)
        assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1, (arguments, result.stderr)
