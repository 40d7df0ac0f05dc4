"""The name of :mod:`annealed.pipelines.keypoints` until 0.2: the old import paths still work."""

import warnings

from . import keypoints

warnings.warn(
    "annealed.pipelines.faces is annealed.pipelines.keypoints; the old name ends with 0.4",
    FutureWarning,
    stacklevel=2,
)
__path__ = keypoints.__path__
