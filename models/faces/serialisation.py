"""A face finder as arrays and plain data, and back, with every array checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...vision.point_histograms import VALUES_PER_POINT
from ..files import check_array, check_settings
from .assembly import Assembler, Assembly
from .face_finder import FaceFinder
from .probabilities import POINT_INPUTS, FaceProbabilities, ShapeClassifier
from .rigid_model import RigidModel
from .shape_model import ShapeModel
from .shape_regression import RegressionStage, ShapeRegressor

Arrays = dict[str, np.ndarray]


def write_faces(arrays: Arrays, finder: FaceFinder) -> dict[str, Any]:
    """Add the arrays of a face finder; returns its entry of the header."""
    assembler, regressor = finder.assembler, finder.regressor
    header: dict[str, Any] = {
        "keypoints": list(finder.keypoints),
        "anchors": finder.anchors,
        "noise": float(assembler.shape.noise),
        "least": float(assembler.least),
        "own_radius": float(finder.own_radius),
        "min_support": float(finder.min_support),
        "assembly": str(finder.assembly),
        "stages": [{"ied": stage.ied, "cell": stage.cell} for stage in regressor.stages],
    }
    arrays["faces/shape/mean"], arrays["faces/shape/covariance"] = assembler.shape.mean, assembler.shape.covariance
    arrays["faces/shape/rigid"] = assembler.rigid.points
    arrays["faces/shape/templates"] = np.stack([assembler.templates.real, assembler.templates.imag], axis=2)
    arrays["faces/scores"] = np.stack([assembler.slope, assembler.offset])
    arrays["faces/regression/offset"], arrays["faces/regression/mirror"] = regressor.offset, regressor.mirror
    arrays["faces/regression/basis"], arrays["faces/regression/keypoints"] = regressor.basis, regressor.to_keypoints
    for i, stage in enumerate(regressor.stages):
        arrays[f"faces/regression/{i}/features"] = stage.features
        arrays[f"faces/regression/{i}/coefficients"] = stage.coefficients
        arrays[f"faces/regression/{i}/intercept"] = stage.intercept
    if finder.own_weight is not None:
        arrays["faces/own_weight"] = finder.own_weight
    if finder.classifier is not None:
        arrays["faces/classifier/features"] = finder.classifier.features
        arrays["faces/classifier/coefficients"] = finder.classifier.coefficients
        arrays["faces/classifier/intercept"] = np.array([finder.classifier.intercept])
    if finder.probabilities is not None:
        arrays["faces/probabilities/face"] = finder.probabilities.face
        arrays["faces/probabilities/within_10"] = finder.probabilities.within_10
        arrays["faces/probabilities/within_5"] = finder.probabilities.within_5
        header["alone"] = float(finder.probabilities.alone)
    return header


def read_faces(path, arrays: Arrays, described: dict[str, Any]) -> FaceFinder:
    """Return the face finder that :func:`write_faces` described; ValueError, KeyError or TypeError for damaged files."""
    names, anchors = tuple(described["keypoints"]), list(described["anchors"])
    n_anchors, n_keypoints = len(anchors), len(names)
    if n_anchors < 2 or len(set(names)) < n_keypoints or list(names[:n_anchors]) != anchors:
        raise ValueError(f"faces: keypoints={names}, anchors={anchors}: expected different ones, two anchors or more first")
    example = dict.fromkeys(("noise", "least", "own_radius", "min_support"), 0.0)
    limits = {"noise": (1e-6, 10), "own_radius": (0, 10)}
    numbers = check_settings({key: described[key] for key in example}, example, limits)
    assembly = Assembly(described["assembly"])

    matrix = check_array(path, arrays, "faces/regression/keypoints", np.float64, (n_keypoints, None))
    n = matrix.shape[1]
    total = n_anchors + n
    mean = check_array(path, arrays, "faces/shape/mean", np.float64, (total, 2))
    covariance = check_array(path, arrays, "faces/shape/covariance", np.float64, (2 * n_anchors, 2 * total))
    rigid = RigidModel(check_array(path, arrays, "faces/shape/rigid", np.float64, (total, 3)))
    templates = check_array(path, arrays, "faces/shape/templates", np.float64, (None, n_anchors, 2))
    scores = check_array(path, arrays, "faces/scores", np.float64, (2, n_anchors))
    if not len(templates):
        raise ValueError("faces: expected at least one template")
    points = (*anchors, *(f"point{i}" for i in range(n)))
    shape = ShapeModel(points, np.arange(n_anchors), mean, covariance, float(numbers["noise"]))
    assembler = Assembler(shape, templates[..., 0] + 1j * templates[..., 1], rigid, scores[0], scores[1], float(numbers["least"]))

    basis = check_array(path, arrays, "faces/regression/basis", np.float32, (None, n, 2))
    stages = []
    for i, stage in enumerate(described["stages"]):
        sizes = check_settings(stage, {"ied": 1, "cell": 1}, {"ied": (4, 1000), "cell": (1, 100)})
        features = _features(path, arrays, f"faces/regression/{i}/features", n)
        shape_of = (len(features), len(basis))
        coefficients = check_array(path, arrays, f"faces/regression/{i}/coefficients", np.float16, shape_of)
        intercept = check_array(path, arrays, f"faces/regression/{i}/intercept", np.float32, (len(basis),))
        stages.append(RegressionStage(sizes["ied"], sizes["cell"], features, coefficients, intercept))
    offset = check_array(path, arrays, "faces/regression/offset", np.float32, (n, 2))
    mirror = check_array(path, arrays, "faces/regression/mirror", np.int32, (n,))
    if mirror.min() < 0 or mirror.max() >= n or (mirror[mirror] != np.arange(n)).any():
        raise ValueError("faces/regression/mirror: expected pairs of points that change places")
    regressor = ShapeRegressor(mean[n_anchors:], basis, tuple(stages), matrix, offset, mirror)

    classifier = probabilities = own_weight = None
    if "faces/classifier/features" in arrays:
        features = _features(path, arrays, "faces/classifier/features", n)
        weights = check_array(path, arrays, "faces/classifier/coefficients", np.float32, (len(features),))
        offset = check_array(path, arrays, "faces/classifier/intercept", np.float64, (1,))
        classifier = ShapeClassifier(features, weights, float(offset[0]))
    if "alone" in described:
        face = check_array(path, arrays, "faces/probabilities/face", np.float64, (4,))
        within = [
            check_array(path, arrays, f"faces/probabilities/within_{t}", np.float64, (n_keypoints, POINT_INPUTS)) for t in (10, 5)
        ]
        alone = check_settings({"alone": described["alone"]}, {"alone": 0.0})["alone"]
        probabilities = FaceProbabilities(face, within[0], within[1], float(alone))
    if "faces/own_weight" in arrays:
        own_weight = check_array(path, arrays, "faces/own_weight", np.float64, (n_anchors,))
    radius, support = float(numbers["own_radius"]), float(numbers["min_support"])
    return FaceFinder(assembler, regressor, names, classifier, probabilities, own_weight, radius, support, assembly)


def _features(path, arrays: Arrays, name: str, n_points: int) -> np.ndarray:
    features = check_array(path, arrays, name, np.int32, (None,))
    if not len(features) or features.min() < 0 or features.max() >= n_points * VALUES_PER_POINT:
        raise ValueError(f"{name}: expected numbers from 0 to {n_points * VALUES_PER_POINT - 1}")
    return features
