"""Bitwise snapshot of small fits of every kind, to verify that a code change does not alter them.

    python benchmarks/snapshot.py before.json
    python benchmarks/snapshot.py after.json
    python benchmarks/snapshot.py after.json --compare before.json      # reads both, fits nothing

A file holds, for each fit, whether units have several columns (``grouped``), the support, and the
coefficients as hexadecimal numbers. The comparison lists the fits that differ, and by how much.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from annealed import learners
from annealed.learners import (
    Constraints,
    FSAClassifier,
    FSAPath,
    FSARanker,
    FSARegressor,
    PiecewiseLinear,
    Prior,
    Refinement,
)
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file
from common import new_parser

NUMBERS = (
    "support_",
    "coef_",
    "intercept_",
    "responses_",
    "missing_responses_",
    "knots_",
    "ridge_",
    "feature_importances_",
    "pvalues_",
    "intervals_",
    "components_",
    "points_",
    "frequency",
    "kappa",
)
REFINEMENTS = {
    "paper": None,
    "exchange": Refinement(exchange=True),
    "no exchange": Refinement(exchange=False),
    "cv": Refinement(exchange="cv"),
    "ridge": Refinement(ridge=0.01),
}
GROUPS = Constraints(groups=np.repeat(np.arange(13), [1, 1, 1, 1, 1, 2, 3, 5, 5, 5, 5, 5, 5]))
CONSTRAINTS = {
    "include": Constraints(include=[3, 11]),
    "exclude": Constraints(exclude=[0, 7]),
    "bounds": Constraints(bounds=(0, None)),
    "monotone": Constraints(monotone={0: 1, 5: -1}),
}

Fit = tuple[str, bool, Callable[[], Any]]


def tables(seed: int = 0) -> dict[str, Any]:
    """Return correlated columns in every container, and targets of every kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 40)) + 0.7 * rng.standard_normal((150, 1))
    signal = X[:, :5].sum(axis=1) - X[:, 5:8].sum(axis=1)
    y = signal + 2.0 * rng.standard_normal(150)
    time, event = np.exp(-0.3 * signal) * rng.exponential(size=150), rng.random(150) < 0.7
    return {
        "X": X,
        "number": y,
        "numbers": np.column_stack([y, X[:, 9] - y]),
        "two": np.where(y > 0, "yes", "no"),
        "three": np.digitize(y, [-1.5, 1.5]),
        "counts": rng.poisson(np.exp(0.2 * signal.clip(-6, 6))).astype(float),
        "times": np.column_stack([time, event]),
        "weight": rng.integers(1, 4, 150).astype(float),
        "query": np.repeat(np.arange(15), 10),
        "missing": np.where(rng.random(X.shape) < 0.1, np.nan, X),
        "sparse": sp.csr_matrix(np.where(rng.random(X.shape) < 0.9, 0.0, X)),
    }


