"""Tables for ``annealed select``: csv, parquet, npz and svmlight files as a matrix of usable columns and a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MOST_MISSING = 0.5  # a column with a larger share of missing values is left out
MOST_CLASSES = 10  # whole numbers with at most so many different values are taken as classes


@dataclass
class Table:
    """What :func:`read_table` returns: numeric columns X (array or CSR) without missing values, target y, names of the columns.

    Rows without a target are left out. ``notes``: one line per decision, which columns were left out or imputed and why.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_columns)
        Numeric columns without missing values.
    y : ndarray of shape (n_rows,)
        The target, rows without one left out.
    names : list of str
        Names of the columns of ``X``.
    notes : list of str
        One line per decision: which columns were left out or imputed and why.
    """

    X: object
    y: np.ndarray
    names: list[str]
    notes: list[str] = field(default_factory=list)


def read_table(path: str | Path, target: str | None) -> Table:
    """Read a table and clean its columns: ``.csv`` (also ``.csv.gz``), ``.tsv``, ``.parquet``, ``.npz`` or svmlight.

    ``target`` names the target's column; ``.npz`` files (``X``, ``y`` and optionally ``names``) and svmlight files bring their
    own. Text and constant columns are left out, columns with up to 50 % missing values get the median of the others, those with
    more are left out.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    name = path.name.lower()
    if target is not None and name.endswith((".svm", ".svmlight", ".libsvm", ".npz")):
        raise ValueError(f"{path}: brings its own target; expected no --target {target}")
    if name.endswith((".svm", ".svmlight", ".libsvm")):
        table = _read_svmlight(path)
    elif name.endswith(".npz"):
        table = _read_npz(path)
    elif name.endswith((".csv", ".csv.gz", ".tsv", ".parquet")):
        table = _read_frame(path, target)
    else:
        raise ValueError(f"{path}: expected a .csv, .tsv, .parquet, .npz or .svmlight file")
    if not len(table.y):
        raise ValueError(f"{path}: no row with a target")
    if not table.names:
        raise ValueError(f"{path}: no usable column is left ({'; '.join(table.notes) or 'there was none'})")
    return table


def guess_task(y: np.ndarray) -> str:
    """Return "classification" for text, booleans and few (``MOST_CLASSES``) different whole numbers, else "regression".

    Examples
    --------
    >>> guess_task(np.array([0.0, 1.0, 1.0])), guess_task(np.array([0.5, 1.0, 1.0]))
    ('classification', 'regression')
    """
    if y.dtype.kind not in "iuf":
        return "classification"
    values = np.unique(y)
    return "classification" if len(values) <= MOST_CLASSES and (values == np.round(values)).all() else "regression"


def _clean(X: np.ndarray, y: np.ndarray, names: list[str], notes: list[str]) -> Table:
    """Leave out rows without target, constant and mostly empty columns; fill the gaps of the others."""
    import pandas as pd

    gone = pd.isna(y)
    if gone.any():
        notes.append(f"{gone.sum()} rows left out, their target is missing")
        X, y = X[~gone], y[~gone]
    if not len(y):
        return Table(X, y, names, notes)
    finite = np.isfinite(X)
    missing = 1.0 - finite.mean(axis=0)
    keep = missing <= MOST_MISSING
    _note(notes, "left out, more than half of the values missing", names, ~keep)
    filled = np.flatnonzero(keep & (missing > 0))
    if len(filled):
        X = X.copy()
    for j in filled:
        X[~finite[:, j], j] = np.median(X[finite[:, j], j])
    _note(notes, "incomplete, gaps filled with the median", names, filled)
    constant = keep & (X[:1] == X).all(axis=0)
    _note(notes, "left out, constant", names, constant)
    keep &= ~constant
    return Table(X if keep.all() else X[:, keep], y, [n for n, k in zip(names, keep) if k], notes)


def _note(notes: list[str], what: str, names: list[str], which) -> None:
    chosen = np.asarray(names, object)[which]
    if len(chosen):
        notes.append(f"{len(chosen)} column{'s' * (len(chosen) > 1)} {what}: {', '.join(map(str, chosen))}")


def _read_frame(path: Path, target: str | None) -> Table:
    import pandas as pd

    if target is None:
        raise ValueError(f"{path}: name the target's column with --target")
    try:
        if path.suffix.lower() == ".parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",", low_memory=False)
    except ImportError:
        raise ValueError(f"{path}: reading parquet needs pyarrow (pip install annealed[parquet])") from None
    except (ValueError, OSError, EOFError) as error:  # pandas' parser errors and UnicodeDecodeError are ValueErrors
        raise ValueError(f"{path}: not a readable table ({error})") from None
    frame.columns = [str(name) for name in frame.columns]
    if target not in frame.columns:
        shown = ", ".join(frame.columns[:10]) + (", ..." if len(frame.columns) > 10 else "")
        raise ValueError(f"{path}: no column {target!r} for the target; the columns are {shown}")
    y = frame.pop(target)
    numeric = [pd.api.types.is_numeric_dtype(t) and not pd.api.types.is_complex_dtype(t) for t in frame.dtypes]
    notes: list[str] = []
    names = list(frame.columns)
    _note(notes, "left out, text", names, ~np.array(numeric, bool))
    X = frame.loc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_bool_dtype(y.dtype) or not pd.api.types.is_numeric_dtype(y.dtype):
        labels = y.astype(object).to_numpy()
        labels = np.array([None if pd.isna(label) else str(label) for label in labels], object)
    else:
        labels = y.to_numpy(dtype=np.float64, na_value=np.nan)
    table = _clean(X, labels, [n for n, keep in zip(names, numeric) if keep], notes)
    table.y = table.y.astype(str) if table.y.dtype == object else table.y
    return table


def _read_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # zipfile, zlib, struct and numpy each have their own ways to fail on a damaged file
        raise ValueError(f"{path}: not a readable .npz file ({error})") from None
    if not {"X", "y"} <= arrays.keys():
        raise ValueError(f"{path}: holds {', '.join(arrays) or 'nothing'}, expected the arrays X and y")
    X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or y.shape != X.shape[:1] or X.dtype.kind not in "biuf":
        raise ValueError(f"{path}: X is {X.dtype} {X.shape} and y {y.shape}, expected numbers (n, m) and (n,)")
    names = [str(n) for n in arrays.get("names", np.arange(X.shape[1]))]
    if len(names) != X.shape[1]:
        raise ValueError(f"{path}: {len(names)} names for {X.shape[1]} columns")
    return _clean(X.astype(np.float64), y, names, [])


def _read_svmlight(path: Path) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OSError, OverflowError) as error:
        raise ValueError(f"{path}: not a readable svmlight file ({error})") from None
    if not np.isfinite(X.data).all() or not np.isfinite(y).all():
        raise ValueError(f"{path}: holds NaN or infinity, which a sparse table cannot leave out")
    first = X[:1].toarray()[0] if X.shape[0] else np.zeros(X.shape[1])
    constant = np.asarray(X.max(axis=0).toarray()[0] == first) & np.asarray(X.min(axis=0).toarray()[0] == first)
    names, notes = [str(j) for j in range(X.shape[1])], list[str]()
    _note(notes, "left out, constant", names, constant)
    return Table(X[:, ~constant].tocsr(), y, [n for n, c in zip(names, constant) if not c], notes)
