"""Forward-backward selection by the gradient (FoBa-gdt) compared with the objective (FoBa-obj):
logistic loss, 1,000 columns.

    python benchmarks/foba.py --runs 5

The design "independent" has normal columns and labels drawn from the logistic model with
coefficients of random signs, as in the paper's theory; "ar1" denotes the simulated data of the FSA
papers (correlation 0.9 ** |i - j|, labels without noise). Both variants are run on the same rows
with compiled code; times are medians of processor seconds. "equal" is the number of runs in which
both choose the same support, "true" the number in which this is the true support. Set
OMP_NUM_THREADS=1 to time one thread.
"""

from __future__ import annotations

import json
from functools import partial

import numpy as np
from annealed.learners import ForwardBackwardClassifier
from annealed_experiments.tables.simulated import simulate
from common import new_parser, seconds_of

COLUMNS = 1000
ROWS = [
    ("independent", 1000, 5),
    ("independent", 1000, 10),
    ("independent", 3000, 20),
    ("ar1", 300, 10),
    ("ar1", 1000, 10),
]


def draw(design, n, k, seed):
    """Return X, labels and the relevant columns."""
    if design == "ar1":
        data = simulate("classification", n, COLUMNS, k, random_state=seed)
        return data.X, data.y, data.support
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COLUMNS), dtype=np.float32)
    support = np.sort(rng.choice(COLUMNS, k, replace=False))
    return X, 2.0 * X[:, support] @ rng.choice([-1.0, 1.0], k) + rng.logistic(size=n) > 0, support


def compare(design, n, k, runs):
    """Return one row of the table."""
    seconds = {"gradient": [], "objective": []}
    equal = true = 0
    for run in range(runs):
        X, y, support = draw(design, n, k, run)
        chosen = {}
        for criterion, times in seconds.items():
            model = ForwardBackwardClassifier(k, criterion=criterion)
            if run == 0 and criterion == "gradient":
                model.fit(X, y)  # compiles
            times += seconds_of(partial(model.fit, X, y), 1)
            chosen[criterion] = model.get_support(indices=True)
        equal += np.array_equal(*chosen.values())
        true += np.array_equal(chosen["gradient"], support) and np.array_equal(
            chosen["objective"], support
        )
    gradient, objective = (float(np.median(times)) for times in seconds.values())
    ratio = float(np.median(np.divide(seconds["objective"], seconds["gradient"])))
    row = {
        "design": design,
        "N": n,
        "M": COLUMNS,
        "k": k,
        "runs": runs,
        "gradient_s": gradient,
        "objective_s": objective,
    }
    return {**row, "ratio": ratio, "equal": equal, "true": true}


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    for design, n, k in ROWS:
        row = compare(design, n, k, arguments.runs)
        if arguments.json:
            print(json.dumps(row), flush=True)
        else:
            print(
                "  ".join(
                    f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                    for key, value in row.items()
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
