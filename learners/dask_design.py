"""A design on Dask arrays: tiles of rows and columns that stay on the workers.

PAMI text, section 2.2, "Large Scale Implementation". Every tile answers for itself; scores are summed over the tiles of a row,
gradients over those of a column, in a fixed order, so that neither lost workers nor the order in which tasks end change the result.
Survivors are joined into tiles of the old size and persisted until they fit into the memory of the client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import dask
import numpy as np
from dask.delayed import delayed
from sklearn.utils import check_random_state

from .blocks import OutsideDesign
from .designs import DenseDesign, Design, PiecewiseDesign, block_moments, encode, evenly_spaced, first_sums, hat_basis, moments
from .kernels import ROWS
from .knots import add_ranges, even_knots, knots
from .sources import Outside, _float, n_bytes

GATHER_BYTES = 512 << 20  # memory limit unless one is given: survivors come to the client once they fit into half of it
TILE_BYTES = 128 << 20  # survivors are joined along rows until a tile is as large as this, or as the largest of the data
FAN_IN = 16  # so many partial sums are added by one task


def _task(function, *arguments):
    return delayed(function, pure=False, traverse=False)(*arguments)


def _constant(value):
    return delayed(value, pure=False, traverse=False)


class DaskMatrix(Outside):
    """A Dask array, or a data frame of numbers, as an estimator sees it."""

    def __init__(self, X):
        if hasattr(X, "to_dask_array"):
            self.names = [str(name) for name in X.columns]
            X = X.to_dask_array(lengths=True)
        if X.ndim != 2:
            raise ValueError(f"a Dask array of shape {X.shape}; expected rows and columns")
        if any(np.isnan(size) for size in X.shape):
            X = X.compute_chunk_sizes()
        X = X.astype(_float(X.dtype))
        self.array, self.shape, self.dtype = X, X.shape, X.dtype

    def design(self, sample_weight, settings):
        return DaskDesign.of(self, sample_weight, settings)

    def scores(self, function, columns, n_outputs):
        """Lazily: a Dask array."""
        chosen = self.array[:, columns].rechunk({1: -1})
        return chosen.map_blocks(function, dtype=np.float64, chunks=(chosen.chunks[0], (n_outputs,)))


@dataclass
class Columns:
    """What a tile's values mean: the moments of its columns and, for piecewise-linear responses, their knots.

    Attributes
    ----------
    mean, inv : ndarray or None
        None before the first read.
    knots : ndarray of shape (m, B + 1) or None
        None for linear responses.
    even, missing : bool
        Whether the knots are equidistant; whether the data hold NaN.
    dtype : dtype
    """

    dtype: Any
    mean: Any = None
    inv: Any = None
    knots: Any = None
    even: bool = True
    missing: bool = False

    def __getitem__(self, part) -> Columns:
        some: Any = {name: None if (v := getattr(self, name)) is None else v[part] for name in ("mean", "inv", "knots")}
        return replace(self, **some)

    def tile(self, values, n_rows: int) -> Design:
        """The design of a tile: of raw values, or of codes where ``values`` are 3-D."""
        if self.knots is None:
            return DenseDesign.standardised(np.asarray(values), self.mean, self.inv)
        n_bins = self.knots.shape[1] - 1
        return PiecewiseDesign.standardised(self.encoded(values), n_rows, n_bins, self.missing, self.mean, self.inv, self.dtype)

    def encoded(self, values) -> np.ndarray:
        """Values or codes as they are kept."""
        if self.knots is None or values.ndim == 3:
            return np.asarray(values)
        codes = np.zeros((-(-len(values) // ROWS), values.shape[1], ROWS), np.uint8)
        encode(np.asarray(values), self.knots, self.even, codes)
        return codes


# -- tasks on one tile -------------------------------------------------------------------------------------------------------------


def _ranges(values, weight):
    low = np.full(values.shape[1], np.inf, values.dtype)
    high = -low
    add_ranges(values, weight, low, high, values.flags.c_contiguous)
    return low, high, bool(np.isnan(values.min()))


def _widest(*parts):
    return np.min([p[0] for p in parts], axis=0), np.max([p[1] for p in parts], axis=0), any(p[2] for p in parts)


def _first_row(values):
    return values[0].copy()


def _first(values, columns, shift, weight, residual):
    """Sums for the moments and the gradient: (2 + n_outputs, m), or histograms of codes (1 + n_outputs, m, 256)."""
    if columns.knots is None:
        sums = [first_sums(values, shift, weight * (i == 0), r) for i, r in enumerate(residual.T)]
        return np.stack([sums[0][0], sums[0][1], *(s[2] for s in sums)])
    tile = columns.tile(values, len(weight))
    return np.stack([tile._histograms(r) for r in (weight, *residual.T)])


def _scores(values, state, n_rows):
    columns, coef = state
    return columns.tile(values, n_rows).scores(coef)


def _gradient(values, columns, residual):
    return columns.tile(values, len(residual)).gradient(residual)


def _gradient_of(values, columns, slopes):
    return columns.tile(values, len(slopes[0])).gradient(slopes[0])


def _slopes(rows, shared, *partial):
    """Residual, its sum and the loss of some rows from the partial scores of their tiles."""
    y, weight = rows
    loss, intercept, scale = shared
    value, residual = loss.value_and_gradient(y, _sum(*partial) + intercept, weight * scale)
    return residual, residual.sum(axis=0), value


def _totals(*slopes):
    return sum(s[1] for s in slopes), sum(s[2] for s in slopes)


def _fused(values, state, rows, shared):
    (columns, coef), (y, weight), (loss, intercept, scale) = state, rows, shared
    return columns.tile(values, len(y)).scores_and_gradient(coef, intercept, loss, y, weight * scale)


def _covariance(values, state, rows, scale):
    (columns, direction), (_, weight) = state, rows
    return columns.tile(values, len(weight)).covariance(direction, weight * scale)


def _sum(*parts):
    if isinstance(parts[0], tuple):
        return tuple(_sum(*some) for some in zip(*parts))
    total = parts[0].copy() if isinstance(parts[0], np.ndarray) else parts[0]
    for part in parts[1:]:
        total += part
    return total


def _join(columns, *values_and_parts):
    """The chosen columns of neighbouring tiles, side by side."""
    values, parts = values_and_parts[: len(columns)], values_and_parts[len(columns) :]
    return np.concatenate([c.encoded(v)[:, k] for c, v, k in zip(columns, values, parts)], axis=1)


def _reduced(parts, add=_sum):
    """Sum of the tasks' results by a tree of tasks, in a fixed order."""
    while len(parts) > 1:
        parts = [_task(add, *parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


class DaskDesign(OutsideDesign):
    """Linear or piecewise-linear responses to the columns of a Dask array, chunked in any way.

    Work runs on the active ``distributed`` client, or on Dask's default scheduler. A step makes one task per tile where tiles hold
    whole rows and two otherwise, one for each row of tiles and one for every sixteen partial sums.

    Attributes
    ----------
    tiles : list of list of Delayed
        Values or codes, by rows and columns of tiles.
    parts : list of slice
        Columns of each column of tiles, positions in this design.
    rows : list of slice
        Rows of each row of tiles.
    """

    tiles: list[list]
    parts: list[slice]
    rows: list[slice]
    meaning: Columns
    weight: np.ndarray
    share: float
    random: np.random.RandomState
    largest: int
    _targets: Any = None  # what is on the workers already

    @classmethod
    def of(cls, X: DaskMatrix, sample_weight, settings) -> DaskDesign:
        """All columns; the estimator ``settings`` says the rest."""
        new = cls()
        new.limit = GATHER_BYTES if settings.memory_limit is None else n_bytes(settings.memory_limit)
        new.share, new.random = float(settings.subsample), check_random_state(settings.random_state)
        new.itemsize = X.dtype.itemsize if settings.response == "linear" else 1
        new.n_samples, new.n_features = X.shape
        new.columns, new._pieces = np.arange(new.n_features), []
        new.tiles = [list(row) for row in X.array.to_delayed()]
        new.rows, new.parts = _slices(X.array.chunks[0]), _slices(X.array.chunks[1])
        new.largest = max(X.array.chunks[0]) * max(X.array.chunks[1]) * X.dtype.itemsize
        new.weight = sample_weight
        new.meaning = Columns(X.dtype)
        if settings.response == "piecewise":
            new._find_knots(X, settings.n_bins, settings.bins)
        return new

    def _find_knots(self, X, n_bins, bins):
        weights = [_constant(self.weight[rows]) for rows in self.rows]
        ranges = [
            _reduced([_task(_ranges, tiles[j], weight) for tiles, weight in zip(self.tiles, weights)], _widest)
            for j in range(len(self.parts))
        ]
        found = dask.compute(*ranges)
        lines = even_knots(np.concatenate([r[0] for r in found]), np.concatenate([r[1] for r in found]), n_bins)
        if bins == "quantile":
            whole = X.array.rechunk({0: -1, 1: "auto"})
            weight = _constant(self.weight)
            lines = np.concatenate(dask.compute(*[_task(knots, t, weight, n_bins, bins) for t in whole.to_delayed()[0]]))
        missing = any(r[2] for r in found)
        self.meaning = replace(self.meaning, knots=lines, even=evenly_spaced(lines), missing=missing)
        self.n_bins, self.n_knots, self.width = n_bins, n_bins + 1, n_bins + 1 + missing
        self.basis = hat_basis(n_bins, missing)

    @property
    def knots(self):
        """Knots (n_features, B + 1); None for linear responses."""
        return self.meaning.knots

    def met_missing(self, rows: np.ndarray) -> np.ndarray:
        """Whether each feature had NaN in one of the chosen rows."""
        return self.in_memory().met_missing(rows)  # type: ignore[attr-defined]

    def _first_read(self, residual):
        per_rows = [(_constant(self.weight[r]), _constant(residual[r])) for r in self.rows]
        results = []
        for j, part in enumerate(self.parts):
            meaning = _constant(self.meaning[part])
            shift = _task(_first_row, self.tiles[0][j]) if self.knots is None else None
            sums = [_task(_first, tiles[j], meaning, shift, *pair) for tiles, pair in zip(self.tiles, per_rows)]
            results += [_reduced(sums), shift]
        found = dask.compute(*results)
        if self.knots is None:
            total, square, *products = np.concatenate(found[::2], axis=1)
            shift = np.concatenate(found[1::2])
            self._moments = moments(total, square, shift)
            product = np.stack(products, axis=1) + shift[:, None].astype(np.float64) * residual.sum(axis=0)
            product = product[:, None]
        else:
            weight, *histograms = np.concatenate(found[::2], axis=1)
            self._moments = block_moments(weight, self.basis)
            product = np.stack([h @ self.basis for h in histograms], axis=2)
        self.meaning = replace(self.meaning, mean=self.mean, inv=self.inv)
        return self._standardised(product, residual)

    def _states(self, values):
        """For each column of tiles what its columns mean and the coefficients there."""
        return [_constant((self.meaning[part], values[part])) for part in self.parts]

    def scores(self, coef):
        out = np.zeros((self.n_samples, coef.shape[2]))
        if coef.any():
            states = self._states(coef)
            sums = [
                _reduced([_task(_scores, tile, state, r.stop - r.start) for tile, state in zip(tiles, states)])
                for tiles, r in zip(self.tiles, self.rows)
            ]
            for rows, found in zip(self.rows, dask.compute(*sums)):
                out[rows] = found
        return out

    def gradient(self, residual):
        if self._moments is None:
            return self._first_read(residual)
        residuals = [_constant(residual[r]) for r in self.rows]
        sums = []
        for j, part in enumerate(self.parts):
            meaning = _constant(self.meaning[part])
            sums.append(_reduced([_task(_gradient, tiles[j], meaning, r) for tiles, r in zip(self.tiles, residuals)]))
        return np.concatenate(dask.compute(*sums))

    def _rows_of(self, y, sample_weight):
        """Targets and weights by rows of tiles, sent to the workers once."""
        if self._targets is None or self._targets[0] is not y or self._targets[1] is not sample_weight:
            pairs = [_constant((y[r], sample_weight[r])) for r in self.rows]
            self._targets = y, sample_weight, dask.persist(*pairs)
        return self._targets[2]

    def _some(self, sample_weight):
        """Which rows of tiles to read, and the factor for their weights."""
        if self.share >= 1.0:
            return range(len(self.rows)), 1.0
        count = max(1, round(self.share * len(self.rows)))
        chosen = np.sort(self.random.permutation(len(self.rows))[:count])
        read = sum(float(sample_weight[self.rows[i]].sum()) for i in chosen)
        return chosen, float(sample_weight.sum()) / read if read > 0 else 0.0

    def scores_and_gradient(self, coef, intercept, loss, y, sample_weight):
        if not loss.pointwise or not coef.any():
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        rows, states = self._rows_of(y, sample_weight), self._states(coef)
        chosen, scale = self._some(sample_weight)
        shared = _constant((loss, intercept, scale))
        if len(self.parts) == 1:
            gradient, residual_sum, value = dask.compute(
                _reduced([_task(_fused, self.tiles[i][0], states[0], rows[i], shared) for i in chosen])
            )[0]
            return gradient, residual_sum, float(value)
        slopes = []
        for i in chosen:
            n_rows = self.rows[i].stop - self.rows[i].start
            partial = [_task(_scores, tile, state, n_rows) for tile, state in zip(self.tiles[i], states)]
            slopes.append(_task(_slopes, rows[i], shared, *partial))
        sums = []
        for j, part in enumerate(self.parts):
            meaning = _constant(self.meaning[part])
            sums.append(_reduced([_task(_gradient_of, self.tiles[i][j], meaning, s) for i, s in zip(chosen, slopes)]))
        *gradients, (residual_sum, value) = dask.compute(*sums, _reduced([_task(_totals, s) for s in slopes]))
        return np.concatenate(gradients), residual_sum, float(value)

    def covariance(self, direction, sample_weight):
        if len(self.parts) > 1:
            return super().covariance(direction, sample_weight)
        (state,) = self._states(direction)
        chosen, scale = self._some(sample_weight)
        pairs = self._rows_of(self._targets[0] if self._targets else np.zeros((self.n_samples, 1)), sample_weight)
        return dask.compute(_reduced([_task(_covariance, self.tiles[i][0], state, pairs[i], scale) for i in chosen]))[0]

    def _narrow(self, kept):
        """Join what is left of neighbouring tiles while that makes none larger than the largest."""
        bounds = np.searchsorted(kept, [p.start for p in self.parts] + [self.parts[-1].stop])
        old = self.meaning
        self.meaning = old[kept]
        height = max(r.stop - r.start for r in self.rows)
        most = max(1, max(TILE_BYTES, self.largest) // (height * self.itemsize))
        groups: list[list[int]] = []
        for j in range(len(self.parts)):
            width = bounds[j + 1] - bounds[j]
            if width == 0:
                continue
            if groups and bounds[j + 1] - bounds[groups[-1][0]] <= most:
                groups[-1].append(j)
            else:
                groups.append([j])
        tiles: list[list] = [[] for _ in self.rows]
        for group in groups:
            columns = _constant([old[self.parts[j]] for j in group])
            positions = [_constant(kept[bounds[j] : bounds[j + 1]] - self.parts[j].start) for j in group]
            for i, row in enumerate(tiles):
                row.append(_task(_join, columns, *[self.tiles[i][j] for j in group], *positions))
        self.parts = _slices([int(bounds[g[-1] + 1] - bounds[g[0]]) for g in groups])
        self.tiles = tiles

    def _outside(self):
        flat = dask.persist(*[tile for row in self.tiles for tile in row])
        width = len(self.parts)
        self.tiles = [list(flat[i * width : (i + 1) * width]) for i in range(len(self.rows))]
        return self

    def _load(self, columns):
        wanted = np.searchsorted(self.columns, columns)
        if len(wanted) == 0:
            shape = (self.n_samples, 0) if self.knots is None else (-(-self.n_samples // ROWS), 0, ROWS)
            return np.empty(shape, self.meaning.dtype if self.knots is None else np.uint8)
        if len(wanted) < self.n_features:
            new = object.__new__(type(self))
            new.__dict__.update(self.__dict__)
            new._narrow(wanted)
            return new._collected()
        return self._collected()

    def _collected(self):
        found = dask.compute(*[tile for row in self.tiles for tile in row])
        width = len(self.parts)
        rows = [np.concatenate(found[i * width : (i + 1) * width], axis=1) for i in range(len(self.rows))]
        if self.knots is None:
            return np.concatenate(rows)
        codes = np.zeros((-(-self.n_samples // ROWS), rows[0].shape[1], ROWS), np.uint8)
        for r, part in zip(self.rows, rows):  # tiles begin anywhere in a block of codes
            lanes = part.transpose(1, 0, 2).reshape(part.shape[1], -1)[:, : r.stop - r.start]
            start = r.start
            while start < r.stop:
                b, lane = divmod(start, ROWS)
                count = min(ROWS - lane, r.stop - start)
                codes[b, :, lane : lane + count] = lanes[:, start - r.start : start - r.start + count]
                start += count
        return codes

    def _resident(self, values):
        if self.knots is None:
            return super()._resident(values)
        design = PiecewiseDesign.standardised(
            values, self.n_samples, self.n_bins, self.meaning.missing, self.mean, self.inv, self.meaning.dtype
        )
        design.knots = self.knots
        return design


def _slices(sizes) -> list[slice]:
    stops = np.cumsum(sizes).tolist()
    return [slice(int(stop - size), int(stop)) for size, stop in zip(sizes, stops)]
