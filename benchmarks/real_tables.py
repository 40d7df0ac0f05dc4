"""Real tables with many columns and few rows: error at equal numbers of columns and at the number
chosen by each method, compared with other selectors.

    python benchmarks/real_tables.py --data DIR --out real_tables.jsonl [--repeats 4]
        [--sizes 20 10 50] [--methods ...] [--summary] [--short]
    python benchmarks/real_tables.py --data DIR --null 100

DIR holds ``NAME.npz`` with ``X`` and ``y``. Five stratified folds are repeated; every step,
including standardisation, uses only the training part; classes with fewer than five rows are
dropped. Prints the balanced error in percent or, for regression, the root mean square error in
percent of that of the mean. The file of results has one line per fit, so that an interrupted
benchmark is resumed. Selectors without a model are combined with ridge-penalised logistic or linear
regression on their columns, with the penalty chosen by cross-validation. ``--null`` permutes the
labels the given number of times, over the tables in turn, and counts the columns that "auto"
selects.
"""

import json
import time
import warnings
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier, FSARegressor, Refinement
from common import new_parser, print_head, print_line
from scipy.stats import rankdata, wilcoxon
from scipy.stats import t as student
from sklearn.feature_selection import RFE, f_classif, f_regression
from sklearn.linear_model import (
    ElasticNetCV,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskLasso,
    Ridge,
    RidgeCV,
    lasso_path,
)
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

CLASSES = [
    "TOX-171",
    "alon",
    "chowdary",
    "christensen",
    "gravier",
    "khan",
    "lymphoma",
    "nci9",
    "shipp",
    "sorlie",
    "warpAR10P",
]
NUMBERS = ["eyedata", "gasoline", "meatspec", "riboflavin", "communities"]
TWO_CLASSES = ["alon", "chowdary", "gravier", "shipp"]


def ridge(A, y, several):
    """Return logistic or linear regression with a ridge penalty chosen by cross-validation."""
    if several:
        return LogisticRegressionCV(
            Cs=[0.01, 0.1, 1.0, 10.0], cv=3, scoring="neg_log_loss", max_iter=300
        ).fit(A, y)
    return RidgeCV(np.geomspace(1e-2, 1e4, 25)).fit(A, y)


class OnColumns:
    """A model on some of the columns."""

    def __init__(self, columns, model):
        self.columns, self.model = np.asarray(columns), model

    def predict(self, X):
        """Predict labels or numbers."""
        return self.model.predict(X[:, self.columns])


def ours(A, y, k, several):
    model = (FSAClassifier if several else FSARegressor)("auto" if k is None else k).fit(A, y)
    return model, int(model.support_.sum())


def ours_ridge(A, y, k, several):
    columns = np.flatnonzero((FSAClassifier if several else FSARegressor)(k).fit(A, y).support_)
    return OnColumns(columns, ridge(A[:, columns], y, several)), len(columns)


def anova(A, y, k, several):
    with np.errstate(all="ignore"):
        score = np.nan_to_num((f_classif if several else f_regression)(A, y)[0])
    columns = np.argsort(-score, kind="stable")[:k]
    return OnColumns(columns, ridge(A[:, columns], y, several)), k


def largest_model(model, most, A, targets, k):
    """Return the columns of the largest model of at most k along decreasing penalties, from
    ``most``."""
    columns = np.arange(0)
    for a in most * np.geomspace(0.95, 0.03, 40):
        new = np.flatnonzero(model.set_params(alpha=a).fit(A, targets).coef_.any(axis=0))
        if len(new) > k:
            break
        columns = new
    return columns


def l1(A, y, k, several):
    """Fit the L1 path; at k, refit the largest model of at most k columns; several classes are
    fitted as 0/1 targets, with whole columns selected together."""
    if not several:
        if k is None:
            model = LassoCV(cv=5, alphas=50, random_state=0).fit(A, y)
            return model, int((model.coef_ != 0).sum())
        coefs = lasso_path(A, y - y.mean(), alphas=100, eps=1e-3)[1]
        sizes = (coefs != 0).sum(axis=0)
        columns = np.flatnonzero(coefs[:, np.flatnonzero(sizes <= k)[-1]])
    elif len(np.unique(y)) == 2:
        model = LogisticRegression(
            l1_ratio=1.0, solver="liblinear", warm_start=True, random_state=0
        )
        if k is None:
            result = (
                GridSearchCV(model, {"C": np.geomspace(1, 300, 12) / len(y)}, cv=5)
                .fit(A, y)
                .best_estimator_
            )
            return result, int((result.coef_ != 0).sum())
        columns = np.arange(0)
        for c in np.geomspace(1, 3000, 50) / len(y):
            new = np.flatnonzero(model.set_params(C=c).fit(A, y).coef_[0])
            if len(new) > k:
                break
            columns = new
    else:
        targets = np.eye(int(y.max()) + 1)[y]
        targets = targets[:, targets.any(axis=0)] - targets[:, targets.any(axis=0)].mean(axis=0)
        most = np.sqrt(((A.T @ targets) ** 2).sum(axis=1)).max() / len(y)
        model = MultiTaskLasso(warm_start=True, tol=1e-3, max_iter=300)
        columns = largest_model(model, most, A, targets, k)
    return OnColumns(columns, ridge(A[:, columns], y, several)), len(columns)


