"""Number of bytes read for some columns, by the layout of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
from annealed.learners.sources.batches import BatchSource
from annealed.learners.sources.parquet import ParquetSource
from annealed.learners.sources.raw import RawSource
from annealed.learners.sources.sparse_files import SparseSource


def bytes_of_read(source: Any, columns: np.ndarray) -> int:
    """Return the bytes read for all rows of these columns; for Parquet, as stored, compressed."""
    if isinstance(source, ParquetSource):
        total = 0
        for part in dict.fromkeys(part for part, _ in source._groups):
            meta = part.file.metadata
            at = {meta.schema.column(i).path: i for i in range(meta.num_columns)}
            places = [at[source.names[j]] for j in columns if source.names[j] not in part.keys]
            total += sum(
                meta.row_group(g).column(place).total_compressed_size
                for g in part.groups
                for place in places
            )
        return total
    if isinstance(source, SparseSource):
        return source.nnz * (source.stored.itemsize + 4)
    n, m = source.shape
    if isinstance(source, BatchSource):
        return n * m * source.stored.itemsize
    if isinstance(source, RawSource):
        width = len(columns) if source.order == "F" else int(columns[-1] - columns[0]) + 1
        return n * width * source.stored.itemsize
    touched = len(np.unique(np.asarray(columns) // source.column_step)) * source.column_step
    return -(-n // source.row_step) * source.row_step * touched * source.stored.itemsize
