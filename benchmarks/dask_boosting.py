"""Classifiers on the same Dask arrays and the same two workers: annealing, XGBoost and LightGBM.

    python benchmarks/dask_boosting.py --rows 30000 --columns 300

Two targets depend on ten of the columns: on their sum, and on a step function of each. Prints
wall-clock seconds (after a first fit on a hundredth of the rows, which compiles and connects),
processor seconds and peak memory of all processes above the state before the fit, the error on
20,000 other rows, and the number of columns that the model reads. XGBoost and LightGBM use their
defaults, 100 trees. Requires the packages of ``--methods``.
"""

import threading
import time

import dask.array as da
import numpy as np
import psutil
from annealed.learners import FSAClassifier
from common import new_parser, print_head, print_line
from dask.distributed import Client, LocalCluster, wait

N_TEST, K = 20_000, 10


def made(target: str, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return equicorrelated columns (Barbu et al., 2017, eq. (18)), and labels from columns 10, 20,
    ..."""
    rng, relevant = np.random.default_rng(0), 10 * np.arange(1, K + 1) - 1
    X = rng.standard_normal((n, m), dtype=np.float32)
    X += rng.standard_normal((n, 1), dtype=np.float32)
    parts = X[:, relevant] if target == "sum" else np.where(np.abs(X[:, relevant]) < 1, 1.0, -1.0)
    score = parts.sum(axis=1)
    return X, (score + rng.standard_normal(n) > np.median(score)).astype(int)


def annealed(target):
    return FSAClassifier(K, response="linear" if target == "sum" else "piecewise")


def xgboost(target):
    from xgboost.dask import DaskXGBClassifier

    return DaskXGBClassifier(n_estimators=100, tree_method="hist")


def lightgbm(target):
    from lightgbm import DaskLGBMClassifier

    return DaskLGBMClassifier(n_estimators=100, verbose=-1)


def columns_of(model) -> int:
    """Return the number of columns that a fitted model reads."""
    if hasattr(model, "support_"):
        return int(model.support_.sum())
    return int((np.asarray(model.feature_importances_) > 0).sum())


class Usage(threading.Thread):
    """Processor seconds and peak resident memory of this process and its children, since the
    start."""

    def __init__(self):
        super().__init__(daemon=True)
        this = psutil.Process()
        self.processes, self.ended = [this, *this.children(recursive=True)], threading.Event()
        self.before, self.seconds_before = self.memory(), self.seconds()
        self.peak = self.before
        self.start()

    def memory(self):
        return sum(process.memory_info().rss for process in self.processes)

    def seconds(self):
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def run(self):
        while not self.ended.wait(0.05):
            self.peak = max(self.peak, self.memory())

    def stop(self):
        """Return the processor seconds and the peak in bytes."""
        self.ended.set()
        return self.seconds() - self.seconds_before, self.peak - self.before


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument(
        "--repeats", type=int, default=3, help="number of fits, alternating; the median is printed"
    )
    parser.add_argument("--targets", nargs="+", default=["sum", "steps"])
    known = {"annealed": annealed, "xgboost": xgboost, "lightgbm": lightgbm}
    parser.add_argument("--methods", nargs="+", choices=known, default=list(known))
    a = parser.parse_args(argv)
    methods = [known[name] for name in a.methods]
    print_head("target", "method", "seconds", "processor seconds", "MB", "test error", "columns")
    with (
        LocalCluster(
            2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster),
    ):
        for target in a.targets:
            X, y = made(target, a.rows + N_TEST, a.columns)
            chunks = -(-a.rows // 8)
            D = da.from_array(X[: a.rows], chunks=(chunks, -1)).persist()
            t = da.from_array(y[: a.rows], chunks=chunks).persist()
            wait([D, t])
            few = D[::100].rechunk((-(-len(D[::100]) // 2), -1)).persist()
            few_t = t[::100].rechunk(few.chunks[0]).persist()
            for method in methods:
                method(target).fit(few, few_t)
            seconds, used, models = {m: [] for m in methods}, {m: [] for m in methods}, {}
            for _ in range(a.repeats):
                for method in methods:
                    usage, start = Usage(), time.perf_counter()
                    models[method] = method(target).fit(D, t)
                    seconds[method].append(time.perf_counter() - start)
                    used[method].append(usage.stop())
            test = da.from_array(X[a.rows :], chunks=(N_TEST // 2, -1))
            for method, model in models.items():
                processor, peak = np.median(used[method], axis=0)
                error = float((np.asarray(model.predict(test)) != y[a.rows :]).mean())
                print_line(
                    target,
                    method.__name__,
                    f"{np.median(seconds[method]):.1f}",
                    f"{processor:.1f}",
                    f"{peak / 1e6:.0f}",
                    f"{error:.4f}",
                    columns_of(model),
                )


if __name__ == "__main__":
    main()
