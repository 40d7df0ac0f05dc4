"""Tasks that process the tiles of a Dask array, and the coding of tile values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from dask.delayed import Delayed, delayed

from ..objective.base import Loss
from .base import Design
from .dense import DenseDesign, first_sums
from .kernels import ROWS
from .piecewise_linear import PiecewiseDesign, encode
from .responses import add_ranges

FAN_IN = 16  # number of partial sums added by one task
SMALL_BYTES = 1 << 20  # larger objects are sent to the workers once, not with every task


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """Return a delayed function call, which runs on a worker."""
    return delayed(function, pure=False, traverse=False)(*arguments)


def shared(value: Any, n_bytes: int) -> Any:
    """Prepare an argument that several tasks share.

    A small argument is embedded in each task, so that the task depends only on its tile and runs
    where the tile is stored.
    """
    return value if n_bytes <= SMALL_BYTES else delayed(value, pure=False, traverse=False)


@dataclass
class Coding:
    """Moments of the columns of a tile and, for piecewise-linear responses, their knots.

    Parameters
    ----------
    mean, inv : ndarray or None
        Means and inverse scales of the columns; None before the first pass over the data.
    knots : ndarray of shape (m, n_bins + 1) or None
        Knots of each column; None for linear responses.
    even, missing : bool
        Whether the knots are equidistant, and whether the data contain NaN.
    dtype : dtype
        Precision of the values.
    """

    dtype: Any
    mean: Any = None
    inv: Any = None
    knots: Any = None
    even: bool = True
    missing: bool = False

    def __getitem__(self, part: slice | np.ndarray) -> "Coding":
        some: Any = {
            name: None if (v := getattr(self, name)) is None else v[part]
            for name in ("mean", "inv", "knots")
        }
        return replace(self, **some)

    @property
    def nbytes(self) -> int:
        """Total size of the arrays in bytes."""
        return sum(v.nbytes for v in (self.mean, self.inv, self.knots) if v is not None)

    def tile(self, values: np.ndarray, n_rows: int, remaining: np.ndarray | None = None) -> Design:
        """Create a design from the ``remaining`` columns of a tile (by default, all columns).

        ``values`` contains raw values or, if it is three-dimensional, codes.
        """
        if self.knots is None:
            return DenseDesign(
                np.asarray(values), None, moments=(self.mean, self.inv), columns=remaining
            )
        known: Any = {"moments": (self.mean, self.inv), "features": remaining, "knots": self.knots}
        return PiecewiseDesign(
            self.encoded(values),
            n_rows,
            self.knots.shape[1] - 1,
            self.missing,
            None,
            self.dtype,
            **known,
        )

    def encoded(self, values: np.ndarray) -> np.ndarray:
        """Return the codes of the values, or the values themselves for linear responses."""
        if self.knots is None or values.ndim == 3:
            return np.asarray(values)
        codes = np.zeros((-(-len(values) // ROWS), values.shape[1], ROWS), np.uint8)
        encode(np.asarray(values), self.knots, self.even, codes)
        return codes


# coding of a tile's columns, their coefficients, and the remaining columns
State: TypeAlias = tuple[Coding, Any, np.ndarray | None]
Rows: TypeAlias = tuple[np.ndarray, np.ndarray]  # targets and weights
# the loss, the intercept and a factor for the weights
At: TypeAlias = tuple[Loss, np.ndarray, float]

# -- tasks on one tile -----------------------------------------------------------------------------


def ranges(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Compute the minimum and maximum of each column, and whether any value is NaN."""
    low = np.full(values.shape[1], np.inf, values.dtype)
    high = -low
    add_ranges(values, weight, low, high)
    return low, high, bool(np.isnan(values.min()))


def widest(*parts: tuple[np.ndarray, np.ndarray, bool]) -> tuple[np.ndarray, np.ndarray, bool]:
    """Combine the ranges of several tiles."""
    return (
        np.min([p[0] for p in parts], axis=0),
        np.max([p[1] for p in parts], axis=0),
        any(p[2] for p in parts),
    )


