"""`annealed select` on tables in Parquet files that are not read whole."""

import json
import os
import signal
import subprocess
import sys
import time

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
    here, present = (
        json.loads(select(*place, *options).stdout)
        for place in ((tmp_path / "whole.parquet",), (folder, *limit))
    )
    assert present["task"] == here["task"] and present["n_rows"] == N
    one, two = (
        {c["name"]: c["coefficient"] for c in result["selected"]} for result in (here, present)
    )
    assert one.keys() == two.keys() == {"b", "e", "town"}
    np.testing.assert_allclose([two[name] for name in one], list(one.values()), rtol=1e-4)
    if limit:
        assert (
            "the encoding of the columns is based on 1000 evenly spaced rows of 6000"
            in present["notes"]
        )
        assert any(
            note.startswith("folds, stability and p-values use 10") for note in present["notes"]
        )  # and 20 of each class
    else:
        different = dict.fromkeys(("settings", "selected", "seconds"))
        assert present | different == here | different


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs annealed[dask]")
    with distributed.LocalCluster(
        2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GB"
    ) as result:
        yield result


@pytest.fixture
def blocks(monkeypatch):
    """Tasks on a few hundred rows, and columns that stay on the workers for some steps."""
    monkeypatch.setattr("annealed.learners.sources.dask_matrix.BLOCK_BYTES", 20_000)
    monkeypatch.setattr("annealed.learners.designs.dask_design.EASY_BYTES", 0)


@pytest.mark.parametrize(
    "options",
    [
        ("-k", 3, "--weight", "w"),
        ("-k", "auto", "--response", "piecewise"),
        ("-k", 2, "--include", "a"),
    ],
)
def test_a_fit_on_workers_equals_the_one_here(frame, folder, cluster, blocks, options):
    some = frame.assign(
        y=frame["y"].where(np.arange(N) % 50 > 0)
    )  # rows without a target are left out
    some[:2000].to_parquet(folder / "1.parquet", row_group_size=700)
    options = (folder, *options, "--memory-limit", "200KB")
    here, present = (
        json.loads(select(*options, *more).stdout)
        for more in ((), ("--dask", cluster.scheduler_address))
    )
    one, two = ({c["name"]: c["effect"] for c in result["selected"]} for result in (here, present))
    assert present["n_rows"] < N and one.keys() == two.keys() and len(one) > 1
    np.testing.assert_allclose([two[name] for name in one], list(one.values()), rtol=1e-4)
    assert (
        present["scores"] == here["scores"]
        and present["settings"]["dask"] == cluster.scheduler_address
    )


def killing(monkeypatch, kill):
    """Calls a function after the second step of a fit on a cluster."""
    from annealed.learners.designs.dask_design import DaskDesign

    steps, gradient = [], DaskDesign.scores_and_gradient

    def counted(self, *arguments):
        steps.append(0)
        if len(steps) == 2:
            kill()
        return gradient(self, *arguments)

    monkeypatch.setattr(DaskDesign, "scores_and_gradient", counted)
    return steps


def test_a_killed_worker_changes_nothing(folder, cluster, blocks, monkeypatch):
    from distributed import Client

    options = (folder, "-k", 3, "--memory-limit", "100KB", "--dask", cluster.scheduler_address)
    whole = json.loads(select(*options).stdout) | {"seconds": None}
    with Client(cluster, set_as_default=False) as client:
        victim = next(iter(client.run(os.getpid).values()))
    steps = killing(monkeypatch, lambda: os.kill(victim, signal.SIGKILL))
    again = json.loads(select(*options).stdout) | {"seconds": None}
    assert again == whole and len(steps) >= 2


def test_a_scheduler_that_goes_away_is_one_line(folder, blocks, monkeypatch, tmp_path):
    pytest.importorskip("distributed", reason="needs annealed[dask]")
    where, quiet = (
        ["--scheduler-file", tmp_path / "s.json"],
        {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
    )
    start = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
    ]
    work = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        "--nthreads",
        "1",
        "--no-dashboard",
        "--no-nanny",
    ]
    processes = [subprocess.Popen([*words, *where], **quiet) for words in (start, work)]
    try:
        while not (tmp_path / "s.json").exists():
            time.sleep(0.1)
        address = json.loads((tmp_path / "s.json").read_text())["address"]
        steps = killing(monkeypatch, processes[0].kill)
        result = select(folder, "-k", 3, "--memory-limit", "100KB", "--dask", address)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert len(steps) >= 2 and result.exit_code == 2
    assert (
        f"annealed: --dask {address}: the connection to the scheduler was lost"
        in result.stderr.splitlines()[-1]
    )


def test_a_file_that_workers_do_not_see_is_named(folder, cluster, monkeypatch):
    from annealed.learners import on_dask, on_disk
    from annealed.pipelines.common.file_map import running_on

    source = on_disk(folder, columns=["b", "c"])
    X = on_dask(source)
    for path in folder.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(ValueError, match="big"), running_on(cluster.scheduler_address):
        X[:10, [0]]


def test_a_model_and_a_report(frame, folder, tmp_path):
    frame.iloc[:100].to_parquet(tmp_path / "new.parquet")
    model, report = tmp_path / "m.safetensors", tmp_path / "report"
    result = select(
        folder, "-k", "auto", "--memory-limit", "300KB", "--out", model, "--report", report
    )
    assert result.exit_code == 0 and (report / "select.html").exists()
    predicted = json.loads(run("predict", model, tmp_path / "new.parquet", "--json").stdout)
    truth = frame["y"].iloc[:100].tolist()
    assert (
        np.mean(
            [
                p == y
                for p, y in zip(
                    next(v for k, v in predicted.items() if k.startswith("pred")), truth
                )
            ]
        )
        > 0.8
    )


