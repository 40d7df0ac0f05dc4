"""The answers of the worker processes: one module per tab of the page."""
