"""Dense motion masks of a video from labelled point tracks."""

from collections.abc import Iterable, Iterator

import cv2
import numpy as np

GAP = 3  # number of frames between a frame and those with which it is compared (heuristic)
_AREA = 30  # average number of pixels in a superpixel (heuristic)
_UNKNOWN = 40.0  # grey-value difference for an unknown motion, and the maximum (heuristic)
_NEAR = (
    40.0  # distance in pixels from a motion's tracks that costs as much as _FAR_WEIGHT grey values
)
_FAR_WEIGHT = 6.0
_MIN_TRACKS = 4  # minimum number of tracks for an affine motion between two frames


def background_of(tracks: np.ndarray, labels: np.ndarray) -> int:
    """Return the label of the background: the motion whose tracks span the largest area."""
    areas = np.zeros(max(int(labels.max()) + 1, 1))
    for k in range(len(areas)):
        seen = (
            points[np.isfinite(points).all(axis=1)].astype(np.float32)
            for points in tracks[:, labels == k]
        )
        areas[k] = sum(
            cv2.contourArea(cv2.convexHull(points)) for points in seen if len(points) > 2
        )
    return int(areas.argmax())


def label_maps(
    frames: Iterable[np.ndarray], tracks: np.ndarray, labels: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each frame of a video with the motion label of each pixel.

    For each label, affine motions from a frame to an earlier and to a later frame are fitted to the
    tracks. Each pixel is assigned to the motion with the smallest difference in grey value. Of the
    differences for the two frames, the smaller one is used, since regions that are occluded in one
    of these frames are usually visible in the other. Motions with nearby tracks are preferred.
    Differences are averaged over superpixels (SLIC [1]_), which follow the edges of objects.

    Parameters
    ----------
    frames : iterable of ndarray of shape (H, W, 3), uint8
        RGB frames; only a few are in memory at a time.
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    labels : ndarray of shape (P,), int
        Motion of each track; -1 for tracks that are ignored.

    Yields
    ------
    frame : ndarray of shape (H, W, 3), uint8
    motions : ndarray of shape (H, W), int
        Label of each pixel; -1 if no track is visible in the frame.

    References
    ----------
    .. [1] R. Achanta et al., "SLIC superpixels compared to state-of-the-art superpixel methods",
           IEEE Transactions on Pattern Analysis and Machine Intelligence 34 (2012).
    """
    held: dict[int, np.ndarray] = {}
    source = iter(frames)
    for t in range(len(tracks)):
        while (
            len(tracks) > (last := max(held, default=-1)) + 1
            and last < t + GAP
            and (frame := next(source, None)) is not None
        ):
            held[last + 1] = frame
        if t not in held:
            return
        yield held[t], _label_map(held, t, tracks, labels)
        held.pop(t - GAP, None)


def _label_map(
    held: dict[int, np.ndarray], t: int, tracks: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    from skimage.segmentation import slic

    image = held[t]
    motions = [k for k in range(int(labels.max()) + 1) if np.isfinite(tracks[t, labels == k]).any()]
    if not motions:
        return np.full(image.shape[:2], -1)
    regions = slic(
        image, n_segments=max(2, image[..., 0].size // _AREA), compactness=8.0, start_label=0
    ).ravel()
    sizes = np.bincount(regions)
    costs = []
    for k in motions:
        mine = tracks[:, labels == k]
        background = np.full(image.shape[:2], 255, np.uint8)
        for x, y in np.round(mine[t][np.isfinite(mine[t]).all(axis=1)]).astype(int):
            cv2.circle(background, (int(x), int(y)), 1, 0, -1)
        nearness = (
            np.minimum(cv2.distanceTransform(background, cv2.DIST_L2, 5) / _NEAR, 3.0) * _FAR_WEIGHT
        )
        difference = np.minimum.reduce([_difference(held, t, s, mine) for s in (t - GAP, t + GAP)])
        costs.append(np.bincount(regions, (difference + nearness).ravel()) / sizes)
    return np.array(motions)[np.argmin(costs, axis=0)][regions].reshape(image.shape[:2])


def _difference(held: dict[int, np.ndarray], t: int, s: int, tracks: np.ndarray) -> np.ndarray:
    """Compute the mean grey-value difference (H, W) between frame t and frame s after frame s is
    warped to frame t by the affine motion of some tracks."""
    height, width = held[t].shape[:2]
    both = np.isfinite(tracks[[t, s]]).all(axis=(0, 2)) if s in held else np.zeros(0, bool)
    motion = None
    if both.sum() >= _MIN_TRACKS:
        motion, _ = cv2.estimateAffine2D(
            tracks[t, both], tracks[s, both], ransacReprojThreshold=1.0
        )
    if motion is None:
        return np.full((height, width), _UNKNOWN)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(
        held[s], motion, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE
    )
    return np.minimum(cv2.blur(cv2.absdiff(held[t], warped), (5, 5)).mean(axis=2), _UNKNOWN)


def label_probabilities(tracks: np.ndarray, labels: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    """Compute the probability of each track's label from the motion of the track.

    Affine motions from each frame to a later frame are fitted to the tracks of each label. Their
    mean squared residuals for a track are converted to probabilities, assuming Gaussian noise of
    ``sigma`` pixels. The probabilities are not calibrated. The probability of a label is below 0.5
    if the motion of another label fits the track better.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    labels : ndarray of shape (P,), int
        Index of the motion that each track follows; -1 if it is not assigned to any.
    sigma : float, default 1.0
        Standard deviation of the noise in pixels.

    Returns
    -------
    ndarray of shape (P,)
        Probabilities; NaN for tracks without a label, and for tracks that are never visible in both
        frames of a comparison.
    """
    gap = max(1, min(5, len(tracks) - 1))
    squares = np.full((max(int(labels.max()) + 1, 1), len(tracks), tracks.shape[1]), np.nan)
    for t in range(len(tracks) - gap):
        both = np.isfinite(tracks[[t, t + gap]]).all(axis=(0, 2))
        for k in range(len(squares)):
            mine = both & (labels == k)
            if mine.sum() >= _MIN_TRACKS:
                start = np.column_stack([tracks[t], np.ones(tracks.shape[1])])
                motion = np.linalg.lstsq(start[mine], tracks[t + gap, mine], rcond=None)[0]
                squares[k, t, both] = ((start[both] @ motion - tracks[t + gap, both]) ** 2).sum(
                    axis=1
                )
    known = np.isfinite(squares)
    mean = np.where(known, squares, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    weight = np.where(known.any(axis=1), np.exp(-np.minimum(mean / (2 * sigma**2), 300.0)), 0.0)
    assigned = weight[np.maximum(labels, 0), np.arange(len(labels))]
    with np.errstate(invalid="ignore"):
        return np.where(labels >= 0, assigned / weight.sum(axis=0), np.nan)
