"""The pages' tables of selectors (Tables II, III, IV of the PAMI text) from the checkpoints of `annealed reproduce`.

    annealed reproduce fsa-classification --checkpoint clean.cells
    annealed reproduce fsa-classification --noisy --checkpoint noisy.cells
    annealed reproduce fsa-regression --checkpoint regression.cells
    python benchmarks/selector_tables.py clean.cells noisy.cells regression.cells > docs/selector_tables.md
    python benchmarks/selector_tables.py clean.cells noisy.cells regression.cells --short

Prints what is there, each row with its number of runs; `--short` is the form of docs/choosing.md, bare where there are 100.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict

from annealed.pipelines.reproduce.selectors import table_row

TITLES = {"clean": "Clean labels", "noisy": "Noisy labels", "regression": "Regression"}
METHODS = ["annealed", "FSA", "FSV", "FSL", "QTP", "LB", "LB1", "FoBa-gdt", "FoBa-obj", "MSLR"]
METHODS += ["L1", "EL", "MCP", "SCAD", "RFE", "abess", "skscope", "L2"]
PEERS = {"L1": "L1, liblinear", "EL": "elastic net, SGD", "MCP": "MCP, skglm", "SCAD": "SCAD, skglm", "RFE": "RFE, scikit-learn"}
PEERS |= {"L2": "L2, all columns"}
REGRESSION = {"L1": "L1, LARS", "EL": "elastic net, coordinate descent"}
HEAD = """# The selectors' tables in full

DR, PCD: percentage of runs in which all relevant columns were found, and of relevant columns found; AUC or root mean square error on
as many new rows; seconds: median processor time of one thread (the machine was shared with other work). After the stroke the number
printed in the PAMI text, 100 runs on another machine. What the rows are, and what follows from them: [choosing.md](choosing.md).
Made by `benchmarks/selector_tables.py`."""


def read(paths):
    """Rows of all tables: {table: {(N, k): {method: row}}}."""
    results = defaultdict(list)
    for path in paths:
        with open(path) as file:
            for line in file:
                key, value = json.loads(line)
                results[key["table"], key["N"], key["k"], key["method"]].append(value)
    tables = {name: defaultdict(dict) for name in TITLES}
    for (table, n, k, method), values in results.items():
        tables[table][n, k][method] = table_row(table, n, k, method, values)
    return tables


def percent(value) -> str:
    return f"{min(value, 99.9):.1f}" if 99.5 <= value < 100.0 else f"{value:.0f}"  # 100 means all


def decimals(value) -> str:
    """Three decimals below ten, without the zero in front."""
    text = f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return text.lstrip("0")


def beside(row, what, form) -> str:
    if row[what] is None:
        return ""
    paper = row[f"paper_{what}"]
    return form(row[what]) + (f" / {form(paper)}" if paper is not None else "")


def full(tables) -> None:
    print(HEAD)
    for table, sizes in tables.items():
        quality = "RMSE" if table == "regression" else "AUC"
        names = PEERS | (REGRESSION if table == "regression" else {})
        for n, k in sorted(sizes, key=lambda size: size[::-1]):
            print(
                f"\n### {TITLES[table]}, N = {n}, k = {k}\n\n| method | runs | DR | PCD | {quality} | seconds |\n|---|---|---|---|---|---|"
            )
            form = decimals if table == "regression" else lambda value: f"{value:.3f}".lstrip("0")
            for method in METHODS:
                if row := sizes[n, k].get(method):
                    cells = [names.get(method, method), row["runs"], beside(row, "DR", percent), beside(row, "PCD", percent)]
                    cells += [beside(row, quality, form), decimals(row["seconds"])]
                    print("| " + " | ".join(map(str, cells)) + " |")


def short(tables) -> None:
    for table, sizes in tables.items():
        order = sorted(sizes, key=lambda size: size[::-1])
        print(f"\n### {TITLES[table]}\n\n| method | " + " | ".join(f"{n}, {k}" for n, k in order) + " |")
        print("|---" * (len(order) + 1) + "|")
        for method in METHODS[:-1]:
            cells = []
            for size in order:
                if row := sizes[size].get(method):
                    pairs = [
                        " ".join(percent(row[kind + what]) for what in ("DR", "PCD") if row[kind + what] is not None)
                        for kind in ("", "paper_")
                    ]
                    cells.append(" / ".join(filter(None, pairs)) + (f" ({row['runs']})" if row["runs"] != 100 else ""))
                else:
                    cells.append("")
            if any(cells):
                print(f"| {method} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+", help="files of finished cells")
    parser.add_argument("--short", action="store_true", help="one table per kind, sizes across")
    arguments = parser.parse_args()
    (short if arguments.short else full)(read(arguments.checkpoints))


if __name__ == "__main__":
    main()
