"""FSA on batches of rows: ``partial_fit`` compared with one ``fit``, ten sizes in five folds, and
Vowpal Wabbit.

    python benchmarks/batches.py [--rows N] [--columns N] [--size K] [--batches N] [--vw N]

Data: normal columns with correlation 0.5, of which ``size`` are true. Times are processor seconds.
``--vw N`` also times Vowpal Wabbit with a squared loss (three passes, from its cache) on the first
N rows. It requires vowpalwabbit.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from annealed import FSARegressor
from annealed.learners import FSARegressorCV
from common import new_parser, print_head, print_line


def batches(rows: int, columns: int, size: int, n_batches: int) -> list[tuple]:
    """Return batches of float32 rows and their targets."""
    rng = np.random.default_rng(0)
    coef = rng.standard_normal(size)
    made = []
    for part in np.array_split(np.arange(rows), n_batches):
        X = rng.standard_normal((len(part), columns), np.float32)
        X += rng.standard_normal((len(part), 1), np.float32)
        made.append((X, X[:, :size] @ coef + 3.0 * rng.standard_normal(len(part))))
    return made


def vowpal_wabbit(data: list[tuple], rows: int, size: int) -> tuple[float, int]:
    """Return the seconds of three passes over the first rows, written as text, and the number of
    true columns among the ``size`` largest weights."""
    from vowpalwabbit import Workspace

    X, y = (np.concatenate(parts)[:rows] for parts in zip(*data, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        with path.open("w") as file:
            for row, target in zip(X, y, strict=True):
                values = " ".join(f"x{j}:{value:.5g}" for j, value in enumerate(row))
                file.write(f"{target:.5g} | {values}\n")
        start = time.process_time()
        model = Workspace(f"-d {path} -c -k --passes 3 --holdout_off --quiet")
        seconds = time.process_time() - start
        weights = [model.get_weight_from_name(f"x{j}") for j in range(X.shape[1])]
        model.finish()
    return seconds, int((np.argsort(-np.abs(weights))[:size] < size).sum())


def main(argv: list[str] | None = None) -> None:
    """Measure the methods and print a table."""
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=500)
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--vw", type=int, default=0, metavar="N", help="rows for Vowpal Wabbit")
    args = parser.parse_args(argv)
    data = batches(args.rows, args.columns, args.size, args.batches)
    print_head("method", "seconds", "true columns")

    start = time.process_time()
    model = FSARegressor(args.size)
    for X, y in data:
        model.partial_fit(X, y, refresh=False)
    adding = time.process_time() - start
    model.refresh()
    seconds = time.process_time() - start
    name = f"partial_fit, {args.batches} batches"
    print_line(name, f"{seconds:.2f}", int(model.support_[: args.size].sum()))
    print_line("of these: refresh", f"{seconds - adding:.2f}", "")

    X, y = (np.concatenate(parts) for parts in zip(*data, strict=True))
    start = time.process_time()
    whole = FSARegressor(args.size).fit(X, y)
    seconds = time.process_time() - start
    print_line("fit", f"{seconds:.2f}", int(whole.support_[: args.size].sum()))
    start = time.process_time()
    sizes = np.unique(np.linspace(2, 2 * args.size + 10, 10).astype(int))
    FSARegressorCV(sizes, cv=5).fit(X, y)
    print_line("ten sizes, five folds", f"{time.process_time() - start:.2f}", "")
    same = np.array_equal(whole.support_, model.support_)
    gap = np.abs(whole.coef_ - model.coef_).max() / np.abs(whole.coef_).max()
    print_line("same columns; relative difference of coefficients", same, f"{gap:.1e}")
    if args.vw:
        seconds, true = vowpal_wabbit(
            data[: -(-args.vw * args.batches // args.rows)], args.vw, args.size
        )
        print_line(f"Vowpal Wabbit, three passes, {args.vw:,} rows", f"{seconds:.2f}", true)


if __name__ == "__main__":
    main()
