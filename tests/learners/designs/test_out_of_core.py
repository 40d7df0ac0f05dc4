"""Fits on files equal fits in memory, whatever the file's layout and the size of the blocks."""

import pickle
import sys
from pathlib import Path

import annealed.learners
import numpy as np
import pandas as pd
import pytest
from annealed.learners import (
    Constraints,
    FSAClassifier,
    FSAClassifierCV,
    FSAPath,
    FSARegressor,
    PiecewiseLinear,
    Refinement,
    Schedule,
    on_disk,
)
from annealed.learners.common.additive import AdditiveModel
from annealed.learners.designs.out_of_core import BlockDesign
from annealed.learners.objective.pairwise import PairwiseLogisticLoss
from annealed.learners.sources.matrix import parse_bytes
from annealed.learners.sources.raw import RawSource
from equal_fits import CASES, ESTIMATORS, assert_same_fit, correlated_matrix, targets
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

N, M = 1300, 60
LAYOUTS = ("rows.npy", "columns.npy", "table.parquet", "chunks.h5", "plain.h5", "chunks.zarr")


def _matrix():
    return correlated_matrix(N, M)


def _write(folder, name, X, chunks=(300, 7)):
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, np.asfortranarray(X) if name == "columns.npy" else X)
    elif name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
        pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).to_parquet(
            path, row_group_size=chunks[0]
        )
    elif name.endswith(".h5"):
        h5py = pytest.importorskip("h5py", reason="needs annealed[disk]")
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=X, chunks=chunks if name == "chunks.h5" else None)
    else:
        zarr = pytest.importorskip("zarr", reason="needs annealed[disk]")
        zarr.open(str(path), mode="w", shape=X.shape, chunks=chunks, dtype=X.dtype)[:] = X
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths by layout; where a library is absent the layout is."""
    folder, X = tmp_path_factory.mktemp("files"), _matrix()
    found = {}
    for name in LAYOUTS:
        try:
            found[name] = _write(folder, name, X)
        except pytest.skip.Exception:
            continue
    return found


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("response", ["linear", "piecewise"])
@pytest.mark.parametrize("limit", ["90KB", "10MB"])
def test_every_layout(files, name, response, limit):
    if name not in files:
        pytest.skip("needs annealed[disk] and annealed[parquet]")
    X = _matrix()
    y = targets(X, "binary")
    source = on_disk(files[name], memory_limit=limit)
    found = FSAClassifier(3, response=response).fit(source, y)
    assert_same_fit(found, FSAClassifier(3, response=response).fit(X, y))
    expected = AdditiveModel.from_estimator(found).scores(X)[:, 0]
    np.testing.assert_allclose(found.decision_function(source), expected, rtol=1e-6, atol=1e-5)
    assert hasattr(found, "feature_names_in_") == name.endswith(".parquet")


@settings(max_examples=20, deadline=None, phases=[Phase.generate], derandomize=True)
@given(
    case=st.sampled_from(CASES),
    response=st.sampled_from(["linear", "piecewise"]),
    name=st.sampled_from(["rows.npy", "columns.npy"]),
    limit=st.integers(40_000, 400_000),
    bins=st.sampled_from(["range", "quantile"]),
    refinement=st.sampled_from(["auto", None]),
)
def test_any_loss_response_and_block_size(files, case, response, name, limit, bins, refinement):
    task, loss = case
    X, source = _matrix(), on_disk(files[name])
    y = targets(X, task)
    kind = ESTIMATORS.get(task, FSAClassifier)
    response = response if response == "linear" else PiecewiseLinear(bins=bins)
    settings = {
        "response": response,
        "refinement": refinement,
        "schedule": Schedule(n_steps=20),
    } | ({} if loss is None else {"loss": loss})
    if task == "grades":
        X, y = X[:200], y[:200]
        mapped = np.load(files[name], mmap_mode="r")[:200]
        source = on_disk(mapped)
        limit //= 5
    assert_same_fit(
        kind(3, **settings).fit(on_disk(source, memory_limit=limit), y),
        kind(3, **settings).fit(X, y),
    )


def test_missing_values_weights_and_integers(tmp_path):
    X = _matrix().astype(np.float64)
    X[::9, 9] = np.nan
    y, weight = targets(_matrix(), "binary"), np.random.default_rng(0).uniform(0, 2, N)
    weight[:40] = 0
    np.save(tmp_path / "X.npy", X)
    settings = {"response": "piecewise", "prior": None}
    there = FSAClassifier(3, **settings).fit(
        on_disk(tmp_path / "X.npy", memory_limit="90KB"), y, sample_weight=weight
    )
    assert_same_fit(there, FSAClassifier(3, **settings).fit(X, y, sample_weight=weight))
    whole = np.round(_matrix()).astype(np.int16)
    np.save(tmp_path / "whole.npy", whole)
    assert_same_fit(
        FSAClassifier(3).fit(on_disk(tmp_path / "whole.npy", memory_limit="90KB"), y),
        FSAClassifier(3).fit(whole, y),
    )


def test_views_of_mapped_arrays(files):
    X = _matrix()
    for name in ("rows.npy", "columns.npy"):
        view = np.load(files[name], mmap_mode="r")[100:1100, 3:50]
        y = targets(X, "binary")[100:1100]
        assert isinstance(on_disk(view), RawSource)
        here = FSAClassifier(3).fit(X[100:1100, 3:50], y)
        assert_same_fit(FSAClassifier(3).fit(on_disk(view, memory_limit="50KB"), y), here)
        assert_same_fit(FSAClassifier(3).fit(view, y), here)  # not wrapped: an array like any other
        with pytest.raises(ValueError, match="strides"):
            on_disk(np.load(files[name], mmap_mode="r")[::2, ::2])


def test_groups_paths_and_sizes(files):
    X, source = _matrix(), on_disk(files["columns.npy"], memory_limit="40KB")
    y = targets(X, "binary")
    groups = np.arange(M) // 2
    grouped = FSAClassifier(2, constraints=Constraints(groups))
    assert_same_fit(clone(grouped).fit(source, y), grouped.fit(X, y))
    there = FSAPath(FSAClassifier(), [2, 3, 5]).fit(source, y)
    here = FSAPath(FSAClassifier(), [2, 3, 5]).fit(X, y)
    np.testing.assert_array_equal(there.supports_, here.supports_)


class _Counting(RawSource):
    """Counts the bytes that are read."""

    bytes_read = 0

    def read(self, rows, columns, out):
        width = len(columns) if self.order == "F" else columns[-1] - columns[0] + 1
        self.bytes_read += (rows.stop - rows.start) * width * self.stored.itemsize
        super().read(rows, columns, out)


@pytest.mark.parametrize("order", ["C", "F"])
def test_bytes_read_are_those_of_the_schedule(tmp_path, order):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((2000, 300)) + rng.standard_normal((2000, 1))).astype(
        np.float32, order=order
    )
    y = X[:, [9, 19, 29]].sum(axis=1) > 0
    path = tmp_path / "X.bin"
    X.ravel(order="K").tofile(path)
    source = _Counting(path, 0, X.shape, X.dtype, X.strides)
    model = FSAClassifier(3, refinement=Refinement(exchange=False)).fit(
        source.set_limits("200KB", 1.0), y
    )
    assert model.get_support(indices=True).tolist() == [9, 19, 29]
    from annealed.learners.solvers.schedules import inverse

    counts = inverse(300, 3, 100, 100.0)
    large = counts[counts * 2000 * 4 * 2 > 200_000]
    fits = counts[len(large)]
    if order == "F":
        expected = 2000 * 4 * (300 + large.sum() + fits)
    else:  # whole rows, or nearly: from the first remaining column to the last
        expected = X.nbytes * (len(large) + 2)
        assert source.bytes_read > 0.9 * expected
    assert source.bytes_read <= expected


def test_remaining_columns_stay_in_memory_for_exchanges(tmp_path):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((2000, 300)), dtype=np.float32)
    y = X[:, [9, 19, 29]].sum(axis=1) > 0
    X.ravel(order="K").tofile(tmp_path / "X.bin")
    read = {}
    for exchange in (False, True):
        source = _Counting(tmp_path / "X.bin", 0, X.shape, X.dtype, X.strides)
        FSAClassifier(3, refinement=Refinement(exchange)).fit(source.set_limits("1MB", 1.0), y)
        read[exchange] = source.bytes_read
    rounds, rest = divmod(read[True] - read[False], X.nbytes)
    assert (
        1 <= rounds <= 5 and rest <= 15 * rounds * 2000 * 4
    )  # passes over everything, and the columns that joined the pool


def test_the_constant_model_of_a_path_reads_nothing(tmp_path):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((2000, 300)), dtype=np.float32)
    X.ravel(order="K").tofile(tmp_path / "X.bin")
    read = {}
    for sizes in ((2, 3), (0, 2, 3)):
        source = _Counting(tmp_path / "X.bin", 0, X.shape, X.dtype, X.strides)
        FSAPath(FSAClassifier(), sizes).fit(source.set_limits("1MB", 1.0), X[:, 9] > 0)
        read[sizes] = source.bytes_read
    assert read[0, 2, 3] == read[2, 3]


def test_subsampled_steps(files):
    X, source = _matrix(), on_disk(files["columns.npy"], memory_limit="40KB", subsample=0.3)
    y = targets(X, "binary")
    models = [FSAClassifier(3, random_state=s).fit(source, y) for s in (0, 0, 1)]
    assert_same_fit(models[0], models[1], 0)
    assert models[0].loss_curve_[1] != models[2].loss_curve_[1]
    for model in models:
        assert model.get_support(indices=True).tolist() == [9, 19, 29]


def test_loss_of_pairs_reads_twice(files):
    design = BlockDesign(on_disk(files["rows.npy"], memory_limit="40KB"), np.full(N, 1 / N))
    loss = PairwiseLogisticLoss(np.array([[0, 1200], [700, 3]]), np.ones(2), np.ones(2))
    coef = np.random.default_rng(0).standard_normal((M, 1, 1))
    gradient, _, value = design.scores_and_gradient(
        coef, np.zeros(1), loss, np.zeros((N, 1)), np.full(N, 1 / N)
    )
    scores = design.scores(coef)
    assert value == pytest.approx(loss.value(np.zeros((N, 1)), scores, None))
    np.testing.assert_allclose(
        gradient, design.gradient(loss.gradient(np.zeros((N, 1)), scores, None))
    )


def test_bad_input(files, tmp_path):
    X = _matrix()
    y = targets(X, "binary")
    source = on_disk(files["rows.npy"])
    with pytest.raises(ValueError, match=r"memory_limit='2 apples' is not valid"):
        on_disk(source, memory_limit="2 apples")
    with pytest.raises(ValueError, match=r"subsample=0 is not valid"):
        on_disk(source, subsample=0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FSAClassifier(3).fit(source, y[1:])
    with pytest.raises(ValueError, match="features"):
        FSAClassifier(3).fit(X[:, :10], y).predict(source)
    with pytest.raises(FileNotFoundError, match=r"gone\.npy"):
        on_disk(tmp_path / "gone.npy")
    (tmp_path / "X.txt").write_text("1 2 3")
    with pytest.raises(ValueError, match="unknown file type"):
        on_disk(tmp_path / "X.txt")
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="expected two dimensions"):
        on_disk(tmp_path / "cube.npy")
    X[700, 12] = np.inf
    np.save(tmp_path / "infinite.npy", X)
    for response in ("linear", "piecewise"):
        with pytest.raises(ValueError, match="in column 12"):
            FSAClassifier(3, response=response).fit(
                on_disk(tmp_path / "infinite.npy", memory_limit="40KB"), y
            )
    for options in ({"name": "X"}, {"columns": ["c1"]}):
        with pytest.raises(ValueError, match=r"rows\.npy: (name|columns)=.* (only|named)"):
            on_disk(files["rows.npy"], **options)
    with pytest.raises(ValueError, match=r"^data is a list; expected a path"):
        on_disk([[1.0, 2.0]])


def test_chosen_columns_are_read_in_either_order(files):
    for name in ("rows.npy", "columns.npy"):
        np.testing.assert_array_equal(
            on_disk(files[name])[:, np.array([3, 11, 40])], _matrix()[:, [3, 11, 40]]
        )


def test_damage_that_is_met_while_reading_is_named(files, tmp_path):
    """The first pages of a Parquet table are spoiled; what describes them stands at the end."""
    data = bytearray(Path(files["table.parquet"]).read_bytes())
    data[4:2000] = bytes([255]) * 1996
    (tmp_path / "pages.parquet").write_bytes(data)
    source = on_disk(tmp_path / "pages.parquet")
    with pytest.raises(ValueError, match=r"pages\.parquet: the file is damaged or unreadable"):
        source[:10, [0]]


def test_damaged_files_are_named(files, tmp_path):
    for path in files.values():
        path = Path(path)
        if path.is_dir():
            continue
        for size in (0, 5, path.stat().st_size // 2):
            damaged = tmp_path / f"damaged{path.suffix}"
            damaged.write_bytes(path.read_bytes()[:size])
            with pytest.raises(ValueError, match=r"damaged\.") as caught:
                on_disk(damaged)
            assert "\n" not in str(caught.value)
    (tmp_path / "empty.zarr").mkdir()
    pytest.importorskip("zarr", reason="needs annealed[disk]")
    with pytest.raises(ValueError, match=r"empty\.zarr: "):
        on_disk(tmp_path / "empty.zarr")


def test_arrays_inside_groups(tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs annealed[disk]")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["part/X"] = _matrix()
    assert on_disk(tmp_path / "X.h5", name="part/X").shape == _matrix().shape
    with pytest.raises(
        ValueError,
        match="name=None is not an array of the file; expected the path of an array inside",
    ):
        on_disk(tmp_path / "X.h5")


def test_a_reader_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "X.h5").write_bytes(b"")
    with pytest.raises(
        ModuleNotFoundError,
        match=r"X\.h5: reading this file requires h5py; "
        r"run pip install '\.\[disk\]' in the annealed checkout",
    ):
        on_disk(tmp_path / "X.h5")


def test_columns_of_a_parquet_table(tmp_path):
    pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
    X = _matrix()
    table = pd.DataFrame(X[:, :40], columns=[f"c{j}" for j in range(40)])
    table["target"] = targets(X, "binary")
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'target' has type"):
        on_disk(tmp_path / "t.parquet")
    names = [f"c{j}" for j in range(40)]
    model = FSAClassifier(3).fit(on_disk(tmp_path / "t.parquet", columns=names), table["target"])
    assert model.get_feature_names_out().tolist() == ["c9", "c19", "c29"]
    assert model.score(table[names], table["target"]) > 0.9
    with pytest.raises(ValueError, match="no column 'x'"):
        on_disk(tmp_path / "t.parquet", columns=["x"])


def test_sizes_by_criterion_and_by_folds(files):
    X, source = _matrix(), on_disk(files["columns.npy"])
    y = targets(X, "binary")
    for how in ({"sizes": [2, 3, 5], "criterion": "ebic"}, {"sizes": [2, 3], "cv": 2}):
        assert (
            FSAClassifierCV(**how).fit(source, y).n_features_
            == FSAClassifierCV(**how).fit(X, y).n_features_
        )


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_of_a_file(files, name):
    if name not in files:
        pytest.skip("needs annealed[disk] and annealed[parquet]")
    X, source = _matrix(), on_disk(files[name])
    columns = np.array([3, 17, 18, 40])
    for rows in (
        np.arange(900, 100, -3),
        np.arange(N) % 7 == 0,
        slice(250, 700),
        [5],
        np.array([], dtype=int),
    ):
        some = source[rows]
        assert some.shape == X[rows].shape
        np.testing.assert_array_equal(some[:, columns], X[rows][:, columns])
    np.testing.assert_array_equal(source[10:20, [9, 2]], X[10:20, [9, 2]])
    elsewhere = pickle.loads(
        pickle.dumps(on_disk(source, memory_limit="1MB", subsample=0.5)[50:70])
    )
    assert (elsewhere.source.memory_limit, elsewhere.subsample) == (1_000_000, 0.5)
    assert (source.memory_limit, source.subsample) == (None, 1.0)
    np.testing.assert_array_equal(elsewhere[:, columns], X[50:70][:, columns])


def test_cross_validation_and_pipelines_on_a_file(files):
    X, source = _matrix(), on_disk(files["columns.npy"], memory_limit="90KB")
    y = targets(X, "binary")
    model = FSAClassifier(3)
    folds = KFold(3, shuffle=True, random_state=0)
    np.testing.assert_allclose(
        cross_val_score(model, source, y, cv=folds),
        cross_val_score(FSAClassifier(3), X, y, cv=folds),
    )
    search = GridSearchCV(model, {"n_features_to_select": [1, 3]}, cv=2).fit(source, y)
    assert (
        search.best_params_
        == GridSearchCV(FSAClassifier(), {"n_features_to_select": [1, 3]}, cv=2)
        .fit(X, y)
        .best_params_
    )
    pipeline = make_pipeline(model, LogisticRegression()).fit(source, y)
    assert pipeline.score(source, y) == make_pipeline(FSAClassifier(3), LogisticRegression()).fit(
        X, y
    ).score(X, y)
    with pytest.raises(TypeError, match="X is a file of 1300 x 60 values"):
        make_pipeline(StandardScaler(), model).fit(source, y)


def test_words_for_bytes():
    assert parse_bytes("2GB") == 2_000_000_000
    for bad in ("", "GB", "-1GB", 0, None, "1 XB"):
        with pytest.raises(ValueError, match="memory_limit"):
            parse_bytes(bad)


def test_a_damaged_chunk_is_named(tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs annealed[disk]")
    X = np.random.default_rng(0).standard_normal((40, 6))
    zarr.save_array(str(tmp_path / "x.zarr"), X)
    chunk = max(
        (path for path in (tmp_path / "x.zarr").rglob("*") if path.is_file()),
        key=lambda path: path.stat().st_size,
    )
    chunk.write_bytes(b"garbage" * 30)
    with pytest.raises(ValueError, match=r"x\.zarr.*: the file is damaged or unreadable"):
        annealed.learners.FSARegressor(2).fit(on_disk(tmp_path / "x.zarr"), X[:, 1])


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    pytest.importorskip("pyarrow.parquet", reason="needs annealed[parquet]")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((900, 12)), columns=[f"c{j}" for j in range(12)])
    y = (table["c3"] - table["c7"] > 0).to_numpy()
    for part, rows in (
        ("year=2023/a", slice(0, 350)),
        ("year=2024/a", slice(350, 352)),
        ("year=2024/b", slice(352, 900)),
    ):
        path = tmp_path / "big" / f"{part}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table[rows].to_parquet(path, row_group_size=100)
    source = on_disk(tmp_path / "big", memory_limit="20KB")
    assert source.shape == (900, 12) and source.names == list(table.columns)
    np.testing.assert_array_equal(source[340:360, [2, 5]], table.to_numpy()[340:360, [2, 5]])
    whole = FSAClassifierCV(sizes=[1, 2, 3]).fit(table.to_numpy(), y)
    found = pickle.loads(pickle.dumps(source))
    found = FSAClassifierCV(sizes=[1, 2, 3]).fit(found, y)
    assert found.n_features_ == whole.n_features_ and (found.support_ == whole.support_).all()
    np.testing.assert_allclose(found.cv_scores_, whole.cv_scores_)
    other = tmp_path / "big" / "z.parquet"
    table.rename(columns={"c3": "other"}).to_parquet(other)
    with pytest.raises(ValueError, match=r"big: z\.parquet: the table has no column 'c3'"):
        on_disk(tmp_path / "big")
    other.write_bytes((tmp_path / "big" / "year=2024" / "b.parquet").read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"big: z\.parquet: "):
        on_disk(tmp_path / "big")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"expected \.npy, .* or a folder of \.parquet files"):
        on_disk(tmp_path / "empty")


@pytest.mark.parametrize("limit", ["60KB", "300KB"])
def test_exchanges_that_are_proposed_on_a_part_of_the_rows(tmp_path, monkeypatch, limit):
    """Where noise is selected, too, exchanges there bring columns in any order."""
    monkeypatch.setattr("annealed.learners.solvers.exchanges._ROWS", 150)
    monkeypatch.setattr("annealed.learners.solvers.exchanges._ROWS_PER_COLUMN", 1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 400)).astype(np.float32)
    y = X[:, 0] - X[:, 1] + rng.standard_normal(len(X))
    np.save(tmp_path / "X.npy", X)
    assert_same_fit(
        FSARegressor(10).fit(on_disk(tmp_path / "X.npy", memory_limit=limit), y),
        FSARegressor(10).fit(X, y),
    )
