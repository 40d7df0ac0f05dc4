"""Designs: scores, gradients and column subsets of data in memory, on disk, in Dask or torch."""

from . import kernels
from .base import (
    Design,
    FirstReadDesign,
    NotFiniteError,
    inverse_scale,
    warn_if_constant,
    warn_of_lost_digits,
)
from .factory import as_out_of_core, local, make_design, rowwise, unscaled
from .piecewise_linear import PiecewiseDesign, encoded, hat_basis, histograms, in_blocks, sublevels
from .responses import PiecewiseLinear, even_knots, width_of
from .sparse import SparseDesign, canonical

__all__ = [
    "Design",
    "FirstReadDesign",
    "NotFiniteError",
    "PiecewiseDesign",
    "PiecewiseLinear",
    "SparseDesign",
    "as_out_of_core",
    "canonical",
    "encoded",
    "even_knots",
    "hat_basis",
    "histograms",
    "in_blocks",
    "inverse_scale",
    "kernels",
    "local",
    "make_design",
    "rowwise",
    "sublevels",
    "unscaled",
    "warn_if_constant",
    "warn_of_lost_digits",
    "width_of",
]
