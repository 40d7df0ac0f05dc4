"""Timings of sDist.

    python benchmarks/sdist_speed.py scaling|lmnn|tables|pets_like [--data DIR] [--out DIR]

scaling: seconds against p and N; lmnn: sDist compared with LMNN on Madelon in one run (with
metric-learn in a separate environment, --lmnn-python); tables: the rows of LMNN in the tables of Ma
(thesis); pets_like: 31,000 sparse columns and 280 rows, both solvers.
"""

import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import matplotlib
from common import new_parser, seconds_of, timed

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from annealed.learners import SDist
from annealed_experiments.datasets import load_set, random_split
from annealed_experiments.tables.metric import SIMULATED, sdist_real, sdist_simulated
from annealed_experiments.tables.simulated import simulated_case
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

_LMNN = """
import json, signal, sys, time, warnings
import numpy as np
from metric_learn import LMNN

data, (n_neighbors, limit) = np.load(sys.argv[1]), map(float, sys.argv[3:])
warnings.simplefilter("ignore")

def keep(L, finished):
    np.savez(sys.argv[2], components=L, seconds=time.process_time() - start, finished=finished)
    sys.exit()

def give_up(_, frame):
    while frame.f_code.co_name != "fit":
        frame = frame.f_back
    keep(frame.f_locals["L"], False)

signal.signal(signal.SIGPROF, give_up)
signal.setitimer(signal.ITIMER_PROF, limit)
start = time.process_time()
model = LMNN(n_neighbors=int(n_neighbors), random_state=0).fit(data["X"], data["y"])
signal.setitimer(signal.ITIMER_PROF, 0)
keep(model.components_, True)
"""


