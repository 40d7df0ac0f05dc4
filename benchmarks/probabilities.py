"""Log loss of class probabilities on new rows: those of `FSAClassifier`, those calibrated on
held-out scores as in `FSAClassifierCV` and `annealed select`, and those of logistic regression on
the same columns.

    python benchmarks/probabilities.py --data DIR [--repeats 1]

DIR is the folder of public data sets (docs/datasets.md); tables of scikit-learn are added. 60% of
the rows are used for training, with k = 5, 10 and 20; losses are divided by that of a constant, and
averaged over the tables. Rows of CASES change the labels of a tenth of the training rows, weight
the rows by 1 to 10 at random or balance the classes, or use three noisy copies of each training
row, which stay together in the folds.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier
from annealed.learners.common.additive import class_probabilities
from annealed.learners.model_selection.calibration import calibrate
from annealed_experiments.datasets import load_set
from common import new_parser, print_head, print_line
from sklearn import datasets
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.utils import compute_sample_weight

SIZES = (5, 10, 20)
MIN_ROWS = 8  # minimum number of rows of a class
# Title; whether the tables have several classes, the share of wrong labels, and the kind of rows
CASES = {
    "eleven with two classes": (False, 0.0, "plain"),
    "a tenth of the training labels changed": (False, 0.1, "plain"),
    "classes of equal weight": (False, 0.0, "balanced"),
    "rows of different weights": (False, 0.0, "weighted"),
    "groups of similar rows": (False, 0.0, "grouped"),
    "eight with several classes": (True, 0.0, "plain"),
}

Tables = Iterator[tuple[str, np.ndarray, np.ndarray]]


def tables_of_several(folder: Path) -> Tables:
    """Yield the name, columns and class codes of each table."""
    for name in ("khan", "sorlie", "christensen", "lymphoma", "TOX-171", "warpAR10P"):
        with np.load(folder / "tables" / f"{name}.npz") as arrays:
            X, y = arrays["X"].astype(float), arrays["y"]
        enough = np.isin(y, np.flatnonzero(np.bincount(y) >= MIN_ROWS))
        yield name, X[enough], np.unique(y[enough], return_inverse=True)[1]
    yield "wine", *datasets.load_wine(return_X_y=True)
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits, 600 rows", X[:600], y[:600]


def tables(folder: Path) -> Tables:
    """Yield the name, columns and labels (0 and 1) of each table."""
    for name in ("alon", "chowdary", "gravier", "shipp"):
        with np.load(folder / "tables" / f"{name}.npz") as arrays:
            yield name, arrays["X"].astype(float), arrays["y"]
    for name in ("leukemia", "ionosphere", "madelon", "arcene"):
        X, y, X_test, y_test = load_set(name, folder)
        yield name, np.vstack([X, X_test]).astype(float), (np.append(y, y_test) > 0).astype(int)
    yield "breast_cancer", *datasets.load_breast_cancer(return_X_y=True)
    X, y = datasets.load_wine(return_X_y=True)
    yield "wine, 1", X, (y == 1).astype(int)
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits 3, 8", X[(y == 3) | (y == 8)], (y[(y == 3) | (y == 8)] == 8).astype(int)


def trial(X: np.ndarray, y: np.ndarray, k: int, seed: int, wrong: float, rows: str) -> list[float]:
    """Return the log losses of the three models, divided by that of a constant."""
    rng = np.random.default_rng(seed)
    X, X_new, y, y_new = train_test_split(X, y, train_size=0.6, random_state=seed, stratify=y)
    y = np.where(rng.random(len(y)) < wrong, (y + 1) % (y.max() + 1), y)
    groups = weight = None
    if rows == "grouped":
        X, y, groups = np.tile(X, (3, 1)), np.tile(y, 3), np.tile(np.arange(len(y)), 3)
        X = X + 0.3 * X.std(axis=0) * rng.standard_normal(X.shape)
    elif rows == "weighted":
        weight = rng.integers(1, 11, len(y)).astype(float)
    balanced = "balanced" if rows == "balanced" else None
    model = FSAClassifier(k, class_weight=balanced).fit(X, y, weight)
    folds = StratifiedKFold() if groups is None else StratifiedGroupKFold()
    held_out = cross_val_predict(
        clone(model),
        X,
        y,
        groups=groups,
        cv=folds,
        method="decision_function",
        params={"sample_weight": weight},
    )
    weight_of_class = compute_sample_weight(balanced, y) * (1.0 if weight is None else weight)
    calibration = calibrate(held_out, y, weight_of_class)
    columns = np.flatnonzero(model.support_)
    scaler = StandardScaler().fit(X[:, columns])
    logistic = LogisticRegression(max_iter=500, class_weight=balanced)
    logistic.fit(scaler.transform(X[:, columns]), y, weight)
    share, new_weight = np.bincount(y) / len(y), np.ones(len(y_new))
    if balanced:  # probabilities assume classes of equal size
        share, new_weight = np.full(len(share), 1 / len(share)), 1.0 / np.bincount(y_new)[y_new]
    constant = np.average(-np.log(share[y_new]), weights=new_weight)
    probabilities = (
        model.predict_proba(X_new),
        class_probabilities(model.decision_function(X_new), *calibration),
        logistic.predict_proba(scaler.transform(X_new[:, columns])),
    )
    return [log_loss(y_new, p, sample_weight=new_weight) / constant for p in probabilities]


def main(argv: list[str] | None = None) -> None:
    """Print a row for each of CASES."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    models = "`FSAClassifier`", "calibrated", "logistic regression"
    print_head("tables", *models, "tables improved, worsened by calibration")
    for title, (several, wrong, rows) in CASES.items():
        losses = np.array(
            [
                np.mean(
                    [
                        trial(X, y, min(k, X.shape[1]), seed, wrong, rows)
                        for k in SIZES
                        for seed in range(args.repeats)
                    ],
                    axis=0,
                )
                for _, X, y in (tables_of_several if several else tables)(args.data)
            ]
        )
        change = losses[:, 1] - losses[:, 0]
        counts = f"{np.sum(change < -0.005)}, {np.sum(change > 0.005)}"
        print_line(title, *(f"{loss:.3f}" for loss in losses.mean(axis=0)), counts)


if __name__ == "__main__":
    main()
