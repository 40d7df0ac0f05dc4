"""The options of ``annealed select``: those of a selection, and those of files."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...models.tabular.fitting.options import SelectionOptions, option

_input = partial(option, "Input")
# also of other commands that read tables
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
    """Options that come first in the help."""

    target: str | None = field(
        default=None,
        metadata=option(
            "Target and task",
            metavar="COLUMN",
            help="Column to predict (npz and svmlight files bring their own).",
        ),
    )
    k: str | None = field(
        default=None,
        metadata=option(
            "Target and task",
            "-k",
            metavar="N",
            help="Number of columns to select, or auto: by cross-validation.",
        ),
    )


@dataclass(eq=False, repr=False, kw_only=True)
class Request(SelectionOptions, _Target):
    """Settings of a selection: the options of ``annealed select`` by their names.

    Attributes
    ----------
    target : str or None
        Column to predict; npz and svmlight files bring their own.
    k : str or None
        A positive integer, or "auto"; more than the number of columns keeps all, with a warning.
        None with ``fdr``.
    test : path or None
        Another table whose rows score the model.
    memory_limit : str or None
        Memory, such as "2GB", for a table in Parquet files; None: read into memory, except for
        folders.
    dask : str or None
        Address of a Dask scheduler whose workers fit a table in Parquet files.
    sep, encoding : str or None
        See :func:`.tables.read_frame`.

    The other attributes are described in :class:`annealed.models.TabularSelector`.
    """

    test: Path | None = field(
        default=None,
        metadata=option("Rows", metavar="TABLE", help="Another table, whose rows score the model."),
    )
    memory_limit: str | None = field(
        default=None,
        metadata=_input(
            metavar="SIZE",
            help="Memory for .parquet, such as 2GB (default: 2GiB for folders, else no limit).",
        ),
    )
    dask: str | None = field(
        default=None,
        metadata=_input(
            metavar="ADDRESS",
            help="Dask scheduler whose workers fit .parquet files, such as tcp://host:8786.",
        ),
    )
    sep: str | None = field(default=None, metadata=_input(**SEPARATOR))
    encoding: str | None = field(default=None, metadata=_input(**ENCODING))

    def record(self) -> dict[str, Any]:
        """The options for JSON; None for those that are not set."""
        options = super().record() | {"test": None if self.test is None else self.test.name}
        unset = [name for name in ("memory_limit", "dask") if options[name] is None]
        return {name: value for name, value in options.items() if name not in unset}
