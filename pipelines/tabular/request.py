"""Options of ``annealed select`` for the selection and for files."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...models.tabular.fitting.options import SelectionOptions, option

_input = partial(option, "Input")
# shared with other commands that read tables
SEPARATOR = {
    "metavar": "CHARACTER",
    "help": "Column separator of a text file (default: detected).",
}
ENCODING = {
    "metavar": "NAME",
    "help": "Encoding of a text file, such as latin-1 (default: UTF-8).",
}


@dataclass(eq=False, repr=False)
class _Target:
    """Options that appear first in the help."""

    target: str | None = field(
        default=None,
        metadata=option(
            "Target and task",
            metavar="COLUMN",
            help="Column to predict (npz and svmlight files include the target).",
        ),
    )
    k: str | None = field(
        default=None,
        metadata=option(
            "Target and task",
            "-k",
            metavar="N",
            help="Number of columns to select, or auto to choose the number by cross-validation.",
        ),
    )


@dataclass(eq=False, repr=False, kw_only=True)
class Request(SelectionOptions, _Target):
    """Settings of a selection, with the names of the options of ``annealed select``.

    Attributes
    ----------
    target : str or None
        Name of the column to predict. It is not required for npz and svmlight files, which contain
        the target.
    k : str or None
        Number of columns to select: an integer >= 1, or "auto". If it exceeds the number of
        columns, all columns are selected and a warning is issued. None if ``fdr`` is given.
    test : path or None
        Table with additional rows on which the model is scored.
    memory_limit : str or None
        Memory limit, such as "2GB", for a table in Parquet files. If None, a single file is read
        into memory.
    dask : str or None
        Address of a Dask scheduler. Its workers fit the model to a table in Parquet files.
    sep, encoding : str or None
        See :func:`.tables.read_frame`.

    The other attributes are described in :class:`annealed.models.TabularSelector`.
    """

    test: Path | None = field(
        default=None,
        metadata=option(
            "Rows", metavar="TABLE", help="Table of test rows on which to score the model."
        ),
    )
    memory_limit: str | None = field(
        default=None,
        metadata=_input(
            metavar="SIZE",
            help="Memory limit for parquet, such as 2GB (default: 2GiB for folders, else none).",
        ),
    )
    dask: str | None = field(
        default=None,
        metadata=_input(
            metavar="ADDRESS",
            help="Dask scheduler whose workers fit the model to parquet files, "
            "such as tcp://host:8786.",
        ),
    )
    sep: str | None = field(default=None, metadata=_input(**SEPARATOR))
    encoding: str | None = field(default=None, metadata=_input(**ENCODING))

    def record(self) -> dict[str, Any]:
        """Return the options as JSON values, with None for options that are not set."""
        options = super().record() | {"test": None if self.test is None else self.test.name}
        unset = [name for name in ("memory_limit", "dask") if options[name] is None]
        return {name: value for name, value in options.items() if name not in unset}
