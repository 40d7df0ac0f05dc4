"""Tables and figures of activity recognition in homes."""

from pathlib import Path
from typing import Any

import numpy as np

from ...models.files import write_texts
from ...models.sensors.features import SensorMinutes
from ..common.outputs import save_figure
from ..console import markdown_table, print_table
from .evaluate import Prediction

REPORT_FILES = ("results.json", "table.md", "sensors.png", "day_*.png")
_STYLES = {"group lasso": "--", "L1": "--"}  # lines of the penalised methods
_HEADS = (
    "method",
    "sensors",
    "error",
    "95% interval",
    "class-averaged",
    "without idle",
    "class-averaged",
)


def table_lines(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Return the cells of a table.

    The columns are the method, the number of sensors, the error and its interval, the
    class-averaged error, and both errors excluding idle minutes. Errors are in percent.
    """
    lines: list[list[Any]] = []
    for row in rows:
        low, high = (100 * value for value in row["error_interval"])
        numbers = [
            f"{100 * row[key]:.1f}"
            for key in ("error", "class_error", "error_active", "class_error_active")
        ]
        lines.append(
            [
                row["method"],
                row["sensors"] or "all",
                numbers[0],
                f"{low:.1f} to {high:.1f}",
                *numbers[1:],
            ]
        )
    return lines


def print_results(title: str, rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    print_table(
        f"{title}: error in percent of the minutes of held-out days", _HEADS, table_lines(rows)
    )


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return Markdown with the table, the errors of each activity, and the selected sensors."""
    names = sorted({name for row in rows for name in row["per_activity"]})
    lines: list[list[Any]] = []
    chosen: list[list[Any]] = []
    for row in rows:
        shares = [f"{100 * row['per_activity'].get(name, np.nan):.0f}" for name in names]
        lines.append([row["method"], row["sensors"] or "all", *shares])
        if "chosen" in row:
            frequent = list(row["chosen"].items())[: 2 * row["sensors"]]
            chosen.append(
                [row["method"], row["sensors"], ", ".join(f"{name} ({n})" for name, n in frequent)]
            )
    tables = [
        markdown_table(_HEADS, table_lines(rows)),
        "Errors per activity, percent:\n\n" + markdown_table(["method", "sensors", *names], lines),
    ]
    if chosen:
        heading = "Sensors, and in how many folds they were selected:\n\n"
        tables.append(heading + markdown_table(["method", "sensors", "chosen"], chosen))
    return "\n".join(tables)


def write_report(
    folder: Path,
    record: dict[str, Any],
    minutes: SensorMinutes,
    baselines: list[Prediction],
    selections: list[Prediction],
) -> None:
    """Write ``results.json``, ``table.md`` and the plots of a report.

    The plots show the error against the number of sensors, and the days with the fewest and most
    errors.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    table = f"# {record['settings']['home']}\n\n" + markdown(record["rows"])
    write_texts(folder, {"results.json": record, "table.md": table})
    if selections:
        draw_sizes(folder / "sensors.png", record["rows"])
    best = next(one for one in baselines if one.method == "CRF")
    # at least half a day
    names = [day for day in np.unique(minutes.days) if (minutes.days == day).sum() > 720]
    share = {day: (best.labels != minutes.truth)[minutes.days == day].mean() for day in names}
    for day in dict.fromkeys(
        (min(share, key=share.__getitem__), max(share, key=share.__getitem__)) if share else ()
    ):
        rows = minutes.days == day
        draw_day(
            folder / f"day_{day}.png",
            minutes.times[rows],
            bands={"truth": minutes.truth[rows], "predicted": best.labels[rows]},
            title=f"{day}: {100 * share[day]:.1f}% of the minutes wrong",
        )


def draw_sizes(path: Path, rows: list[dict[str, Any]]) -> None:
    """Plot the error against the number of sensors, as in Figure 2 of Liu et al. (2014).

    Two errors are plotted: the overall proportion of misclassified minutes, and the mean of this
    proportion over the activities.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = [("error", "per minute"), ("class_error", "averaged over the activities")]
    full = next((row for row in rows if row["method"] == "CRF" and row["sensors"] is None), None)
    for axes, (key, title) in zip(np.ravel(figure.subplots(1, 2)), panels):
        for i, method in enumerate(
            dict.fromkeys(row["method"] for row in rows if row["sensors"] is not None)
        ):
            points = sorted((row["sensors"], row[key]) for row in rows if row["method"] == method)
            x, y = zip(*points, strict=True)
            style = ":" if method.endswith("shrunk") else _STYLES.get(method, "-")
            axes.plot(
                x,
                100 * np.array(y),
                style,
                marker="o",
                markersize=3,
                color=f"C{i % 10}",
                linewidth=1,
                label=method,
            )
        if full is not None:
            axes.axhline(100 * full[key], color="0.5", linewidth=0.8, label="all sensors")
        axes.set(xlabel="number of sensors", ylabel="error (%)", title=title, ylim=(0, None))
    figure.legend(*axes.get_legend_handles_labels(), fontsize=8, loc="outside right center")
    save_figure(path, figure)


def draw_day(path: Path, times: np.ndarray, bands: dict[str, np.ndarray], title: str) -> None:
    """Plot the activities of a day as coloured bands along a time axis."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    names = sorted({str(name) for labels in bands.values() for name in np.unique(labels)})
    # The strong half of the colour map comes first, since its neighbours are shades of one colour.
    colours = {
        name: colormaps["tab20"]((2 * i) % 20 + (i // 10) % 2) for i, name in enumerate(names)
    }
    hours = (times - times[0].astype("datetime64[D]")).astype("timedelta64[m]").astype(int) / 60.0
    figure = Figure(figsize=(11, 1.2 + 0.7 * len(bands)), layout="constrained")
    axes = figure.subplots()
    for i, labels in enumerate(bands.values()):
        begins = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
        ends = np.r_[begins[1:], len(labels)]
        spans = [(hours[a], (b - a) / 60.0) for a, b in zip(begins, ends, strict=True)]
        axes.broken_barh(
            spans, (-i - 0.42, 0.84), facecolors=[colours[str(labels[a])] for a in begins]
        )
    axes.set(
        title=title,
        xlabel="hour",
        xlim=(hours[0], hours[-1] + 1 / 60),
        yticks=[-i for i in range(len(bands))],
    )
    axes.set_yticklabels(list(bands))
    figure.legend(
        handles=[Patch(color=colours[name], label=name) for name in names],
        fontsize=8,
        loc="outside right center",
    )
    save_figure(path, figure)
