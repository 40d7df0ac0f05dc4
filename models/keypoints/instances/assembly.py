"""Assembly of instances from the candidates of all anchors.

Every pair of candidates of different anchors, together with one of a few template shapes,
determines a similarity transform and the expected positions of the other anchors. Candidates near
these positions support the hypothesis. The method resembles RANSAC [1]_, but all pairs are tried
instead of random pairs. The best hypotheses are completed by a shape model.

References
----------
.. [1] M. A. Fischler, R. C. Bolles, "Random Sample Consensus", Communications of the ACM 24 (1981).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product

import numpy as np

from ....learners.compilation import jit
from ..windows.object_search import WHOLE
from .shape_models import Pose, RigidModel, ShapeModel, is_inside, is_same_instance, rotation_of

MAX_PER_ANCHOR = 12  # maximum number of candidates per anchor that form pairs (heuristic)
MAX_ROLL = 1.0  # radians: maximum rotation of a pair; others are ignored (heuristic)
# Heuristic values. In the shipped model, anchors deviate from a similarity transform of the mean
# shape by 0.04 to 0.07 reference lengths in x and in y, and a transform fitted to only two anchors
# propagates their errors to the others. A candidate supports a pair if it lies within this number
# of reference lengths of its expected position.
_PAIR_RADIUS = 0.35
_FACE_RADIUS = 0.25  # the same radius, once the shape has been fitted to all candidates
# decrease of a candidate's log-odds at that radius: a Gaussian with standard deviation radius / 2
# has decreased to exp(-2) of its peak
_GATE_PENALTY = 2.0
# ratio of the IEDs suggested by the windows of a pair. Heuristic: pyramid levels are 1.19 apart
_MAX_WINDOW_RATIO = 2.5
# ratio of a pair's reference length to the mean of these; heuristic, since yaw reduces distances to
# about half
_MAX_SIZE_RATIO = 1.8
# radians: views of the rigid model that are used as templates
_YAWS, _PITCHES = (-0.7, -0.35, 0.0, 0.35, 0.7), (-0.25, 0.0, 0.25)

#: reference lengths: the same for hypotheses, before their points are refined. With 0.4, the
#: default report stays the same on 41 photographs, but ``min_probability=0`` misses some improbable
#: faces, which evaluations need (heuristic).
SAME_HYPOTHESIS = 0.35
# reference lengths: if the translations, scales and rotations of several hypotheses differ by less
# than this value, only the best one is completed (heuristic)
_SAME_TRANSFORM = 0.25


class Assembly(StrEnum):
    """Type of the shape model with which candidates are assembled into instances."""

    #: No assembly: each keypoint is detected separately.
    NONE = "none"
    #: Gaussian model of shapes in the image, with templates of rotated faces.
    TWO = "2d"
    #: Rigid model in space and its pose.
    THREE = "3d"


@dataclass(frozen=True)
class Candidates:
    """Candidates for the anchors (detected keypoints): local maxima of their scores.

    Attributes
    ----------
    anchor : ndarray of shape (n,), int64
        Index of each candidate's anchor in the shape model.
    position : ndarray of shape (n,), complex
        Positions in image pixels.
    log_odds : ndarray of shape (n,), float64
        Log-odds that each candidate is an anchor of a face, computed from the detector's score.
    reference_length : ndarray of shape (n,), float64
        Reference length in image pixels, estimated from the size of the window.
    """

    anchor: np.ndarray
    position: np.ndarray
    log_odds: np.ndarray
    reference_length: np.ndarray


NO_CANDIDATES = Candidates(np.empty(0, np.int64), np.empty(0, complex), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Hypothesis:
    """Candidates that form a possible face.

    Attributes
    ----------
    rows : ndarray of shape (m,), int64
        Indices of the candidates in :class:`Candidates`, at most one per anchor.
    score : float
        Sum of the log-odds of the candidates, each minus ``min_log_odds`` (see :class:`Assembler`).
    points : ndarray of shape (n,), complex
        All points of the shape, including predicted points, in image pixels.
    reference_length : float
        Reference length, in image pixels, that the object would have in a frontal view.
    """

    rows: np.ndarray
    score: float
    points: np.ndarray
    reference_length: float


@dataclass(frozen=True)
class Assembler:
    """Assembler that combines candidates into faces.

    Parameters
    ----------
    shape : ShapeModel
        Shape model in which the anchors precede the other points.
    templates : ndarray of shape (n_templates, n_anchors) or (n_templates, n), complex
        Typical shapes, in units of the reference length: the anchors, or all points of the shape
        model. The first template is the mean shape.
    rigid : RigidModel
        Rigid model of the same points.
    slope, offset : ndarray of shape (n_anchors,) or (n_anchors + 1,)
        Coefficients for each anchor and, if whole objects are also detected, for whole objects. The
        log-odds of a candidate are slope * score + offset.
    min_log_odds : float
        Minimum log-odds of a candidate; other maxima are ignored.
    max_turn : float
        Maximum rotation of an object in the image, in radians. Pairs of candidates that imply a
        larger rotation are ignored.
    """

    shape: ShapeModel
    templates: np.ndarray
    rigid: RigidModel
    slope: np.ndarray
    offset: np.ndarray
    min_log_odds: float = -6.0
    max_turn: float = MAX_ROLL

    @cached_property
    def _views(self) -> np.ndarray:
        """Anchors (n_views, n_anchors), complex, in several views of the rigid model, the frontal
        view first."""
        poses = sorted(product(_YAWS, _PITCHES), key=lambda pose: np.hypot(*pose))
        views = [
            self.rigid.project(rotation_of(Pose(yaw, pitch, 0.0)), 1.0, 0j) for yaw, pitch in poses
        ]
        return np.array(views)[:, : len(self.shape.anchors)]

    @property
    def anchors(self) -> list[str]:
        """Names of the anchors."""
        return [self.shape.keypoints[i] for i in self.shape.anchors]

    def candidates(self, maxima: dict[str, np.ndarray], reference_length: float) -> Candidates:
        """Return the maxima with sufficient log-odds as candidates, sorted by log-odds.

        The maxima have shape (n, 4), with the columns x, y, score and scale.
        """
        rows = [maxima[name] for name in self.anchors]
        anchor = np.repeat(np.arange(len(rows)), [len(of_anchor) for of_anchor in rows])
        x, y, score, scale = np.concatenate([np.empty((0, 4)), *rows]).T
        log_odds = self.slope[anchor] * score + self.offset[anchor]
        order = np.argsort(-log_odds, kind="stable")
        order = order[log_odds[order] > self.min_log_odds]
        return Candidates(
            anchor[order], (x + 1j * y)[order], log_odds[order], reference_length / scale[order]
        )

    def whole_objects(self, maxima: dict[str, np.ndarray], reference_length: float) -> Candidates:
        """Return the detected whole objects as candidates.

        They are candidates for an additional anchor, the centre of the object.
        """
        n = len(self.shape.anchors)
        if len(self.slope) == n or WHOLE not in maxima:
            return NO_CANDIDATES
        x, y, score, scale = maxima[WHOLE].T
        log_odds = self.slope[n] * score + self.offset[n]
        return Candidates(np.full(len(x), n), x + 1j * y, log_odds, reference_length / scale)

    def assemble(
        self,
        candidates: Candidates,
        assembly: str = Assembly.TWO,
        max_instances: int = 30,
        min_support: float = 0.0,
    ) -> list[Hypothesis]:
        """Assemble candidates into hypotheses about instances, which may share candidates.

        Parameters
        ----------
        candidates : Candidates
        assembly : Assembly, default "2d"
            Whether to use the shape model ("2d") or the rigid model ("3d").
        max_instances : int, default 30
            Maximum number of hypotheses.
        min_support : float, default 0.0
            Minimum score of a hypothesis.

        Returns
        -------
        list of Hypothesis
            Distinct hypotheses in order of decreasing score.
        """
        if not len(candidates.anchor):
            return []
        three, n = assembly == Assembly.THREE, len(self.shape.anchors)
        complete = self._complete_rigid if three else self._complete
        templates = self._views if three else self.templates
        strength = candidates.log_odds - self.min_log_odds
        best = np.sort(
            np.concatenate(
                [np.flatnonzero(candidates.anchor == i)[:MAX_PER_ANCHOR] for i in range(n)]
            )
        )
        columns = candidates.anchor, candidates.position, strength, candidates.reference_length
        pairs = _support(
            best, *columns, np.ascontiguousarray(templates[:, :n]), 4 * max_instances, self.max_turn
        )
        instances: list[Hypothesis] = []
        known: set[tuple[float, bytes]] = set()
        for pair in pairs:
            if pair[0] < min_support:
                break
            scale_rotation, translation = complex(pair[1], pair[2]), complex(pair[3], pair[4])
            points = scale_rotation * templates[int(pair[5])] + translation
            if any(
                is_inside(points[:n], abs(scale_rotation), other.points[:n], other.reference_length)
                for other in instances
            ):
                continue
            instance = self._grown(
                points, abs(scale_rotation), candidates, strength, complete, known
            )
            if instance is None or instance.score < min_support:
                continue
            if not any(
                is_same_instance(
                    instance.points[:n],
                    other.points[:n],
                    max(instance.reference_length, other.reference_length),
                    SAME_HYPOTHESIS,
                )
                for other in instances
            ):
                instances.append(instance)
                if len(instances) == max_instances:
                    break
        return sorted(instances, key=lambda instance: -instance.score)

    def _grown(
        self,
        points: np.ndarray,
        ied: float,
        candidates: Candidates,
        strength: np.ndarray,
        complete: Callable,
        known: set[tuple[float, bytes]],
    ) -> Hypothesis | None:
        """Alternately collect the candidates near the expected anchors and complete the shape.

        The result is None if there are no candidates, or if the candidates are those of an earlier
        hypothesis. ``known`` contains the radius and candidates of these.
        """
        for radius in (_PAIR_RADIUS, _FACE_RADIUS):
            rows = _nearest(points, radius * ied, candidates, strength)
            if not len(rows) or (radius, rows.tobytes()) in known:
                return None
            known.add((radius, rows.tobytes()))
            points, ied = complete(points, ied, candidates, rows)
        return Hypothesis(rows, float(strength[rows].sum()), points, ied)

    def _complete(
        self, points: np.ndarray, ied: float, candidates: Candidates, rows: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Complete all points with the shape model from the candidates of a face; with a single
        candidate, the transform of the hypothesis is used."""
        which, position = candidates.anchor[rows], candidates.position[rows]
        if len(rows) == 1:
            transform = self.shape.align(points[: len(self.shape.anchors)], self.shape.anchors)
            return transform.to_image(self.shape.mean_points), transform.reference_length
        completed, transform = self.shape.predict(position, which)
        return completed, transform.reference_length

    def _complete_rigid(
        self, points: np.ndarray, ied: float, candidates: Candidates, rows: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Complete all points with the rigid model; missing anchors are fitted at their expected
        positions."""
        n = len(self.shape.anchors)
        anchors = points[:n].copy()
        anchors[candidates.anchor[rows]] = candidates.position[rows]
        view = self.rigid.fit(anchors, np.arange(n))
        return self.rigid.project(*view), view[1]


def _nearest(
    points: np.ndarray, radius: float, candidates: Candidates, strength: np.ndarray
) -> np.ndarray:
    """Return the row of the best candidate of each anchor within a radius of its expected
    position."""
    distance = abs(candidates.position - points[candidates.anchor]) / radius
    near = np.flatnonzero(distance <= 1)
    worth = strength[near] - _GATE_PENALTY * distance[near] ** 2
    near = near[np.lexsort((-worth, candidates.anchor[near]))]
    return near[np.unique(candidates.anchor[near], return_index=True)[1]]


def _support(
    best: np.ndarray,
    anchor: np.ndarray,
    position: np.ndarray,
    strength: np.ndarray,
    ied: np.ndarray,
    templates: np.ndarray,
    max_pairs: int,
    max_turn: float,
) -> np.ndarray:
    """Return the distinct hypotheses with the best support, as rows of support, scale_rotation (2),
    translation (2) and template.

    Pairs of candidates are tried with all templates, and single candidates upright with the first
    template.
    """
    n = len(best)
    pairs = np.empty((n + n * (n - 1) // 2 * len(templates), 6))
    pairs = pairs[: _score_pairs(best, anchor, position, strength, ied, templates, max_turn, pairs)]
    pairs = pairs[np.argsort(-pairs[:, 0], kind="stable")]
    return pairs[suppress_transforms(pairs[:, 1:5], max_pairs)]


def _plain_score_pairs(
    best: np.ndarray,
    anchor: np.ndarray,
    position: np.ndarray,
    strength: np.ndarray,
    ied: np.ndarray,
    templates: np.ndarray,
    max_turn: float,
    pairs: np.ndarray,
) -> int:
    anchor, position, strength, ied = anchor[best], position[best], strength[best], ied[best]
    alike = np.maximum.outer(ied, ied) <= _MAX_WINDOW_RATIO * np.minimum.outer(ied, ied)
    of_two = np.triu(alike & (anchor[:, None] != anchor))[:, :, None] & np.ones(
        len(templates), bool
    )
    of_two[:, :, 0] |= np.eye(len(best), dtype=bool)
    i, j, t = np.nonzero(of_two)
    one, begin = i == j, templates[t, anchor[i]]
    scale_rotation = np.where(one, ied[i], position[j] - position[i]) / np.where(
        one, 1, templates[t, anchor[j]] - begin
    )
    size, middle = abs(scale_rotation), np.sqrt(ied[i] * ied[j])
    good = (
        (size <= _MAX_SIZE_RATIO * middle)
        & (size * _MAX_SIZE_RATIO >= middle)
        & (abs(np.angle(scale_rotation)) <= max_turn)
    )
    i, j, t, one, scale_rotation, size = (
        column[good] for column in (i, j, t, one, scale_rotation, size)
    )
    translation = position[i] - scale_rotation * begin[good]
    total = strength[i] + np.where(one, 0, strength[j])
    for k in range(templates.shape[1]):
        deviation = (
            position[anchor == k] - (scale_rotation * templates[t, k] + translation)[:, None]
        )
        square = (deviation.real**2 + deviation.imag**2) / ((_PAIR_RADIUS * size) ** 2)[:, None]
        support = np.where(square <= 1, strength[anchor == k] - _GATE_PENALTY * square, 0).max(
            axis=1, initial=0
        )
        total += np.where((anchor[i] == k) | (anchor[j] == k), 0, support)
    columns = total, scale_rotation.real, scale_rotation.imag, translation.real, translation.imag, t
    pairs[: len(i)] = np.column_stack(columns)
    return len(i)


@jit(plain=_plain_score_pairs, by_size=False)
def _score_pairs(
    best: np.ndarray,
    anchor: np.ndarray,
    position: np.ndarray,
    strength: np.ndarray,
    ied: np.ndarray,
    templates: np.ndarray,
    max_turn: float,
    pairs: np.ndarray,
) -> int:
    """Write the hypotheses of :func:`_support` to ``pairs`` and return their number."""
    count = 0
    for i in range(len(best)):
        a = best[i]
        for j in range(i, len(best)):
            b = best[j]
            alike = max(ied[a], ied[b]) <= _MAX_WINDOW_RATIO * min(ied[a], ied[b])
            if j > i and (anchor[a] == anchor[b] or not alike):
                continue
            middle = np.sqrt(ied[a] * ied[b])
            for t in range(len(templates) if j > i else 1):
                template = templates[t]
                scale_rotation = complex(ied[a], 0.0)
                if j > i:
                    u, v = template[anchor[b]] - template[anchor[a]], position[b] - position[a]
                    product, square = v * np.conj(u), u.real * u.real + u.imag * u.imag
                    scale_rotation = complex(product.real / square, product.imag / square)
                size = np.sqrt(scale_rotation.real**2 + scale_rotation.imag**2)
                turn = np.arctan2(scale_rotation.imag, scale_rotation.real)
                if (
                    size > _MAX_SIZE_RATIO * middle
                    or size * _MAX_SIZE_RATIO < middle
                    or abs(turn) > max_turn
                ):
                    continue
                translation = position[a] - scale_rotation * template[anchor[a]]
                total = strength[a] + (strength[b] if j > i else 0.0)
                for k in range(len(template)):
                    if k != anchor[a] and k != anchor[b]:
                        expected = scale_rotation * template[k] + translation
                        total += _support_at(
                            expected, _PAIR_RADIUS * size, k, best, anchor, position, strength
                        )
                pairs[count, 0], pairs[count, 1], pairs[count, 2] = (
                    total,
                    scale_rotation.real,
                    scale_rotation.imag,
                )
                pairs[count, 3], pairs[count, 4], pairs[count, 5] = (
                    translation.real,
                    translation.imag,
                    t,
                )
                count += 1
    return count


@jit
def _support_at(
    expected: complex,
    radius: float,
    k: int,
    best: np.ndarray,
    anchor: np.ndarray,
    position: np.ndarray,
    strength: np.ndarray,
) -> float:
    """Return the strength of the best candidate of anchor k near its expected position, minus the
    penalty for its distance, or 0."""
    support = 0.0
    for c in best:
        if anchor[c] == k:
            deviation = position[c] - expected
            square = (deviation.real**2 + deviation.imag**2) / radius**2
            if square <= 1:
                support = max(support, strength[c] - _GATE_PENALTY * square)
    return support


def suppress_transforms(transforms: np.ndarray, n: int) -> np.ndarray:
    """Return the first n distinct transforms of an array of shape (m, 4).

    Each row contains the real and imaginary parts of the factor (scale and rotation) and of the
    translation.
    """
    kept: list[int] = []
    free = np.ones(len(transforms), bool)
    while len(kept) < n and free.any():
        kept.append(int(free.argmax()))
        best = transforms[kept[-1]]
        distance = np.square(transforms - best)
        reach = _SAME_TRANSFORM**2 * (best[0] ** 2 + best[1] ** 2)
        free &= (distance[:, 2] + distance[:, 3] >= reach) | (
            distance[:, 0] + distance[:, 1] >= reach
        )
        free[kept[-1]] = False
    return np.array(kept, np.int64)
