"""``annealed data convert``: public data in their original layouts, each made small here."""

import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.pipelines.sensors.readers import read_home
from annealed.vision import read_sequences
from annealed_experiments.conversion.registry import DATA_SETS, convert
from annealed_experiments.datasets import load_set, read_lambdarank, read_mq2008
from helpers import rigid_motions, run
from originals import (
    write_allaml,
    write_farm_ads,
    write_ionosphere,
    write_letor,
    write_libsvm,
    write_lightgbm,
    write_newsgroups,
    write_nips2003,
    write_ordonez,
    write_secom,
    write_truth,
    write_usps,
    zip_tree,
)

RNG = np.random.default_rng(0)


def signs(n):
    return np.resize([-1, 1], n)


def dense(n, p):
    return RNG.integers(0, 1000, (n, p)), signs(n)


def sparse(n, p, ones=False):
    X = sp.random(n, p, 20 / p, format="csr", random_state=0)
    X.data = np.ones(X.nnz) if ones else RNG.integers(1, 900, X.nnz).astype(float)
    return X, signs(n)


@pytest.mark.parametrize("name, p", [("madelon", 500), ("arcene", 10_000), ("gisette", 5_000)])
def test_nips2003(tmp_path, name, p):
    train, valid = dense(6, p), dense(4, p)
    write_nips2003(tmp_path / "down", name, train, valid)
    folder, notes = convert(name, tmp_path / "down", tmp_path / "data")
    X, y, X_test, y_test = load_set(name, tmp_path / "data")
    for found, expected in zip((X, y, X_test, y_test), (*train, *valid), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert folder == tmp_path / "data" / name and "validation part" in notes[0]
    assert [path.name for path in (tmp_path / "data").iterdir()] == [name]


@pytest.mark.parametrize("name, p", [("dexter", 20_000), ("dorothea", 100_000)])
def test_nips2003_sparse(tmp_path, name, p):
    train, valid = sparse(6, p, name == "dorothea"), sparse(4, p, name == "dorothea")
    write_nips2003(tmp_path / "down", name, train, valid)
    convert(name, tmp_path / "down", tmp_path / "data")
    X, y, X_test, y_test = load_set(name, tmp_path / "data")
    assert (train[0] != X).nnz == 0 and (X_test != valid[0]).nnz == 0
    np.testing.assert_array_equal(y, train[1])
    np.testing.assert_array_equal(y_test, valid[1])


def test_gisette_valid_is_divided_by_class(tmp_path):
    write_nips2003(tmp_path, "gisette", dense(2, 5_000), dense(20, 5_000))
    convert("gisette_valid", tmp_path, tmp_path / "data")
    _, y, _, y_test = load_set("gisette_valid", tmp_path / "data")
    assert sorted(np.bincount(y > 0)) == [7, 7] and sorted(np.bincount(y_test > 0)) == [3, 3]


def test_ionosphere(tmp_path):
    X, y = RNG.uniform(-1, 1, (351, 34)).round(5), signs(351)
    write_ionosphere(tmp_path / "down", X, y)
    convert("ionosphere", tmp_path / "down", tmp_path / "data")
    train_X, train_y, test_X, test_y = load_set("ionosphere", tmp_path / "data")
    np.testing.assert_allclose(np.vstack([train_X, test_X]), X, atol=1e-6)
    np.testing.assert_array_equal(np.concatenate([train_y, test_y]), y)
    assert len(train_y) == 200


def test_secom(tmp_path):
    X = np.where(RNG.random((24, 590)) < 0.1, np.nan, RNG.normal(size=(24, 590)).round(3))
    y = np.where(np.arange(24) % 4 == 0, 1, -1)
    write_secom(tmp_path / "down", X, y)
    convert("secom", tmp_path / "down", tmp_path / "data")
    train_X, train_y, test_X, test_y = load_set("secom", tmp_path / "data")
    assert len(train_y) == 18 and sorted({*train_y, *test_y}) == [-1, 1] and (test_y > 0).any()
    found = np.vstack([train_X, test_X])
    np.testing.assert_allclose(found[np.argsort(found[:, 1])], X[np.argsort(X[:, 1])], atol=1e-5)
    (tmp_path / "down" / "secom_labels.data").write_text('0 "19/07/2008 11:55:00"\n')
    with pytest.raises(
        ValueError,
        match=r"secom_labels\.data: the labels are \['0'\] \(1 in total\); "
        "expected -1 or 1 for each of the 24 rows",
    ):
        convert("secom", tmp_path / "down", tmp_path / "other")


def test_farm_ads_keeps_equal_rows_together(tmp_path):
    X = sparse(10, 60, ones=True)[0]
    X, y = sp.vstack([X, X, X], format="csr"), np.tile(signs(10), 3)
    write_farm_ads(tmp_path / "down", X, y)
    _, notes = convert("farm_ads", tmp_path / "down", tmp_path / "data")
    train_X, train_y, test_X, test_y = load_set("farm_ads", tmp_path / "data")
    rows = [{row.tobytes() for row in part.toarray()} for part in (train_X, test_X)]
    assert (
        len(test_y) == 6
        and len(train_y) == 24
        and not rows[0] & rows[1]
        and "20 rows duplicate" in notes[0]
    )
    assert rows[0] | rows[1] == {row.tobytes() for row in X.toarray()}


def test_pcmac_of_the_newsgroups(tmp_path):
    pc, mac = "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"
    train = {
        pc: ["ISA bus bus", "caf\xe9 isa"],
        mac: ["nubus", "Quadra nubus"],
        "rec.autos": ["car"],
    }
    write_newsgroups(
        tmp_path / "down", {"train": train, "test": {pc: ["isa vesa"], mac: ["quadra"]}}
    )
    convert("pcmac", tmp_path / "down", tmp_path / "data")
    X, y, X_test, y_test = load_set("pcmac", tmp_path / "data")
    assert y.tolist() == [1, 1, -1, -1] and y_test.tolist() == [1, -1]
    assert X.toarray().tolist() == [
        [2, 0, 1, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
    ]
    assert X_test.toarray().tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1]]
    with pytest.raises(
        ValueError,
        match=r"20news-bydate-train/comp\.sys\.ibm\.pc\.hardware is in neither the folder",
    ):
        convert("pcmac", tmp_path / "data", tmp_path / "other")


