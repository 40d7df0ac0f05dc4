"""Which data an estimator leaves where they are: files, Dask, torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..sources.files import Outside, on_disk


def outside_memory(X, settings: Any) -> Outside | None:
    """The data as a matrix outside memory; None for what scikit-learn's ordinary checks take.

    ``settings`` is an estimator: a ``numpy.memmap`` is left on disk where it has a ``memory_limit``, and with a ``device`` the data
    go there.
    """
    if isinstance(X, Outside):
        return X
    module = type(X).__module__.split(".")[0]
    if module == "torch" or settings.device is not None:
        if module == "scipy":
            raise ValueError(f"device={settings.device!r} and a sparse matrix; expected dense data")
        try:
            from .torch_design import TorchMatrix
        except ModuleNotFoundError:
            raise ModuleNotFoundError(f"device={settings.device!r} needs torch (pip install annealed[torch])") from None

        return TorchMatrix(X, settings.device)
    if isinstance(X, np.memmap):
        return on_disk(X) if settings.memory_limit is not None and X.ndim == 2 else None
    if module in ("h5py", "zarr") or type(X).__name__ == "ParquetFile":
        return on_disk(X)
    if module in ("dask", "dask_expr"):
        from .dask_design import DaskMatrix

        return DaskMatrix(X)
    return None


def local(values):
    """Targets or weights as ordinary arrays, wherever they are."""
    if hasattr(values, "compute"):
        values = values.compute()
    if type(values).__module__.split(".")[0] == "torch":
        values = values.detach().cpu().numpy()
    return values


def rowwise(function, scores, n_columns: int = 0, dtype=np.float64):
    """``function`` of scores, row by row: (n, n_columns), or (n,) where that is 0; lazily where the scores are a Dask array."""
    if isinstance(scores, np.ndarray):
        return function(scores)
    chunks = (scores.chunks[0], (n_columns,)) if n_columns else (scores.chunks[0],)
    axes = {"new_axis": [1]} if n_columns and scores.ndim == 1 else {"drop_axis": [1]} if not n_columns and scores.ndim == 2 else {}
    return scores.map_blocks(function, dtype=dtype, chunks=chunks, **axes)


__all__ = ["Outside", "local", "outside_memory", "rowwise"]
