"""Detection of the true features on simulated data: Tables II, III and IV of the PAMI text and designs off the papers' path.

    python benchmarks/fsa_tables.py --tables II III IV off --runs 100 --peers abess RFE --plot times.png

The estimators run as shipped, one setting for all rows: neither k nor the design nor the label noise changes anything but
``n_features_to_select``. DR: share of runs in which all true features were found; PCD: share of true features found; time: median
processor seconds of a fit, validation of the input included. Set OMP_NUM_THREADS=1 and NUMBA_NUM_THREADS=1 to time one thread.
Peers see the same rows; they are imported when asked for.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
import zlib

import numpy as np
from annealed.learners import FSAClassifier, FSARegressor, LogitBoostClassifier
from annealed.pipelines.reproduce.competitors import COMPARATORS, select, strongest_columns
from annealed.pipelines.reproduce.simulated import simulate

OFF = {"random_support": True, "random_signs": True}
# Table, task, samples, features, k, settings of the generator, the paper's DR (best of FSA, FSV, FSL) or None.
SIZES = ((300, 10), (1000, 10), (3000, 10), (10000, 10), (1000, 30), (3000, 30), (10000, 30))
CLEAN, NOISY = (34, 100, 100, 100, 24, 100, 100), (1, 86, 100, 100, 0, 68, 100)
IV = ((300, 1000, 30, 67), (1000, 1000, 30, 100), (3000, 1000, 30, 100), (10000, 1000, 30, 100))
ARXIV = ((300, 10000, 30, 4), (1000, 10000, 30, 100), (1000, 10000, 100, 79))
ROWS = [
    *(("II", "classification", n, 1000, k, {}, dr) for (n, k), dr in zip(SIZES, CLEAN, strict=True)),
    *(("III", "classification", n, 1000, k, {"label_noise": 0.1}, dr) for (n, k), dr in zip(SIZES, NOISY, strict=True)),
    *(("IV", "regression", n, m, k, {}, dr) for n, m, k, dr in IV),
    *(("arXiv3", "regression", n, m, k, {}, dr) for n, m, k, dr in ARXIV),
    *(("off", "classification", 1000, 1000, k, {"columns": c, **OFF}, None) for k in (10, 30) for c in ("ar1", "equicorrelated")),
    *(("off", "regression", 300, 1000, k, {"columns": c, **OFF}, None) for k in (10, 30) for c in ("ar1", "equicorrelated")),
    ("large", "classification", 100_000, 1000, 10, {"columns": "equicorrelated"}, None),  # eq. (18)
]


def annealed(task, X, y, k, **settings):
    estimator = FSAClassifier if task == "classification" else FSARegressor
    return estimator(k, **settings).fit(X, y).get_support(indices=True)


def plain(task, X, y, k):
    """The papers' loop alone, 500 steps."""
    return annealed(task, X, y, k, polish=None, n_steps=500)


def lightgbm(task, X, y, k):
    """The k features of greatest total gain."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = LGBMClassifier if task == "classification" else LGBMRegressor
    return strongest_columns(model(n_jobs=1, verbosity=-1, importance_type="gain").fit(X, y).feature_importances_, k)


def comparator(name):
    return lambda task, X, y, k: select(name, X, y, k, task, random_state=0)


def logitboost(task, X, y, k):
    return LogitBoostClassifier(k).fit(X, y).get_support(indices=True)


PEERS = {"plain": plain, "LB": logitboost, "lightgbm": lightgbm, **{name: comparator(name) for name in COMPARATORS}}


def measure(row, method, runs, seed):
    """DR and PCD in per cent and the median time."""
    _, task, n, m, k, settings, _ = row
    label = zlib.crc32(repr(row[:6]).encode())
    found, seconds = [], []
    for run in range(runs):
        data = simulate(task, n, m, k, **settings, random_state=np.random.RandomState([seed, label, run]))
        start = time.process_time()
        selected = method(task, data.X, data.y, k)
        seconds.append(time.process_time() - start)
        found.append(data.found(selected))
    found = np.array(found)
    return 100 * float((found == 1).mean()), 100 * float(found.mean()), float(np.median(seconds))


def seconds_per_value():
    """One read of a float32 matrix of 400 MB, per value: what no method that looks at all values can undercut."""
    X, v = np.ones((10_000, 10_000), np.float32), np.ones(10_000, np.float32)
    times = []
    for _ in range(5):
        start = time.process_time()
        X @ v
        times.append(time.process_time() - start)
    return min(times) / X.size


def plot_times(rows, path):
    """Seconds against the number of values, a line for each method, and the time of reading them once."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(row["method"] for row in rows):
        values = {}
        for row in rows:
            if row["method"] == name:
                values.setdefault(row["n"] * row["m"], []).append(row["seconds"])
        sizes = sorted(values)
        axes.loglog(sizes, [np.median(values[size]) for size in sizes], "o-", label=name)
    sizes = np.array(sorted({row["n"] * row["m"] for row in rows}))
    axes.loglog(sizes, sizes * seconds_per_value(), "k--", label="one read of the matrix")
    axes.set(xlabel="samples x features", ylabel="seconds (median, one thread)")
    axes.legend()
    figure.savefig(path, dpi=120)


