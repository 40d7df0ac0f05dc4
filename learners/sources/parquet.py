"""Tables in Parquet files, or in folders of Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .matrix import RowSubset, Source, float_dtype
from .raw import as_requested


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Convert decoder errors of any type to a ValueError that names the file.

    Examples
    --------
    >>> with damage_named("a.parquet"):
    ...     raise OSError("unexpected end")
    Traceback (most recent call last):
    ValueError: a.parquet: the file is damaged or unreadable (unexpected end)
    """
    try:
        yield
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"{name}: the file is damaged or unreadable ({' '.join(str(error).split())[:200]})"
        ) from None


class ParquetPart:
    """File of a Parquet table, with columns from folder names such as ``year=2024``.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        Open file.
    name : str, default "ParquetFile"
        Name of the file in error messages.
    groups : sequence of int or None, default None
        Indices of the row groups; by default, all row groups.
    keys : dict of str to pyarrow.Scalar or None, default None
        Values of the columns that folder names define. Columns in the file take precedence.
    """

    def __init__(
        self,
        file: Any,
        name: str = "ParquetFile",
        groups: Sequence[int] | None = None,
        keys: Any = None,
    ) -> None:
        self.file, self.name = file, name
        self.groups = range(file.num_row_groups) if groups is None else groups
        self.kinds = dict(zip(file.schema_arrow.names, file.schema_arrow.types))
        self.keys = {key: value for key, value in (keys or {}).items() if key not in self.kinds}
        self.kinds |= {key: value.type for key, value in self.keys.items()}

    def kind(self, name: str) -> Any:
        """Return the data type of a column."""
        if name not in self.kinds:
            raise ValueError(
                f"{self.name}: the table has no column {name!r}; "
                f"its columns are {', '.join([*self.kinds][:20])}"
            )
        return self.kinds[name]

    def read(self, group: int, names: Sequence[str]) -> list[Any]:
        """Read columns of a row group."""
        import pyarrow as pa

        for name in names:
            self.kind(name)
        with damage_named(self.name):
            stored = self.file.read_row_group(
                group, columns=[name for name in names if name not in self.keys]
            )
        keys = {
            key: pa.chunked_array([pa.repeat(self.keys[key], len(stored))])
            for key in self.keys
            if key in names
        }
        return [keys[name] if name in keys else stored.column(name) for name in names]


class ParquetSource(Source):
    """Matrix of columns of a Parquet table, in which missing values are NaN.

    Only the requested columns are read, one row group at a time.

    Parameters
    ----------
    parts : sequence of ParquetPart
        Files of the table. Requested columns must be numeric.
    columns : list of str or None, default None
        Column names; by default, all stored columns.
    target, weight : str or None, default None
        Columns that are not features but are stored in memory as the attributes ``target`` and
        ``weight``.
    """

    order = "F"
    names: list[str]

    def __init__(
        self,
        parts: Sequence[ParquetPart],
        columns: Any = None,
        target: str | None = None,
        weight: str | None = None,
    ):
        every = parts[0].file.schema_arrow.names
        reserved = [name for name in (target, weight) if name is not None]
        self.names = (
            [name for name in every if name not in reserved] if columns is None else list(columns)
        )
        if both := set(reserved) & set(self.names):
            raise ValueError(
                f"columns={columns!r} contains {both.pop()!r}; it must contain neither the "
                "target nor the weight"
            )
        if not self.names:
            raise ValueError(
                f"columns={columns!r} selects none of the {len(every)} columns; "
                "expected at least one"
            )
        self._groups = [(part, g) for part in parts for g in part.groups]
        self.target, self.weight = (
            None if name is None else self._whole(name) for name in (target, weight)
        )
        self.dtype = self.stored = np.result_type(
            *(kind for part in parts for kind in self._kinds(part))
        )
        rows = [part.file.metadata.row_group(g).num_rows for part, g in self._groups]
        self._edges = np.concatenate([[0], np.cumsum(rows)]).astype(int)
        self.shape = int(self._edges[-1]), len(self.names)
        self.row_step = max(rows, default=1)

    def matching(self, filters: Any) -> Source:
        """Return the rows that satisfy pyarrow filters."""
        import pyarrow as pa
        from pyarrow.parquet import filters_to_expression

        expression, parts = filters_to_expression(filters), [np.empty(0, int)]
        names = sorted(
            {
                name
                for clause in ([filters] if isinstance(filters[0][0], str) else filters)
                for name, *_ in clause
            }
        )
        for start, end, (part, g) in zip(self._edges, self._edges[1:], self._groups):
            table = pa.table(
                [*part.read(g, names), np.arange(start, end)], [*names, "number of the row"]
            )
            parts.append(table.filter(expression).column(len(names)).to_numpy())
        rows = np.concatenate(parts)
        if not len(rows):
            raise ValueError(
                f"filters={filters!r} match no rows of the table; at least one row must match"
            )
        return self if len(rows) == self.shape[0] else RowSubset(self, rows)

    def _whole(self, name: str) -> np.ndarray:
        """Read a whole column of any type."""
        return np.concatenate([part.read(g, [name])[0].to_pandas() for part, g in self._groups])

    def _kinds(self, part: ParquetPart) -> Iterator[np.dtype]:
        """Yield the data type of each requested column."""
        for name in self.names:
            kind = part.kind(name)
            try:
                yield float_dtype(kind.to_pandas_dtype())
            except (ValueError, TypeError, NotImplementedError):
                raise ValueError(
                    f"{part.name}: column {name!r} has type {kind}; expected numbers"
                ) from None

    def cuts(self, height: int) -> list[slice]:
        groups, start = [], 0
        for stop, after in zip(self._edges[1:], [*self._edges[2:], np.inf]):
            if after - start > height:
                groups.append(slice(start, int(stop)))
                start = int(stop)
        return groups

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        for first_row, end, (part, g) in zip(self._edges, self._edges[1:], self._groups):
            start, stop = max(rows.start, first_row), min(rows.stop, end)
            if start >= stop:
                continue
            # A few at a time, since their values are in memory twice
            for first in range(0, len(columns), 256):
                for j, cells in enumerate(
                    part.read(g, [self.names[c] for c in columns[first : first + 256]])
                ):
                    values = cells.to_numpy()
                    out[start - rows.start : stop - rows.start, first + j] = values[
                        start - first_row : stop - first_row
                    ]


