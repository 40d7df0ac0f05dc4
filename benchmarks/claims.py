"""Losses with a log link on synthetic insurance claims: number of true columns selected, and
coefficients compared with those of statsmodels' generalised linear models on the same columns.

    python benchmarks/claims.py [--rows N] [--columns N] [--seed N] [--json]

Ten of the columns have an effect. The offset is the logarithm of the exposure or, for the claim
amounts of policies with claims, the logarithm of the number of claims. Times are processor seconds;
statsmodels fits the selected columns only. Requires statsmodels.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from annealed.learners import FSARegressor, NegativeBinomialLoss, TweedieLoss
from common import new_parser, print_head, print_line

TRUE = 10
# Loss, and the name and parameters of the family in statsmodels
FAMILIES: dict[str, tuple[Any, str, tuple[float, ...]]] = {
    "Poisson": ("poisson", "Poisson", ()),
    "negative binomial": (NegativeBinomialLoss(0.5), "NegativeBinomial", (0.5,)),
    "gamma": ("gamma", "Gamma", ()),
    "Tweedie": (TweedieLoss(1.5), "Tweedie", (1.5,)),
}


def claims(family: str, n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns with a common factor, targets and offsets."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(0.7) * rng.standard_normal((n, m)) + np.sqrt(0.3) * rng.standard_normal((n, 1))
    effects = np.zeros(m)
    effects[m // TRUE * np.arange(TRUE)] = np.where(np.arange(TRUE) % 2, -1, 1) * np.linspace(
        0.1, 0.3, TRUE
    )
    exposure, mean = rng.uniform(0.05, 1.0, n), np.exp(-0.5 + X @ effects)
    if family == "negative binomial":
        return X, rng.poisson(exposure * mean * rng.gamma(2.0, 0.5, n)), np.log(exposure)
    counts = rng.poisson(exposure * mean)
    if family == "Poisson":
        return X, counts, np.log(exposure)
    if family == "gamma":
        counts += 1
        return X, rng.gamma(2.0 * counts, 500.0 * mean), np.log(counts)
    return X, rng.gamma(2.0 * np.maximum(counts, 1e-9), 500.0) * (counts > 0), np.log(exposure)


def compare(family: str, n: int, m: int, seed: int) -> dict[str, Any]:
    """Return the row of one family."""
    import statsmodels.api as sm

    X, y, offset = claims(family, n, m, seed)
    loss, name, parameter = FAMILIES[family]
    glm = getattr(sm.families, name)(sm.families.links.Log(), *parameter)
    start = time.process_time()
    model = FSARegressor(TRUE, loss=loss).fit(X, y, offset=offset)
    fitted = time.process_time()
    columns = model.get_support(indices=True)
    other = sm.GLM(y, sm.add_constant(X[:, columns]), glm, offset=offset).fit()
    done = time.process_time()
    ours = np.append(model.intercept_, model.coef_[columns])
    chosen = FSARegressor("auto", loss=loss).fit(X, y, offset=offset)
    return {
        "family": family,
        "true columns": int(np.isin(m // TRUE * np.arange(TRUE), columns).sum()),
        "largest difference of a coefficient": float(np.abs(ours / other.params - 1.0).max()),
        "D2": model.score(X, y, offset=offset),
        "columns selected with auto": int(chosen.support_.sum()),
        "seconds": fitted - start,
        "statsmodels": done - fitted,
    }


def main(argv: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="number of rows (default: 20000)")
    parser.add_argument("--columns", type=int, default=300, help="number of columns (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels warns about families
        rows = [
            compare(family, arguments.rows, arguments.columns, arguments.seed)
            for family in FAMILIES
        ]
    if arguments.json:
        settings = {"rows": arguments.rows, "columns": arguments.columns, "seed": arguments.seed}
        print(json.dumps({"name": "claims", "settings": settings, "rows": rows}))
        return 0
    print_head(*rows[0])
    for row in rows:
        print_line(
            row["family"],
            f"{row['true columns']} of {TRUE}",
            f"{row['largest difference of a coefficient']:.2%}",
            f"{row['D2']:.3f}",
            row["columns selected with auto"],
            f"{row['seconds']:.1f}",
            f"{row['statsmodels']:.1f}",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
