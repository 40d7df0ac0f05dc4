"""False discovery rate and power of selectors with a bounded false discovery rate, and coverage of
intervals after selection.

    python benchmarks/false_discovery.py --out found.jsonl [--runs 0 200] [--designs NAME ...]
    [--methods NAME ...] [--data DIR]

Designs have 300 or 1000 rows and 1000 normal columns of variance one, with correlation 0.5^|i-j|
(ar5), 0.9^|i-j| (ar9) or 0.5 (eq5); their names also hold the numbers of rows and of true columns,
and the task. True coefficients have random signs and the size for which the t statistic of one
column, with all other columns known, has the mean 5.5 (regression, noise of variance one); for
classes, the coefficients of the log-odds are three times as large. ``null`` designs have no true
columns. Designs ``real_NAME`` take the rows of DIR/NAME.npz (its 1000 columns with the largest
variance) and simulate a numeric target from ten of them, for which the mean would be 8 if the
columns were independent. ``interval_*`` designs are run only by the method ``intervals``.

Designs with 1000 rows have a fifth of the runs, and those of real rows half. The file of results
has one line per design, run and method, so that an interrupted benchmark is resumed. Times are
processor seconds of one thread.
"""

import json
import time
import warnings
from pathlib import Path

import numpy as np
from annealed.learners import FDRSelector, FSAClassifier, FSAInference, FSARegressor
from annealed.learners.inference.knockoffs import gaussian_knockoffs, knockoff_threshold
from common import new_parser, print_head, print_line

P, LEVELS = 1000, (0.1, 0.2)
DESIGNS = {
    f"{kind}_{n}_{k}_{task}": (kind, n, k, task)
    for n, k in ((300, 10), (300, 30), (1000, 30), (300, 0))
    for kind in ("ar5", "ar9", "eq5")
    for task in ("numbers", "classes")
}
INTERVALS = {
    "interval_ar5_300_5_numbers": ("ar5", 300, 5, "numbers"),
    "interval_eq5_300_5_numbers": ("eq5", 300, 5, "numbers"),
    "interval_ar5_600_5_classes": ("ar5", 600, 5, "classes"),
}
REAL = ["real_TOX-171", "real_christensen", "real_riboflavin", "real_communities"]


