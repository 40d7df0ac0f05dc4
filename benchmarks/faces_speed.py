"""Seconds per photograph of every mode of the face detector (``faces_comparison.py`` compares other
detectors).

    python benchmarks/faces_speed.py [--data DATA/faces] [--model faces] [--cases]

Twenty photographs of the test set are resized to 640x480 (the rest of the frame repeats the
border). Times are processor seconds of one thread: the median over photographs of the faster of two
warm runs; other processes on the machine may affect it. ``--cases`` prints only the times of the
default search: frames of 640x480 and enlarged frames of 12 megapixels with and without faces, and
the frames per second of clips in which such frames move.
"""

import argparse
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.detections import DetectionOptions
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.detect import detect_many
from annealed.pipelines.keypoints.measures import judge
from annealed.pipelines.keypoints.video import frame_processor
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line, seconds_of, timed

SIZE = (640, 480)


def fitted(image):
    """Return a photograph in a frame of 640x480, with its annotations transformed accordingly."""
    frame, scale = fitted_frame(read_image(image.path))
    points = (image.instances + 0.5) * scale - 0.5
    return frame, points, image.ignore * scale


def fitted_frame(pixels):
    """Return a photograph in a frame of 640x480, and the scale of the photograph."""
    height, width = pixels.shape[:2]
    scale = min(SIZE[0] / width, SIZE[1] / height)
    small = cv2.resize(
        pixels,
        (round(width * scale), round(height * scale)),
        interpolation=cv2.INTER_AREA if scale < 1 else 1,
    )
    below, right = SIZE[1] - small.shape[0], SIZE[0] - small.shape[1]
    return cv2.copyMakeBorder(small, 0, below, 0, right, cv2.BORDER_REPLICATE), scale


def seconds(work, images):
    best = []
    for image in images:
        times = seconds_of(partial(work, image), 2)
        best.append(min(times))
    return float(np.median(best))


def eyes(detections, photographs, faces):
    """Compute the recall within a tenth of the IED and the false detections per photograph, for
    points (n, 2) that may be either eye."""
    hits, points, false = 0, 0, 0
    for xy, (_, keypoints, ignore), image in zip(detections, photographs, faces, strict=True):
        both = keypoints[:, :2].reshape(-1, 2)
        ied = np.repeat(np.hypot(*(keypoints[:, 0] - keypoints[:, 1]).T), 2)
        judged = judge(
            xy, np.arange(len(xy), 0, -1), both, image.visible[:, :2].ravel(), ied, ignore, 0.1
        )
        hits, points = hits + int((judged.outcome == 1).sum()), points + judged.n_points
        false += int((judged.outcome == -1).sum())
    return hits / points, false / len(detections)


def clip(frame, n_frames=50):
    """Yield frames of a clip in which a frame moves by up to 60 pixels at up to 8 per frame."""
    for number in range(n_frames):
        shift = 60 * np.sin(0.13 * number), 40 * np.sin(0.1 * number)
        matrix = np.array([[1, 0, shift[0]], [0, 1, shift[1]]])
        yield cv2.warpAffine(frame, matrix, SIZE, borderMode=cv2.BORDER_REPLICATE)


def seconds_per_frame(detector, frame):
    frames = [(number / 25, pixels) for number, pixels in enumerate(clip(frame))]
    follow = frame_processor(detector, "off", DetectionOptions(roll=0))
    return timed(lambda: [follow(pixels, at) for at, pixels in frames])[1] / len(frames)


def print_cases(detector, with_faces, empty):
    """Print the times of the default search."""
    print_head("case", "frames", "faces", "median seconds", "mean seconds")
    for name, frames in {"with faces": with_faces, "without faces": empty}.items():
        for size, some in (SIZE, frames), ((4000, 3000), frames[::10]):
            pixels = [cv2.resize(frame, size, interpolation=cv2.INTER_CUBIC) for frame in some]
            n_faces = sum(len(detector.find(frame).instances) for frame in pixels)
            took = [min(seconds_of(partial(detector.find, frame), 2)) for frame in pixels]
            numbers = f"{np.median(took):.4f}", f"{np.mean(took):.4f}"
            print_line(f"{size[0]}x{size[1]} {name}", len(pixels), n_faces, *numbers)
    took = [seconds_per_frame(detector, frame) for frame in with_faces[:4]]
    print(f"\nclips: {1 / np.median(took):.1f} frames per second")


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("ANNEALED_DATA", ".")) / "faces"
    )
    parser.add_argument("--model", default="faces")
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    cv2.setNumThreads(1)
    images = read_annotations(options.data / "test")
    images = images[:: len(images) // 20][:20]
    detector, loading = timed(lambda: load_model(options.model))
    photographs = [fitted(image) for image in (images[:1] if options.cold else images)]
    pixels = [photograph[0] for photograph in photographs]
    if options.cases:
        empty = [fitted_frame(read_image(p))[0] for p in list_images(options.data / "background")]
        print_cases(detector, pixels, empty[-40::2])
        return
    if options.cold:
        start = time.process_time()
        detector.detect(pixels[0], mode="prune+regress")
        print(
            f"{loading:.2f} s to load the model, {time.process_time() - start:.2f} s for the "
            "first photograph"
        )
        return

    rows = [(["left_eye"], mode) for mode in ("scan", "regress", "prune+regress")]
    rows += [(None, "prune+regress")]
    for names, mode in rows:
        if mode != "scan" and not detector.guides:
            continue
        detector.detect(pixels[0], keypoints=names, mode=mode)
        took = seconds(
            lambda image, names=names, mode=mode: detector.detect(
                image, keypoints=names, mode=mode
            ),
            pixels,
        )
        print(
            f"{mode:14} {'all' if names is None else names[0]:10} {took:.3f} s per photograph",
            flush=True,
        )
    if detector.guides:
        for jobs in (1, 2):
            for _ in range(2):  # the first time the processes start
                clock = time.perf_counter()
                n = sum(1 for _ in detect_many(detector, pixels * 3, jobs, mode="prune+regress"))
                wall = time.perf_counter() - clock
            print(
                f"all nine, prune+regress, {jobs} processes: {n / wall:.1f} photographs per second",
                flush=True,
            )
    cold = subprocess.run(
        [sys.executable, __file__, "--cold", "--data", str(options.data), "--model", options.model],
        capture_output=True,
        text=True,
        check=False,
    )
    print(
        "fresh process, compiled code in the cache:",
        (cold.stdout or cold.stderr).strip(),
        flush=True,
    )

    mode = "prune+regress" if detector.guides else "scan"
    names = ["left_eye", "right_eye"]
    detections = [detector.detect(image, keypoints=names, mode=mode) for image in pixels]
    recall, false = eyes(
        [np.array([(d.x, d.y) for d in f]).reshape(-1, 2) for f in detections], photographs, images
    )
    took = seconds(lambda image: detector.detect(image, keypoints=names, mode=mode), pixels)
    print(
        f"both eyes, {mode}, default threshold: "
        f"recall {recall:.3f}, {false:.2f} false per photograph, {took:.3f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
