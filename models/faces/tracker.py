"""Follows faces from frame to frame of a video: the anchors of one frame are where the refinement
of the next one starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...vision.pyramid import gaussian_pyramid
from .assembly import Candidates
from .face_finder import Face, FaceFinder
from .probabilities import probability_of
from .suppression import SAME_IN_NEXT_FRAME

# IED around a face of the last frame that is looked through in the next one. A choice
_AROUND = 1.0
# is searched around a face
_NOTHING = Candidates(np.empty(0, np.int64), np.empty(0, complex), np.empty(0), np.empty(0))


@dataclass
class FaceTracker:
    """Finds the faces of a video.

    Every few frames, and when a face is lost, the whole frame is searched. In between, each face is
    refined from its keypoints in the last frame, and keeps the support that its keypoints'
    detections gave it. It is lost when its probability falls too low.

    Parameters
    ----------
    finder : FaceFinder
    search : function
        Takes a frame (H, W, 3) and returns its faces, from nothing.
    search_every : int, default 10
        Frames from one search to the next.
    smooth : float, default 0.0
        Weight of the last frame's position, from 0 (none) to below 1: points move more smoothly,
        and lag behind.
    min_probability : float, default 0.5
        Of a face that is followed.

    Raises
    ------
    ValueError
        For numbers outside their range.
    """

    finder: FaceFinder
    search: Callable[[np.ndarray], Sequence[Face]]
    search_every: int = 10
    smooth: float = 0.0
    min_probability: float = 0.5
    _faces: list[Face] = field(default_factory=list, init=False)
    _shown: list[Face] = field(default_factory=list, init=False)
    _left: int = field(default=0, init=False)  # frames until the next search

    def __post_init__(self) -> None:
        if self.search_every < 1:
            raise ValueError(f"search_every={self.search_every}: expected a whole number of at least 1")
        if not 0 <= self.smooth < 1:
            raise ValueError(f"smooth={self.smooth}: expected a number from 0 to below 1")

    def update(self, frame: np.ndarray) -> list[Face]:
        """Return the faces of the next frame, by falling probability.

        Parameters
        ----------
        frame : ndarray of shape (H, W, 3), uint8

        Returns
        -------
        list of Face
        """
        followed = [self._follow(frame, face) for face in self._faces] if self._left > 0 else []
        if self._left > 0 and all(face is not None for face in followed):
            self._left -= 1
            self._faces = [face for face in followed if face is not None]
        else:
            self._faces, self._left = list(self.search(frame)), self.search_every - 1
        self._shown = sorted((self._smoothed(face) for face in self._faces), key=lambda face: -face.probability)
        return self._shown

    def _follow(self, frame: np.ndarray, face: Face) -> Face | None:
        """The face in the next frame, None if it is lost."""
        low = np.floor(face.landmarks.min(axis=0) - _AROUND * face.ied).astype(int).clip(0)
        high = np.ceil(face.landmarks.max(axis=0) + _AROUND * face.ied).astype(int) + 1
        part = np.ascontiguousarray(frame[low[1] : max(high[1], 0), low[0] : max(high[0], 0)])
        if not part.size:
            return None
        corner = complex(*low)
        finder = self.finder
        # As in a search: completed from the anchors. From the last shape itself errors would grow
        # from frame to frame.
        anchors = np.array([complex(face.keypoints[name].x, face.keypoints[name].y) for name in finder.anchors])
        shape = finder.assembler.shape
        points = shape.predict(anchors, shape.anchors)[0][len(anchors) :]
        # The smallest frame of the cascade has to find a level of its resolution, no smaller one is
        # needed.
        least = min((stage.ied for stage in finder.regressor.stages), default=1) / face.ied
        levels = gaussian_pyramid(part, min_size=1, min_scale=min(1.0, 0.8 * least))
        refined = finder.refine(points - corner, face.support, levels)
        assert finder.probabilities is not None
        log_odds = finder.probabilities.face_log_odds(refined.score, face.support, refined.ied)
        if probability_of(log_odds) < self.min_probability:
            return None
        refined = finder.refine_again(refined, levels)
        return finder.report(replace(refined, points=refined.points + corner), log_odds, _NOTHING)

    def _smoothed(self, face: Face) -> Face:
        """The face with its points moved towards those of the same face in the last frame."""
        if not self.smooth or not self._shown:
            return face
        distance = [np.hypot(*(face.landmarks - last.landmarks).T).mean() for last in self._shown]
        last = self._shown[int(np.argmin(distance))]
        if min(distance) > SAME_IN_NEXT_FRAME * face.ied:
            return face
        s, before = self.smooth, last.keypoints
        keypoints = {
            name: p._replace(x=s * before[name].x + (1 - s) * p.x, y=s * before[name].y + (1 - s) * p.y)
            for name, p in face.keypoints.items()
        }
        landmarks = s * last.landmarks + (1 - s) * face.landmarks
        box = (*landmarks.min(axis=0).tolist(), *landmarks.max(axis=0).tolist())
        return replace(face, keypoints=keypoints, landmarks=landmarks, box=box)
