"""Real data sets of the tables, in the folder of ``--data`` or ``ANNEALED_DATA``."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from .data_folder import data_folder

KNOWN_SETS = (
    "arcene",
    "dexter",
    "dorothea",
    "farm_ads",
    "gisette",
    "gisette_valid",
    "ionosphere",
    "leukemia",
    "madelon",
    "pcmac",
    "secom",
    "secom_partial",
    "usps",
    "usps_7v9",
)
HALVES = ("train", "test")


def load_set(name: str, data_dir: str | Path | None = None):
    """Read a real data set with its authors' split as X_train, y_train, X_test, y_test.

    Dense columns are float32 arrays, and sparse columns are float64 CSR matrices. Labels are -1 and
    +1, or digits for "usps". Additional data sets, as written by ``annealed data convert libsvm``,
    are read if they are in the folder.
    """
    data_dir = data_folder(data_dir)
    folder = data_dir / name.removesuffix("_7v9")
    file = folder / ("usps_zip.npz" if name == "usps" else f"{name}.npz")
    if (folder / "X_train.npz").is_file():
        parts = [
            sp.csr_matrix(sp.load_npz(existing(folder / f"X_{half}.npz"))).astype(np.float64)
            for half in HALVES
        ]
        labels = [np.load(existing(folder / f"y_{half}.npy")) for half in HALVES]
        return parts[0], labels[0], parts[1], labels[1]
    if not file.is_file() and name not in KNOWN_SETS:
        raise ValueError(
            f"data set {name!r} is unknown, and {data_dir} does not contain it; expected one of "
            f"{', '.join(KNOWN_SETS)}"
        )
    label = "digit" if name == "usps" else "y"
    with np.load(existing(file)) as data:
        X, X_test = (data[f"X_{half}"].astype(np.float32) for half in HALVES)
        return X, data[f"{label}_train"], X_test, data[f"{label}_test"]


def existing(path: Path) -> Path:
    """Return the path of an existing file, or raise a ValueError that explains how to create it."""
    if not path.is_file():
        raise ValueError(
            f"{path}: no such file; create it with annealed data convert (see docs/datasets.md)"
        )
    return path


def save_set(folder: Path, name: str, train, test, label: str = "y") -> None:
    """Write a data set for :func:`load_set` to a folder.

    ``train`` and ``test`` are pairs of columns and labels. Dense columns are written to
    ``NAME.npz``, and sparse columns to four files. ``label`` is "digit" if the labels are digits.
    """
    dense: dict[str, Any] = {}
    for half, (X, y) in zip(HALVES, (train, test), strict=True):
        labels = np.asarray(y).astype(np.int8)
        if sp.issparse(X):
            sp.save_npz(folder / f"X_{half}.npz", sp.csr_matrix(X))
            np.save(folder / f"y_{half}.npy", labels)
        else:
            dense |= {f"X_{half}": X, f"{label}_{half}": labels}
    if dense:
        np.savez_compressed(folder / f"{name}.npz", **dense)


def random_split(X, y, seed: int, share: float = 0.7):
    """Randomly split rows into X_train, y_train, X_test, y_test, with a fraction ``share`` for
    training."""
    order = np.random.RandomState(seed).permutation(len(y))
    n = round(share * len(y))
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


class Queries(NamedTuple):
    """Items with features, relevance grades and queries.

    Attributes
    ----------
    X : ndarray of shape (n_items, n_features)
        Features.
    grade : ndarray of int of shape (n_items,)
        Relevance grade; 0 means not relevant.
    qid : ndarray of int of shape (n_items,)
        Query of each item.
    """

    X: np.ndarray
    grade: np.ndarray
    qid: np.ndarray


def read_mq2008(data_dir: str | Path | None = None) -> Iterator[tuple[Queries, Queries, Queries]]:
    """Return the five official folds of LETOR's MQ2008, each with a training, validation and test
    part."""
    data_dir = data_folder(data_dir)
    parts = [_queries(data_dir / "ranking_mq2008" / f"S{i}.svmrank.gz", 46) for i in range(1, 6)]
    for fold in range(5):
        *train, valid, test = np.roll(range(5), -fold)
        yield (
            Queries(*map(np.concatenate, zip(*(parts[i] for i in train)))),
            parts[valid],
            parts[test],
        )


def read_lambdarank(data_dir: str | Path | None = None) -> tuple[Queries, Queries]:
    """Return the training and test part of LightGBM's ranking example."""
    folder = data_folder(data_dir) / "ranking_lambdarank"
    return _queries(folder / "train.svmrank.gz", 300), _queries(folder / "test.svmrank.gz", 300)


def _queries(file: Path, n_features: int) -> Queries:
    with gzip.open(existing(file)) as lines:
        X, grade, qid = load_svmlight_file(lines, query_id=True, n_features=n_features)
    return Queries(X.toarray(), grade.astype(int), qid.astype(int))