def fsa_fits(t: dict[str, Any], folder: Path) -> Iterator[Fit]:
    """Yield fits of the FSA estimators: losses, designs, refinements, constraints, weights."""
    X, w = t["X"], t["weight"]
    for target, losses in (
        ("number", ["squared", "huber", "quantile"]),
        ("counts", ["poisson"]),
        ("two", ["logistic", "flipped_logistic", "huberised_hinge", "lorenz", "squared"]),
        ("three", ["multinomial", "lorenz", learners.VapnikLoss(learners.LogisticLoss())]),
    ):
        maker = FSARegressor if target in ("number", "counts") else FSAClassifier
        for loss in losses:
            for k in (4, 12):
                yield (
                    f"{loss}, {target}, k={k}",
                    False,
                    lambda m=maker, s=loss, k=k, n=target: m(k, loss=s).fit(X, t[n]),
                )
            yield (
                f"{loss}, {target}, groups",
                True,
                lambda m=maker, s=loss, n=target: m(4, loss=s, constraints=GROUPS).fit(X, t[n]),
            )
    yield "cox", False, lambda: FSARegressor(4, loss="cox").fit(X, t["times"])
    yield (
        "cox, groups",
        True,
        lambda: FSARegressor(3, loss="cox", constraints=GROUPS).fit(X, t["times"]),
    )
    yield "two outputs", False, lambda: FSARegressor(5).fit(X, t["numbers"])
    yield (
        "two outputs, groups",
        True,
        lambda: FSARegressor(4, constraints=GROUPS).fit(X, t["numbers"]),
    )
    np.save(folder / "X.npy", X)
    for target in ("number", "two", "three"):
        maker = FSARegressor if target == "number" else FSAClassifier
        y = t[target]
        yield f"{target}, default", False, lambda m=maker, y=y: m(6).fit(X, y)
        yield f"{target}, auto", False, lambda m=maker, y=y: m("auto").fit(X, y)
        yield f"{target}, auto, 30 rows", False, lambda m=maker, y=y: m("auto").fit(X[:30], y[:30])
        yield (
            f"{target}, auto, groups",
            True,
            lambda m=maker, y=y: m("auto", constraints=GROUPS).fit(X, y),
        )
        yield f"{target}, weights", False, lambda m=maker, y=y: m(6).fit(X, y, w)
        yield (
            f"{target}, weights, groups",
            True,
            lambda m=maker, y=y: m(4, constraints=GROUPS).fit(X, y, w),
        )
        yield f"{target}, CSR", False, lambda m=maker, y=y: m(6).fit(t["sparse"], y)
        yield f"{target}, CSC", False, lambda m=maker, y=y: m(6).fit(t["sparse"].tocsc(), y)
        yield (
            f"{target}, CSR, groups",
            True,
            lambda m=maker, y=y: m(4, constraints=GROUPS).fit(t["sparse"], y),
        )
        yield f"{target}, float32", False, lambda m=maker, y=y: m(6).fit(X.astype(np.float32), y)
        yield (
            f"{target}, memory map",
            False,
            lambda m=maker, y=y: m(6).fit(learners.on_disk(folder / "X.npy"), y),
        )
        yield (
            f"{target}, Dask",
            False,
            lambda m=maker, y=y: m(6).fit(learners.on_dask(da.from_array(X, chunks=(60, 40))), y),
        )
        yield (
            f"{target}, piecewise",
            False,
            lambda m=maker, y=y: m(4, response="piecewise").fit(X, y),
        )
        yield (
            f"{target}, piecewise, missing",
            False,
            lambda m=maker, y=y: m(4, response="piecewise").fit(t["missing"], y),
        )
        yield (
            f"{target}, piecewise, 3 bins, smooth",
            False,
            lambda m=maker, y=y: m(4, response=PiecewiseLinear(3), prior=Prior(0.01, 0.01)).fit(
                X, y
            ),
        )
        yield (
            f"{target}, piecewise, groups",
            True,
            lambda m=maker, y=y: m(4, response="piecewise", constraints=GROUPS).fit(X, y),
        )
        for name, refinement in REFINEMENTS.items():
            yield (
                f"{target}, {name}",
                False,
                lambda m=maker, y=y, r=refinement: m(8, refinement=r).fit(X, y),
            )
        for name, constraints in CONSTRAINTS.items():
            if target == "three" and name in ("bounds", "monotone"):
                continue
            yield (
                f"{target}, {name}",
                False,
                lambda m=maker, y=y, c=constraints: m(6, constraints=c).fit(X, y),
            )
        yield f"{target}, prior", False, lambda m=maker, y=y: m(6, prior=Prior(0.1)).fit(X, y)
        yield (
            f"{target}, no intercept",
            False,
            lambda m=maker, y=y: m(6, fit_intercept=False).fit(X, y),
        )
        yield f"{target}, no scaling", False, lambda m=maker, y=y: m(6, scaling="none").fit(X, y)
        yield (
            f"{target}, arxiv schedule",
            False,
            lambda m=maker, y=y: m(6, schedule="inverse_arxiv").fit(X, y),
        )
        for exchange in (False, True):
            yield (
                f"{target}, path, exchange={exchange}",
                False,
                lambda m=maker, y=y, e=exchange: FSAPath(m(), sizes=[1, 3, 6, 12], exchange=e).fit(
                    X, y
                ),
            )
        yield (
            f"{target}, path, groups",
            True,
            lambda m=maker, y=y: FSAPath(m(constraints=GROUPS), sizes=[2, 4], exchange=True).fit(
                X, y
            ),
        )
        cv = learners.FSARegressorCV if target == "number" else learners.FSAClassifierCV
        yield f"{target}, CV", False, lambda m=cv, y=y: m([2, 5, 8], cv=3).fit(X, y)
        yield (
            f"{target}, CV, row groups",
            False,
            lambda m=cv, y=y: m([2, 5, 8], cv=3).fit(X, y, groups=t["query"]),
        )
        yield (
            f"{target}, CV, groups",
            True,
            lambda m=cv, y=y: m([2, 4], cv=3, constraints=GROUPS).fit(X, y),
        )
        yield f"{target}, row shares", False, lambda m=maker, y=y: m(6).fit(X, y, w / w.sum())
    yield "class weight", False, lambda: FSAClassifier(6, class_weight="balanced").fit(X, t["two"])
    yield "score card", False, lambda: learners.ScoreCardClassifier(4).fit(X, t["two"])
    grades = t["three"]
    yield "ranker", False, lambda: FSARanker(5).fit(X, grades, qid=t["query"])
    yield "ranker, one query", False, lambda: FSARanker(5).fit(X[:60], grades[:60])
    yield "ranker, auto", False, lambda: FSARanker("auto").fit(X, grades, qid=t["query"])
    yield "ranker, CSR", False, lambda: FSARanker(5).fit(t["sparse"], grades, qid=t["query"])
    yield (
        "ranker, groups",
        True,
        lambda: FSARanker(3, constraints=GROUPS).fit(X, grades, qid=t["query"]),
    )
    yield "RankBoost", False, lambda: learners.RankBoost(5).fit(X, grades, qid=t["query"])


