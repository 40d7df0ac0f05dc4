"""Detection of the true features on simulated data: Tables II, III and IV of the PAMI text and designs off the papers' path.

    python benchmarks/fsa_tables.py --tables II III IV off --runs 100 --peers abess rfe

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
from annealed.learners import FSAClassifier, FSARegressor
from annealed.pipelines.simulated import simulate

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
]


def top(weights, k):
    """Positions of the k greatest absolute weights."""
    weights = np.abs(np.asarray(weights)).ravel()
    return np.argsort(-weights, kind="stable")[:k]


def annealed(task, X, y, k, **settings):
    estimator = FSAClassifier if task == "classification" else FSARegressor
    return estimator(k, **settings).fit(X, y).get_support(indices=True)


def plain(task, X, y, k):
    """The papers' loop alone, 500 steps."""
    return annealed(task, X, y, k, polish=None, n_steps=500)


def abess(task, X, y, k):
    from abess import LinearRegression, LogisticRegression

    model = LogisticRegression if task == "classification" else LinearRegression
    return np.flatnonzero(model(support_size=[k], thread=1).fit(X, np.where(y > 0, 1, 0) if task == "classification" else y).coef_)


def skscope(task, X, y, k):
    import jax.numpy as jnp
    from skscope import ScopeSolver

    X, y = jnp.asarray(X), jnp.asarray(y, dtype=jnp.float32)
    if task == "classification":


        def objective(w):
            return jnp.mean(jnp.logaddexp(0.0, -y * (X @ w)))
    else:

        def objective(w):
            return jnp.mean((X @ w - (y - y.mean())) ** 2)

    return np.flatnonzero(ScopeSolver(X.shape[1], sparsity=k).solve(objective, jit=True))


def skglm(task, X, y, k):
    """The minimax concave penalty, the first support of at least k on a path of falling strength."""
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic, Quadratic
    from skglm.penalties import MCPenalty

    X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0), dtype=np.float64)
    target = y - y.mean() if task == "regression" else y.astype(float)
    strongest = np.abs(X.T @ target).max() / len(y) * (0.5 if task == "classification" else 1.0)
    for strength in strongest * np.geomspace(0.9, 1e-3, 40):
        datafit = Quadratic() if task == "regression" else Logistic()
        coef = GeneralizedLinearEstimator(datafit, MCPenalty(alpha=strength, gamma=3.0)).fit(X, target).coef_
        if np.count_nonzero(coef) >= k:
            break
    return top(coef, k)


def rfe(task, X, y, k):
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LogisticRegression, Ridge

    base = LogisticRegression(C=10.0, max_iter=200) if task == "classification" else Ridge(1.0)
    return RFE(base, n_features_to_select=k, step=0.1).fit(X, y).get_support(indices=True)


def l1(task, X, y, k):
    """The L1 path's first support of at least k features."""
    from sklearn.linear_model import LogisticRegression, lars_path
    from sklearn.svm import l1_min_c

    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if task == "regression":
        coefs = lars_path(X.astype(np.float64), y - y.mean(), method="lasso", max_iter=4 * k)[2]
        reached = np.flatnonzero((coefs != 0).sum(axis=0) >= k)
        return top(coefs[:, reached[0] if len(reached) else -1], k)
    least = l1_min_c(X, y, loss="log")
    for C in least * np.geomspace(1.1, 1e4, 30):
        coef = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", max_iter=200).fit(X, y).coef_
        if np.count_nonzero(coef) >= k:
            break
    return top(coef, k)


def lightgbm(task, X, y, k):
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = LGBMClassifier if task == "classification" else LGBMRegressor
    return top(model(n_jobs=1, verbosity=-1, importance_type="gain").fit(X, y).feature_importances_, k)


PEERS = {"plain": plain, "abess": abess, "skscope": skscope, "skglm": skglm, "rfe": rfe, "l1": l1, "lightgbm": lightgbm}


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


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["II", "III", "IV"], choices=["II", "III", "IV", "arXiv3", "off"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--peer-runs", type=int, default=10)
    parser.add_argument("--peers", nargs="*", default=[], choices=sorted(PEERS))
    parser.add_argument("--largest", type=int, default=10**9, help="leave out rows with more values than this")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    print(f"# {platform.processor() or platform.machine()}, Python {platform.python_version()}, {args.runs} runs", file=sys.stderr)
    rows = []
    for row in (r for r in ROWS if r[0] in args.tables and r[2] * r[3] <= args.largest):
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
    if args.json:
        settings = {"runs": args.runs, "peer_runs": args.peer_runs, "seed": args.seed}
        print(json.dumps({"name": "fsa_tables", "settings": settings, "rows": rows}))


if __name__ == "__main__":
    main()
