"""Figure of the errors by number of sensors and by activity, from Liu et al. (2014)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..tables.sensors import FEATURE_METHODS, HOMES, sensors_features

_FEATURES = (10, 15, 20, 25, 30, 35, 40)  # numbers of features, of 7 to 20 sensors
_SENSORS = range(7, 21)
_COMPARED = (10, 15)  # numbers of sensors in the panel of activities, as in the paper


def by_sensors(data_dir=None, *, rows=None, runs: int = 10, **options: Any) -> Figure:
    """Draw Figure 2 of Liu et al. (2014) on simulated and public homes, or from stored ``rows``.

    One panel shows the smallest test error by the maximum number of sensors, with the standard
    error over the simulated homes. Another shows the error of each activity in these homes, most
    frequent first, with 10 and 15 sensors selected by FoBa, if the rows have these errors. There is
    one more panel of errors for each public home.
    """
    if rows is None:
        options = {"data_dir": data_dir, "sizes": _FEATURES, **options}
        sets = options.pop("sets", list(HOMES))
        rows = sensors_features(runs, **options)["rows"]
        rows += sensors_features(sets=sets, **options)["rows"] if sets else []
    homes = list(dict.fromkeys(row["home"] for row in rows))
    simulated, sets = ([h for h in homes if isinstance(h, kind)] for kind in (int, str))
    by_activity = all("by_activity" in row for row in rows)
    figure = Figure(figsize=(13, 3.4 * (1 + bool(sets))), layout="constrained")
    grid = figure.add_gridspec(1 + bool(sets), 6)
    left = figure.add_subplot(grid[0, : 3 if by_activity else 6])
    for method in FEATURE_METHODS:
        errors = np.array([_errors(rows, method, home, _SENSORS) for home in simulated])
        spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else None
        left.errorbar(_SENSORS, errors.mean(axis=0), spread, label=method, capsize=2, marker="o")
    left.set(title=f"{len(simulated)} simulated homes")
    if by_activity:
        right = figure.add_subplot(grid[0, 3:])
        for shift, n in zip((-0.2, 0.2), _COMPARED):
            models = [best(rows, "FoBa", home, n) for home in simulated]
            errors = np.mean([model["by_activity"] for model in models], axis=0)
            right.bar(np.arange(1, len(errors) + 1) + shift, errors, 0.4, label=f"{n} sensors")
        right.set(xlabel="activity, the most frequent first", ylabel="test error")
        right.set(title="FoBa, simulated homes")
        right.legend(frameon=False)
    panels = [left]
    for i, home in enumerate(sets):
        used = [row["sensors"] for row in rows if row["home"] == home]
        numbers = range(min(used), max(used) + 1)
        panels.append(figure.add_subplot(grid[1, 2 * i : 2 * i + 2]))
        for method in FEATURE_METHODS:
            panels[-1].plot(numbers, _errors(rows, method, home, numbers), "o-", label=method)
        panels[-1].set(title=home)
    for ax in panels:
        ax.set(xlabel="maximum number of sensors", ylabel="test error")
        ax.legend(frameon=False)
    return figure


def _errors(
    rows: list[dict[str, Any]], method: str, home: int | str, numbers: Sequence[int]
) -> list[float]:
    """Return the smallest error of a method in a home by the maximum number of sensors."""
    return [best(rows, method, home, n).get("error", np.nan) for n in numbers]


def best(rows: list[dict[str, Any]], method: str, home: int | str, n: int) -> dict[str, Any]:
    """Return the row of a method and home with the smallest error among those with at most n
    sensors; empty if there is none.
    """
    matching = (
        row
        for row in rows
        if row["method"] == method and row["home"] == home and row["sensors"] <= n
    )
    return min(matching, key=lambda row: row["error"], default={})
