"""A file as the table that ``annealed select`` works on: target, columns to use, groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...models.files import replacing
from ...models.tabular.encoding import TableEncoding, as_words
from .encoding import Table, encode_frame, encode_matrix, numbers_rows
from .readers import FRAMES, Matrix, brings_its_target, read_frame, read_matrix, release_memory
from .target import read_target

if TYPE_CHECKING:
    import pandas as pd


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
        release_memory()
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
    there = np.array([value is not None for value in y], bool) if y.dtype == object else ~np.isnan(y)
    if not there.any():
        raise ValueError(f"{path}: no row with a target")
    if not there.all():
        notes.append(f"{(~there).sum()} rows left out, their target is missing")
    rows = np.flatnonzero(there)
    groups = None
    if row_groups is not None:
        groups = np.unique(np.array([word or "" for word in as_words(frame[row_groups].iloc[rows])]), return_inverse=True)[1]
    left = [name for name in names if name not in (target, row_groups)]
    _check_names(path, left, include, exclude)
    used = frame[[name for name in left if name not in exclude]]
    used = used if there.all() else used.iloc[rows]
    if y.dtype != object and not pd.api.types.is_numeric_dtype(frame[target].dtype):
        notes.append(f"the target {target!r} holds numbers with thousands separators")
    ids = [name for name in used.columns if numbers_rows(frame[name], first=name == names[0])]
    X, decisions = encode_frame(used, keep_missing, include, ids, dates)
    y = y[there].astype(str) if y.dtype == object else y[there]
    left_out = dict.fromkeys(exclude, "named by --exclude") | decisions.left_out
    encoding = TableEncoding(tuple(decisions.columns))
    return Table(X, y, encoding, left_out, [*notes, *decisions.notes()], rows, groups)


def _from_matrix(path: Path, matrix: Matrix, include, exclude, keep_missing) -> Table:
    import pandas as pd

    y, X, names = matrix.y, matrix.X, matrix.names
    notes = list(matrix.notes)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(f"{path}: the target holds infinity in row {np.flatnonzero(np.isinf(y))[0] + 1}")
    there = ~pd.isna(y)
    if not there.any():
        raise ValueError(f"{path}: no row with a target")
    if not there.all():
        notes.append(f"{(~there).sum()} rows left out, their target is missing")
    rows = np.flatnonzero(there)
    X, y = (X, y) if there.all() else (X[rows], y[rows])
    _check_names(path, names, include, exclude)
    used = [j for j, name in enumerate(names) if name not in set(exclude)]
    if len(used) < len(names):
        X, names = X[:, used], [names[j] for j in used]
    X, decisions = encode_matrix(X, names, keep_missing, include)
    left_out = dict.fromkeys(exclude, "named by --exclude") | decisions.left_out
    encoding = TableEncoding(tuple(decisions.columns))
    groups = None if matrix.row_groups is None else matrix.row_groups[rows]
    return Table(X, y, encoding, left_out, [*notes, *decisions.notes()], rows, groups)


def write_columns(source: Path, out: Path, names: Sequence[str], target: str | None, sep: str | None, encoding: str | None) -> None:
    """Write the columns ``names`` of a table and its target, as the file has them, to a table of another file.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    import pandas as pd

    if brings_its_target(source):
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
    """Write a csv, tsv or parquet file; an existing one is replaced as a whole or not at all."""
    with replacing(out) as temporary:
        if out.suffix.lower() == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False, sep="\t" if out.suffix.lower() == ".tsv" else ",")


def check_out(path: Path | None, source: Path) -> None:
    """Complain about a name whose kind of table cannot be written.

    Raises
    ------
    ValueError
        If its ending is none of those.
    """
    endings = (*FRAMES, ".npz") if brings_its_target(source) else FRAMES
    if path is not None and not path.name.lower().endswith(endings):
        raise ValueError(f"--out {path}: expected a name that ends with {', '.join(endings)}")


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name
