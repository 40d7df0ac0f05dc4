"""Figure of the errors by number of sensors and by activity, from Liu et al. (2014)."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..tables.sensors import FEATURE_METHODS, sensors_features
from .panels import panels

_SENSORS = range(7, 26)
_COMPARED = (10, 15)  # numbers of sensors in the panel of activities, as in the paper


def by_sensors(data_dir=None, *, runs: int = 10, **options: Any) -> Figure:
    """Draw Figure 2 of Liu et al. (2014) on simulated homes.

    One panel shows the smallest test error by the maximum number of sensors, with the standard
    error over the homes. The other shows the error of each activity, most frequent first, with 10
    and 15 sensors selected by FoBa.
    """
    rows = sensors_features(runs, **options)["rows"]
    figure, (left, right) = panels(10, 3.6, 2)
    for method in FEATURE_METHODS:
        errors = np.array(
            [
                [best(rows, method, home, n).get("error", np.nan) for n in _SENSORS]
                for home in range(runs)
            ]
        )
        spread = errors.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else None
        left.errorbar(_SENSORS, errors.mean(axis=0), spread, label=method, capsize=2, marker="o")
    left.set(xlabel="maximum number of sensors", ylabel="test error")
    left.legend(frameon=False)
    for shift, n in zip((-0.2, 0.2), _COMPARED):
        models = [best(rows, "FoBa", home, n) for home in range(runs)]
        errors = np.mean([model["by_activity"] for model in models], axis=0)
        right.bar(np.arange(1, len(errors) + 1) + shift, errors, 0.4, label=f"{n} sensors")
    right.set(xlabel="activity, the most frequent first", ylabel="test error")
    right.legend(frameon=False)
    return figure


def best(rows: list[dict[str, Any]], method: str, home: int, n: int) -> dict[str, Any]:
    """Return the row of a method and home with the smallest error among those with at most n
    sensors; empty if there is none.
    """
    matching = (
        row
        for row in rows
        if row["method"] == method and row["home"] == home and row["sensors"] <= n
    )
    return min(matching, key=lambda row: row["error"], default={})
