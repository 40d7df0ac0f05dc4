"""Text that the docstrings of several classes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def fill_docstring(**texts: str) -> Callable[[T], T]:
    """Class decorator: put each text in the place of ``{name}`` in the docstring; texts may hold names of later ones."""

    def decorate(cls: T) -> T:
        if cls.__doc__ is not None:  # python -OO
            for name, text in texts.items():
                cls.__doc__ = cls.__doc__.replace("{" + name + "}", text.strip())
        return cls

    return decorate
