"""Identities and stability of points in videos with known truth: faces of photographs pasted over
an image and moved.

    python benchmarks/faces_persons.py --data DATA/faces/test [--videos 50]

Printed are the identity switches (a face whose number of the person differs from that of its last
detection) in videos in which two faces move, cross, or leave and come back within a second; the
jitter of the points at rest with the filter, relative to that without; the lag at one eye distance
a second, in frames of 25 a second; and how far annotated eyes lie from the template of crops of 112
pixels.
"""

import tempfile
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.face_alignment import EYES
from annealed.models.keypoints.instances.shape_models import SimilarityTransform
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.video import detect_video
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line

SIZE = (640, 480)
RATE = 25.0
IED = 44.0  # of the pasted faces in pixels
NEAR = 0.8  # IED: a reported face this near to a pasted one is that one
KINDS = ("move", "cross", "leave and come back")


class Pasted:
    """The face of a photograph, cut out along an ellipse, to be put anywhere in a frame."""

    def __init__(self, image, ied=IED):
        self.pixels, self.eyes = read_image(image.path), image.instances[0, :2]
        self.middle = image.instances[0, :6].mean(axis=0)
        self.scale = ied / float(image.reference_length[0])
        height, width = self.pixels.shape[:2]
        axes = [round(k * float(image.reference_length[0])) for k in (1.3, 1.8)]
        self.mask = np.zeros((height, width), np.float32)
        cv2.ellipse(self.mask, [round(v) for v in self.middle], axes, 0, 0, 360, 1.0, -1)
        self.mask = cv2.GaussianBlur(self.mask, (0, 0), 0.08 * float(image.reference_length[0]))

    def put(self, frame, x, y):
        """Paste the face centred at (x, y)."""
        matrix = np.array(
            [
                [self.scale, 0, x - self.scale * self.middle[0]],
                [0, self.scale, y - self.scale * self.middle[1]],
            ]
        )
        pixels = cv2.warpAffine(self.pixels, matrix, SIZE, flags=cv2.INTER_AREA)
        mask = cv2.warpAffine(self.mask, matrix, SIZE, flags=cv2.INTER_AREA)[..., None]
        return np.round(frame * (1 - mask) + pixels * mask).astype(np.uint8)


def paths_of(kind, n_frames, rng):
    """Centres of two faces in each frame; NaN where one is not shown."""
    t = np.linspace(0, 1, n_frames)[:, None]
    starts = np.array([[150.0, 200.0], [490.0, 250.0]]) + rng.uniform(-30, 30, (2, 2))
    ends = starts + rng.uniform(-70, 70, (2, 2))
    if kind == "cross":
        ends = starts[::-1] + rng.uniform(-15, 15, (2, 2))
    paths = [start + t * (end - start) for start, end in zip(starts, ends, strict=True)]
    if kind == "leave and come back":
        first = int(rng.integers(15, 25))
        paths[1][first : first + int(rng.integers(8, 18))] = np.nan
    return np.stack(paths, axis=1)


def frames_of(pasted, paths, picture, rng, noise=2.0):
    for places in paths:
        frame = picture
        for face, (x, y) in zip(pasted, places, strict=True):
            frame = frame if np.isnan(x) else face.put(frame, x, y)
        yield np.clip(frame + noise * rng.normal(size=frame.shape), 0, 255).astype(np.uint8)


def switches(results, paths):
    """Identity switches, detections of the pasted faces, and number of shown faces."""
    last, n_switches, n_found = {}, 0, 0
    for result, places in zip(results, paths, strict=True):
        left = list(result.instances)
        for who in reversed(range(len(places))):  # the one in front first: it may occlude the other
            distances = [float(np.hypot(*(_middle(face) - places[who]))) / IED for face in left]
            if distances and min(distances) < NEAR:
                person = left.pop(int(np.argmin(distances))).person
                n_switches += last.get(who, person) != person
                last[who], n_found = person, n_found + 1
    return n_switches, n_found, int(np.isfinite(paths[..., 0]).sum())


