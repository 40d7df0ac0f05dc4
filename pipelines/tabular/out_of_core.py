"""Tables in Parquet files that do not fit into memory, which are encoded in blocks when read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...learners.sources import ParquetPart, ParquetSource, anywhere, open_parquet, parse_bytes
from ...models.tabular.encoding import TableEncoding
from ...models.tabular.fitting import LARGE, MAX_ROWS, Table, is_precise, table_from_frame, usable
from ..console import naming
from .request import Request

_SHARE = 8  # sampled rows take at most this fraction (1 / 8) of the memory limit (heuristic)
_MIN_SAMPLE = 1000  # minimum number of sampled rows


class EncodedSource(ParquetSource):
    """Encoded matrix of Parquet files.

    Only one column of a row group is in memory at a time.

    Parameters
    ----------
    path : Path or str
        A ``.parquet`` file, a folder of such files, or a URL.
    encoding : TableEncoding
        Encoding of the columns to read.
    dtype : dtype
        Data type of the encoded numbers.

    Raises
    ------
    ValueError
        If a file is damaged, lacks a column, or contains values of an unexpected type.
    """

    def __init__(self, path: Path | str, encoding: TableEncoding, dtype: Any) -> None:
        super().__init__(open_parquet(path), encoding.sources)
        self.encoding, self.dtype, self.stored = encoding, np.dtype(dtype), np.dtype(dtype)
        self.shape, self.names = (self.shape[0], len(encoding.groups)), None  # type: ignore[assignment]
        self._reopen = partial(EncodedSource, anywhere(path), encoding, dtype)

    def _kinds(self, part: ParquetPart) -> Iterator[np.dtype]:
        """Return the type of the encoded values, which does not depend on the types in the file."""
        return iter([np.dtype(np.float64)])

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        groups = self.encoding.groups
        first, wanted = np.searchsorted(groups, groups[columns]), groups[columns]
        for low, high, (part, g) in zip(self._edges, self._edges[1:], self._groups):
            start, stop = max(rows.start, low), min(rows.stop, high)
            for number in np.unique(wanted) if start < stop else ():
                column, is_wanted = self.encoding.columns[number], wanted == number
                values = part.read(g, [column.source])[0][start - low : stop - low].to_pandas()
                numbers = column.encode(values.rename(column.source))
                out[start - rows.start : stop - rows.start, is_wanted] = numbers[
                    :, (columns - first)[is_wanted]
                ]


def read_out_of_core(path: Any, request: Request) -> Table:
    """Read the target of a table in Parquet files, and determine the encoding of its columns.

    The encoding is determined from a sample of rows.

    Parameters
    ----------
    path : Path or str
        A ``.parquet`` file, a folder of such files, or a URL.
    request : Request
        See :func:`.tables.read_table`.

    Returns
    -------
    Table
        Table whose matrix is an :class:`EncodedSource`.

    Raises
    ------
    ValueError
        If the files cannot be read, their columns differ, or an option requires the table to be in
        memory.
    """
    for option, given in (("--card", request.card), ("--fdr", request.fdr)):
        if given:
            raise ValueError(
                f"{option} is not available for out-of-core tables; pass a single file without "
                "--memory-limit"
            )
    limit = parse_bytes(request.memory_limit or "2GiB")
    parts = open_parquet(path)
    names = _checked_names(parts)
    n = sum(part.file.metadata.num_rows for part in parts)
    n_drawn = min(MAX_ROWS, max(_MIN_SAMPLE, limit // (_SHARE * 8 * len(names))))
    some = _frame(path, parts, names, -(-n // n_drawn))
    to_table = partial(table_from_frame, target=request.target, logarithms=False)
    with naming(path):
        decided = to_table(some, request=request, notes=[])
    whole = decided
    if len(some) < n:
        needed = [*filter(None, [request.target]), *request.of_rows.values()]
        frame, plain = (
            _frame(path, parts, needed, 1),
            replace(request, include=(), exclude=(), kinds=()),
        )
        with naming(path):
            whole = to_table(frame, request=plain, notes=[])
        decided.notes = [
            *decided.notes,
            f"the encoding of the columns is based on {len(some)} evenly spaced rows of {n}",
        ]
    single = n * len(names) >= LARGE and all(map(is_precise, decided.X.T))
    source = EncodedSource(path, decided.encoding, np.float32 if single else np.float64).set_limits(
        limit, 1.0
    )
    table = replace(
        whole,
        X=source if len(whole.rows) == n else source[whole.rows],
        max_rows=n_drawn,
        encoding=decided.encoding,
        left_out=decided.left_out,
        notes=decided.notes,
    )
    with naming(path):
        return usable(table)


def _checked_names(parts: Sequence[ParquetPart]) -> list[str]:
    """Return the column names, which must be the same in all files."""
    first = parts[0]
    for part in parts:
        for name in dict.fromkeys([*first.kinds, *part.kinds]):
            kinds = [one.kinds.get(name, "absent") for one in (first, part)]
            if kinds[0] != kinds[1]:
                raise ValueError(
                    f"{part.name}: column {name!r} is {kinds[1]}, but {kinds[0]} in "
                    f"{first.name}; expected the same columns in all files"
                )
    return list(first.kinds)


def _frame(
    path: Path | str, parts: Sequence[ParquetPart], columns: Sequence[str], step: int
) -> pd.DataFrame:
    """Read some columns of every ``step``-th row, with one column of a row group in memory at a
    time."""
    import pyarrow as pa

    tables, start = [], 0
    for part in parts:
        for g in part.groups:
            n = part.file.metadata.row_group(g).num_rows
            at = pa.array(np.arange(-start % step, n, step))
            tables.append(
                pa.table(
                    [part.read(g, [name])[0].take(at) for name in columns], names=list(columns)
                )
            )
            start += n
    if not start:
        raise ValueError(f"{path}: the table has no rows")
    frame = pa.concat_tables(tables).to_pandas()
    pa.default_memory_pool().release_unused()
    return frame
