"""Train detectors of face keypoints on the nested folders of 300-W and evaluate them.

    python examples/train_faces.py FOLDER BACKGROUND         # FOLDER: afw/, helen/trainset/, ...
    python examples/train_faces.py FOLDER BACKGROUND 2 60    # two rounds, 60 photographs: minutes

FOLDER is any folder that ``annealed faces train`` accepts; photographs in folders "testset", or
else every fifth photograph, are held out. BACKGROUND holds photographs without faces. Writes
faces.safetensors.
"""

import sys
from dataclasses import replace
from pathlib import Path

from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.evaluate import evaluate_detector
from annealed.pipelines.keypoints.faces import ANCHORS
from annealed.pipelines.keypoints.training.stages import DetectorSettings, train_detector


def main(folder: str, background: str, rounds="", photographs="", keypoints=""):
    """Train classifiers of all windows (mode "scan"), save them, and evaluate."""
    images = read_annotations(folder)
    names = keypoints.split(",") if keypoints else ANCHORS
    test = [image for image in images if image.path.parent.name == "testset"] or images[::5]
    held_out = {image.path for image in test}
    train = [image for image in images if image.path not in held_out]
    if photographs:
        n = int(photographs)
        train, test = (part[:: max(1, len(part) // n)][:n] for part in (train, test))
    print(f"{len(train)} photographs to train on, {len(test)} to test")

    settings = DetectorSettings()
    if rounds:
        settings = replace(settings, scan=replace(settings.scan, rounds=int(rounds)))
    out = Path("faces.safetensors")
    detector = train_detector(train, list_images(background), out, settings, names, mode="scan")
    for row in evaluate_detector(detector, test, names).rows:
        if row["source"] == "all":
            within = f"within {row['tolerance']:.2f} of the eyes' distance"
            print(f"{row['keypoint']:12} {within}: AP {row['ap']:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
