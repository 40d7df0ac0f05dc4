"""Choice of the number of columns by five-fold cross-validation over ten sizes: annealing compared
with abess and the L1 path, in one run.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/paths.py [--runs 3]

Data of Barbu et al. (2017), eq. (17), with random supports and signs. abess chooses among the same
sizes, L1 among ten penalties. Each cell contains the true columns that are selected, the other
columns that are selected (means), and the median of the processor seconds, without compilation.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from annealed.learners import FSAClassifierCV, FSARegressorCV
from annealed_experiments.tables.simulated import simulate
from common import new_parser, print_head, print_line, timed
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DESIGNS = [
    ("classification", 1000, 1000, 10),
    ("regression", 100, 10_000, 5),
]
SIZES = {10: [1, 2, 5, 8, 10, 12, 15, 20, 30, 50], 5: [1, 2, 3, 4, 5, 6, 8, 10, 15, 20]}


def annealed(X, y, task, sizes):
    model = (FSARegressorCV if task == "regression" else FSAClassifierCV)(sizes, cv=5)
    return model.fit(X, y).get_support(indices=True)


def abess(X, y, task, sizes):
    import abess as package

    model = (package.LinearRegression if task == "regression" else package.LogisticRegression)(
        support_size=sizes, cv=5, thread=1
    )
    model.fit(X.astype(np.float64), y if task == "regression" else (y > 0).astype(int))
    return np.flatnonzero(model.coef_)


def l1(X, y, task, sizes):
    if task == "regression":
        model = LassoCV(alphas=10, cv=5, max_iter=10_000)
    else:
        penalties = {
            "Cs": 10,
            "cv": 5,
            "l1_ratios": (1.0,),
            "solver": "liblinear",
            "scoring": "accuracy",
        }
        model = LogisticRegressionCV(**penalties, use_legacy_attributes=False)
    return np.flatnonzero(make_pipeline(StandardScaler(), model).fit(X, y)[-1].coef_)


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args(argv)
    methods = {"annealed": annealed, "abess": abess, "L1": l1}
    print_head("task, N, M, k", *methods)
    for task, n, m, k in DESIGNS:
        cells = []
        for method in methods.values():
            recovered, others, seconds = [], [], []
            for seed in range(args.runs):
                data = simulate(
                    task, n, m, k, random_support=True, random_signs=True, random_state=seed
                )
                if method is annealed and not seed:
                    method(data.X, data.y, task, SIZES[k])
                kept, took = timed(partial(method, data.X, data.y, task, SIZES[k]))
                seconds.append(took)
                true = np.isin(kept, data.support).sum()
                recovered.append(true)
                others.append(len(kept) - true)
            cells.append(
                f"{np.mean(recovered):.3g} / {np.mean(others):.3g} / {np.median(seconds):.2g}"
            )
        print_line(f"{task}, {n}, {m}, {k}", *cells)


if __name__ == "__main__":
    main()
