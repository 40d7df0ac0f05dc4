"""One-line messages, and conversion of values to JSON types."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

MAX_MESSAGE = 300  # maximum length of an error message in characters


def short(message: object) -> str:
    """Return a message as a single line of at most ``MAX_MESSAGE`` characters.

    The middle of a longer message is omitted.
    """
    line = " ".join(str(message).split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 105]} ... {line[-100:]}"


def first_of(words: Sequence[str], n_shown: int) -> str:
    """Join the first words with commas, and append an ellipsis if there are more words.

    Examples
    --------
    >>> first_of(["a", "b", "c"], 2), first_of(["a"], 2)
    ('a, b, ...', 'a')
    """
    return ", ".join(words[:n_shown]) + (", ..." if len(words) > n_shown else "")


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return a question, in parentheses, that suggests a similar valid name, or an empty string.

    Examples
    --------
    >>> suggestion("diagnose", ["age", "diagnosis"]), suggestion("x", ["age"])
    (" (did you mean 'diagnosis'?)", '')
    """
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


@contextmanager
def naming_extra(what: str, extra: str) -> Iterator[None]:
    """Context manager that names the extra to install if a package cannot be imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{what}; run pip install '.[{extra}]' in the annealed checkout", name=error.name
        ) from None


def plain(value: Any) -> Any:
    """Convert a value to JSON types.

    Arrays become lists. NaN and infinity become None, since JSON does not support them.
    """
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not (abs(value) < float("inf")):
        return None
    return value
