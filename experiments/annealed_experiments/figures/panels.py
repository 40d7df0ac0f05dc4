"""Helper functions for figures: panels in a row, and a curve for each label."""

from collections.abc import Iterable
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def panels(
    width: float,
    height: float,
    n: int = 1,
    *,
    layout: Literal["constrained", "tight"] = "constrained",
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of the given size in inches and its ``n`` panels in a row; ``shared`` are the
    shared axes of matplotlib's ``subplots``.
    """
    figure = Figure(figsize=(width, height), layout=layout)
    return figure, list(figure.subplots(1, n, squeeze=False, **shared)[0])


def curves(
    ax: Axes, points: Iterable[tuple[Any, float, float]], markers: str = "o", **style: Any
) -> None:
    """Draw a curve with markers through the points (label, x, y) of each label, in label order."""
    by_label: dict[Any, list[tuple[float, float]]] = {}
    for label, x, y in points:
        by_label.setdefault(label, []).append((x, y))
    for marker, (label, line) in zip(markers * len(by_label), by_label.items()):
        ax.plot(*zip(*line), label=label, marker=marker, **{"markersize": 3, **style})
