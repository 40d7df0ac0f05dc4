"""Rate at which a noise category is selected before relevant columns, and at which a relevant
category is selected.

Each table has 1,000 rows, three columns with a coefficient of 0.15, and 20 columns and one category
without effect; three columns are selected. Targets: numbers, two classes, three classes and counts.
The penalty for larger groups (docs/constraints.md) keeps the first rate low and the second high.
Numbers in brackets are results without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from annealed.learners import Constraints, FSAClassifier, FSARegressor
from annealed.learners.objective.base import Loss
from common import new_parser, print_head, print_line

ROWS, EFFECT, LEVEL_EFFECT, NOISE, TRUE = 1000, 0.15, 0.35, 20, 3


def table(
    seed: int, levels: int, task: str, real: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns, groups and targets; the category is the last group.

    With ``real``, each level of the category has an effect, and so have two columns.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, TRUE + NOISE))
    codes = rng.integers(0, levels, ROWS)
    category = (codes[:, None] == np.arange(1, levels)).astype(float)
    score = X[:, : TRUE - real].sum(axis=1) * EFFECT
    if real:
        score = score + LEVEL_EFFECT * rng.standard_normal(levels)[codes]
    groups = np.concatenate([np.arange(TRUE + NOISE), np.full(levels - 1, TRUE + NOISE)])
    return np.hstack([X, category]), groups, target(rng, score, task)


def target(rng: np.random.Generator, score: np.ndarray, task: str) -> np.ndarray:
    """Return the targets of a task, from a score whose coefficients have about the same standard
    error in all tasks."""
    if task == "numbers":
        return score + rng.standard_normal(len(score))
    if task == "counts":
        return rng.poisson(np.exp(score)).astype(float)
    noise = rng.logistic(size=len(score))
    latent = 2.0 * score + noise
    return latent > 0 if task == "two classes" else np.digitize(latent, [-0.8, 0.8])


def selected(seed: int, levels: int, task: str, real: bool) -> tuple[bool, int]:
    """Return whether the category is selected, and the number of selected relevant columns."""
    X, groups, y = table(seed, levels, task, real)
    constraints = Constraints(groups=groups)
    model: Any = FSAClassifier(TRUE, constraints=constraints)
    if task in ("numbers", "counts"):
        model = FSARegressor(
            TRUE, constraints=constraints, loss="poisson" if task == "counts" else "squared"
        )
    support = model.fit(X, y).support_
    return bool(support[-1]), int(support[: TRUE - real].sum())


def main(argv: Sequence[str] | None = None) -> None:
    """Print one row for each task and number of levels."""
    parser = new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args(argv)
    print_head(
        "target",
        "levels",
        "share of runs that select a noise category (without penalty)",
        "true columns selected, of 3 (without penalty)",
        "runs that select a true category",
    )
    for task in ("numbers", "two classes", "three classes", "counts"):
        for levels in (5, 20, 80):
            noise = np.mean([selected(s, levels, task, False) for s in range(args.seeds)], axis=0)
            with patch.object(Loss, "charges", lambda self, sizes, *_: np.zeros(len(sizes))):
                free = np.mean(
                    [selected(s, levels, task, False) for s in range(args.seeds)], axis=0
                )
            real = sum(selected(seed, levels, task, True)[0] for seed in range(args.seeds))
            cells = (f"{a:.2f} ({b:.2f})" for a, b in zip(noise, free))
            print_line(task, levels, *cells, f"{real} of {args.seeds}")


if __name__ == "__main__":
    main()
