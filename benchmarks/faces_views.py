"""Hard views of faces: heads with yaw or roll, small faces, uneven light, blur, partial occlusion,
and several faces in one image; synthesised from photographs held out from training.

Prints for each kind the recall of faces by default and that of their six anchors within 10% of the
inter-eye distance (IED), the mean error of the 68 landmarks of detected faces divided by the
distance of the outer eye corners, the number of false faces, and the median processor time per
image; then the share of correct faces by their probability, and the faces reported in photographs
without faces.

    python benchmarks/faces_views.py --data DATA/faces/train --background DATA/faces/background
    --skip-background 140
"""

import time
from collections import defaultdict
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.instances.shape_models import pose_of
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.training.synthetic_views import (
    hard_augmentations,
    rolled,
    turned_head,
)
from annealed.pipelines.keypoints.training.windows.views import held_out
from annealed.vision.images import read_image
from common import new_parser

SMALLER = "--min-size 12"
FOUND = 0.2  # IED: maximum mean distance of the anchors of a detected face
LIMITS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)  # bounds of the ranges of probabilities


def small(image, ied):
    """Shrink a photograph so that its first face has the given IED in pixels, unless it is
    smaller."""
    factor = min(1.0, ied / float(image.reference_length[0]))
    moved = {
        "instances": (image.instances + 0.5) * factor - 0.5,
        "landmarks": (image.landmarks + 0.5) * factor - 0.5,
    }
    return replace(image, **moved, ignore=image.ignore * factor, view=partial(shrunk, factor))


def shrunk(factor, pixels):
    """Shrink a photograph by a factor."""
    return cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)


def kinds_of(images, rigid):
    """Return the images of each kind."""
    some = [image for image in images if len(image.instances) == 1]
    made = {"as they are": images}
    for number, image in enumerate(some):
        rng = np.random.default_rng([7, number])
        yaw = np.degrees(pose_of(rigid.fit(image.landmarks[0] @ [1, 1j])[0]).yaw)
        for degrees in (15, 30, 45, 60):
            picture = turned_head(image, rng.choice([-1, 1]) * degrees - yaw, rigid)
            made.setdefault(f"turned to a side by {degrees} degrees", []).append(picture)
        for degrees in (15, 25, 40):
            made.setdefault(f"turned in the picture by {degrees} degrees", []).append(
                rolled(image, rng.choice([-1, 1]) * degrees)
            )
        for name in ("IED 14 to 20 pixels", f"the same, {SMALLER}"):
            made.setdefault(name, []).append(
                small(image, float(np.random.default_rng(number).uniform(14, 20)))
            )
    return made | {
        name: pictures
        for name, pictures in hard_augmentations(images, seed=7).items()
        if name != "rolled"
    }


def judge(image, faces):
    """Return for each annotated face whether it is detected, its anchors within 10% and the error
    of its landmarks; for each reported face, its probability and whether it is correct."""
    rows, places = (
        [],
        [np.array([[p.x, p.y] for p in face.keypoints.values()])[:6] for face in faces],
    )
    far = np.array(
        [
            [np.nanmean(np.hypot(*(place - face[:6]).T)) / ied for place in places]
            for face, ied in zip(image.instances, image.reference_length)
        ]
    )
    for i, (face, ied) in enumerate(zip(image.instances, image.reference_length)):
        best = int(far[i].argmin()) if places else -1
        detected = bool(places) and far[i, best] < FOUND and faces[best].probability >= 0.5
        within = (
            np.hypot(*(places[best] - face[:6]).T) <= 0.1 * ied if detected else np.zeros(6, bool)
        )
        eyes = np.hypot(*(image.landmarks[i, 36] - image.landmarks[i, 45]))
        error = (
            np.hypot(*(faces[best].landmarks - image.landmarks[i]).T).mean() / eyes
            if detected
            else np.nan
        )
        rows.append((detected, within.mean(), error))
    middles = np.array([place.mean(axis=0) for place in places]).reshape(-1, 1, 2)
    x0, y0, x1, y1 = image.ignore.T
    ignored = (
        (middles[..., 0] >= x0)
        & (middles[..., 0] <= x1)
        & (middles[..., 1] >= y0)
        & (middles[..., 1] <= y1)
    ).any(axis=1)
    right = (far < FOUND).any(axis=0) if len(far) else np.zeros(len(places), bool)
    return rows, [
        (face.probability, ok) for face, ok, skip in zip(faces, right, ignored) if not skip
    ]


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="faces")
    parser.add_argument(
        "--shapes", default="faces", help="model whose rigid model is used to rotate the heads"
    )
    parser.add_argument("--background", type=Path, help="photographs without faces")
    parser.add_argument(
        "--skip-background", type=int, default=0, help="number of photographs to skip"
    )
    parser.add_argument("--every", type=int, default=1, help="use every n-th photograph")
    parser.add_argument(
        "--all",
        action="store_true",
        help="use all photographs of the folder, not only the held-out ones",
    )
    parser.add_argument(
        "--kinds", nargs="*", help="evaluate only these kinds, given by prefixes of their names"
    )
    args = parser.parse_args(argv)
    detector, rigid = load_model(args.model), load_model(args.shapes).finder.rigid
    images = [image for image in read_annotations(args.data) if args.all or held_out(image, 0.1)][
        :: args.every
    ]
    print(
        "| kind | faces | found | six anchors within 10% | error of landmarks | false faces | "
        "seconds |\n" + "|---" * 7 + "|"
    )
    reliability = defaultdict(list)
    for name, pictures in kinds_of(images, rigid).items():
        if args.kinds and not name.startswith(tuple(args.kinds)):
            continue
        rows, judged, seconds = [], [], []
        for image in pictures:
            pixels, start = image.pixels(), time.process_time()
            faces = detector.find(
                pixels, min_probability=0.1, min_size=12 if SMALLER in name else None
            ).instances
            seconds.append(time.process_time() - start)
            detected = judge(image, faces)
            rows += detected[0]
            judged += detected[1]
        reliability["as they are" if name == "as they are" else "unlike"] += judged
        detected, within, error = np.array(rows, float).T
        false = sum(not right for p, right in judged if p >= 0.5)
        numbers = f"{detected.mean():.3f} | {within.mean():.3f} | {np.nanmean(error):.4f} | {false} | {np.median(seconds):.3f}"
        print(f"| {name} | {len(rows)} | {numbers} |", flush=True)
    print(
        "\n| probability | "
        + " | ".join(f"{low} to {high}" for low, high in pairwise(LIMITS))
        + " |"
    )
    for name, judged in reliability.items():
        p, right = np.array(judged, float).T
        band = np.digitize(p, LIMITS[1:-1])
        cells = [
            f"{right[band == k].mean():.2f} of {(band == k).sum()}" if (band == k).any() else ""
            for k in range(len(LIMITS) - 1)
        ]
        print(f"| right, {name} | {' | '.join(cells)} |")
    if args.background is not None:
        empty = [read_image(path) for path in list_images(args.background)[args.skip_background :]]
        start = time.process_time()
        n = sum(len(detector.find(pixels).instances) for pixels in empty)
        print(
            f"\n{len(empty)} photographs without faces: "
            f"{n} reported, {(time.process_time() - start) / len(empty):.3f} s each"
        )


if __name__ == "__main__":
    main()