def _middle(face):
    return np.mean([[p.x, p.y] for p in list(face.keypoints.values())[:6]], axis=0)


def points_of(results):
    """Landmarks (F, n, 2) of the best face; None where a frame has none."""
    results = list(results)
    return (
        np.array([result.instances[0].landmarks for result in results])
        if all(result.instances for result in results)
        else None
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--videos", type=int, default=50)
    parser.add_argument("--frames", type=int, default=60)
    args = parser.parse_args(argv)
    cv2.setNumThreads(1)
    detector = load_model("faces")
    images = [
        im
        for im in read_annotations(args.data)
        if len(im.reference_length) == 1
        and np.isfinite(im.instances).all()
        and im.reference_length[0] > IED / 2
    ]
    pictures = [
        cv2.resize(read_image(path), SIZE)
        for path in list_images(args.data.parent / "background")[-20:]
    ]
    print_head("kind", "videos", "identity switches", "faces reported")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.avi"
        for k, kind in enumerate(KINDS):
            numbers = range(k, args.videos, len(KINDS))
            counts = np.zeros(3, int)
            for number in numbers:
                rng = np.random.default_rng(number)
                pasted = [Pasted(images[i]) for i in rng.choice(len(images), 2, replace=False)]
                paths = paths_of(kind, args.frames, rng)
                write_video(
                    path, frames_of(pasted, paths, pictures[number % len(pictures)], rng), RATE
                )
                counts += switches(detect_video(detector, str(path)), paths)
            print_line(kind, len(numbers), counts[0], f"{counts[1] / counts[2]:.3f}")
        still_points(detector, images, pictures[0], path)
    crops(detector, images[:: max(1, len(images) // 40)])


def still_points(detector, images, picture, path, n_videos=10, n_frames=50):
    trembling, lags = [], []
    rest = np.tile([[[320.3, 240.6]]], (n_frames, 1, 1))
    moving = rest + np.arange(n_frames)[:, None, None] * [IED / RATE, 0] - [44, 0]
    for number, image in enumerate(images[:: max(1, len(images) // n_videos)][:n_videos]):
        for paths in (rest, moving):
            write_video(
                path,
                frames_of([Pasted(image)], paths, picture, np.random.default_rng(number)),
                RATE,
            )
            raw, still = (
                points_of(detect_video(detector, str(path), smooth=smooth))
                for smooth in ("off", "auto")
            )
            if raw is None or still is None:
                continue
            raw, still = raw[20:], still[20:]
            if paths is rest:
                trembling.append(still.std(axis=0).mean() / raw.std(axis=0).mean())
            else:
                lags.append((raw - still)[..., 0].mean() / (IED / RATE))
    print(
        f"trembling at rest: median {np.median(trembling):.2f}, largest {max(trembling):.2f} of "
        f"unfiltered ({len(trembling)})"
    )
    print(
        "lag at one eye distance a second: "
        f"median {np.median(lags):.2f}, largest {max(lags):.2f} frames ({len(lags)})"
    )


def crops(detector, images, size=112):
    template = np.array([complex(*EYES[name]) for name in ("left_eye", "right_eye")]) * size - (
        0.5 + 0.5j
    )
    errors = []
    for image in images:
        truth = image.instances[0, :2] @ [1, 1j]
        for face in detector.find(read_image(image.path)).instances:
            eyes = np.array(
                [
                    complex(face.keypoints[name].x, face.keypoints[name].y)
                    for name in ("left_eye", "right_eye")
                ]
            )
            if abs(eyes - truth).max() < 0.5 * image.reference_length[0]:
                errors.extend(
                    abs(
                        SimilarityTransform.least_squares(eyes, template).to_image(truth) - template
                    )
                )
    low, high = np.percentile(errors, [50, 90])
    print(
        f"annotated eyes in crops of {size} pixels: "
        f"median {low:.2f}, 90 % within {high:.2f} pixels of the template"
    )


if __name__ == "__main__":
    main()
