"""Score cards beside FasterRisk (pip install fasterrisk) at equal numbers of rules; see docs/score_cards.md.

    python benchmarks/score_cards.py --data DIR [--sizes 3 5 10] [--figure OUT.png]

Tables of two classes: three of scikit-learn (of digits: odd or even; of diabetes: above the median), and from DIR
communities.npz (above the median) and gravier.npz. Five stratified folds; thresholds are deciles of the training rows,
the same rules for both, points from -5 to 5. Area under the ROC curve and log loss of held-out rows, mean over the folds; the
standard error is that of FasterRisk's area over the folds. Seconds are those of the processor, median
over the folds, from the table to the card: both begin with the same 0 / 1 columns. The first fit, which compiles, does
not count. The figure: mean predicted probability and
observed share of ten groups of held-out rows of all tables at five rules.
"""

from pathlib import Path

import numpy as np
from annealed.learners import ScoreCardClassifier
from annealed.learners.fsa.score_card import candidate_rules, rule_matrix
from common import new_parser, print_head, print_line, timed
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

POINTS, N_GROUPS, N_FOLDS = 5, 10, 5


def tables(data):
    """Name, X and y (0 / 1) of each table."""
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
    """With a method that FasterRisk 0.1.10 calls and numpy 2.3 has no more."""

    tostring = np.ndarray.tobytes


class OldNumpy:
    """Numpy whose arrays of truth values are such ones."""

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
        optimizer = RiskScoreOptimizer(rule_matrix(X, *rules).astype(float), 2.0 * y - 1.0, k=k, lb=-POINTS, ub=POINTS)
        optimizer.optimize()
        return rules, optimizer.get_models(model_index=0)

    (rules, (multiplier, intercept, coef)), seconds = timed(work)
    return 1.0 / (1.0 + np.exp(-(intercept + rule_matrix(X_test, *rules) @ coef) / multiplier)), seconds


METHODS = {"annealed": ours, "FasterRisk": fasterrisk}


def held_out(X, y, k):
    """For each method probabilities (n,) of held-out rows, areas and log losses (n_folds,), and seconds."""
    found = {name: (np.empty(len(y)), [], [], []) for name in METHODS}
    for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y):
        for name, method in METHODS.items():
            p, seconds = method(X[train], y[train], X[test], k)
            for values, value in zip(
                found[name][1:], (roc_auc_score(y[test], p), log_loss(y[test], np.clip(p, 1e-6, 1 - 1e-6)), seconds), strict=True
            ):
                values.append(value)
            found[name][0][test] = p
    return found


def reliability(p, y):
    """Mean probability and share of ones of groups of equal size, and the mean distance of both."""
    groups = np.array_split(np.argsort(p, kind="stable"), N_GROUPS)
    said, seen = np.array([p[rows].mean() for rows in groups]), np.array([y[rows].mean() for rows in groups])
    return said, seen, np.abs(said - seen).mean()


def draw(pairs, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for marker, (name, (p, y)) in zip("os", pairs.items(), strict=True):
        axes.plot(*reliability(p, y)[:2], marker=marker, label=name, linewidth=1)
    axes.set(xlabel="predicted probability", ylabel="observed share", title="Held-out rows of five tables, five rules")
    axes.legend()
    figure.savefig(path, dpi=110)


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args(argv)
    pooled = {name: ([], []) for name in METHODS}
    print_head("table", "rules", "AUC", "FasterRisk", "its standard error", "log loss", "FasterRisk", "calibration error",
               "FasterRisk", "seconds", "FasterRisk", "times")  # fmt: skip
    X, y = load_diabetes(return_X_y=True)
    for method in METHODS.values():  # compiles
        method(X, (y > 150).astype(int), X, 2)
    for name, X, y in tables(args.data):
        for k in args.sizes if not args.tables or name in args.tables else ():
            found = held_out(X, y, k)
            (p, areas, losses, seconds), (p2, areas2, losses2, seconds2) = found.values()
            error = np.std(areas2, ddof=1) / np.sqrt(N_FOLDS)
            cells = [f"{np.mean(areas):.3f}", f"{np.mean(areas2):.3f}", f"{error:.3f}", f"{np.mean(losses):.3f}"]
            cells += [f"{np.mean(losses2):.3f}", f"{reliability(p, y)[2]:.3f}", f"{reliability(p2, y)[2]:.3f}"]
            cells += [f"{np.median(seconds):.2f}", f"{np.median(seconds2):.2f}", f"{np.median(seconds2) / np.median(seconds):.0f}"]
            print_line(name, k, *cells)
            if k == 5:
                for method, (own, *_) in found.items():
                    pooled[method][0].append(own)
                    pooled[method][1].append(y)
    if args.figure is not None:
        draw({name: (np.concatenate(p), np.concatenate(y)) for name, (p, y) in pooled.items()}, args.figure)


if __name__ == "__main__":
    main()
