"""Selection of exactly k words in sparse text: error and seconds, compared with L1 paths and the
minimax selector.

    python benchmarks/sparse_words.py choose|measure --data DIR [-k 50 200 1000] [--only NAME]
    [--methods ...] [--out FILE]
    python benchmarks/sparse_words.py speed

DIR holds ``pcmac``, ``dexter``, ``farm_ads`` and ``news20``. ``choose`` cross-validates on their
training rows (two or three folds), on pairs of news groups and on simulated text; the rules of the
package were chosen there. ``measure`` fits the training rows and predicts the test rows of the
first three, without documents that occur twice, and uses halves of other news groups and of other
simulated text. An L1 penalty is bisected to the largest model of at most k words, with its own
coefficients, on the raw counts; its seconds are those of the bisection. With FILE, an interrupted
benchmark is resumed. A cell contains the error in percent, and the difference from the first method
with its standard error over the documents. ``speed`` fits 200 of 50,000 simulated words in 20,000
documents and prints processor seconds (median of seven fits, of L1 with the penalty found before),
the peak of allocated memory, and the error on 20,000 other documents.
"""

from __future__ import annotations

import json
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from annealed.learners import FSAClassifier, MinimaxSparseClassifier
from common import new_parser, print_head, print_line, timed
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedKFold

SEEDS_OF_SPEED = 6, 7, 8
Table = tuple[sp.csr_array, np.ndarray]
Split = tuple[sp.csr_array, np.ndarray, sp.csr_array, np.ndarray]


def made(n: int, n_words: int, n_true: int, strength: float, seed: int) -> Table:
    """Return counts of words by Zipf's law, sixty per document; some of the 5,000 most frequent
    words have a coefficient in a logistic model."""
    rng = np.random.default_rng(seed)
    law = 1 / np.arange(1, n_words + 1)
    lengths = rng.poisson(60, n) + 5
    words = np.searchsorted(np.cumsum(law / law.sum()), rng.random(lengths.sum())).clip(
        0, n_words - 1
    )
    X = sp.csr_array(
        (
            np.ones(len(words)),
            (np.repeat(np.arange(n), lengths).astype(np.int32), words.astype(np.int32)),
        ),
        shape=(n, n_words),
    )
    X.sum_duplicates()
    beta = np.zeros(n_words)
    true = rng.choice(5000, n_true, replace=False)
    beta[true] = rng.choice([-1, 1], n_true) * rng.uniform(0.5, 1.5, n_true) * strength
    scores = X @ beta
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(np.median(scores) - scores)), 1, -1)


def once(X: sp.csr_array, y: np.ndarray, X_before: sp.csr_array | None = None) -> Table:
    """Return the documents that do not occur earlier, with their labels."""
    seen = set() if X_before is None else {_words(X_before, i) for i in range(X_before.shape[0])}
    rows = []
    for i in range(X.shape[0]):
        if (words := _words(X, i)) not in seen:
            seen.add(words)
            rows.append(i)
    return X[rows], y[rows]


def _words(X: sp.csr_array, i: int) -> tuple[bytes, bytes]:
    part = slice(*X.indptr[i : i + 2])
    return X.indices[part].tobytes(), X.data[part].tobytes()


def stored(folder: Path, part: str) -> Table:
    X = sp.csr_array(sp.load_npz(folder / f"X_{part}.npz")).astype(float)
    X.sort_indices()
    return X, np.load(folder / f"y_{part}.npy").astype(int)


def news(data: Path, positive: list[int], negative: list[int]) -> Table:
    X, group = (
        sp.csr_array(sp.load_npz(data / "news20" / "X.npz")).astype(float),
        np.load(data / "news20" / "class.npy"),
    )
    rows = np.flatnonzero(np.isin(group, positive + negative))
    return X[rows], np.where(np.isin(group[rows], positive), 1, -1)


def folds(table: Table, n: int) -> Iterator[Split]:
    X, y = table
    for train, test in StratifiedKFold(n, shuffle=True, random_state=1).split(y, y):
        yield X[train], y[train], X[test], y[test]


def official(folder: Path) -> Iterator[Split]:
    X, y = once(*stored(folder, "train"))
    yield X, y, *once(*stored(folder, "test"), X)


def sets(part: str, data: Path) -> dict[str, Callable[[], Iterator[Split]]]:
    texts = ["pcmac", "dexter", "farm_ads"]
    if part == "choose":
        training = {
            name: lambda name=name: folds(once(*stored(data / name, "train")), 3) for name in texts
        }
        pairs = {
            "2, 3": ([2], [3]),
            "17, 19": ([17], [19]),
            "2-6, 12-15": ([2, 3, 4, 5, 6], [12, 13, 14, 15]),
        }
        news_sets = {
            f"news {name}": lambda pair=pair: folds(news(data, *pair), 3)
            for name, pair in pairs.items()
        }
        return (
            training
            | news_sets
            | {"made, 8,000": lambda: folds(made(8000, 20000, 100, 1.5, seed=5), 3)}
        )
    pairs = {
        "1, 20": ([1], [20]),
        "13, 14": ([13], [14]),
        "odd, even": (list(range(1, 20, 2)), list(range(2, 21, 2))),
    }
    halves = {
        f"news {name}": lambda pair=pair: folds(news(data, *pair), 2)
        for name, pair in pairs.items()
    }
    large = {"made, 20,000": lambda: folds(made(20000, 50000, 200, 1.0, seed=6), 2)}
    return {name: lambda name=name: official(data / name) for name in texts} | halves | large


