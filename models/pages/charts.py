"""Charts of a report as SVG text, drawn without a plotting library."""

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

BLUE, GREY, ORANGE = "#2f6db3", "#8a8f98", "#d9822b"
_OTHERS = (ORANGE, GREY)  # colours of other models
# keeps labels readable on top of lines
_HALO = 'stroke="white" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
_TEXT = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'


class Axes:
    """Axes with ticks, which map data to pixels.

    Parameters
    ----------
    x, y : tuple of float
        Ranges of the data.
    width, height : int
        Size of the chart in pixels.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        width: int = 640,
        height: int = 300,
        left: int = 56,
    ):
        self.width, self.height = width, height
        self.left, self.right, self.top, self.bottom = left, width - 16, 14, height - 44
        self.x_range, self.y_range = _widened(*x), _widened(*y)
        self.parts: list[str] = []
        self.add = self.parts.append

    def at(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Convert data points to pixel coordinates."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        across = self.left + (np.asarray(x, float) - x0) / (x1 - x0) * (self.right - self.left)
        down = self.bottom - (np.asarray(y, float) - y0) / (y1 - y0) * (self.bottom - self.top)
        return across, down

    def frame(self, x_label: str, y_label: str, x_ticks: Sequence[float] | None = None) -> None:
        """Add ticks, grid lines and labels."""
        for value in ticks(*self.y_range):
            down = float(self.at(0, value)[1])
            self.add(
                f'<line x1="{self.left}" x2="{self.right}" y1="{down:.1f}" y2="{down:.1f}" '
                'stroke="#e3e6ea"/>'
            )
            self.add(_words(self.left - 6, down + 4, number(value), "end"))
        for value in ticks(*self.x_range) if x_ticks is None else x_ticks:
            across = float(self.at(value, 0)[0])
            self.add(
                f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{self.bottom}" '
                f'y2="{self.bottom + 4}" stroke="#8a8f98"/>'
            )
            self.add(_words(across, self.bottom + 17, number(value), "middle"))
        self.add(
            f'<path d="M{self.left} {self.top}V{self.bottom}H{self.right}" fill="none" '
            'stroke="#8a8f98"/>'
        )
        self.add(_words((self.left + self.right) / 2, self.height - 8, x_label, "middle"))
        middle = (self.top + self.bottom) / 2
        self.add(
            f'<g transform="translate(12 {middle:.0f}) '
            f'rotate(-90)">{_words(0, 0, y_label, "middle")}</g>'
        )

    def line(
        self, x: npt.ArrayLike, y: npt.ArrayLike, colour: str = BLUE, dashes: str = ""
    ) -> None:
        """Add a line through points."""
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(*self.at(x, y)))
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.add(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>'
        )

    def svg(self, title: str) -> str:
        """Return the chart as SVG."""
        label = escape(title)
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
        return (
            f'<svg {size} role="img" aria-label="{label}"><title>{label}</title>'
            f"{''.join(self.parts)}</svg>"
        )


def score_chart(
    sizes: Sequence[int],
    mean: np.ndarray,
    error: np.ndarray,
    chosen: int,
    lines: dict[str, float],
    measure: str,
) -> str:
    """Return a chart of the score against the number of columns.

    It shows the mean and standard error over the folds, the chosen number of columns, and
    horizontal lines for the scores of other models.
    """
    values = [*(mean - error), *(mean + error), *lines.values()]
    axes = Axes((min(sizes), max(sizes)), (min(values), max(values)))
    axes.frame("number of columns", measure)
    for value, colour in zip(lines.values(), _OTHERS):
        axes.line([axes.x_range[0], axes.x_range[1]], [value, value], colour, "6 4")
    (_, low), (across, high) = axes.at(sizes, mean - error), axes.at(sizes, mean + error)
    for a, b, c in zip(across, low, high):
        axes.add(
            f'<line x1="{a:.1f}" x2="{a:.1f}" y1="{b:.1f}" y2="{c:.1f}" stroke="{BLUE}" '
            'stroke-width="1"/>'
        )
    axes.line(sizes, mean)
    place = list(sizes).index(chosen)
    for i, (a, b) in enumerate(zip(*axes.at(sizes, mean))):
        axes.add(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{6 if i == place else 3}" fill="{BLUE}" '
            'stroke="white"/>'
        )
    axes.add(f"<g {_HALO}>")
    for (name, value), colour in zip(lines.items(), _OTHERS):
        across, down = axes.at(axes.x_range[1], value)
        hidden = 0 <= down - axes.at(sizes[-1], mean[-1])[1] < 24  # the curve overlaps the label
        axes.add(
            _words(float(across) - 4, float(down) + (15 if hidden else -5), name, "end", colour)
        )
    a, b = axes.at(chosen, mean[place])
    axes.add(_words(float(a) + 8, float(b) + 18, f"{chosen} selected", "start", BLUE) + "</g>")
    return axes.svg(f"{measure} against the number of columns")


def effect_chart(
    names: Sequence[str], effects: Sequence[float], stability: Sequence[float | None]
) -> str:
    """Return a chart of the effects of the columns.

    For each column, a bar shows its effect, and a dot shows the fraction of random halves of the
    rows for which it is selected.
    """
    row, left = 24, 12 + 7 * min(30, max(len(short(name)) for name in names))
    axes = Axes(
        (0.0, max([*effects, 1e-12])),
        (0.0, 1.0),
        width=640,
        height=row * len(names) + 60,
        left=left,
    )
    axes.right -= 150
    for i, (name, effect, share) in enumerate(zip(names, effects, stability)):
        y = axes.top + row * i
        end = float(axes.at(effect, 0)[0])
        axes.add(_words(left - 8, y + 15, short(name), "end"))
        axes.add(
            f'<rect x="{left}" y="{y + 3}" width="{max(end - left, 1):.1f}" '
            f'height="{row - 8}" fill="{BLUE}"/>'
        )
        axes.add(_words(end + 5, y + 15, f"{effect:.3g}", "start"))
        if share is not None:
            dot = axes.right + 60 + 80 * share
            axes.add(
                f'<line x1="{axes.right + 60}" x2="{axes.right + 140}" y1="{y + 11}" '
                f'y2="{y + 11}" stroke="#e3e6ea"/>'
            )
            axes.add(f'<circle cx="{dot:.1f}" cy="{y + 11}" r="5" fill="{ORANGE}"/>')
    base = axes.top + row * len(names) + 16
    axes.add(_words(left, base, "effect (standard deviation)", "start"))
    axes.add(_words(axes.right + 60, base, "0", "middle"))
    axes.add(_words(axes.right + 140, base, "1", "middle"))
    axes.add(_words(axes.right + 144, base + 16, "share of halves", "end", ORANGE))
    return axes.svg("effect and stability of the selected columns")


def curve_chart(
    x: Sequence[float],
    curves: Sequence[Sequence[float]],
    name: str,
    y_range: tuple[float, float],
    rows: Sequence[int] = (),
) -> str:
    """Return a small chart of the partial effect of a column.

    The chart has one line per output, above a histogram of the column.
    """
    axes = Axes((min(x), max(x)), y_range, width=300, height=190, left=52)
    edges = axes.at(np.linspace(min(x), max(x), len(rows) + 1), 0)[0]
    for left, right, count in zip(edges, edges[1:], rows):
        high = 0.3 * (axes.bottom - axes.top) * count / max(*rows, 1)
        axes.add(
            f'<rect x="{left:.1f}" y="{axes.bottom - high:.1f}" width="{right - left:.1f}" '
            f'height="{high:.1f}" fill="#e3e6ea"/>'
        )
    axes.frame(name, "adds to the score", x_ticks=ticks(min(x), max(x), 4))
    for colour, curve in zip([BLUE, ORANGE, "#3c9a5f", "#a14fb0", "#b33a3a", GREY] * 10, curves):
        axes.line(x, curve, colour)
    return axes.svg(f"response to {name}")


def level_chart(
    levels: Sequence[str], steps: Sequence[float], name: str, y_range: tuple[float, float]
) -> str:
    """Return a small bar chart of the contributions of the levels of a category."""
    axes = Axes((-0.5, len(levels) - 0.5), y_range, width=300, height=190, left=52)
    axes.x_range = (-0.5, len(levels) - 0.5)
    axes.frame(short(name), "adds to the score", x_ticks=())
    zero = float(axes.at(0, 0)[1])
    wide = min(40.0, 0.7 * (axes.right - axes.left) / len(levels))
    for i, (level, step) in enumerate(zip(levels, steps)):
        a, b = (float(v) for v in axes.at(i, step))
        top, size = min(b, zero), max(abs(b - zero), 1.5)
        axes.add(
            f'<rect x="{a - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" '
            f'height="{size:.1f}" fill="{BLUE}"/>'
        )
        if i % -(-len(levels) // 8) == 0:  # more labels would overlap
            axes.add(
                _words(a, axes.bottom + 16, short(level, max(60 // len(levels), 5) + 2), "middle")
            )
    return axes.svg(f"levels of {name}")


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers within a range, for the ticks of an axis.

    Examples
    --------
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    step = 10.0 ** np.floor(np.log10(rough))
    step *= next((m for m in (1, 2, 5) if m * step >= rough * 0.99), 10)
    values = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    return [float(round(v, 12)) + 0.0 for v in values]  # avoids -0


def number(value: float) -> str:
    """Format a number as short text."""
    return f"{value:.6g}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")


def short(name: str, n_max: int = 30) -> str:
    """Shorten a name to a maximum length."""
    return name if len(name) <= n_max else name[: max(1, n_max - 1)] + "…"


def _words(x: float, y: float, words: str, anchor: str, colour: str = "") -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_TEXT}{fill}>{escape(words)}</text>'
    )


def _widened(low: float, high: float) -> tuple[float, float]:
    if not np.isfinite(low) or not np.isfinite(high):
        return 0.0, 1.0
    margin = 0.05 * (high - low) or 0.5 * abs(low) or 0.5
    return low - margin, high + margin
