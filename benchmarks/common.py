"""Shared code of the benchmarks: arguments, processor time, lines of tables. Needs only the
standard library."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any


def new_parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of the script."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def timed(
    work: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[Any, float]:
    """The result of a call, and its seconds: processor time, unless another clock is given."""
    start = clock()
    result = work()
    return result, clock() - start


def seconds_of(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Seconds of each of several calls."""
    return [timed(work, clock)[1] for _ in range(repeats)]


def print_line(*cells: object) -> None:
    """Print one line of a table in Markdown, at once."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def print_head(*columns: str) -> None:
    """Print the head of a table in Markdown."""
    print_line(*columns)
    print_line(*["---"] * len(columns))
