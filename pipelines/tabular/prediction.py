"""Predictions of a saved model for the rows of a table (``annealed predict``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.files import read_header
from ...models.tabular.encoding import THOUSANDS
from ...models.tabular.explanation import explain
from ...models.tabular.model import KIND, TabularModel
from .tables import brings_its_target, read_frame, read_matrix

if TYPE_CHECKING:
    import pandas as pd


def predict_table(
    model: Path,
    table: Path,
    sep: str | None = None,
    encoding: str | None = None,
    note: Callable[[str], object] = lambda text: None,
    contributions: bool = False,
) -> pd.DataFrame:
    """Return a frame with ``prediction`` and, for classes, a column ``probability of CLASS`` for
    each.

    ``note`` is called with a line for each column that has empty, unreadable or unknown cells. With
    ``contributions`` there are also the score, ``contribution of COLUMN`` for each selected column,
    and that of the
    intercept: the score is their sum.

    Raises
    ------
    ValueError
        If the model or the table cannot be read, or the table lacks a column of the model.
    """
    import pandas as pd

    kept = load_tabular(model)
    X = _rows(kept, table, sep, encoding)
    try:
        predicted = kept.predict(X)
    except ValueError as error:
        raise ValueError(f"{table}: {error}") from None
    for line in kept.encoding.notes(X) if kept.encoding is not None else []:
        note(line)
    names = ["prediction"] if predicted.ndim == 1 else [f"prediction {j + 1}" for j in range(predicted.shape[1])]
    found = dict(zip(names, predicted.reshape(len(predicted), -1).T))
    if kept.classes is not None and kept.probabilities is not None:
        found |= {f"probability of {label}": p for label, p in zip(kept.classes, kept.predict_proba(X).T)}
    return pd.DataFrame(found | (dict(explain(kept, X).to_frame().items()) if contributions else {}))


def load_tabular(model: Path) -> TabularModel:
    """Load a model of a table.

    Raises
    ------
    ValueError
        If the file holds none.
    """
    kind = read_header(model)["kind"]
    if kind != KIND:
        raise ValueError(f"{model}: holds a model of the kind {kind!r}, expected {KIND!r} (annealed select --save)")
    return TabularModel.load(model)


def _rows(kept: TabularModel, table: Path, sep: str | None, encoding: str | None) -> Any:
    """The rows as the model takes them: a frame, or a matrix of all columns that it was fitted
    to."""
    import pandas as pd

    if not brings_its_target(table):
        thousands = kept.encoding is not None and any(column.style == THOUSANDS for column in kept.encoding.columns)
        return read_frame(table, sep, encoding, decimal_comma=not thousands)
    matrix = read_matrix(table)
    wanted = kept.columns if kept.encoding is None else [column.name for column in kept.encoding.columns]
    places = {name: j for j, name in enumerate(matrix.names)}
    there = [i for i, name in enumerate(wanted) if name in places]
    is_sparse = hasattr(matrix.X, "tocsr")
    # the last columns of a sparse table may be 0 in all of its rows
    if len(there) < len(wanted) and not is_sparse:
        gone = next(name for name in wanted if name not in places)
        raise ValueError(f"{table}: the table has no column {gone!r}, which the model needs")
    X, chosen = np.zeros((len(matrix.y), len(wanted))), matrix.X[:, [places[wanted[i]] for i in there]]
    X[:, there] = chosen.toarray() if is_sparse else chosen
    return pd.DataFrame(X, columns=list(wanted))