def compare(rows, peers):
    """For each peer with the same rows: geometric mean and greatest ratio of the times, by task; and where it detects more."""
    key = lambda row: tuple(v for name, v in row.items() if name not in ("method", "runs", "dr", "pcd", "seconds"))  # noqa: E731
    ours = {key(row): row for row in rows if row["method"] == "annealed"}
    for peer in peers:
        for task in ("classification", "regression"):
            pairs = [(ours[key(row)], row) for row in rows if row["method"] == peer and row["task"] == task]
            if not pairs:
                continue
            ratios = np.array([a["seconds"] / b["seconds"] for a, b in pairs])
            # Two standard errors of the difference of two shares, each with half a run added to hits and misses.
            better = []
            for a, b in pairs:
                share = [(row["dr"] / 100 * row["runs"] + 0.5) / (row["runs"] + 1) for row in (a, b)]
                error = np.sqrt(sum(p * (1 - p) / row["runs"] for p, row in zip(share, (a, b), strict=True)))
                if (b["dr"] - a["dr"]) / 100 > 2 * error:
                    better.append((b["n"], b["k"]))
            worst = min(a["pcd"] - b["pcd"] for a, b in pairs)
            text = f"{peer:10s}{task:15s} time ratio {np.exp(np.log(ratios).mean()):.2f} (greatest {ratios.max():.2f})"
            print(f"{text}, least gain in PCD {worst:+.1f}, detects more at {better or 'no row'}", file=sys.stderr)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["II", "III", "IV"], choices=["II", "III", "IV", "arXiv3", "off", "large"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--peer-runs", type=int, default=10)
    parser.add_argument("--peers", nargs="*", default=[], choices=sorted(PEERS))
    parser.add_argument("--largest", type=int, default=10**9, help="leave out rows with more values than this")
    parser.add_argument("--smallest", type=int, default=0, help="leave out rows with fewer values than this")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--plot", metavar="PNG", help="times against the number of values")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    print(f"# {platform.processor() or platform.machine()}, Python {platform.python_version()}, {args.runs} runs", file=sys.stderr)
    rows = []
    for row in (r for r in ROWS if r[0] in args.tables and args.smallest <= r[2] * r[3] <= args.largest):
        table, task, n, m, k, settings, paper = row
        for name, method in {"annealed": annealed, **{p: PEERS[p] for p in args.peers}}.items():
            runs = args.runs if name == "annealed" else min(args.runs, args.peer_runs)
            measure(row, method, 1, args.seed + 1)  # imports and compilation
            dr, pcd, seconds = measure(row, method, runs, args.seed)
            entry = {"table": table, "task": task, "n": n, "m": m, "k": k, **settings, "method": name, "runs": runs}
            entry["paper_dr"] = paper
            rows.append({**entry, "dr": dr, "pcd": pcd, "seconds": seconds})
            extra = " ".join(str(v) for v in settings.values())
            head = f"{table:7s}{task:15s}{n:6d} {m:6d} {k:4d} {extra:28s}"
            print(f"{head}{name:10s} DR {dr:5.1f} PCD {pcd:5.1f} {seconds:8.4f} s  paper {paper}", file=sys.stderr, flush=True)
    compare(rows, args.peers)
    if args.plot:
        plot_times(rows, args.plot)
    if args.json:
        settings = {"runs": args.runs, "peer_runs": args.peer_runs, "seed": args.seed}
        print(json.dumps({"name": "fsa_tables", "settings": settings, "rows": rows}))


if __name__ == "__main__":
    main()