def covariance(kind, p=P):
    """Return the covariance of the columns, and the variance of one column given all others."""
    S = (
        0.5 * np.eye(p) + 0.5
        if kind == "eq5"
        else (int(kind[2]) / 10) ** np.abs(np.subtract.outer(range(p), range(p)))
    )
    return S, 1.0 / np.linalg.inv(S)[p // 2, p // 2]


def draw(design, seed, data=None):
    """Return columns, target, the true columns, and the covariance if known."""
    rng = np.random.default_rng(seed)
    if design.startswith("real_"):
        with np.load(Path(data) / f"{design[5:]}.npz", allow_pickle=False) as file:
            X = np.asarray(file["X"], float)
        X = X[:, np.argsort(-X.var(axis=0), kind="stable")[:P]]
        X = np.unique(X[:, X.std(axis=0) > 0], axis=1)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        true = np.sort(rng.permutation(X.shape[1])[:10])
        y = X[:, true] @ rng.choice([-1.0, 1.0], 10) * 8.0 / np.sqrt(len(X)) + rng.standard_normal(
            len(X)
        )
        return X, y, true, None, np.zeros(10)
    kind, n, k, task = (DESIGNS | INTERVALS)[design]
    S, sampler = covariance(kind)
    X = rng.standard_normal((n, P)) @ np.linalg.cholesky(S).T
    true = np.sort(rng.permutation(P)[:k])
    coef = (
        5.5
        / np.sqrt(n * sampler)
        * rng.choice([-1.0, 1.0], k)
        * (1.0 if task == "numbers" else 3.0)
    )
    scores = X[:, true] @ coef
    y = (
        scores + rng.standard_normal(n)
        if task == "numbers"
        else (scores + rng.logistic(size=n) > 0).astype(int)
    )
    return X, y, true, S, coef


def step_up(pvalues, level):
    """Select by the procedure of Benjamini and Hochberg."""
    order = np.argsort(pvalues, kind="stable")
    good = np.flatnonzero(pvalues[order] * len(pvalues) <= level * np.arange(1, len(pvalues) + 1))
    return order[: good[-1] + 1] if len(good) else order[:0]


def ours(method, known):
    def select(X, y, S, seed):
        estimator = FSAClassifier() if y.dtype.kind == "i" else FSARegressor()
        options = (
            {"knockoffs": lambda columns, rng: gaussian_knockoffs(columns, rng, S)} if known else {}
        )
        selector = FDRSelector(estimator, 0.1, method=method, random_state=seed, **options).fit(
            X, y
        )
        if selector.method_ == "conditional":
            return [step_up(selector.pvalues_, level) for level in LEVELS]
        return [
            np.flatnonzero(selector.statistics_ >= knockoff_threshold(selector.statistics_, level))
            for level in LEVELS
        ]

    return select


METHODS = {
    "auto": ours("auto", False),
    "conditional": ours("conditional", False),
    "knockoffs": ours("knockoffs", False),
    "knockoffs, known": ours("knockoffs", True),
}


def coverage(design, seed):
    """Return the numbers of covered and of all intervals, for the true columns and for the selected
    columns, and their mean width divided by 2 * 1.96."""
    X, y, true, _, coef = draw(design, seed)
    estimator = (FSAClassifier if y.dtype.kind == "i" else FSARegressor)(len(true))
    inference = FSAInference(estimator, random_state=seed).fit(X, y)
    truth = np.zeros(X.shape[1])
    truth[true] = coef
    inside = (inference.intervals_[:, 0] <= truth[inference.columns_]) & (
        truth[inference.columns_] <= inference.intervals_[:, 1]
    )
    is_true = np.isin(inference.columns_, true)
    return {
        "true": [int(inside[is_true].sum()), int(is_true.sum())],
        "selected": [int(inside.sum()), len(inside)],
    }


def run(path, designs, methods, runs, data):
    done = set()
    if path.exists():
        done = {
            (r["design"], r["method"], r["run"])
            for r in map(json.loads, path.read_text().splitlines())
        }
    for seed in range(*runs):
        for design in designs:
            for method in methods:
                if (design, method, seed) in done or (design in INTERVALS) != (
                    method == "intervals"
                ):
                    continue
                part = 5 if "_1000_" in design else 2 if design in REAL else 1
                if seed >= runs[1] / part:
                    continue
                line = {"design": design, "method": method, "run": seed}
                start = time.process_time()
                if method == "intervals":
                    line |= coverage(design, seed)
                else:
                    X, y, true, S, _ = draw(design, seed, data)
                    if S is None and "known" in method:
                        continue
                    start = time.process_time()
                    for level, selected in zip(LEVELS, METHODS[method](X, y, S, seed)):
                        line[str(level)] = [
                            len(selected),
                            int(np.isin(selected, true).sum()),
                            len(true),
                        ]
                line["seconds"] = round(time.process_time() - start, 3)
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def summary(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = sorted({(r["design"], r["method"]) for r in rows if "0.1" in r})
    print_head(
        "design",
        "method",
        "runs",
        "false % at 0.1",
        "found % at 0.1",
        "false % at 0.2",
        "found % at 0.2",
        "runs with any",
        "seconds",
    )
    for design, method in kinds:
        mine = [r for r in rows if (r["design"], r["method"]) == (design, method)]
        cells = []
        for level in map(str, LEVELS):
            share = np.array([(r[level][0] - r[level][1]) / max(r[level][0], 1) for r in mine])
            error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else np.nan
            results = (
                np.mean([r[level][1] / r[level][2] for r in mine]) if mine[0][level][2] else np.nan
            )
            cells += [
                f"{100 * share.mean():.1f} ({100 * error:.1f})",
                "-" if np.isnan(results) else f"{100 * results:.0f}",
            ]
        some = np.mean([r["0.1"][0] > 0 for r in mine])
        print_line(
            design,
            method,
            len(mine),
            *cells,
            f"{100 * some:.0f}%",
            f"{np.median([r['seconds'] for r in mine]):.2f}",
        )
    for design in INTERVALS:
        mine = [r for r in rows if r["design"] == design]
        if mine:
            shares = {
                what: np.sum([r[what] for r in mine], axis=0) for what in ("true", "selected")
            }
            text = ", ".join(f"{what} {100 * a / b:.1f}% of {b}" for what, (a, b) in shares.items())
            print(f"{design}: {len(mine)} runs, covered: {text}")


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, nargs=2, default=(0, 200))
    parser.add_argument("--designs", nargs="+", help="default: DESIGNS and, with --data, REAL")
    parser.add_argument("--methods", nargs="+", default=["auto"], choices=[*METHODS, "intervals"])
    parser.add_argument("--data", type=Path)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    designs = args.designs or [*DESIGNS, *(REAL if args.data else [])]
    run(args.out, designs, args.methods, args.runs, args.data)
    summary(args.out)


if __name__ == "__main__":
    main()
