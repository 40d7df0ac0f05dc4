"""Evaluation of image classifiers with and without head boxes, and of other methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...learners.types import Matrix
from ...models.images import (
    HEADS,
    METHODS,
    WHOLE,
    ClassifierSettings,
    ImageClassifier,
    mean_probabilities,
)
from ..common.timing import timed
from .data import PetFile, Photographs

_PLAIN = ("method", "columns", "photographs", "errors", "error")
COLUMNS = (
    {"heads": "head boxes"} | {name: name for name in _PLAIN} | {"seconds": "training seconds"}
)
# Compared methods, and the settings in which they differ from the model.
OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    *((method, method, {}) for method in METHODS),
    ("sdist-sgd, order 2", "sdist-sgd", {"max_order": 2}),
]
COST = 10.0  # C of the linear SVM, for rows with three parts of length 1 (heuristic)


@dataclass
class Evaluation:
    """Results of an evaluation.

    Attributes
    ----------
    rows : list of dict
        Two rows per method, one without and one with head boxes, with the keys in ``COLUMNS``.
    breeds : list of dict
        Errors of the model for each breed, if the data contain breeds.
    test, train : list of PetFile
    X_test, X_train : CSR matrices
    probabilities : dict of str to ndarray
        Probabilities of the test photographs, computed with ("heads") and without ("whole") head
        boxes; NaN for photographs without a head box in the former case.
    seconds : float
        Median processor time for computing the columns of a photograph, without reading the file.
    """

    rows: list[dict[str, Any]]
    breeds: list[dict[str, Any]]
    test: list[PetFile]
    train: list[PetFile]
    X_test: sp.csr_matrix
    X_train: sp.csr_matrix
    probabilities: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: float = 0.0


def divide(files: Sequence[PetFile]) -> tuple[list[PetFile], list[PetFile]]:
    """Divide the files into training and test photographs.

    If the data have no split, all photographs are test photographs.
    """
    test = [f for f in files if f.split == "test"] if any(f.split for f in files) else list(files)
    return [f for f in files if f.split == "train"], test


def classified(part: str, files: Sequence[PetFile]) -> np.ndarray:
    """Return whether a part of the model ("whole" or "heads") classifies each photograph.

    The part "heads" classifies only photographs with a head box.
    """
    return np.array([part == WHOLE or f.head is not None for f in files], bool)


def evaluate_classifier(
    model: ImageClassifier,
    files: Sequence[PetFile],
    watch: Callable[[Sequence, int], Any] = lambda items, n: items,
) -> Evaluation:
    """Compute the test errors of a model.

    If the data have a training split, other methods are also evaluated.
    """
    train, test = divide(files)
    if not test:
        raise ValueError(
            "the test split has no photographs; expected one or more, or data without splits"
        )
    if unknown := sorted({f.label for f in test} - set(model.classes)):
        raise ValueError(
            f"class {unknown[0]!r} is unknown to the model; "
            f"expected one of {', '.join(model.classes)}"
        )
    rows, seconds = [], []
    photographs = Photographs([*train, *test], model.features.side)
    for i in watch(range(len(photographs)), len(photographs)):
        row, took = timed(model.features.row, photographs[i])
        rows.append(sp.csr_matrix(row))
        seconds.append(took)
    X = sp.vstack(rows, format="csr")
    evaluation = Evaluation(
        [], [], test, train, X[len(train) :], X[: len(train)], seconds=float(np.median(seconds))
    )
    y_test = np.array([model.classes.index(f.label) for f in test])
    for part in model.scorers:
        asked = classified(part, test)
        if not asked.any():
            continue
        probabilities = np.full((len(test), len(model.classes)), np.nan)
        probabilities[asked] = model.probabilities(evaluation.X_test[asked], part)
        evaluation.probabilities[part] = probabilities
        wrong = probabilities[asked].argmax(axis=1) != y_test[asked]
        evaluation.rows.append(
            _row(part, f"model ({model.settings.method})", len(model.selected(part)), wrong)
        )
        breeds = np.array([f.breed for f, a in zip(test, asked) if a])
        evaluation.breeds += [
            {"breed": str(b)} | _row(part, "model", 0, wrong[breeds == b])
            for b in np.unique(breeds)
            if b
        ]
        learnable = classified(part, train)
        y_train = np.array([f.label for f in train])[learnable]
        if learnable.any() and set(y_train.tolist()) == set(model.classes):
            codes = np.array([model.classes.index(label) for label in y_train])
            evaluation.rows += _competitors(
                model,
                part,
                evaluation.X_train[learnable],
                codes,
                evaluation.X_test[asked],
                y_test[asked],
            )
    return evaluation


def _row(
    part: str, method: str, n_columns: int, wrong: np.ndarray, seconds: float | None = None
) -> dict[str, Any]:
    return {
        "heads": "with" if part == HEADS else "without",
        "method": method,
        "columns": int(n_columns),
        "photographs": len(wrong),
        "errors": int(wrong.sum()),
        "error": float(wrong.mean()),
        "seconds": seconds,
    }


def _competitors(
    model: ImageClassifier, part: str, X: Matrix, y: np.ndarray, X_test: Matrix, y_test: np.ndarray
) -> list[dict[str, Any]]:
    """Evaluate other methods on the same columns: other learners with the model's settings, nearest
    neighbours, and a linear SVM."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    pool = model.columns(part)
    rows = []
    for name, method, changed in OTHERS:
        settings = ClassifierSettings(**{**vars(model.settings), "method": method, **changed})
        if settings == model.settings:
            continue
        learnt, seconds = timed(settings.learn, X[:, pool], y)
        wrong = mean_probabilities(learnt, X_test[:, pool]).argmax(axis=1) != y_test
        rows.append(
            _row(part, name, len({int(c) for s in learnt for c in s.selected}), wrong, seconds)
        )
    if part == WHOLE:  # the others use all 31,000 columns, or those that do not need a head box
        X, X_test = X[:, pool], X_test[:, pool]
    k = min(5, len(y))
    others = {
        f"{k} nearest neighbours": KNeighborsClassifier(k),
        "linear SVM": LinearSVC(C=COST, random_state=0),
    }
    return rows + [
        _row(part, name, X.shape[1], other.fit(X, y).predict(X_test) != y_test)
        for name, other in others.items()
    ]
