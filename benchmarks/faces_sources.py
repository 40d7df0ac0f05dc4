"""Faces detected by models that are trained on the photographs of one source alone, in the test
photographs of each source.

    python benchmarks/faces_sources.py FOLDER --data DATA/faces

Prints for each pair of sources the number of faces, the share detected by default, the share of the
six anchors within 10% of the inter-eye distance, and the number of false faces. The photographs and
the models, whose training takes about 15 minutes each, are stored in FOLDER, so that a second run
resumes.
"""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.pipelines.keypoints.data import read_annotations
from common import new_parser, print_head, print_line
from faces_views import judge

TRAINING, TEST = ("helen", "lfpw"), ("helen", "lfpw", "afw")


def copy_source(data, folder, source):
    """Copy the photographs of one source and the rows of their annotations, unless this was done
    before."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for path in data.glob(f"{source}_*"):
        shutil.copy(path, folder)
    for path in data.glob("*.csv"):
        with path.open(newline="") as file:
            first, *rows = csv.reader(file)
        with (folder / path.name).open("w", newline="") as file:
            csv.writer(file).writerows([first, *(r for r in rows if r[0].startswith(source))])


def train(folder, background, path):
    """Train a model by the defaults of the command, unless this was done before."""
    if not path.exists():
        command = [sys.executable, "-m", "annealed.pipelines.cli", "faces", "train", "--quiet"]
        where = ["--data", folder, "--background", background, "--out", path, "--resume"]
        subprocess.run([*command, *map(str, where)], check=True)


def row_of(detector, images):
    """Return the number of faces, the share detected, that of the anchors, and the false faces."""
    rows, judged = [], []
    for image in images:
        found = judge(image, detector.find(image.pixels(), min_probability=0.1).instances)
        rows += found[0]
        judged += found[1]
    detected, within, _ = np.array(rows, float).T
    false = sum(not right for p, right in judged if p >= 0.5)
    return len(rows), f"{detected.mean():.3f}", f"{within.mean():.3f}", false


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args(argv)
    for part, sources in ("train", TRAINING), ("test", TEST):
        for source in sources:
            copy_source(args.data / part, args.folder / part / source, source)
    print_head("trained on", "tested on", "faces", "detected", "anchors", "false faces")
    for source in TRAINING:
        path = args.folder / f"{source}.safetensors"
        train(args.folder / "train" / source, args.data / "background", path)
        detector = load_model(str(path))
        for other in TEST:
            images = read_annotations(args.folder / "test" / other)
            print_line(source, other, *row_of(detector, images))


if __name__ == "__main__":
    main()
