"""Timings of sDist.

    python benchmarks/sdist_speed.py scaling|lmnn|pets_like [--data DIR] [--out DIR]

scaling: seconds against p and N; lmnn: sDist against LMNN on Madelon in one run (metric-learn in an
environment of its own: --lmnn-python); pets_like: 31,000 sparse columns and 280 rows, both solvers.
"""

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
from annealed.pipelines.reproduce.competitors import LMNN
from annealed.pipelines.reproduce.datasets import load_set, random_split
from annealed.pipelines.reproduce.metric import SIMULATED
from annealed.pipelines.reproduce.simulated import simulated_case
from sklearn.neighbors import KNeighborsClassifier


def scaling(data, out):
    """Processor seconds of one fit against p at N = 500, and against N at p = 200; slopes of the
    log-log lines."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    settings = {**SIMULATED, "seed_interactions": 0, "n_steps": 50}
    SDist(**settings).fit(*simulated_case("xor", 100, 20, 0)[:2])
    for ax, name, values in ((axes[0], "p", (100, 300, 1000, 3000, 10000)), (axes[1], "N", (200, 500, 1000, 2000, 5000))):
        seconds = []
        for value in values:
            n, p = (500, value) if name == "p" else (value, 200)
            X, y, _, _ = simulated_case("xor", n, p, 0, n_test=10)
            times = seconds_of(partial(SDist(**settings).fit, X, y), 3)
            seconds.append(float(np.median(times)))
        slope = np.polyfit(np.log(values[2:]), np.log(seconds[2:]), 1)[0]
        print(name, dict(zip(values, np.round(seconds, 3).tolist())), "slope of the last three", round(float(slope), 2))
        ax.loglog(values, seconds, "o-", label=f"measured; slope of the last three {slope:.2f}")
        ax.loglog(values[2:], seconds[-1] * np.array(values[2:]) / values[-1], "k--", label="slope 1")
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
    mean, sd = X.mean(axis=0), X.std(axis=0)
    X, X_test = (X - mean) / sd, (X_test - mean) / sd
    settings = {"kappa": 10, "max_order": 1, "learning_rate": 0.1, "n_features_to_select": 20}
    SDist(**settings, n_steps=2).fit(X[:100], y[:100])  # compiles
    times = []
    for _ in range(3):
        model, took = timed(lambda: SDist(**settings, n_steps=200).fit(X, y))
        times.append(took)
    error = 1 - model.score(X_test, y_test)
    print(f"sDist: {np.median(times):.2f} s (median of 3), error of 3 neighbours {error:.4f}", flush=True)
    other = LMNN(python, seconds=seconds).fit(X, y)
    error = 1 - KNeighborsClassifier(3).fit(other.transform(X), y).score(other.transform(X_test), y_test)
    word = "finished" if other.finished_ else "not finished"
    print(
        f"LMNN: {word} after {other.seconds_:.1f} s, error of 3 neighbours {error:.4f}; {other.seconds_ / np.median(times):.0f} times"
    )


def pets_like(data, out, solvers=("power", "sgd")):
    """280 rows of 31,000 columns, 17 % dense, 40 of them informative: both solvers for 50 steps,
    processor seconds of one thread."""
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
    parser.add_argument("what", choices=["scaling", "lmnn", "pets_like"])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--lmnn-python", help="lmnn: python of an environment with metric-learn and scikit-learn < 1.6")
    parser.add_argument("--seconds", type=float, default=60.0, help="lmnn: stop it after so many processor seconds")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    more = (arguments.lmnn_python, arguments.seconds) if arguments.what == "lmnn" else ()
    globals()[arguments.what](arguments.data, arguments.out, *more)


if __name__ == "__main__":
    main()
