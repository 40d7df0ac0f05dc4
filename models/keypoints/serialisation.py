"""The parts of a keypoint detector as arrays and plain data, and back, with every array checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.responses import Responses
from ..faces.face_finder import FaceFinder
from ..faces.serialisation import read_faces, write_faces
from ..files import check_array, check_settings
from .face_cascade import FaceCascade
from .guided_search import Guide
from .non_maximum_suppression import Localisation
from .window_models import KeypointModel, OffsetModel, WindowModel

Arrays = dict[str, np.ndarray]


def write_parts(
    models: dict[str, KeypointModel],
    guides: dict[str, Guide],
    face_cascade: FaceCascade | None,
    faces: FaceFinder | None,
) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays by name, and entries of the header; the names are those of the file format."""
    arrays: Arrays = {}
    header: dict[str, Any] = {"models": {}}
    for name, model in models.items():
        header["models"][name] = _write_model(arrays, name, model)
    if guides:
        header["guides"] = {}
    for name, guide in guides.items():
        _write_offsets(arrays, f"{name}/offsets", guide.offsets)
        header["guides"][name] = {"grid": guide.grid, "reach": guide.reach}
    if face_cascade is not None:
        described = _write_model(arrays, "face", face_cascade.classifier)
        expected = {name: list(vector) for name, vector in face_cascade.expected.items()}
        header["face_cascade"] = {"classifier": described, "expected": expected, "coarser": face_cascade.coarser}
    if faces is not None:
        header["faces"] = write_faces(arrays, faces)
    return arrays, header


def read_parts(
    path, arrays: Arrays, header: dict[str, Any], pool: FeaturePool
) -> tuple[dict[str, KeypointModel], dict[str, Guide], FaceCascade | None, FaceFinder | None]:
    """Return what :func:`write_parts` took; guides, face cascade and face finder may be missing.

    A damaged array is a ValueError, a damaged header one of that, KeyError and TypeError.
    """
    models = {name: _read_model(path, arrays, name, header["models"][name], pool) for name in header["keypoints"]}
    guides = {}
    for name, described in header.get("guides", {}).items():
        if name not in models:
            raise ValueError(f"a guide to the unknown keypoint {name!r}")
        guides[name] = read_guide(path, arrays, name, described, pool)
    described = header.get("face_cascade")
    cascade = None if described is None else _read_face_cascade(path, arrays, described, pool)
    described = header.get("faces")
    finder = None if described is None else read_faces(path, arrays, described)
    for name in finder.anchors if finder is not None else ():
        if name not in models:
            raise ValueError(f"faces: the model has no keypoint {name!r}")
    return models, guides, cascade, finder


def read_guide(path, arrays: Arrays, name: str, described: dict, pool: FeaturePool) -> Guide:
    """Return the guide of one keypoint; errors as of :func:`read_parts`."""
    if described.get("prune"):
        raise ValueError(f"{name}: a pruning cascade of its own, of an older version; expected a face cascade: train again")
    numbers = {part: described[part] for part in ("grid", "reach")}
    check_settings(numbers, {"grid": 10, "reach": 2}, {"grid": (1, 1000), "reach": (0, 100)})
    return Guide(_read_offsets(path, arrays, f"{name}/offsets", pool), **numbers)


def _read_face_cascade(path, arrays: Arrays, described: dict, pool: FeaturePool) -> FaceCascade:
    coarser = float(check_settings({"coarser": described["coarser"]}, {"coarser": 0.5}, {"coarser": (1 / 64, 0.99)})["coarser"])
    names = list(described["expected"])
    check_settings(described["expected"], dict.fromkeys(names, (0.0, 0.0)), dict.fromkeys(names, (-10, 10)))
    expected = {name: (float(x), float(y)) for name, (x, y) in described["expected"].items()}
    return FaceCascade(_read_model(path, arrays, "face", described["classifier"], pool), expected, coarser)


# Names of the arrays in a file: the first knot, the distance of the knots and the values of the responses.
_LOW, _BIN_WIDTH, _VALUES = "lo", "step", "coef"


def _write_window_model(arrays: Arrays, name: str, model: WindowModel) -> None:
    arrays[f"{name}/features"] = model.features
    arrays[f"{name}/{_LOW}"] = model.responses.low
    arrays[f"{name}/{_BIN_WIDTH}"] = model.responses.bin_width
    arrays[f"{name}/{_VALUES}"] = model.responses.values


def _write_model(arrays: Arrays, name: str, model: KeypointModel) -> dict[str, Any]:
    _write_window_model(arrays, name, model)
    arrays[f"{name}/thresholds"] = model.thresholds
    arrays[f"{name}/intercept"] = np.array([model.intercept], np.float64)
    return {"threshold": float(model.threshold), "localisation": model.localisation.to_dict()}


def _write_offsets(arrays: Arrays, name: str, model: OffsetModel) -> None:
    _write_window_model(arrays, name, model)
    arrays[f"{name}/intercept"] = np.asarray(model.intercept)


def _read_responses(
    path, arrays: Arrays, name: str, pool: FeaturePool, outputs: tuple[int, ...] = ()
) -> tuple[np.ndarray, Responses]:
    """Features and their responses."""
    features = pool.check(check_array(path, arrays, f"{name}/features", np.int32, (None, 8)))
    k = len(features)
    low = check_array(path, arrays, f"{name}/{_LOW}", np.float32, (k,))
    bin_width = check_array(path, arrays, f"{name}/{_BIN_WIDTH}", np.float32, (k,))
    values = check_array(path, arrays, f"{name}/{_VALUES}", np.float32, (k, None, *outputs))
    if k < 1 or not (bin_width > 0).all() or values.shape[1] < 2:
        raise ValueError(f"{name}: expected at least one feature, one bin, and bins of a width above 0")
    return features, Responses(low, bin_width, values)


def _read_model(path, arrays: Arrays, name: str, described: dict, pool: FeaturePool) -> KeypointModel:
    features, responses = _read_responses(path, arrays, name, pool)
    threshold = float(check_settings({"threshold": described["threshold"]}, {"threshold": 0.0})["threshold"])
    intercept = float(check_array(path, arrays, f"{name}/intercept", np.float64, (1,))[0])
    thresholds = check_array(path, arrays, f"{name}/thresholds", np.float32, (len(features),), low=-np.inf)
    return KeypointModel(features, responses, intercept, thresholds, Localisation.from_dict(described["localisation"]), threshold)


def _read_offsets(path, arrays: Arrays, name: str, pool: FeaturePool) -> OffsetModel:
    features, responses = _read_responses(path, arrays, name, pool, (2,))
    return OffsetModel(features, responses, check_array(path, arrays, f"{name}/intercept", np.float32, (2,)))