class LMNN(ClassifierMixin, BaseEstimator):
    """Classifier by three neighbours in the metric of metric-learn's large margin nearest
    neighbours.

    metric-learn 0.7 needs scikit-learn below 1.6, which this package does not support: it runs in a
    separate environment with the interpreter ``python``. After ``seconds`` of processor time the
    fit is stopped: the metric is then the last one, and ``finished_`` is False.
    """

    def __init__(self, python, n_neighbors=3, seconds=60.0, standardize=True):
        self.python = python
        self.n_neighbors = n_neighbors
        self.seconds = seconds
        self.standardize = standardize

    def fit(self, X, y):
        """Learn the metric."""
        self._scaler = StandardScaler(with_mean=self.standardize, with_std=self.standardize).fit(X)
        X = self._scaler.transform(X)
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / name) for name in ("rows.npz", "metric.npz")]
            np.savez(files[0], X=X, y=y)
            command = [self.python, "-c", _LMNN, *files, str(self.n_neighbors), str(self.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ValueError(
                    f"{self.python}: LMNN failed "
                    f"({(done.stderr.splitlines() or ['no message'])[-1]})"
                )
            with np.load(files[1]) as result:
                self.components_ = result["components"]
                self.seconds_, self.finished_ = result["seconds"].item(), result["finished"].item()
        self.classes_, self._votes = (
            np.unique(y),
            KNeighborsClassifier(3).fit(X @ self.components_.T, y),
        )
        return self

    def predict(self, X):
        """Predict by the votes of the three nearest rows."""
        return self._votes.predict(self._scaler.transform(X) @ self.components_.T)


def tables(data, out, python, seconds):
    """Print the rows of LMNN in the tables of Ma (thesis) as ``annealed reproduce`` would print
    them."""
    rows = sdist_real(3, data, methods=["LMNN"], others={"LMNN": LMNN(python, seconds=seconds)})[
        "rows"
    ]
    raw = {"LMNN": LMNN(python, seconds=seconds, standardize=False)}
    rows += sdist_simulated(3, sets=["100", "500"], methods=["LMNN"], others=raw)["rows"]
    for row in rows:
        print(row, flush=True)


def scaling(data, out):
    """Measure the processor seconds of one fit against p at N = 500, and against N at p = 200, with
    the slopes of the log-log lines."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    settings = {**SIMULATED, "seed_interactions": 0, "n_steps": 50}
    SDist(**settings).fit(*simulated_case("xor", 100, 20, 0)[:2])
    for ax, name, values in (
        (axes[0], "p", (100, 300, 1000, 3000, 10000)),
        (axes[1], "N", (200, 500, 1000, 2000, 5000)),
    ):
        seconds = []
        for value in values:
            n, p = (500, value) if name == "p" else (value, 200)
            X, y, _, _ = simulated_case("xor", n, p, 0, n_test=10)
            times = seconds_of(partial(SDist(**settings).fit, X, y), 3)
            seconds.append(float(np.median(times)))
        slope = np.polyfit(np.log(values[2:]), np.log(seconds[2:]), 1)[0]
        print(
            name,
            dict(zip(values, np.round(seconds, 3).tolist())),
            "slope of the last three",
            round(float(slope), 2),
        )
        ax.loglog(values, seconds, "o-", label=f"measured; slope of the last three {slope:.2f}")
        ax.loglog(
            values[2:], seconds[-1] * np.array(values[2:]) / values[-1], "k--", label="slope 1"
        )
        ax.set_xticks(values, [f"{value:,}" for value in values])
        ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1.0, 2.0], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
        ax.set_ylim(0.04, 3.0)
        ax.minorticks_off()
        ax.legend(loc="upper left")
        ax.set_xlabel(name)
        ax.set_ylabel("seconds, 50 steps")
        ax.set_title("N = 500" if name == "p" else "p = 200")
    figure.tight_layout()
    figure.savefig(out / "sdist_scaling.png", dpi=70)


def lmnn(data, out, python, seconds):
    """SDist, then LMNN in the environment of another python, on one 70 / 30 split of Madelon;
    processor seconds of one thread.

    LMNN is stopped after ``seconds``: its time is then a lower bound, and its error that of the
    metric it had reached.
    """
    X, y, X_test, y_test = load_set("madelon", data)
    X, y, X_test, y_test = random_split(np.concatenate([X, X_test]), np.concatenate([y, y_test]), 0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    settings = {"kappa": 10, "max_order": 1, "learning_rate": 0.1, "n_features_to_select": 20}
    SDist(**settings, n_steps=2).fit(X[:100], y[:100])  # compiles
    times = []
    for _ in range(3):
        model, took = timed(lambda: SDist(**settings, n_steps=200).fit(X, y))
        times.append(took)
    error = 1 - model.score(X_test, y_test)
    print(
        f"sDist: {np.median(times):.2f} s (median of 3), error of 3 neighbours {error:.4f}",
        flush=True,
    )
    other = LMNN(python, seconds=seconds).fit(X, y)
    error = 1 - other.score(X_test, y_test)
    word = "finished" if other.finished_ else "not finished"
    print(
        f"LMNN: {word} after {other.seconds_:.1f} s, error of 3 neighbours {error:.4f}; "
        f"{other.seconds_ / np.median(times):.0f} times"
    )


def pets_like(data, out, solvers=("power", "sgd")):
    """Time both solvers for 50 steps on 280 rows of 31,000 columns, 17 % dense, 40 of them
    informative, in processor seconds of one thread."""
    rng = np.random.default_rng(0)
    n, p = 400, 31000
    y = rng.integers(0, 2, n)
    X = rng.exponential(size=(n, p)) * (rng.random((n, p)) < 0.17)
    X[:, :40] = rng.exponential(size=(n, 40)) * (rng.random((n, 40)) < 0.1 + 0.25 * y[:, None])
    X = sp.csr_matrix(X)
    for solver in solvers:
        model = SDist(solver=solver, n_steps=50, n_features_to_select=100, random_state=0)
        start = time.process_time()
        model.fit(X[:280], y[:280])
        seconds = time.process_time() - start
        true = int(np.sum(model.selected_features_ < 40))
        print(
            solver,
            round(seconds, 1),
            "s, error",
            round(1 - model.score(X[280:], y[280:]), 3),
            f"{true} of 40 true columns",
            flush=True,
        )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("what", choices=["scaling", "lmnn", "tables", "pets_like"])
    parser.add_argument("--data", help="folder with the real data")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument(
        "--lmnn-python",
        help="lmnn, tables: Python interpreter of an environment with metric-learn and "
        "scikit-learn < 1.6",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="lmnn, tables: processor seconds after which LMNN is stopped",
    )
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    more = (
        (arguments.lmnn_python, arguments.seconds) if arguments.what in ("lmnn", "tables") else ()
    )
    globals()[arguments.what](arguments.data, arguments.out, *more)


if __name__ == "__main__":
    main()
