"""Data that do not fit into memory, read in blocks from files and arrays."""

from .dask_matrix import DaskMatrix
from .files import anywhere, on_disk
from .matrix import OutOfCoreMatrix, Source, TorchMatrix, parse_bytes
from .moments import Moments, moments_of
from .parquet import ParquetPart, ParquetSource, open_parquet
from .sparse_files import SparseSource

__all__ = [
    "DaskMatrix",
    "Moments",
    "OutOfCoreMatrix",
    "ParquetPart",
    "ParquetSource",
    "Source",
    "SparseSource",
    "TorchMatrix",
    "anywhere",
    "moments_of",
    "on_disk",
    "open_parquet",
    "parse_bytes",
]
