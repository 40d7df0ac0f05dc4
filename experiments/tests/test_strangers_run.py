"""What somebody without our folder of data does: downloads in their original formats, converted,
then one table of each paper.

The originals are written back from the data at hand.
"""

import csv
import json

import numpy as np
import pytest
from annealed.vision import read_sequences
from annealed_experiments.datasets import load_set
from helpers import run
from originals import write_allaml, write_ionosphere, write_nips2003, write_ordonez, write_truth

pytestmark = [pytest.mark.slow, pytest.mark.data]


def whole(name, data_dir):
    X, y, X_test, y_test = load_set(name, data_dir)
    return np.concatenate([X, X_test]), np.concatenate([y, y_test])


def arcene(data_dir, down):
    X, y, X_test, y_test = load_set("arcene", data_dir)
    write_nips2003(down, "arcene", (X.astype(int), y), (X_test.astype(int), y_test))


def leukemia(data_dir, down):
    write_allaml(down, *whole("leukemia", data_dir))


def ionosphere(data_dir, down):
    write_ionosphere(down, *whole("ionosphere", data_dir))


def hopkins155(data_dir, down):
    """The 24 sequences with the fewest numbers: the protocol, not its figures."""
    sequences = sorted(read_sequences(data_dir / "hopkins155"), key=lambda one: one.tracks.size)[
        :24
    ]
    for one in sequences:
        write_truth(down / "Hopkins155", one.name, one.tracks, one.labels)


def ordonez(data_dir, down):
    columns = {
        "events": ("start", "end", "sensor", "type", "place"),
        "activities": ("start", "end_as_published", "activity"),
    }
    for home in ("ordonezA", "ordonezB"):
        rows = {}
        for kind, names in columns.items():
            with (data_dir / "sensors_adl" / f"{home}_{kind}.csv").open(newline="") as file:
                rows[kind] = [tuple(row[name] for name in names) for row in csv.DictReader(file)]
        write_ordonez(down, home, rows["events"], rows["activities"])


# Paper: the writer of the originals (its name is the set's), and the table.
PAPERS = {
    "Barbu et al. (2014)": (hopkins155, ["motion-table", "--runs", "1"]),
    "Barbu et al. (2017)": (
        arcene,
        ["public-tables", "--set", "arcene", "--method", "annealed", "--method", "l1"],
    ),
    "Liu et al. (2014)": (ordonez, ["sensors", "--method", "forward", "--runs", "2"]),
    "Tan et al. (2013)": (leukemia, ["mslr-leukemia"]),
    "Ma (thesis)": (ionosphere, ["sdist-real", "--set", "ionosphere", "--runs", "1"]),
}


@pytest.mark.parametrize("paper", PAPERS)
def test_one_table_of_each_paper(paper, data_dir, tmp_path, monkeypatch):
    write, table = PAPERS[paper]
    write(data_dir, tmp_path / "down")
    monkeypatch.delenv("ANNEALED_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run("reproduce", *table).exit_code == 2  # there is no data folder to fall back to
    converted = run("data", "convert", write.__name__, tmp_path / "down", tmp_path / "data")
    assert converted.exit_code == 0, converted.stderr
    made = run("reproduce", *table, "--data", tmp_path / "data", "--json", "--quiet")
    assert made.exit_code == 0, made.stderr
    rows = json.loads(made.stdout)["rows"]
    assert len(rows) >= 2
    if paper == "Barbu et al. (2014)":
        assert {"VC", "RankBoost", "all"} <= {row["method"] for row in rows}
        return
    # The originals lose nothing: the numbers are those of the data at hand.
    ours = run("reproduce", *table, "--data", data_dir, "--json", "--quiet")
    numbers = [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]
    assert numbers == [
        {key: value for key, value in row.items() if "seconds" not in key}
        for row in json.loads(ours.stdout)["rows"]
    ]
