"""Former name of :mod:`annealed.pipelines.keypoints`, used until version 0.2."""

import warnings

from . import keypoints

warnings.warn(
    "annealed.pipelines.faces was renamed to annealed.pipelines.keypoints; the old name will be "
    "removed in 0.4",
    FutureWarning,
    stacklevel=2,
)
__path__ = keypoints.__path__
