"""Reading, selection and prediction of tables in files."""

from .prediction import predict_table
from .selection import select_file
from .tables import FRAMES, check_out, write_columns, write_frame

__all__ = [
    "FRAMES",
    "check_out",
    "predict_table",
    "select_file",
    "write_columns",
    "write_frame",
]
