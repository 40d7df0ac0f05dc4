"""Strongest features in the model of each keypoint, and their positions."""

from typing import Any

import numpy as np

from ...vision.windows.feature_layout import Column
from .detector import KeypointDetector


def strongest_features(detector: KeypointDetector, n: int) -> dict[str, list[dict[str, Any]]]:
    """Return the n strongest features of the model of each keypoint.

    The strength of a feature is the range of its response, and the strongest feature is first. Each
    feature has a ``name``, a ``strength`` and ``cells``. A cell is a list [x, y, width, height,
    weight], in pixels of the window. A HOG feature has a single cell and an ``angle`` in radians.
    """
    pool = detector.pool
    kinds = [np.array(rows) for rows in pool.kinds.values()]
    strongest = {}
    for name, model in detector.models.items():
        strength = np.ptp(model.responses.values.reshape(len(model.features), -1), axis=1)
        strongest[name] = [
            {
                "name": pool.name(model.features[i]),
                "strength": float(strength[i]),
                **_cells(model.features[i], kinds, pool.hog),
            }
            for i in np.argsort(-strength, kind="stable")[:n]
        ]
    return strongest


def _cells(feature: np.ndarray, kinds: list[np.ndarray], hog: Any) -> dict[str, Any]:
    x, y, w, h = (
        int(feature[c]) for c in (Column.X, Column.Y, Column.CELL_WIDTH, Column.CELL_HEIGHT)
    )
    kind = int(feature[Column.KIND])
    if kind == len(kinds):
        row, column = divmod(int(feature[Column.CELL]), hog.block)
        angle = float(feature[Column.ORIENTATION]) * np.pi / hog.orientations
        return {"cells": [[x + column * w, y + row * h, w, h, 1]], "angle": angle}
    return {
        "cells": [
            [x + c * w, y + r * h, w, h, int(weight)]
            for (r, c), weight in np.ndenumerate(kinds[kind])
            if weight
        ]
    }
