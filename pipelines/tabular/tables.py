"""Reading and writing of tables: csv, parquet, xlsx, npz and svmlight."""

import csv
import gzip
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...models.files import replacing
from ...models.tabular.encoding import BLOCK, TableEncoding, as_words
from ...models.tabular.fitting import (
    Table,
    check_names,
    encode_matrix,
    is_precise,
    labels_of,
    offset_of,
    read_target,
    rows_with_target,
    table_from_frame,
    target_of,
    usable,
    weights,
)
from ..console import naming
from .request import Request

FRAMES = (".csv", ".csv.gz", ".tsv", ".parquet", ".xlsx")
_MIN_ROWS = 1_000  # minimum number of rows per read of a large text file
_TOGETHER = 34_000  # maximum number of columns of a Parquet file that are read together (heuristic)
_SMALL = 2**26  # maximum size in bytes of a file that is read in one piece
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
# separators longer than one character: a tab as written in a shell, and any whitespace
_LONG_SEPARATORS = {r"\t": "\t", r"\s+": r"\s+"}
_SEPARATORS = (";", "\t", "|")  # separators tried for a file with a single column


@dataclass
class Matrix:
    """Numeric table that includes its target.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_columns)
        Matrix of numbers, with NaN for missing values.
    y : ndarray of shape (n_rows,)
    names : list of str
    row_groups : ndarray of shape (n_rows,) or None
        Query of each row in an svmlight file.
    notes : list of str
    """

    X: Any
    y: np.ndarray
    names: list[str]
    row_groups: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


def read_table(path: str | Path, request: Request) -> Table:
    """Read a table and determine the encoding of its columns.

    Parameters
    ----------
    path : path
        ``.csv`` (also ``.csv.gz``), ``.tsv``, ``.parquet``, ``.xlsx``, ``.npz`` with ``X``, ``y``
        and optionally ``names``, or svmlight (``.svm``, ``.svmlight``, ``.libsvm``).
    request : Request
        Names of the target and of other columns with a special role, and options for reading
        columns.

    Raises
    ------
    ValueError
        If the file cannot be read, lacks a named column, or has no usable columns.
    """
    path = Path(path)
    if contains_target(path):
        if request.target is not None:
            raise ValueError(
                f"{path}: the file already defines the target; remove --target {request.target}"
            )
        for option, name in [*request.of_rows.items(), *(("as", kind) for kind in request.kinds)]:
            option = option.replace("_", "-")
            raise ValueError(f"{path}: the file contains only numbers; remove --{option} {name}")
        matrix = read_matrix(path)
        with naming(path):
            table = _from_matrix(matrix, request)
    else:
        notes: list[str] = []
        frame = read_frame(path, request.sep, request.encoding, notes)
        with naming(path):
            table = table_from_frame(frame, request.target, request, notes)
        del frame
        if "pyarrow" in sys.modules:  # its memory pool is as large as the table
            sys.modules["pyarrow"].default_memory_pool().release_unused()
    with naming(path):
        return usable(table)


