"""Many rows, few columns: a default fit compared with abess, with the same number of columns, on
100,000 x 1,000.

    python benchmarks/many_rows.py

Normal columns, independent or equally correlated (0.5); 30 of them, with random signs, act on the
log-odds. Prints processor seconds of one thread in one run, the error on 10,000 further rows, and
the number of the 30 columns that are selected.
"""

import numpy as np
from annealed.learners import FSAClassifier
from common import new_parser, print_head, print_line, timed
from threadpoolctl import threadpool_limits

N, N_NEW, P, K, STRENGTH = 100_000, 10_000, 1_000, 30, 0.2


def draw(common, seed):
    """Return training and test rows, labels, and the true columns; ``common`` is the standard
    deviation of the common factor."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N + N_NEW, P), dtype=np.float32)
    X += np.float32(common) * rng.standard_normal((len(X), 1), dtype=np.float32)
    true = np.sort(rng.choice(P, K, replace=False))
    y = np.where(
        X[:, true] @ rng.choice([-STRENGTH, STRENGTH], K) + rng.logistic(size=len(X)) > 0, 1, -1
    )
    return X, y, true


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    from abess import LogisticRegression

    print_head("columns", "method", "seconds", "error", "true columns selected")
    for name, common in (("independent", 0.0), ("correlated", 1.0)):
        X, y, true = draw(common, args.seed)
        FSAClassifier(3).fit(X[:60_000, :100].copy(), y[:60_000])  # compiles
        for method, model in (
            ("annealed", FSAClassifier(K)),
            ("abess", LogisticRegression(support_size=K)),
        ):
            with threadpool_limits(1):
                _, seconds = timed(lambda model=model, X=X, y=y: model.fit(X[:N], y[:N]))
            recovered = np.isin(
                true, np.flatnonzero(np.any(np.reshape(model.coef_, (-1, P)) != 0, axis=0))
            ).sum()
            print_line(
                name,
                method,
                f"{seconds:.1f}",
                f"{1 - model.score(X[N:], y[N:]):.4f}",
                f"{recovered} of {K}",
            )


if __name__ == "__main__":
    main()
