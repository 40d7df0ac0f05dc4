"""Numbers of columns that `annealed select -k auto` chooses by each rule, over random seeds of the
folds, and their scores on rows that were not used to choose columns or their number.

    python benchmarks/size_rules.py FOLDER --seeds 4      # .csv (column target) and .npz tables
    python benchmarks/size_rules.py FOLDER --only alon    # some of them, by name
    python benchmarks/size_rules.py --noise 6             # tables of noise, six of each kind

The tables of scikit-learn are included. "factor" is the geometric mean of the ratio of the largest
to the smallest number. All rules use the same paths; for the score of a fold, each rule chooses the
number from the other folds.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from annealed.learners.model_selection.size import choose_size
from annealed.models.tabular.encoding import ColumnEncoding, TableEncoding
from annealed.models.tabular.fitting import selection
from annealed.models.tabular.fitting.table import Table
from annealed.models.tabular.fitting.validation import Validation
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file
from common import new_parser, print_head, print_line

RULES = ("explained", "best", "one_se")


def outcome(v: Validation, rule: str) -> tuple[int, float, float]:
    """Return the number of columns, and the score and the loss on the held-out rows as a share of a
    constant's; if no model is better than the constant, all rules select no columns."""

    def chosen(losses: np.ndarray) -> int:
        return 1 + choose_size(losses[:, 1:], rule, losses[:, 0]) if v.size else 0

    others = [np.delete(v.losses, fold, axis=0) for fold in range(len(v.losses))]
    at = np.array([chosen(losses) for losses in others])
    folds = np.arange(len(at))
    score = float(np.average(v.path[folds, at], weights=v.held_out))
    return (
        v.sizes[chosen(v.losses)],
        score,
        float(v.losses[folds, at].mean() / v.losses[:, 0].mean()),
    )


def noise(n_tables: int) -> None:
    """Print the percentage of tables without signal in which a column is selected."""
    kinds, n_all, n_selected = ("numbers", "halves", "quarter", "three classes"), 0, 0
    print_head("target", "rows", "columns", "tables with a selected column, %")
    for kind, rows, columns in itertools.product(kinds, (60, 100, 300), (5, 13, 60)):
        n = 0
        encoding = TableEncoding(tuple(ColumnEncoding(f"c{j}", fill=0.0) for j in range(columns)))
        for seed in range(n_tables):
            rng = np.random.default_rng([seed, rows, columns, kinds.index(kind)])
            X = rng.standard_normal((rows, columns)) + seed % 2 * rng.standard_normal((rows, 1))
            y = rng.standard_normal(rows)
            if kind != "numbers":
                share = {"halves": (0.5,), "quarter": (0.25,), "three classes": (1 / 3, 2 / 3)}[
                    kind
                ]
                y = np.digitize(rng.random(rows), share)
            task = "regression" if kind == "numbers" else "classification"
            n += selection.select_columns(Table(X, y, encoding), task, None).validation.size > 0
        print_line(kind, rows, columns, round(100 * n / n_tables))
        n_all, n_selected = n_all + n_tables, n_selected + n
    print_line("all", "", "", round(100 * n_selected / n_all, 1))


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each table."""
    from sklearn import datasets

    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--noise", type=int, default=0)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    selection.N_HALVES = 2  # stability is not measured here
    if args.noise:
        return noise(args.noise)
    totals: dict[str, list[np.ndarray]] = {rule: [] for rule in RULES}
    print_head("table", "explained (columns by seed: score, relative loss)", "best", "one-se")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("breast_cancer", "wine", "diabetes", "digits"):
            getattr(datasets, f"load_{name}")(as_frame=True).frame.to_csv(
                Path(folder) / f"{name}.csv", index=False
            )
        given = (
            []
            if args.folder is None
            else sorted([*args.folder.glob("*.csv"), *args.folder.glob("*.npz")])
        )
        for path in [
            *(
                Path(folder) / f"{name}.csv"
                for name in ("breast_cancer", "wine", "diabetes", "digits")
            ),
            *given,
        ]:
            if args.only is not None and path.stem not in args.only:
                continue
            target = "target" if path.suffix == ".csv" else None
            table = path.stem
            runs = [
                select_file(path, Request(target=target, k="auto", seed=seed)).validation
                for seed in range(args.seeds)
            ]
            cells = []
            for rule in RULES:
                k, score, loss = np.array([outcome(v, rule) for v in runs]).T
                totals[rule].append(
                    np.array(
                        [
                            np.mean(k),
                            np.ptp(np.log(np.maximum(k, 1))),
                            score.mean(),
                            loss.mean(),
                        ]
                    )
                )
                columns = " ".join(f"{n:.0f}" for n in k)
                cells.append(f"{columns}: {score.mean():.3f}, {loss.mean():.3f}")
            print_line(table, *cells)
    means = (np.mean(values, axis=0) for values in totals.values())
    cells = (
        f"{k:.1f}, factor {np.exp(spread):.2f}: {score:.3f}, {loss:.3f}"
        for k, spread, score, loss in means
    )
    print_line("mean", *cells)


if __name__ == "__main__":
    main()
