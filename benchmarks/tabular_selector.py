"""`TabularSelector` in five-fold cross-validation, compared with an L1 selection of encoded
columns, gradient boosting, and explainable boosting (package interpret, if it is installed).

    OMP_NUM_THREADS=1 python benchmarks/tabular_selector.py [--data DIR] [--only NAME ...]

Six data frames: from scikit-learn, from DIR/tables (`communities.npz`), and simulated frames with
text, dates and missing cells. Prints accuracy or R², the number of columns of the frame that the
models use, averaged over the folds, and the processor seconds of the five fits. The other methods
receive dates as year, month, day and seconds; text is one-hot encoded for L1. A score is nan if L1
selects no column in a fold.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from annealed import TabularSelector
from common import new_parser, print_head, print_line, timed
from select_tables import made, of_sklearn
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

Frame = tuple[pd.DataFrame, str]


def communities(data: Path) -> Frame:
    """Return the numeric columns of communities, with a numeric target."""
    with np.load(data / "tables" / "communities.npz") as file:
        X, y = file["X"], file["y"]
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).assign(y=y), "y"


FRAMES: dict[str, Callable[[Path], Frame]] = {
    "breast_cancer": lambda data: of_sklearn("breast_cancer"),
    "diabetes": lambda data: of_sklearn("diabetes"),
    "communities": communities,
    "simulated months": lambda data: (made(14)[1], "target"),
    "simulated towns": lambda data: (made(20)[1], "target"),
    "simulated classes": lambda data: (made(23)[1], "target"),
}


def without_dates(X: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the parts of its dates as numbers, and text as categories."""
    X = X.copy()
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]):
            days = pd.to_datetime(X[name], errors="coerce", format="%Y-%m-%d")
            if days.notna().all():
                X = X.drop(columns=name).assign(
                    **{f"{name}_{part}": getattr(days.dt, part) for part in ("year", "month")},
                    **{f"{name}_day": days.dt.day, f"{name}_seconds": days.astype("int64") / 1e9},
                )
            else:
                X[name] = X[name].astype("category")
    return X


def methods(classes: bool, n_columns: int) -> dict[str, Any]:
    """Return the estimators by name."""
    task: Any = "classification" if classes else "regression"
    encoder = make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
        (
            OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False),
            make_column_selector(dtype_include="category"),
        ),
    )
    if classes:
        l1 = LogisticRegressionCV(
            l1_ratios=[1.0], solver="liblinear", scoring="neg_log_loss", cv=3, tol=1e-3
        )
        last = LogisticRegressionCV(scoring="neg_log_loss", cv=3)
        boosting = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
    else:
        l1, last = LassoCV(), RidgeCV(np.geomspace(1e-3, 1e4, 15))
        boosting = HistGradientBoostingRegressor(random_state=0, categorical_features="from_dtype")
    found = {
        "TabularSelector(5)": TabularSelector(min(5, n_columns), task=task),
        'TabularSelector("auto")': TabularSelector(task=task),
        "L1, then refitted": make_pipeline(encoder, SelectFromModel(l1), last),
        "HistGradientBoosting": boosting,
    }
    try:
        from interpret import glassbox

        name = f"ExplainableBoosting{'Classifier' if classes else 'Regressor'}"
        found["EBM"] = getattr(glassbox, name)(random_state=0)
    except ModuleNotFoundError:
        pass
    return found


def n_used(model: Any, X: pd.DataFrame) -> int:
    """Count the columns of the frame that a fitted model uses."""
    if isinstance(model, TabularSelector):
        return len(model.get_feature_names_out())
    if not hasattr(model, "steps"):
        return X.shape[1]
    encoder, selector = model[0], model[1]
    names = [name.partition("__")[2] for name in encoder.get_feature_names_out()]
    text = X.select_dtypes("category").columns
    sources = [next((t for t in text if name.startswith(f"{t}_")), name) for name in names]
    return len({sources[j] for j in np.flatnonzero(selector.get_support())})


def main(argv: Sequence[str] | None = None) -> None:
    """Print one row for each frame and method."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("ANNEALED_DATA"))
    parser.add_argument("--only", nargs="*", default=list(FRAMES))
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    print_head("frame", "rows x columns", "method", "score", "columns", "seconds")
    for name in args.only:
        frame, target = FRAMES[name](args.data)
        X, y = frame.drop(columns=target), frame[target].to_numpy()
        classes = y.dtype.kind not in "iuf" or len(np.unique(y)) <= 10
        cv = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=0)
        scoring = "accuracy" if classes else "r2"
        for method, model in methods(classes, X.shape[1]).items():
            rows = X if isinstance(model, TabularSelector) else without_dates(X)
            result, seconds = timed(
                lambda model=model, rows=rows, y=y, cv=cv, scoring=scoring: cross_validate(
                    model, rows, y, cv=cv, scoring=scoring, return_estimator=True
                )
            )
            used = np.mean([n_used(one, rows) for one in result["estimator"]])
            score = f"{result['test_score'].mean():.3f} ± {result['test_score'].std():.3f}"
            size = f"{X.shape[0]} x {X.shape[1]}"
            print_line(name, size, method, score, f"{used:.1f}", f"{seconds:.1f}")


if __name__ == "__main__":
    main()
