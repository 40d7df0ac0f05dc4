"""Computer vision: image pyramids, window features, dense SIFT, visual words, and point tracks.

The names are listed in ``__init__.pyi`` and imported on first use. The extra ``vision`` installs
the dependencies.
"""

import warnings
from importlib.util import find_spec
from typing import Any

import lazy_loader

for _package, _name in {"cv2": "OpenCV", "PIL": "Pillow"}.items():
    if find_spec(_package) is None:
        raise ModuleNotFoundError(
            f"reading images, videos and tracks requires {_name}; run pip install '.[vision]' "
            "in the annealed checkout",
            name=_package,
        )

_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "pixel_of":  # the former name, until 0.2
        warnings.warn(
            "annealed.vision.pixel_of was renamed to nearest_pixel; the old name will be removed "
            "in 0.4",
            FutureWarning,
            stacklevel=2,
        )
        return _lazy("nearest_pixel")
    return _lazy(name)
