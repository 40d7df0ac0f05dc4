"""Activities at home from binary sensors: readers, simulation, protocols, reports."""

from .evaluate import check_selection_kinds, evaluate_baselines, evaluate_selection, table_rows
from .readers import read_home
from .report import REPORT_FILES, draw_day, print_results, write_report
from .selection import METHODS
from .train import FULL_KINDS, SELECTION_KINDS, train_model

__all__ = [
    "FULL_KINDS",
    "METHODS",
    "REPORT_FILES",
    "SELECTION_KINDS",
    "check_selection_kinds",
    "draw_day",
    "evaluate_baselines",
    "evaluate_selection",
    "print_results",
    "read_home",
    "table_rows",
    "train_model",
    "write_report",
]
