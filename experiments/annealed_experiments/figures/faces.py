"""Figures of the precision and recall of face keypoints."""

from typing import Any

from annealed.pipelines.keypoints.evaluate import TOLERANCES
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..faces.curves import curves_of, keypoints_of, modes_of


def learners(data_dir=None, *, runs: int = 1, **options: Any) -> Figure:
    """Draw the curves of learners on the same windows (Figure 5 of Barbu et al. (2014), Figure 7 of
    Barbu et al. (2017)); ``runs`` is not used.
    """
    return _curves(curves_of(data_dir, **options))


def modes(data_dir=None, *, runs: int = 1, **options: Any) -> Figure:
    """Draw the curves of the search modes (Figure 7 of Barbu et al. (2014)); ``runs`` is not
    used."""
    return _curves(modes_of(data_dir, **options))


def keypoints(data_dir=None, *, runs: int = 1, **options: Any) -> Figure:
    """Draw the curves of all keypoints within 10% of the inter-eye distance (Figure 7 of Barbu et
    al. (2017)); ``runs`` is not used."""
    cells = keypoints_of(data_dir, **options)
    names = list(dict.fromkeys(cell["data"] for cell in cells))
    figure = Figure(figsize=(10, 3.2 * -(-len(names) // 3)), layout="constrained")
    grid = figure.subplots(-(-len(names) // 3), 3, squeeze=False, sharex=True, sharey=True)
    for ax, name in zip(grid.ravel(), names):
        _panel(ax, cells, name, TOLERANCES[-1])
        ax.set_title(name, fontsize=10)
    return figure


def _panel(ax: Axes, cells: list[dict[str, Any]], keypoint: str, at: float) -> None:
    """Draw the curve of each method for a keypoint at a tolerance, in the same colours for all
    keypoints."""
    methods = list(dict.fromkeys(cell["method"] for cell in cells))
    for cell in (cell for cell in cells if cell["data"] == keypoint):
        curve = cell["curves"][str(at)]
        ax.plot(
            [0.0, *curve["recall"]],
            [1.0, *curve["precision"]],
            label=f"{cell['method']}, AP {curve['ap']:.3f}",
            color=f"C{methods.index(cell['method'])}",
        )
    ax.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="recall", ylabel="precision")
    ax.grid(alpha=0.3)
    ax.legend(loc="lower left", fontsize=8)


def _curves(cells: list[dict[str, Any]]) -> Figure:
    """Draw a row of panels per keypoint and a column per tolerance."""
    keypoints = list(dict.fromkeys(cell["data"] for cell in cells))
    figure = Figure(figsize=(10, 4.5 * len(keypoints)), layout="constrained")
    for axes, keypoint in zip(
        figure.subplots(len(keypoints), 2, squeeze=False), keypoints, strict=True
    ):
        for ax, at in zip(axes, TOLERANCES, strict=True):
            _panel(ax, cells, keypoint, at)
            ax.set_title(
                f"{keypoint}, within {100 * at:.0f}% of the inter-eye distance", fontsize=10
            )
    return figure
