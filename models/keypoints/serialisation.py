"""Conversion of the parts of a keypoint detector to and from arrays and plain data."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...vision.point_histograms import VALUES_PER_POINT
from ...vision.windows import FeaturePool, Responses
from ..files import check_array, check_settings
from .instances import (
    MAX_ROLL,
    POINT_INPUTS,
    Assembler,
    Assembly,
    InstanceFinder,
    InstanceProbabilities,
    RegressionStage,
    RigidModel,
    ShapeClassifier,
    ShapeModel,
    ShapeRegressor,
)
from .windows.window_models import (
    FaceCascade,
    Guide,
    KeypointModel,
    Localisation,
    OffsetModel,
    SecondNode,
    WindowModel,
)

Arrays = dict[str, np.ndarray]


def write_parts(
    models: dict[str, KeypointModel],
    guides: dict[str, Guide],
    face_cascade: FaceCascade | None,
    faces: InstanceFinder | None,
) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the header entries of a detector, named as in the file format."""
    arrays: Arrays = {}
    header: dict[str, Any] = {
        "models": {name: _write_model(arrays, name, model) for name, model in models.items()}
    }
    if guides:
        header["guides"] = {
            name: {"grid": guide.grid, "reach": guide.reach} for name, guide in guides.items()
        }
    for name, guide in guides.items():
        _write_window_model(
            arrays, f"{name}/offsets", guide.offsets, np.asarray(guide.offsets.intercept)
        )
    if face_cascade is not None:
        node = face_cascade.second
        name = "face" if node is None else "faces/first"
        described = _write_model(arrays, name, face_cascade.classifier)
        expected = {name: list(vector) for name, vector in face_cascade.expected.items()}
        pool = {} if face_cascade.pool is None else {"pool": face_cascade.pool.to_dict()}
        header["face_cascade"] = {
            "classifier": described,
            "expected": expected,
            "coarser": face_cascade.coarser,
            **pool,
        }
        if node is not None:
            header["face_cascade"]["second"] = {
                "classifier": _write_model(arrays, "faces/second", node.classifier),
                "pool": node.pool.to_dict(),
                "finer": node.finer,
            }
    if faces is not None:
        header["faces"] = _write_faces(arrays, faces)
    return arrays, header


def read_parts(
    path: str | Path, arrays: Arrays, header: dict[str, Any], pool: FeaturePool
) -> tuple[dict[str, KeypointModel], dict[str, Guide], FaceCascade | None, InstanceFinder | None]:
    """Read the parts written by :func:`write_parts`.

    The guides, the cascade and the instance finder may be missing. A ValueError is raised if an
    array is damaged, and a ValueError, KeyError or TypeError if the header is damaged.
    """
    models = {
        name: _read_model(path, arrays, name, header["models"][name], pool)
        for name in header["keypoints"]
    }
    guides = {}
    for name, described in header.get("guides", {}).items():
        if name not in models:
            raise ValueError(f"there is a guide for the unknown keypoint {name!r}")
        guides[name] = read_guide(path, arrays, name, described, pool)
    described = header.get("face_cascade")
    cascade = None if described is None else read_cascade(path, arrays, described, pool)
    described = header.get("faces")
    finder = None if described is None else _read_faces(path, arrays, described)
    for name in finder.anchors if finder is not None else ():
        if name not in models:
            raise ValueError(f"faces: the model has no keypoint {name!r}")
    return models, guides, cascade, finder


def read_guide(
    path: str | Path, arrays: Arrays, name: str, described: dict, pool: FeaturePool
) -> Guide:
    """Read the guide of one keypoint.

    The function raises the same errors as :func:`read_parts`.
    """
    if described.get("prune"):
        raise ValueError(
            f"{name}: the file has an older format with one pruning cascade per keypoint; "
            "retrain the model"
        )
    numbers = {part: described[part] for part in ("grid", "reach")}
    check_settings(numbers, {"grid": 10, "reach": 2}, {"grid": (1, 1000), "reach": (0, 100)})
    features, responses = _read_responses(path, arrays, f"{name}/offsets", pool, (2,))
    intercept = check_array(path, arrays, f"{name}/offsets/intercept", np.float32, (2,))
    return Guide(OffsetModel(features, responses, intercept), **numbers)