def test_blocks_of_an_encoding(frame, folder):
    columns = (
        ColumnEncoding("a", fill=0.5),
        ColumnEncoding("town", "category", None, ("Kiel", "(missing)"), "Bonn", (0.3, 0.1)),
    )
    encoding = TableEncoding((*columns, ColumnEncoding("f")))
    source, expected = EncodedSource(folder, encoding, np.float64), encoding.encode(frame)
    for columns in (np.arange(4), np.array([1, 3]), np.array([2])):
        for rows in (slice(0, N), slice(650, 2600), slice(2499, 2501)):
            out = np.empty((rows.stop - rows.start, len(columns)))
            source.read(rows, columns, out)
            assert (out == expected[rows][:, columns]).all()


@pytest.mark.parametrize("as_text", [False, True])
def test_parts_of_dates(tmp_path, as_text):
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 800, N), "D")
    y = 2.0 * (when.weekday >= 5) + 0.1 * rng.normal(size=N)
    table = pd.DataFrame(
        {"when": when.astype(str) if as_text else when, "a": rng.normal(size=N), "y": y}
    )
    (tmp_path / "big").mkdir()
    for number, rows in enumerate((slice(0, 2000), slice(2000, None))):
        table[rows].to_parquet(tmp_path / "big" / f"{number}.parquet", row_group_size=700)
    table.to_parquet(tmp_path / "t.parquet")
    places = (
        (tmp_path / "t.parquet",),
        (tmp_path / "t.parquet", "--memory-limit", "1GB"),
        (tmp_path / "big",),
    )
    whole, *others = (json.loads(select(*place, "-k", 2).stdout)["selected"] for place in places)
    assert whole[0]["name"] == "when (weekday)"
    for result in others:
        assert [c["name"] for c in result] == [c["name"] for c in whole]
        np.testing.assert_allclose(
            [c["coefficient"] for c in result], [c["coefficient"] for c in whole], rtol=1e-4
        )


def test_a_url_and_its_partitions(frame, tmp_path):
    """Names of folders are columns as others are."""
    for town, rows in frame.fillna({"town": "nowhere"}).groupby("town"):
        (tmp_path / "big" / f"town={town}").mkdir(parents=True)
        rows.drop(columns="town").to_parquet(tmp_path / "big" / f"town={town}" / "p.parquet")
    options = ("-k", 3, "--memory-limit", "200KB")
    here, present = (
        json.loads(select(place, *options).stdout)
        for place in (tmp_path / "big", (tmp_path / "big").as_uri())
    )
    assert present["selected"] == here["selected"] and {c["name"] for c in here["selected"]} == {
        "b",
        "e",
        "town",
    }
    result = select("nowhere://big", *options)
    assert (
        result.exit_code == 2
        and "nowhere://big: the file is damaged or unreadable (Protocol not known: nowhere"
        in result.stderr
    )
    result = select((tmp_path / "small").as_uri(), *options)
    assert (
        result.exit_code == 2
        and "small: no such file; expected a .parquet file" in result.stderr
        and result.stderr.count("\n") == 1
    )


def test_bad_input_is_one_line(frame, folder, tmp_path):
    part = folder / "2.parquet"
    whole = part.read_bytes()
    (tmp_path / "empty").mkdir()
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")

    for content, message in (
        (whole[:-100], "2.parquet: "),
        (whole[: len(whole) // 2], "2.parquet: "),
        (
            frame[["a", "y"]].to_parquet(),
            "big: 2.parquet: column 'b' is absent, but double in ",
        ),
        (frame.assign(a="x").to_parquet(), "big: 2.parquet: column 'a' is "),
    ):
        part.write_bytes(content)
        result = select(folder, "-k", 2)
        assert (
            result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
        ), result.stderr
    part.write_bytes(whole)
    for arguments, message in (
        (
            (tmp_path / "empty", "-k", 2),
            "the folder contains no .parquet files; expected a .parquet file, "
            "or a folder of such files",
        ),
        (
            (tmp_path / "t.csv", "-k", 2, "--memory-limit", "1MB"),
            "t.csv: the file is not a .parquet file; expected a .parquet file, or a folder",
        ),
        ((folder, "-k", 2, "--memory-limit", "much"), "memory_limit='much' is not valid"),
        ((folder, "-k", 2, "--card"), "--card is not available for out-of-core tables"),
        ((folder, "--fdr", 0.1), "--fdr is not available for out-of-core tables"),
        (
            (folder, "-k", 2, "--table", tmp_path / "o.csv"),
            "o.csv is not available for out-of-core tables",
        ),
        (
            (tmp_path / "t.csv", "-k", 2, "--dask", "tcp://x:1"),
            "t.csv is read into memory; pass a folder of .parquet files",
        ),
        (
            (folder, "-k", 2, "--dask", "tcp://127.0.0.1:9"),
            "--dask tcp://127.0.0.1:9: no scheduler responds",
        ),
        (
            (folder, "-k", 2, "--weight", "v", "--memory-limit", "100KB"),
            "column 'v' for --weight does not exist",
        ),
    ):
        result = select(*arguments)
        assert (
            result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
        ), (arguments, result.stderr)


def test_skewed_numbers_stay_as_they_are(frame, folder):
    for path in folder.rglob("*.parquet"):
        part = pd.read_parquet(path)
        part.assign(income=np.exp(1.5 * part["b"])).drop(columns="b").to_parquet(path)
    result = json.loads(select(folder, "-k", 3).stdout)
    income = next(column for column in result["selected"] if column["name"] == "income")
    assert "form" not in income and not any("logarithms" in note for note in result["notes"])
