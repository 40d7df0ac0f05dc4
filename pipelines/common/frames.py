"""Selection of the frames of a video that differ most, for labelling."""

from pathlib import Path

import cv2
import numpy as np
from sklearn.cluster import KMeans

from ...models.files import make_folder, replacing
from ...vision.tracks.video import read_frames

_THUMBNAIL = 32, 24  # width and height in pixels


def different_frames(video: Path, n: int) -> list[int]:
    """Return the numbers, starting at 0, of up to n frames that differ most from one another.

    Grey thumbnails of all frames are grouped into n clusters, and the frame nearest to each cluster
    centre is chosen. Fewer numbers are returned if fewer than n frames are distinct.

    Raises
    ------
    ValueError
        If the video cannot be read or has fewer than n frames.
    """
    grey = (cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in read_frames(video))
    thumbnails = np.array(
        [cv2.resize(frame, _THUMBNAIL, interpolation=cv2.INTER_AREA).ravel() for frame in grey],
        np.float32,
    )
    if not 1 <= n <= len(thumbnails):
        raise ValueError(
            f"--n {n} is not valid; expected an integer from 1 to {len(thumbnails)}, the number of "
            f"frames of {video}"
        )
    distances = KMeans(n, n_init=1, random_state=0).fit_transform(thumbnails)
    return sorted({*distances.argmin(axis=0).tolist()})


def write_frames(video: Path, out: Path, n: int) -> list[Path]:
    """Write the most different frames of a video, and return their paths.

    Each file is named after the number of its frame, such as ``000012.png``.

    Raises
    ------
    ValueError
        In the cases listed for :func:`different_frames`, or if the folder contains files or cannot
        be written.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ValueError(
            f"{out}: the folder or file already exists; expected a new or empty folder"
        )
    selected = set(different_frames(video, n))
    make_folder(out)
    paths = []
    for number, frame in enumerate(read_frames(video)):
        if number in selected:
            paths.append(out / f"{number:06d}.png")
            pixels = cv2.cvtColor(frame, cv2.COLOR_RGB2BGR)
            with replacing(paths[-1]) as temporary:
                temporary.write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    return paths