def elastic_net(A, y, k, several):
    """Fit half L1, half L2 penalties by cross-validation; at k, refit the largest model of at most
    k columns; classes are fitted as 0/1 targets."""
    if k is None:
        model = ElasticNetCV(l1_ratio=0.5, cv=5, alphas=50).fit(A, y)
        return model, int((model.coef_ != 0).sum())
    targets = np.eye(int(y.max()) + 1)[y][:, np.unique(y)] if several else y[:, None]
    targets = targets - targets.mean(axis=0)
    most = 2 * np.sqrt(((A.T @ targets) ** 2).sum(axis=1)).max() / len(y)
    columns = largest_model(
        MultiTaskElasticNet(l1_ratio=0.5, warm_start=True, tol=1e-3, max_iter=300),
        most,
        A,
        targets,
        k,
    )
    return OnColumns(columns, ridge(A[:, columns], y, several)), len(columns)


def rfe(A, y, k, several):
    """Eliminate a fifth of the columns at a time by a linear SVM or ridge regression on the
    remaining columns."""
    base = LinearSVC(C=0.01, random_state=0) if several else Ridge(len(y) / 10)
    columns = np.flatnonzero(RFE(base, n_features_to_select=k, step=0.2).fit(A, y).support_)
    return OnColumns(columns, ridge(A[:, columns], y, several)), k


