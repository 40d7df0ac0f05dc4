"""Time of a fit relative to the memory bandwidth: N x M matrix of float32, k = 10, 100 steps, mu =
100, standardisation included.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/bandwidth.py --samples 10000 --features
    10000

The limit is ONE fused read of the remaining columns per step: the schedule's sum of M_e times the
time of one read of the matrix, measured in the same run as the fastest of a sum over it and a
product with a vector.
"""

from __future__ import annotations

import json
import platform
import sys
import time

import numpy as np
from annealed.learners import FSAClassifier
from annealed.learners.solvers.schedules import inverse
from common import new_parser, seconds_of
from numba import njit, prange


@njit(parallel=True, fastmath=True)
def read(X):
    """Return the sum of all values: one read at the speed of the memory."""
    total = np.zeros(X.shape[0], np.float32)
    for i in prange(X.shape[0]):
        s = np.float32(0)
        for j in range(X.shape[1]):
            s += X[i, j]
        total[i] = s
    return total.sum()


def best(function, repeats, clock=time.perf_counter):
    times = seconds_of(function, repeats, clock)
    return min(times), float(np.median(times))


def blas():
    """Return the names of the BLAS libraries, with the processor that each detects."""
    from threadpoolctl import threadpool_info

    return [
        f"{i.get('internal_api')} {i.get('architecture', '')} x{i['num_threads']}"
        for i in threadpool_info()
    ]


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--order", choices=["C", "F"], default="C")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    X = np.empty((args.samples, args.features), np.float32, order=args.order)
    for start in range(0, args.samples, 500):
        X[start : start + 500] = rng.standard_normal(
            (min(500, args.samples - start), args.features), dtype=np.float32
        )
    y = np.where(X[:, :100:10].sum(axis=1) > 0, 1, -1)
    # one thread, for stable times
    clock = time.process_time if args.n_jobs == 1 else time.perf_counter
    rows = X if args.order == "C" else X.T
    v = np.ones(rows.shape[1], np.float32)
    read(rows[:10])
    once = min(best(lambda: read(rows), 5, clock)[0], best(lambda: rows @ v, 5, clock)[0])
    counts = inverse(args.features, 10, 100, 100.0)
    reads = 1.0 + counts[:-1].sum() / args.features
    limit = reads * once
    rows_out = []
    for name, settings in {
        "linear, annealing alone": {"refinement": None},
        "linear": {},
        "piecewise, annealing alone": {"response": "piecewise", "refinement": None},
    }.items():
        model = FSAClassifier(10, n_jobs=args.n_jobs, **settings)
        model.fit(X[:1000, :500], y[:1000])
        fastest, median = best(lambda model=model: model.fit(X, y), args.repeats, clock)
        rows_out.append(
            {"what": name, "fastest": fastest, "median": median, "times_limit": fastest / limit}
        )
        recall = np.isin(np.arange(0, 100, 10), model.get_support(indices=True)).mean()
        print(
            f"{name:30s} {fastest:.3f} s (median {median:.3f}), {fastest / limit:.2f} times the "
            f"limit, recall {recall:.0%}",
            file=sys.stderr,
        )
    head = {
        "one_read": once,
        "reads": reads,
        "limit": limit,
        "gigabytes_per_second": X.nbytes / once / 1e9,
    }
    print(
        f"one read {once:.4f} s ({head['gigabytes_per_second']:.1f} GB/s), {reads:.2f} reads, "
        f"limit {limit:.3f} s",
        file=sys.stderr,
    )
    print(f"{platform.processor() or platform.machine()}; {', '.join(blas())}", file=sys.stderr)
    if args.json:
        settings = {**vars(args), **head, "blas": blas()}
        print(json.dumps({"name": "bandwidth", "settings": settings, "rows": rows_out}))


if __name__ == "__main__":
    main()
