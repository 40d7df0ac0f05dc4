"""Memory of fits on data out of core: the limit, plus a constant for what it does not count."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import write_csr

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
N, M, LIMIT = 200_000, 80, 20_000_000
CONSTANT = 300_000_000  # of limits below a gigabyte

# A process of its own: memory that other tests have freed stays with the process.
CHILD = """
import re, sys, threading, warnings
import numpy as np
from annealed.learners import FSAClassifier, FSAClassifierCV, FSAPath, on_dask, on_disk


def anonymous():
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", file.read())[1])


def peak(fit):
    before, seen, done = anonymous(), [], threading.Event()

    def watch():
        while not done.wait(0.002):
            seen.append(anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        fit()
    finally:
        done.set()
        thread.join()
    return max(seen, default=before) - before


def main(kind, path, limit):
    y, X = np.load("y.npy"), on_disk(path, memory_limit=int(limit))
    if kind == "dask":
        from distributed import Client

        client = Client(n_workers=1, threads_per_worker=1, dashboard_address=None)
        X = on_dask(X)
    small = np.random.default_rng(0).standard_normal((500, 30), dtype=np.float32)
    FSAClassifier(3).fit(small, small[:, 0] > 0)  # imports and compiles
    print("exchanges", peak(lambda: FSAClassifier(5).fit(X, y)))
    print("path", peak(lambda: FSAPath(FSAClassifier(), sizes=[2, 5]).fit(X, y)))
    if kind != "dask":
        print("size", peak(lambda: FSAClassifierCV([2, 5], cv=2).fit(X, y)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same numbers, a fifth of which are not 0, in every container."""
    folder, rng = tmp_path_factory.mktemp("limits"), np.random.default_rng(0)
    X = rng.standard_normal((N, M), dtype=np.float32)
    X *= rng.random((N, M), dtype=np.float32) < 0.2
    np.save(folder / "y.npy", X[:, ::16].sum(axis=1) + rng.standard_normal(N) > 0)
    np.save(folder / "dense.npy", X)
    sp.save_npz(folder / "X.npz", sp.csr_array(X), compressed=False)
    write_csr(folder / "X.npz", folder / "csr")
    (folder / "child.py").write_text(CHILD)
    return folder


def _parquet(folder):
    pa = pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
    import pyarrow.parquet as pq

    X = np.load(folder / "dense.npy")
    table = pa.table(list(X.T), [f"x{j}" for j in range(M)])
    pq.write_table(table, folder / "X.parquet", row_group_size=20_000)
    return "X.parquet"


@pytest.mark.parametrize("kind", ["dense", "csr", "parquet", "dask"])
def test_exchanges_paths_and_the_choice_of_a_size_keep_to_the_limit(kind, folder):
    if kind == "dask":
        pytest.importorskip("distributed", reason="needs annealed[dask]")
    path = {"csr": "csr"}.get(kind, "dense.npy") if kind != "parquet" else _parquet(folder)
    command = [sys.executable, "child.py", kind, path, str(LIMIT)]
    output = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    peaks = {name: int(value) for name, value in map(str.split, output.splitlines())}
    assert peaks and {name: n for name, n in peaks.items() if n > LIMIT + CONSTANT} == {}
