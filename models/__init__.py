"""Trained models: detectors, rankers and classifiers, and their file format.

The names are listed in ``__init__.pyi`` and imported on first use.
"""

from typing import Any

import lazy_loader

_FORMER = {  # former names, until 0.2
    "Face": "annealed.models.Face was renamed to Instance; the old name will be removed in 0.4",
    "OneEuroFilter": "OneEuroFilter is no longer used by the package; it will be removed in 0.4",
}
_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        import warnings

        warnings.warn(_FORMER[name], FutureWarning, stacklevel=2)
        if name == "OneEuroFilter":
            from .keypoints.instances.one_euro import OneEuroFilter

            return OneEuroFilter
        name = "Instance"
    return _lazy(name)
