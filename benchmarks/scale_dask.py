"""The same fit in memory and on two Dask workers of the same machine: seconds, processor seconds of
all processes, and number of tasks.

    python benchmarks/scale_dask.py --rows 25000 50000 100000 --columns 10000

For both, the data are in memory: in pages of one file that all processes map, so that they are
stored once. Fits alternate, and the ratio is the median over consecutive pairs. Prints one line of
JSON for each number of rows.
"""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
from annealed.learners import FSAClassifier, on_dask
from common import new_parser
from dask.distributed import Client, LocalCluster, wait
from distributed.diagnostics.plugin import SchedulerPlugin


class Counting(SchedulerPlugin):
    """Counter of the tasks that workers finish."""

    name = "counting"
    count = 0

    def transition(self, key, start, finish, *args, **kwargs):
        self.count += start == "processing" and finish == "memory"


def write(path: Path, n: int, m: int, k: int) -> np.ndarray:
    """Write equicorrelated columns, Barbu et al. (2017), eq. (18). Return labels from columns 10,
    20, ..., 10 k."""
    rng, relevant = np.random.default_rng(0), 10 * np.arange(1, k + 1) - 1
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, m))
    for first in range(0, n, 1000):
        block = X[first : first + 1000]
        rng.standard_normal(out=(values := np.empty(block.shape, np.float32)), dtype=np.float32)
        block[:] = values + rng.standard_normal((len(block), 1), dtype=np.float32)
    return np.where(X[:, relevant].sum(axis=1) > 0, 1, -1)


def mapped(path: str, rows: slice = slice(None)) -> np.ndarray:
    return np.asarray(np.load(path, mmap_mode="r")[rows])


def compare(a, n: int, folder: Path, client, cluster) -> dict:
    """Fit alternately in memory and on the workers."""
    path, height, relevant = folder / f"{n}.npy", -(-n // a.tiles), 10 * np.arange(1, a.k + 1) - 1
    y = write(path, n, a.columns, a.k)
    values, workers = mapped(str(path)), list(client.run(os.getpid))
    tiles = []
    for i, first in enumerate(range(0, n, height)):
        rows = slice(first, min(n, first + height))
        tile = client.submit(
            mapped, str(path), rows, workers=[workers[i % len(workers)]], pure=False
        )
        tiles.append(da.from_delayed(tile, (rows.stop - rows.start, a.columns), np.float32))
    X = da.concatenate(tiles).persist()
    wait(X)
    counting = Counting()
    cluster.scheduler.add_plugin(counting)
    local, remote, cpu_here, cpu_there, tasks = [], [], [], [], []
    for i in range(a.repeats + 1):  # the first of each compiles and maps the pages
        start, cpu = time.perf_counter(), time.process_time()
        alone = FSAClassifier(a.k).fit(values, y)
        local.append(time.perf_counter() - start)
        cpu_here.append(time.process_time() - cpu)
        counting.count = 0
        cpu = time.process_time() + sum(client.run(time.process_time).values())
        start = time.perf_counter()
        model = FSAClassifier(a.k).fit(on_dask(X, memory_limit=a.memory_limit), y)
        remote.append(time.perf_counter() - start)
        cpu_there.append(time.process_time() + sum(client.run(time.process_time).values()) - cpu)
        tasks.append(counting.count)
        if i == 0:
            for times in (local, remote, cpu_here, cpu_there, tasks):
                times.clear()
    cluster.scheduler.remove_plugin(name=counting.name)
    path.unlink()
    median = statistics.median
    return {
        "rows": n,
        "columns": a.columns,
        "tiles": len(tiles),
        "workers": len(workers),
        "gb": round(values.nbytes / 1e9, 2),
        "same_support": bool((model.support_ == alone.support_).all()),
        "largest_difference": float(np.abs(model.coef_ - alone.coef_).max()),
        "found": int(model.support_[relevant].sum()),
        "of": a.k,
        "seconds_in_memory": round(median(local), 2),
        "seconds_dask": round(median(remote), 2),
        "ratio": round(median(t / h for t, h in zip(remote, local)), 2),
        "cpu_in_memory": round(median(cpu_here), 2),
        "cpu_dask": round(median(cpu_there), 2),
        "cpu_ratio": round(median(t / h for t, h in zip(cpu_there, cpu_here)), 2),
        "tasks": tasks,
        "load": round(os.getloadavg()[0], 1),
    }


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("-k", type=int, default=30)
    parser.add_argument("--tiles", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-limit")
    parser.add_argument(
        "--folder", default="/dev/shm", help="folder for the data, which remain in memory"
    )
    parser.add_argument(
        "--direct",
        action="store_true",
        help="the client asks the workers, not the scheduler, for the remaining columns",
    )
    a = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory(dir=a.folder) as folder,
        LocalCluster(
            n_workers=a.workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        Client(cluster, direct_to_workers=a.direct) as client,
    ):
        for n in a.rows:
            print(json.dumps(compare(a, n, Path(folder), client, cluster)), flush=True)


if __name__ == "__main__":
    main()
