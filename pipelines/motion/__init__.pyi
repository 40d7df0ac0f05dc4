"""Motion segmentation: benchmark protocol, compared methods, reports and segmentation of files."""

from . import evaluate
from .benchmark import POOLS, prepare
from .driving import TRAINING_KINDS
from .methods import METHODS, check_methods, has_lightgbm
from .report import REPORT_FILES, print_results, record_of, write_report
from .segment import MAX_FEW, segment_file, shipped_columns, shipped_settings, train_ranker
from .synthetic import TRAINING_SEEDS

__all__ = [
    "MAX_FEW",
    "METHODS",
    "POOLS",
    "REPORT_FILES",
    "TRAINING_KINDS",
    "TRAINING_SEEDS",
    "check_methods",
    "evaluate",
    "has_lightgbm",
    "prepare",
    "print_results",
    "record_of",
    "segment_file",
    "shipped_columns",
    "shipped_settings",
    "train_ranker",
    "write_report",
]
