"""Fits on batches that a function makes, and on tables that bring their targets and weights."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSAClassifierCV, FSARegressor, Refinement, on_disk
from equal_fits import assert_same_fit, correlated_matrix, targets

N, M = 1300, 60
EDGES = (0, 1, 700, 700, 703, N)


def _data(task="binary"):
    X = correlated_matrix(N, M)
    return X, targets(X, task), np.random.default_rng(0).integers(0, 3, N).astype(float)


class Batches:
    """Makes batches of some rows, and counts the passes."""

    def __init__(self, *columns, edges=EDGES):
        self.columns, self.edges, self.passes = columns, edges, 0

    def __call__(self):
        self.passes += 1
        for start, stop in zip(self.edges, self.edges[1:]):
            yield tuple(column[start:stop] for column in self.columns)


@pytest.mark.parametrize("limit", ["20KB", "90KB", "10MB"])
@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_a_fit_is_that_on_a_file_to_the_bit(tmp_path, limit, response):
    X, y, weight = _data()
    np.save(tmp_path / "X.npy", X)
    source = on_disk(batches=Batches(X, y, weight), memory_limit=limit)
    np.testing.assert_array_equal(source.target, y)
    np.testing.assert_array_equal(source.weight, weight)
    model = FSAClassifier(3, response=response)
    there = model.fit(source, source.target, sample_weight=source.weight)
    assert_same_fit(there, FSAClassifier(3, response=response).fit(X, y, sample_weight=weight))
    file = on_disk(tmp_path / "X.npy", memory_limit=limit)
    assert_same_fit(
        there, FSAClassifier(3, response=response).fit(file, y, sample_weight=weight), 0
    )
    np.testing.assert_array_equal(there.decision_function(source), there.decision_function(file))


def test_several_targets_rows_names_and_other_processes():
    X, y, _ = _data("numbers")
    source = on_disk(
        batches=Batches(pd.DataFrame(X, columns=[f"c{j}" for j in range(M)]), y),
        memory_limit="90KB",
    )
    assert source.weight is None and source.target.shape == (N, 2)
    there = FSARegressor(3).fit(source, source.target)
    assert_same_fit(there, FSARegressor(3).fit(X, y))
    assert there.get_feature_names_out().tolist() == ["c9", "c19", "c29"]
    for rows in (np.arange(900, 100, -3), np.arange(N) % 7 == 0, slice(250, 750), [5]):
        some = pickle.loads(pickle.dumps(source[rows]))
        np.testing.assert_array_equal(some[:, [2, 40]], X[rows][:, [2, 40]])
        np.testing.assert_array_equal(some.target, y[rows])
    X, y, _ = _data()
    chosen = FSAClassifierCV(sizes=[1, 3, 5], cv=3, n_jobs=2).fit(
        on_disk(batches=Batches(X, y), memory_limit="90KB"), y
    )
    here = FSAClassifierCV(sizes=[1, 3, 5], cv=3).fit(X, y)
    assert chosen.n_features_ == here.n_features_ and (chosen.support_ == here.support_).all()
    np.testing.assert_allclose(chosen.cv_scores_, here.cv_scores_, atol=1e-6)


def test_a_read_of_all_rows_is_one_pass():
    X, y, _ = _data()
    batches = Batches(X, y)
    source = on_disk(batches=batches, memory_limit="90KB")
    assert batches.passes == 1
    model = FSAClassifier(3, refinement=Refinement(exchange=False)).fit(source, y)
    steps_out_of_core = 4  # with mu=100: the first read, two steps, and what is left
    assert batches.passes <= 1 + steps_out_of_core + 1 and model.support_.sum() == 3


def test_bad_batches_are_named():
    X, y, weight = _data()
    frame = pd.DataFrame(X[:10, :3], columns=list("abc"))
    for made, message in (
        ([], "batches have 0 rows and 0 columns; expected at least one row and one column"),
        ([(X[:0], y[:0])], "batches have 0 rows and 60 columns"),
        ([X], "batch 0 of batches is a ndarray; expected"),
        (
            [(X, y), (X, None)],
            r"batch 1 of batches contains X of shape \(1300, 60\) and other arrays of shape \(\); "
            r"expected a target \(and a weight, if given\) for each row",
        ),
        ([(X, y, weight[:3])], r"batch 0 of batches contains .* of shape \(1300,\) and \(3,\);"),
        (
            [(X[:, 0], y)],
            "X of batch 0 of batches is a ndarray; "
            "expected a dense two-dimensional array of numbers",
        ),
        ([(X.astype(str), y)], "dtype <U.*; expected numbers"),
        ([(sp.csr_array(X), y)], "X of batch 0 of batches is a csr_array"),
        ([(X, y), (X[:, :5], y)], "batch 1 of batches has columns 5; expected 60, as in the first"),
        (
            [(frame, y[:10]), (frame[["a", "c", "b"]], y[:10])],
            "has columns .'a', 'c', 'b'.; expected .'a', 'b', 'c'., as in",
        ),
        ([(X, y, weight), (X, y)], "batch 1 of batches has 2 parts; expected 3, as in the first"),
    ):
        with pytest.raises(ValueError, match=message):
            on_disk(batches=lambda made=made: made)
    with pytest.raises(ValueError, match=r"^batches cannot be combined with"):
        on_disk("X.npy", batches=Batches(X, y))
    with pytest.raises(ValueError, match=r"^batches cannot be combined with"):
        on_disk(batches=Batches(X, y), target="y")
    for edges in ((0, 700, 900), (0, 700), (0, 701, N)):
        batches = Batches(X, y, edges=(0, 700, N))
        source = on_disk(batches=batches)
        batches.edges = edges
        with pytest.raises(
            ValueError,
            match=r"batch [01] of batches has \d+ rows; expected \d+, as in the first pass",
        ):
            FSAClassifier(3).fit(source, y)
    once = iter([(X, y)])
    source = on_disk(batches=lambda: once)
    with pytest.raises(
        ValueError, match="batch 0 of batches has 0 rows; expected 1300, as in the first pass"
    ):
        source[:, [3]]


def test_a_table_brings_its_target_and_weights(tmp_path):
    pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
    X, y, weight = _data()
    (tmp_path / "big").mkdir()
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(M)]).assign(y=y, w=weight)
    for part, rows in (("a", slice(0, 500)), ("b", slice(500, N))):
        table[rows].to_parquet(tmp_path / "big" / f"{part}.parquet", row_group_size=200)
    source = on_disk(tmp_path / "big", target="y", weight="w", memory_limit="90KB")
    assert source.shape == (N, M) and source.names == [f"c{j}" for j in range(M)]
    again = pickle.loads(pickle.dumps(source))
    for matrix, rows in (
        (source, slice(None)),
        (source[40:900], slice(40, 900)),
        (again, slice(None)),
    ):
        np.testing.assert_array_equal(matrix.target, y[rows])
        np.testing.assert_array_equal(matrix.weight, weight[rows])
    found = FSAClassifier(3).fit(source, source.target, sample_weight=source.weight)
    assert_same_fit(found, FSAClassifier(3).fit(X, y, sample_weight=weight))
    assert on_disk(tmp_path / "big", columns=["c3", "c9"], target="y").weight is None
    for options, message in (
        ({"target": "x"}, r"big: a\.parquet: the table has no column .x.; its columns are c0"),
        (
            {"target": "y", "weight": "v", "columns": ["c1"]},
            r"big: a\.parquet: the table has no column 'v'",
        ),
        (
            {"columns": ["c1", "y"], "target": "y"},
            "contains .y.; it must contain neither the target nor the weight",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            on_disk(tmp_path / "big", **options)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(
        ValueError, match="weight='w' requires named columns, as in a Parquet table"
    ):
        on_disk(tmp_path / "X.npy", weight="w")
