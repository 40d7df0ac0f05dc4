"""Fits on torch tensors equal fits on arrays, on the CPU and on a GPU."""

import subprocess
import sys

import numpy as np
import pytest
from annealed.learners import FSAClassifier, FSARanker, Schedule
from equal_fits import CASES, ESTIMATORS, assert_same_fit, correlated_matrix, targets

N, M = 700, 40


def _data(task="binary"):
    X = correlated_matrix(N, M)
    return X, targets(X, task)


def test_torch_is_not_imported_unless_asked_for():
    code = (
        "import sys, numpy as np; from annealed.learners import FSAClassifier; X = np.eye(20); "
        "FSAClassifier(2).fit(X, X[:, 3] > 0); "
        "assert 'torch' not in sys.modules and 'dask' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("response", ["linear", "piecewise"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_loss_and_response_on_tensors(case, response):
    torch = pytest.importorskip("torch", reason="needs annealed[torch]")
    task, loss = case
    X, y = _data(task)
    settings = {"response": response, "schedule": Schedule(n_steps=20)} | (
        {} if loss is None else {"loss": loss}
    )
    kind = ESTIMATORS.get(task, FSAClassifier)
    here = kind(3, **settings).fit(X, y)
    tensor = torch.from_numpy(X)
    there = kind(3, **settings).fit(tensor, torch.from_numpy(y) if y.dtype.kind == "f" else y)
    assert_same_fit(there, here)
    if kind is not FSARanker:
        assert there.score(tensor, y) == pytest.approx(here.score(X, y), abs=1e-6)


def test_bad_tensors():
    torch = pytest.importorskip("torch", reason="needs annealed[torch]")
    X, y = _data()
    with pytest.raises(ValueError, match="expected two dimensions"):
        FSAClassifier(3).fit(torch.zeros(3), y)
    X[3, 7] = np.nan
    for other in (torch.ones(4, 3).to_sparse(), torch.ones(4, 3) * 1j):
        with pytest.raises(ValueError, match="expected a dense tensor of real numbers"):
            FSAClassifier(1).fit(other, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="in column 7"):
        FSAClassifier(3).fit(torch.from_numpy(X), y)
    assert (
        FSAClassifier(3, response="piecewise").fit(torch.from_numpy(X), y).n_features_in_
        == X.shape[1]
    )


def test_cuda():
    torch = pytest.importorskip("torch", reason="needs annealed[torch]")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    X, y = _data()
    assert_same_fit(FSAClassifier(3).fit(torch.from_numpy(X).cuda(), y), FSAClassifier(3).fit(X, y))
