"""A file as the table that ``annealed select`` works on, and ``annealed predict``: csv, parquet,
npz and svmlight."""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.tabular.encoding import TableEncoding, as_words
from .encoding import Table, encode_frame, encode_matrix, numbers_rows, read_target

if TYPE_CHECKING:
    import pandas as pd

FRAMES = (".csv", ".csv.gz", ".tsv", ".parquet")
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
# more than one character: the tab as a shell hands it on, and any blanks
_LONG_SEPARATORS = {r"\t": "\t", r"\s+": r"\s+"}
_SEPARATORS = (";", "\t", "|")  # that a file may have whose only column is its whole line


@dataclass
class Matrix:
    """A table of numbers that brings its own target.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_columns)
        NaN where a value is missing.
    y : ndarray of shape (n_rows,)
    names : list of str
    row_groups : ndarray of shape (n_rows,) or None
        Queries of an svmlight file.
    notes : list of str
    """

    X: Any
    y: np.ndarray
    names: list[str]
    row_groups: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


def read_table(
    path: str | Path,
    target: str | None,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    row_groups: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    keep_missing: bool = False,
    dates: str | None = None,
) -> Table:
    """Read a table, and decide what becomes of its columns.

    Parameters
    ----------
    path : path
        ``.csv`` (also ``.csv.gz``), ``.tsv``, ``.parquet``, ``.npz`` with ``X``, ``y`` and
        optionally ``names``, or svmlight (``.svm``, ``.svmlight``, ``.libsvm``).
    target : str or None
        Name of the target's column; npz and svmlight files bring their own.
    include, exclude : sequence of str
        Columns that may not be left out, and columns that shall be.
    row_groups : str or None
        Column of a group of each row, no predictor.
    sep, encoding : str or None
        See :func:`read_frame`.
    keep_missing : bool, default False
        Missing numbers stay NaN.
    dates : {"dayfirst", "monthfirst"} or None, default None
        See :func:`.encoding.encode_frame`.

    Raises
    ------
    ValueError
        If the file cannot be read, a column that is named is not there, or no column is left.
    """
    path = Path(path)
    if brings_its_target(path):
        if target is not None:
            raise ValueError(f"{path}: brings its own target; expected no --target {target}")
        if row_groups is not None:
            raise ValueError(f"{path}: holds numbers only; expected no --row-groups {row_groups}")
        table = _from_matrix(path, read_matrix(path), include, exclude, keep_missing)
    else:
        notes: list[str] = []
        frame = read_frame(path, sep, encoding, notes)
        table = _from_frame(path, frame, target, include, exclude, row_groups, keep_missing, dates, notes)
        del frame
        if "pyarrow" in sys.modules:  # it keeps as much memory as a whole table
            sys.modules["pyarrow"].default_memory_pool().release_unused()
    if not table.encoding.columns:
        raise ValueError(f"{path}: no usable column is left ({'; '.join(table.notes) or 'there was none'})")
    return table


