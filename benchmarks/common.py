"""Shared code of the benchmarks: arguments, processor time, rows of tables. Requires only the
standard library."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any


def new_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help text is the docstring of the script."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def timed(
    work: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[Any, float]:
    """Return the result of a call and its seconds, in processor time unless another clock is
    given."""
    start = clock()
    result = work()
    return result, clock() - start


def seconds_of(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return the seconds of each of several calls."""
    return [timed(work, clock)[1] for _ in range(repeats)]


def print_line(*cells: object) -> None:
    """Print one row of a Markdown table, without buffering."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def print_head(*columns: str) -> None:
    """Print the head of a Markdown table."""
    print_line(*columns)
    print_line(*["---"] * len(columns))
