"""Sparse learners that see: feature selection with annealing, and vision tools built on it."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the package that defines it. Resolved on first use: `import annealed` stays cheap, and nothing of ours is
# imported when a test runner executes this file under the checkout's own folder name.
_PUBLIC = {
    "FSAClassifier": "learners",
    "FSARegressor": "learners",
    "FSARanker": "learners",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"annealed.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'annealed' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