def read_cascade(
    path: str | Path, arrays: Arrays, described: dict, pool: FeaturePool
) -> FaceCascade:
    """Read the cascade for whole objects.

    The function raises the same errors as :func:`read_parts`.
    """
    coarser = float(
        check_settings(
            {"coarser": described["coarser"]}, {"coarser": 0.5}, {"coarser": (1 / 64, 1)}
        )["coarser"]
    )
    names = list(described["expected"])
    check_settings(
        described["expected"], dict.fromkeys(names, (0.0, 0.0)), dict.fromkeys(names, (-10, 10))
    )
    expected = {name: (float(x), float(y)) for name, (x, y) in described["expected"].items()}
    node, name = described.get("second"), "face"
    if node is not None:
        name, larger = "faces/first", FeaturePool.from_dict(node["pool"])
        finer = check_settings({"finer": node["finer"]}, {"finer": 2.0}, {"finer": (1, 64)})
        model = _read_model(path, arrays, "faces/second", node["classifier"], larger)
        node = SecondNode(model, larger, float(finer["finer"]))
    wide = None if "pool" not in described else FeaturePool.from_dict(described["pool"])
    return FaceCascade(
        _read_model(path, arrays, name, described["classifier"], wide or pool),
        expected,
        coarser,
        node,
        wide,
    )


# Names of the arrays in a file: the first knot, the distance between knots and the response values.
_LOW, _BIN_WIDTH, _VALUES = "lo", "step", "coef"


def _write_window_model(
    arrays: Arrays, name: str, model: WindowModel, intercept: np.ndarray
) -> None:
    arrays |= {
        f"{name}/features": model.features,
        f"{name}/{_LOW}": model.responses.low,
        f"{name}/{_BIN_WIDTH}": model.responses.bin_width,
        f"{name}/{_VALUES}": model.responses.values,
        f"{name}/intercept": intercept,
    }


def _write_model(arrays: Arrays, name: str, model: KeypointModel) -> dict[str, Any]:
    _write_window_model(arrays, name, model, np.array([model.intercept], np.float64))
    arrays[f"{name}/thresholds"] = model.thresholds
    return {"threshold": float(model.threshold), "localisation": model.localisation.to_dict()}


def _read_responses(
    path: str | Path, arrays: Arrays, name: str, pool: FeaturePool, outputs: tuple[int, ...] = ()
) -> tuple[np.ndarray, Responses]:
    """Read features and their responses."""
    features = pool.check(check_array(path, arrays, f"{name}/features", np.int32, (None, 8)))
    k = len(features)
    low = check_array(path, arrays, f"{name}/{_LOW}", np.float32, (k,))
    bin_width = check_array(path, arrays, f"{name}/{_BIN_WIDTH}", np.float32, (k,))
    values = check_array(path, arrays, f"{name}/{_VALUES}", np.float32, (k, None, *outputs))
    if k < 1 or not (bin_width > 0).all() or values.shape[1] < 2:
        raise ValueError(
            f"{name} is not valid; expected at least one feature and one bin, and positive bin "
            "widths"
        )
    return features, Responses(low, bin_width, values)


def _read_model(
    path: str | Path, arrays: Arrays, name: str, described: dict, pool: FeaturePool
) -> KeypointModel:
    threshold = float(
        check_settings({"threshold": described["threshold"]}, {"threshold": 0.0})["threshold"]
    )
    intercept = float(check_array(path, arrays, f"{name}/intercept", np.float64, (1,))[0])
    features, responses = _read_responses(path, arrays, name, pool)
    thresholds = check_array(
        path, arrays, f"{name}/thresholds", np.float32, (len(features),), low=-np.inf
    )
    return KeypointModel(
        features,
        responses,
        intercept,
        thresholds,
        Localisation.from_dict(described["localisation"]),
        threshold,
    )


