"""Export of a fitted model to a file in the format given by its suffix."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...files import replacing
from ..encoding import PARTS
from .builder import formula_of
from .c_source import write_c
from .formula import Formula
from .onnx_graph import write_onnx
from .spreadsheet import write_csv, write_xlsx
from .sql import write_sql


def _write_json(formula: Formula) -> bytes:
    return (
        json.dumps(formula.record(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    ).encode()


WRITERS: dict[str, Callable[..., bytes]] = {
    ".sql": write_sql,
    ".onnx": write_onnx,
    ".c": write_c,
    ".json": _write_json,
    ".xlsx": write_xlsx,
    ".csv": write_csv,
}


def export(
    model: Any,
    path: str | Path,
    *,
    table: str | None = None,
    dialect: str | None = None,
    keys: Sequence[str] = (),
) -> None:
    """Write a fitted model in a format that runs without Python.

    The suffix of the file determines the format. ``.sql`` is a query, ``.onnx`` is a graph in
    float32, ``.c`` is C99 source code, ``.json`` is the formula itself, and ``.xlsx`` and ``.csv``
    are score sheets. The page docs/export.md describes each format.

    Parameters
    ----------
    model : TabularModel, fitted estimator or fitted Pipeline
        Linear model, or sum of responses to single columns. A :class:`sklearn.pipeline.Pipeline`
        must end in such an estimator; its other steps are scalers, encoders, imputers and
        selectors, possibly in a ``ColumnTransformer``.
    path : path
        Output file; an existing file is replaced atomically.
    table : str or None, default None
        Name of the table to score, for ``.sql``; by default, "data".
    dialect : {"postgres", "sqlite", "duckdb", "mysql", "bigquery"} or None, default None
        SQL dialect of the database, for ``.sql``; by default, "postgres".
    keys : sequence of str, default ()
        Columns of the table to copy to the result, for ``.sql``.

    Raises
    ------
    ValueError
        If the model cannot be exported, or the file cannot be written.
    ModuleNotFoundError
        If the format requires a package that is not installed.

    Examples
    --------
    >>> import numpy as np, pathlib, sqlite3, tempfile
    >>> from annealed.learners import FSARegressor
    >>> from annealed.models import export
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> fitted = FSARegressor(2).fit(X, X[:, 4] + 2 * X[:, 9])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(fitted, f"{folder}/model.sql", dialect="sqlite", table="plants")
    ...     query = pathlib.Path(f"{folder}/model.sql").read_text()
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE plants (x4 REAL, x9 REAL)")
    >>> _ = database.execute("INSERT INTO plants VALUES (1.0, 10.0)")
    >>> [round(value, 1) for value in database.execute(query).fetchone()]  # score and prediction
    [21.0, 21.0]
    """
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(
            f"{path}: unknown file type; expected a file name that ends in {', '.join(WRITERS)}"
        )
    options: dict[str, Any] = {
        name: v for name, v in (("table", table), ("dialect", dialect), ("keys", keys)) if v
    }
    if options and suffix != ".sql":
        raise ValueError(f"{path}: {next(iter(options))} is only available for .sql files")
    if suffix == ".c":
        options["stem"] = Path(path).stem
    try:
        encoding = getattr(model, "encoding", None)
        if parts := [
            column
            for column in ([] if encoding is None else encoding.columns)
            if column.form in PARTS
        ]:
            raise ValueError(
                f"column {parts[0].name!r} cannot be exported; train the model with annealed "
                f"select --as {parts[0].source}=date"
            )
        formula = formula_of(model)
        _write_json(formula)  # fails if a name is not valid text, unlike some writers
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{path}: {error.object!r} contains characters that are not valid text"
        ) from None
    with replacing(path) as temporary:  # workbooks use additional temporary files
        temporary.write_bytes(WRITERS[suffix](formula, **options))
