"""The real data sets of the tables, in the folder that ``--data`` or the environment variable ``ANNEALED_DATA`` names."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

SPARSE_SETS = ("dexter", "pcmac", "dorothea", "farm_ads")
DENSE_SETS = ("arcene", "gisette_valid", "ionosphere", "leukemia", "madelon", "secom_partial", "usps", "usps_7v9")


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Folder of the real data: the one given, else that of the environment variable ``ANNEALED_DATA``."""
    chosen = data_dir or os.environ.get("ANNEALED_DATA")
    if not chosen:
        raise ValueError("the folder of the real data is not known; expected --data or the environment variable ANNEALED_DATA")
    return Path(chosen)


def load_set(name: str, data_dir: str | Path | None = None):
    """Read a real set as its authors split it: X_train, y_train, X_test, y_test.

    Dense columns are float32 arrays, sparse ones float64 CSR matrices. Labels -1 / +1; digits of "usps".
    """
    if name not in SPARSE_SETS + DENSE_SETS:
        raise ValueError(f"set {name!r} is unknown; expected one of {', '.join(sorted(SPARSE_SETS + DENSE_SETS))}")
    data_dir = data_folder(data_dir)
    folder = data_dir / name.removesuffix("_7v9")
    try:
        if name in SPARSE_SETS:
            parts = [sp.csr_matrix(sp.load_npz(folder / f"X_{s}.npz")).astype(np.float64) for s in ("train", "test")]
            labels = [np.load(folder / f"y_{s}.npy") for s in ("train", "test")]
            return parts[0], labels[0], parts[1], labels[1]
        file, label = ("usps_zip", "digit") if name == "usps" else (name, "y")
        with np.load(folder / f"{file}.npz") as data:
            X, X_test = (data[f"X_{half}"].astype(np.float32) for half in ("train", "test"))
            return X, data[f"{label}_train"], X_test, data[f"{label}_test"]
    except FileNotFoundError as error:
        raise ValueError(f"{error.filename}: no such file; expected the set {name} in {data_dir}") from None


def random_split(X, y, seed: int, share: float = 0.7):
    """Divide rows at random, ``share`` of them for training: X_train, y_train, X_test, y_test."""
    order = np.random.RandomState(seed).permutation(len(y))
    n = round(share * len(y))
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


@dataclass
class Queries:
    """Items with features X (n_items, n_features), relevance grades (0 for none) and queries, both int of shape (n_items,).

    Attributes
    ----------
    X : ndarray of shape (n_items, n_features)
        Features.
    grade : ndarray of int of shape (n_items,)
        Relevance, 0 for none.
    qid : ndarray of int of shape (n_items,)
        Query of each item.
    """

    X: np.ndarray
    grade: np.ndarray
    qid: np.ndarray


def read_mq2008(data_dir: str | Path | None = None) -> Iterator[tuple[Queries, Queries, Queries]]:
    """The five official folds of LETOR's MQ2008: training, validation and test part of each."""
    data_dir = data_folder(data_dir)
    parts = [_queries(data_dir / "ranking_mq2008" / f"S{i}.svmrank.gz") for i in range(1, 6)]
    for fold in range(5):
        train = [parts[(fold + i) % 5] for i in range(3)]
        joined = Queries(*(np.concatenate([getattr(q, a) for q in train]) for a in ("X", "grade", "qid")))
        yield joined, parts[(fold + 3) % 5], parts[(fold + 4) % 5]


def read_lambdarank(data_dir: str | Path | None = None) -> tuple[Queries, Queries]:
    """LightGBM's ranking example: training and test part."""
    folder = data_folder(data_dir) / "ranking_lambdarank"
    train, test = (_queries(folder / f"{half}.svmrank.gz", 300) for half in ("train", "test"))
    return train, test


def _queries(file: Path, n_features: int | None = None) -> Queries:
    try:
        with gzip.open(file) as lines:
            X, grade, qid = load_svmlight_file(lines, query_id=True, n_features=n_features)
    except FileNotFoundError:
        raise ValueError(f"{file}: no such file") from None
    return Queries(X.toarray(), grade.astype(int), qid.astype(int))


def mean_ndcg(grade: np.ndarray, score: np.ndarray, qid: np.ndarray, *, k: int = 10) -> float:
    """NDCG@k, gain 2^grade - 1 and discount 1 / log2(1 + rank), averaged over the queries with a relevant item.

    All arrays have shape (n_items,); equal scores keep the order of the rows.

    Examples
    --------
    >>> round(mean_ndcg(np.array([0, 2, 1]), np.array([0.1, 0.2, 0.3]), np.zeros(3)), 4)
    0.7967
    """
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    found = []
    for query in np.unique(qid):
        rows = qid == query
        gain = 2.0 ** grade[rows] - 1.0
        if gain.max() > 0:
            ranked = gain[np.argsort(-score[rows], kind="stable")][:k]
            best = np.sort(gain)[::-1][:k]
            found.append((ranked @ discount[: len(ranked)]) / (best @ discount[: len(best)]))
    return float(np.mean(found))