def _check_names(path: Path, names: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> None:
    for option, given in (("--include", include), ("--exclude", exclude)):
        for name in given:
            if name not in names:
                raise ValueError(f"{path}: no column {name!r} for {option}; the columns are {_shown(names)}")
    both = set(include) & set(exclude)
    if both:
        raise ValueError(f"column {min(both)!r} is named by --include and by --exclude")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def _from_frame(path, frame, target, include, exclude, row_groups, keep_missing, dates, notes) -> Table:
    import pandas as pd

    names = list(frame.columns)
    if target is None:
        raise ValueError(f"{path}: name the target's column with --target")
    for option, name in (("the target", target), ("--row-groups", row_groups)):
        if name is not None and name not in names:
            raise ValueError(f"{path}: no column {name!r} for {option}; the columns are {_shown(names)}")
    try:
        y = read_target(frame[target])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    rows = _rows_with_target(path, y, notes)
    groups = None
    if row_groups is not None:
        groups = np.unique(np.array([word or "" for word in as_words(frame[row_groups].iloc[rows])]), return_inverse=True)[1]
    left = [name for name in names if name not in (target, row_groups)]
    _check_names(path, left, include, exclude)
    used = frame[[name for name in left if name not in exclude]]
    used = used if len(rows) == len(y) else used.iloc[rows]
    if y.dtype != object and not pd.api.types.is_numeric_dtype(frame[target].dtype):
        notes.append(f"the target {target!r} holds numbers with thousands separators")
    ids = [name for name in used.columns if numbers_rows(frame[name], first=name == names[0])]
    X, decisions = encode_frame(used, keep_missing, include, ids, dates)
    y = y[rows].astype(str) if y.dtype == object else y[rows]
    left_out = dict.fromkeys(exclude, "named by --exclude") | decisions.left_out
    encoding = TableEncoding(tuple(decisions.columns))
    return Table(X, y, encoding, left_out, [*notes, *decisions.notes()], rows, groups)


def _rows_with_target(path: Path, y: np.ndarray, notes: list[str]) -> np.ndarray:
    import pandas as pd

    rows = np.flatnonzero(~pd.isna(y))
    if not len(rows):
        raise ValueError(f"{path}: no row with a target")
    if len(rows) < len(y):
        notes.append(f"{len(y) - len(rows)} rows left out, their target is missing")
    return rows


def _from_matrix(path: Path, matrix: Matrix, include, exclude, keep_missing) -> Table:
    y, X, names = matrix.y, matrix.X, matrix.names
    notes = list(matrix.notes)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(f"{path}: the target holds infinity in row {np.flatnonzero(np.isinf(y))[0] + 1}")
    rows = _rows_with_target(path, y, notes)
    X, y = (X, y) if len(rows) == len(y) else (X[rows], y[rows])
    _check_names(path, names, include, exclude)
    used = [j for j, name in enumerate(names) if name not in set(exclude)]
    if len(used) < len(names):
        X, names = X[:, used], [names[j] for j in used]
    X, decisions = encode_matrix(X, names, keep_missing, include)
    left_out = dict.fromkeys(exclude, "named by --exclude") | decisions.left_out
    encoding = TableEncoding(tuple(decisions.columns))
    groups = None if matrix.row_groups is None else matrix.row_groups[rows]
    return Table(X, y, encoding, left_out, [*notes, *decisions.notes()], rows, groups)


def check_table(path: Path) -> str:
    """Return the lower-case name of a table after checking that there is such a file, of a kind
    that can be read.

    Raises
    ------
    ValueError
        If not.
    """
    if path.is_dir():
        raise ValueError(f"{path}: a folder, expected a table")
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    name = path.name.lower()
    if not name.endswith((*FRAMES, ".npz", *_SVMLIGHT)):
        raise ValueError(f"{path}: expected a .csv, .tsv, .parquet, .npz or .svmlight file")
    return name


def brings_its_target(path: Path) -> bool:
    """Whether a file holds a matrix and its target, so that ``--target`` makes no sense."""
    return path.name.lower().endswith((".npz", *_SVMLIGHT))


def read_matrix(path: Path) -> Matrix:
    """Read an npz file with ``X``, ``y`` and optionally ``names``, or an svmlight file.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    name = check_table(path)
    return _read_npz(path) if name.endswith(".npz") else _read_svmlight(path)


def read_frame(
    path: Path, sep: str | None = None, encoding: str | None = None, notes: list[str] | None = None, decimal_comma: bool = True
) -> pd.DataFrame:
    """Read a csv, tsv or parquet file.

    Parameters
    ----------
    path : Path
        The file; csv may be compressed (``.csv.gz``).
    sep : str or None, default None
        What separates the columns; None is the comma, the tab in a .tsv, or what the only column's
        name contains.
    encoding : str or None, default None
        Of the characters; None is UTF-8.
    notes : list of str or None, default None
        A line is added for a separator that was guessed.
    decimal_comma : bool, default True
        Whether columns of numbers as 1,5 may be found where another character separates the
        columns.

    Returns
    -------
    DataFrame
        With different names, without blanks at their ends.

    Raises
    ------
    ValueError
        If it cannot be read, or two columns have the same name.
    """
    name = check_table(path)
    if name.endswith(".parquet"):
        try:
            from pyarrow import parquet

            # Columns of numbers stay where pyarrow has put them.
            frame = parquet.read_table(path, pre_buffer=False).to_pandas(split_blocks=True, self_destruct=True)
        except ImportError:
            raise ValueError(
                f"{path}: reading parquet needs pyarrow (pip install '.[parquet]' in the checkout of annealed)"
            ) from None
        except (ValueError, OSError) as error:
            raise ValueError(f"{path}: not a readable table ({error})") from None
        header = [str(column) for column in frame.columns]
    else:
        frame, header = _read_text(path, sep, encoding, [] if notes is None else notes, decimal_comma)
    frame.columns = _different(path, header)
    return frame


def _read_text(
    path: Path, sep: str | None, encoding: str | None, notes: list[str], decimal_comma: bool
) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd

    if sep and len(sep) > 1 and sep not in _LONG_SEPARATORS:
        raise ValueError(f"--sep {sep}: expected one character")
    given, sep = sep, "\t" if sep is None and path.suffix.lower() == ".tsv" else _LONG_SEPARATORS.get(sep or ",", sep or ",")
    try:
        header = _header(path, sep, encoding)
        found = next((s for s in _SEPARATORS if len(header) == 1 and s in header[0]), None)
        if given is None and found is not None:
            notes.append(f"the columns of {path.name} are separated by {found!r}, not by {sep!r}")
            sep, header = found, _header(path, found, encoding)
        options: dict[str, Any] = {"sep": sep, "encoding": encoding or "utf-8", "low_memory": False}
        frame = pd.read_csv(path, **options)
        if decimal_comma and sep != "," and any(_decimal_comma(frame[column]) for column in frame.columns):
            notes.append("numbers with a decimal comma are read as such")
            frame = pd.read_csv(path, decimal=",", **options)
            # those with a bad cell are text: their commas are no thousands separators
            for column in frame.columns:
                if _decimal_comma(frame[column], 0.9):
                    frame[column] = frame[column].str.replace(r"^(-?\d+),(\d+)$", r"\1.\2", regex=True)
    except (UnicodeError, LookupError) as error:
        hint = "expected a known --encoding" if isinstance(error, LookupError) else "name its --encoding, such as latin-1 or utf-16"
        raise ValueError(f"{path}: not a readable table in {encoding or 'utf-8'} ({error}); {hint}") from None
    # pandas' parser errors are ValueErrors
    except (ValueError, OSError, EOFError, csv.Error) as error:
        raise ValueError(f"{path}: not a readable table ({error})") from None
    return frame, header if len(header) == frame.shape[1] else [str(column) for column in frame.columns]


def _header(path: Path, sep: str, encoding: str | None) -> list[str]:
    """The names as the file has them: pandas renames those that come twice."""
    encoding = "utf-8-sig" if encoding is None or encoding.lower() in ("utf8", "utf-8") else encoding
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding=encoding, newline="") as file:
        return next((row for row in csv.reader(file, delimiter=sep) if row), []) if len(sep) == 1 else []


def _decimal_comma(values: pd.Series, share: float = 1.0) -> bool:
    words = values.dropna().head(100)
    return len(words) > 0 and words.dtype.kind not in "biuf" and words.astype(str).str.fullmatch(r"-?\d+,\d+").mean() >= share


def _different(path: Path, header: list[str]) -> list[str]:
    names = [str(name).strip() or f"Unnamed: {i}" for i, name in enumerate(header)]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{path}: two columns have the name {twice!r}; expected different names")
    return names


def _read_npz(path: Path) -> Matrix:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    # zipfile, zlib, struct and numpy each have their own ways to fail on a damaged file
    except Exception as error:
        raise ValueError(f"{path}: not a readable .npz file ({error})") from None
    if not {"X", "y"} <= arrays.keys():
        raise ValueError(f"{path}: holds {', '.join(arrays) or 'nothing'}, expected the arrays X and y")
    X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or y.shape != X.shape[:1] or X.dtype.kind not in "biuf" or y.dtype.kind not in "biufSU":
        raise ValueError(f"{path}: X is {X.dtype} {X.shape} and y {y.dtype} {y.shape}, expected numbers (n, m) and (n,)")
    labels = np.asarray(arrays.get("names", np.arange(X.shape[1])))
    if labels.shape != (X.shape[1],):
        raise ValueError(f"{path}: {labels.size} names for {X.shape[1]} columns")
    names = [n.decode("utf-8", "replace") if isinstance(n, bytes) else str(n) for n in labels.tolist()]
    y = np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y
    return Matrix(X.astype(np.float64), y, _different(path, names))


def _read_svmlight(path: Path) -> Matrix:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y, queries = load_svmlight_file(str(path), query_id=True)
    except (ValueError, OSError, OverflowError) as error:
        raise ValueError(f"{path}: not a readable svmlight file ({error})") from None
    if not X.shape[0]:
        raise ValueError(f"{path}: holds no row")
    if not np.isfinite(X.data).all() or not np.isfinite(y).all():
        raise ValueError(f"{path}: holds NaN or infinity, which a sparse table cannot leave out")
    table = Matrix(X.tocsr(), y, [str(j) for j in range(X.shape[1])])
    if len(np.unique(queries)) > 1:
        table.row_groups = queries
        table.notes.append("rows of one query (qid) stay together in cross-validation")
    return table
