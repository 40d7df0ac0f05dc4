"""Pictures and timings of sDist and the sparse online learners.

    python benchmarks/metric_figures.py surfaces|scaling|nonzeros|sparsity|lmnn|pets_like [--data DIR] [--out DIR]

surfaces: the thesis' Figures 2.1 and 2.3, the learnt surface over the two informative columns; scaling: seconds against p and N;
nonzeros: Figures 3.1 and 3.5, features in use along the iterations on Dexter; sparsity: Figure 3.3, which densities are selected on
Dorothea; lmnn: sDist against LMNN on Madelon in one run (metric-learn in an environment of its own: --lmnn-python); pets_like:
31,000 sparse columns and 280 rows, both solvers.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from annealed.learners import SDist, StabilizedTruncatedSGDClassifier, TruncatedGradientClassifier
from annealed.learners.metric_learning.boosting import SparseMetric
from annealed.pipelines.reproduce.metric import SIMULATED
from annealed.pipelines.reproduce.metric_data import load_set, random_split, simulated_case
from sklearn.preprocessing import MaxAbsScaler, normalize


def surfaces(data, out):
    """First direction of the learnt subspace over the two informative columns, at the first, middle and last step."""
    figure, axes = plt.subplots(2, 4, figsize=(13, 6.5))
    grid = np.linspace(-2.5, 2.5, 61)
    a, b = np.meshgrid(grid, grid)
    for row, case in enumerate(("rings", "xor")):
        X, y, _, _ = simulated_case(case, 500, 50, 0)
        axes[row, 0].scatter(*X[:, :2].T, c=y, s=6, cmap="coolwarm")
        axes[row, 0].set_title(f"{case}: 500 rows, 2 of 50 columns")
        points = np.zeros((a.size, 50), np.float32)
        points[:, 0], points[:, 1] = a.ravel(), b.ravel()
        model = SDist(**{**SIMULATED, "n_features_to_select": None}).fit(X, y)
        for column, steps in enumerate((1, len(model.path_) // 2, len(model.path_))):
            metric = SparseMetric.of(model.path_[:steps])
            surface = model._features.columns(points, metric.columns) @ metric.factor()[0]
            axes[row, column + 1].contourf(a, b, surface.reshape(a.shape), 20, cmap="viridis")
            axes[row, column + 1].set_title(f"first direction, step {steps}")
    figure.tight_layout()
    figure.savefig(out / "sdist_surfaces.png", dpi=70)


def scaling(data, out):
    """Processor seconds of one fit against p at N = 500, and against N at p = 200; slopes of the log-log lines."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    settings = {**SIMULATED, "seed_interactions": 0, "n_steps": 50}
    SDist(**settings).fit(*simulated_case("xor", 100, 20, 0)[:2])
    for ax, name, values in ((axes[0], "p", (100, 300, 1000, 3000, 10000)), (axes[1], "N", (200, 500, 1000, 2000, 5000))):
        seconds = []
        for value in values:
            n, p = (500, value) if name == "p" else (value, 200)
            X, y, _, _ = simulated_case("xor", n, p, 0, n_test=10)
            times = []
            for _ in range(3):
                start = time.process_time()
                SDist(**settings).fit(X, y)
                times.append(time.process_time() - start)
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


def nonzeros(data, out):
    """Features in use after every 25 rows on Dexter, of those that occur in the training rows: truncated gradient against the annealed stages and the repaired text."""
    X, y, _, _ = load_set("dexter", data)
    X = normalize(X[:, X.getnnz(axis=0) > 0])  # the others are never met
    figure, ax = plt.subplots(figsize=(7, 4))
    for label, model in (
        ("annealed stages", StabilizedTruncatedSGDClassifier(300, loss="logistic", learning_rate=3.0, random_state=0)),
        (
            "text, repaired",
            StabilizedTruncatedSGDClassifier(selection="threshold", rejection=0.7, annealing=-3.0, min_bursts=5, random_state=0),
        ),
    ):
        ax.plot(25 * np.arange(1, len(model.fit(X, y).history_) + 1), model.history_[:, 0] / X.shape[1], label=label)
    model, shares = TruncatedGradientClassifier(gravity=3e-3, learning_rate=1.0, random_state=0), []
    rng = np.random.default_rng(0)
    for _ in range(20):
        for rows in np.array_split(rng.permutation(len(y)), 12):
            model.partial_fit(X[rows], y[rows], classes=[-1, 1])
            shares.append(np.mean(model.coef_ != 0))
    ax.plot(25 * np.arange(1, len(shares) + 1), shares, label="truncated gradient")
    ax.set_xlabel("rows seen by each path")
    ax.set_ylabel(f"share of the {X.shape[1]:,} columns in use")
    ax.set_yscale("log")
    ax.legend()
    figure.tight_layout()
    figure.savefig(out / "online_nonzeros.png", dpi=70)