def test_usps(tmp_path):
    train = RNG.uniform(-1, 1, (30, 256)).round(3), np.resize(np.arange(10), 30)
    test = RNG.uniform(-1, 1, (20, 256)).round(3), np.resize(np.arange(10), 20)
    write_usps(tmp_path / "down", train, test)
    convert("usps", tmp_path / "down", tmp_path / "data")
    X, y, X_test, y_test = load_set("usps", tmp_path / "data")
    np.testing.assert_allclose(X, train[0], atol=1e-6)
    np.testing.assert_array_equal(y_test, test[1])
    X, y, X_test, y_test = load_set("usps_7v9", tmp_path / "data")
    np.testing.assert_array_equal(y, [-1, 1] * 3)
    np.testing.assert_allclose(X_test, test[0][np.isin(test[1], [7, 9])], atol=1e-6)


def test_leukemia(tmp_path):
    X, y = RNG.normal(size=(72, 50)), np.where(np.arange(72) % 3 == 0, 1, -1)
    write_allaml(tmp_path / "mat", X, y)
    write_libsvm(
        tmp_path / "libsvm", "leu", (X[:38], -y[:38]), (X[38:], -y[38:]), compress=True
    )  # the rarer class is AML
    for source in ("mat", "libsvm"):
        convert("leukemia", tmp_path / source, tmp_path / f"data_{source}")
        _, train_y, test_X, test_y = load_set("leukemia", tmp_path / f"data_{source}")
        np.testing.assert_array_equal(train_y, y[:38])
        np.testing.assert_array_equal(test_y, y[38:])
        np.testing.assert_allclose(test_X, X[38:], rtol=1e-5)


def test_libsvm_of_any_name(tmp_path):
    train, test = sparse(8, 40), sparse(6, 40)
    fewer = sp.csr_matrix(
        test[0].toarray() * (np.arange(40) < 30)
    )  # columns that the test file does not name
    write_libsvm(tmp_path, "mine", train, (fewer, test[1]))
    folder, _ = convert("libsvm", tmp_path / "mine", tmp_path / "data")
    X, y, X_test, _ = load_set("mine", tmp_path / "data")
    assert folder.name == "mine" and (train[0] != X).nnz == 0 and X_test.shape == (6, X.shape[1])
    np.testing.assert_array_equal(y, train[1])


