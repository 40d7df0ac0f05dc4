"""Readers of the public tables that the selectors are compared on: training and test part as their authors split them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


@dataclass
class Split:
    """A table in two parts.

    Attributes
    ----------
    name : str
    X_train, X_test : ndarray or csr_array
        float32.
    y_train, y_test : ndarray
        Labels.
    balanced : bool
        Whether errors are to be averaged over the classes, as the table's authors did.
    """

    name: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    balanced: bool = False


def _dense(file: Path, label: str = "y") -> tuple:
    with np.load(_existing(file)) as arrays:
        return tuple(arrays[f"{part}_{half}"] for half in ("train", "test") for part in ("X", label))


def _sparse(folder: Path) -> tuple:
    return tuple(
        sp.csr_array(sp.load_npz(_existing(folder / f"X_{half}.npz"))) if part == "X" else np.load(folder / f"y_{half}.npy")
        for half in ("train", "test")
        for part in ("X", "y")
    )


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise ValueError(f"{file}: no such file (the folder of the real data is named by ANNEALED_DATA)")
    return file


TABLES: dict[str, Callable[[Path], tuple]] = {
    "dexter": lambda data: _sparse(data / "dexter"),
    "arcene": lambda data: _dense(data / "arcene" / "arcene.npz"),
    "madelon": lambda data: _dense(data / "madelon" / "madelon.npz"),
    "gisette_valid": lambda data: _dense(data / "gisette_valid" / "gisette_valid.npz"),
    "leukemia": lambda data: _dense(data / "leukemia" / "leukemia.npz"),
    "dorothea": lambda data: _sparse(data / "dorothea"),
    "pcmac": lambda data: _sparse(data / "pcmac"),
    "usps": lambda data: _dense(data / "usps" / "usps_zip.npz", "digit"),
}


def read_split(name: str, data_dir: str | Path) -> Split:
    """Read one of ``TABLES``.

    Raises
    ------
    ValueError
        If the name is unknown or a file is missing.
    """
    if name not in TABLES:
        raise ValueError(f"table {name!r} is unknown; expected one of {sorted(TABLES)}")
    X_train, y_train, X_test, y_test = TABLES[name](Path(data_dir))
    return Split(name, X_train.astype(np.float32), y_train, X_test.astype(np.float32), y_test, balanced=name == "dorothea")


@dataclass
class Queries:
    """Items with relevance grades, grouped by query.

    Attributes
    ----------
    X : ndarray of shape (n_items, n_features)
    grade : ndarray of shape (n_items,)
    qid : ndarray of shape (n_items,)
    """

    X: np.ndarray
    grade: np.ndarray
    qid: np.ndarray


def read_mq2008(data_dir: str | Path) -> Iterator[tuple[Queries, Queries, Queries]]:
    """The five official folds of LETOR's MQ2008: training, validation and test part of each."""
    parts = [_queries(Path(data_dir) / "ranking_mq2008" / f"S{i}.svmrank.gz") for i in range(1, 6)]
    for fold in range(5):
        train = [parts[(fold + i) % 5] for i in range(3)]
        joined = Queries(*(np.concatenate([getattr(q, a) for q in train]) for a in ("X", "grade", "qid")))
        yield joined, parts[(fold + 3) % 5], parts[(fold + 4) % 5]


def read_lambdarank(data_dir: str | Path) -> tuple[Queries, Queries]:
    """LightGBM's ranking example: training and test part."""
    folder = Path(data_dir) / "ranking_lambdarank"
    train, test = (_queries(folder / f"{half}.svmrank.gz", 300) for half in ("train", "test"))
    return train, test


def _queries(file: Path, n_features: int | None = None) -> Queries:
    with gzip.open(_existing(file)) as lines:
        X, grade, qid = load_svmlight_file(lines, query_id=True, n_features=n_features)
    return Queries(X.toarray(), grade.astype(int), qid.astype(int))


def mean_ndcg(grade: np.ndarray, score: np.ndarray, qid: np.ndarray, *, k: int = 10) -> float:
    """NDCG@k, gain 2^grade - 1 and discount 1 / log2(1 + rank), averaged over the queries with a relevant item.

    Equal scores keep the order of the rows.

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
