"""Assembly of faces: which of the candidates of all anchors belong to one face.

Every pair of candidates of different anchors, together with one of a few template shapes, gives a similarity transform and with it
the expected positions of the other anchors: the candidates found there support it (RANSAC [1]_, over all pairs instead of random
ones). The best hypotheses are completed by a shape model.

References
----------
.. [1] M. A. Fischler, R. C. Bolles, "Random Sample Consensus", Communications of the ACM 24 (1981).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from ...learners.compilation import jit
from .rigid_model import Pose, RigidModel, rotation_of
from .shape_model import ShapeModel

MOST_PER_ANCHOR = 12  # candidates of each anchor that take part in pairs. A choice
MAX_ROLL = 1.0  # radians: pairs that are turned further give no hypothesis. A choice
_PAIR_RADIUS = 0.35  # IED: a candidate supports a pair when it lies this near to its expected position. Choices
_FACE_RADIUS = 0.25  # once the shape has been fitted to all candidates of the face
_GATE_PENALTY = 2.0  # what the log-odds of a candidate lose at that radius
_SAME_FACE = 0.35  # IED: hypotheses whose anchors lie this near to each other on average are the same face
_YAWS, _PITCHES = (-0.7, -0.35, 0.0, 0.35, 0.7), (-0.25, 0.0, 0.25)  # radians: views of the rigid model that serve as templates


class Assembly(StrEnum):
    """How candidates are put together to faces."""

    NONE = "none"
    """Not at all: each keypoint is detected by itself."""
    TWO = "2d"
    """By a Gaussian model of shapes in the image, with templates of turned faces."""
    THREE = "3d"
    """By a rigid model in space and its pose."""


@dataclass(frozen=True)
class Candidates:
    """Local maxima of all anchors.

    Attributes
    ----------
    anchor : ndarray of shape (n,), int64
        Which anchor, its number in the shape model.
    position : ndarray of shape (n,), complex
        Image pixels.
    log_odds : ndarray of shape (n,), float64
        Of being an anchor of a face, by the detector's score.
    ied : ndarray of shape (n,), float64
        IED in image pixels that the size of the window suggests.
    """

    anchor: np.ndarray
    position: np.ndarray
    log_odds: np.ndarray
    ied: np.ndarray


@dataclass(frozen=True)
class Hypothesis:
    """Candidates that may be one face.

    Attributes
    ----------
    rows : ndarray of shape (m,), int64
        Rows of the candidates, at most one for each anchor.
    score : float
        Sum of how far their log-odds lie above the least that takes part.
    points : ndarray of shape (n,), complex
        All points of the shape model in image pixels, completed.
    ied : float
        Inter-eye distance of a frontal face of this size, in image pixels.
    """

    rows: np.ndarray
    score: float
    points: np.ndarray
    ied: float


@dataclass(frozen=True)
class Assembler:
    """Finds faces among candidates.

    Parameters
    ----------
    shape : ShapeModel
        Anchors first, then the other points.
    templates : ndarray of shape (n_templates, n_anchors), complex
        Anchors of typical shapes in units of the IED; the first is the mean shape.
    rigid : RigidModel
        Of the same points.
    slope, offset : ndarray of shape (n_anchors,)
        Log-odds of a candidate: slope times score plus offset.
    least : float
        Least log-odds of a candidate that takes part.
    """

    shape: ShapeModel
    templates: np.ndarray
    rigid: RigidModel
    slope: np.ndarray
    offset: np.ndarray
    least: float = -6.0
    _views: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = len(self.shape.anchors)
        views = [
            self.rigid.project(rotation_of(Pose(yaw, pitch, 0.0)), 1.0, 0j)[:n]
            for yaw, pitch in sorted(((y, p) for y in _YAWS for p in _PITCHES), key=lambda view: np.hypot(*view))
        ]
        object.__setattr__(self, "_views", np.array(views))

    @property
    def anchors(self) -> list[str]:
        """Names of the anchors."""
        return [self.shape.keypoints[i] for i in self.shape.anchors]

    def candidates(self, maxima: dict[str, np.ndarray], reference_ied: float) -> Candidates:
        """The candidates among the local maxima (n, 4) x, y, score, scale of each anchor, by falling log-odds."""
        found = [maxima[name] for name in self.anchors]
        anchor = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
        x, y, score, scale = np.concatenate([np.empty((0, 4)), *found]).T
        log_odds = self.slope[anchor] * score + self.offset[anchor]
        order = np.argsort(-log_odds, kind="stable")
        order = order[log_odds[order] > self.least]
        return Candidates(anchor[order], (x + 1j * y)[order], log_odds[order], reference_ied / scale[order])

    def assemble(
        self, found: Candidates, assembly: str = Assembly.TWO, max_faces: int = 30, min_support: float = 0.0
    ) -> list[Hypothesis]:
        """Put candidates together to hypotheses of faces, which may share candidates.

        Parameters
        ----------
        found : Candidates
        assembly : Assembly, default "2d"
            The shape model, or the rigid one.
        max_faces : int, default 30
            At most this many.
        min_support : float, default 0.0
            Least score.

        Returns
        -------
        list of Hypothesis
            By falling score, different ones.
        """
        if not len(found.anchor):
            return []
        three = assembly == Assembly.THREE
        complete = self._complete_rigid if three else self._complete
        templates = self._views if three else self.templates
        strength = found.log_odds - self.least
        xy = np.stack([found.position.real, found.position.imag], axis=1)
        best = _best_of_each(found.anchor, MOST_PER_ANCHOR, templates.shape[1])
        pairs = _support(best, found.anchor, xy, strength, found.ied, templates.real.copy(), templates.imag.copy(), 4 * max_faces)
        faces: list[Hypothesis] = []
        for pair in pairs:
            if pair[0] < min_support:
                break
            scale_rotation, translation = complex(pair[1], pair[2]), complex(pair[3], pair[4])
            points = scale_rotation * templates[int(pair[5])] + translation
            if any(self._inside(points, abs(scale_rotation), other) for other in faces):
                continue
            face = self._grown(points, abs(scale_rotation), found, strength, complete)
            if face is None or face.score < min_support:
                continue
            if not any(self._same(face, other) for other in faces):
                faces.append(face)
                if len(faces) == max_faces:
                    break
        return sorted(faces, key=lambda face: -face.score)

    def _inside(self, points: np.ndarray, ied: float, face: Hypothesis) -> bool:
        """Whether a pair's hypothesis is one of a face that is known already, to be skipped before it is completed."""
        n = len(self.shape.anchors)
        alike = 0.8 * face.ied < ied < 1.25 * face.ied
        return alike and float(abs(points[:n] - face.points[:n]).mean()) < _PAIR_RADIUS / 2 * face.ied

    def _same(self, a: Hypothesis, b: Hypothesis) -> bool:
        n = len(self.shape.anchors)
        return float(abs(a.points[:n] - b.points[:n]).mean()) < _SAME_FACE * max(a.ied, b.ied)

    def _grown(
        self, points: np.ndarray, ied: float, found: Candidates, strength: np.ndarray, complete: Callable
    ) -> Hypothesis | None:
        """The candidates around expected anchors, and the shape completed from them, repeated."""
        rows, radius = np.empty(0, np.int64), _PAIR_RADIUS
        for _ in range(2):
            rows = _nearest(points, radius * ied, found, strength, len(self.shape.anchors))
            if not len(rows):
                return None
            points, ied = complete(points, ied, found, rows)
            radius = _FACE_RADIUS
        return Hypothesis(rows, float(strength[rows].sum()), points, ied)

    def _complete(self, points: np.ndarray, ied: float, found: Candidates, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """All points by the shape model, from the candidates of a face; a single one stays where its hypothesis put it."""
        which, position = found.anchor[rows], found.position[rows]
        if len(rows) == 1:
            transform = self.shape.align(points[: len(self.shape.anchors)], self.shape.anchors)
            return transform.to_image(self.shape.mean_points), transform.ied
        completed, transform = self.shape.predict(position, which)
        return completed, transform.ied

    def _complete_rigid(self, points: np.ndarray, ied: float, found: Candidates, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """All points by the rigid model; anchors that were not found take part at their expected positions."""
        n = len(self.shape.anchors)
        anchors = points[:n].copy()
        anchors[found.anchor[rows]] = found.position[rows]
        view = self.rigid.fit(anchors, np.arange(n))
        return self.rigid.project(*view), view[1]


def _best_of_each(anchor: np.ndarray, most: int, n_anchors: int) -> np.ndarray:
    """Rows of the first ``most`` candidates of each anchor, ascending."""
    return np.sort(np.concatenate([np.flatnonzero(anchor == i)[:most] for i in range(n_anchors)]))


def _nearest(points: np.ndarray, radius: float, found: Candidates, strength: np.ndarray, n_anchors: int) -> np.ndarray:
    """Row of the best candidate of each anchor within a radius of its expected position, ascending by anchor."""
    distance = abs(found.position - points[found.anchor]) / radius
    worth = np.where(distance <= 1, strength - _GATE_PENALTY * distance**2, -np.inf)
    rows = []
    for i in range(n_anchors):
        mine = np.flatnonzero(found.anchor == i)
        if len(mine):
            best = mine[int(worth[mine].argmax())]
            if worth[best] > -np.inf:
                rows.append(best)
    return np.array(rows, np.int64)


def _support(best, anchor, xy, strength, ied, template_x, template_y, most):
    """The best-supported hypotheses, different ones: rows of support, scale_rotation (2), translation (2), template.

    Pairs of candidates with all templates, and single candidates, upright, with the first.
    """
    n = len(best)
    found = np.empty((n + n * (n - 1) // 2 * len(template_x), 6))
    found = found[: _score_pairs(best, anchor, xy, strength, ied, template_x, template_y, found)]
    found = found[np.argsort(-found[:, 0], kind="stable")]
    kept = np.empty(min(most, len(found)), np.int64)
    return found[kept[: _first_different(found, kept)]]


@jit
def _score_pairs(best, anchor, xy, strength, ied, template_x, template_y, found):
    """Write the hypotheses of :func:`_support` into ``found``; returns how many there are."""
    n, n_templates, n_anchors = len(best), len(template_x), template_x.shape[1]
    count = 0
    for i in range(n):
        a = best[i]
        ka = anchor[a]
        for j in range(i, n):
            b = best[j]
            kb = anchor[b]
            if (j > i and ka == kb) or (j > i and max(ied[a], ied[b]) > 2.5 * min(ied[a], ied[b])):
                continue
            for t in range(n_templates if j > i else 1):
                if j == i:
                    sx, sy = ied[a], 0.0
                else:
                    ux, uy = template_x[t, kb] - template_x[t, ka], template_y[t, kb] - template_y[t, ka]
                    vx, vy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
                    square = ux * ux + uy * uy
                    sx, sy = (vx * ux + vy * uy) / square, (vy * ux - vx * uy) / square
                size = np.sqrt(sx * sx + sy * sy)
                middle = np.sqrt(ied[a] * ied[b])
                if size > 1.8 * middle or size * 1.8 < middle or abs(np.arctan2(sy, sx)) > MAX_ROLL:
                    continue
                tx = xy[a, 0] - (sx * template_x[t, ka] - sy * template_y[t, ka])
                ty = xy[a, 1] - (sy * template_x[t, ka] + sx * template_y[t, ka])
                total = strength[a] + (strength[b] if j > i else 0.0)
                for k in range(n_anchors):
                    if k in (ka, kb):
                        continue
                    ex = sx * template_x[t, k] - sy * template_y[t, k] + tx
                    ey = sy * template_x[t, k] + sx * template_y[t, k] + ty
                    worth = 0.0
                    for c in best:
                        if anchor[c] == k:
                            square = ((xy[c, 0] - ex) ** 2 + (xy[c, 1] - ey) ** 2) / (_PAIR_RADIUS * size) ** 2
                            if square <= 1:
                                worth = max(worth, strength[c] - _GATE_PENALTY * square)
                    total += worth
                found[count, 0], found[count, 1], found[count, 2] = total, sx, sy
                found[count, 3], found[count, 4], found[count, 5] = tx, ty, t
                count += 1
    return count


@jit
def _first_different(found, kept):
    """Rows of ``found`` that differ from all kept before them, into ``kept`` until it is full; returns how many."""
    n_kept = 0
    for row in range(len(found)):
        if n_kept == len(kept):
            break
        new = True
        for r in kept[:n_kept]:
            reach = 0.0625 * (found[r, 1] ** 2 + found[r, 2] ** 2)  # a quarter of the size, squared
            near = (found[row, 3] - found[r, 3]) ** 2 + (found[row, 4] - found[r, 4]) ** 2 < reach
            alike = (found[row, 1] - found[r, 1]) ** 2 + (found[row, 2] - found[r, 2]) ** 2 < reach
            if near and alike:
                new = False
                break
        if new:
            kept[n_kept] = row
            n_kept += 1
    return n_kept
