"""The fields of a form, in the types of the command line's options."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress


class Fields:
    """Text by name; every kind of request knows its names, and any other is an error.

    Parameters
    ----------
    values : dict of str to list of str
        As they were sent; a name may come several times.
    known : iterable of str
        Names that the request knows.

    Raises
    ------
    ValueError
        For a name that is not known.
    """

    def __init__(self, values: dict[str, list[str]], known: Iterable[str]):
        self.values, self.known = values, list(known)
        unknown = [name for name in values if name not in self.known]
        if unknown:
            raise ValueError(f"field {unknown[0]!r} is unknown; expected one of {', '.join(self.known)}")

    def listed(self, name: str) -> list[str]:
        """Return all values that are not empty."""
        assert name in self.known
        return [value for value in self.values.get(name, []) if value]

    def text(self, name: str) -> str | None:
        """Return the last value."""
        given = self.listed(name)
        return given[-1] if given else None

    def number(self, name: str) -> float | None:
        """Return a number, None where there is none.

        Raises
        ------
        ValueError
            For anything else.
        """
        value = self.text(name)
        with suppress(ValueError):
            number = None if value is None else float(value)
            if number == number:
                return number
        raise ValueError(f"{name}={value!r}: expected a number")

    def flag(self, name: str) -> bool:
        """Return whether a field is "true", by default not.

        Raises
        ------
        ValueError
            For anything but "true" and "false".
        """
        value = (self.text(name) or "false").lower()
        if value not in ("true", "false"):
            raise ValueError(f"{name}={value!r}: expected true or false")
        return value == "true"

    def choice(self, name: str, choices: Iterable[str]) -> str:
        """Return one of some words, the first by default.

        Raises
        ------
        ValueError
            For another word.
        """
        words = list(choices)
        value = self.text(name) or words[0]
        if value not in words:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(words)}")
        return value
