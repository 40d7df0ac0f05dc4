"""Time of a fit while other processes use every core, with BLAS threads as the package sets them
and with one BLAS thread for the whole process; and the same on a quiet machine.

    python benchmarks/busy_cores.py [--rows 2000] [--columns 2000] [--runs 9] [--quiet]

Times are medians in milliseconds, of two processes for each setting, which alternate. ``--quiet``
starts no other processes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from common import new_parser, print_head, print_line

K = 10
SPIN = "while True: pass"


def measure(rows: int, columns: int, runs: int) -> dict[str, float]:
    """Return the median times of the fit and of ten predictions, in milliseconds."""
    from annealed import FSAClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    y = X[:, :K].sum(axis=1) + rng.standard_normal(rows) > 0
    model = FSAClassifier(K).fit(X, y)
    seconds: dict[str, list[float]] = {"fit": [], "predict x 10": []}
    for _ in range(runs):
        start = time.perf_counter()
        model.fit(X, y)
        seconds["fit"].append(time.perf_counter() - start)
        start = time.perf_counter()
        for _ in range(10):
            model.predict(X)
        seconds["predict x 10"].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(values) for name, values in seconds.items()}


def main(argv: list[str] | None = None) -> None:
    """Measure both settings and print the times."""
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--quiet", action="store_true", help="start no other processes")
    parser.add_argument("--child", action="store_true", help="print one measurement")
    args = parser.parse_args(argv)
    if args.child:
        print(json.dumps(measure(args.rows, args.columns, args.runs)))
        return
    cores = 0 if args.quiet else os.cpu_count() or 1
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(cores)]
    plain = {key: value for key, value in os.environ.items() if "NUM_THREADS" not in key}
    settings: dict[str, dict[str, str]] = {
        "as the package sets them": {},
        "one for the whole process": {"OPENBLAS_NUM_THREADS": "1"},
    }
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in settings}
    try:
        for _ in range(2):
            for name, extra in settings.items():
                command = [sys.executable, __file__, *sys.argv[1:], "--child"]
                answer = subprocess.run(
                    command, env=plain | extra, check=True, capture_output=True, text=True
                )
                runs[name].append(json.loads(answer.stdout))
    finally:
        for other in others:
            other.kill()
    print_head("BLAS threads", "fit, ms", "ten predictions, ms")
    for name, times in runs.items():
        medians = [statistics.median(one[key] for one in times) for key in times[0]]
        print_line(name, *(f"{value:.0f}" for value in medians))


if __name__ == "__main__":
    main()
