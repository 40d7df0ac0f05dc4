"""Column selection in tables: encoding decisions, options, validation and the fit."""

from .frames import (
    check_names,
    labels_of,
    offset_of,
    read_target,
    rows_with_target,
    table_from_frame,
    target_of,
    usable,
    weights,
)
from .options import Note, SelectionOptions, SelectionParameters
from .selection import N_HALVES, Selection, select_table, shown
from .table import LARGE, MAX_ROWS, Table, by_reason, encode_matrix, is_precise
from .validation import Progress, fitted

__all__ = [
    "LARGE",
    "MAX_ROWS",
    "N_HALVES",
    "Note",
    "Progress",
    "Selection",
    "SelectionOptions",
    "SelectionParameters",
    "Table",
    "by_reason",
    "check_names",
    "encode_matrix",
    "fitted",
    "is_precise",
    "labels_of",
    "offset_of",
    "read_target",
    "rows_with_target",
    "select_table",
    "shown",
    "table_from_frame",
    "target_of",
    "usable",
    "weights",
]
