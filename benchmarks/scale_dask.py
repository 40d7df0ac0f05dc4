"""The same fit in memory and on two Dask workers of the same machine: seconds, processor seconds of all processes, tasks per step.

    python benchmarks/scale_dask.py --rows 100000 --columns 10000

Data lie in the memory of the workers, as they lie in memory for the other fit. Prints one line of JSON.
"""

import argparse
import json
import os
import statistics
import time

import dask.array as da
import numpy as np
from annealed.learners import FSAClassifier
from dask.distributed import Client, LocalCluster, wait
from distributed.diagnostics.plugin import SchedulerPlugin


class Counting(SchedulerPlugin):
    """Counts the tasks that workers finish."""

    name = "counting"
    count = 0

    def transition(self, key, start, finish, *args, **kwargs):
        self.count += start == "processing" and finish == "memory"


def main(a) -> dict:
    settings = {} if a.memory_limit is None else {"memory_limit": a.memory_limit}
    relevant = 10 * np.arange(1, a.k + 1) - 1
    with (
        LocalCluster(n_workers=a.workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        rng = da.random.default_rng(0)
        X = rng.standard_normal((a.rows, a.columns), dtype=np.float32, chunks=tuple(a.chunks))
        X = (X + rng.standard_normal((a.rows, 1), dtype=np.float32, chunks=(a.chunks[0], 1))).persist()
        wait(X)
        client.rebalance(X)
        y = np.where(X[:, relevant].sum(axis=1).compute() > 0, 1, -1)
        FSAClassifier(3, **settings).fit(X[:2000, :300].rechunk((600, 300)).persist(), y[:2000])  # compiles
        client.run(time.process_time)
        tasks, there, cpu_there = [], [], []
        scheduler = cluster.scheduler
        plugin = Counting()
        scheduler.add_plugin(plugin)
        for _ in range(a.repeats):
            plugin.count = 0
            before = time.process_time() + sum(client.run(time.process_time).values())
            start = time.perf_counter()
            model = FSAClassifier(a.k, **settings).fit(X, y)
            there.append(time.perf_counter() - start)
            cpu_there.append(time.process_time() + sum(client.run(time.process_time).values()) - before)
            tasks.append(plugin.count)
        tiles = X.npartitions
        values = X.compute()
        del X
    FSAClassifier(3).fit(values[:2000, :300].copy(), y[:2000])
    here, cpu_here = [], []
    for _ in range(a.repeats):
        start, cpu = time.perf_counter(), time.process_time()
        alone = FSAClassifier(a.k).fit(values, y)
        here.append(time.perf_counter() - start)
        cpu_here.append(time.process_time() - cpu)
    median = statistics.median
    return {
        "rows": a.rows, "columns": a.columns, "tiles": tiles, "workers": a.workers, "same_support": bool((model.support_ == alone.support_).all()),
        "largest_difference": float(np.abs(model.coef_ - alone.coef_).max()), "found": int(model.support_[relevant].sum()), "of": a.k,
        "seconds_in_memory": round(median(here), 2), "seconds_dask": round(median(there), 2), "ratio": round(median(there) / median(here), 2),
        "cpu_in_memory": round(median(cpu_here), 2), "cpu_dask": round(median(cpu_there), 2),
        "cpu_ratio": round(median(cpu_there) / median(cpu_here), 2), "tasks": tasks, "load": os.getloadavg()[0],
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("-k", type=int, default=30)
    parser.add_argument("--chunks", type=int, nargs=2, default=(6250, 10_000))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-limit")
    print(json.dumps(main(parser.parse_args())))