def other_fits(t: dict[str, Any], folder: Path) -> Iterator[Fit]:
    """Yield fits of the other selectors, of estimators built on FSA, and of `annealed select`."""
    X, groups = t["X"], GROUPS.groups
    for target in ("number", "two", "three"):
        kind, y = "Regressor" if target == "number" else "Classifier", t[target]
        foba, tisp = getattr(learners, f"ForwardBackward{kind}"), getattr(learners, f"TISP{kind}")
        for criterion in ("gradient", "objective"):
            yield (
                f"FoBa, {target}, {criterion}",
                False,
                lambda m=foba, c=criterion, y=y: m(6, criterion=c).fit(X, y),
            )
            yield (
                f"FoBa, {target}, {criterion}, groups",
                True,
                lambda m=foba, c=criterion, y=y: m(4, criterion=c, feature_groups=groups).fit(X, y),
            )
        yield f"TISP, {target}", False, lambda m=tisp, y=y: m(6).fit(X, y)
        yield (
            f"stability, {target}",
            False,
            lambda y=y, k=kind: learners.selection_stability(
                getattr(learners, f"FSA{k}")(4), X, y, 4, resample="half", random_state=0
            ),
        )
    yield (
        "FoBa, Poisson",
        False,
        lambda: learners.ForwardBackwardRegressor(4, loss="poisson").fit(X, t["counts"]),
    )
    yield (
        "FoBa, exponential",
        False,
        lambda: learners.ForwardBackwardClassifier(4, loss="exponential").fit(X, t["two"]),
    )
    yield (
        "FoBa, weights",
        False,
        lambda: learners.ForwardBackwardRegressor(4).fit(X, t["number"], t["weight"]),
    )
    yield "LogitBoost", False, lambda: learners.LogitBoostClassifier(4).fit(X, t["three"])
    yield "minimax", False, lambda: learners.MinimaxSparseClassifier().fit(X, t["two"])
    for name in ("StabilizedTruncatedSGD", "FOBOS", "RDA", "TruncatedGradient"):
        yield (
            name,
            False,
            lambda n=name: getattr(learners, f"{n}Classifier")(random_state=0).fit(X, t["two"]),
        )
    yield (
        "FDR",
        False,
        lambda: learners.FDRSelector(FSARegressor(), 0.2, random_state=0).fit(X, t["number"]),
    )
    yield (
        "inference",
        False,
        lambda: learners.FSAInference(FSARegressor(4), random_state=0).fit(X, t["number"]),
    )
    yield (
        "SDist",
        False,
        lambda: learners.SDist(random_state=0, n_features_to_select=6).fit(X, t["two"]),
    )
    yield (
        "Fourier",
        False,
        lambda: learners.SparseFourierRegressor(n_steps=500, random_state=0).fit(
            X[:, :6], t["number"]
        ),
    )
    rng = np.random.default_rng(3)
    chains, lengths = rng.standard_normal((200, 10)), np.full(25, 8)
    labels = np.digitize(chains[:, 0] + chains[:, 1] + 0.7 * rng.standard_normal(200), [-0.7, 0.7])
    yield "FSACRF", False, lambda: learners.FSACRF(3).fit(chains, labels, lengths=lengths)
    yield (
        "FSACRF, groups",
        True,
        lambda: learners.FSACRF(2, feature_groups=[0, 1, 2, 3, 4, 5, 6, 6, 6, 6]).fit(
            chains, labels, lengths=lengths
        ),
    )
    yield (
        "FoBa CRF",
        False,
        lambda: learners.ForwardBackwardCRF(3).fit(chains, labels, lengths=lengths),
    )

    def table(name: str, **columns: np.ndarray) -> Path:
        import pandas as pd

        path = folder / f"{name}.csv"
        pd.DataFrame({f"x{j}": X[:, j] for j in range(12)} | columns).to_csv(path, index=False)
        return path

    levels = np.random.default_rng(1).integers(0, 9, 150)
    words = np.array([f"level {i}" for i in levels])
    for target in ("number", "two", "three"):
        for size in (3, "auto"):
            for grouped in (False, True):
                path = table(
                    f"{target} {grouped}", target=t[target], **({"words": words} if grouped else {})
                )
                yield (
                    f"select, {target}, k={size}{', a category' if grouped else ''}",
                    grouped,
                    lambda p=path, k=size, g=grouped: selected(p, k),
                )


