"""Answers of the worker processes, with one module per tab of the page."""
