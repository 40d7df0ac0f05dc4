"""Shared code of the benchmarks: arguments, processor time, rows of tables. Requires only the
standard library."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# A process begins with the peak memory of the process that starts it, which must be small.
_MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
output = process.stdout.read()
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([status, used.ru_maxrss, used.ru_utime + used.ru_stime, output]))
"""


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


def measure_command(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, float, str]:
    """Return the peak memory of a command in bytes, its processor seconds, and its output."""
    answer = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    status, peak, seconds, output = json.loads(answer.stdout)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return peak * (1 if sys.platform == "darwin" else 1024), seconds, output
