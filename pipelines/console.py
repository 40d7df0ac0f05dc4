"""Functions shared by all commands: options, one-line errors, progress, tables and JSON."""

import functools
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from ..models.messages import plain, short

USAGE_ERROR = 2  # exit code for wrong usage, or if every input failed
SOME_FAILED = 1  # exit code if some of several inputs failed

# Options shared by several commands.
Model = Annotated[
    str, typer.Option(metavar="MODEL", help="Name of a shipped model, or a model file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress progress output.")]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Dask scheduler whose workers read the files, such as tcp://host:8786.",
    ),
]
_PACKAGE = Path(__file__).absolute().parents[1]
# module -> the extra that installs it
_EXTRA = {
    "cv2": "vision",
    "PIL": "vision",
    "skimage": "vision",
    "yaml": "vision",
    "matplotlib": "plots",
    "pyarrow": "parquet",
    "distributed": "dask",
}


# metavars that the help shows instead of <str> and <list[str]>
_METAVARS = {"str": "TEXT", "path": "PATH", "int": "INTEGER", "float": "NUMBER"}


class PanelCommand(TyperCommand):
    """Command whose plain-text help groups the options by their ``rich_help_panel``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section of the help for each panel."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                is_argument = param.param_type_name == "argument"
                names = record[0].partition(" <")[0] if is_argument else _plain_type(record[0])
                panel = getattr(param, "rich_help_panel", None)
                panel = panel or ("Arguments" if is_argument else "Options")
                panels.setdefault(panel, []).append((names, record[1]))
        for panel, records in panels.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments for the usage line, with brackets around optional arguments."""
        return [re.sub(r"[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]


def _plain_type(names: str) -> str:
    """Return the names of an option with a metavar for its type."""
    return re.sub(
        r"<(?:list\[)?([^]>]+?)(?: range)?\]?>",
        lambda match: _METAVARS.get(match[1], match[1]),
        names,
    )


def new_app(help: str) -> typer.Typer:
    """Create a group of commands with the settings of this project."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def print_version(value: bool) -> None:
    """Print the version and exit."""
    if value:
        from .. import __version__

        typer.echo(f"annealed {__version__}")
        raise typer.Exit


def root_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Define the options of ``annealed`` that precede the name of the subcommand."""


def print_error(message: object) -> None:
    """Print a one-line message on stderr, omitting the middle of a long message."""
    typer.echo("annealed: " + short(message), err=True)


def command_of(app: typer.Typer, name: str | None = None) -> Callable:
    """Decorate a function as a command of a group, with :func:`one_line_errors`."""
    return lambda function: app.command(name, cls=PanelCommand)(one_line_errors(function))


def with_options(of: Callable, **defaults: Any) -> Callable:
    """Decorate a command so that a dataclass or a function defines its options.

    The options are the fields of the dataclass or the parameters of the function. The first
    parameter of the command receives the instance of the dataclass, or the function with its
    arguments bound. Fields and parameters are annotated with ``Annotated[..., typer.Option(...)]``.
    Alternatively, the metadata of a field contains the arguments of its option. An option whose
    default is () may be repeated. The values in ``defaults`` replace the declared defaults.
    """
    hints, options = get_type_hints(of, include_extras=True), []
    metadata = {entry.name: entry.metadata for entry in fields(of)} if isinstance(of, type) else {}
    for name, declared in signature(of).parameters.items():
        hint, default = hints[name], defaults.get(name, declared.default)
        if metadata.get(name):  # defined in a lower layer
            settings = dict(metadata[name])
            hint = Annotated[hint, typer.Option(*settings.pop("flags"), **settings)]
        if default == ():
            hint, default = Annotated[list[str] | None, *hint.__metadata__], None
        if hasattr(hint, "__metadata__"):
            options.append(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            )

    def decorate(command: Callable) -> Callable:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            values = {option.name: given.pop(option.name) for option in options}
            values = {
                name: tuple(v) if isinstance(v, list) else v
                for name, v in values.items()
                if v is not None
            }
            request = of(**values) if isinstance(of, type) else functools.partial(of, **values)
            command(request, **given)

        _, *others = signature(command, eval_str=True).parameters.values()
        others = [p.replace(kind=p.KEYWORD_ONLY) for p in others]
        required = [p for p in others if p.default is p.empty]
        wrapped.__signature__ = Signature([*required, *options, *others[len(required) :]])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command so that it prints a one-line message and exits with code 2 on an error.

    This applies to invalid input, missing files and missing packages. With ``--json``, the message
    is also printed on stdout as an object with the key ``error``. Warnings from this package are
    printed on a single line each, and warnings from other libraries are suppressed.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # also suppresses messages about compilation, here and in child processes
        if kwargs.get("quiet"):
            os.environ["ANNEALED_QUIET"] = "1"
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return command(*args, **kwargs)
        # stdout was closed (broken pipe), so exit quietly
        except BrokenPipeError:
            sys.stderr.close()
            raise typer.Exit(1) from None
        except (ValueError, OSError, ModuleNotFoundError) as error:
            message = _with_extra(error)
            print_error(message)
            if kwargs.get("as_json"):
                print_json({"error": short(message)})
            raise typer.Exit(USAGE_ERROR) from None

    return wrapped


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Context manager that prefixes error messages with the name of a file or sequence."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _with_extra(error: Exception) -> str:
    """Return the message of an error; if a package is missing, the message names the extra that
    installs it."""
    extra = _EXTRA.get(getattr(error, "name", None) or "")
    message = str(error)
    return (
        f"{message}; run pip install '.[{extra}]' in the annealed checkout"
        if extra and "pip install" not in message
        else message
    )


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    if _PACKAGE in Path(filename).parents and issubclass(category, UserWarning):
        print_error(message)


def end(n_inputs: int, n_failed: int) -> None:
    """Exit a command that processed several inputs.

    The exit code is 0 if all inputs were processed, 1 if some failed, and 2 if all failed.
    """
    if n_failed:
        raise typer.Exit(USAGE_ERROR if n_failed >= n_inputs else SOME_FAILED)


def print_json(record: Any) -> None:
    """Print a JSON document (see :func:`plain`) on a single line of stdout.

    The output is ASCII, since file names may contain bytes that are not valid text.
    """
    typer.echo(json.dumps(plain(record), allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table with right-aligned numbers and cells formatted by :func:`text`."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    rows = [list(row) for row in rows]
    for i, column in enumerate(columns):
        number = any(isinstance(row[i], int | float) for row in rows)
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*[text(value) for value in row])
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200).print(table)


def print_answer(
    record: Any, as_json: bool, title: str, columns: Mapping[str, str] | Sequence[str]
) -> None:
    """Print a record as JSON if ``as_json`` is set, and otherwise its rows as a table.

    ``columns`` contains the keys of the rows, or maps keys to column titles. The rows are either
    the record itself or its entry ``rows``.
    """
    if as_json:
        return print_json(record)
    rows = record["rows"] if isinstance(record, dict) else record
    heads = list(columns.values()) if isinstance(columns, Mapping) else columns
    print_table(title, heads, [[row.get(column) for column in columns] for row in rows])


def text(value: Any) -> str:
    """Format a table cell, with three decimals for floats and "-" for None and NaN."""
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3f}"
    return "-" if value is None else str(value)


def markdown_table(
    columns: Iterable[Any], rows: Iterable[Iterable[Any]], cell: Callable[[Any], str] = text
) -> str:
    """Return a Markdown table with cells formatted by :func:`text`."""
    head = list(columns)
    return "".join(
        "| " + " | ".join(map(cell, line)) + " |\n" for line in (head, ["---"] * len(head), *rows)
    )


def progress(
    iterable: Iterable, quiet: bool, description: str, total: int | None = None, wait: float = 60.0
) -> Iterable:
    """Wrap an iterable so that its progress is shown on stderr.

    Progress is shown as a bar on a terminal, and otherwise as one line per minute, starting after
    ``wait`` seconds.
    """
    if quiet:
        return iterable
    from ..learners.common.progress import progress_bar

    return progress_bar(
        iterable, title=description, total=total, shown=True, leave=False, wait=wait
    )


def log(message: str, quiet: bool) -> None:
    """Print a message about a long computation to stderr unless ``quiet`` is set."""
    if not quiet:
        typer.echo(message, err=True)


def temporary_file(context: typer.Context, name: str) -> Path:
    """Return the path of a temporary file, which is removed when the command ends."""
    return Path(context.with_resource(tempfile.TemporaryDirectory())) / name


def renamed(old: Path, name: str, new: Path | None, option: str) -> Path:
    """Return the value of an option, and issue a warning if its former name was used."""
    if new is not None:
        raise ValueError(
            f"{name} {old}: {name} is the former name of {option}; use only one of them"
        )
    print_error(f"{name} is deprecated and will be removed in 0.4; use {option}")
    return old


def number_or_auto(option: str, text: str | int) -> int | None:
    """Parse the value of an option: an integer >= 1, or "auto", which becomes None.

    A ValueError is raised for other values.
    """
    if text == "auto":
        return None
    if not str(text).isdecimal() or int(text) < 1:
        raise ValueError(f"{option} {text} is not valid; expected an integer >= 1 or auto")
    return int(text)


def load_model_of(kind: str, name: str) -> Any:
    """Load a shipped model by name or another model by path, and check that it is a ``kind``."""
    from ..models import load_model

    model = load_model(name)
    if kind != model.KIND:
        raise ValueError(f"model {name!r} is not {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
    return model
