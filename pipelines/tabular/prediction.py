"""Prediction for the rows of a table with a saved model."""

from pathlib import Path

import pandas as pd

from ...models import TabularModel, explain
from ...models.tabular.encoding import THOUSANDS
from ...models.tabular.fitting.options import Note
from ..console import naming
from .tables import read_rows


def predict_table(
    model: Path,
    table: Path,
    sep: str | None = None,
    encoding: str | None = None,
    note: Note = lambda text: None,
    contributions: bool = False,
    allow_empty: bool = False,
) -> pd.DataFrame:
    """Predict the rows of a table, and return a data frame.

    The columns are ``prediction`` and, for classification, ``probability of CLASS`` for each class.
    If ``contributions`` is set, the frame also contains the score, ``contribution of COLUMN`` for
    each selected column, and the contribution of the intercept. The score is the sum of the
    contributions. ``note`` is called with a one-line message about each column with empty,
    unreadable or unknown cells, and about the detected format of the table. An error is raised for
    an empty column in a table with several rows unless ``allow_empty`` is set.

    Raises
    ------
    ValueError
        If the model or the table cannot be read, or the table lacks a column of the model.
    """
    kept = TabularModel.load(model)
    thousands = kept.encoding is not None and any(
        column.style == THOUSANDS for column in kept.encoding.columns
    )
    wanted = kept.columns if kept.encoding is None else kept.encoding.sources
    lines: list[str] = []
    X = read_rows(table, wanted, sep, encoding, lines, decimal_comma=not thousands)[0]
    if not len(X):
        raise ValueError(f"{table}: the table has no rows")
    with naming(table):
        for column in (
            kept.encoding.columns if kept.encoding is not None and not allow_empty else ()
        ):
            if column.source in X:
                column.check_not_empty(X[column.source])
        predicted = kept.predict(X)
    for line in [*lines, *(kept.encoding.notes(X) if kept.encoding is not None else [])]:
        note(line)
    names = (
        ["prediction"]
        if predicted.ndim == 1
        else [f"prediction {j + 1}" for j in range(predicted.shape[1])]
    )
    columns = dict(zip(names, predicted.reshape(len(predicted), -1).T))
    if kept.classes is not None and kept.probabilities is not None:
        columns |= {
            f"probability of {label}": p for label, p in zip(kept.classes, kept.predict_proba(X).T)
        }
    return pd.DataFrame(
        columns | (dict(explain(kept, X).to_frame().items()) if contributions else {})
    )
