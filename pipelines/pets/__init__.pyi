"""Cats and dogs: data, evaluation, reports."""

from .classify import classify_file
from .data import Photographs, read_pets, usable
from .evaluate import COLUMNS, evaluate_classifier
from .report import REPORT_FILES, draw_evidence, write_report

__all__ = [
    "COLUMNS",
    "REPORT_FILES",
    "Photographs",
    "classify_file",
    "draw_evidence",
    "evaluate_classifier",
    "read_pets",
    "usable",
    "write_report",
]