def _write_faces(arrays: Arrays, finder: InstanceFinder) -> dict[str, Any]:
    """Add the arrays of a face finder, and return its header entry."""
    assembler, regressor = finder.assembler, finder.regressor
    header: dict[str, Any] = {
        "keypoints": list(finder.keypoints),
        "anchors": finder.anchors,
        "assembly": str(finder.assembly),
        "noise": float(assembler.shape.noise),
        "own_radius": float(finder.own_radius),
        "min_support": float(finder.min_support),
        "least": float(assembler.min_log_odds),
        **({} if assembler.max_turn == MAX_ROLL else {"max_turn": float(assembler.max_turn)}),
        "stages": [{"ied": stage.ied, "cell": stage.cell} for stage in regressor.stages],
        "described": regressor.described,
    }
    arrays |= {
        "faces/shape/mean": assembler.shape.mean,
        "faces/shape/covariance": assembler.shape.covariance,
        "faces/shape/rigid": assembler.rigid.points,
        "faces/shape/templates": np.stack(
            [assembler.templates.real, assembler.templates.imag], axis=2
        ),
        "faces/scores": np.stack([assembler.slope, assembler.offset]),
        "faces/regression/offset": regressor.offset,
        "faces/regression/mirror": regressor.mirror,
        "faces/regression/basis": regressor.basis,
        "faces/regression/keypoints": regressor.to_keypoints,
    }
    for i, stage in enumerate(regressor.stages):
        arrays |= {
            f"faces/regression/{i}/{part}": getattr(stage, part)
            for part in ("features", "coefficients", "intercept")
        }
    if finder.own_weight is not None:
        arrays["faces/own_weight"] = finder.own_weight
    if finder.classifier is not None:
        arrays |= {
            "faces/classifier/features": finder.classifier.features,
            "faces/classifier/coefficients": finder.classifier.coefficients,
            "faces/classifier/intercept": np.array([finder.classifier.intercept]),
        }
    if finder.probabilities is not None:
        arrays |= {
            f"faces/probabilities/{part}": getattr(finder.probabilities, part)
            for part in ("face", "within_10", "within_5")
        }
        header["alone"] = float(finder.probabilities.alone)
    return header


def _read_faces(path: str | Path, arrays: Arrays, described: dict[str, Any]) -> InstanceFinder:
    """Return the face finder described by :func:`_write_faces`; raise a ValueError, KeyError or
    TypeError if the file is damaged."""
    names, anchors = tuple(described["keypoints"]), list(described["anchors"])
    n_anchors, n_keypoints = len(anchors), len(names)
    assembly = Assembly(described["assembly"])
    if n_anchors < 2 or len(set(names)) < n_keypoints or list(names[:n_anchors]) != anchors:
        raise ValueError(
            f"faces: keypoints={names} and anchors={anchors} are not valid; "
            "expected distinct keypoints that begin with at least two anchors"
        )
    example = {
        "noise": 0.0,
        "least": 0.0,
        "own_radius": 0.0,
        "min_support": 0.0,
        "max_turn": MAX_ROLL,
    }
    limits = {"noise": (1e-6, 10), "own_radius": (0, 10), "max_turn": (0, 4)}
    numbers = check_settings(
        {"max_turn": MAX_ROLL} | {key: described[key] for key in example if key in described},
        example,
        limits,
    )
    noise, min_log_odds, radius, support, max_turn = (float(numbers[key]) for key in example)
    read = partial(check_array, path, arrays)
    matrix = read("faces/regression/keypoints", np.float64, (n_keypoints, None))
    n = matrix.shape[1]

    points = (*anchors, *(f"point{i}" for i in range(n)))
    mean = read("faces/shape/mean", np.float64, (len(points), 2))
    covariance = read("faces/shape/covariance", np.float64, (2 * n_anchors, 2 * len(points)))
    rigid = RigidModel(read("faces/shape/rigid", np.float64, (len(points), 3)))
    templates = read("faces/shape/templates", np.float64, (None, None, 2))
    slope, offset = read("faces/scores", np.float64, (2, None))
    if (
        not len(templates)
        or templates.shape[1] not in (n_anchors, len(points))
        or len(slope) not in (n_anchors, n_anchors + 1)
    ):
        raise ValueError(
            f"faces has {len(templates)} templates of {templates.shape[1]} points and scores of "
            f"{len(slope)} keypoints; expected at least one template of {n_anchors} or "
            f"{len(points)} points, and {n_anchors} or {n_anchors + 1} scores"
        )
    assembler = Assembler(
        ShapeModel(points, np.arange(n_anchors), mean, covariance, noise),
        templates[..., 0] + 1j * templates[..., 1],
        rigid,
        slope,
        offset,
        min_log_odds,
        max_turn,
    )
    classifier = own_weight = None
    if "faces/classifier/features" in arrays:
        features = _features(path, arrays, "faces/classifier/features", n)
        weights = read("faces/classifier/coefficients", np.float32, (len(features),))
        classifier = ShapeClassifier(
            features, weights, float(read("faces/classifier/intercept", np.float64, (1,))[0])
        )
    if "faces/own_weight" in arrays:
        own_weight = read("faces/own_weight", np.float64, (n_anchors,))
    return InstanceFinder(
        assembler,
        _read_regressor(path, arrays, described, mean[n_anchors:], matrix),
        names,
        classifier,
        _read_probabilities(path, arrays, described, n_keypoints),
        own_weight,
        radius,
        support,
        assembly,
    )


