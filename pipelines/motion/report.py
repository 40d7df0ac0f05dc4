"""Tables and figures of the motion experiments, as in Table VII and Figure 9 of the papers."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...models.files import write_texts
from ...vision.tracks import TrackSequence, by_size
from ..common.outputs import save_figure
from ..console import markdown_table, print_table
from .benchmark import Benchmark
from .evaluate import N_FOLDS, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CATEGORIES = ("checkerboard", "traffic", "articulated", "all")
N_WORST = 10
REPORT_FILES = ("results.json", "table.md", "cumulative.png", "worst_*.png")


def groups(benchmark: Benchmark) -> list[tuple[str, int | str, np.ndarray]]:
    """Return the non-empty groups of sequences in Table VII of Barbu et al. (2017).

    Each group consists of a category, a number of motions and a mask of the sequences.
    """
    lines: list[tuple[str, int | str, np.ndarray]] = []
    for k in np.unique(benchmark.n_motions):
        for category in CATEGORIES:
            inside = (benchmark.n_motions == k) & (
                (benchmark.categories == category) | (category == "all")
            )
            if inside.any():
                lines.append((category, int(k), inside))
    return [*lines, ("all", "all", np.ones(len(benchmark.n_motions), bool))]


def table_rows(benchmark: Benchmark, results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the rows of the table, one per method and group.

    A row contains averages and medians in percent, and the standard deviation over the partitions.
    """
    rows = []
    for result in results:
        for category, k, inside in groups(benchmark):
            row = {
                "method": result.method,
                "min_motion_size": 0,
                "category": category,
                "motions": k,
                "sequences": int(inside.sum()),
            }
            for part, errors in (
                ("train", result.train[:, inside]),
                ("test", result.test[:, inside]),
            ):
                row[f"{part}_average"] = float(errors.mean())
                row[f"{part}_median"] = float(np.median(errors, axis=1).mean())
            row["test_sd"] = float(errors.mean(axis=1).std(ddof=1)) if len(errors) > 1 else 0.0
            rows.append(row)
    return rows


def worst(benchmark: Benchmark, result: Result, n: int = N_WORST) -> list[dict[str, Any]]:
    """Return the worst sequences by mean test error, and the errors of their best candidates."""
    mean = result.test.mean(axis=0)
    best = np.min(
        [[100.0 * one.known_errors.min() for one in sets] for sets in benchmark.sets.values()],
        axis=0,
    )
    order = np.argsort(-mean, kind="stable")[:n]
    return [
        {"sequence": benchmark.names[i], "error": float(mean[i]), "best_candidate": float(best[i])}
        for i in order
    ]


def print_results(rows: Sequence[dict[str, Any]]) -> None:
    """Print a line for each method.

    A line contains the mean training error, the mean test error and its standard deviation over the
    partitions, and the mean test error for each number of motions.
    """
    lines = []
    for method in dict.fromkeys(r["method"] for r in rows):
        mine = {(r["category"], r["motions"]): r for r in rows if r["method"] == method}
        every = mine["all", "all"]
        by_number = [
            mine[key]["test_average"] for key in mine if key[0] == "all" and key[1] != "all"
        ]
        lines.append(
            [method, 0, every["train_average"], every["test_average"], every["test_sd"], *by_number]
        )
    numbers = [f"{k} motions" for k in dict.fromkeys(r["motions"] for r in rows) if k != "all"]
    heads = ["method", "min motion", "train", "test", "sd", *numbers]
    print_table("misclassification in percent, ten folds by video", heads, lines)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the full table in Markdown, with one line for each method and group."""
    keys = ["method", "min_motion_size", "category", "motions"]
    numbers = ["train_average", "train_median", "test_average", "test_median", "test_sd"]
    heads = [
        "method",
        "min motion",
        "category",
        "motions",
        "train average",
        "train median",
        "test average",
        "test median",
        "sd",
    ]
    return markdown_table(
        heads, ([*(row[k] for k in keys), *(f"{row[k]:.2f}" for k in numbers)] for row in rows)
    )


def record_of(
    data: Path, benchmark: Benchmark, results: Sequence[Result], partitions: int
) -> dict[str, Any]:
    """Return the JSON object that ``annealed motion evaluate --json`` prints.

    It contains the settings and the rows of the table.
    """
    seconds = benchmark.seconds
    settings = {
        "data": str(data),
        "sequences": len(seconds),
        "videos": len(set(benchmark.videos.tolist())),
        "partitions": partitions,
        "folds": N_FOLDS,
        "features": len(benchmark.features.get_feature_names_out()),
        "seconds": {
            "all": float(seconds.sum()),
            "per_sequence_median": float(np.median(seconds)),
            "per_sequence_greatest": float(seconds.max()),
        },
        "worst": {f"{r.method}, 0": worst(benchmark, r) for r in results},
    }
    return {"name": "motion evaluate", "settings": settings, "rows": table_rows(benchmark, results)}


def write_report(
    folder: Path,
    record: dict[str, Any],
    benchmark: Benchmark,
    results: Sequence[Result],
    sequences: Sequence[TrackSequence],
) -> None:
    """Write the tables, the results and the figures of a report.

    The files are ``table.md``, ``results.json``, ``cumulative.png``, and figures of the sequences
    with the largest test errors of the last FSA method.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    text = "# Motion segmentation: misclassification in percent\n\n" + markdown(record["rows"])
    for result in results:
        text += f"\n## Worst sequences: {result.method}, min motion 0\n\n"
        lines = [
            (w["sequence"], f"{w['error']:.2f}", f"{w['best_candidate']:.2f}")
            for w in worst(benchmark, result)
        ]
        text += markdown_table(["sequence", "mean test error", "best candidate"], lines)
        if result.chosen:
            counts = Counter(
                json.dumps({k: v for k, v in row.items() if k != "inner_error"})
                for row in result.chosen
            )
            chosen = "".join(f"* {n}: {choice}\n" for choice, n in counts.most_common())
            text += f"\nChosen, and in how many rounds:\n\n{chosen}"
    write_texts(folder, {"table.md": text, "results.json": record})
    # Rankings by a part of the features appear only in the table; in the figure, they would hide
    # the others.
    drawn = [
        r for r in results if not any(part in r.method for part in (", likelihood", ", prior"))
    ]
    save_figure(folder / "cumulative.png", cumulative_figure(benchmark, drawn), dpi=120)
    fsa = [r for r in results if r.method.startswith("FSA")]
    shown = fsa[-1] if fsa else results[-1]
    for entry in worst(benchmark, shown, 6):
        i = benchmark.names.index(entry["sequence"])
        draw_worst(
            folder / f"worst_{entry['sequence']}.png", benchmark, i, sequences[i], shown.test[:, i]
        )


