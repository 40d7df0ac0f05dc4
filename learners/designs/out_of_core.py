"""Designs on files that are read in blocks until the remaining columns fit into memory.

A block of rows is itself a dense or piecewise-linear design that uses the moments of all rows. All
results are sums over the blocks. See Barbu et al. (2017), section 2.2, "Large Scale
Implementation".
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.utils import check_random_state

from ..objective.base import Loss
from ..sources.matrix import Source
from ..types import Seed
from .base import Design, FirstReadDesign, moments
from .dense import DenseDesign, first_sums
from .kernels import ROWS
from .piecewise_linear import (
    PiecewiseDesign,
    block_moments,
    encode,
    encoded,
    evenly_spaced,
    hat_basis,
)
from .responses import PiecewiseLinear, add_ranges, even_knots

MEMORY_LIMIT = 2 << 30
_TILE = 6  # two blocks, each a sixth of the limit: one is processed while the other is read
# Columns are loaded once they need at most half of the limit; dropping columns makes a copy
_RESIDENT = 2
_HELD = 0.75  # fraction including columns that polishing requests later
_STRETCHES = 4  # minimum number of row ranges in a random subset


def random_part(
    rows: Sequence[slice], sample_weight: np.ndarray, share: float, random: np.random.RandomState
) -> tuple[Sequence[int], float]:
    """Draw random ranges of rows, and compute the factor that restores the total row weight."""
    if share >= 1.0:
        return range(len(rows)), 1.0
    chosen = np.sort(random.permutation(len(rows))[: max(1, round(share * len(rows)))])
    read = sum(float(sample_weight[rows[i]].sum()) for i in chosen)
    return chosen.tolist(), float(sample_weight.sum()) / read if read > 0 else 0.0


class OutOfCoreDesign(FirstReadDesign):
    """Base class for designs that read blocks of data until the remaining columns fit in memory.

    The first pass computes the moments and the first gradient. As soon as the columns that have not
    been dropped fit into half of the memory limit, they are read once more and stored as a design
    in memory, which the refinement also uses.

    Attributes
    ----------
    columns : ndarray of shape (n_features,)
        Indices of the design's columns in the data.
    """

    columns: np.ndarray
    limit: int
    itemsize: int  # bytes per value in memory
    # shared by all subsets: the columns in memory, in ascending order, and their designs
    _pieces: list[tuple[np.ndarray, DenseDesign | PiecewiseDesign]]

    def _bytes(self, n_columns: int) -> int:
        return self.n_samples * n_columns * self.itemsize

    def keep(self, kept: np.ndarray) -> Design:  # type: ignore[override]
        kept = np.asarray(kept)
        new = super().keep(kept)
        new.columns = self.columns[kept]
        new._moments = self.mean[kept], self.inv[kept]
        new._narrow(kept)
        return new.in_memory() if new._fits() or not len(new._missing()) else new._out_of_core()

    def _fits(self) -> bool:
        """Return whether the features fit into memory."""
        return self._bytes(self.n_features) * _RESIDENT <= self.limit

    def _narrow(self, kept: np.ndarray) -> None:
        """Restrict any additional per-feature state to the remaining features."""

    def _out_of_core(self) -> Design:
        """Return the design that reads its columns out of core."""
        return self

    def _missing(self) -> np.ndarray:
        """Return the columns that are not in memory."""
        missing = self.columns
        for have, _ in self._pieces:
            missing = np.setdiff1d(missing, have, assume_unique=True)
        return missing

    def in_memory(self) -> Design:
        """Return the design in memory; only columns that are not yet in memory are read."""
        for have, design in self._pieces:
            if np.isin(self.columns, have).all():
                return design.keep(np.searchsorted(have, self.columns))
        missing = self._missing()
        fresh = self._load(missing)
        if len(missing) == self.n_features:
            values = fresh
        else:
            values = np.empty_like(fresh, shape=(len(fresh), self.n_features, *fresh.shape[2:]))
            values[:, np.searchsorted(self.columns, missing)] = fresh
        for have, design in self._pieces:
            shared = np.intersect1d(have, self.columns, assume_unique=True)
            values[:, np.searchsorted(self.columns, shared)] = design.stored_columns(
                np.searchsorted(have, shared)
            )
        design = self._resident(values)
        held = sum(self._bytes(len(have)) for have, _ in self._pieces)
        if held + self._bytes(self.n_features) <= _HELD * self.limit:
            self._pieces.append((self.columns, design))
        return design

    def has_missing(self, rows: np.ndarray) -> np.ndarray:
        return super().has_missing(rows) if self.width == 1 else self.in_memory().has_missing(rows)

    def matrix(self) -> np.ndarray:
        return self.in_memory().matrix()

    def _load(self, columns: np.ndarray) -> np.ndarray:
        """Read columns by their indices in the data, as values or codes along the second axis."""
        raise NotImplementedError

    def _resident(self, values: np.ndarray) -> DenseDesign | PiecewiseDesign:
        """Return a design in memory from the values or codes of all columns."""
        return DenseDesign(values, None, moments=(self.mean, self.inv))


class BlockDesign(OutOfCoreDesign):
    """Design with one linear term per column of a file.

    Each annealing step reads the remaining columns once, in blocks of whole rows. It reads them
    twice if the loss is pairwise, or if the chunks of the file are so tall that a block of whole
    rows would exceed the maximum size of a block.

    Parameters
    ----------
    source : Source
        Source of the full matrix. Its ``memory_limit`` and ``subsample`` also apply to the design.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    random_state : int, RandomState or None, default None
        Random seed for subsampling.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39, 2017, section 2.2, "Large Scale Implementation".
    """

    streams = True

    def __init__(self, source: Source, sample_weight: np.ndarray, random_state: Seed = None):
        self.limit = MEMORY_LIMIT if source.memory_limit is None else source.memory_limit
        self.source, self.weight, self.random = (
            source,
            sample_weight,
            check_random_state(random_state),
        )
        self.columns, self.itemsize, self._pieces = (
            np.arange(source.shape[1]),
            source.dtype.itemsize,
            [],
        )
        self.n_samples, self.n_features = source.shape

    def _tiles(self, columns: np.ndarray, whole: str = "") -> list[tuple[slice, slice]] | None:
        """List rectangles (rows, positions in ``columns``) that fit into a block, in file order.

        Parameters
        ----------
        whole : {"", "rows", "columns"}
            Axis that must not be split. If whole rows do not fit, the result is None. If whole
            columns do not fit together, they are read one at a time.
        """
        n, m = self.source.shape[0], len(columns)
        values = max(1, self.limit // (_TILE * self.source.dtype.itemsize))
        height = values // m
        if whole == "rows":
            if self.source.subsample < 1.0:
                height = min(height, int(np.ceil(n * self.source.subsample / _STRETCHES)))
            rows = self.source.cuts(height)
            return (
                [(r, slice(0, m)) for r in rows]
                if max(r.stop - r.start for r in rows) <= height
                else None
            )
        if self.source.order == "F" or height < self.source.row_step:
            height = max(1, values // min(m, 64))
        tiles = []
        for r in [slice(0, n)] if whole == "columns" else self.source.cuts(height):
            width = max(1, values // (r.stop - r.start))
            first = 0
            while first < m:
                last = min(m, first + width)
                # Cut at the chunk boundaries of the file
                if last < m and self.source.column_step > 1:
                    unit = self.source.column_step
                    aligned = int(np.searchsorted(columns, columns[last] // unit * unit))
                    last = (
                        aligned
                        if aligned > first
                        else int(np.searchsorted(columns, (columns[first] // unit + 1) * unit))
                    )
                tiles.append((r, slice(first, last)))
                first = last
        return tiles

    def _read(
        self, columns: np.ndarray, tiles: Sequence[tuple[slice, slice]]
    ) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Iterate over the values of the rectangles, with read-ahead.

        The next rectangle is read while the caller uses the current one. Buffers are reused.
        """
        size = max(((r.stop - r.start) * (c.stop - c.start) for r, c in tiles), default=0)
        buffers = [np.empty(size, self.source.dtype) for _ in range(min(2, len(tiles)))]

        def read(i: int) -> tuple[slice, slice, np.ndarray]:
            rows, part = tiles[i]
            shape = rows.stop - rows.start, part.stop - part.start
            block = np.ndarray(shape, self.source.dtype, buffers[i % 2], order=self.source.order)  # type: ignore[call-overload, arg-type]
            self.source.read(rows, columns[part], block)
            return rows, part, block

        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(read, 0)
            for i in range(len(tiles)):
                current = coming.result()
                if i + 1 < len(tiles):
                    coming = reader.submit(read, i + 1)
                yield current

    def _blocks(
        self, whole: str = "", tiles: Sequence[tuple[slice, slice]] | None = None
    ) -> Iterator[tuple[slice, slice, np.ndarray]]:
        tiles = self._tiles(self.columns, whole) if tiles is None else tiles
        return self._read(self.columns, tiles)  # type: ignore[arg-type]  # None only for whole rows

    def _first_read(self, residual: np.ndarray) -> np.ndarray:
        m, q = self.n_features, residual.shape[1]
        shift = np.zeros(m, self.source.dtype)
        total, square, product = np.zeros(m), np.zeros(m), np.zeros((m, q))
        for rows, part, block in self._blocks():
            if rows.start == 0:
                shift[part] = block[0]
            for i in range(q):
                sums = first_sums(
                    block, shift[part], self.weight[rows] * (i == 0), residual[rows, i]
                )
                total[part] += sums[0]
                square[part] += sums[1]
                product[part, i] += sums[2]
        self._moments = moments(total, square, shift)
        product = product + shift[:, None].astype(np.float64) * residual.sum(axis=0)
        return self._standardised(product[:, None], residual)

    def _tile(self, block: np.ndarray, part: slice) -> Design:
        return DenseDesign(block, None, moments=(self.mean[part], self.inv[part]))

    def scores(self, coef: np.ndarray) -> np.ndarray:
        out = np.zeros((self.n_samples, coef.shape[2]))
        if coef.any():
            for rows, part, block in self._blocks():
                out[rows] += self._tile(block, part).scores(coef[part])
        return out

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        if self._moments is None:
            return self._first_read(residual)
        out = np.zeros((self.n_features, self.width, residual.shape[1]))
        for rows, part, block in self._blocks():
            out[part] += self._tile(block, part).gradient(residual[rows])
        return out

    def scores_and_gradient(
        self,
        coef: np.ndarray,
        intercept: np.ndarray,
        loss: Loss,
        y: np.ndarray,
        sample_weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        tiles = self._tiles(self.columns, "rows") if loss.pointwise else None
        # Without scores, rows may be split: read in file order
        if tiles is None or not coef.any():
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        tiles, weight = self._some(tiles, sample_weight)
        gradient, residual_sum, value = np.zeros(coef.shape), np.zeros(coef.shape[2]), 0.0
        for rows, part, block in self._blocks(tiles=tiles):
            terms = self._tile(block, part).scores_and_gradient(
                coef, intercept, loss, y[rows], weight[rows]
            )
            gradient += terms[0]
            residual_sum += terms[1]
            value += terms[2]
        return gradient, residual_sum, value

    def _some(
        self, tiles: Sequence[tuple[slice, slice]], sample_weight: np.ndarray
    ) -> tuple[list[tuple[slice, slice]], np.ndarray]:
        """Return the blocks of rows, or a random subset of the rows with rescaled weights."""
        chosen, scale = random_part(
            [rows for rows, _ in tiles], sample_weight, self.source.subsample, self.random
        )
        return [tiles[i] for i in chosen], sample_weight * scale

    def covariance(self, direction: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        tiles = self._tiles(self.columns, "rows")
        if tiles is None:
            return super().covariance(direction, sample_weight)
        tiles, weight = self._some(tiles, sample_weight)
        out = np.zeros(direction.shape)
        for rows, part, block in self._blocks(tiles=tiles):
            out += self._tile(block, part).covariance(direction, weight[rows])
        return out

    def matrix_rows(self, rows: np.ndarray | None) -> np.ndarray:
        rows = np.arange(self.n_samples) if rows is None else rows
        Z = np.empty((len(rows), self.n_features * self.width), self.source.dtype, order="F")
        for tile, part, block in self._blocks():
            inside = slice(*np.searchsorted(rows, (tile.start, tile.stop)))
            values = self._tile(block, part).matrix_rows(rows[inside] - tile.start)
            Z[inside, part.start * self.width : part.stop * self.width] = values
        return Z

    def _load(self, columns: np.ndarray) -> np.ndarray:
        source = self.source
        values = np.empty((self.n_samples, len(columns)), source.dtype, order=source.order)  # type: ignore[call-overload]
        if len(columns):
            source.read(slice(0, self.n_samples), columns, values)
        return values


class PiecewiseBlockDesign(BlockDesign):
    """Design with one piecewise-linear term per column of a file; values are encoded when read.

    The remaining columns are kept in memory as one-byte codes. The knots require one additional
    pass over the file to compute the range of each column. Knots at quantiles require whole
    columns, so a row-major file is read once for each block of columns that fits into memory.

    Parameters
    ----------
    source : Source
        Source of the full matrix. Its ``memory_limit`` and ``subsample`` also apply to the design.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    response : PiecewiseLinear
        Piecewise-linear response.
    random_state : int, RandomState or None, default None
        Random seed for subsampling.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39, 2017, section 2.2, "Large Scale Implementation".
    """

    def __init__(
        self,
        source: Source,
        sample_weight: np.ndarray,
        response: PiecewiseLinear,
        random_state: Seed = None,
    ):
        super().__init__(source, sample_weight, random_state)
        self.itemsize = 1
        self.n_bins, self.n_knots = response.n_bins, response.n_bins + 1
        self.knots = np.empty((self.n_features, self.n_knots))
        dtype = source.dtype
        low, high = (
            np.full(self.n_features, np.inf, dtype),
            np.full(self.n_features, -np.inf, dtype),
        )
        self.missing = False
        quantile = response.bins == "quantile"
        for rows, part, block in self._blocks("columns" if quantile else ""):
            self.missing |= bool(np.isnan(block.min()))
            if quantile:
                self.knots[part] = response.knots(block, sample_weight)
            else:
                add_ranges(block, sample_weight[rows], low[part], high[part])
        if not quantile:
            self.knots = even_knots(low, high, self.n_bins)
        self.even = evenly_spaced(self.knots)
        self.width = self.n_knots + self.missing
        self.basis = hat_basis(self.n_bins, self.missing)

    def _tile(self, block: np.ndarray, part: slice) -> PiecewiseDesign:
        codes, _ = encoded(block, self.knots[part], self.even)
        return self._from_codes(codes, len(block), part)

    def _from_codes(self, codes: np.ndarray, n_samples: int, part: slice) -> PiecewiseDesign:
        moments, dtype = (self.mean[part], self.inv[part]), self.source.dtype
        return PiecewiseDesign(
            codes,
            n_samples,
            self.n_bins,
            self.missing,
            None,
            dtype,
            moments=moments,
            knots=self.knots[part],
        )

    def _first_read(self, residual: np.ndarray) -> np.ndarray:
        m, q = self.n_features, residual.shape[1]
        mean, inv = np.zeros((m, self.width)), np.zeros(m)
        histograms = np.zeros((m, 256))
        product = np.zeros((m, self.width, q))
        self._moments = mean, inv
        for rows, part, block in self._blocks():
            tile = self._tile(block, part)
            histograms[part] += tile._histograms(self.weight[rows])
            for i in range(q):
                product[part, :, i] += tile._histograms(residual[rows, i]) @ self.basis
        self._moments = block_moments(histograms, self.basis)
        return self._standardised(product, residual)

    def _narrow(self, kept: np.ndarray) -> None:
        self.knots = self.knots[kept]

    def _load(self, columns: np.ndarray) -> np.ndarray:
        codes = np.zeros((-(-self.n_samples // ROWS), len(columns), ROWS), np.uint8)
        lines = self.knots[np.searchsorted(self.columns, columns)]
        if len(columns):
            for rows, part, block in self._read(columns, self._tiles(columns)):  # type: ignore[arg-type]
                encode(block, lines[part], self.even, codes[:, part], rows.start)
        return codes

    def _resident(self, values: np.ndarray) -> PiecewiseDesign:
        return self._from_codes(values, self.n_samples, slice(None))
