"""``annealed select`` on wide tables: 40 rows of normal columns, the first two of which predict the
class. Prints the processor seconds of the whole command, including imports, and the peak memory.

    python benchmarks/select_wide.py [--columns 1000 10000 100000] [--json]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import measure_command, new_parser, print_head, print_line

N_ROWS = 40
COMMAND = (sys.executable, "-m", "annealed.pipelines.cli", "select")


def write_tables(folder: Path, n_columns: int) -> list[Path]:
    """Write the same table as CSV and as Parquet; return the paths."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, n_columns)).round(5)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
    frame["y"] = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(N_ROWS) > 0, "yes", "no")
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet", index=False)
    return [folder / "table.csv", folder / "table.parquet"]


def measure(path: Path) -> dict[str, Any]:
    """Return the processor seconds and peak MB of one call, and its selection."""
    options = ["--target", "y", "-k", "2", "--json", "--quiet"]
    peak, seconds, output = measure_command([*COMMAND, str(path), *options])
    result = json.loads(output)
    columns = [column["name"] for column in result["selected"]]
    return {
        "seconds": round(seconds, 2),
        "MB": round(peak / 1e6),
        "selected": columns,
    }


def main(argv: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument(
        "--columns",
        type=int,
        nargs="+",
        default=[1_000, 10_000, 100_000],
        help="numbers of columns",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    if not arguments.json:
        print_head("columns", "file", "processor seconds", "MB", "selected")
    for n_columns in arguments.columns:
        with tempfile.TemporaryDirectory() as folder:
            for path in write_tables(Path(folder), n_columns):
                rows.append({"n_columns": n_columns, "file": path.suffix, **measure(path)})
                if not arguments.json:
                    print_line(
                        n_columns,
                        path.suffix,
                        rows[-1]["seconds"],
                        rows[-1]["MB"],
                        ", ".join(rows[-1]["selected"]),
                    )
    if arguments.json:
        print(json.dumps({"name": "select_wide", "settings": {"n_rows": N_ROWS}, "rows": rows}))


if __name__ == "__main__":
    main()
