"""Smoothing of the points of tracked instances by local regression over time.

The method is a Savitzky-Golay filter [1]_ for frames at arbitrary times.

References
----------
.. [1] A. Savitzky, M. J. E. Golay, "Smoothing and Differentiation of Data by Simplified Least
       Squares Procedures", Analytical Chemistry 36 (1964).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .instance_finder import Instance

TimedInstances = tuple[float, Sequence[Instance]]  # time in seconds, and the instances of a frame

# Hz: five frames at 25 frames per second. Chosen on videos of training photographs
# (benchmarks/faces_smoothing.py); lower frequencies distort the mouth of a speaker.
DEFAULT_CUTOFF = 5.0
MAX_FRAMES = 16  # maximum number of frames on each side that smooth a frame
_WINDOW = 0.55  # seconds on each side times the cut-off frequency


def half_window(cutoff: float) -> float:
    """Return half the width of the time window over which points are smoothed, in seconds.

    The filter halves the power at the frequency ``cutoff``, in Hz.
    """
    return _WINDOW / cutoff


def smoothed(frames: Sequence[TimedInstances], i: int, cutoff: float) -> list[Instance]:
    """Return the instances in a frame, with smoothed points.

    For each instance, a quadratic function of time is fitted to the points of its track in
    neighbouring frames and evaluated at the time of the frame. If there are only earlier or only
    later neighbouring frames, the function is linear.

    Parameters
    ----------
    frames : sequence of (time, instances)
        Frames in chronological order. Each instance must belong to a track.
    i : int
        Index of the frame.
    cutoff : float
        Cut-off frequency in Hz.

    Returns
    -------
    list of Instance
        Smoothed instances, in the same order.
    """
    time, instances = frames[i]
    window = [(t - time, others) for t, others in frames if abs(t - time) <= half_window(cutoff)]
    smooth = []
    for instance in instances:
        track = [
            (t, other) for t, others in window for other in others if other.track == instance.track
        ]
        times = np.array([t for t, _ in track])
        degree = 2 if times[0] < 0 < times[-1] else 1
        powers = np.vander(times / half_window(cutoff), min(degree + 1, len(times)), True)
        points = np.tensordot(
            np.linalg.pinv(powers)[0], np.array([_points(other) for _, other in track]), 1
        )
        smooth.append(_with_points(instance, points))
    return smooth


def _points(instance: Instance) -> np.ndarray:
    return np.array([*instance.landmarks, *((p.x, p.y) for p in instance.keypoints.values())])


def _with_points(instance: Instance, points: np.ndarray) -> Instance:
    n = len(instance.landmarks)
    landmarks = points[:n]
    keypoints = {
        name: point._replace(x=x, y=y)
        for (name, point), (x, y) in zip(
            instance.keypoints.items(), points[n:].tolist(), strict=True
        )
    }
    box = (*landmarks.min(axis=0).tolist(), *landmarks.max(axis=0).tolist())
    return replace(instance, keypoints=keypoints, landmarks=landmarks, box=box)
