"""Score cards compared with FasterRisk (pip install fasterrisk) at equal numbers of rules; see
docs/score_cards.md.

    python benchmarks/score_cards.py --data DIR [--sizes 3 5 10] [--repeats 4] [--figure OUT.png]

Tables with two classes: three of scikit-learn (digits: odd or even; diabetes: above the median),
and communities.npz (above the median) and gravier.npz from DIR. Five stratified folds, repeated;
thresholds are deciles of the training rows, the same rules for both, points from -5 to 5. Area
under the ROC curve and log loss are means over the folds on held-out rows. The standard error is
that of FasterRisk's area over five folds. The calibration error is the mean difference between
probability and observed share in ten groups of held-out rows of equal size. Times are medians of
processor seconds over the folds, from the table to the card, since both methods encode the columns
themselves; the first fit, which compiles, is not counted. The figure shows the groups of all tables
at five rules.
"""

from pathlib import Path

import numpy as np
from annealed.learners import ScoreCardClassifier
from annealed.learners.fsa.score_card import candidate_rules, rule_matrix
from common import new_parser, print_head, print_line, timed
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold

POINTS, N_GROUPS, N_FOLDS = 5, 10, 5


def tables(data):
    """Yield the name, X and y (0 / 1) of each table."""
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y % 2
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", X, (y > np.median(y)).astype(int)
    for name in ("communities", "gravier"):
        table = np.load(data / f"{name}.npz")
        X, y = table["X"].astype(float), table["y"]
        yield name, X, (y > np.median(y)).astype(int) if name == "communities" else y.astype(int)


def ours(X, y, X_test, k):
    model, seconds = timed(lambda: ScoreCardClassifier(k, points=POINTS).fit(X, y))
    return model.predict_proba(X_test)[:, 1], seconds


class OldArray(np.ndarray):
    """Boolean array with a method that FasterRisk 0.1.10 calls and NumPy 2.3 has removed."""

    tostring = np.ndarray.tobytes


class OldNumpy:
    """NumPy with boolean arrays of that class."""

    def __getattr__(self, name):
        return getattr(np, name)

    def zeros(self, shape, dtype=float):
        return np.zeros(shape, dtype).view(OldArray) if dtype is bool else np.zeros(shape, dtype)


def fasterrisk(X, y, X_test, k):
    from fasterrisk import rounding
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    rounding.np = OldNumpy()

    def work():
        rules = candidate_rules(X, np.ones(len(X)), ScoreCardClassifier().n_thresholds)
        optimizer = RiskScoreOptimizer(
            rule_matrix(X, *rules).astype(float), 2.0 * y - 1.0, k=k, lb=-POINTS, ub=POINTS
        )
        optimizer.optimize()
        return rules, optimizer.get_models(model_index=0)

    (rules, (multiplier, intercept, coef)), seconds = timed(work)
    return 1.0 / (
        1.0 + np.exp(-(intercept + rule_matrix(X_test, *rules) @ coef) / multiplier)
    ), seconds


METHODS = {"annealed": ours, "FasterRisk": fasterrisk}


def held_out(X, y, k, repeats):
    """Return for each method the held-out probabilities and their labels, the areas, the log losses
    and the seconds, as lists over the folds."""
    results = {name: ([], [], [], [], []) for name in METHODS}
    for train, test in RepeatedStratifiedKFold(
        n_splits=N_FOLDS, n_repeats=repeats, random_state=0
    ).split(X, y):
        for name, method in METHODS.items():
            p, seconds = method(X[train], y[train], X[test], k)
            values = (
                p,
                y[test],
                roc_auc_score(y[test], p),
                log_loss(y[test], np.clip(p, 1e-6, 1 - 1e-6)),
                seconds,
            )
            for row, value in zip(results[name], values, strict=True):
                row.append(value)
    return results


def reliability(p, y):
    """Return the mean probability and the share of ones in groups of equal size, and their mean
    difference."""
    groups = np.array_split(np.argsort(p, kind="stable"), N_GROUPS)
    predicted, seen = (
        np.array([p[rows].mean() for rows in groups]),
        np.array([y[rows].mean() for rows in groups]),
    )
    return predicted, seen, np.abs(predicted - seen).mean()


def draw(pairs, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for marker, (name, (p, y)) in zip("os", pairs.items(), strict=True):
        axes.plot(*reliability(p, y)[:2], marker=marker, label=name, linewidth=1)
    axes.set(
        xlabel="predicted probability",
        ylabel="observed share",
        title="Held-out rows of five tables, five rules",
    )
    axes.legend()
    figure.savefig(path, dpi=110)


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--repeats", type=int, default=4)
    args = parser.parse_args(argv)
    pooled = {name: ([], []) for name in METHODS}
    print_head(
        "table",
        "rules",
        "AUC",
        "standard error",
        "log loss",
        "calibration error",
        "seconds",
        "speed-up",
    )
    X, y = load_diabetes(return_X_y=True)
    for method in METHODS.values():  # compiles
        method(np.repeat(X, 50, axis=0), np.repeat(y > 150, 50).astype(int), X, 2)
    for name, X, y in tables(args.data):
        for k in args.sizes if not args.tables or name in args.tables else ():
            both = held_out(X, y, k, args.repeats)
            cells = []
            for p, truth, areas, losses, seconds in both.values():
                error = reliability(np.concatenate(p), np.concatenate(truth))[2]
                cells.append([np.mean(areas), np.mean(losses), error, np.median(seconds)])
            auc, loss, error, seconds = zip(*cells, strict=True)
            spread = np.std(both["FasterRisk"][2], ddof=1) / np.sqrt(N_FOLDS)
            auc, loss, error = (f"{mine:.3f} / {other:.3f}" for mine, other in (auc, loss, error))
            print_line(
                name,
                k,
                auc,
                f"{spread:.3f}",
                loss,
                error,
                "{:.2f} / {:.2f}".format(*seconds),
                round(seconds[1] / seconds[0]),
            )
            if k == 5:
                for method, (p, truth, *_) in both.items():
                    pooled[method][0].extend(p)
                    pooled[method][1].extend(truth)
    if args.figure is not None:
        draw(
            {name: (np.concatenate(p), np.concatenate(y)) for name, (p, y) in pooled.items()},
            args.figure,
        )


if __name__ == "__main__":
    main()
