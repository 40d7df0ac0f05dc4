"""Parquet tables by their partitions, filters and URLs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from annealed.learners import FSAClassifier, on_dask, on_disk

pytest.importorskip("pyarrow.parquet", reason="needs annealed[parquet]")
N = 900


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((N, 6)), columns=[f"c{j}" for j in range(6)])
    return frame.assign(
        year=np.repeat([2022, 2023, 2024], 300), town=np.tile(np.repeat(["a b", "c"], 150), 3)
    )


@pytest.fixture
def folder(table, tmp_path):
    for (year, town), rows in table.groupby(["year", "town"]):
        path = tmp_path / f"year={year}" / f"town={town}"
        path.mkdir(parents=True)
        rows.drop(columns=["year", "town"]).to_parquet(path / "p.parquet", row_group_size=60)
    return tmp_path


def test_partitions_are_columns_that_can_be_asked_for(table, folder):
    assert on_disk(folder).names == [f"c{j}" for j in range(6)]
    source = on_disk(
        folder, columns=["c4", "year", "c0"], target="town", weight="c5", memory_limit="8KB"
    )
    for matrix in (source, pickle.loads(pickle.dumps(source))):
        np.testing.assert_array_equal(
            matrix[100:500, :], table[["c4", "year", "c0"]].to_numpy()[100:500]
        )
        assert (matrix.target == table["town"]).all() and (matrix.weight == table["c5"]).all()
    found = FSAClassifier(1).fit(source, table["year"] > 2022)
    assert source.names[found.get_support(indices=True)[0]] == "year"
    with pytest.raises(
        ValueError, match=r"town=a b/p\.parquet: column 'town' has type string; expected numbers"
    ):
        on_disk(folder, columns=["town"])
    # what a file holds itself goes before the name of its folder
    rows = table.assign(year=1999).drop(columns="town").iloc[:5]
    rows.to_parquet(folder / "year=2024" / "town=c" / "q.parquet")
    assert on_disk(folder, target="year").target.tolist() == [*table["year"], *rows["year"]]


@pytest.mark.parametrize(
    ("filters", "query"),
    [
        ([("year", ">=", 2023)], "year >= 2023"),
        ([("c1", "<", 0.5), ("town", "=", "c")], "c1 < 0.5 and town == 'c'"),
        (
            [[("c1", ">", 1)], [("year", "in", [2022]), ("c2", "<", 0)]],
            "c1 > 1 or year == 2022 and c2 < 0",
        ),
    ],
)
def test_filters_leave_the_rows_for_which_they_hold(table, folder, filters, query):
    rows, names = table.query(query), [f"c{j}" for j in range(6)]
    source = on_disk(folder, filters=filters, target="c0", memory_limit="8KB")
    for matrix in (source, pickle.loads(pickle.dumps(source))):
        np.testing.assert_array_equal(matrix[:, :], rows[names[1:]])
        np.testing.assert_array_equal(matrix.target, rows["c0"])
    y = (rows["c2"] - rows["c4"] > 0).to_numpy()
    found, whole = FSAClassifier(2).fit(source, y), FSAClassifier(2).fit(rows[names[1:]], y)
    np.testing.assert_array_equal(found.support_, whole.support_)
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-9)


def test_filters_skip_files_and_groups_of_rows(table, tmp_path, monkeypatch):
    from annealed.learners.sources.parquet import ParquetPart

    table.sort_values("c0").to_parquet(tmp_path / "t.parquet", row_group_size=90)
    read, groups = ParquetPart.read, []
    monkeypatch.setattr(
        ParquetPart, "read", lambda self, g, names: groups.append(g) or read(self, g, names)
    )
    source = on_disk(
        tmp_path / "t.parquet", columns=["c1"], filters=[("c0", ">", table["c0"].quantile(0.85))]
    )
    assert source.shape == (135, 1) and set(groups) == {8, 9}


def test_filters_on_dask(table, folder):
    pytest.importorskip("dask.array", reason="needs annealed[dask]")
    source = on_disk(folder, filters=[("c0", ">", 0)], columns=["c1", "year"])
    np.testing.assert_array_equal(on_dask(source)[:, [0, 1]], source[:, :])


def urls(folder):
    yield folder.as_uri()
    fsspec = pytest.importorskip("fsspec", reason="needs annealed[dask]")
    memory = fsspec.filesystem("memory")
    for path in folder.rglob("*.parquet"):
        memory.pipe(f"/big/{path.relative_to(folder).as_posix()}", path.read_bytes())
    yield "memory://big/"
    memory.rm("/big", recursive=True)


def test_urls(table, folder):
    here, y = on_disk(folder, memory_limit="20KB"), (table["c1"] > 0).to_numpy()
    expected = FSAClassifier(2).fit(here, y)
    for url in urls(folder):
        source = pickle.loads(pickle.dumps(on_disk(url, memory_limit="20KB")))
        assert source.names == here.names
        assert FSAClassifier(2).fit(source, y).coef_.tobytes() == expected.coef_.tobytes()
        np.testing.assert_array_equal(on_disk(url, columns=["year"])[:, 0], table["year"])


def test_bad_input_is_one_line(folder):
    for place, options, message in (
        (
            folder,
            {"filters": [("when", "=", 1)]},
            "No match for FieldRef.Name.when.; expected conditions such as .* c0, .*, town$",
        ),
        (
            folder,
            {"filters": [("year", "=", "x")]},
            "year.*no kernel matching input types .int32, string.",
        ),
        (folder, {"filters": "year=2023"}, "filters='year=2023': .*; expected conditions such as"),
        (folder, {"filters": []}, r"filters=\[\]: .*; expected conditions such as"),
        (
            folder,
            {"filters": [("year", ">", 2030)]},
            r"filters=\[.'year', '>', 2030.\] match no rows",
        ),
        (folder, {"filters": [("c0", ">", 1e9)]}, r"filters=\[.'c0', '>', .*\] match no rows"),
        (
            "nowhere://a/b",
            {},
            "nowhere://a/b: the file is damaged or unreadable .Protocol not known: nowhere",
        ),
        ("http://127.0.0.1:9/big", {}, "http://127.0.0.1:9/big: "),
        (
            (folder / "year=2022" / "nothing").as_uri(),
            {},
            "nothing: no such file; expected a .parquet file",
        ),
        (
            (folder.parent / "empty").as_uri(),
            {},
            "empty: the folder contains no .parquet files; expected a .parquet "
            "file, or a folder of such files",
        ),
    ):
        (folder.parent / "empty").mkdir(exist_ok=True)
        with pytest.raises(
            (ValueError, FileNotFoundError, ModuleNotFoundError), match=message
        ) as caught:
            on_disk(place, **options)
        assert "\n" not in str(caught.value)
    np.save(folder / "X.npy", np.ones((3, 2)))
    with pytest.raises(
        ValueError, match=r"filters=.* requires named columns, as in a Parquet table"
    ):
        on_disk(folder / "X.npy", filters=[("a", "=", 1)])
    part = folder / "year=2023" / "town=c" / "p.parquet"
    data = bytearray(part.read_bytes())
    source = on_disk(folder)
    data[4:400] = b"\xff" * 396
    part.write_bytes(data)
    with pytest.raises(
        ValueError, match=r": year=2023/town=c/p\.parquet: the file is damaged or unreadable"
    ):
        source[:, [0]]
    part.write_bytes(data[: len(data) // 2])
    with pytest.raises(
        ValueError, match=r": year=2023/town=c/p\.parquet: the file is damaged or unreadable"
    ):
        on_disk(folder)
    first = folder / "year=2022" / "town=a b" / "p.parquet"
    first.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"year=2022/town=a b/p\.parquet"):
        on_disk(folder)