def test_news20(tmp_path):
    X, y = sparse(12, 30)[0], np.resize([1, 2, 3], 12)
    write_libsvm(tmp_path / "down", "news20", (X, y), (None, None), compress=True)
    folder, _ = convert("news20", tmp_path / "down", tmp_path / "data")
    assert (sp.load_npz(folder / "X.npz") != X).nnz == 0
    np.testing.assert_array_equal(np.load(folder / "class.npy"), y)


def query_lines(n, n_columns, first):
    values = RNG.uniform(0, 1, (n, n_columns)).round(3)
    return [
        f"{i % 3} qid:{first + i // 3} " + " ".join(f"{c}:{v:g}" for c, v in enumerate(row, 1))
        for i, row in enumerate(values)
    ]


@pytest.mark.parametrize("layout", ["folds", "parts"])
def test_mq2008(tmp_path, layout):
    parts = [query_lines(6, 46, 10 * i) for i in range(1, 6)]
    if layout == "folds":
        write_letor(tmp_path / "down", parts)
    else:
        (tmp_path / "down").mkdir()
        for i, lines in enumerate(parts, 1):
            (tmp_path / "down" / f"S{i}.txt").write_text(
                "\n".join(f"{line} #docid = G{i}" for line in lines)
            )
    convert("mq2008", tmp_path / "down", tmp_path / "data")
    train, valid, test = next(read_mq2008(tmp_path / "data"))
    assert train.X.shape == (18, 46) and set(valid.qid) == {40, 41} and set(test.qid) == {50, 51}
    assert [line.split()[0] for line in parts[4]] == [str(grade) for grade in test.grade]


def test_lambdarank(tmp_path):
    halves = {"train": query_lines(9, 300, 1), "test": query_lines(6, 300, 1)}
    write_lightgbm(tmp_path / "down", halves)
    convert("lambdarank", tmp_path / "down", tmp_path / "data")
    train, test = read_lambdarank(tmp_path / "data")
    assert train.X.shape == (9, 300) and test.qid.tolist() == [1, 1, 1, 2, 2, 2]
    (tmp_path / "down" / "rank.test.query").write_text("3\n")
    with pytest.raises(
        ValueError, match=r"rank\.test\.query: the queries have 3 rows in total; expected 6"
    ):
        convert("lambdarank", tmp_path / "down", tmp_path / "other")


def test_hopkins155_tree_and_archive(tmp_path):
    tree = tmp_path / "Hopkins155"
    for i, name in enumerate(["cars1", "1R2RC_g12", "dancing"]):
        tracks, labels = rigid_motions(2, 12, 6, seed=i)
        write_truth(tree, name, tracks, labels)
    zip_tree(tree, tmp_path / "Hopkins155.zip")
    for source, out in ((tree, "a"), (tmp_path, "b"), (tmp_path / "Hopkins155.zip", "c")):
        folder, notes = convert("hopkins155", source, tmp_path / "out" / out)
        sequences = read_sequences(folder)
        assert [one.name for one in sequences] == ["1R2RC_g12", "cars1"] and "dancing" in notes[1]
        np.testing.assert_allclose(sequences[1].tracks, rigid_motions(2, 12, 6, seed=0)[0])
        np.testing.assert_array_equal(sequences[1].labels, rigid_motions(2, 12, 6, seed=0)[1])


def test_ordonez(tmp_path):
    events = [("2011-11-28 02:27:59", "2011-11-28 10:18:11", "Bed", "Pressure", "Bedroom")]
    activities = [
        ("2011-11-28 02:27:59", "2011-11-28 10:18:11", "Sleeping"),
        (
            "2011-11-28 12:20:41",
            "2011-11-27 10:20:59",
            "Grooming",
        ),  # as in the source: the day and the hour are wrong
    ]
    for home in ("ordonezA", "ordonezB"):
        write_ordonez(tmp_path / "down", home, events, activities)
    folder, notes = convert("ordonez", tmp_path / "down", tmp_path / "data")
    assert (
        folder.name == "sensors_adl"
        and "1 end times before the start time were corrected" in notes[0]
    )
    assert (
        "2011-11-28 12:20:59,2011-11-27 10:20:59,Grooming"
        in (folder / "ordonezA_activities.csv").read_text()
    )
    home = read_home(folder, "ordonezA")
    assert (
        home.minutes.sensors == ("Bedroom_Bed_Pressure",) and "Sleeping" in home.minutes.activities
    )


