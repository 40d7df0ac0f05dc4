"""Ablation of the parts of whole faces: average precision of their positions and scores on
photographs held out from training.

Also the median errors of assembled and of refined shapes, across and along the face.

python benchmarks/faces_parts.py --data faces/train            # the tenth that calibrates
python benchmarks/faces_parts.py --data faces/test --all       # every photograph of a folder
"""

from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.detections import DetectionOptions
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.pipelines.keypoints.measures import judge, pooled
from annealed.pipelines.keypoints.training.windows.views import held_out
from annealed.vision.images import read_image
from common import new_parser

PAIRS = {"eyes": (0, 1), "nose": (2, 3), "mouth": (4, 5), "ears": (6, 7), "chin": (8,)}
PRUNED = 0.5  # IED: Barbu et al. (2017), section 3.3.1


def own_detections(candidates, n):
    """Return the candidates alone: positions and scores of each keypoint."""
    return [
        (candidates.position[candidates.anchor == i], candidates.log_odds[candidates.anchor == i])
        for i in range(n)
    ]


def pruned(candidates, hypotheses, n):
    """Return the candidates within half an IED of an assembled face, with their own scores."""
    kept = []
    for i in range(n):
        mine = candidates.anchor == i
        place, score = candidates.position[mine], candidates.log_odds[mine]
        near = np.zeros(len(place), bool)
        for face in hypotheses:
            near |= abs(place - face.points[i]) <= PRUNED * face.reference_length
        kept.append((place[near], score[near]))
    return kept


def joint(candidates, hypotheses, n):
    """Return the candidates of assembled faces, with the faces' scores."""
    kept = [([], []) for _ in range(n)]
    for face in hypotheses:
        for row in face.rows:
            kept[candidates.anchor[row]][0].append(candidates.position[row])
            kept[candidates.anchor[row]][1].append(face.score)
    return kept


def completed(finder, hypotheses):
    """Return all keypoints of assembled faces as completed by the shape model."""
    n, matrix = len(finder.anchors), finder.regressor.to_keypoints
    places = np.array(
        [np.append(face.points[:n], (matrix @ face.points[n:])[n:]) for face in hypotheses]
    ).reshape(-1, len(matrix))
    scores = np.array([face.score for face in hypotheses])
    return [(places[:, k], scores) for k in range(len(matrix))]


def refined(finder, faces):
    """Return the refined keypoints, without detections."""
    places = np.array(
        [finder.regressor.to_keypoints @ (face.landmarks @ [1, 1j]) for face in faces]
    ).reshape(-1, len(KEYPOINTS))
    return [
        (places[:, k], [face.keypoints[name].probability for face in faces])
        for k, name in enumerate(KEYPOINTS)
    ]


def reported(faces):
    """Return the detector's output."""
    return [
        (
            [complex(f.keypoints[name].x, f.keypoints[name].y) for f in faces],
            [f.keypoints[name].probability for f in faces],
        )
        for name in KEYPOINTS
    ]


class Scores:
    """Evaluated detections of named rows, photograph by photograph."""

    def __init__(self):
        self._judged = {}

    def add(self, name, image, row):
        """Add the detections of a photograph: positions (complex) and scores of each keypoint, for
        the anchors alone or for all keypoints."""
        for k, (place, score) in enumerate(row):
            place = np.asarray(place, complex)
            xy = np.stack([place.real, place.imag], axis=1)
            for tolerance in (0.05, 0.1):
                one = judge(
                    xy,
                    score,
                    image.instances[:, k],
                    image.visible[:, k],
                    image.reference_length,
                    image.ignore,
                    tolerance,
                )
                self._judged.setdefault((name, k, tolerance), []).append(one)

    def cells(self, name):
        """Return the average precision at 5% / 10% of each pair of keypoints, as text."""
        cells = []
        for pair in PAIRS.values():
            if (name, pair[0], 0.05) not in self._judged:
                cells.append("-")
                continue
            fine, coarse = (
                np.mean([pooled(self._judged[name, k, tolerance]).average_precision for k in pair])
                for tolerance in (0.05, 0.1)
            )
            cells.append(f"{fine:.3f} / {coarse:.3f}")
        return cells


def errors_in_frame(finder, image, shapes):
    """Return the errors (m, n_keypoints) of the shape nearest to each annotated face, in IED,
    complex with x across the upright face."""
    matrix, rows = finder.regressor.to_keypoints, []
    for face, ied in zip(image.instances @ [1, 1j], image.reference_length, strict=True):
        near = [abs(matrix @ points - face)[:6].mean() for points in shapes]
        if near and min(near) < 0.35 * ied:
            turn = finder.regressor.align(shapes[int(np.argmin(near))]).scale_rotation
            rows.append((matrix @ shapes[int(np.argmin(near))] - face) / ied * abs(turn) / turn)
    return rows


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="faces")
    parser.add_argument(
        "--all", action="store_true", help="evaluate every photograph, not only the held-out tenth"
    )
    options = parser.parse_args(argv)
    detector = load_model(options.model)
    finder, unit = detector.finder, detector.reference_length
    n, mode = (
        len(finder.anchors),
        detector.resolve(DetectionOptions(finder.anchors, assembly="none")).mode,
    )
    images = [
        image for image in read_annotations(options.data) if options.all or held_out(image, 0.1)
    ]
    scores, errors = Scores(), {"2-D assembly": [], "refined": []}
    for image in images:
        levels = detector.search.pyramid(read_image(image.path))
        maxima = detector.anchor_maxima(levels, finder.anchors, mode)
        candidates = finder.assembler.candidates(maxima, unit)
        flat, space = (finder.assembler.assemble(candidates, assembly) for assembly in ("2d", "3d"))
        faces = finder.find(maxima, levels, unit, 0.0).instances
        rows = {
            "detectors alone": own_detections(candidates, n),
            "pruned by the 3-D pose": pruned(
                candidates, [face for face in space if face.score >= finder.min_support], n
            ),
            "joint scores": joint(candidates, flat, n),
            "3-D assembly": completed(finder, space),
            "2-D assembly": completed(finder, flat),
            "refined": refined(finder, faces),
            "refined and own detections": reported(faces),
            "from the 3-D assembly": reported(
                finder.find(maxima, levels, unit, 0.0, "3d").instances
            ),
        }
        for name, row in rows.items():
            scores.add(name, image, row)
        errors["2-D assembly"] += errors_in_frame(finder, image, [face.points[n:] for face in flat])
        errors["refined"] += errors_in_frame(
            finder, image, [face.landmarks @ [1, 1j] for face in faces]
        )
    print(
        f"AP at 5% / 10% of the IED, {len(images)} photographs\n\n| | "
        + " | ".join(PAIRS)
        + " |\n|---|"
        + "---|" * len(PAIRS)
    )
    for name in rows:
        print(f"| {name} | " + " | ".join(scores.cells(name)) + " |")
    print("\nMedian error across and along the upright face, IED\n")
    for name, candidates in errors.items():
        one = [np.array(candidates)[:, list(pair)] for pair in PAIRS.values()]
        cells = [f"{np.nanmedian(abs(e.real)):.3f}, {np.nanmedian(abs(e.imag)):.3f}" for e in one]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
