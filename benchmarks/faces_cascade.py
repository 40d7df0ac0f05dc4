"""Face cascades: faces that no local maximum is near, maxima left in photographs without faces, and
processor time of the search, for the one node of a model, the first of two, and two.

    python benchmarks/faces_cascade.py --data DATA/faces/test --model TWO.safetensors
        [--one ONE.safetensors] [--background DATA/faces/background --skip-background 140]
        [--every 4]

Views are those of `faces_views.py`: the photographs, and copies that are rotated, dim, unevenly
lit, blurred, partly covered. Each number is the share of the faces lost.
"""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.windows.object_search import ObjectSearch
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.training.synthetic_views import hard_augmentations
from annealed.pipelines.keypoints.training.windows.second_node import is_near
from annealed.pipelines.keypoints.training.windows.views import FACE, open_view
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line, timed


def searches_of(one, two):
    """Search of local maxima, and the reference length on their levels, by name."""

    def search(detector, **more):
        parts = detector.pool, detector.reference_length, detector.scales_per_octave
        cascade = detector.face_cascade
        if cascade.second is None:  # its threshold is not part of the search
            cascade = replace(cascade, classifier=replace(cascade.classifier, threshold=-np.inf))
        return ObjectSearch(cascade, *parts, **more)

    sparse, coarser = search(two), two.face_cascade.coarser
    length = two.reference_length
    return {
        "one node, all windows": (search(one, step=1).first_maxima, length * coarser),
        "first of two nodes, sparse grid": (sparse.first_maxima, length * coarser),
        "two nodes": (sparse.find, length),
    }


def main(argv=None):
    """Print the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True, help="model with two nodes")
    parser.add_argument("--one", default="faces", help="model with one node")
    parser.add_argument("--background", type=Path, help="photographs without faces")
    parser.add_argument("--skip-background", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="use every n-th photograph")
    args = parser.parse_args(argv)
    cv2.setNumThreads(1)
    one, two = load_model(args.one), load_model(args.model)
    images = read_annotations(args.data)[:: args.every]
    kinds = {"as they are": images} | hard_augmentations(images, seed=7)
    empty = list_images(args.background)[args.skip_background :] if args.background else []
    print_head("search", *kinds, "maxima per photograph without faces", "seconds there")
    for name, (search, length) in searches_of(one, two).items():
        lost = []
        for pictures in kinds.values():
            near = [np.empty(0, bool)]
            for image in pictures:
                view = open_view(image, FACE, False)
                rows = search(two.search.pyramid(view.pixels))
                near.append(is_near(view, rows, length).any(axis=0)[view.visible])
            lost.append(1 - np.concatenate(near).mean())
        levels = [two.search.pyramid(read_image(path)) for path in empty]
        rows, seconds = timed(lambda: [len(search(some)) for some in levels])  # noqa: B023
        more = (f"{np.mean(rows):.1f}", f"{seconds / len(empty):.4f}") if empty else ("", "")
        print_line(name, *(f"{share:.3f}" for share in lost), *more)


if __name__ == "__main__":
    main()