def _read_regressor(
    path: str | Path,
    arrays: Arrays,
    described: dict[str, Any],
    mean: np.ndarray,
    matrix: np.ndarray,
) -> ShapeRegressor:
    """Return the regression of all points from ``mean``; the keypoints are ``matrix`` times these
    points."""
    n, read = len(mean), partial(check_array, path, arrays)
    basis = read("faces/regression/basis", np.float32, (None, n, 2))
    stages = []
    for i, stage in enumerate(described["stages"]):
        sizes = check_settings(stage, {"ied": 1, "cell": 1}, {"ied": (4, 1000), "cell": (1, 100)})
        features = _features(path, arrays, f"faces/regression/{i}/features", n)
        coefficients = read(
            f"faces/regression/{i}/coefficients", np.float16, (len(features), len(basis))
        )
        intercept = read(f"faces/regression/{i}/intercept", np.float32, (len(basis),))
        stages.append(
            RegressionStage(sizes["ied"], sizes["cell"], features, coefficients, intercept)
        )
    moved = read("faces/regression/offset", np.float32, (n, 2))
    mirror = read("faces/regression/mirror", np.int32, (None,))
    pairs = (
        len(mirror) == n
        and mirror.min() >= 0
        and mirror.max() < n
        and (mirror[mirror] == np.arange(n)).all()
    )
    if len(mirror) and not pairs:
        raise ValueError(
            "faces/regression/mirror is not valid; expected pairs of points that mirror each other"
        )
    shown = int(described.get("described", -1))
    if not -1 <= shown <= len(stages):
        raise ValueError(f"described is {shown}; expected an integer from 0 to {len(stages)}")
    return ShapeRegressor(mean, basis, tuple(stages), matrix, moved, mirror, shown)


def _read_probabilities(
    path: str | Path, arrays: Arrays, described: dict[str, Any], n_keypoints: int
) -> InstanceProbabilities | None:
    """Return the probabilities of faces and keypoints, or None if the model has none."""
    if "alone" not in described:
        return None
    alone = float(check_settings({"alone": described["alone"]}, {"alone": 0.0})["alone"])
    read = partial(check_array, path, arrays)
    # Models trained before version 0.3 do not use the yaw.
    former = arrays.get("faces/probabilities/face", np.empty(5)).shape == (4,)
    face = read("faces/probabilities/face", np.float64, (4 if former else 5,))
    within_10, within_5 = (
        read(f"faces/probabilities/within_{t}", np.float64, (n_keypoints, POINT_INPUTS))
        for t in (10, 5)
    )
    return InstanceProbabilities(
        np.insert(face, 3, 0.0) if former else face, within_10, within_5, alone
    )


def _features(path: str | Path, arrays: Arrays, name: str, n_points: int) -> np.ndarray:
    features = check_array(path, arrays, name, np.int32, (None,))
    if not len(features) or features.min() < 0 or features.max() >= n_points * VALUES_PER_POINT:
        raise ValueError(
            f"{name} is not valid; expected integers from 0 to {n_points * VALUES_PER_POINT - 1}"
        )
    return features