def cumulative_figure(benchmark: Benchmark, results: Sequence[Result]) -> "Figure":
    """Plot the cumulative distributions of the errors, as in Figure 9 of Barbu et al. (2014).

    There is one panel for each number of motions.
    """
    from matplotlib.figure import Figure

    numbers = np.unique(benchmark.n_motions)
    methods = dict.fromkeys(r.method for r in results)
    colours = {
        method: f"C{i}" if i < 10 else f"{0.08 * (i - 9):.2f}" for i, method in enumerate(methods)
    }
    figure = Figure(figsize=(6.0 * len(numbers) + 4.0, 4.5), layout="constrained")
    for axes, k in zip(np.ravel(figure.subplots(1, len(numbers))), numbers):
        for result in results:
            errors = np.sort(result.test[:, benchmark.n_motions == k].ravel())
            shares = np.arange(1, len(errors) + 1) / len(errors)
            axes.step(
                errors,
                shares,
                where="post",
                label=result.method,
                color=colours[result.method],
                linewidth=1,
            )
        axes.set(
            title=f"{k} motions",
            xlabel="misclassification (%)",
            ylabel="share of sequences",
            xlim=(0, 50),
            ylim=(0.8, 1.005),
        )
    figure.legend(
        *axes.get_legend_handles_labels(),
        fontsize=6 if len(results) > 8 else 9,
        loc="outside right center",
    )
    return figure


def draw_worst(
    path: Path, benchmark: Benchmark, index: int, sequence: TrackSequence, errors: np.ndarray
) -> None:
    """Draw the ground truth, predictions and best candidate of a sequence in its last frame.

    ``errors`` contains the errors of the predictions in percent.
    """
    from matplotlib.figure import Figure

    # The candidates refer to the points as shuffled by prepare().
    sequence = sequence.shuffled(index)
    assert sequence.labels is not None
    truth = by_size(sequence.labels)
    known: dict[float, np.ndarray] = {}
    for one in (sets[index] for sets in benchmark.sets.values()):
        for candidate, error in zip(one.candidates, one.known_errors):
            known.setdefault(round(100 * float(error), 6), candidate.labels)
    counts = Counter(round(float(e), 6) for e in errors)
    panels = [("truth", truth)]
    panels += [
        (f"prediction in {n} of {len(errors)}: {e:.1f} %", known[e])
        for e, n in counts.most_common(2)
        if e in known
    ]
    panels.append((f"best candidate: {min(known):.1f} %", known[min(known)]))
    figure = Figure(figsize=(4.0 * len(panels), 3.4), layout="constrained")
    figure.suptitle(sequence.name)
    for axes, (title, labels) in zip(np.ravel(figure.subplots(1, len(panels))), panels):
        axes.scatter(
            *sequence.tracks[-1].T, c=matched(labels, truth), s=6, cmap="tab10", vmin=0, vmax=9
        )
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
        axes.invert_yaxis()
    save_figure(path, figure)


def matched(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Permute labels so that they agree best with the ground truth.

    The same motion then has the same colour in all figures.

    Examples
    --------
    >>> matched(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0]))
    array([0, 0, 1, 1])
    """
    labels = by_size(labels)
    counts = np.zeros((max(labels.max(), truth.max()) + 1,) * 2, np.int64)
    np.add.at(counts, (labels, truth), 1)
    return linear_sum_assignment(-counts)[1][labels]