def without_package(error: ModuleNotFoundError, where: Path | str) -> ModuleNotFoundError:
    """Return an error for a missing package, which states how to install it."""
    extra = {"pyarrow": "parquet", "fsspec": "dask"}.get(str(error.name), "disk")
    return ModuleNotFoundError(
        f"{where}: reading this file requires {error.name}; run pip install '.[{extra}]' in the "
        "annealed checkout",
        name=error.name,
    )


def open_parquet(where: str | Path, filters: Any = None) -> tuple[ParquetPart, ...]:
    """Open a Parquet file, or a folder of files and subfolders, as one table.

    Files are sorted by name.

    Parameters
    ----------
    where : Path, or str of a URL
        Path of a file or folder, or URL.
    filters : list or None, default None
        pyarrow filters. Row groups without matching rows are skipped.

    Returns
    -------
    tuple of ParquetPart
        Files of the table.

    Raises
    ------
    ValueError
        If a file is damaged, a folder contains no Parquet files, or a filter uses an unknown
        column.
    ModuleNotFoundError
        If pyarrow is not installed, or if fsspec is required for a URL but not installed.
    """
    try:
        from pyarrow import OSFile, dataset, fs, scalar, unify_schemas
        from pyarrow.parquet import ParquetFile, filters_to_expression

        with damage_named(str(where)):
            system, root = _file_system(where)
            place = system.get_file_info(root)
            folder = place.type == fs.FileType.Directory
            inside = (
                system.get_file_info(fs.FileSelector(root, recursive=True)) if folder else [place]
            )
            files = [
                file.path
                for file in inside
                if file.is_file and file.path.lower().endswith(".parquet")
            ]
            options = dataset.FileSystemFactoryOptions(root, dataset.HivePartitioning.discover())
            made = dataset.FileSystemDatasetFactory(
                system,
                sorted(files, key=lambda name: name.split("/")),
                dataset.ParquetFileFormat(),
                options,
            )
            # files may also contain the folder columns, in wider types
            table = made.finish(unify_schemas(made.inspect_schemas(), promote_options="permissive"))
    except ModuleNotFoundError as error:
        raise without_package(error, where) from None
    if not files:
        what = (
            "no such file"
            if place.type == fs.FileType.NotFound
            else "the folder contains no .parquet files"
            if folder
            else "the file is not a .parquet file"
        )
        raise ValueError(f"{where}: {what}; expected a .parquet file, or a folder of such files")
    folder_fields = [
        field
        for field, values in zip(table.partitioning.schema, table.partitioning.dictionaries)
        if values is not None
    ]
    try:
        wanted = None if filters is None else filters_to_expression(filters)
        fragments = list(table.get_fragments(wanted))
    except Exception as error:
        reason, columns = str(error).split(" in ")[0], ", ".join(table.schema.names[:20])
        raise ValueError(
            f"filters={filters!r}: {reason}; expected conditions such as [('year', '=', 2024)] "
            f"on the columns {columns}"
        ) from None
    if not fragments:
        raise ValueError(
            f"filters={filters!r} match no rows of the table; at least one row must match"
        )
    parts = []
    for fragment in fragments:
        name = (
            f"{where}: {fragment.path[len(root) + 1 :]}"
            if len(fragment.path) > len(root)
            else str(where)
        )
        with damage_named(name):
            partition = dataset.get_partition_keys(fragment.partition_expression)
            keys = {
                field.name: scalar(partition.get(field.name), field.type) for field in folder_fields
            }
            stream = (
                OSFile(fragment.path) if isinstance(system, fs.LocalFileSystem) else fragment.open()
            )
            # there is no descriptor on other systems, and in some releases before 24
            with suppress(AttributeError, OSError):
                as_requested(stream.fileno())
            groups = (
                None
                if wanted is None
                else [g.id for g in fragment.subset(wanted, schema=table.schema).row_groups]
            )
            parts.append(
                ParquetPart(ParquetFile(stream, metadata=fragment.metadata), name, groups, keys)
            )
    return tuple(parts)


def _file_system(where: str | Path) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path within it."""
    from pyarrow import fs

    if isinstance(where, Path):
        return fs.LocalFileSystem(), where.as_posix()
    try:
        system, root = fs.FileSystem.from_uri(where)
    except ValueError:  # a URL scheme that fsspec handles
        from fsspec.core import url_to_fs

        other, root = url_to_fs(where)
        system = fs.PyFileSystem(fs.FSSpecHandler(other))
    return system, root.rstrip("/")