def bisected(
    make: Callable[[float], Any], low: float, high: float
) -> Callable[[int, Any, np.ndarray], Any]:
    """Return the largest model of at most k words; ``make`` takes the logarithm of a parameter with
    which models grow."""

    def fit(k: int, X: Any, y: np.ndarray) -> Any:
        best, most, weak, strong = None, -1, low, high
        for _ in range(18):
            middle = (weak + strong) / 2
            model = make(10**middle).fit(X, y)
            size = np.count_nonzero(model.coef_)
            if most < size <= k:
                best, most = model, size
            if size == k:
                break
            weak, strong = (weak, middle) if size > k else (middle, strong)
        return best

    return fit


def skglm(C: float) -> Any:
    from skglm import SparseLogisticRegression

    return SparseLogisticRegression(1 / C, tol=1e-4)


METHODS: dict[str, Callable[[int, Any, np.ndarray], Any]] = {
    "FSA": lambda k, X, y: FSAClassifier(k).fit(X, y),
    "L1, liblinear": bisected(
        lambda C: LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", max_iter=200, tol=1e-3),
        -5,
        3,
    ),
    "L1, skglm": bisected(skglm, -4, 5),
    "L1, SGD": bisected(
        lambda C: SGDClassifier("log_loss", penalty="l1", alpha=1 / C, max_iter=50, random_state=0),
        -4,
        7,
    ),
    "minimax": lambda k, X, y: MinimaxSparseClassifier(
        max(1, k // 10), C="auto", retrain_C="auto", n_features_to_select=k
    ).fit(X, y),
}


def speed() -> None:
    """Compare fits of FSA with those of skglm at the penalty of as many words, in turns."""
    print_head("seed", "method", "CPU s", "peak MB", "MB of X", "words", "error in %")
    for seed in SEEDS_OF_SPEED:
        X, y, Z, truth = next(folds(made(40000, 50000, 200, 1.0, seed), 2))
        C = 1 / bisected(skglm, -4, 5)(200, X, y).alpha
        models = {"FSA": FSAClassifier(200), "L1, skglm": skglm(C)}
        seconds = [
            [timed(partial(model.fit, X, y))[1] for model in models.values()] for _ in range(7)
        ]
        n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        for (name, model), each in zip(models.items(), np.median(seconds, axis=0), strict=True):
            tracemalloc.start()
            model.fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            error = 100 * (model.predict(Z) != truth).mean()
            n_words = np.count_nonzero(model.coef_)
            print_line(
                seed, name, f"{each:.2f}", peak // 10**6, n_bytes // 10**6, n_words, f"{error:.1f}"
            )


def main(argv: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("part", choices=["choose", "measure", "speed"])
    parser.add_argument("--data", type=Path, help="needed except for speed")
    parser.add_argument("-k", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--only", help="run only data sets with this prefix")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--out", type=Path, help="file of JSON lines to which each row is appended")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if arguments.part == "speed":
        return speed()
    lines = (
        arguments.out.read_text().splitlines()
        if arguments.out is not None and arguments.out.exists()
        else []
    )
    finished = {(row["set"], row["k"]) for row in map(json.loads, lines)}
    print_head("text", "k", *arguments.methods, "seconds")
    for name, splits in sets(arguments.part, arguments.data).items():
        if arguments.only is not None and not name.startswith(arguments.only):
            continue
        for k in arguments.k:
            if (name, k) in finished:
                continue
            wrong: dict[str, list[np.ndarray]] = {method: [] for method in arguments.methods}
            seconds: dict[str, list[float]] = {method: [] for method in arguments.methods}
            for X, y, Z, truth in splits():
                for method in arguments.methods:
                    start = time.process_time()
                    model = METHODS[method](k, X, y)
                    seconds[method].append(time.process_time() - start)
                    wrong[method].append(model.predict(Z) != truth)
            first = np.concatenate(wrong[arguments.methods[0]]).astype(float)
            cells = []
            for method in arguments.methods:
                missed = np.concatenate(wrong[method])
                behind = first - missed
                row = {
                    "set": name,
                    "k": k,
                    "method": method,
                    "error": 100 * missed.mean(),
                    "seconds": np.median(seconds[method]),
                    "behind": 100 * behind.mean(),
                    "se": 100 * behind.std() / np.sqrt(len(behind)),
                }
                difference = "" if not cells else " ({behind:+.1f} ± {se:.1f})".format(**row)
                cells.append(f"{row['error']:.1f}{difference}")
                if arguments.out is not None:
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            times = ", ".join(f"{np.median(seconds[method]):.2g}" for method in arguments.methods)
            print_line(name, k, *cells, times)


if __name__ == "__main__":
    main()
