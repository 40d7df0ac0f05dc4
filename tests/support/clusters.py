"""Training on a small cluster."""

import os
import signal

import pytest
from annealed.pipelines.common.file_map import by_dask


def assert_same_on_a_cluster(train, out, when, folder):
    """``train(path, say, n_jobs)`` writes the file ``out`` to the byte, also where a worker dies as
    soon as a line with that word is said."""
    distributed = pytest.importorskip("distributed", reason="needs annealed[dask]")
    options = {
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
        "memory_limit": "1GB",
    }
    with distributed.LocalCluster(2, **options) as cluster:
        victims = [next(iter(cluster.workers.values())).pid]

        def say(line):
            if when in line and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        train(folder / "dask.safetensors", say, by_dask(cluster.scheduler_address))
    assert (folder / "dask.safetensors").read_bytes() == out.read_bytes() and not victims
