"""Sparse additive models of windows in the form that the compiled loops read."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .feature_pool import FeaturePool, response_tables
from .kernels import Program

__all__ = ["Additive", "additive"]

_FIRST_STAGE = 8  # features of the first stage of a cascade; every next stage has twice as many


@dataclass(frozen=True)
class Additive:
    """A sparse additive model in the form that the compiled loops read; `additive` makes it. n features, q outputs.

    Attributes
    ----------
    program : Program
        The features.
    slope, shift : (n,) float32 ndarrays
        A numerator s of feature f, times its scale, lies at ``s * slope[f] - shift[f]`` among the bins.
    top : float32
        Number of bins.
    start : (q, n) float32 ndarray
        Responses at the left border.
    rises : (q, n, 6 * K) float32 ndarray
        How much the response rises in each bin.
    intercept : (q,) float32 ndarray
    limits : (n,) float32 ndarray
        Rejection thresholds of the first output.
    stages : (m + 1,) int64 ndarray
        Features 0, 8, 24, 56, ..., n, and the first one that needs histograms: windows that are rejected in one stage
        do not enter the next.
    plain : int
        Stages before the first feature that needs histograms.
    """

    program: Program
    slope: npt.NDArray[np.float32]
    shift: npt.NDArray[np.float32]
    top: np.float32
    start: npt.NDArray[np.float32]
    rises: npt.NDArray[np.float32]
    intercept: npt.NDArray[np.float32]
    limits: npt.NDArray[np.float32]
    stages: npt.NDArray[np.int64]
    plain: int


def additive(
    pool: FeaturePool,
    features: npt.ArrayLike,
    lo: npt.ArrayLike,
    step: npt.ArrayLike,
    coef: npt.ArrayLike,
    intercept: npt.ArrayLike,
    thresholds: npt.ArrayLike | None = None,
) -> Additive:
    """Prepare a model for any number of levels; parameters and errors as in `annealed.vision.windows.dense_scan.scan`.

    ``coef`` (n, B + 1, q) and ``intercept`` (q,) make a model of q outputs.
    """
    program = pool.compile(features)
    n_features = len(program.channel)
    table = np.asarray(coef, dtype=np.float32)
    table = table[:, :, None] if table.ndim == 2 else table
    offset = np.atleast_1d(np.asarray(intercept, dtype=np.float32))
    if table.ndim != 3 or offset.shape != table.shape[2:]:
        raise ValueError(f"coef of shape {np.shape(coef)}, intercept of shape {np.shape(intercept)}: expected the same outputs")
    parts = [response_tables(n_features, lo, step, table[:, :, q]) for q in range(table.shape[2])]
    low, inverse_step, top, *_ = parts[0]
    limits = np.full(n_features, -np.inf, np.float32) if thresholds is None else np.asarray(thresholds, dtype=np.float32)
    if limits.shape != (n_features,) or np.isnan(limits).any():
        raise ValueError(f"thresholds of shape {limits.shape}: expected one number for each of {n_features} features")
    start, rises = np.stack([part[3] for part in parts]), np.stack([part[4] for part in parts])
    first_hog = int(program.with_0.min(initial=n_features))
    stages = stage_ends(n_features, first_hog)
    return Additive(
        program, program.inverse_area * inverse_step, low * inverse_step, top, start, rises, offset, limits,
        stages, int(np.searchsorted(stages, first_hog)),
    )  # fmt: skip


def stage_ends(n_features: int, first_hog: int) -> npt.NDArray[np.int64]:
    """Where stages begin and end; see `Additive`."""
    ends = np.minimum(_FIRST_STAGE * (2 ** np.arange(60) - 1), n_features)
    return np.unique(np.append(ends, [first_hog, n_features])).astype(np.int64)
