"""Regression with hundreds of rows: errors with exchanges, with shrinkage, and with the default
choice between them.

    python benchmarks/few_rows.py choose|measure [--seeds 2]

Simulated data: columns with correlation 0.9^|i-j| ("ar") or 0.5 ("equal"), with fifteen common
factors, or smooth like spectra; 15 columns have an effect, or all columns of a spectrum.
Signal-to-noise ratios are ratios of variances. ``measure`` has other numbers of rows and columns,
other ratios and other random draws than ``choose``, on which the rule was chosen. Errors are root
mean square errors on 2,000 new rows, in percent of the error of the mean; a regret is the mean
logarithm of an error divided by the smaller of the two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from annealed.learners import FSARegressor
from annealed.learners.fsa.fit import solve_path
from annealed.learners.fsa.problem import fitted_attributes
from common import new_parser, print_head, print_line
from scipy.ndimage import gaussian_filter1d

N_NEW = 2000
KINDS = ("ar", "equal", "factors", "spectra")
GRIDS = {
    "choose": ((300,), (200, 400, 800), (0.3, 1.0, 4.0, 50.0), (10, 20, 50), 0),
    "measure": ((100, 1000), (90, 150, 300, 600, 1000), (0.2, 1.0, 5.0, 30.0), (5, 15, 40), 100),
}


def made(kind: str, n: int, p: int, ratio: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and target; the rows after the first ``n`` are new rows."""
    rng = np.random.default_rng(seed)
    rows = n + N_NEW
    X = rng.standard_normal((rows, p))
    if kind == "equal":
        X += rng.standard_normal((rows, 1))
    elif kind == "ar":
        for j in range(1, p):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    elif kind == "factors":
        X = 2 * X + rng.standard_normal((rows, 15)) @ rng.standard_normal((15, p))
    else:
        smooth = rng.standard_normal((rows, 25)) @ gaussian_filter1d(
            rng.standard_normal((25, p)), 6, axis=1
        )
        X = smooth + 0.02 * np.std(smooth) * X
    beta = rng.standard_normal(p) / np.sqrt(np.arange(1, p + 1))
    if kind != "spectra":
        beta = np.zeros(p)
        beta[rng.choice(p, 15, replace=False)] = rng.choice([-1, 1], 15) * rng.uniform(0.5, 1.5, 15)
    signal = X @ beta
    return X, signal + np.std(signal) / np.sqrt(ratio) * rng.standard_normal(rows)


def errors_of(
    kind: str, n: int, p: int, ratio: float, k: int, seed: int
) -> tuple[float, float, float]:
    """Return the errors with exchanges, with shrinkage, and with the default."""
    X, y = made(kind, n, p, ratio, seed)
    model = FSARegressor(k)
    problem, settings = model.encode(X[:n], y[:n]), model.fit_settings()
    errors = []

    def error() -> float:
        return 100 * np.sqrt(np.mean((y[n:] - model.predict(X[n:])) ** 2) / np.var(y[n:]))

    for few in (False, True):
        (solution,) = solve_path(problem, replace(settings, few_rows=few), np.array([k]))
        model.__dict__.update(fitted_attributes(problem, solution))
        errors.append(error())
    model.fit(X[:n], y[:n])
    return *errors, error()


def main(argv: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("part", choices=list(GRIDS))
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args(argv)
    columns, rows, ratios, sizes, first = GRIDS[arguments.part]
    print_head(
        "columns",
        "rows",
        "signal to noise",
        "exchanges",
        "shrinkage",
        "default",
        "regret of each",
        "best by default",
    )
    for p in columns:
        for n in rows:
            for ratio in ratios:
                draws = range(first, first + arguments.seeds)
                jobs = [
                    (kind, n, p, ratio, k, seed)
                    for kind in KINDS
                    for k in sizes
                    if k <= n / 5
                    for seed in draws
                ]
                errors = np.array([errors_of(*job) for job in jobs])
                least = errors[:, :2].min(axis=1, keepdims=True)
                regret = np.log(errors[:, :3] / least).mean(axis=0)
                right = np.mean(errors[:, 2] <= 1.001 * least[:, 0])
                print_line(
                    p,
                    n,
                    ratio,
                    *errors[:, :3].mean(axis=0).round(1),
                    " ".join(f"{r:.3f}" for r in regret),
                    f"{right:.0%}",
                )


if __name__ == "__main__":
    main()
