"""Which data an estimator leaves where they are: files, Dask, torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .sources import Outside, Source, on_disk


def outside_memory(X, settings: Any) -> Outside | None:
    """The data as a matrix outside memory; None for what scikit-learn's ordinary checks take.

    ``settings`` is an estimator: a ``numpy.memmap`` is left on disk where it has a ``memory_limit``, and with a ``device`` the data
    go there.
    """
    if isinstance(X, Outside):
        return X
    module = type(X).__module__.split(".")[0]
    if isinstance(X, np.memmap):
        return on_disk(X) if settings.memory_limit is not None and X.ndim == 2 else None
    if module in ("h5py", "zarr") or type(X).__name__ == "ParquetFile":
        return on_disk(X)
    return None


def local(values):
    """Targets or weights as ordinary arrays, wherever they are."""
    if hasattr(values, "compute"):
        values = values.compute()
    if type(values).__module__.split(".")[0] == "torch":
        values = values.detach().cpu().numpy()
    return values


__all__ = ["Outside", "Source", "local", "outside_memory"]
