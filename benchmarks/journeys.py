"""Journeys through the code: the modules and functions from a call of the interface to its result.

    python benchmarks/journeys.py [--only fit ...] [--json] [--limits] [--modules]

Each journey runs in its own process, once to compile and once under ``sys.setprofile``. Loops are
collapsed to the first call of each function of the package. A stay is a run of consecutive new
functions in one module; a return is a stay in a module that was left before. ``--limits`` exits
with 1 if a journey is longer than allowed. ``--modules`` lists the modules in the order of their
first call, with the number of stays in each and its functions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from annealed.learners import FSAClassifier, FSARegressor
from common import new_parser, print_head, print_line

# Journey -> maximum numbers of modules, of stays, and of entries into one module: the last
# measurements, to be lowered towards 16 modules and 45 stays (fit), 13 (paper), 30 and 110
# (select), 24 and 65 (segment).
LIMITS: dict[str, dict[str, int]] = {
    "fit": {"modules": 21, "stays": 69, "entries": 5},
    "paper": {"modules": 16},
    "detect": {"modules": 32, "stays": 109},
    "select": {"modules": 41, "stays": 159},
    "segment": {"modules": 26, "stays": 89},
}
N_SHOWN = 4  # number of modules shown, those entered most often


def trace(work: Callable[[], object]) -> tuple[list[tuple[str, str]], int]:
    """Return (module, function) of the package in the order of the first calls, and the number of
    all calls."""
    functions: dict[tuple[str, str], None] = {}
    n_calls = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal n_calls
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("annealed.") and "<" not in frame.f_code.co_name:
            n_calls += 1
            functions.setdefault((module.removeprefix("annealed."), frame.f_code.co_qualname))

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(functions), n_calls


def measure(work: Callable[[], object]) -> dict[str, Any]:
    """Return one row of the table."""
    work()  # compiles
    functions, n_calls = trace(work)
    stays = [module for module, _ in groupby(module for module, _ in functions)]
    entries = Counter(stays)
    return {
        "modules": len(entries),
        "functions": len(functions),
        "stays": len(stays),
        "returns": len(stays) - len(entries),
        "calls": n_calls,
        "entries": dict(entries),
        "functions_of": {
            module: [name for home, name in functions if home == module] for module in entries
        },
    }


def measure_in_process(name: str) -> dict[str, Any]:
    """Return one row of the table from a separate process, so that the imports and caches of one
    journey do not shorten another."""
    words = [sys.executable, __file__, "--only", name, "--json"]
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {key: value for key, value in json.loads(output)["rows"][0].items() if key != "journey"}


def classes(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal columns, and two classes that two of them predict."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n_samples) > 0).astype(int)


def fit() -> object:
    """``FSAClassifier(2).fit``, 200 x 50."""
    return FSAClassifier(2).fit(*classes(200, 50))


def paper() -> object:
    """The paper's algorithm: no refinement, 200 x 50."""
    return FSAClassifier(2, refinement=None).fit(*classes(200, 50))


def regression() -> object:
    """``FSARegressor(2).fit``, 100 x 50."""
    X, y = classes(100, 50)
    return FSARegressor(2).fit(X, X[:, 0] - X[:, 1] + 0.5 * y)


def auto() -> object:
    """``FSAClassifier("auto").fit``, 200 x 50."""
    return FSAClassifier("auto").fit(*classes(200, 50))


def command(*words: str) -> None:
    """Run a command of the package and discard its output."""
    from annealed.pipelines.cli import main as run

    old = sys.argv, sys.stdout
    sys.argv = ["annealed", *words]
    try:
        with open(os.devnull, "w") as sys.stdout:
            run()
    except SystemExit as end:
        if end.code:
            raise ValueError(f"annealed {' '.join(words)}: exit code {end.code}") from None
    finally:
        sys.argv, sys.stdout = old


def detect() -> None:
    """``annealed faces detect`` on the sample photograph."""
    command("faces", "detect", "--quiet")


def select() -> None:
    """``annealed select t.csv -k 2``, 200 x 8."""
    X, y = classes(200, 8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        names = ",".join([*(f"x{i}" for i in range(8)), "y"])
        np.savetxt(
            path,
            np.column_stack([X, y]),
            delimiter=",",
            header=names,
            comments="",
            fmt=["%.6f"] * 8 + ["%d"],
        )
        command("select", str(path), "--target", "y", "-k", "2", "--quiet")


def segment() -> None:
    """``annealed motion segment`` on 60 tracks of two motions."""
    rng = np.random.default_rng(0)
    frames = np.arange(20.0)[:, None, None]
    start, speed = rng.uniform(0, 300, (1, 60, 2)), np.repeat([[3.0, 1.0], [-2.0, 2.0]], 30, axis=0)
    turn = (
        np.sin(0.1 * frames) * (start[:, :, ::-1] - 150) * np.repeat([0.3, -0.2], 30)[None, :, None]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tracks.npz"
        np.savez(path, tracks=start + speed * frames + turn)
        command("motion", "segment", str(path), "--motions", "2", "--quiet")


JOURNEYS: dict[str, Callable[[], object]] = {
    function.__name__: function
    for function in (fit, paper, regression, auto, detect, select, segment)
}


def broken(name: str, row: dict[str, Any]) -> list[str]:
    """Return messages about the limits that a journey exceeds."""
    most_entered = max(row["entries"], key=row["entries"].get)
    failures = {
        "modules": row["modules"],
        "stays": row["stays"],
        "entries": row["entries"][most_entered],
    }
    what = {"entries": f"entries of {most_entered}"}
    return [
        f"{name}: {failures[key]} {what.get(key, key)}, expected at most {limit}"
        for key, limit in LIMITS.get(name, {}).items()
        if failures[key] > limit
    ]


def main(argv: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=JOURNEYS,
        default=list(JOURNEYS),
        help="run only these journeys",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument(
        "--limits", action="store_true", help="exit with 1 if a journey is longer than allowed"
    )
    parser.add_argument(
        "--modules",
        action="store_true",
        help="list the modules of each journey and their functions",
    )
    arguments = parser.parse_args(argv)
    if len(arguments.only) == 1:
        rows = {name: measure(JOURNEYS[name]) for name in arguments.only}
    else:
        rows = {name: measure_in_process(name) for name in arguments.only}
    if arguments.json:
        lines = [{"journey": name, **row} for name, row in rows.items()]
        print(json.dumps({"name": "journeys", "settings": {"limits": LIMITS}, "rows": lines}))
    else:
        print_head(
            "journey", "modules", "functions", "stays", "returns", "calls in all", "most entered"
        )
        for name, row in rows.items():
            numbers = [row[key] for key in ("modules", "functions", "stays", "returns", "calls")]
            words = ", ".join(
                f"{module} {n}" for module, n in Counter(row["entries"]).most_common(N_SHOWN)
            )
            print_line(JOURNEYS[name].__doc__, *numbers, words)
        for name, row in rows.items() if arguments.modules else ():
            print(f"\n{name}")
            for module, functions in row["functions_of"].items():
                print(f"  {module}, {row['entries'][module]}: {', '.join(functions)}")
    problems = (
        [line for name, row in rows.items() for line in broken(name, row)]
        if arguments.limits
        else []
    )
    for line in problems:
        print(line, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
