"""Suppression of instances: when two of them, or two hypotheses of one, are the same.

Faces are compared by the mean distance of their keypoints in units of the reference length.
Hypotheses, of which there are thousands, are compared before they are completed and refined, by
numbers of their own.
"""

from collections.abc import Sequence

import numpy as np

#: reference lengths: faces whose keypoints lie this near to each other on average are the same. A
#: choice.
SAME_INSTANCE = 0.4

#: reference lengths: the same for hypotheses, before their points are refined. With 0.4 the faces
#: that are reported by default stay the same (on 41 photographs), but ``min_probability=0`` loses
#: some of the improbable ones, on which evaluations count. A choice.
SAME_HYPOTHESIS = 0.35

# reference length of the larger: faces whose middles lie this near to each other are not two. A
# choice
_SAME_PLACE = 0.6

# reference lengths: of hypotheses whose translations, and whose scales and rotations, differ by
# less than this, the best one is completed. A choice.
_SAME_TRANSFORM = 0.25

# reference length, and ratio of sizes: an incomplete hypothesis this like a known face is not
# completed.
# Stricter than ``SAME_INSTANCE``, since completion may still move its keypoints; half the radius in
# which candidates support a pair. Choices.
_INSIDE, _ALIKE = 0.175, 1.25


def is_same_instance(a: np.ndarray, b: np.ndarray, ied: float, radius: float = SAME_INSTANCE) -> bool:
    """Whether keypoints (n,), complex, of two faces lie on each other; ``ied`` in image pixels."""
    return float(abs(a - b).mean()) < radius * ied


def is_inside(points: np.ndarray, ied: float, instance: np.ndarray, instance_length: float) -> bool:
    """Whether a pair's hypothesis, keypoints (n,), complex, and reference length, is one of a face
    that is known
    already."""
    alike = instance_length / _ALIKE < ied < _ALIKE * instance_length
    return alike and float(abs(points - instance).mean()) < _INSIDE * instance_length


def suppress_instances(keypoints: Sequence[np.ndarray], ied: Sequence[float]) -> list[int]:
    """Which of some faces remain, where they come by falling probability: those that are neither
    the same as a better one nor, smaller or larger, in its place.

    Parameters
    ----------
    keypoints : list of ndarray of shape (n,), complex
        Of each face, in image pixels.
    ied : list of float
        Of each face, in image pixels.

    Returns
    -------
    list of int
        Their positions in the list.
    """
    kept: list[int] = []
    for i, points in enumerate(keypoints):
        if not any(
            is_same_instance(points, keypoints[k], ied[k]) or _in_its_place(points, ied[i], keypoints[k], ied[k]) for k in kept
        ):
            kept.append(i)
    return kept


def _in_its_place(points: np.ndarray, ied: float, instance: np.ndarray, instance_length: float) -> bool:
    return abs(points.mean() - instance.mean()) < _SAME_PLACE * max(ied, instance_length)


def suppress_transforms(transforms: np.ndarray, n: int) -> np.ndarray:
    """The first n rows of (m, 4), scale and rotation and translation as x, y each, that differ from
    all kept before them."""
    kept: list[int] = []
    free = np.ones(len(transforms), bool)
    while len(kept) < n and free.any():
        kept.append(int(free.argmax()))
        best = transforms[kept[-1]]
        away = np.square(transforms - best)
        reach = _SAME_TRANSFORM**2 * (best[0] ** 2 + best[1] ** 2)
        free &= (away[:, 2] + away[:, 3] >= reach) | (away[:, 0] + away[:, 1] >= reach)
        free[kept[-1]] = False
    return np.array(kept, np.int64)
