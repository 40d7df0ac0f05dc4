"""Fits on Dask arrays equal fits in memory: however they are chunked, whatever happens to the
workers."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import (
    FSAClassifier,
    FSAClassifierCV,
    FSARegressor,
    FSARegressorCV,
    PiecewiseLinear,
    Schedule,
    on_dask,
    on_disk,
)
from annealed.learners.fsa.fit import solve
from annealed.learners.fsa.problem import fitted_attributes
from annealed.learners.objective.losses import LogisticLoss
from equal_fits import CASES, ESTIMATORS, assert_same_fit, correlated_matrix, targets
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

try:
    import dask
    import dask.array as da
except ImportError:
    dask = da = None
needs_dask = pytest.mark.skipif(da is None, reason="needs annealed[dask]")

N, M = 700, 40


def _data(task="binary"):
    X = correlated_matrix(N, M)
    return X, targets(X, task)


@needs_dask
@settings(max_examples=14, deadline=None, phases=[Phase.generate], derandomize=True)
@given(
    case=st.sampled_from(CASES),
    response=st.sampled_from(["linear", "piecewise"]),
    rows=st.lists(st.integers(1, N - 1), max_size=3, unique=True),
    columns=st.lists(st.integers(1, M - 1), max_size=3, unique=True),
    limit=st.sampled_from([None, "30KB"]),
    bins=st.sampled_from(["range", "quantile"]),
)
def test_any_loss_response_and_chunks(case, response, rows, columns, limit, bins):
    task, loss = case
    X, y = _data(task)
    chunks = tuple(
        tuple(np.diff([0, *sorted(cuts), size]).tolist())
        for cuts, size in ((rows, N), (columns, M))
    )
    response = response if response == "linear" else PiecewiseLinear(bins=bins)
    settings = {"response": response, "schedule": Schedule(n_steps=10)} | (
        {} if loss is None else {"loss": loss}
    )
    kind = ESTIMATORS.get(task, FSAClassifier)
    with dask.config.set(scheduler="synchronous"):
        there = kind(3, **settings).fit(
            on_dask(da.from_array(X, chunks=chunks), memory_limit=limit), y
        )
    assert_same_fit(there, kind(3, **settings).fit(X, y))


@needs_dask
def test_prediction_is_lazy():
    X, y = _data()
    D = da.from_array(X, chunks=(300, 17))
    model = FSAClassifier(3).fit(
        D, da.from_array(y, chunks=300), sample_weight=da.ones(N, chunks=100)
    )
    for name in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, name)(D)
        assert isinstance(lazy, da.Array)
        now = getattr(model, name)(X)
        assert lazy.shape == now.shape
        found = lazy.compute(scheduler="synchronous")
        assert found.dtype == now.dtype or found.dtype.kind == now.dtype.kind
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, now, rtol=1e-5, atol=1e-5)
        else:
            assert (found == now).all()
    X, y = _data("classes")
    several = FSAClassifier(3).fit(X, y)
    assert (
        several.predict(D).compute(scheduler="synchronous").tolist() == several.predict(X).tolist()
    )
    assert several.predict_proba(D).shape == (N, 3)
    X, y = _data("number")
    numbers = FSARegressor(3).fit(D, y)
    np.testing.assert_allclose(
        numbers.predict(D).compute(scheduler="synchronous"),
        numbers.predict(X),
        rtol=1e-5,
        atol=1e-4,
    )


@needs_dask
@pytest.mark.parametrize("task", ["binary", "several", "regression"])
def test_the_size_is_chosen_as_in_memory(task):
    X, y = _data("binary")
    rng = np.random.default_rng(1)
    y = (
        y
        if task == "binary"
        else np.digitize(X[:, 3], [-0.5, 0.5])
        if task == "several"
        else X[:, 3] + rng.standard_normal(N)
    )
    kind = FSARegressorCV if task == "regression" else FSAClassifierCV
    rows = {"sample_weight": rng.integers(0, 3, N).astype(float), "groups": np.arange(N) // 7}
    D = da.from_array(X, chunks=(300, 17))
    for matrix in (D, on_dask(D, memory_limit="30KB")):
        there, here = (
            kind(sizes=[1, 2, 4], cv=3).fit(matrix, y, **rows),
            kind(sizes=[1, 2, 4], cv=3).fit(X, y, **rows),
        )
        assert there.n_features_ == here.n_features_ and (there.support_ == here.support_).all()
        np.testing.assert_allclose(there.cv_scores_, here.cv_scores_, atol=1e-6)


@needs_dask
def test_data_frames():
    dd = pytest.importorskip("dask.dataframe", reason="needs annealed[dask]")
    X, y = _data()
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(M)])
    with dask.config.set(scheduler="synchronous"):
        there = FSAClassifier(3).fit(
            dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
        )
    here = FSAClassifier(3).fit(table, y)
    assert_same_fit(there, here)
    assert there.get_feature_names_out().tolist() == here.get_feature_names_out().tolist()


@needs_dask
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_that_workers_read(tmp_path, monkeypatch, order):
    monkeypatch.setattr("annealed.learners.sources.dask_matrix.BLOCK_BYTES", 9000)
    X, y = _data()
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    source, rows = on_disk(tmp_path / "X.npy", memory_limit="30KB"), np.arange(N) % 5 > 0
    whole, some = on_dask(source), on_dask(source[rows])
    assert (
        max(whole.array.chunks[0]) * max(whole.array.chunks[1]) * 4 <= 9000
        and whole.memory_limit == 30_000
    )
    assert on_dask(source, memory_limit="1MB").memory_limit == 1_000_000
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(some[:, [3, 11]], X[rows][:, [3, 11]])
        assert_same_fit(FSAClassifier(3).fit(whole, y), FSAClassifier(3).fit(X, y))
        assert_same_fit(FSAClassifier(3).fit(some, y[rows]), FSAClassifier(3).fit(X[rows], y[rows]))


@needs_dask
def test_chosen_columns_stay_on_dask_and_other_kinds_of_data_are_named():
    dd = pytest.importorskip("dask.dataframe", reason="needs annealed[dask]")
    X, y = _data()
    D = da.from_array(X, chunks=(171, 23))
    with dask.config.set(scheduler="synchronous"):
        model = FSAClassifier(3).fit(D, y)
        chosen = model.transform(D)
        assert isinstance(chosen, da.Array)
        np.testing.assert_array_equal(chosen.compute(), model.transform(X))
    table = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "word": ["x"] * N}), npartitions=2)
    with pytest.raises(ValueError, match=r"^column 'word' has dtype .*; expected numbers$"):
        FSAClassifier(1).fit(table, y)
    with pytest.raises(
        ValueError,
        match=r"^the chunks of the Dask array are of type csr_matrix; expected NumPy arrays$",
    ):
        FSAClassifier(1).fit(D.map_blocks(sp.csr_matrix), y)


@needs_dask
def test_limits_belong_to_the_data():
    X, y = _data()
    with pytest.raises(TypeError, match=r"^X is a ndarray; expected a Dask array or data frame$"):
        on_dask(X)
    D = da.from_array(X, chunks=(100, 40))
    with pytest.raises(ValueError, match="subsample=2 is not valid"):
        on_dask(D, subsample=2)
    with dask.config.set(scheduler="synchronous"):
        models = [
            FSAClassifier(3, random_state=s).fit(on_dask(D, memory_limit="2KB", subsample=0.3), y)
            for s in (0, 0, 1)
        ]
    assert_same_fit(models[0], models[1], 0)
    assert not np.array_equal(models[0].loss_curve_, models[2].loss_curve_)


@needs_dask
def test_missing_values():
    X, y = _data()
    X[::5, 9] = np.nan
    with dask.config.set(scheduler="synchronous"):
        there = FSAClassifier(3, response="piecewise").fit(da.from_array(X, chunks=(171, 23)), y)
        with pytest.raises(ValueError, match="in column 9"):
            FSAClassifier(3).fit(da.from_array(X, chunks=(171, 23)), y)
    assert_same_fit(there, FSAClassifier(3, response="piecewise").fit(X, y))


@needs_dask
@pytest.mark.parametrize(("chunks", "bound"), [((50, 40), 1), ((50, 10), 2)])
def test_tasks_of_a_step_are_bounded_by_the_tiles(chunks, bound):
    from annealed.learners.designs.dask_design import DaskDesign
    from dask.callbacks import Callback

    X, y = _data()
    weight, targets = np.full(N, 1 / N), np.where(y == "yes", 1.0, -1.0)[:, None]
    design = DaskDesign(
        on_dask(da.from_array(X, chunks=chunks).persist(scheduler="synchronous")), weight
    )
    counted = []
    n_tiles, n_rows = len(design.rows) * len(design.parts), len(design.rows)
    with dask.config.set(scheduler="synchronous"):
        loss, coef = LogisticLoss(), np.ones((M, 1, 1))
        design.gradient(np.zeros((N, 1)))  # the moments
        design.scores_and_gradient(coef, np.zeros(1), loss, targets, weight)
        with Callback(pretask=lambda key, dsk, state: counted.append(key)):
            design.scores_and_gradient(coef, np.zeros(1), loss, targets, weight)
    sums = -(-n_rows // 16)
    several = bound > 1
    assert (
        0
        < len(counted)
        <= bound * n_tiles + 2 * several * n_rows + sums * (len(design.parts) + several)
    )


@needs_dask
def test_first_rows_far_from_each_other():
    X, y = _data()
    X = X.astype(np.float64) + 1e6 + np.repeat([0.0, 1e4], N // 2)[:, None]
    with dask.config.set(scheduler="synchronous"):
        assert_same_fit(
            FSAClassifier(3).fit(da.from_array(X, chunks=(N // 2, M)), y),
            FSAClassifier(3).fit(X, y),
        )


class _Killing(FSAClassifier):
    """Kills a worker after the third step."""

    def _solve(self, problem, settings):
        def kill(step, state):
            if step == 2:
                os.kill(self.victim, signal.SIGKILL)

        self.__dict__.update(fitted_attributes(problem, solve(problem, settings, callbacks=[kill])))
        return self


def _score(model, rows, target):
    return float(np.mean(np.asarray(model.predict(rows)) == target))


@pytest.mark.slow
def test_a_cluster_of_processes_and_a_killed_worker():
    distributed = pytest.importorskip("distributed", reason="needs annealed[dask]")
    X, y = _data()
    schedule = Schedule(n_steps=20)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit="1GB",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # nothing comes to the client early
        D = on_dask(da.from_array(X, chunks=((300, 1, 399), (7, 33))), memory_limit="2KB")
        whole = FSAClassifier(3, schedule=schedule).fit(D, y)
        model = _Killing(3, schedule=schedule)
        model.victim = next(iter(client.run(os.getpid).values()))
        model.fit(D, y)
        assert model.victim not in client.run(os.getpid).values()
        chooser = FSAClassifierCV([1, 3], cv=3, schedule=schedule, scoring=_score)
        chosen = clone(chooser).fit(D, y)
        victims = [next(iter(client.run(os.getpid).values()))]

        def killing_score(model, rows, target):  # in the first of three folds
            if victims:
                os.kill(victims.pop(), signal.SIGKILL)
            return _score(model, rows, target)

        again = clone(chooser).set_params(scoring=killing_score).fit(D, y)
        assert not victims and again.n_features_ == chosen.n_features_
        assert np.array_equal(again.cv_scores_, chosen.cv_scores_) and np.array_equal(
            again.coef_, chosen.coef_
        )
    here = FSAClassifierCV([1, 3], cv=3, schedule=schedule).fit(X, y)
    assert chosen.n_features_ == here.n_features_ and (chosen.support_ == here.support_).all()
    assert_same_fit(model, whole, 0)
    assert_same_fit(model, FSAClassifier(3, schedule=schedule).fit(X, y))