def sparsity(data, out):
    """Share of the columns selected at each density on Dorothea."""
    X, y, _, _ = load_set("dorothea", data)
    X = MaxAbsScaler().fit_transform(X)
    density = np.asarray((X != 0).mean(axis=0)).ravel()
    edges = np.quantile(density[density > 0], np.linspace(0, 1, 16))
    figure, ax = plt.subplots(figsize=(7, 4))
    for label, model in (
        ("annealed stages", StabilizedTruncatedSGDClassifier(0.01, loss="logistic", class_weight="balanced", random_state=0)),
        ("truncated gradient", TruncatedGradientClassifier(gravity=1e-4, loss="logistic", class_weight="balanced", random_state=0)),
    ):
        chosen = (model.fit(X, y).coef_ != 0).any(axis=0)
        place = np.digitize(density, np.unique(edges)[1:-1])
        shares = [chosen[(place == i) & (density > 0)].mean() for i in range(place.max() + 1)]
        centres = [density[(place == i) & (density > 0)].mean() for i in range(place.max() + 1)]
        ax.plot(centres, np.array(shares) / chosen.mean(), "o-", label=f"{label}, {100 * chosen.mean():.1f} % of the columns")
    ax.set_xscale("log")
    ax.set_xticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.2 %", "0.5 %", "1 %", "2 %", "5 %"])
    ax.minorticks_off()
    ax.set_xlabel("share of rows in which the column is not zero")
    ax.set_ylabel("selected, relative to the average")
    ax.legend()
    figure.tight_layout()
    figure.savefig(out / "online_sparsity.png", dpi=70)


def lmnn(data, out, python, seconds):
    """SDist, then LMNN in the environment of another python, on one 70 / 30 split of Madelon; processor seconds of one thread.

    LMNN is stopped after ``seconds``: its time is then a lower bound, and its error that of the metric it had reached.
    """
    X, y, X_test, y_test = load_set("madelon", data)
    X, y, X_test, y_test = random_split(np.concatenate([X, X_test]), np.concatenate([y, y_test]), 0)
    mean, sd = X.mean(axis=0), X.std(axis=0)
    X, X_test = (X - mean) / sd, (X_test - mean) / sd
    settings = {"kappa": 10, "max_order": 1, "shrinkage": 0.1, "n_features_to_select": 20}
    SDist(**settings, n_steps=2).fit(X[:100], y[:100])  # compiles
    times = []
    for _ in range(3):
        start = time.process_time()
        model = SDist(**settings, n_steps=200).fit(X, y)
        times.append(time.process_time() - start)
    error = 1 - model.score(X_test, y_test)
    print(f"sDist: {np.median(times):.2f} s (median of 3), error of 3 neighbours {error:.4f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/split.npz", X=X, y=y, X_test=X_test, y_test=y_test)
        subprocess.run([python, "-c", _LMNN, f"{folder}/split.npz", str(seconds), str(np.median(times))], check=True)


_LMNN = """
import signal, sys, time
import numpy as np
from metric_learn import LMNN
from sklearn.neighbors import KNeighborsClassifier

split = np.load(sys.argv[1])

def report(word, seconds, L, steps):
    votes = KNeighborsClassifier(3).fit(split["X"] @ L.T, split["y"])
    error = 1 - votes.score(split["X_test"] @ L.T, split["y_test"])
    ratio = seconds / float(sys.argv[3])
    print(f"LMNN: {word} after {seconds:.1f} s and {steps} steps, error of 3 neighbours {error:.4f}; {ratio:.0f} times sDist's time")
    sys.exit()

def give_up(_, frame):
    while frame.f_code.co_name != "fit":
        frame = frame.f_back
    report("not finished", time.process_time() - start, frame.f_locals["L"], frame.f_locals["it"])

signal.signal(signal.SIGPROF, give_up)
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))
start = time.process_time()
model = LMNN(n_neighbors=3, random_state=0).fit(split["X"], split["y"])
signal.setitimer(signal.ITIMER_PROF, 0)
report("finished", time.process_time() - start, model.components_, model.n_iter_)
"""


def pets_like(data, out, solvers=("power", "sgd")):
    """280 rows of 31,000 columns, 17 % dense, 40 of them informative: both solvers for 50 steps, processor seconds of one thread."""
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["surfaces", "scaling", "nonzeros", "sparsity", "lmnn", "pets_like"])
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--lmnn-python", help="lmnn: python of an environment with metric-learn and scikit-learn < 1.6")
    parser.add_argument("--seconds", type=float, default=60.0, help="lmnn: stop it after so many processor seconds")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    more = (arguments.lmnn_python, arguments.seconds) if arguments.what == "lmnn" else ()
    globals()[arguments.what](arguments.data, arguments.out, *more)
