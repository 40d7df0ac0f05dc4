"""Options and results of a keypoint detector."""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from .instances import Assembly, Instance, log_odds_of
from .windows import MAX_ROLL, Mode


@dataclass(frozen=True)
class DetectionOptions:
    """Options of :meth:`KeypointDetector.find`.

    Parameters
    ----------
    keypoints : sequence of str, optional
        Keypoints to detect; by default, all keypoints.
    threshold : float, optional
        Minimum score of a detection, used instead of ``min_probability``. With ``-inf``, every
        candidate is returned. Without assembly, the default is the threshold of the model of each
        keypoint.
    min_size, max_size : float, optional
        Range of the side of the detection window, in image pixels. The default range extends from
        the side of the windows of the model, usually 24, to the size of the image. If ``min_size``
        is smaller than this side, the image is enlarged, at most fourfold.
    max_detections : int, default 200
        Maximum number of detections per keypoint; those with the highest scores are returned.
    mode : {"scan", "regress", "prune+regress"}, optional
        Search mode, which determines the windows that the classifier scores (see
        :class:`~annealed.models.keypoints.windows.window_models.Mode`). The default is
        "prune+regress", the fastest mode, if the model supports it, and otherwise "scan".
    assembly : {"2d", "3d", "none"}, optional
        Method of assembling detected keypoints into instances; see
        :class:`~annealed.models.keypoints.instances.assembly.Assembly`. With "none", each keypoint
        is detected separately. The default depends on the model; it is "none" if the model does not
        support assembly.
    min_probability : float, optional
        Minimum probability of an instance; by default, 0.5. With 0, every candidate is returned.
        This option requires assembly.
    roll : float, optional
        Angle of rotation for a second search, in degrees, at most 50. The second search uses the
        image with equalised lightness, rotated by this angle in both directions. If no instance has
        been detected, it covers the whole image, reduced to at most 4 million pixels (10 million
        after rotation). Otherwise, it is restricted to regions in which other instances are likely.
        With 0, there is no second search. The default is 30 for faces and 0 for other objects,
        whose detectors are trained with all rotations in the training images.
    boxes : sequence of (x0, y0, x1, y1), optional
        Boxes around known objects, in image pixels. One instance is located in each box, regardless
        of its probability, and the rest of the image is not searched. This option requires
        assembly.

    Raises
    ------
    ValueError
        If a name is unknown or a value is out of range.
    """

    keypoints: Sequence[str] | None = None
    threshold: float | None = None
    min_size: float | None = None
    max_size: float | None = None
    max_detections: int = 200
    mode: str | None = None
    assembly: str | None = None
    min_probability: float | None = None
    roll: float | None = None
    boxes: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        alone, p = self.assembly == Assembly.NONE, self.min_probability
        checks = (
            (
                self.assembly not in (None, *Assembly),
                f"assembly={self.assembly!r} is unknown; expected one of {', '.join(Assembly)}",
            ),
            (
                self.mode not in (None, *Mode),
                f"mode={self.mode!r} is unknown; expected one of {', '.join(Mode)}",
            ),
            (
                self.threshold is not None and np.isnan(self.threshold),
                f"threshold={self.threshold} is not valid; expected a number",
            ),
            (
                p is not None and not 0 <= p <= 1,
                f"min_probability={p} is not valid; expected a number in [0, 1]",
            ),
            (
                None not in (p, self.threshold),
                f"threshold={self.threshold} and min_probability={p} are both given; use only "
                "one of them",
            ),
            (
                p is not None and alone,
                f"min_probability={p} requires assembled faces; use another assembly, or set "
                "threshold instead",
            ),
            (
                not 0 <= (self.roll or 0.0) <= MAX_ROLL,
                f"roll={self.roll} is not valid; expected an angle from 0 to {MAX_ROLL:g} degrees",
            ),
            (
                self.boxes is not None and alone,
                "boxes require assembled faces; use an assembly other than 'none'",
            ),
        )
        for wrong, message in checks:
            if wrong:
                raise ValueError(message)
        for box in self.boxes or ():
            if (
                len(box) != 4
                or not np.isfinite(box).all()
                or not (box[0] < box[2] and box[1] < box[3])
            ):
                raise ValueError(
                    f"box {tuple(box)} is not valid; "
                    "expected x0, y0, x1, y1 with x0 < x1 and y0 < y1"
                )


class Detection(NamedTuple):
    """Detected keypoint.

    Parameters
    ----------
    keypoint : str
        Name of the keypoint.
    x, y : float
        Position in image pixels.
    score : float
        Score of the window classifier or, with assembly, the log-odds of ``probability``.
    size : float
        Side of the detection window in image pixels.
    probability : float or None
        Probability that the distance from the true position is at most 10% of the reference length
        of the object (see :class:`.Schema`); None without assembly.
    """

    keypoint: str
    x: float
    y: float
    score: float
    size: float
    probability: float | None = None


class DetectionResult(NamedTuple):
    """Result of :meth:`KeypointDetector.find`.

    Parameters
    ----------
    detections : list of Detection
        Detections in order of decreasing score.
    instances : list of Instance
        Instances in order of decreasing probability; empty if keypoints were not assembled.
    """

    detections: list[Detection]
    instances: list[Instance]

    @property
    def faces(self) -> list[Instance]:
        """Former name of ``instances`` (until version 0.2)."""
        warnings.warn(
            "faces was renamed to instances; the old name will be removed in 0.4",
            FutureWarning,
            stacklevel=2,
        )
        return self.instances


def of_instances(
    instances: Sequence[Instance], names: Sequence[str], size: float
) -> list[Detection]:
    """Return the named keypoints of all instances as detections.

    ``size`` is the side of a detection window, in reference lengths.
    """
    return [
        Detection(
            name,
            p.x,
            p.y,
            float(log_odds_of(p.probability)),
            size * instance.reference_length,
            p.probability,
        )
        for instance in instances
        for name, p in instance.keypoints.items()
        if name in names
    ]


def best_of_each(detections: Sequence[Detection], n: int) -> list[Detection]:
    """Return the first n detections of each keypoint, given detections sorted by score."""
    places: dict[str, Iterator[int]] = defaultdict(count)
    return [d for d in detections if next(places[d.keypoint]) < n]
