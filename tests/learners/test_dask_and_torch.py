"""Fits on Dask arrays and torch tensors equal fits in memory: however they are chunked, whatever happens to the workers."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSARanker, FSARegressor, on_dask
from annealed.learners.objective.losses import LogisticLoss
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

try:
    import dask
    import dask.array as da
except ImportError:
    dask = da = None
needs_dask = pytest.mark.skipif(da is None, reason="needs annealed[dask]")

N, M = 700, 40


def _data(task="binary", seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, M)) + rng.standard_normal((N, 1)) + rng.uniform(-3, 3, M)) * rng.uniform(0.1, 10, M)
    X[:, 5] = 3.7
    signal = (X / X.std(axis=0).clip(1e-9))[:, [9, 19, 29]].sum(axis=1)
    signal -= signal.mean()
    y = {
        "binary": np.where(signal > 0, "yes", "no"),
        "classes": np.digitize(signal, [-1.5, 1.5]),
        "grades": np.digitize(signal, [-1.0, 1.0]),
        "number": signal,
        "numbers": np.column_stack([signal, -2 * signal]),
    }[task]
    return X.astype(np.float32), y


def _same(a, b, tol=1e-5):
    np.testing.assert_array_equal(a.support_, b.support_)
    for name in ("coef_", "responses_", "intercept_", "knots_", "missing_responses_", "loss_curve_"):
        if hasattr(a, name):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=tol, atol=tol, err_msg=name)


CASES = [("binary", loss) for loss in ("logistic", "flipped_logistic", "huberised_hinge", "lorenz", "squared")]
CASES += [("classes", "multinomial"), ("classes", "lorenz"), ("number", "squared"), ("numbers", "squared"), ("grades", None)]
KINDS = {"grades": FSARanker, "number": FSARegressor, "numbers": FSARegressor}


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
    chunks = tuple(tuple(np.diff([0, *sorted(cuts), size]).tolist()) for cuts, size in ((rows, N), (columns, M)))
    settings = {"response": response, "bins": bins, "n_steps": 10} | ({} if loss is None else {"loss": loss})
    kind = KINDS.get(task, FSAClassifier)
    with dask.config.set(scheduler="synchronous"):
        there = kind(3, **settings).fit(on_dask(da.from_array(X, chunks=chunks), memory_limit=limit), y)
    _same(there, kind(3, **settings).fit(X, y))


@needs_dask
def test_prediction_is_lazy():
    X, y = _data()
    D = da.from_array(X, chunks=(300, 17))
    model = FSAClassifier(3).fit(D, da.from_array(y, chunks=300), sample_weight=da.ones(N, chunks=100))
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
    assert several.predict(D).compute(scheduler="synchronous").tolist() == several.predict(X).tolist()
    assert several.predict_proba(D).shape == (N, 3)
    X, y = _data("number")
    numbers = FSARegressor(3).fit(D, y)
    np.testing.assert_allclose(numbers.predict(D).compute(scheduler="synchronous"), numbers.predict(X), rtol=1e-5, atol=1e-4)


@needs_dask
def test_data_frames():
    dd = pytest.importorskip("dask.dataframe", reason="needs annealed[dask]")
    X, y = _data()
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(M)])
    with dask.config.set(scheduler="synchronous"):
        there = FSAClassifier(3).fit(dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3))
    here = FSAClassifier(3).fit(table, y)
    _same(there, here)
    assert there.get_feature_names_out().tolist() == here.get_feature_names_out().tolist()


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
    with pytest.raises(ValueError, match=r"^column 'word' holds .*; expected numbers$"):
        FSAClassifier(1).fit(table, y)
    with pytest.raises(ValueError, match=r"^chunks of csr_matrix; expected numpy arrays$"):
        FSAClassifier(1).fit(D.map_blocks(sp.csr_matrix), y)


@needs_dask
def test_limits_belong_to_the_data():
    X, y = _data()
    with pytest.raises(TypeError, match=r"^ndarray is not on Dask; expected a Dask array or data frame$"):
        on_dask(X)
    D = da.from_array(X, chunks=(100, 40))
    with pytest.raises(ValueError, match="subsample=2 is not valid"):
        on_dask(D, subsample=2)
    with dask.config.set(scheduler="synchronous"):
        models = [FSAClassifier(3, random_state=s).fit(on_dask(D, memory_limit="2KB", subsample=0.3), y) for s in (0, 0, 1)]
    _same(models[0], models[1], 0)
    assert not np.array_equal(models[0].loss_curve_, models[2].loss_curve_)


@needs_dask
def test_missing_values():
    X, y = _data()
    X[::5, 9] = np.nan
    with dask.config.set(scheduler="synchronous"):
        there = FSAClassifier(3, response="piecewise").fit(da.from_array(X, chunks=(171, 23)), y)
        with pytest.raises(ValueError, match="in column 9"):
            FSAClassifier(3).fit(da.from_array(X, chunks=(171, 23)), y)
    _same(there, FSAClassifier(3, response="piecewise").fit(X, y))


@needs_dask
@pytest.mark.parametrize(("chunks", "bound"), [((50, 40), 1), ((50, 10), 2)])
def test_tasks_of_a_step_are_bounded_by_the_tiles(chunks, bound):
    from annealed.learners.designs.dask_design import DaskDesign
    from dask.callbacks import Callback

    X, y = _data()
    weight, targets = np.full(N, 1 / N), np.where(y == "yes", 1.0, -1.0)[:, None]
    design = DaskDesign(on_dask(da.from_array(X, chunks=chunks).persist(scheduler="synchronous")), weight)
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
    assert 0 < len(counted) <= bound * n_tiles + 2 * several * n_rows + sums * (len(design.parts) + several)


@needs_dask
def test_first_rows_far_from_each_other():
    X, y = _data()
    X = X.astype(np.float64) + 1e6 + np.repeat([0.0, 1e4], N // 2)[:, None]
    with dask.config.set(scheduler="synchronous"):
        _same(FSAClassifier(3).fit(da.from_array(X, chunks=(N // 2, M)), y), FSAClassifier(3).fit(X, y))


class _Killing(FSAClassifier):
    """Kills a worker after the third step."""

    def _solve(self, problem, sizes=None, observe=None):
        def kill(step, state):
            if step == 2:
                os.kill(self.victim, signal.SIGKILL)

        return super()._solve(problem, sizes, kill)


@pytest.mark.slow
def test_a_cluster_of_processes_and_a_killed_worker():
    distributed = pytest.importorskip("distributed", reason="needs annealed[dask]")
    X, y = _data()
    settings = {"n_steps": 20}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        D = on_dask(da.from_array(X, chunks=((300, 1, 399), (7, 33))), memory_limit="2KB")  # nothing comes to the client early
        whole = FSAClassifier(3, **settings).fit(D, y)
        model = _Killing(3, **settings)
        model.victim = next(iter(client.run(os.getpid).values()))
        model.fit(D, y)
        assert model.victim not in client.run(os.getpid).values()
    _same(model, whole, 0)
    _same(model, FSAClassifier(3, n_steps=20).fit(X, y))


def test_torch_is_not_imported_unless_asked_for():
    code = (
        "import sys, numpy as np; from annealed.learners import FSAClassifier; X = np.eye(20); "
        "FSAClassifier(2).fit(X, X[:, 3] > 0); assert 'torch' not in sys.modules and 'dask' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("response", ["linear", "piecewise"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_loss_and_response_on_tensors(case, response):
    torch = pytest.importorskip("torch", reason="needs annealed[torch]")
    task, loss = case
    X, y = _data(task)
    settings = {"response": response, "n_steps": 20} | ({} if loss is None else {"loss": loss})
    kind = KINDS.get(task, FSAClassifier)
    here = kind(3, **settings).fit(X, y)
    tensor = torch.from_numpy(X)
    there = kind(3, **settings).fit(tensor, torch.from_numpy(y) if y.dtype.kind == "f" else y)
    _same(there, here)
    if kind is not FSARanker:
        assert there.score(tensor, y) == pytest.approx(here.score(X, y), abs=1e-6)


def test_bad_tensors():
    torch = pytest.importorskip("torch", reason="needs annealed[torch]")
    X, y = _data()
    with pytest.raises(ValueError, match="expected rows and columns"):
        FSAClassifier(3).fit(torch.zeros(3), y)
    X[3, 7] = np.nan
    for other in (torch.ones(4, 3).to_sparse(), torch.ones(4, 3) * 1j):
        with pytest.raises(ValueError, match="expected a dense one of real numbers"):
            FSAClassifier(1).fit(other, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="in column 7"):
        FSAClassifier(3).fit(torch.from_numpy(X), y)
    assert FSAClassifier(3, response="piecewise").fit(torch.from_numpy(X), y).n_features_in_ == X.shape[1]


def test_cuda():
    torch = pytest.importorskip("torch", reason="needs annealed[torch]")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    X, y = _data()
    _same(FSAClassifier(3).fit(torch.from_numpy(X).cuda(), y), FSAClassifier(3).fit(X, y))
