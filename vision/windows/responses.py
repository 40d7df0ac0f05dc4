"""Piecewise-linear responses with equidistant knots, and sparse additive models."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .feature_layout import Program
from .kernels import accumulate

# number of features in the first stage of a cascade; it doubles with every stage (heuristic)
_FIRST_STAGE = 8


class ResponseTables(NamedTuple):
    """Responses of one output to n features with B bins, in the form used by compiled loops."""

    low: npt.NDArray[np.float32]  # (n,)
    inverse_bin_width: npt.NDArray[np.float32]  # (n,)
    top: np.float32  # B
    start: npt.NDArray[np.float32]  # (n,) response at the first knot
    # (n, B rounded up to a multiple of 6): rise of the response in each bin
    rises: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Responses:
    """Piecewise-linear responses to features, as in section 2.5.1 of Barbu et al. (2017) [1]_.

    With B bins, the response to a feature is linear between adjacent knots ``low + b * bin_width``,
    b = 0, ..., B, and constant below the first and above the last.

    Parameters
    ----------
    low : array_like of shape (n,), float
        Position of the first knot for each feature.
    bin_width : array_like of shape (n,), float
        Distance between neighbouring knots for each feature, which must be positive.
    values : (n, B + 1) or (n, B + 1, n_outputs) array_like of float
        Responses at the knots. Each feature must have at least two knots.

    Raises
    ------
    ValueError
        If the arrays have inconsistent shapes or a value is out of range.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.vision import Responses
    >>> responses = Responses([0.0], [1.0], [[0.0, 5.0, 5.0]])
    >>> responses.running_sums(np.float32([[0.5], [7.0]]), 1.0).ravel()
    array([3.5, 6. ], dtype=float32)
    """

    low: npt.NDArray[Any]
    bin_width: npt.NDArray[Any]
    values: npt.NDArray[Any]

    def __post_init__(self) -> None:
        for name in ("low", "bin_width", "values"):
            object.__setattr__(
                self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float32)
            )
        n = len(self.values)
        if self.values.ndim not in (2, 3) or self.values.shape[1] < 2:
            raise ValueError(
                f"values has shape {self.values.shape}; "
                "expected (n_features, n_bins + 1) or (n_features, n_bins + 1, n_outputs)"
            )
        if self.low.shape != (n,) or self.bin_width.shape != (n,):
            shapes = (
                f"low has shape {self.low.shape} and bin_width has shape {self.bin_width.shape}"
            )
            raise ValueError(f"{shapes}; expected one number for each of the {n} features")
        if not (self.bin_width > 0).all() or not np.isfinite(self.low).all():
            raise ValueError(
                "low or bin_width contains invalid values; "
                "expected finite numbers, and bin_width > 0"
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_bins(self) -> int:
        """Number of bins B for each feature."""
        return self.values.shape[1] - 1

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return self.values.shape[2] if self.values.ndim == 3 else 1

    def check_length(self, n_features: int) -> None:
        """Check that there is one response per feature; otherwise raise a ValueError.

        Parameters
        ----------
        n_features : int
            Number of features of a model.
        """
        if len(self) != n_features:
            raise ValueError(
                f"there are responses for {len(self)} features; "
                f"expected one for each of the {n_features} features"
            )

    def take(self, rows: npt.ArrayLike) -> "Responses":
        """Return the responses to the features with the indices ``rows``, in the given order.

        Parameters
        ----------
        rows : array_like of int
            Indices of the features.

        Returns
        -------
        Responses
            Responses to the given features.
        """
        chosen = np.asarray(rows)
        return Responses(self.low[chosen], self.bin_width[chosen], self.values[chosen])

    def mirrored(self, signs: npt.NDArray[np.int8]) -> "Responses":
        """Return the responses to mirrored features, whose values are multiplied by ``signs``.

        Parameters
        ----------
        signs : ndarray of shape (n,), int8
            -1 if mirroring changes the sign of the feature, otherwise 1.

        Returns
        -------
        Responses
            Responses to the mirrored features.
        """
        turned = signs < 0
        low = np.where(turned, -(self.low + self.n_bins * self.bin_width), self.low)
        shape = (-1,) + (1,) * (self.values.ndim - 1)
        return replace(
            self, low=low, values=np.where(turned.reshape(shape), self.values[:, ::-1], self.values)
        )

    def tables(self, output: int = 0) -> ResponseTables:
        """Return the tables of one output for the compiled loops.

        Parameters
        ----------
        output : int, default 0
            Index of the output.

        Returns
        -------
        ResponseTables
            Tables, which are views of the responses where possible.
        """
        values = np.ascontiguousarray(
            self.values if self.values.ndim == 2 else self.values[:, :, output]
        )
        rises = np.zeros((len(self), -(-self.n_bins // 6) * 6), np.float32)
        rises[:, : self.n_bins] = np.diff(values, axis=1)
        inverse_bin_width = (1 / self.bin_width.astype(np.float64)).astype(np.float32)
        return ResponseTables(
            self.low,
            inverse_bin_width,
            np.float32(self.n_bins),
            np.ascontiguousarray(values[:, 0]),
            rises,
        )

    def running_sums(
        self, feature_values: npt.NDArray[np.float32], intercept: float, output: int = 0
    ) -> npt.NDArray[np.float32]:
        """Compute the running sum after each feature, in the same way as a scan.

        Parameters
        ----------
        feature_values : ndarray of shape (n_rows, n), float32
            Values from `FeaturePool.evaluate`.
        intercept : float
            Initial value of the sums.
        output : int, default 0
            Index of the output.

        Returns
        -------
        ndarray of shape (n_rows, n), float32

        Raises
        ------
        ValueError
            If the number of columns of ``feature_values`` differs from n.
        """
        self.check_length(feature_values.shape[1])
        sums = np.empty_like(feature_values)
        accumulate(feature_values, self.tables(output), np.float32(intercept), sums)
        return sums


class CompiledModel(NamedTuple):
    """Sparse additive model with n window features and q outputs, compiled for scanning.

    Features are grouped into stages: windows that one stage rejects do not enter the next.
    """

    program: Program
    # (q, n, 3): slope, shift and start of the responses; see `kernels.respond`
    lines: npt.NDArray[np.float32]
    # (q, n, B rounded up to a multiple of 6): rise of the response in each bin
    rises: npt.NDArray[np.float32]
    knots: npt.NDArray[np.float32]  # (q, n, the same number + 1): responses at the knots
    top: np.float32  # B
    intercept: npt.NDArray[np.float32]  # (q,)
    limits: npt.NDArray[np.float32]  # (n,) rejection thresholds of the first output
    # boundaries of the stages: features 0, 8, 24, 56, ..., n, and the first one that needs
    # histograms
    stages: npt.NDArray[np.int64]
    n_plain: int  # stages before the first feature that needs histograms


def compile_model(
    program: Program,
    responses: Responses,
    intercept: npt.ArrayLike,
    thresholds: npt.ArrayLike | None = None,
) -> CompiledModel:
    """Compile a model for scanning.

    See `annealed.vision.scan` for the parameters and errors.
    """
    n_features = len(program.channel)
    responses.check_length(n_features)
    tables = [responses.tables(q) for q in range(responses.n_outputs)]
    offset = np.atleast_1d(np.asarray(intercept, dtype=np.float32))
    if offset.shape != (responses.n_outputs,):
        raise ValueError(
            f"intercept has shape {offset.shape}; "
            f"expected one number for each of the {responses.n_outputs} outputs"
        )
    low, inverse_bin_width, top, *_ = tables[0]
    limits = (
        np.full(n_features, -np.inf, np.float32)
        if thresholds is None
        else np.array(thresholds, dtype=np.float32)
    )
    if limits.shape != (n_features,) or np.isnan(limits).any():
        raise ValueError(
            f"thresholds has shape {limits.shape}; expected one number that is not NaN for each "
            f"of the {n_features} features"
        )
    # A feature's numerator s, multiplied by its scale, is at position s * slope - shift among the
    # bins.
    slope, shift = program.inverse_area * inverse_bin_width, low * inverse_bin_width
    lines = np.stack([np.stack([slope, shift, table.start], axis=1) for table in tables])
    rises = np.stack([table.rises for table in tables])
    knots = lines[:, :, 2:] + np.pad(rises.cumsum(axis=2), ((0, 0), (0, 0), (1, 0)))
    first_hog = int(program.hog.min(initial=n_features))
    ends = np.minimum(_FIRST_STAGE * (2 ** np.arange(60) - 1), n_features)
    stages = np.array(sorted({*ends.tolist(), first_hog, n_features}), np.int64)
    return CompiledModel(
        program,
        lines,
        rises,
        knots,
        top,
        offset,
        limits,
        stages,
        int(np.searchsorted(stages, first_hog)),
    )
