"""Parts of an evaluation: photographs by size and pose of their faces, and how reliable
probabilities are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...models.faces.probabilities import probability_of
from ...models.faces.shape_models import RigidModel, pose_of
from .average_precision import HIT, NEITHER, MatchedDetections
from .data import FaceImage

# Limits of the bands: inter-eye distances in pixels, angles in degrees.
_IED = (0, 25, 32, 45, np.inf)
_YAW, _ROLL = (0, 8, 16, 180), (0, 6, 12, 180)
_PROBABILITY = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)


def subsets_of(images: Sequence[FaceImage], rigid: RigidModel | None) -> dict[str, list[int]]:
    """Positions of the photographs by the median IED of their faces and, with a rigid model of the
    landmarks, by yaw and roll.

    Photographs without faces are in none; the pose is that of the first face.
    """
    found: dict[str, list[int]] = {}
    for i, image in enumerate(images):
        if not len(image.ied):
            continue
        found.setdefault(_band("IED", float(np.median(image.ied)), _IED), []).append(i)
        if rigid is not None and image.landmarks is not None and image.landmarks.shape[1] == len(rigid.points):
            pose = pose_of(rigid.fit(image.landmarks[0] @ [1, 1j])[0])
            for name, angle, limits in (("yaw", pose.yaw, _YAW), ("roll", pose.roll, _ROLL)):
                found.setdefault(_band(name, abs(float(np.degrees(angle))), limits), []).append(i)
    order = [_band(name, low, limits) for name, limits in (("IED", _IED), ("yaw", _YAW), ("roll", _ROLL)) for low in limits[:-1]]
    return {name: found[name] for name in order if name in found}


def _band(name: str, value: float, limits: Sequence[float]) -> str:
    i = int(np.searchsorted(limits, value, side="right")) - 1
    high = "" if limits[i + 1] in (np.inf, 180) else f"{limits[i + 1]:g}"
    return f"{name} {limits[i]:g}-{high}"


def reliability(judged: Sequence[MatchedDetections]) -> list[dict]:
    """Share of hits among detections by their probability, whose log-odds the scores are; one row
    per band with any.

    Detections that count neither way are left out; ``probability`` is the mean of a band.
    """
    kept = [(j.score[j.outcome != NEITHER], j.outcome[j.outcome != NEITHER] == HIT) for j in judged]
    score, hit = (np.concatenate([part[k] for part in kept]) if kept else np.empty(0) for k in (0, 1))
    p = np.asarray(probability_of(score))
    rows = []
    for low, high in pairwise(_PROBABILITY):
        mine = (p >= low) & ((p < high) if high < 1 else (p <= high))
        if mine.any():
            row = {"from": low, "to": high, "detections": int(mine.sum())}
            rows.append(row | {"probability": float(p[mine].mean()), "share": float(hit[mine].mean())})
    return rows
