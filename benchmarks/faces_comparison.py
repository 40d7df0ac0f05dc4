"""Face keypoints compared with FaceMesh, dlib, MTCNN and OpenCV 4's eye cascades: recall, false
positives and seconds on the same photographs.

    python benchmarks/faces_comparison.py --data ../shared/data/faces/test --others
    others/bin/python [--model faces] [--every 1]

Times are processor seconds of one thread, the median over photographs. A point is correct within 5
% or 10 % of the inter-eye distance; each detector is used at its default operating point. A cascade
does not distinguish the eyes. ``--others``: an interpreter as in ``faces_others.py``.
"""

import json
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.pipelines.keypoints.measures import judge
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line, timed

SHARED = ("left_eye", "right_eye", "left_mouth", "right_mouth")  # also detected by the others


def recall(points, images, names, tolerance):
    """Compute the recall of the annotated keypoints, and false positives per photograph; ``points``
    holds [keypoint, x, y] for every image."""
    hits = total = false = 0
    for detected, image in zip(points, images, strict=True):
        for name in names:
            columns = [
                KEYPOINTS.index(n)
                for n in (("left_eye", "right_eye") if name == "eye" else (name,))
            ]
            xy = np.array([(x, y) for n, x, y in detected if n == name]).reshape(-1, 2)
            truth, seen = (
                image.instances[:, columns].reshape(-1, 2),
                image.visible[:, columns].ravel(),
            )
            ied = np.repeat(image.reference_length, len(columns))
            judged = judge(
                xy, np.arange(len(xy), 0, -1.0), truth, seen, ied, image.ignore, tolerance
            )
            hits, total = hits + int((judged.outcome == 1).sum()), total + judged.n_points
            false += int((judged.outcome == -1).sum())
    return hits / total, false / len(images)


def row(name, points, images, seconds, names):
    groups = {
        "eyes": [n for n in names if "eye" in n],
        "mouth corners": [n for n in names if "mouth" in n],
    }
    cells = []
    for members in groups.values():
        shown = "", ""
        if members:
            (fine, _), (coarse, false) = (
                recall(points, images, members, tolerance) for tolerance in (0.05, 0.1)
            )
            shown = f"{fine:.3f} / {coarse:.3f}", f"{false:.3f}"
        cells += shown
    print_line(name, *cells, f"{np.median(seconds):.3f}")


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--others", help="Python interpreter of the environment of the other detectors"
    )
    parser.add_argument("--model", default="faces")
    parser.add_argument("--every", type=int, default=1, help="use every N-th photograph")
    options = parser.parse_args(argv)
    cv2.setNumThreads(1)
    images = read_annotations(options.data)[:: options.every]
    pixels = [read_image(image.path) for image in images]
    detector = load_model(options.model)
    detector.detect(pixels[0])
    points, seconds = [], []
    for picture in pixels:
        times = []
        for _ in range(2):
            detections, took = timed(partial(detector.detect, picture))
            times.append(took)
        points.append([[d.keypoint, d.x, d.y] for d in detections])
        seconds.append(min(times))
    print_head("detector", "eyes", "false", "mouth corners", "false", "seconds")
    print(
        f"{len(images)} photographs: "
        "recall within 5 % / 10 %, false points per photograph and pair, seconds per photograph"
    )
    row("annealed, all nine keypoints", points, images, seconds, SHARED)
    if options.others:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "photographs.npz"
            np.savez(path, *pixels)
            script = Path(__file__).with_name("faces_others.py")
            ran = subprocess.run(
                [options.others, script, path], capture_output=True, text=True, check=True
            )
        for line in ran.stdout.splitlines():
            made = json.loads(line)
            row(
                made["name"],
                made["points"],
                images,
                made["seconds"],
                ["eye"] if made["name"].startswith("OpenCV") else SHARED,
            )


if __name__ == "__main__":
    main()
