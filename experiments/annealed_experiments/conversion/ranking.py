"""Conversion of ranking data, LETOR's MQ2008 and LightGBM's example, to compressed svmrank
files."""

import gzip
from collections.abc import Iterable
from pathlib import Path

from .files import find_file, open_file

# File and fold of each part S1, ..., S5; each fold tests on a different part.
_TEST_OF_FOLD = {"S1": 2, "S2": 3, "S3": 4, "S4": 5, "S5": 1}


def mq2008(source: Path, folder: Path, name: str) -> list[str]:
    """Convert the five parts S1 to S5 without comments, from files with these names or from the
    test files of the folds.
    """
    for part, fold in _TEST_OF_FOLD.items():
        folds = sorted(
            path for path in source.rglob("test.txt") if path.parent.name.lower() == f"fold{fold}"
        )
        path = folds[0] if folds else find_file(source, f"{part}.txt")
        with open_file(path) as lines:
            _write(folder / f"{part}.svmrank.gz", path, (line.split("#", 1)[0] for line in lines))
    return []


def lambdarank(source: Path, folder: Path, name: str) -> list[str]:
    """Convert grades and features; a second file contains the sizes of the queries, one per
    line."""
    for half in ("train", "test"):
        path, sizes = find_file(source, f"rank.{half}"), find_file(source, f"rank.{half}.query")
        rows = path.read_text().splitlines()
        counts = [int(size) for size in sizes.read_text().split() if size.isdigit()]
        if sum(counts) != len(rows):
            raise ValueError(
                f"{sizes}: the queries have {sum(counts)} rows in total; expected {len(rows)}"
            )
        queries = [query for query, count in enumerate(counts, 1) for _ in range(count)]
        split = (row.split(" ", 1) for row in rows)
        lines = (
            f"{grade} qid:{query} {rest}"
            for (grade, rest), query in zip(split, queries, strict=True)
        )
        _write(folder / f"{half}.svmrank.gz", path, lines)
    return []


def _write(out: Path, path: Path, lines: Iterable[str]) -> None:
    with gzip.open(out, "wt") as file:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if not fields:
                continue
            if (
                len(fields) < 3
                or not fields[1].startswith("qid:")
                or not fields[0].lstrip("-").isdigit()
            ):
                raise ValueError(
                    f"{path}, line {number}: {line[:40]!r} is not valid; expected a grade, "
                    "qid:NUMBER and column:value"
                )
            file.write(" ".join(fields) + "\n")