@pytest.mark.parametrize(
    "file, text, message",
    [
        ("madelon_train.data", "1 2 x\n", "not a numeric table"),
        ("madelon_train.data", "1 2 3\n", "3 columns; expected 500"),
        ("madelon_train.labels", "1\n7\n", "labels .*expected -1 or 1 for each of the 6 rows"),
        ("madelon_valid.data", None, r"madelon_valid\.data is in neither the folder"),
    ],
)
def test_damage_is_one_line_and_leaves_nothing(tmp_path, file, text, message):
    write_nips2003(tmp_path / "down", "madelon", dense(6, 500), dense(4, 500))
    (path,) = (tmp_path / "down").rglob(file)
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    result = run("data", "convert", "madelon", tmp_path / "down", tmp_path / "data")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    with pytest.raises(ValueError, match=message):
        convert("madelon", tmp_path / "down", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_sparse_damage(tmp_path):
    write_nips2003(tmp_path, "dexter", sparse(3, 20_000), sparse(3, 20_000))
    (path,) = tmp_path.rglob("dexter_valid.data")
    for text, message in (
        ("20001:3\n", "line 1: column 20001 is out of range; expected 1 to 20000"),
        ("1:2\na:3\n", "line 2: 'a:3' is not valid; expected"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            convert("dexter", tmp_path, tmp_path / "data")


def test_command(tmp_path):
    (tmp_path / "ionosphere.data").write_text(
        "".join("0," * 34 + "gb"[i % 2] + "\n" for i in range(351))
    )
    result = run("data", "convert", "ionosphere", tmp_path, tmp_path / "data", "--json")
    record = json.loads(result.stdout)
    assert (
        result.exit_code == 0
        and set(record) == {"name", "folder", "notes", "then"}
        and "sdist-real" in record["then"]
    )
    again = run("data", "convert", "ionosphere", tmp_path, tmp_path / "data")
    assert again.exit_code == 2 and "already exists" in again.stderr
    unknown = run("data", "convert", "mnist", tmp_path, tmp_path / "data", "--json")
    assert unknown.exit_code == 2 and "'mnist' is unknown" in json.loads(unknown.stdout)["error"]
    missing = run("data", "convert", "usps", tmp_path / "nowhere", tmp_path / "data")
    assert (
        missing.exit_code == 2
        and "no such file or folder; expected ESL's web page: zip.train.gz" in missing.stderr
    )
    listed = json.loads(run("data", "list", "--json").stdout)
    assert [row["name"] for row in listed] == list(DATA_SETS)
    assert "annealed data list" in " ".join(run("data", "convert", "--help").stdout.split())


def test_two_files_that_differ(tmp_path):
    for i, name in enumerate("ab"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ionosphere.data").write_text(str(i))
    with pytest.raises(ValueError, match="differ; expected a single"):
        convert("ionosphere", tmp_path, tmp_path / "data")


def test_a_set_that_is_not_there_says_how_it_is_made(tmp_path):
    with pytest.raises(
        ValueError, match=r"arcene\.npz: no such file; create it with annealed data convert"
    ):
        load_set("arcene", tmp_path)
    with pytest.raises(ValueError, match="'nothing' is unknown"):
        load_set("nothing", tmp_path)


@pytest.mark.slow
@pytest.mark.data
def test_ours_written_as_distributed_come_back(data_dir, tmp_path):
    """Real sets, written in their original formats, become what is there."""
    for name in ("madelon", "arcene", "dexter", "dorothea"):
        X, y, X_test, y_test = load_set(name, data_dir)
        parts = [
            (M if sp.issparse(M) else M.astype(int), labels)
            for M, labels in ((X, y), (X_test, y_test))
        ]
        write_nips2003(tmp_path / name, name, *parts)
        convert(name, tmp_path / name, tmp_path / "data")
        again = load_set(name, tmp_path / "data")
        for a, b in zip(again, (X, y, X_test, y_test), strict=True):
            assert (a != b).nnz == 0 if sp.issparse(a) else (a == b).all()
    parts = []
    for i in range(1, 6):
        with gzip.open(data_dir / "ranking_mq2008" / f"S{i}.svmrank.gz", "rt") as lines:
            parts.append(list(lines))
    write_letor(tmp_path / "letor", parts)
    convert("mq2008", tmp_path / "letor", tmp_path / "data")
    for ours, theirs in zip(read_mq2008(tmp_path / "data"), read_mq2008(data_dir), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert (a.X == b.X).all() and (a.grade == b.grade).all() and (a.qid == b.qid).all()
