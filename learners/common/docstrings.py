"""Text that the docstrings of several classes share."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def fill_docstring(**texts: str) -> Callable[[T], T]:
    """Class decorator: put each text in the place of ``{name}`` in the docstring; texts may hold names of later ones.

    Texts are indented as in the docstring of a class. Python 3.13 removes that indentation from docstrings, earlier ones do not.
    """

    def decorate(cls: T) -> T:
        if cls.__doc__ is not None:  # python -OO
            filled = inspect.cleandoc(cls.__doc__)
            for name, text in texts.items():
                filled = filled.replace("{" + name + "}", textwrap.dedent("    " + text.strip()))
            cls.__doc__ = filled
        return cls

    return decorate
