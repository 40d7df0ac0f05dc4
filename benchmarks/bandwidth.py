"""Time of a fit relative to the memory bandwidth: N x M matrix of float32, k = 10, 100 steps, mu =
100, standardisation included.

    python benchmarks/bandwidth.py --samples 10000 --features 10000

Processor time of one thread, for a row-major and a column-major matrix. The limit is ONE fused read
of the remaining columns per step: the schedule's sum of M_e times the time of one read of the
matrix, measured in the same run as the fastest of a sum over it and a product with a vector.
"""

from __future__ import annotations

import numpy as np
from annealed.learners import FSAClassifier
from annealed.learners.solvers.schedules import inverse
from common import new_parser, print_head, print_line, seconds_of
from numba import njit

SETTINGS = {
    "linear, annealing alone": {"refinement": None},
    "linear, with the default refinement": {},
    "piecewise-linear, annealing alone, encoding included": {
        "response": "piecewise",
        "refinement": None,
    },
}


@njit(fastmath=True)
def read(X):
    """Return the sum of all values: one read at the speed of the memory."""
    total = np.zeros(X.shape[0], np.float32)
    for i in range(X.shape[0]):
        s = np.float32(0)
        for j in range(X.shape[1]):
            s += X[i, j]
        total[i] = s
    return total.sum()


def times_limit(order, n, m, repeats):
    """Return the seconds of one read, and for each setting those of the fastest fit relative to the
    limit."""
    rng = np.random.default_rng(0)
    X = np.empty((n, m), np.float32, order=order)
    for start in range(0, n, 500):
        X[start : start + 500] = rng.standard_normal((min(500, n - start), m), dtype=np.float32)
    y = np.where(X[:, :100:10].sum(axis=1) > 0, 1, -1)
    rows = X if order == "C" else X.T
    v = np.ones(rows.shape[1], np.float32)
    read(rows[:10])
    once = min(seconds_of(lambda: read(rows), 5) + seconds_of(lambda: rows @ v, 5))
    limit = (1.0 + inverse(m, 10, 100, 100.0)[:-1].sum() / m) * once
    cells = []
    for settings in SETTINGS.values():
        model = FSAClassifier(10, n_jobs=1, **settings).fit(X[:1000, :500], y[:1000])
        fastest = min(seconds_of(lambda model=model: model.fit(X, y), repeats))
        cells.append(f"{fastest / limit:.1f} ({fastest:.2f} s)")
    return [f"{1000 * once:.0f} ms", *cells]


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)
    columns = [times_limit(order, args.samples, args.features, args.repeats) for order in "CF"]
    print_head("", "row-major", "column-major")
    for name, *cells in zip(("one read", *SETTINGS), *columns, strict=True):
        print_line(name, *cells)


if __name__ == "__main__":
    main()
