"""Search of photographs at several sizes, shape models, and calibration of anchor scores."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import cv2
import numpy as np
from sklearn.linear_model import LogisticRegression

from .....models.keypoints import DetectionOptions, KeypointDetector, Schema
from .....models.keypoints.instances import (
    MAX_ROLL,
    Assembler,
    RigidModel,
    factorise,
    learn_shape,
    pose_of,
)
from .....models.keypoints.windows.object_search import SAME_RADIUS, WHOLE
from .....vision.pyramid import Level
from ....common.file_map import Jobs
from ...data import AnnotatedImage, annotated, in_boxes
from ..windows.views import each

_N_TYPICAL = 3  # typical shapes of objects other than faces (heuristic)
_NEAR = 0.15  # reference lengths: candidates this close to an anchor are correct


@dataclass(frozen=True)
class SearchedImage:
    """Photograph, possibly reduced in size, with the local maxima of the anchors' scores.

    Attributes
    ----------
    levels : list of Level
        Pyramid of the photograph.
    maxima : dict of str to ndarray of shape (n, 4)
        Columns x, y, score and scale of the local maxima of each anchor.
    instances : ndarray of shape (n_faces, n), complex
        Annotated points of the faces.
    reference_length : ndarray of shape (n_faces,)
        Reference lengths of the faces in pixels.
    boxes : ndarray of shape (n_boxes, 4)
        Boxes that may contain unannotated faces.
    """

    levels: Sequence[Level]
    maxima: dict[str, np.ndarray]
    instances: np.ndarray
    reference_length: np.ndarray
    boxes: np.ndarray

    def keypoints(self, matrix: np.ndarray) -> np.ndarray:
        """Compute the keypoints from the annotated points with an averaging matrix.

        The result is a complex array of shape (n_faces, n_keypoints).
        """
        return (
            self.instances @ matrix.T
            if len(self.instances)
            else np.empty((0, len(matrix)), complex)
        )

    def is_ignored(self, points: np.ndarray) -> bool:
        """Return whether the centre of a shape, given as complex points, lies in an ignore box."""
        middle = points.mean()
        return bool(in_boxes(np.array([[middle.real, middle.imag]]), self.boxes)[0])


def search_all(
    detector: KeypointDetector,
    anchors: Sequence[str],
    images: Sequence[AnnotatedImage],
    ied: Iterable[float | None] = (None,),
    n_jobs: Jobs = 1,
) -> Iterator[SearchedImage]:
    """Search photographs for anchors at several sizes.

    A photograph is reduced so that its first face has each of the reference lengths ``ied``, in
    pixels; None means the original size.
    """
    mode = detector.resolve(DetectionOptions(anchors, assembly="none")).mode or ""

    def search(item: tuple[AnnotatedImage, float | None]) -> SearchedImage | None:
        image, target = item
        pixels, faces, boxes, factor = image.pixels(), image.points, image.ignore, 1.0
        if target is not None:
            factor = (
                target / float(image.reference_length[0]) if len(image.reference_length) else 1.0
            )
            if factor > 0.9:
                return None
            small = np.asarray(
                cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA),
                np.uint8,
            )
            x, y = (new / old for new, old in zip(small.shape[1::-1], pixels.shape[1::-1]))
            faces = (faces.real + 0.5) * x - 0.5 + 1j * ((faces.imag + 0.5) * y - 0.5)
            pixels, boxes = small, boxes * [x, y, x, y]
        levels = detector.search.pyramid(pixels)
        return SearchedImage(
            levels,
            detector.anchor_maxima(levels, anchors, mode),
            faces,
            factor * image.reference_length,
            boxes,
        )

    items = [
        (image, target)
        for image in images
        for target in (ied if len(image.reference_length) else (None,))
    ]
    return (view for view in each(items, search, n_jobs) if view is not None)


@dataclass(frozen=True)
class AssemblySettings:
    """Settings for assembling faces from detected anchors.

    Parameters
    ----------
    noise : float
        Standard deviation, in reference lengths, that the shape model assumes for the error of a
        detected anchor.
    turned : tuple of float
        Probabilities p, in ascending order. The quantiles p and 1 - p of the yaw divide the faces
        into groups. The mean shapes of all groups except the central one are used as templates, in
        addition to the mean shape of all faces.
    min_log_odds : float
        Minimum log-odds of a candidate.
    ied : tuple of float
        Reference lengths in pixels. Held-out photographs are searched at their original size and
        reduced to each of these reference lengths.
    background : int
        Interval n: every n-th photograph without faces is held out.
    """

    noise: float = 0.02
    turned: tuple[float, ...] = (0.12, 0.25)
    min_log_odds: float = -6.0
    ied: tuple[float, ...] = (36.0, 26.0, 20.0)
    background: int = 5


def learn_assembler(images: Sequence[AnnotatedImage], settings: AssemblySettings) -> Assembler:
    """Learn the shape models from annotated faces and their mirror images.

    The log-odds of candidates are not learnt. If the schema has no mirror pairs, the points may lie
    in a plane, so the rigid model is flat.
    """
    schema = images[0].schema
    faces, ied = (
        np.concatenate(part)
        for part in zip(*((image.points, image.reference_length) for image in annotated(images)))
    )
    usable = np.isfinite(faces).all(axis=1)
    faces, ied = faces[usable], ied[usable]
    if len(faces) < 10:
        raise ValueError(
            f"there are only {len(faces)} faces with all points; expected at least 10 to learn "
            "their shape"
        )
    n, n_anchors = faces.shape[1], len(schema.anchors)
    anchors, n_flips = np.arange(n_anchors), len(schema.flips)
    both = np.concatenate(
        [
            faces,
            *([schema.mirrored_points(face, 0) for face in faces] for flip in schema.flips if flip),
        ]
    )
    points = np.concatenate([both @ schema.to_keypoints(n)[:n_anchors].T, both], axis=1)
    names = (*schema.anchors, *(f"point{i}" for i in range(n)))
    xy, lengths = np.stack([points.real, points.imag], axis=2), np.tile(ied, n_flips)
    shape = learn_shape(xy, np.ones(points.shape, bool), names, anchors, settings.noise, lengths)
    shape = replace(shape, covariance=shape.covariance[: 2 * n_anchors])
    turn = MAX_ROLL if schema.upright else np.pi
    unknown = np.zeros(n_anchors)
    if not schema.landmarks:
        flat = RigidModel(np.column_stack([shape.mean, np.zeros(len(shape.mean))]))
        return Assembler(
            shape,
            np.stack([shape.mean_points, *_typical_shapes(points / lengths[:, None], anchors)]),
            flat,
            unknown,
            unknown,
            settings.min_log_odds,
            turn,
        )
    rigid = learn_rigid(faces, schema)
    yaw = np.array([pose_of(rigid.fit(face)[0]).yaw for face in points])
    aligned = np.array(
        [shape.align(face[:n_anchors], anchors).to_shape(face[:n_anchors]) for face in points]
    )
    limits = np.quantile(yaw, [0, *settings.turned, *1 - np.array(settings.turned[::-1]), 1])
    bands = [aligned[(low <= yaw) & (yaw <= high)].mean(axis=0) for low, high in pairwise(limits)]
    templates = [
        shape.mean_points[:n_anchors],
        *bands[: len(settings.turned)],
        *bands[len(settings.turned) + 1 :],
    ]
    return Assembler(
        shape, np.stack(templates), rigid, unknown, unknown, settings.min_log_odds, turn
    )


def _typical_shapes(shapes: np.ndarray, anchors: np.ndarray) -> list[np.ndarray]:
    """Return the means of three groups of shapes (n_shapes, n), complex, which are sorted along
    their first principal component."""
    shapes = shapes - shapes[:, anchors].mean(axis=1, keepdims=True)
    flat = np.column_stack([shapes.real, shapes.imag])
    component = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)[2][0]
    groups = np.array_split(np.argsort(flat @ component, kind="stable"), _N_TYPICAL)
    return [shapes[group].mean(axis=0) for group in groups]


def learn_rigid(faces: np.ndarray, schema: Schema) -> RigidModel:
    """Learn the rigid model of faces.

    The faces are given as a complex array of shape (n_faces, n), in which the anchors precede the
    other points.
    """
    n, n_anchors = faces.shape[1], len(schema.anchors)
    points = np.concatenate([faces @ schema.to_keypoints(n)[:n_anchors].T, faces], axis=1)
    return factorise(
        points, np.append(schema.mirror_order[:n_anchors], n_anchors + schema.point_order(n))
    )


def score_log_odds(
    searched: Iterable[SearchedImage], schema: Schema, whole: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Fit the slope and offset of the candidates' log-odds as a function of the score.

    An anchor and its mirror image share one fit. If whole objects are also detected, the last entry
    refers to them.
    """
    n_anchors = len(schema.anchors)
    names = [*schema.anchors, *([WHOLE] if whole else [])]
    scores: list[list[float]] = [[] for _ in names]
    correct: list[list[bool]] = [[] for _ in names]
    for view in searched:
        faces = view.keypoints(schema.to_keypoints(view.instances.shape[1])[:n_anchors])
        faces = np.column_stack([faces, faces.mean(axis=1)])
        for i, name in enumerate(names):
            x, y, score, _ = view.maxima[name].T
            distance = abs((x + 1j * y)[:, None] - faces[:, i])
            reach = SAME_RADIUS if name == WHOLE else _NEAR
            scores[i] += score.tolist()
            correct[i] += (distance < reach * view.reference_length).any(axis=1).tolist()
    slope, offset = np.ones(len(names)), np.zeros(len(names))
    for group in [*schema.alike(schema.anchors), *([[n_anchors]] if whole else [])]:
        score, right = (np.concatenate([part[i] for i in group]) for part in (scores, correct))
        if right.any() and not right.all():
            model = LogisticRegression(C=100.0).fit(score[:, None], right.astype(bool))
            slope[group], offset[group] = model.coef_[0, 0], model.intercept_[0]
    return slope, offset
