"""Settings as nested dataclasses, read from nested tables in a TOML or JSON file."""

import json
import tomllib
import warnings
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ...learners.parameters import check_integer as check_integer  # re-exported for commands
from ..console import naming

Settings = TypeVar("Settings")

# former names of settings, accepted for one version
_RENAMED = {"lost": "lost_fraction", "least": "min_log_odds"}


def check_names(what: str, names: Iterable[str] | None, known: Iterable[str]) -> None:
    """Check that all names are known. The error message contains the first unknown name."""
    known = list(known)
    for name in names or ():
        if name not in known:
            raise ValueError(f"{what} {name!r} is unknown; expected one of {', '.join(known)}")


def read_config(path: Path | None, defaults: Settings) -> Settings:
    """Read settings from a TOML or JSON file, or return the defaults if the path is None.

    Fields of ``defaults`` that are dataclasses correspond to tables in the file. Missing entries
    have their default values.

    Raises
    ------
    ValueError
        If the file cannot be read, or an entry is unknown or has the wrong type. The message names
        the file and the entry.
    """
    return defaults if path is None else _merged(path, "", read_tables(path), defaults)


def read_tables(path: Path) -> dict[str, Any]:
    """Read the nested tables of a TOML or JSON file.

    Raises
    ------
    ValueError
        If the file cannot be read, or does not contain a table.
    """
    try:
        raw = path.read_text(encoding="utf-8")
        is_json = path.suffix.lower() == ".json"
        entries = json.loads(raw, object_pairs_hook=distinct) if is_json else tomllib.loads(raw)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path}: the file is not a readable TOML or JSON file ({error})"
        ) from None
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: the file contains no settings; expected a table of settings")
    return entries


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Convert name-value pairs to a dict, or raise an error if a name is repeated, as in TOML."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"{max(names, key=names.count)!r} is set twice; set it only once")
    return dict(pairs)


def _merged(path: Path, table: str, entries: Any, defaults: Any) -> Any:
    if not isinstance(entries, dict):
        raise ValueError(
            f"{path}: {table or 'the top level'} is not a table; expected a table of settings"
        )
    known = {field.name: getattr(defaults, field.name) for field in fields(defaults)}
    read = {}
    for name, value in entries.items():
        whole = f"{table}.{name}" if table else name
        if name not in known and name in _RENAMED:
            name = _RENAMED[name]
            warnings.warn(
                f"{path}: setting {whole!r} was renamed to {name!r}", FutureWarning, stacklevel=2
            )
        if name not in known:
            raise ValueError(
                f"{path}: setting {whole!r} is unknown; expected one of {', '.join(known)}"
            )
        example = known[name]
        read[name] = (
            _merged(path, whole, value, example)
            if is_dataclass(example)
            else _checked(path, whole, value, example)
        )
    with naming(path):
        return replace(defaults, **read)


def _checked(path: Path, name: str, value: Any, example: Any) -> Any:
    """Convert a value to the type of an example: a number, text, a boolean, or a list of these."""
    several = isinstance(example, tuple)
    wanted, entries = type(example[0] if several else example), value if several else [value]
    if not isinstance(entries, list) or not entries or not all(_fits(v, wanted) for v in entries):
        expected = f"{'list of ' if several else ''}{wanted.__name__}"
        raise ValueError(f"{path}: {name}={value!r} is not valid; expected {expected}")
    return tuple(map(wanted, entries)) if several else wanted(value)


def _fits(value: Any, wanted: type) -> bool:
    if isinstance(value, bool) or wanted is bool:
        return isinstance(value, bool) and wanted is bool
    return isinstance(value, int | float) if wanted is float else isinstance(value, wanted)
