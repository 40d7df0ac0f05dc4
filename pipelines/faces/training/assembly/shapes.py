"""Learns how anchors lie in faces, and how much their scores say (a stage of ``annealed faces
train``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from .....models.faces.assembly import Assembler
from .....models.faces.shape_models import ShapeModel, factorise, learn_shape, pose_of
from ...data import FaceImage
from .candidates import SearchedImage
from .points import ANCHORS, annotated, mirror_order, mirrored_points, points_of, to_keypoints

_NEAR = 0.15  # IED: candidates this near to an anchor are correct ones


@dataclass(frozen=True)
class AssemblySettings:
    """Settings of the assembly.

    Parameters
    ----------
    noise : float
        Standard deviation of a found anchor that the shape model assumes, in IED.
    turned : float
        Share of the faces, most turned to either side, whose means are templates beside the mean
        shape.
    least : float
        Least log-odds of a candidate.
    ied : tuple of float
        IED in pixels to which the photographs kept back are shrunk, beside their own size.
    background : int
        Every so-many-th photograph without faces is kept back as well.
    """

    noise: float = 0.02
    turned: float = 0.08
    least: float = -6.0
    ied: tuple[float, ...] = (36.0, 26.0, 20.0)
    background: int = 5


def learn_assembler(images: Sequence[FaceImage], settings: AssemblySettings) -> Assembler:
    """Shape models of annotated faces and their mirror images; the log-odds of candidates are not
    known yet.
    """
    faces = np.concatenate([points_of(image) for image in annotated(images)])
    faces = faces[np.isfinite(faces).all(axis=1)]
    if len(faces) < 10:
        raise ValueError(f"{len(faces)} faces with all points; expected at least 10 to learn their shape")
    n, n_anchors = faces.shape[1], len(ANCHORS)
    anchors = np.arange(n_anchors)
    both = np.concatenate([faces, [mirrored_points(face, 0) for face in faces]])
    points = np.concatenate([both @ to_keypoints(n)[:n_anchors].T, both], axis=1)
    names = (*ANCHORS, *(f"point{i}" for i in range(n)))
    shape = learn_shape(np.stack([points.real, points.imag], axis=2), np.ones(points.shape, bool), names, anchors, settings.noise)
    swap = np.array([1, 0, 3, 2, 5, 4])
    shape = replace(shape, covariance=shape.covariance[: 2 * n_anchors])
    rigid = factorise(points[: len(faces)], np.concatenate([swap, n_anchors + mirror_order(n)]))
    yaw = np.array([pose_of(rigid.fit(face)[0]).yaw for face in points])
    aligned = np.array([shape.align(face[:n_anchors], anchors).to_shape(face[:n_anchors]) for face in points])
    low, high = np.quantile(yaw, [settings.turned, 1 - settings.turned])
    templates = np.stack([shape.mean_points[:n_anchors], aligned[yaw >= high].mean(axis=0), aligned[yaw <= low].mean(axis=0)])
    unknown = np.zeros(n_anchors)
    return Assembler(shape, templates, rigid, unknown, unknown, settings.least)


def score_log_odds(searched: Iterable[SearchedImage], shape: ShapeModel) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset (n_anchors,) of the log-odds of candidates by score, the same for left and
    right.
    """
    n_anchors = len(shape.anchors)
    scores: list[list[float]] = [[] for _ in range(n_anchors // 2)]
    correct: list[list[bool]] = [[] for _ in range(n_anchors // 2)]
    for view in searched:
        faces = view.keypoints(to_keypoints(view.faces.shape[1])[:n_anchors])
        for i, name in enumerate(ANCHORS):
            x, y, score, _ = view.maxima[name].T
            distance = abs((x + 1j * y)[:, None] - faces[:, i])
            scores[i // 2] += score.tolist()
            correct[i // 2] += (distance < _NEAR * abs(faces[:, 0] - faces[:, 1])).any(axis=1).tolist()
    slope, offset = np.ones(n_anchors), np.zeros(n_anchors)
    for pair in range(n_anchors // 2):
        if any(correct[pair]) and not all(correct[pair]):
            model = LogisticRegression(C=100.0).fit(np.array(scores[pair])[:, None], correct[pair])
            slope[2 * pair : 2 * pair + 2], offset[2 * pair : 2 * pair + 2] = model.coef_[0, 0], model.intercept_[0]
    return slope, offset
