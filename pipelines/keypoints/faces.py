"""Schema of faces, whose nine keypoints are computed from 68 annotated points."""

from pathlib import Path

import numpy as np

from ...models.keypoints.schema import read_schema

#: Schema of faces; the following names are its parts.
FACES = read_schema(Path(__file__).parent / "faces.toml")
KEYPOINTS = FACES.keypoints
#: Keypoints with a detector: eyes, nose sides and mouth corners.
ANCHORS = FACES.anchors
N_LANDMARKS = len(FACES.landmark_mirror)
# An ear closer to the outer eye corner than this share of the nasion-chin distance lies on the
# outline of a rotated head.
_TURNED_AWAY = 0.06


def read_pts(path: Path, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the 9 keypoints of a face, their visibility and the 68 landmarks from a file.

    ``size`` contains the width and height of the image; keypoints outside the image are not
    visible. The first axis of each array has length 1.
    """
    try:
        body = path.read_text().split("{", 1)[1].split("}", 1)[0]
        xy = np.array(body.split(), float).reshape(-1, 2)
    except (IndexError, ValueError):
        raise ValueError(
            f"{path}: the file is not an iBUG .pts file; "
            "expected two numbers per line between braces"
        ) from None
    if len(xy) != 68:
        raise ValueError(
            f"{path}: the file has {len(xy)} points; expected the 68 points of the iBUG scheme"
        )
    if not np.isfinite(xy).all():
        raise ValueError(
            f"{path}: point {int(np.argmin(np.isfinite(xy).all(axis=1))) + 1} is not finite; "
            "expected coordinates in pixels"
        )
    xy -= 1.0  # pixel coordinates in iBUG files start at 1
    faces = np.array([[xy[list(FACES.landmarks[name])].mean(axis=0) for name in KEYPOINTS]])
    visible = np.logical_and.reduce((faces >= -0.5) & (faces <= np.array(size) - 0.5), axis=2)
    nearest = _TURNED_AWAY * np.hypot(*(xy[27] - xy[8]))
    for name, corner in (("left_ear", 45), ("right_ear", 36)):
        i = KEYPOINTS.index(name)
        visible[0, i] &= np.hypot(*(faces[0, i] - xy[corner])) >= nearest
    return faces, visible, xy[None]
