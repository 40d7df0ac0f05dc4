"""Figure 2 of Liu et al. (2014): errors by the number of sensors, and of each activity."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..tables.sensors import FEATURE_METHODS, sensors_features
from .panels import panels

_SENSORS = range(7, 26)
_COMPARED = (10, 15)  # sensors of the panel of activities, as in the paper


def by_sensors(data_dir=None, *, runs: int = 10, **options: Any) -> Figure:
    """Figure 2 of Liu et al. (2014) on simulated homes: the smallest test error by the maximum
    number of sensors, with a standard error over the homes; and the error of each activity, the
    most frequent first, with 10 and with 15 sensors selected by FoBa.
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
    """The row of a method and home with the smallest error among those of at most n sensors; empty
    if there is none.
    """
    matching = (
        row
        for row in rows
        if row["method"] == method and row["home"] == home and row["sensors"] <= n
    )
    return min(matching, key=lambda row: row["error"], default={})
