"""Point tracks from a video, by pyramidal Lucas-Kanade tracking with a forward-backward check."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from .video import read_frames


@dataclass(frozen=True)
class Tracker:
    """Tracker of corners in a video by the pyramidal Lucas-Kanade method [1]_.

    Each step is verified by tracking the points back to the previous frame [2]_.

    Parameters
    ----------
    max_points : int, default 400
        Maximum number of points tracked at a time.
    quality : float, default 0.01
        Minimum strength of a corner, as a fraction of the strongest corner.
    min_distance : float, default 8.0
        Minimum distance between points in pixels.
    window : int, default 11
        Side of the Lucas-Kanade window in pixels.
    levels : int, default 3
        Number of pyramid levels above the image.
    max_backward_error : float, default 0.5
        Maximum distance, in pixels, between a point and its position after tracking forwards and
        backwards. Points with a larger distance are dropped.
    min_correlation : float, default 0.95
        Minimum normalised correlation between the windows of a point in successive frames. Points
        with a lower correlation, for example because they are occluded or slide along an edge, are
        dropped.
    reseed_every : int, default 5
        Interval, in frames, at which new corners are detected in areas without tracked points.

    References
    ----------
    .. [1] J.-Y. Bouguet, "Pyramidal implementation of the Lucas Kanade feature tracker", Intel
           Corporation (2000).
    .. [2] Z. Kalal, K. Mikolajczyk, J. Matas, "Forward-backward error: automatic detection of
           tracking failures", International Conference on Pattern Recognition (2010).
    """

    max_points: int = 400
    quality: float = 0.01
    min_distance: float = 8.0
    window: int = 11
    levels: int = 3
    max_backward_error: float = 0.5
    min_correlation: float = 0.95
    reseed_every: int = 5

    def track(self, path: str | Path, on_frame: Callable[[], object] | None = None) -> np.ndarray:
        """Track points through a video.

        Parameters
        ----------
        path : path
            Video file or address that OpenCV can open.
        on_frame : function or None, default None
            Function that is called, without arguments, after each frame.

        Returns
        -------
        ndarray of shape (F, P, 2), float64
            Positions in pixels; NaN before a point is detected and after it is dropped. A dropped
            point is not tracked again: a corner that is later detected at the same position is a
            new point.

        Raises
        ------
        ValueError
            If the video cannot be opened, has fewer than two frames, or has no corners to track.
        """
        # indices and positions of the points in each frame
        rows: list[tuple[np.ndarray, np.ndarray]] = []
        numbers, points = np.empty(0, np.int64), np.empty((0, 2), np.float32)
        n_points = 0
        previous = None
        for t, frame in enumerate(read_frames(path)):
            image = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
            if previous is not None and len(points):
                points, good = self._follow(previous, image, points)
                points, numbers = points[good], numbers[good]
            if t % self.reseed_every == 0 or len(points) < self.max_points // 4:
                new = self._corners(image, points)
                numbers = np.concatenate([numbers, np.arange(n_points, n_points + len(new))])
                points = np.concatenate([points, new])
                n_points += len(new)
            rows.append((numbers.copy(), points.copy()))
            previous = image
            if on_frame is not None:
                on_frame()
        if len(rows) < 2:
            raise ValueError(
                f"{path}: the video has {len(rows)} readable frame{'s' * (len(rows) != 1)}; "
                "expected at least 2"
            )
        if not n_points:
            raise ValueError(f"{path}: no trackable corners were detected")
        tracks = np.full((len(rows), n_points, 2), np.nan)
        for t, (numbers, points) in enumerate(rows):
            tracks[t, numbers] = points
        return tracks

    def _corners(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        n_free = self.max_points - len(points)
        if n_free <= 0:
            return np.empty((0, 2), np.float32)
        free = np.full(image.shape, 255, np.uint8)
        for x, y in points:
            cv2.circle(free, (round(float(x)), round(float(y))), round(self.min_distance), 0, -1)
        corners = cv2.goodFeaturesToTrack(image, n_free, self.quality, self.min_distance, mask=free)
        return (
            np.empty((0, 2), np.float32)
            if corners is None
            else corners.reshape(-1, 2).astype(np.float32)
        )

    def _follow(
        self, previous: np.ndarray, image: np.ndarray, points: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        side, start = (self.window, self.window), points.reshape(-1, 1, 2)
        unknown = np.empty_like(start)
        moved, tracked, _ = cv2.calcOpticalFlowPyrLK(
            previous, image, start, unknown, winSize=side, maxLevel=self.levels
        )
        back, tracked_back, _ = cv2.calcOpticalFlowPyrLK(
            image, previous, moved, unknown.copy(), winSize=side, maxLevel=self.levels
        )
        height, width = image.shape
        ends = moved.reshape(-1, 2)
        error = np.linalg.norm(back.reshape(-1, 2) - points, axis=1)
        inside = (ends >= 0).all(axis=1) & (ends <= [width - 1, height - 1]).all(axis=1)
        good = (
            (tracked.ravel() == 1)
            & (tracked_back.ravel() == 1)
            & (error <= self.max_backward_error)
            & inside
        )
        good &= (
            correlation(self._windows(previous, points), self._windows(image, ends))
            >= self.min_correlation
        )
        return ends, good

    def _windows(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return interpolated grey values around each point, (P, window * window)."""
        offsets = np.arange(self.window, dtype=np.float32) - (self.window - 1) / 2
        dy, dx = np.meshgrid(offsets, offsets, indexing="ij")
        x = points[:, :1].astype(np.float32) + dx.ravel()
        y = points[:, 1:].astype(np.float32) + dy.ravel()
        return cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compute the normalised correlation of corresponding rows; 1 if both rows are constant.

    Parameters
    ----------
    first, second : ndarray of shape (P, n)
        Arrays whose rows are compared.

    Returns
    -------
    ndarray of shape (P,)
    """
    a = first - first.mean(axis=1, keepdims=True)
    b = second - second.mean(axis=1, keepdims=True)
    energy = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.where(energy > 1e-9, (a * b).sum(axis=1) / np.maximum(energy, 1e-9), 1.0)
