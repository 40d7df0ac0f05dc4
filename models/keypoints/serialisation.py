"""The parts of a keypoint detector as arrays and plain data, and back, with every array checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.responses import Responses
from ..files import check_array
from .guided_search import Guide
from .non_maximum_suppression import Localisation
from .shape_model import ShapeModel
from .shape_regression import Context, Refinement
from .window_models import KeypointModel, OffsetModel, WindowModel

Arrays = dict[str, np.ndarray]


def write_parts(
    models: dict[str, KeypointModel], guides: dict[str, Guide], context: Context | None
) -> tuple[Arrays, dict[str, Any]]:
    """Arrays by name, and entries of the header."""
    arrays: Arrays = {}
    header: dict[str, Any] = {"models": {}}
    for name, model in models.items():
        header["models"][name] = _write_model(arrays, name, model)
    if guides:
        header["guides"] = {}
    for name, guide in guides.items():
        nodes = [_write_model(arrays, f"{name}/prune{i}", node) for i, node in enumerate(guide.prune)]
        _write_offsets(arrays, f"{name}/offsets", guide.offsets)
        header["guides"][name] = {"prune": nodes, "grid": guide.grid, "reach": guide.reach}
        if guide.verifier is not None:
            header["guides"][name]["verifier"] = _write_model(arrays, f"{name}/verifier", guide.verifier)
    if context is not None:
        arrays["context/mean"], arrays["context/covariance"] = context.shape.mean, context.shape.covariance
        steps = {}
        for name, refinements in context.refinements.items():
            steps[name] = [float(step.ied) for step in refinements]
            for i, step in enumerate(refinements):
                _write_offsets(arrays, f"context/{name}/{i}", step.model)
        header["context"] = {
            "keypoints": list(context.shape.keypoints),
            "anchors": context.anchors,
            "noise": float(context.shape.noise),
            "refinements": steps,
            "floor": float(context.floor),
            "weight": float(context.weight),
            "thresholds": {name: float(value) for name, value in context.thresholds.items()},
            "least": float(context.least),
        }
    return arrays, header


def read_parts(
    path, arrays: Arrays, header: dict[str, Any], pool: FeaturePool
) -> tuple[dict[str, KeypointModel], dict[str, Guide], Context | None]:
    """What :func:`write_parts` took; guides and context may be missing.

    Raises
    ------
    ValueError
        For arrays that are missing, of another shape or not finite.
    KeyError, TypeError
        For a damaged header.
    """
    models = {name: _read_model(path, arrays, name, header["models"][name], pool) for name in header["keypoints"]}
    guides = {}
    for name, described in header.get("guides", {}).items():
        if name not in models:
            raise ValueError(f"a guide to the unknown keypoint {name!r}")
        nodes = [_read_model(path, arrays, f"{name}/prune{i}", node, pool) for i, node in enumerate(described["prune"])]
        grid, reach = int(described["grid"]), int(described["reach"])
        if grid < 1 or not 0 <= reach <= 100:
            raise ValueError(f"{name}: grid={grid}, reach={reach}")
        offsets = _read_offsets(path, arrays, f"{name}/offsets", pool)
        own = described.get("verifier")
        verifier = None if own is None else _read_model(path, arrays, f"{name}/verifier", own, pool)
        guides[name] = Guide(tuple(nodes), offsets, grid, reach, verifier)
    described = header.get("context")
    if described is None:
        return models, guides, None
    names = tuple(described["keypoints"])
    n = len(names)
    anchors = np.array([names.index(name) for name in described["anchors"]])
    noise, floor, weight, least = (float(described[key]) for key in ("noise", "floor", "weight", "least"))
    thresholds = {str(name): float(value) for name, value in described["thresholds"].items()}
    if len(anchors) < 2 or not noise > 0 or not np.isfinite([noise, floor, weight, least, *thresholds.values()]).all():
        raise ValueError(f"context: anchors={described['anchors']}, noise={noise}, floor={floor}, weight={weight}, least={least}")
    shape = ShapeModel(
        names,
        anchors,
        check_array(path, arrays, "context/mean", np.float64, (n, 2)),
        check_array(path, arrays, "context/covariance", np.float64, (2 * n, 2 * n)),
        noise,
    )
    refinements = {}
    for name, sides in described["refinements"].items():
        if name not in names or not all(isinstance(side, int | float) and 1 <= side <= 1000 for side in sides):
            raise ValueError(f"context: refinements of {name!r} at {sides}")
        steps = [Refinement(_read_offsets(path, arrays, f"context/{name}/{i}", pool), float(s)) for i, s in enumerate(sides)]
        refinements[name] = tuple(steps)
    for name in [*described["anchors"], *refinements]:
        if name not in models:
            raise ValueError(f"context: the model has no keypoint {name!r}")
    return models, guides, Context(shape, refinements, floor, weight, thresholds, least)


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
    if not np.isfinite(bin_width).all() or not np.isfinite(values).all():
        raise ValueError(f"{name}: expected finite numbers")
    return features, Responses(low, bin_width, values)


def _read_model(path, arrays: Arrays, name: str, described: dict, pool: FeaturePool) -> KeypointModel:
    features, responses = _read_responses(path, arrays, name, pool)
    threshold = float(described["threshold"])
    if np.isnan(threshold):
        raise ValueError(f"{name}: threshold is not a number")
    intercept = float(check_array(path, arrays, f"{name}/intercept", np.float64, (1,))[0])
    thresholds = check_array(path, arrays, f"{name}/thresholds", np.float32, (len(features),))
    return KeypointModel(features, responses, intercept, thresholds, Localisation.from_dict(described["localisation"]), threshold)


def _read_offsets(path, arrays: Arrays, name: str, pool: FeaturePool) -> OffsetModel:
    features, responses = _read_responses(path, arrays, name, pool, (2,))
    intercept = check_array(path, arrays, f"{name}/intercept", np.float32, (2,))
    if not np.isfinite(intercept).all():
        raise ValueError(f"{name}: expected finite numbers")
    return OffsetModel(features, responses, intercept)
