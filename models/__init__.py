"""Trained models: detectors, rankers and classifiers, and their file format.

The names are listed in ``__init__.pyi`` and imported on first use.
"""

from typing import Any

import lazy_loader

_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "Face":  # its name until 0.2
        import warnings

        warnings.warn(
            "annealed.models.Face is Instance; the old name ends with 0.4",
            FutureWarning,
            stacklevel=2,
        )
        name = "Instance"
    return _lazy(name)