def abess(A, y, k, several):
    from abess import LinearRegression as Numbers
    from abess import LogisticRegression as Two
    from abess import MultinomialRegression as Several

    model = Numbers if not several else Two if len(np.unique(y)) == 2 else Several
    size = (
        {"support_size": [k]}
        if k
        else {"support_size": range(1, min(50, len(y) // 3)), "ic_type": "ebic"}
    )
    moving = np.flatnonzero(A.std(axis=0) > 1e-6)
    codes = np.unique(y, return_inverse=True)[1] if several else y
    coef = np.asarray(model(**size, thread=1).fit(A[:, moving].astype(float), codes).coef_)
    columns = moving[np.flatnonzero(coef if coef.ndim == 1 else np.abs(coef).sum(axis=1))]
    return OnColumns(columns, ridge(A[:, columns], y, several)), len(columns)


def mcp(A, y, k, several):
    """Fit the minimax concave penalty (skglm) to numbers, or to two classes as 0 and 1; refit the
    largest model of at most k columns."""
    from skglm import MCPRegression

    A, target = np.asfortranarray(A, dtype=float), y - y.mean()
    most = np.abs(A.T @ target).max() / len(y)
    model, columns = MCPRegression(gamma=3.0, fit_intercept=True, warm_start=True), np.arange(0)
    for a in most * np.geomspace(0.95, 0.01, 40):
        model.alpha = a
        new = np.flatnonzero(model.fit(A, target).coef_)
        if len(new) > k:
            break
        columns = new
    return OnColumns(columns, ridge(A[:, columns], y, several)), len(columns)


def swapped(A, y, k, several):
    """Fit FSA with exchanges for any number of rows."""
    model = (FSAClassifier if several else FSARegressor)(
        k, refinement=Refinement(exchange=True)
    ).fit(A, y)
    return model, int(model.support_.sum())


def fastcan(A, y, k, several):
    """Select greedily by canonical correlation with the targets, or with one-hot classes."""
    from fastcan import FastCan

    targets = (
        LabelBinarizer().fit_transform(y).astype(float)
        if several
        else np.asarray(y, float)[:, None]
    )
    columns = np.sort(FastCan(k, verbose=0).fit(A.astype(float), targets).indices_)
    return OnColumns(columns, ridge(A[:, columns], y, several)), k


def mrmr(A, y, k, several):
    """Select greedily by the F statistic divided by the mean absolute correlation with the columns
    chosen so far."""
    with np.errstate(all="ignore"):
        score = np.nan_to_num((f_classif if several else f_regression)(A, y)[0])
    columns, shared = [int(np.argmax(score))], np.zeros(A.shape[1])
    while len(columns) < k:
        shared += np.abs(A.T @ A[:, columns[-1]]) / len(A)
        ratio = score / np.maximum(shared / len(columns), 1e-3)
        ratio[columns] = -1.0
        columns.append(int(np.argmax(ratio)))
    columns = np.sort(columns)
    return OnColumns(columns, ridge(A[:, columns], y, several)), k


def boosting_gain(A, y, k, several):
    """Select the columns with the largest gain in LightGBM's trees."""
    model, _ = boosting_all(A, y, k, several)
    columns = np.sort(np.argsort(-model.booster_.feature_importance("gain"), kind="stable")[:k])
    return OnColumns(columns, ridge(A[:, columns], y, several)), k


def svm_all(A, y, k, several):
    if several:
        return SVC(kernel="linear", C=0.01).fit(A, y), A.shape[1]
    return RidgeCV(np.geomspace(1e-1, 1e6, 30)).fit(A, y), A.shape[1]


def boosting_all(A, y, k, several):
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = (LGBMClassifier if several else LGBMRegressor)(
        n_estimators=100,
        learning_rate=0.1,
        min_child_samples=5,
        colsample_bytree=0.2,
        n_jobs=1,
        verbose=-1,
        random_state=0,
    )
    return model.fit(A, y), A.shape[1]


AT_SIZES = {
    "annealed": ours,
    "annealed, ridge refit": ours_ridge,
    "anova": anova,
    "l1": l1,
    "elastic net": elastic_net,
    "rfe": rfe,
    "abess": abess,
    "mcp": mcp,
    "annealed, exchanges": swapped,
    "fastcan": fastcan,
    "mrmr": mrmr,
    "lightgbm gain": boosting_gain,
}
OWN_SIZE = {"annealed": ours, "l1": l1, "elastic net": elastic_net, "abess": abess}
ALL_COLUMNS = {"linear, all columns": svm_all, "lightgbm, all columns": boosting_all}
# None: at all sizes
TASKS = {("mcp", None): TWO_CLASSES + NUMBERS, ("elastic net", "own"): NUMBERS}


def read(data, name):
    table = np.load(data / f"{name}.npz")
    X, y = table["X"].astype(np.float32), table["y"]
    if name in CLASSES:
        labels, count = np.unique(y, return_counts=True)
        keep = np.isin(y, labels[count >= 5])
        X, y = X[keep], y[keep].astype(int)
    return X, y


def folds(name, X, y, repeat):
    """Yield standardised training and test parts; missing values are replaced by the training
    mean."""
    splitter = (StratifiedKFold if name in CLASSES else KFold)(5, shuffle=True, random_state=repeat)
    for train, test in splitter.split(X, y):
        mean = np.nanmean(X[train], axis=0)
        filled = np.where(np.isnan(X), mean, X)
        scaler = StandardScaler().fit(filled[train])
        yield scaler.transform(filled[train]), y[train], scaler.transform(filled[test]), y[test]


def error(name, truth, predicted, train):
    if name in CLASSES:
        return 100 * (1 - balanced_accuracy_score(truth, predicted))
    return 100 * np.sqrt(np.mean((truth - predicted) ** 2) / np.mean((truth - train.mean()) ** 2))


def cells(sizes, methods):
    """Return (method, k) in the order in which they are run; k is "own" or "all" where it is not
    given."""
    result = [(m, k) for k in sizes for m in AT_SIZES]
    result += [(m, "own") for m in OWN_SIZE] + [(m, "all") for m in ALL_COLUMNS]
    return [(m, k) for m, k in result if methods is None or m in methods]


def run(args):
    seen = set()
    if args.out.exists():
        for line in args.out.read_text().splitlines():
            row = json.loads(line)
            seen.add((row["table"], row["method"], row["k"], row["repeat"]))
    for repeat in range(args.first_repeat, args.repeats):
        for method, k in cells(args.sizes, args.methods):
            if args.short and k == "own":
                continue
            served = TASKS.get((method, None), TASKS.get((method, k), CLASSES + NUMBERS))
            for name in args.tables or served:
                if (name, method, k, repeat) in seen or name not in served:
                    continue
                if method == "l1" and k == "own" and name in CLASSES and name not in TWO_CLASSES:
                    continue  # saga takes minutes per table
                X, y = read(args.data, name)
                fit = (AT_SIZES | ALL_COLUMNS)[method] if k != "own" else OWN_SIZE[method]
                errors, columns, seconds = [], [], []
                for A, b, Z, c in folds(name, X, y, repeat):
                    start = time.process_time()
                    model, count = fit(A, b, k if isinstance(k, int) else None, name in CLASSES)
                    seconds.append(time.process_time() - start)
                    errors.append(error(name, c, model.predict(Z), b))
                    columns.append(count)
                row = {
                    "table": name,
                    "method": method,
                    "k": k,
                    "repeat": repeat,
                    "errors": np.round(errors, 3).tolist(),
                    "columns": columns,
                    "seconds": float(np.median(seconds)),
                }
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def summary(args):
    """Means over tables, mean ranks, paired differences to "annealed" with 95% intervals over
    tables, on how many its error is smaller and larger than that of "annealed", and Wilcoxon's p
    over the tables."""
    rows = [json.loads(line) for line in args.out.read_text().splitlines()]
    groups = {"classification": CLASSES, "two classes": TWO_CLASSES, "regression": NUMBERS}
    if args.short:
        del groups["two classes"]
        print_head("tables", "method", "error", "rank", "lower, higher, p", "seconds")
    for title, names in groups.items():
        for k in args.sizes if args.short else [*args.sizes, "own"]:
            methods = {m for m, size in {(r["method"], r["k"]) for r in rows} if size == k}
            shown = [m for m in AT_SIZES if m in methods] + list(ALL_COLUMNS)
            mean = {}
            for method in shown:
                size = "all" if method in ALL_COLUMNS else k
                for name in names:
                    results = [
                        r for r in rows if (r["table"], r["method"], r["k"]) == (name, method, size)
                    ]
                    if results:
                        mean[method, name] = results
            if not args.short:
                print(
                    f"\n{title}, k = {k}\n| method | error | columns | seconds | tables x repeats "
                    "| rank | difference (95% interval) | wins, losses | p |"
                )
                print("|---|---|---|---|---|---|---|---|---|")
            complete = [m for m in shown if all((m, name) in mean for name in names)]
            value = {key: np.mean([r["errors"] for r in results]) for key, results in mean.items()}
            ranks = (
                np.mean([rankdata([value[m, name] for m in complete]) for name in names], axis=0)
                if complete
                else []
            )
            for method in shown:
                have = [name for name in names if (method, name) in mean]
                if not have:
                    continue
                results = [r for name in have for r in mean[method, name]]
                error_of = f"{np.mean([value[method, n] for n in have]):.1f}"
                seconds = f"{np.mean([r['seconds'] for r in results]):.3f}"
                rank = f"{ranks[complete.index(method)]:.1f}" if method in complete else ""
                paired = []
                for name in have:
                    mine = {
                        r["repeat"]: np.mean(r["errors"]) for r in mean.get(("annealed", name), [])
                    }
                    other = {r["repeat"]: np.mean(r["errors"]) for r in mean[method, name]}
                    both = mine.keys() & other.keys()
                    if both:
                        paired.append(np.mean([other[i] - mine[i] for i in both]))
                half, counts, p = "", "", ""
                if method != "annealed" and len(paired) > 1:
                    spread = np.std(paired, ddof=1) / np.sqrt(len(paired))
                    width = student.ppf(0.975, len(paired) - 1) * spread
                    half = f"{np.mean(paired):+.1f} +- {width:.1f}"
                    counts = f"{np.sum(np.array(paired) < 0)}, {np.sum(np.array(paired) > 0)}"
                    p = f"{wilcoxon(paired).pvalue:.2f}" if np.any(paired) else ""
                if args.short:
                    print_line(
                        title, method, error_of, rank, ", ".join(filter(None, (counts, p))), seconds
                    )
                    continue
                columns = f"{np.mean([np.mean(r['columns']) for r in results]):.0f}"
                repeats = f"{len(have)} x {len(results) // len(have)}"
                print_line(method, error_of, columns, seconds, repeats, rank, half, counts, p)


def null(args):
    """Count the columns that "auto" selects with permuted labels."""
    names, results = args.tables or CLASSES + NUMBERS, {}
    for draw in range(args.null):
        name = names[draw % len(names)]
        X, y = read(args.data, name)
        X = StandardScaler().fit_transform(np.where(np.isnan(X), np.nanmean(X, axis=0), X))
        model = (FSAClassifier if name in CLASSES else FSARegressor)("auto")
        model.fit(X, np.random.default_rng(draw).permutation(y))
        results.setdefault(name, []).append(int(model.support_.sum()))
        print(draw, name, results[name][-1], flush=True)
    sizes = np.concatenate(list(results.values()))
    few = np.count_nonzero(sizes <= 1)
    print(
        f"runs without a column: {np.count_nonzero(sizes == 0)}, with one column: "
        f"{np.count_nonzero(sizes == 1)}: {few} of {len(sizes)}"
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("real_tables.jsonl"))
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--first-repeat", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 10, 50])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--short", action="store_true", help="print one table, at the sizes alone")
    parser.add_argument("--null", type=int, default=0, metavar="DRAWS")
    args = parser.parse_args(argv)
    if args.null:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            null(args)
        return
    if not args.summary:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(args)
    summary(args)


if __name__ == "__main__":
    main()
