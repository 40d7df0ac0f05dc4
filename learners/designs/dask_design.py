"""Design for Dask arrays whose tiles of rows and columns stay on the workers.

The design implements section 2.2, "Large Scale Implementation", of Barbu et al. (2017). Every tile
is processed separately. Scores are summed over each row of tiles and gradients over each column of
tiles. The order is fixed, so neither lost workers nor the completion order of the tasks changes the
result. Whenever only a third of the stored columns remains, these columns are joined into tiles of
the previous size and persisted. Columns that fit into the memory of the client are loaded there.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from sklearn.utils import check_random_state

from ..objective.base import Loss
from ..sources.dask_matrix import DaskMatrix
from ..types import Seed
from . import dask_tasks as tasks
from .base import COMPACT_RATIO, moments
from .dask_tasks import Coding, reduced, shared, task
from .kernels import ROWS
from .out_of_core import OutOfCoreDesign, random_part
from .piecewise_linear import block_moments, evenly_spaced, hat_basis
from .responses import PiecewiseLinear, even_knots

# Default memory limit. Columns are sent to the client once they fit into half of it.
GATHER_BYTES = 512 << 20
# Adjacent tiles are joined up to this size, or up to the size of the largest tile in the data.
TILE_BYTES = 128 << 20
# Larger data are sent to the client only once one column in this many remains, since the transfer
# costs as much as several steps.
EASY_BYTES = 32 << 20
LEFT = 10


class DaskDesign(OutOfCoreDesign):
    """Design with one linear or piecewise-linear term per column of a Dask array.

    The chunks of the array, called tiles, can have any shape. Tasks run on the active
    ``distributed`` client, or else on Dask's default scheduler. Each annealing step creates one
    task per tile if the tiles contain whole rows. Otherwise, it creates two tasks per tile and two
    per row of tiles. Further tasks add up to sixteen partial sums each.

    Parameters
    ----------
    X : DaskMatrix
        Full matrix. Its ``memory_limit`` and ``subsample`` also apply to the design.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    response : PiecewiseLinear or None, default None
        Piecewise-linear response; None means that all terms are linear.
    random_state : int, RandomState or None, default None
        Random seed for subsampling.

    Attributes
    ----------
    tiles : list of list of Delayed
        Grid of tiles, which contain the values of X or their one-byte codes.
    parts : list of slice
        Range of features in each column of tiles.
    remaining : list of (ndarray or None)
        For each column of tiles, the indices of the stored columns that remain, or None if all
        remain. Once few columns remain, they are copied to new tiles.
    stored : int
        Number of columns stored in the tiles; 0 as long as these are the chunks of X.
    rows : list of slice
        Range of rows in each row of tiles.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39, 2017, section 2.2, "Large Scale Implementation".
    """

    _targets: Any = None  # targets already sent to the workers

    def __init__(
        self,
        X: DaskMatrix,
        sample_weight: np.ndarray,
        response: PiecewiseLinear | None = None,
        random_state: Seed = None,
    ):
        self.limit = GATHER_BYTES if X.memory_limit is None else X.memory_limit
        self.subsample, self.random = X.subsample, check_random_state(random_state)
        self.itemsize = X.dtype.itemsize if response is None else 1
        self.n_samples, self.n_features = X.shape
        self.n_all = self.n_features
        self.columns, self._pieces = np.arange(self.n_features), []
        self.tiles = [list(row) for row in X.array.to_delayed()]
        self.rows, self.parts = _slices(X.array.chunks[0]), _slices(X.array.chunks[1])
        self.remaining, self.stored = [None] * len(self.parts), 0
        self.largest = max(X.array.chunks[0]) * max(X.array.chunks[1]) * X.dtype.itemsize
        self.weight = sample_weight
        self.coding = Coding(X.dtype)
        if response is not None:
            self._find_knots(X, response)

    def _find_knots(self, X: DaskMatrix, response: PiecewiseLinear) -> None:
        n_bins = response.n_bins
        weights = [self.weight[rows] for rows in self.rows]
        ranges = [
            reduced(
                [
                    task(tasks.ranges, tiles[j], weight)
                    for tiles, weight in zip(self.tiles, weights)
                ],
                tasks.widest,
            )
            for j in range(len(self.parts))
        ]
        partial = dask.compute(*ranges)
        lines = even_knots(
            np.concatenate([r[0] for r in partial]), np.concatenate([r[1] for r in partial]), n_bins
        )
        if response.bins == "quantile":
            whole = X.array.rechunk({0: -1, 1: "auto"})
            weight = shared(self.weight, self.weight.nbytes)
            lines = np.concatenate(
                dask.compute(*[task(response.knots, t, weight) for t in whole.to_delayed()[0]])
            )
        missing = any(r[2] for r in partial)
        self.coding = replace(self.coding, knots=lines, even=evenly_spaced(lines), missing=missing)
        self.n_bins, self.n_knots, self.width = n_bins, n_bins + 1, n_bins + 1 + missing
        self.basis = hat_basis(n_bins, missing)

    @property
    def knots(self) -> np.ndarray | None:
        """Knots of shape (n_features, n_bins + 1); None for linear responses."""
        return self.coding.knots

    def _first_read(self, residual: np.ndarray) -> np.ndarray:
        results = []
        for j, part in enumerate(self.parts):
            coding = shared(self.coding[part], self.coding[part].nbytes)
            sums = [
                task(tasks.first_read, t[j], coding, self.weight[r], residual[r])
                for t, r in zip(self.tiles, self.rows)
            ]
            results.append(reduced(sums, tasks.add_first_reads))
        partial = dask.compute(*results)
        if self.knots is None:
            shift, total, square = (np.concatenate([f[i] for f in partial]) for i in (0, 3, 4))
            self._moments = moments(total, square, shift)
            product = np.concatenate([f[5] for f in partial], axis=1).T + np.multiply.outer(
                shift.astype(np.float64), partial[0][2]
            )
            product = product[:, None]
        else:
            weight, *histograms = np.concatenate(partial, axis=1)
            self._moments = block_moments(weight, self.basis)
            product = np.stack([h @ self.basis for h in histograms], axis=2)
        self.coding = replace(self.coding, mean=self.mean, inv=self.inv)
        return self._standardised(product, residual)

    def _states(self, values: np.ndarray | None = None) -> list[Any]:
        """Return the coding, coefficients and remaining columns of each column of tiles."""
        states = []
        for part, remaining in zip(self.parts, self.remaining):
            state = self.coding[part], None if values is None else values[part], remaining
            states.append(shared(state, sum(v.nbytes for v in state if v is not None)))
        return states

    def scores(self, coef: np.ndarray) -> np.ndarray:
        out = np.zeros((self.n_samples, coef.shape[2]))
        if coef.any():
            states = self._states(coef)
            sums = [
                reduced(
                    [
                        task(tasks.scores, tile, state, r.stop - r.start)
                        for tile, state in zip(tiles, states)
                    ]
                )
                for tiles, r in zip(self.tiles, self.rows)
            ]
            for rows, block in zip(self.rows, dask.compute(*sums)):
                out[rows] = block
        return out

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        if self._moments is None:
            return self._first_read(residual)
        residuals = [(residual[r],) for r in self.rows]
        return np.concatenate(dask.compute(*self._gradients(self.tiles, residuals)))

    def _gradients(self, tiles: Sequence[Any], slopes: Sequence[Any]) -> list[Any]:
        """Sum the gradients over rows of tiles; the result has one task per column of tiles."""
        return [
            reduced([task(tasks.gradient, row[j], state, s) for row, s in zip(tiles, slopes)])
            for j, state in enumerate(self._states())
        ]

    def _rows_of(self, y: np.ndarray, sample_weight: np.ndarray) -> Sequence[Any]:
        """Send targets and weights to the workers once, split by rows of tiles.

        If tiles hold whole rows, each part is stored on the worker of its tile.
        """
        if (
            self._targets is None
            or self._targets[0] is not y
            or self._targets[1] is not sample_weight
        ):
            pairs = [(y[r], sample_weight[r]) for r in self.rows]
            sent = (
                [task(tasks.with_tile, pair, row[0]) for pair, row in zip(pairs, self.tiles)]
                if self.stored and len(self.parts) == 1
                else [delayed(pair, pure=False, traverse=False) for pair in pairs]
            )
            self._targets = y, sample_weight, dask.persist(*sent)
        return self._targets[2]

    def scores_and_gradient(
        self,
        coef: np.ndarray,
        intercept: np.ndarray,
        loss: Loss,
        y: np.ndarray,
        sample_weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        if not loss.pointwise or not coef.any():
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        rows, states = self._rows_of(y, sample_weight), self._states(coef)
        chosen, scale = random_part(self.rows, sample_weight, self.subsample, self.random)
        at = loss, intercept, scale
        if len(self.parts) == 1:
            gradient, residual_sum, value = dask.compute(
                reduced(
                    [task(tasks.fused, self.tiles[i][0], states[0], rows[i], at) for i in chosen]
                )
            )[0]
            return gradient, residual_sum, float(value)
        slopes = []
        for i in chosen:
            n_rows = self.rows[i].stop - self.rows[i].start
            partial = [
                task(tasks.scores, tile, state, n_rows)
                for tile, state in zip(self.tiles[i], states)
            ]
            slopes.append(task(tasks.residual_of_rows, rows[i], at, *partial))
        *gradients, (residual_sum, value) = dask.compute(
            *self._gradients([self.tiles[i] for i in chosen], slopes),
            reduced([task(tasks.totals, s) for s in slopes]),
        )
        return np.concatenate(gradients), residual_sum, float(value)

    def covariance(self, direction: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        if len(self.parts) > 1:
            return super().covariance(direction, sample_weight)
        (state,) = self._states(direction)
        chosen, scale = random_part(self.rows, sample_weight, self.subsample, self.random)
        pairs = self._rows_of(
            self._targets[0] if self._targets else np.zeros((self.n_samples, 1)), sample_weight
        )
        return dask.compute(
            reduced(
                [task(tasks.covariance, self.tiles[i][0], state, pairs[i], scale) for i in chosen]
            )
        )[0]

    def _narrow(self, kept: np.ndarray, compact: bool = False) -> None:
        """Drop columns, and join adjacent tiles if few columns are left.

        Joined tiles are at most as large as the largest tile so far.
        """
        bounds = np.searchsorted(kept, [p.start for p in self.parts] + [self.parts[-1].stop])
        held = [j for j in range(len(self.parts)) if bounds[j + 1] > bounds[j]]
        positions = {j: kept[bounds[j] : bounds[j + 1]] - self.parts[j].start for j in held}
        positions = {
            j: k if (remaining := self.remaining[j]) is None else remaining[k]
            for j, k in positions.items()
        }
        self.coding = self.coding[kept]
        if not compact and COMPACT_RATIO * len(kept) >= self.stored > 0:
            groups = [[j] for j in held]
            self.remaining = [positions[j] for j in held]
            self.tiles = [[row[j] for j in held] for row in self.tiles]
        else:
            height = max(r.stop - r.start for r in self.rows)
            most = max(1, max(TILE_BYTES, self.largest) // (height * self.itemsize))
            groups = []
            for j in held:
                if groups and bounds[j + 1] - bounds[groups[-1][0]] <= most:
                    groups[-1].append(j)
                else:
                    groups.append([j])
            self.tiles = [
                [self._joined(row, group, positions, bounds) for group in groups]
                for row in self.tiles
            ]
            self.remaining, self.stored = [None] * len(groups), len(kept)
        self.parts = _slices([int(bounds[g[-1] + 1] - bounds[g[0]]) for g in groups])

    def _joined(
        self,
        row: list[Delayed],
        group: list[int],
        positions: dict[int, np.ndarray],
        bounds: np.ndarray,
    ) -> Delayed:
        columns = Coding(self.coding.dtype, even=self.coding.even)
        if self.knots is not None:
            columns.knots = self.knots[bounds[group[0]] : bounds[group[-1] + 1]]
        return task(tasks.join, columns, [positions[j] for j in group], *[row[j] for j in group])

    def matrix_rows(self, rows: np.ndarray | None) -> np.ndarray:
        if rows is None or self.knots is not None:
            return super().matrix_rows(rows)
        new = copy(self)
        new._narrow(np.arange(self.n_features), compact=True)
        for r, row in zip(new.rows, new.tiles):
            inside = rows[slice(*np.searchsorted(rows, (r.start, r.stop)))] - r.start
            row[:] = [task(np.take, tile, inside, 0) for tile in row]
        return new._resident(new._collected()).matrix()

    def _fits(self) -> bool:
        few = LEFT * self.n_features <= self.n_all or self._bytes(self.n_features) <= EASY_BYTES
        return few and super()._fits()

    def _out_of_core(self) -> Self:
        if self.remaining[0] is None:
            flat = dask.persist(*[tile for row in self.tiles for tile in row])
            width = len(self.parts)
            self.tiles = [list(flat[i * width : (i + 1) * width]) for i in range(len(self.rows))]
        return self

    def _load(self, columns: np.ndarray) -> np.ndarray:
        wanted = np.searchsorted(self.columns, columns)
        if len(wanted) == 0:
            shape = (
                (self.n_samples, 0) if self.knots is None else (-(-self.n_samples // ROWS), 0, ROWS)
            )
            return np.empty(shape, self.coding.dtype if self.knots is None else np.uint8)
        if len(wanted) == self.stored:
            return self._collected()
        new = copy(self)
        new._narrow(wanted, compact=True)
        return new._collected()

    def _collected(self) -> np.ndarray:
        blocks = dask.compute(*[tile for row in self.tiles for tile in row])
        width = len(self.parts)
        rows = [
            blocks[i] if width == 1 else np.concatenate(blocks[i : i + width], axis=1)
            for i in range(0, len(blocks), width)
        ]
        if self.knots is None:
            return np.concatenate(rows)
        codes = np.zeros((-(-self.n_samples // ROWS), rows[0].shape[1], ROWS), np.uint8)
        for r, part in zip(self.rows, rows):  # a tile may begin within a block of codes
            lanes = part.transpose(1, 0, 2).reshape(part.shape[1], -1)[:, : r.stop - r.start]
            start = r.start
            while start < r.stop:
                b, lane = divmod(start, ROWS)
                count = min(ROWS - lane, r.stop - start)
                codes[b, :, lane : lane + count] = lanes[
                    :, start - r.start : start - r.start + count
                ]
                start += count
        return codes

    def _resident(self, values: np.ndarray) -> Any:
        return (
            super()._resident(values)
            if self.knots is None
            else self.coding.tile(values, self.n_samples)
        )


def _slices(sizes: Sequence[int]) -> list[slice]:
    stops = np.cumsum(sizes).tolist()
    return [slice(int(stop - size), int(stop)) for size, stop in zip(sizes, stops)]