def read_rows(
    path: Path,
    wanted: Sequence[str],
    sep: str | None,
    encoding: str | None,
    notes: list[str],
    decimal_comma: bool = True,
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Read a data frame with the ``wanted`` columns of a model.

    The result may contain other columns, including the target. Messages about the format are
    appended to ``notes``.

    Raises
    ------
    ValueError
        If the file cannot be read, or if a matrix lacks a column.
    """
    if not contains_target(path):
        return read_frame(path, sep, encoding, notes, decimal_comma), None
    matrix = read_matrix(path)
    places = {name: j for j, name in enumerate(matrix.names)}
    present = [i for i, name in enumerate(wanted) if name in places]
    is_sparse = hasattr(matrix.X, "tocsr")
    # the last columns of a sparse table may be 0 in all rows
    if len(present) < len(wanted) and not is_sparse:
        missing = next(name for name in wanted if name not in places)
        raise ValueError(f"{path}: the table has no column {missing!r}, which the model requires")
    X, chosen = (
        np.zeros((len(matrix.y), len(wanted))),
        matrix.X[:, [places[wanted[i]] for i in present]],
    )
    X[:, present] = chosen.toarray() if is_sparse else chosen
    return pd.DataFrame(X, columns=list(wanted)), matrix.y


def read_test(path: Path, table: Table, request: Request) -> Table:
    """Read test rows, with target and weights, from another file, and encode them like ``table``.

    Raises
    ------
    ValueError
        If the file cannot be read, or lacks a column.
    """
    notes: list[str] = []
    frame, y = read_rows(path, table.encoding.sources, request.sep, request.encoding, notes)
    with naming(path):
        y = read_target(target_of(frame, request.target)) if y is None else y
        rows = rows_with_target(y, [])
        X = table.encoding.encode(frame.iloc[rows])
        weight, shift = weights(frame, request.weight, rows), table.offset_column
        offset = None if shift is None else offset_of(frame, *shift, rows)
    y = labels_of(y, rows)
    if y.dtype.kind in "US" and table.y.dtype.kind not in "US":
        raise ValueError(
            f"{path}: the target contains {y[0]!r}; expected numbers, as in the training table"
        )
    # numeric labels for classes that are text in the table
    if y.dtype.kind not in "US" and table.y.dtype.kind in "US":
        y = as_words(pd.Series(y)).astype(str)
    return Table(
        X,
        y,
        table.encoding,
        notes=notes,
        rows=rows,
        weight=weight,
        offset=offset,
    )


def _from_matrix(matrix: Matrix, request: Request) -> Table:
    X, y, names, notes = matrix.X, matrix.y, matrix.names, list(matrix.notes)
    include, exclude = request.include, request.exclude
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(
            f"the target contains infinity in row {np.flatnonzero(np.isinf(y))[0] + 1}; "
            "expected finite numbers"
        )
    rows = rows_with_target(y, notes)
    X, y = (X, y) if len(rows) == len(y) else (X[rows], y[rows])
    check_names(names, include, exclude)
    used = [j for j, name in enumerate(names) if name not in set(exclude)]
    if len(used) < len(names):
        X, names = X[:, used], [names[j] for j in used]
    X, decisions = encode_matrix(X, names, request.keep_missing, include)
    return Table(
        X,
        y,
        TableEncoding(tuple(decisions.columns)),
        left_out=dict.fromkeys(exclude, "named by --exclude") | decisions.left_out,
        notes=[*notes, *decisions.notes()],
        rows=rows,
        row_groups=None if matrix.row_groups is None else matrix.row_groups[rows],
    )


def check_table(path: Path) -> str:
    """Check that a table exists and has a supported format, and return its name in lower case.

    Raises
    ------
    ValueError
        If the table does not exist or its format is not supported.
    """
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder; expected a table")
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    name = path.name.lower()
    if not name.endswith((*FRAMES, ".npz", *_SVMLIGHT)):
        raise ValueError(
            f"{path}: unsupported file type; "
            "expected .csv, .tsv, .parquet, .xlsx, .npz or .svmlight"
        )
    return name


def contains_target(path: Path) -> bool:
    """Return whether a file contains a matrix with its target, which replaces ``--target``."""
    return path.name.lower().endswith((".npz", *_SVMLIGHT))


def read_matrix(path: Path) -> Matrix:
    """Read an npz file with ``X``, ``y`` and optionally ``names``, or an svmlight file.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    return _read_npz(path) if check_table(path).endswith(".npz") else _read_svmlight(path)


def read_frame(
    path: Path,
    sep: str | None = None,
    encoding: str | None = None,
    notes: list[str] | None = None,
    decimal_comma: bool = True,
) -> pd.DataFrame:
    """Read a csv, tsv or parquet file, or the first sheet of an xlsx file.

    Parameters
    ----------
    path : Path
        File to read; csv may be compressed (``.csv.gz``).
    sep : str or None, default None
        Column separator. If None, it is a comma, a tab in a .tsv file or, if there is only one
        column, a separator detected in its name.
    encoding : str or None, default None
        Character encoding; None means UTF-8.
    notes : list of str or None, default None
        List to which messages are appended about a detected separator, rows longer than the header,
        and sheets that are not read.
    decimal_comma : bool, default True
        Whether to detect numbers such as 1,5 if the comma is not the separator.

    Returns
    -------
    DataFrame
        Table whose column names are distinct and have no surrounding whitespace.

    Raises
    ------
    ValueError
        If the file cannot be read, or two columns have the same name.
    """
    name = check_table(path)
    if name.endswith(".parquet"):
        try:
            frame = _read_parquet(path)
        except ImportError:
            raise ValueError(
                f"{path}: reading .parquet requires pyarrow; run pip install '.[parquet]' in "
                "the annealed checkout"
            ) from None
        except (ValueError, OSError) as error:
            raise ValueError(f"{path}: the file is not a readable table ({error})") from None
    elif name.endswith(".xlsx"):
        try:
            with pd.ExcelFile(path, engine="openpyxl") as book:
                frame, sheets = pd.read_excel(book), book.sheet_names
        except ImportError:
            raise ValueError(
                f"{path}: reading .xlsx requires openpyxl; run pip install '.[export]' in the "
                "annealed checkout"
            ) from None
        except Exception as error:  # damaged files raise errors of zipfile, xml and openpyxl
            raise ValueError(f"{path}: the file is not a readable .xlsx file ({error})") from None
        if notes is not None and len(sheets) > 1:
            notes.append(
                f"{path.name}: the file has {len(sheets)} sheets; only the first sheet, "
                f"{sheets[0]!r}, is read"
            )
    else:
        frame = _read_text(path, sep, encoding, [] if notes is None else notes, decimal_comma)
    frame.columns = _different(path, frame.columns)
    return frame


def _read_text(
    path: Path, sep: str | None, encoding: str | None, notes: list[str], decimal_comma: bool
) -> pd.DataFrame:
    if sep and len(sep) > 1 and sep not in _LONG_SEPARATORS:
        raise ValueError(f"--sep {sep} is not valid; expected a single character")
    given = sep
    if sep is None and path.suffix.lower() == ".tsv":
        sep = "\t"
    sep = _LONG_SEPARATORS.get(sep or ",", sep or ",")
    try:
        header, n_cells = _header(path, sep, encoding)
        detected = next((s for s in _SEPARATORS if len(header) == 1 and s in header[0]), None)
        if given is None and detected is not None:
            notes.append(f"{path.name}: detected the separator {detected!r} instead of {sep!r}")
            sep, (header, n_cells) = detected, _header(path, detected, encoding)
        options: dict[str, Any] = {"sep": sep, "encoding": encoding or "utf-8", "low_memory": False}
        frame = _read_csv(path, options)
        # pandas uses that number of leading cells as an index
        if (n_more := n_cells - len(header)) > 0:
            if frame.iloc[:, -n_more:].isna().all(axis=None):
                notes.append(
                    f"{path.name}: the rows, unlike the header, end with a separator; the empty "
                    "last cell is ignored"
                )
                options["index_col"] = False
                frame = _read_csv(path, options)
            elif n_more > 1 or not frame.index.is_unique or frame.index.dtype.kind == "f":
                raise ValueError(
                    f"the rows have {n_cells} cells; expected {len(header)}, as in the header"
                )
            else:  # the format of write.table in R
                notes.append(
                    f"{path.name}: the rows have one cell more than the header; "
                    "the first cell is treated as the row name"
                )
        if (
            decimal_comma
            and sep != ","
            and any(_decimal_comma(frame[column]) for column in frame.columns)
        ):
            notes.append(f"{path.name}: detected numbers with a decimal comma")
            frame = pd.read_csv(path, decimal=",", **options)
            # columns with an invalid cell are text, whose commas are not thousands separators
            for column in frame.columns:
                if _decimal_comma(frame[column], 0.9):
                    frame[column] = frame[column].str.replace(
                        r"^(-?\d+),(\d+)$", r"\1.\2", regex=True
                    )
    except (UnicodeError, LookupError) as error:
        hint = (
            "expected a known encoding"
            if isinstance(error, LookupError)
            else "set --encoding, for example to latin-1 or utf-16"
        )
        raise ValueError(
            f"{path}: the file cannot be read as a table with encoding {encoding or 'utf-8'} "
            f"({error}); {hint}"
        ) from None
    # pandas' parser errors are ValueErrors
    except (ValueError, OSError, EOFError, csv.Error) as error:
        raise ValueError(f"{path}: the file is not a readable table ({error})") from None
    if len(header) == frame.shape[1]:
        frame.columns = header
    return frame.reset_index(drop=True)


def _read_csv(path: Path, options: dict[str, Any]) -> pd.DataFrame:
    """Read a text file. A large file is read in parts, with fractional numbers in single precision
    if this is sufficient."""
    if path.stat().st_size <= _SMALL:
        # the copy has one block per type, while each of many blocks slows down every access
        return pd.read_csv(path, **options).copy()
    # the parser needs several times the memory of the numbers that it returns
    n_columns = len(pd.read_csv(path, nrows=0, **options).columns)
    n_rows, parts = max(_MIN_ROWS, 4 * BLOCK // max(1, n_columns)), []
    for part in pd.read_csv(path, chunksize=n_rows, **options):
        floats = [
            name
            for name in part.columns
            if part[name].dtype == np.float64 and is_precise(part[name].to_numpy())
        ]
        parts.append(part.astype(dict.fromkeys(floats, np.float32)))
        # a column is text in one part and numeric in another
        if any(
            (a.kind in "biuf") != (b.kind in "biuf") for a, b in zip(parts[0].dtypes, part.dtypes)
        ):
            return pd.read_csv(path, **options)
    return pd.concat(parts)


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file. A large file is read in blocks of columns, with the precision of
    :func:`_read_csv`."""
    from pyarrow import Table, default_memory_pool, parquet

    columns: dict[str, Any] = {}
    with parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
        # the file may be larger than its data, since each column has its own statistics
        size = file.metadata.num_rows * file.metadata.num_columns * 8
        if min(path.stat().st_size, size) <= _SMALL:
            # Until a read ends, each of its columns takes several kilobytes
            names = file.schema_arrow.names
            parts = [
                file.read(columns=names[start : start + _TOGETHER], use_threads=False)
                for start in range(0, len(names), _TOGETHER)
            ]
            return Table.from_arrays(
                [column for part in parts for column in part.columns], schema=file.schema_arrow
            ).to_pandas()
        names = file.schema_arrow.empty_table().to_pandas().columns
        # in one piece, which is freed immediately
        block = np.empty((len(names), file.metadata.num_rows), np.float32)
        n_together = max(1, BLOCK // max(1, file.metadata.num_rows))
        for start in range(0, len(names), n_together):
            part = file.read(columns=list(names[start : start + n_together])).to_pandas(
                split_blocks=True
            )
            for (name, values), narrow in zip(part.items(), block[start:]):
                columns[name] = values
                if values.dtype == np.float32 or (
                    values.dtype == np.float64 and is_precise(values.to_numpy())
                ):
                    narrow[:] = values
                    columns[name] = narrow
            del part, values
            default_memory_pool().release_unused()
    return pd.DataFrame(columns, copy=False)


def _header(path: Path, sep: str, encoding: str | None) -> tuple[list[str], int]:
    """Return the column names in the file, since pandas renames duplicates, and the number of cells
    in the first row. If the separator is longer than one character, the result is None and 0."""
    if len(sep) > 1:
        return [], 0
    encoding = (
        "utf-8-sig" if encoding is None or encoding.lower() in ("utf8", "utf-8") else encoding
    )
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding=encoding, newline="") as file:
        lines = (row for row in csv.reader(file, delimiter=sep) if row)
        return next(lines, []), len(next(lines, []))


def _decimal_comma(values: pd.Series, share: float = 1.0) -> bool:
    words = values.dropna().head(100)
    return (
        len(words) > 0
        and words.dtype.kind not in "biuf"
        and words.astype(str).str.fullmatch(r"-?\d+,\d+").mean() >= share
    )


def _different(path: Path, header: Iterable[Any]) -> list[str]:
    names = [str(name).strip() or f"Unnamed: {i}" for i, name in enumerate(header)]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{path}: two columns have the name {twice!r}; expected distinct names")
    return names


def _read_npz(path: Path) -> Matrix:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    # zipfile, zlib, struct and numpy raise different errors on a damaged file
    except Exception as error:
        raise ValueError(f"{path}: the file is not a readable .npz file ({error})") from None
    if not {"X", "y"} <= arrays.keys():
        raise ValueError(
            f"{path}: the file contains {', '.join(arrays) or 'nothing'}; "
            "expected the arrays X and y"
        )
    X, y = arrays["X"], arrays["y"]
    if (
        X.ndim != 2
        or y.shape != X.shape[:1]
        or X.dtype.kind not in "biuf"
        or y.dtype.kind not in "biufSU"
    ):
        raise ValueError(
            f"{path}: X has dtype {X.dtype} and shape {X.shape}, and y has dtype {y.dtype} and "
            f"shape {y.shape}; "
            "expected a numeric array of shape (n, m) and an array of shape (n,)"
        )
    labels = np.asarray(arrays.get("names", np.arange(X.shape[1])))
    if labels.shape != (X.shape[1],):
        raise ValueError(
            f"{path}: there are {labels.size} names for {X.shape[1]} columns; "
            "expected one per column"
        )
    names = [
        n.decode("utf-8", "replace") if isinstance(n, bytes) else str(n) for n in labels.tolist()
    ]
    y = np.char.decode(y, "utf-8", "replace") if y.dtype.kind == "S" else y
    return Matrix(X.astype(np.float64), y, _different(path, names))


def _read_svmlight(path: Path) -> Matrix:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y, queries = load_svmlight_file(str(path), query_id=True)
    except (ValueError, OSError, OverflowError) as error:
        raise ValueError(f"{path}: the file is not a readable svmlight file ({error})") from None
    if not X.shape[0]:
        raise ValueError(f"{path}: the table has no rows")
    if not np.isfinite(X.data).all() or not np.isfinite(y).all():
        raise ValueError(
            f"{path}: the file contains NaN or infinity; expected finite numbers in a sparse table"
        )
    table = Matrix(X.tocsr(), y, [str(j) for j in range(X.shape[1])])
    if len(np.unique(queries)) > 1:
        table.row_groups = queries
        table.notes.append("rows with the same query (qid) are in the same fold")
    return table


def write_columns(
    source: Path,
    out: Path,
    names: Sequence[str],
    target: str | None,
    sep: str | None,
    encoding: str | None,
) -> None:
    """Copy the columns ``names`` and the target of a table to another file without changes.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    if contains_target(source):
        matrix = read_matrix(source)
        chosen = matrix.X[:, [matrix.names.index(name) for name in names]]
        chosen = chosen.toarray() if hasattr(chosen, "toarray") else chosen
        if out.name.lower().endswith(".npz"):
            with replacing(out) as temporary, temporary.open("wb") as file:
                np.savez(file, X=chosen, y=matrix.y, names=np.array(list(names)))
            return
        frame = pd.DataFrame(chosen, columns=list(names)).assign(**{_free("y", names): matrix.y})
    else:
        frame = read_frame(source, sep, encoding)[[*names, target]]
    write_frame(frame, out)


def write_frame(frame: pd.DataFrame, out: Path) -> None:
    """Write a csv, tsv, parquet or xlsx file, replacing an existing file atomically."""
    with replacing(out) as temporary:
        if out.suffix.lower() == ".parquet":
            frame.to_parquet(temporary, index=False)
        elif out.suffix.lower() == ".xlsx":
            frame.to_excel(temporary, index=False, engine="openpyxl")
        else:
            frame.to_csv(temporary, index=False, sep="\t" if out.suffix.lower() == ".tsv" else ",")


def check_out(option: str, path: Path | None, source: Path) -> None:
    """Check that a table can be written to the path given by an option.

    Raises
    ------
    ValueError
        If the suffix is not supported.
    """
    endings = (*FRAMES, ".npz") if contains_target(source) else FRAMES
    if path is not None and not path.name.lower().endswith(endings):
        raise ValueError(
            f"{option} {path} is not valid; expected a file name that ends in {', '.join(endings)}"
        )


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name
