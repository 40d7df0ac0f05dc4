"""Train detectors of face keypoints on the nested folders of 300-W, and measure them on its test
photographs.

    python examples/train_faces.py FOLDER BACKGROUND              # FOLDER: afw/, helen/trainset/,
    helen/testset/, ...
    python examples/train_faces.py FOLDER BACKGROUND 2 60         # two rounds on 60 photographs:
    minutes, not hours

FOLDER is any folder that ``annealed faces train`` takes. Photographs in a folder "testset" are held
out for the test; without one, every fifth is. BACKGROUND has photographs without faces, such as
those of BSDS500. Writes faces.safetensors.
"""

import sys
from dataclasses import replace
from pathlib import Path

from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.evaluate import evaluate_detector
from annealed.pipelines.keypoints.faces import ANCHORS
from annealed.pipelines.keypoints.training.stages import DetectorSettings, train_detector


def main(
    folder: str,
    background: str,
    rounds: str = "",
    photographs: str = "",
    keypoints: str = ",".join(ANCHORS),
) -> None:
    """Train classifiers of all windows (mode "scan"), save them, and evaluate."""
    images = read_annotations(folder)
    named = any(image.path.parent.name == "testset" for image in images)
    test = [
        image
        for i, image in enumerate(images)
        if (image.path.parent.name == "testset" if named else i % 5 == 0)
    ]
    held_out = {image.path for image in test}
    train = [image for image in images if image.path not in held_out]
    if photographs:
        train, test = (
            part[:: max(1, len(part) // int(photographs))][: int(photographs)]
            for part in (train, test)
        )
    print(f"{len(train)} photographs to train on, {len(test)} to test")

    settings = DetectorSettings()
    if rounds:
        settings = replace(settings, scan=replace(settings.scan, rounds=int(rounds)))
    names = keypoints.split(",")
    detector = train_detector(
        train, list_images(background), Path("faces.safetensors"), settings, names, mode="scan"
    )

    for row in evaluate_detector(detector, test, names).rows:
        if row["source"] == "all":
            print(
                f"{row['keypoint']:12} within {row['tolerance']:.2f} of the eyes' distance: "
                f"AP {row['ap']:.3f}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
