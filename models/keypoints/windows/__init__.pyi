"""Windows that show one keypoint: models, search in a pyramid, and non-maximum suppression."""

from .non_maximum_suppression import LocalMaxima, local_maxima
from .object_search import SAME_OCTAVES, SAME_RADIUS, ObjectSearch, level_at
from .turned_photographs import (
    ALL_ROUND,
    DEFAULT_ROLL,
    MAX_ROLL,
    evened,
    evened_levels,
    turned_maxima,
)
from .window_models import (
    DEFAULT_REFERENCE_LENGTH,
    FaceCascade,
    Guide,
    KeypointModel,
    Localisation,
    Mode,
    SecondNode,
)
from .window_search import WindowSearch

__all__ = [
    "ALL_ROUND",
    "DEFAULT_REFERENCE_LENGTH",
    "DEFAULT_ROLL",
    "MAX_ROLL",
    "SAME_OCTAVES",
    "SAME_RADIUS",
    "FaceCascade",
    "Guide",
    "KeypointModel",
    "LocalMaxima",
    "Localisation",
    "Mode",
    "ObjectSearch",
    "SecondNode",
    "WindowSearch",
    "evened",
    "evened_levels",
    "level_at",
    "local_maxima",
    "turned_maxima",
]
