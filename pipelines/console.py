"""What all commands share: errors as one line, progress on stderr, tables for people and JSON for
programs."""

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ..models.messages import short

USAGE_ERROR = 2  # exit code: wrong usage, or nothing answered
SOME_FAILED = 1  # exit code of a command with several inputs

# Options that several commands have.
Model = Annotated[str, typer.Option(help="Name of a shipped model, or a model file.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for programs instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, whose workers read the files: tcp://host:8786."
    ),
]
_PACKAGE = Path(__file__).absolute().parents[1]
# which extra brings a package
_EXTRA = {
    "cv2": "vision",
    "PIL": "vision",
    "skimage": "vision",
    "matplotlib": "plots",
    "pyarrow": "parquet",
    "distributed": "dask",
}


def new_app(help: str) -> typer.Typer:
    """Return a group of commands with the project's settings."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def print_version(value: bool) -> None:
    """Print the version, and end the command."""
    if value:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


def root_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """What ``annealed`` takes before the name of a command."""


def print_error(message: object) -> None:
    """Print one line on stderr; ends of lines become blanks, and the middle of a long one is left
    out."""
    typer.echo("annealed: " + short(message), err=True)


def command_of(app: typer.Typer, name: str | None = None) -> Callable:
    """Decorate a function as a command of a group, with :func:`one_line_errors`."""
    return lambda function: app.command(name)(one_line_errors(function))


def with_options(of: type, **defaults: Any) -> Callable:
    """Decorate a command whose first parameter is a dataclass: its fields become options.

    Fields carry ``Annotated[..., typer.Option(...)]``; those that are () by default may be
    repeated. ``defaults`` replace those of the fields.
    """
    hints, options = get_type_hints(of, include_extras=True), []
    for entry in fields(of):
        hint, default = hints[entry.name], defaults.get(entry.name, entry.default)
        if default == ():
            hint, default = Annotated[list[str] | None, *hint.__metadata__], None
        if hasattr(hint, "__metadata__"):
            default = Parameter.empty if default is MISSING else default
            options.append(
                Parameter(entry.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
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
            command(of(**values), **given)

        _, *own = signature(command, eval_str=True).parameters.values()
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in own]
        first = [p for p in own if p.default is p.empty]
        wrapped.__signature__ = Signature([*first, *options, *own[len(first) :]])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command: bad input, and files or packages that are not there, become a line and
    exit code 2.

    With ``--json`` the line is also an object with ``error`` on stdout. Our own warnings become
    lines too; those of libraries are for programmers, and are left out.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # no word of compiling either, here and in processes that the command starts
        if kwargs.get("quiet"):
            os.environ["ANNEALED_QUIET"] = "1"
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return command(*args, **kwargs)
        # the reader of our output has gone: nothing to say, and nobody to say it to
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


def _with_extra(error: Exception) -> str:
    """The message of an error; that of a missing package names the extra that brings it."""
    extra = _EXTRA.get(getattr(error, "name", None) or "")
    message = str(error)
    return (
        f"{message}: pip install '.[{extra}]' in the checkout of annealed"
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
    """End a command with several inputs: exit code 0 if all were answered, 1 if some were, 2 if
    none was."""
    if n_failed:
        raise typer.Exit(USAGE_ERROR if n_failed >= n_inputs else SOME_FAILED)


def print_json(record: Any) -> None:
    """Print one JSON document on one line of stdout, see :func:`plain`; in ASCII, for names of
    files may be no text."""
    typer.echo(json.dumps(plain(record), allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value in JSON's own types: arrays become lists, NaN and infinity (which JSON cannot
    say) None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not (abs(value) < float("inf")):
        return None
    return value


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table for people: numbers to the right, cells as :func:`text` gives them."""
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
    """Print a record as JSON, or its rows as a table for people.

    ``columns`` are the keys of the rows, or what stands above each. The rows are the record itself,
    or its ``rows``.
    """
    if as_json:
        return print_json(record)
    rows = record["rows"] if isinstance(record, dict) else record
    heads = list(columns.values()) if isinstance(columns, Mapping) else columns
    print_table(title, heads, [[row.get(column) for column in columns] for row in rows])


def text(value: Any) -> str:
    """Return a value as a cell of a table: floats with three decimals, "-" for None and NaN."""
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3f}"
    return "-" if value is None else str(value)


def markdown_table(
    columns: Iterable[Any], rows: Iterable[Iterable[Any]], cell: Callable[[Any], str] = text
) -> str:
    """Return a table in Markdown, cells as :func:`text` gives them."""
    head = list(columns)
    return "".join(
        "| " + " | ".join(map(cell, line)) + " |\n" for line in (head, ["---"] * len(head), *rows)
    )


def progress(
    iterable: Iterable, quiet: bool, description: str, total: int | None = None, wait: float = 60.0
) -> Iterable:
    """Pass an iterable through, with a bar on stderr when that is a terminal, and else with a line
    a minute, the first after ``wait`` seconds."""
    if quiet:
        return iterable
    from ..learners.common.progress import progress_bar

    return progress_bar(
        iterable, title=description, total=total, shown=True, leave=False, wait=wait
    )


def log(message: str, quiet: bool) -> None:
    """Print one line about the state of long work on stderr."""
    if not quiet:
        typer.echo(message, err=True)


def number_or_auto(option: str, text: str) -> int | None:
    """Return the number from 1 on that an option was given, None for "auto"; else a ValueError."""
    if text == "auto":
        return None
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{option} {text}: expected a number or auto") from None
    if number < 1:
        raise ValueError(f"{option} {text}: expected at least 1")
    return number


def load_model_of(kind: str, name: str) -> Any:
    """Load a model of a kind in ``annealed.models.files.KINDS``: a shipped name, or a path."""
    from ..models import load_model, resolve_model
    from ..models.files import read_header

    path = resolve_model(name)
    if read_header(path)["kind"] != kind:
        raise ValueError(f"model {name!r}: not {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
    return load_model(path)
