"""Peak memory and time of one detection by size of the photograph, with a process for each size.

    python benchmarks/faces_memory.py [--keypoint left_eye] [--mode scan] [--model faces] [--plot
    time.png]

The photograph is scikit-image's astronaut, enlarged. Times are processor seconds of one thread
after a short warm-up; the memory is the process's peak, including interpreter and libraries.
"""

import argparse
import resource
import subprocess
import sys

import cv2
import numpy as np
from common import new_parser, timed

MEGAPIXELS = (0.3, 1.5, 3, 6, 12, 24)


def measure(megapixels, keypoint, mode, model):
    from annealed.models import load_model
    from skimage.data import astronaut

    cv2.setNumThreads(1)
    detector = load_model(model)
    image = astronaut()
    names = None if keypoint == "all" else [keypoint]
    detector.detect(image[:200, :200], names, mode=mode)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    height = round((megapixels * 1e6 / 1.5) ** 0.5)
    image = np.asarray(
        cv2.resize(image, (round(1.5 * height), height), interpolation=cv2.INTER_CUBIC)
    )
    detections, took = timed(lambda: detector.detect(image, names, mode=mode))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{image.size / 3e6:.2f} {took:.3f} {peak / 1024:.0f} {before / 1024:.0f} {len(detections)}"
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--keypoint", default="left_eye", help="name of a keypoint, or all")
    parser.add_argument("--mode", default="scan")
    parser.add_argument("--model", default="faces")
    parser.add_argument("--plot")
    parser.add_argument("--only", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.only:
        measure(options.only, options.keypoint, options.mode, options.model)
        return
    rows = []
    print("megapixels  seconds  seconds per megapixel  peak MiB (of it before)  detections")
    for megapixels in MEGAPIXELS:
        command = [
            sys.executable,
            __file__,
            "--only",
            str(megapixels),
            "--keypoint",
            options.keypoint,
            "--mode",
            options.mode,
        ]
        command += ["--model", options.model]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        size, took, peak, before, n_detections = map(float, ran.stdout.split())
        rows.append((size, took))
        print(
            f"{size:10.2f}  {took:7.3f}  {took / size:21.3f}  {peak:8.0f} ({before:.0f})  "
            f"{n_detections:18.0f}",
            flush=True,
        )
    if options.plot:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot(*zip(*rows, strict=True), "o-")
        axes.set(
            xlabel="megapixels",
            ylabel="seconds (one core)",
            title=f"{options.keypoint}, {options.mode}",
            xlim=0,
            ylim=0,
        )
        axes.grid(alpha=0.3)
        figure.savefig(options.plot)


if __name__ == "__main__":
    main()