def selected(path: Path, size: Any) -> Any:
    """Return the output of `annealed select` for a file."""
    chosen = select_file(path, Request(target="target", k=str(size)))
    columns = chosen.columns
    return {
        "support_": [c["name"] for c in columns],
        "coef_": [c["coefficient"] for c in columns],
        "losses": chosen.validation.losses,
    }


def numbers_of(model: Any) -> dict[str, Any]:
    """Return the support and the numbers of the result of a fit."""
    if isinstance(model, FSAPath):
        return {
            f"{k} {name}": value
            for k in model.sizes_
            for name, value in numbers_of(model.get_estimator(int(k))).items()
        }
    result = {}
    for name in NUMBERS:
        value = getattr(model, name, None)
        if isinstance(value, (np.ndarray, float, int, list)):
            result[name] = np.asarray(value)
    return result or {name: np.asarray(value) for name, value in model.items()}


def written(value: np.ndarray) -> list[Any]:
    """Return numbers as exact text, and other values unchanged."""
    flat = np.ravel(value)
    return [float(v).hex() for v in flat] if flat.dtype.kind == "f" else flat.tolist()


def main(argv: Sequence[str] | None = None) -> None:
    """Fit and write, or compare two files."""
    parser = new_parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="earlier file; list the fits that differ from it",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="run only fits whose names contain TEXT"
    )
    parser.add_argument("--seconds", action="store_true", help="print the seconds of each fit")
    args = parser.parse_args(argv)
    if args.compare:
        return compare(json.loads(args.compare.read_text()), json.loads(args.file.read_text()))
    t, fits, start = tables(), {}, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, grouped, fit in [*fsa_fits(t, Path(folder)), *other_fits(t, Path(folder))]:
            if args.only not in name:
                continue
            began = time.perf_counter()
            try:
                numbers: Any = {key: written(value) for key, value in numbers_of(fit()).items()}
            except Exception as error:  # an error is a result as well
                numbers = {"error": [f"{type(error).__name__}: {error}"]}
            if args.seconds or "error" in numbers or not numbers:
                print(
                    f"{time.perf_counter() - began:6.2f} s  {name}  "
                    f"{numbers.get('error', sorted(numbers))}",
                    flush=True,
                )
            fits[name] = {"grouped": grouped, "numbers": numbers}
    args.file.write_text(json.dumps(fits, indent=0))
    print(
        f"{len(fits)} fits, {sum(f['grouped'] for f in fits.values())} with groups, "
        f"{time.perf_counter() - start:.0f} s"
    )


def compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    """List the fits that differ, those without groups first."""
    different = [
        name
        for name in before
        if name in after and before[name]["numbers"] != after[name]["numbers"]
    ]
    for grouped in (False, True):
        names = [name for name in different if before[name]["grouped"] == grouped]
        total = sum(fit["grouped"] == grouped for fit in before.values())
        print(f"{'with' if grouped else 'without'} groups: {len(names)} of {total} differ")
        for name in names:
            print(f"  {name}: {difference(before[name]['numbers'], after[name]['numbers'])}")
    for name in sorted(set(before) ^ set(after)):
        print(f"only in {'the earlier' if name in before else 'the later'} file: {name}")


def difference(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> str:
    """Return the support if it differs, otherwise the largest relative difference of the
    numbers."""
    changed = [key for key in before if before[key] != after.get(key)]
    supports = [key for key in changed if "support_" in key or key == "error"]
    if (
        supports
        or not changed
        or any(len(before[key]) != len(after.get(key, [])) for key in changed)
    ):
        return ", ".join(supports or changed or sorted(set(after) - set(before)))
    values = [
        np.array(
            [
                [float.fromhex(v) if isinstance(v, str) else v for v in row[key]]
                for row in (before, after)
            ]
        )
        for key in changed
    ]
    return f"{', '.join(changed)} by {max(np.nanmax(abs(a - b)) / max(np.nanmax(abs(a)), 1e-300) for a, b in values):.1e}"


if __name__ == "__main__":
    main()
