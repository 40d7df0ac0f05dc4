"""Measurement of processor time."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def timed(work: Callable[..., Result], *arguments: Any) -> tuple[Result, float]:
    """Call a function, and return its result and the processor time in seconds.

    Examples
    --------
    >>> timed(pow, 2, 5)[0]
    32
    """
    start = time.process_time()
    result = work(*arguments)
    return result, time.process_time() - start
