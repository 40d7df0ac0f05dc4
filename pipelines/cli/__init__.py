"""The command line ``annealed``: one module per group of commands."""

from .app import main

__all__ = ["main"]
