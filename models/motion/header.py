"""Headers of ranker files: families of candidates, features and settings, each checked where it is
read."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...vision.tracks.candidates import Family, MergedFamily, NeighbourFamily, PairFamily, SubspaceFamily
from ...vision.tracks.features import SegmentationFeatures
from ...vision.tracks.pair_features import Features, JoinedFeatures, PairFeatures
from ...vision.tracks.pairs.frame_pairs import KERNELS
from ...vision.tracks.tracks import REPRESENTATIONS
from ..files import check_settings
from .ranking_function import RankerSettings

# Version of the features in a model file: 1 had those of subspaces alone; raise it when a feature
# changes its meaning.
FEATURE_SET = 2
# Kinds in the model file -> class.
_FAMILIES: dict[str, Any] = {"subspace": SubspaceFamily, "neighbours": NeighbourFamily, "pairs": PairFamily, "merged": MergedFamily}
_FEATURES: dict[str, type[SegmentationFeatures | PairFeatures]] = {"subspace": SegmentationFeatures, "pairs": PairFeatures}
_KIND_OF: dict[type, str] = {cls: kind for kinds in (_FAMILIES, _FEATURES) for kind, cls in kinds.items()}
# Settings that older files do not hold.
_LATER_SETTINGS = {"schedule": "inverse", "balance": 0.0, "standardize": False}

# Least and greatest number of a setting in a model file: choices, wider than any setting that makes
# sense.
LIMITS: dict[str, tuple[float, float]] = {
    "alpha": (0, 100),
    "floor": (1e-6, 1000),
    **dict.fromkeys(("lowest", "highest", "dimensions"), (0.5, 20)),
    **dict.fromkeys(("neighbours", "powers", "span", "n_thresholds", "n_smallest", "n_bins"), (1, 1000)),
    "extra": (1, 10),
}


def check_version(header: Mapping[str, Any]) -> None:
    """Raise a ValueError for features that this version does not know."""
    version = header.get("feature_set", 1)
    if version not in range(1, FEATURE_SET + 1):
        raise ValueError(f"feature set {version!r}, this version knows 1 to {FEATURE_SET}: update annealed or train again")


def records(parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Families or features as the header holds them."""
    return [{"kind": _KIND_OF[type(part)], **asdict(part)} for part in parts]


def read_families(records: Any) -> tuple[Family, ...]:
    """Families of candidates; a ValueError says what is wrong."""
    families = tuple(_read_family(record) for record in records)
    if not families:
        raise ValueError("0 families, expected at least one")
    return families


def _read_family(record: Any) -> Family:
    family = _FAMILIES[record["kind"]]
    settings = check_settings(_without_kind(record), asdict(family()), LIMITS)
    if settings.get("representation", "raw") not in REPRESENTATIONS or settings.get("lowest", 0) > settings.get("highest", 0):
        raise ValueError(f"family {record}: expected a known representation, and no lowest above the highest")
    if settings.get("kernel", KERNELS[0]) not in KERNELS:
        raise ValueError(f"family {record}: expected a kernel of {', '.join(KERNELS)}")
    return family(**settings)


def read_features(pool: Any) -> Features:
    """Features of a model file; feature set 1 holds those of subspaces, without their kind. A
    ValueError says what is wrong."""
    if isinstance(pool, dict):
        pool = [{"kind": "subspace", **pool}]
    parts = []
    for record in pool:
        part = _FEATURES[record["kind"]](**check_settings(_without_kind(record), asdict(_FEATURES[record["kind"]]()), LIMITS))
        unknown = [name for name in getattr(part, "representations", ()) if name not in REPRESENTATIONS]
        if unknown:
            raise ValueError(f"representations {unknown}: expected {', '.join(REPRESENTATIONS)}")
        parts.append(part)
    if not parts:
        raise ValueError("no features")
    return parts[0] if len(parts) == 1 else JoinedFeatures(tuple(parts))


def read_settings(record: Any) -> RankerSettings:
    """Settings of a ranking; a ValueError says what is wrong."""
    settings = RankerSettings(
        **check_settings({**_LATER_SETTINGS, **record}, {**_LATER_SETTINGS, **asdict(RankerSettings())}, LIMITS)
    )
    if settings.response not in ("linear", "piecewise"):
        raise ValueError(f"response {settings.response!r}: expected linear or piecewise")
    return settings


def _without_kind(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "kind"}
