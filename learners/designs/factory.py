"""Factory of designs for arrays, sparse matrices, files, Dask collections and torch tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..compilation import is_small
from ..sources import DaskMatrix, OutOfCoreMatrix, Source, SparseSource, TorchMatrix, on_disk
from ..types import Matrix, Seed
from .base import Design, moments_of
from .dense import DenseDesign
from .explicit import ExplicitDesign
from .out_of_core import BlockDesign, PiecewiseBlockDesign
from .piecewise_linear import PiecewiseDesign
from .responses import PiecewiseLinear, as_response, width_of
from .sparse import SparseBlockDesign, SparseDesign


def as_out_of_core(X: Matrix) -> OutOfCoreMatrix | None:
    """Wrap data as an out-of-core matrix if necessary.

    Parameters
    ----------
    X : object
        Data passed to ``fit`` or ``predict``. A ``numpy.memmap`` is treated as an array; to read it
        in blocks, wrap it with `on_disk`.

    Returns
    -------
    OutOfCoreMatrix or None
        Wrapped data, or None for data that scikit-learn's validation accepts.
    """
    module = type(X).__module__.split(".")[0]
    if isinstance(X, OutOfCoreMatrix):
        return X
    if module == "torch":
        return TorchMatrix(X)
    if module in ("h5py", "zarr") or type(X).__name__ == "ParquetFile":
        return on_disk(X)
    return DaskMatrix(X) if module in ("dask", "dask_expr") else None


def make_design(
    X: Matrix,
    sample_weight: np.ndarray,
    response: str | PiecewiseLinear = "linear",
    random_state: Seed = None,
) -> Design:
    """Create the design for validated data.

    Parameters
    ----------
    X : array, sparse matrix or OutOfCoreMatrix of shape (n_samples, n_features)
        Values in float32 or float64.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    response : {"linear", "piecewise"} or PiecewiseLinear, default "linear"
        Response to each feature.
    random_state : int, RandomState or None, default None
        Random seed for subsampling.

    Returns
    -------
    Design
        Design for this type of data and response.

    Raises
    ------
    ValueError
        If the response is unknown, or X contains NaN or infinity that the response does not accept.
    """
    piecewise = as_response(response) if response != "linear" else None  # type: ignore[comparison-overlap]
    if isinstance(X, SparseSource) and piecewise is None:
        return SparseBlockDesign(X, sample_weight)
    if isinstance(X, Source):
        return (
            BlockDesign(X, sample_weight, random_state)
            if piecewise is None
            else PiecewiseBlockDesign(X, sample_weight, piecewise, random_state)
        )
    if isinstance(X, DaskMatrix):
        from .dask_design import DaskDesign

        return DaskDesign(X, sample_weight, piecewise, random_state)
    if isinstance(X, TorchMatrix):
        from .torch_design import TorchDesign, TorchPiecewiseDesign

        return (
            TorchDesign(X.tensor, sample_weight)
            if piecewise is None
            else TorchPiecewiseDesign.of(X.tensor, sample_weight, piecewise)
        )
    if sp.issparse(X):
        return SparseDesign(X, sample_weight)
    if piecewise is not None:
        small = is_small(X.size * width_of(piecewise))
        make = ExplicitDesign.piecewise_linear if small else PiecewiseDesign.from_matrix
        return make(X, piecewise.knots(X, sample_weight), sample_weight)
    small = is_small(X.size)
    return (
        ExplicitDesign.linear(X, *moments_of(X, sample_weight))
        if small
        else DenseDesign(X, sample_weight)
    )


def local(values: Any) -> np.ndarray:
    """Return targets or weights as a NumPy array."""
    if hasattr(values, "compute"):
        values = values.compute()
    if type(values).__module__.split(".")[0] == "torch":
        values = values.detach().cpu().numpy()
    return values


def rowwise(
    function: Callable[[np.ndarray], np.ndarray],
    scores: Any,
    n_columns: int = 0,
    dtype: npt.DTypeLike = np.float64,
) -> Any:
    """Apply ``function`` to each row of the scores, lazily for Dask arrays.

    The result has shape (n, n_columns), or (n,) if ``n_columns`` is 0.
    """
    if isinstance(scores, np.ndarray):
        return function(scores)
    chunks = (scores.chunks[0], (n_columns,)) if n_columns else (scores.chunks[0],)
    axes = {"new_axis": [1]} if n_columns else {"drop_axis": [1]}
    if scores.ndim == (2 if n_columns else 1):
        axes = {}
    return scores.map_blocks(function, dtype=dtype, chunks=chunks, **axes)


def unscaled(design: Design, X: Matrix) -> Design:
    """Undo the standardisation of a design, so that columns with large values are favoured.

    All columns are divided by a common factor such that their mean variance is one, so step sizes
    remain valid.

    Parameters
    ----------
    design : Design
        Design of linear responses to ``X``; it is changed in place.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Data of the design.

    Returns
    -------
    Design
        The changed design.

    Raises
    ------
    ValueError
        If the design does not support raw units.
    """
    if isinstance(X, OutOfCoreMatrix) or design.width > 1:
        raise ValueError(
            "scaling='none' requires linear responses on an array or a sparse matrix; use "
            "scaling='standardize'"
        )
    moving = design.inv > 0
    variance = np.mean(design.inv[moving] ** -2.0) if moving.any() else 1.0
    design.rescale(moving / np.sqrt(variance))
    return design
