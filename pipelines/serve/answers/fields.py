"""Form fields, which are converted to the types of command-line options."""

from collections.abc import Callable, Iterable
from typing import Any

from ...common import check_names

_FLAGS = {"true": True, "1": True, "on": True, "false": False, "0": False, "": False}


class Fields:
    """Text fields of a form, by name.

    Parameters
    ----------
    values : dict of str to list of str
        Fields as received, with all values of each name.
    known : iterable of str
        Names that the request accepts.

    Raises
    ------
    ValueError
        If a field name is unknown.
    """

    def __init__(self, values: dict[str, list[str]], known: Iterable[str]):
        self.values, self.known = values, list(known)
        check_names("field", values, self.known)

    def listed(self, name: str) -> list[str]:
        """Return all non-empty values of a field."""
        assert name in self.known
        return [value for value in self.values.get(name, []) if value]

    def text(self, name: str) -> str | None:
        """Return the last value of a field, or None if it is empty."""
        given = self.listed(name)
        return given[-1] if given else None

    def number(self, name: str) -> float | None:
        """Return the value of a field as a number, or None if it is empty.

        Raises
        ------
        ValueError
            If the value is not a number.
        """
        value = self.text(name)
        if value is None:
            return None
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if number != number:
            raise ValueError(f"{name}={value!r} is not valid; expected a number")
        return number

    def flag(self, name: str) -> bool:
        """Return whether the value of a field is "true".

        Raises
        ------
        ValueError
            If the value is neither "true" nor "false".
        """
        value = self.text(name) or ""
        if value.lower() not in _FLAGS:
            raise ValueError(f"{name}={value!r} is not valid; expected true or false")
        return _FLAGS[value.lower()]

    def choice(self, name: str, choices: Iterable[str]) -> Any:
        """Return the value of a field, which must be in ``choices``; by default, the first choice.

        Raises
        ------
        ValueError
            If the value is not one of ``choices``.
        """
        words = list(choices)
        value = self.text(name) or words[0]
        if value not in words:
            raise ValueError(f"{name}={value!r} is unknown; expected one of {', '.join(words)}")
        return value


def accepts(*known: str) -> Callable:
    """Decorate a function so that it receives the text fields of a form as :class:`Fields`."""
    return lambda answer: lambda path, values, tell: answer(path, Fields(values, known), tell)
