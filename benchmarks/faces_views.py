"""Turned and small faces: photographs kept back from training, turned in the picture, and shrunk,
at several ``--min-size``.

Printed are the share of the faces that are found by default, the average precision at 5% / 10% of
the inter-eye distance (IED), and the median of the processor time per photograph. Small faces: of
all candidates. Turned faces: of what is reported by default, without and with the search of turned
photographs; also the faces reported in photographs that show none.

    python benchmarks/faces_views.py --data DATA/faces/train --background DATA/faces/background
    --skip-background 140
"""

import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.faces.data import read_faces
from annealed.pipelines.faces.training.views import held_out
from annealed.vision.images import read_image
from common import new_parser
from faces_parts import PAIRS, Scores, reported

NOTHING = np.zeros((0, 4))
FOUND = 0.2  # IED: mean distance of the anchors


def shrunk(image, pixels, ied):
    """The photograph with its first face at that IED in pixels, unless it is smaller."""
    factor = min(1.0, ied / float(image.ied[0]))
    small = cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    return replace(image, faces=(image.faces + 0.5) * factor - 0.5, ignore=NOTHING), small


def turned(image, pixels, degrees):
    """The photograph turned about its middle, nothing cut off."""
    height, width = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    cosine, sine = abs(matrix[0, :2])
    size = (int(height * sine + width * cosine) + 1, int(height * cosine + width * sine) + 1)
    matrix[:, 2] += [(size[0] - width) / 2, (size[1] - height) / 2]
    shown = cv2.warpAffine(pixels, matrix, size, borderMode=cv2.BORDER_REPLICATE)
    return replace(image, faces=image.faces @ matrix[:, :2].T + matrix[:, 2]), shown


def n_found(image, faces):
    """Annotated faces that a reported one agrees with."""
    places = [np.array([[p.x, p.y] for p in face.keypoints.values()])[:6] for face in faces if face.probability >= 0.5]
    near = [
        [np.nanmean(np.hypot(*(place - face[:6]).T)) < FOUND * ied for place in places] for face, ied in zip(image.faces, image.ied)
    ]
    return sum(any(row) for row in near)


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="faces")
    parser.add_argument("--background", type=Path, help="photographs without faces")
    parser.add_argument("--skip-background", type=int, default=0, help="leave out the first ones")
    parser.add_argument("--every", type=int, default=1, help="take every so-many-th photograph")
    parser.add_argument("--degrees", type=float, nargs="*", default=[0, 15, 25, 40])
    parser.add_argument("--rolls", type=float, nargs="*", default=[0, 30])
    parser.add_argument("--min-sizes", type=float, nargs="*", default=[24, 17, 12])
    args = parser.parse_args(argv)
    detector = load_model(args.model)
    images = [image for image in read_faces(args.data) if held_out(image, 0.1)][:: args.every]
    scores, seconds, found, total = Scores(), {}, {}, sum(len(image.ied) for image in images)

    def judge(name, image, pixels, **options):
        start = time.process_time()
        faces = detector.find(pixels, **options).faces
        seconds.setdefault(name, []).append(time.process_time() - start)
        found[name] = found.get(name, 0) + n_found(image, faces)
        scores.add(name, image, reported(faces))

    for number, image in enumerate(images):
        pixels = read_image(image.path)
        for degrees in args.degrees:
            for roll in args.rolls:
                judge(
                    f"IED to 60, turned by {degrees:g} degrees, --roll {roll:g}",
                    *turned(*shrunk(image, pixels, 60.0), degrees),
                    roll=roll,
                )
        ied = float(np.exp(np.random.default_rng(number).uniform(*np.log([12, 20]))))
        for min_size in args.min_sizes:
            everything = {"min_size": min_size, "min_probability": 0.0}
            judge(f"IED to 100, --min-size {min_size:g}", *shrunk(image, pixels, 100.0), **everything)
            judge(f"IED 12 to 20, --min-size {min_size:g}", *shrunk(image, pixels, ied), **everything)
    print(
        f"{len(images)} photographs, {total} faces\n\n| | found | "
        + " | ".join(PAIRS)
        + " | seconds |\n"
        + "|---" * (3 + len(PAIRS))
        + "|"
    )
    for name in sorted(found):
        cells = " | ".join(scores.cells(name))
        print(f"| {name} | {found[name] / total:.2f} | {cells} | {np.median(seconds[name]):.3f} |")
    if args.background is not None:
        empty = [read_image(path) for path in list_images(args.background)[args.skip_background :]]
        for roll in args.rolls:
            start = time.process_time()
            n = sum(len(detector.find(pixels, roll=roll).faces) for pixels in empty)
            mean = (time.process_time() - start) / len(empty)
            print(f"{len(empty)} photographs without faces, --roll {roll:g}: {n} faces reported, {mean:.3f} s per photograph")


if __name__ == "__main__":
    main()
