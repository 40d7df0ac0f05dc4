"""Design for training windows, whose features are computed on demand."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...learners.compilation import jit, thread_limit
from ...learners.designs import Design, PiecewiseDesign, inverse_scale, kernels, sublevels
from .feature_pool import FeaturePool
from .kernels import LANES, clipped_ramps, ramp
from .patch_values import Bins, block_tables, encode_rows

_T = TypeVar("_T")
_SUM_FEATURES = 512  # features summed in single precision before they are added in double precision
# rows whose gradients are summed before they are added to the total, in row order
_CHUNK = 16 * LANES


class PatchDesign(Design):
    """Design with piecewise-linear responses to features of windows, which are stored as pixels.

    A value v is represented by its *code* ``round(clip((v - low) / bin_width, 0, B) * s)`` with s =
    252 // B, as in `annealed.learners.designs.piecewise_linear.PiecewiseDesign`. The codes of a
    block of 64 windows are in memory only while the block is processed. If the codes of the m
    features that `keep` retains (``n * m`` bytes) fit into ``cache_bytes``, `keep` returns a
    ``PiecewiseDesign`` that stores the codes and has the same standardised columns.

    Sums over rows are computed in blocks of a fixed size and in a fixed order, so results do not
    depend on the number of threads.

    Parameters
    ----------
    patches : ndarray of shape (n, window + 2, window + 2, 3), uint8
        Windows, each with a margin of one pixel, from
        `annealed.vision.windows.patches.extract_patches`. The array is not copied.
    sample_weight : array_like of shape (n,)
        Weights that sum to one and determine the means and scales of the columns.
    features : array_like of shape (m, 8), int, optional
        Features to use; by default, all features of the pool.
    n_bins : int, default 6
        Number of bins B, from 1 to 126.
    low, bin_width : array_like of shape (m,), optional
        Left edge of the first bin, and bin width, for each feature. By default, they are computed
        from the patches by `value_range`.

    Attributes
    ----------
    features : ndarray of shape (m, 8), int32
    low, bin_width : ndarray of shape (m,), float32
    """

    per_feature = (*Design.per_feature, "features", "low", "bin_width")

    def __init__(
        self,
        patches: npt.NDArray[np.uint8],
        sample_weight: npt.ArrayLike,
        *,
        pool: FeaturePool | None = None,
        features: npt.ArrayLike | None = None,
        n_bins: int = 6,
        low: npt.ArrayLike | None = None,
        bin_width: npt.ArrayLike | None = None,
        cache_bytes: int = 1 << 30,
    ) -> None:
        self.pool = FeaturePool() if pool is None else pool
        self.patches = patches
        self._rows = self.pool.check_patches(patches)
        self.features = self.pool.check(self.pool.features if features is None else features)
        self.n_samples, self.n_features = len(patches), len(self.features)
        self.n_bins, self.n_knots, self.width = n_bins, n_bins + 1, n_bins + 1
        self.sublevels = sublevels(n_bins)
        self.cache_bytes = cache_bytes
        weight = np.asarray(sample_weight, dtype=np.float64)
        if self.n_samples == 0 or weight.shape != (self.n_samples,):
            raise ValueError(
                f"sample_weight has shape {weight.shape}; "
                f"expected one weight for each of the {self.n_samples} patches"
            )
        if (low is None) != (bin_width is None):
            raise ValueError("only one of low and bin_width is given; pass both or neither")
        if low is None or bin_width is None:
            low, bin_width = value_range(self.pool, patches, self.features, n_bins)
        self.low, self.bin_width = (
            np.asarray(low, dtype=np.float32),
            np.asarray(bin_width, dtype=np.float32),
        )
        if (
            self.low.shape != (self.n_features,)
            or self.bin_width.shape != (self.n_features,)
            or not (self.bin_width > 0).all()
        ):
            raise ValueError(
                f"low has shape {self.low.shape} and bin_width has shape {self.bin_width.shape}; "
                "expected a lower bound and a positive bin width for each of the "
                f"{self.n_features} features"
            )
        self._program = self.pool.compile(self.features)
        self.mean, self.inv = self._moments(weight)

    def codes(
        self, rows: npt.ArrayLike, features: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.uint8]:
        """Compute the codes of r patches, of shape (r, k), for k features (by default, all)."""
        design = self if features is None else self._subset(np.asarray(features, dtype=np.int64))
        blocks = [
            codes[:, : len(block)].T.copy()
            for block, codes in _Worker(design).blocks(np.asarray(rows, dtype=np.int64))
        ]
        return np.concatenate([np.empty((0, design.n_features), np.uint8), *blocks])

    def scores(self, coef: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Compute the scores, of shape (n_samples, n_outputs).

        The coefficients refer to the standardised columns and have shape (m, B + 1, n_outputs).
        """
        curves = self._curves(coef)

        def chunk(worker: _Worker, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            return np.concatenate(
                [worker.scores(codes, curves)[: len(block)] for block, codes in worker.blocks(rows)]
            )

        return np.concatenate(list(self._each_chunk(chunk)))

    def gradient(self, residual: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Compute the gradient, of shape (m, B + 1, n_outputs).

        The residual, of shape (n_samples, n_outputs), is multiplied by the standardised columns and
        summed over the rows.
        """

        def chunk(worker: _Worker, rows: npt.NDArray[np.int64]) -> tuple[Any, ...]:
            ramps = self._empty_ramps(residual.shape[1])
            for block, codes in worker.blocks(rows):
                worker.add_ramps(codes, residual[block], ramps)
            return (ramps,)

        (ramps,) = self._totals(chunk)
        return self._from_ramps(ramps, residual.sum(axis=0))

    def scores_and_gradient(  # type: ignore[no-untyped-def]
        self, coef, intercept, loss, y, sample_weight
    ):
        """Compute the loss and its gradient, as in the base class.

        For pointwise losses, the codes of each block are computed only once.
        """
        if not loss.pointwise:
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        curves = self._curves(coef)

        def chunk(worker: _Worker, rows: npt.NDArray[np.int64]) -> tuple[Any, ...]:
            ramps = self._empty_ramps(coef.shape[2])
            residual_sum, value = np.zeros(coef.shape[2]), 0.0
            for block, codes in worker.blocks(rows):
                scores = worker.scores(codes, curves)[: len(block)] + intercept
                residual = loss.gradient(y[block], scores, sample_weight[block])
                value += loss.value(y[block], scores, sample_weight[block])
                residual_sum += residual.sum(axis=0)
                worker.add_ramps(codes, residual, ramps)
            return ramps, residual_sum, value

        ramps, residual_sum, value = self._totals(chunk)
        return self._from_ramps(ramps, residual_sum), residual_sum, value

    def keep(self, kept: npt.NDArray[np.int64]) -> Design:  # type: ignore[override]
        """Return the design restricted to the features at the given positions, which are ascending.

        The codes are stored if they fit into the cache.
        """
        new = self._subset(np.asarray(kept, dtype=np.int64))
        return new.stored() if new.n_samples * new.n_features <= new.cache_bytes else new

    def stored(self) -> PiecewiseDesign:
        """Return the same design with all codes in memory."""
        n_blocks = -(-self.n_samples // kernels.ROWS)
        stored = np.zeros((n_blocks, self.n_features, kernels.ROWS), np.uint8)

        def fill(worker: _Worker, rows: npt.NDArray[np.int64]) -> None:
            for block, codes in worker.blocks(rows):
                b, first = divmod(int(block[0]), kernels.ROWS)
                stored[b, :, first : first + len(block)] = codes[:, : len(block)]

        list(self._each_chunk(fill))
        return PiecewiseDesign(
            stored, self.n_samples, self.n_bins, False, None, moments=(self.mean, self.inv)
        )

    def matrix(self) -> npt.NDArray[np.float64]:
        """Return the standardised columns, of shape (n_samples, n_features * width).

        This method is intended for small designs.
        """
        return self.stored().matrix()

    def _subset(self, kept: npt.NDArray[np.int64]) -> "PatchDesign":
        new = super().keep(kept)
        new._program = self.pool.compile(new.features)
        return new

    def _each_chunk(self, work: "Callable[[_Worker, npt.NDArray[np.int64]], _T]") -> Iterator[_T]:
        """Return the results of ``work`` on chunks of rows, in order, computed by as many threads
        as compiled loops may use."""
        chunks = [
            np.arange(first, min(first + _CHUNK, self.n_samples))
            for first in range(0, self.n_samples, _CHUNK)
        ]
        n_threads = min(thread_limit(), len(chunks))
        workers = [_Worker(self) for _ in range(n_threads)]
        if n_threads == 1:
            yield from (work(workers[0], rows) for rows in chunks)
            return
        with ThreadPoolExecutor(n_threads) as threads:
            for first in range(0, len(chunks), n_threads):
                yield from threads.map(work, workers, chunks[first : first + n_threads])

    def _empty_ramps(self, n_outputs: int) -> npt.NDArray[np.float64]:
        return np.zeros((n_outputs, self.n_features, -(-self.n_bins // 6) * 6))

    def _totals(
        self, work: "Callable[[_Worker, npt.NDArray[np.int64]], tuple[Any, ...]]"
    ) -> tuple[Any, ...]:
        """Sum the results of ``work`` over all chunks, in row order."""
        chunks = self._each_chunk(work)
        totals = list(next(chunks))
        for parts in chunks:
            for i, part in enumerate(parts):
                totals[i] += part
        return tuple(totals)

    def _curves(self, coef: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], ...]:
        """Convert standardised coefficients to response curves: a constant, values at the left
        border, and rises, per output."""
        raw = coef * self.inv[:, None, None]
        rises = self._empty_ramps(coef.shape[2]).astype(np.float32)
        rises[:, :, : self.n_bins] = np.diff(raw, axis=1).transpose(2, 0, 1)
        return (
            -np.einsum("mw,mwq->q", self.mean, raw),
            np.ascontiguousarray(raw[:, 0].T, dtype=np.float32),
            rises,
        )

    def _from_ramps(
        self, ramps: npt.NDArray[np.float64], residual_sum: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        return self._standardised(_hats(ramps, residual_sum, self.n_bins), residual_sum[None])

    def _moments(
        self, weight: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Compute weighted means of the hat functions and one inverse scale per feature."""

        def chunk(worker: _Worker, rows: npt.NDArray[np.int64]) -> tuple[Any, ...]:
            ramps, squares = self._empty_ramps(1), np.zeros(self.n_features)
            for block, codes in worker.blocks(rows):
                worker.add_ramps(codes, weight[block, None], ramps)
                block_squares(codes, worker.unit, _lanes(weight[block]), squares)
            return ramps, squares

        ramps, squares = self._totals(chunk)
        total = weight.sum()
        mean = _hats(ramps, np.array([total]), self.n_bins)[:, :, 0]
        # With position a within a bin, the squares of the two hats sum to 1 - 2 a (1 - a).
        second = total - 2 * squares
        variance = np.maximum(second - (mean**2).sum(axis=1), 0.0)
        return mean, inverse_scale(variance, second)


def value_range(
    pool: FeaturePool,
    patches: npt.NDArray[np.uint8],
    features: npt.ArrayLike,
    n_bins: int,
    max_rows: int = 3000,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Compute the left edge of the first bin, and the bin width, for each feature.

    The bins extend from the 0.1th to the 99.9th percentile of the values of a feature in at most
    ``max_rows`` evenly spaced patches. If the percentiles coincide, the width is 1.
    """
    features = pool.check(features)
    sample = patches[
        np.unique(np.linspace(0, len(patches) - 1, min(len(patches), max_rows)).astype(np.int64))
    ]
    low, high = np.empty(len(features), np.float32), np.empty(len(features), np.float32)
    for first in range(0, len(features), 4096):
        part = slice(first, first + 4096)
        values = np.ascontiguousarray(pool.evaluate(sample, features[part]).T)
        low[part], high[part] = np.percentile(values, [0.1, 99.9], axis=1, overwrite_input=True)
    bin_width = ((high - low) / n_bins).astype(np.float32)
    return low, np.where(bin_width > 1e-7, bin_width, np.float32(1))


def _lanes(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the values of at most LANES rows, padded with zeros."""
    return np.pad(values.astype(np.float32), (0, LANES - len(values)))


def _hats(
    ramps: npt.NDArray[np.float64], total: npt.NDArray[np.float64], n_bins: int
) -> npt.NDArray[np.float64]:
    """Compute sums over hat functions (m, B + 1, q) from sums over ramps clip(t - k, 0, 1) (q, m,
    at least B)."""
    ends = np.broadcast_to(total[:, None, None], (len(ramps), ramps.shape[1], 1))
    padded = np.concatenate([ends, ramps[:, :, :n_bins], np.zeros_like(ends)], axis=2)
    return np.ascontiguousarray((padded[:, :, :-1] - padded[:, :, 1:]).transpose(1, 2, 0))


class _Worker:
    """Buffers of one thread, and the compiled loops that use them."""

    def __init__(self, design: PatchDesign) -> None:
        self.design = design
        self.tables = block_tables(design._program, design.pool.layout)
        self.codes = np.zeros((1, design.n_features, LANES), np.uint8)
        inverse_bin_width = (1 / design.bin_width.astype(np.float64)).astype(np.float32)
        self.bins = Bins(
            np.array(design.low),
            inverse_bin_width,
            np.float32(design.n_bins),
            np.float32(design.sublevels),
        )
        self.unit = np.float32(1 / design.sublevels)

    def blocks(
        self, rows: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
        """Iterate over blocks of at most LANES rows and their codes (m, LANES), valid until the
        next block."""
        for first in range(0, len(rows), LANES):
            block = rows[first : first + LANES]
            encode_rows(
                self.design._rows, block, self.design._program, self.tables, self.bins, self.codes
            )
            yield block, self.codes[0]

    def scores(
        self, codes: npt.NDArray[np.uint8], curves: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        constant, start, rises = curves
        total = np.zeros((len(constant), LANES))
        for q in range(len(constant)):
            block_scores(codes, self.unit, start[q], rises[q], total[q])
        return total.T + constant

    def add_ramps(
        self,
        codes: npt.NDArray[np.uint8],
        residual: npt.NDArray[Any],
        ramps: npt.NDArray[np.float64],
    ) -> None:
        for q in range(len(ramps)):
            block_ramps(codes, self.unit, _lanes(residual[:, q]), ramps[q])


@jit
def block_scores(codes, unit, start, rises, total):  # type: ignore[no-untyped-def]
    """Add the responses of all features to the scores of a block.

    ``codes`` has shape (m, LANES).
    """
    part = np.zeros(LANES, np.float32)
    zero = np.float32(0)
    for begin in range(0, codes.shape[0], _SUM_FEATURES):
        part[:] = 0
        for f in range(begin, min(begin + _SUM_FEATURES, codes.shape[0])):
            for k in range(0, rises.shape[1], 6):
                first = start[f] if k == 0 else zero
                r0, r1, r2 = rises[f, k], rises[f, k + 1], rises[f, k + 2]
                r3, r4, r5 = rises[f, k + 3], rises[f, k + 4], rises[f, k + 5]
                for j in range(LANES):
                    t = np.float32(codes[f, j]) * unit - np.float32(k)
                    part[j] += first + clipped_ramps(t, r0, r1, r2, r3, r4, r5)
        for j in range(LANES):
            total[j] += part[j]


@jit(fastmath={"reassoc", "contract", "nsz"})
def block_ramps(codes, unit, residual, ramps):  # type: ignore[no-untyped-def]
    """Add ``sum_j residual[j] * clip(t_j - k, 0, 1)`` to ``ramps[f, k]``.

    t_j is the value of window j in units of bins, relative to the first bin. The compiler may
    reorder the sums over the windows, but the order is the same in every run.
    """
    for first in range(0, ramps.shape[1], 6):
        base = np.float32(first)
        for f in range(codes.shape[0]):
            s0 = s1 = s2 = s3 = s4 = s5 = np.float32(0)
            for j in range(LANES):
                t = np.float32(codes[f, j]) * unit - base
                r = residual[j]
                s0 += r * ramp(t, 0)
                s1 += r * ramp(t, 1)
                s2 += r * ramp(t, 2)
                s3 += r * ramp(t, 3)
                s4 += r * ramp(t, 4)
                s5 += r * ramp(t, 5)
            ramps[f, first] += s0
            ramps[f, first + 1] += s1
            ramps[f, first + 2] += s2
            ramps[f, first + 3] += s3
            ramps[f, first + 4] += s4
            ramps[f, first + 5] += s5


@jit(fastmath={"reassoc", "contract", "nsz"})
def block_squares(codes, unit, weight, squares):  # type: ignore[no-untyped-def]
    """Add ``sum_j weight[j] * a_j * (1 - a_j)`` to ``squares[f]``.

    a_j is the position of the value of window j within its bin, from 0 to 1.
    """
    for f in range(codes.shape[0]):
        total = np.float32(0)
        for j in range(LANES):
            t = np.float32(codes[f, j]) * unit
            a = t - np.float32(np.int32(t))
            total += weight[j] * a * (np.float32(1) - a)
        squares[f] += total