def first_read(
    values: np.ndarray, columns: Coding, weight: np.ndarray, residual: np.ndarray
) -> Any:
    """Compute the sums from which the moments and the first gradient are derived.

    For linear responses, values are taken relative to the first row of the tile. For
    piecewise-linear responses, the sums are histograms of codes, of shape (1 + n_outputs, m, 256).
    """
    if columns.knots is None:
        values = np.asarray(values)
        shift = values[0].copy()
        sums = [first_sums(values, shift, weight * (i == 0), r) for i, r in enumerate(residual.T)]
        return (
            shift,
            weight.sum(),
            residual.sum(axis=0),
            sums[0][0],
            sums[0][1],
            np.stack([s[2] for s in sums]),
        )
    tile: Any = columns.tile(values, len(weight))
    return np.stack([tile._histograms(r) for r in (weight, *residual.T)])


def add_first_reads(*parts: Any) -> Any:
    """Add the sums of several tiles, relative to the first row of the first tile."""
    if isinstance(parts[0], np.ndarray):
        return add(*parts)
    shift, weight, rest, total, square, product = parts[0]
    total, square, product = total.copy(), square.copy(), product.copy()
    for other, w, r, t, s, p in parts[1:]:
        offset = other.astype(np.float64) - shift
        square += s + offset * (2.0 * t + w * offset)
        total += t + w * offset
        product += p + np.multiply.outer(r, offset)
        weight, rest = weight + w, rest + r
    return shift, weight, rest, total, square, product


def scores(values: np.ndarray, state: State, n_rows: int) -> np.ndarray:
    """Compute the partial scores of the rows of a tile.

    ``state`` contains the coding, coefficients and remaining columns of the tile.
    """
    columns, coef, remaining = state
    return columns.tile(values, n_rows, remaining).scores(coef)


def gradient(values: np.ndarray, state: State, slopes: tuple[np.ndarray, ...]) -> np.ndarray:
    """Compute the gradient for the columns of a tile, given the residuals of its rows."""
    columns, _, remaining = state
    return columns.tile(values, len(slopes[0]), remaining).gradient(slopes[0])


def with_tile(pair: Rows, _: object) -> Rows:
    """Return targets and weights unchanged.

    A Dask task calls this function to copy them to the worker that stores their tile.
    """
    return pair


def residual_of_rows(
    rows: Rows, at: At, *partial: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Compute the residuals, their sum and the loss for a row of tiles, given partial scores."""
    y, weight = rows
    loss, intercept, scale = at
    value, residual = loss.value_and_gradient(y, add(*partial) + intercept, weight * scale)
    return residual, residual.sum(axis=0), value


def totals(*slopes: tuple[np.ndarray, np.ndarray, float]) -> tuple[Any, float]:
    """Sum the residual sums and the losses over several rows of tiles."""
    return sum(s[1] for s in slopes), sum(s[2] for s in slopes)


def fused(
    values: np.ndarray, state: State, rows: Rows, at: At
) -> tuple[np.ndarray, np.ndarray, float]:
    """Compute the gradient, residual sum and loss of a tile that contains whole rows."""
    (columns, coef, remaining), (y, weight), (loss, intercept, scale) = state, rows, at
    return columns.tile(values, len(y), remaining).scores_and_gradient(
        coef, intercept, loss, y, weight * scale
    )


def covariance(values: np.ndarray, state: State, rows: Rows, scale: float) -> np.ndarray:
    """Multiply the second-moment matrix of a tile that contains whole rows by a direction."""
    (columns, direction, remaining), (_, weight) = state, rows
    return columns.tile(values, len(weight), remaining).covariance(direction, weight * scale)


def add(*parts: Any) -> Any:
    """Add the results of several tasks: numbers, arrays, or tuples of either."""
    if isinstance(parts[0], tuple):
        return tuple(add(*some) for some in zip(*parts))
    total = parts[0].copy() if isinstance(parts[0], np.ndarray) else parts[0]
    for part in parts[1:]:
        total += part
    return total


def join(columns: Coding, positions: Sequence[np.ndarray], *tiles: np.ndarray) -> np.ndarray:
    """Concatenate selected columns of adjacent tiles, as codes for piecewise-linear responses."""
    chosen = [
        v.T.take(k, axis=0).T if v.ndim == 2 and v.flags.f_contiguous else v.take(k, axis=1)
        for v, k in zip(map(np.asarray, tiles), positions)
    ]
    return columns.encoded(chosen[0] if len(chosen) == 1 else np.concatenate(chosen, axis=1))


def reduced(parts: list[Delayed], add: Callable[..., Any] = add) -> Delayed:
    """Sum the results of tasks with a tree of tasks, in a fixed order."""
    while len(parts) > 1:
        parts = [task(add, *parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]
