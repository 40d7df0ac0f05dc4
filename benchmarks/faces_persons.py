"""Identities in videos with known truth: faces of photographs pasted over an image and moved.

    python benchmarks/faces_persons.py --data DATA/faces/test [--videos 50]

Prints the number of identity switches (a face whose person number differs from that of its previous
detection) and of spare numbers in videos in which two faces move, cross, or leave and return within
a second, and in which three cross; the number of person numbers assigned to ten persons who follow
each other over 20 cuts in one place; how often another face in the same place 0.4 seconds later
keeps the number; how often a face elsewhere, two seconds later, is assigned the number of the same
person in another view, and that of another person; and how far annotated eyes lie from the template
in crops of 112 pixels.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.face_alignment import EYES
from annealed.models.keypoints.instances.shape_models import SimilarityTransform
from annealed.models.keypoints.instances.tracker import PersonTracker
from annealed.models.keypoints.windows.turned_photographs import turned
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.training.synthetic_views import turned_head
from annealed.pipelines.keypoints.video import detect_video
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line

SIZE = (640, 480)
RATE = 25.0
IED = 44.0  # IED of the pasted faces in pixels
FAR = (200.0, 0.0)  # pixels between the first and the second place of a person
NEAR = 0.8  # IED: maximum distance of a reported face from the pasted face that it matches
KINDS = ("move", "cross", "leave and come back", "three cross")


class Pasted:
    """The face of a photograph, cut out along an ellipse, to be pasted anywhere in a frame."""

    def __init__(self, image, ied=IED):
        self.pixels, self.eyes = read_image(image.path), image.instances[0, :2]
        self.middle = image.instances[0, :6].mean(axis=0)
        self.ied = float(image.reference_length[0])
        self.scale = ied / self.ied
        height, width = self.pixels.shape[:2]
        axes = [round(k * self.ied) for k in (1.3, 1.8)]
        self.mask = np.zeros((height, width), np.float32)
        cv2.ellipse(self.mask, [round(v) for v in self.middle], axes, 0, 0, 360, 1.0, -1)
        self.mask = cv2.GaussianBlur(self.mask, (0, 0), 0.08 * self.ied)

    def put(self, frame, x, y):
        """Paste the face centred at (x, y)."""
        half = round(2.1 * self.scale * self.ied)  # more than the mask
        low = np.maximum([int(x) - half, int(y) - half], 0)
        high = np.minimum([int(x) + half, int(y) + half], SIZE)
        shift = np.array([x, y]) - low - self.scale * self.middle
        matrix = np.column_stack([self.scale * np.eye(2), shift])
        size = tuple((high - low).tolist())
        pixels = cv2.warpAffine(self.pixels, matrix, size, flags=cv2.INTER_AREA)
        mask = cv2.warpAffine(self.mask, matrix, size, flags=cv2.INTER_AREA)[..., None]
        frame = frame.copy()
        part = frame[low[1] : high[1], low[0] : high[0]]
        part[:] = np.round(part * (1 - mask) + pixels * mask)
        return frame


def paths_of(kind, n_frames, rng):
    """Return the centres of two or three faces in each frame; NaN where one is not shown."""
    t = np.linspace(0, 1, n_frames)[:, None]
    starts = np.array([[150.0, 200.0], [490.0, 250.0]]) + rng.uniform(-30, 30, (2, 2))
    ends = starts + rng.uniform(-70, 70, (2, 2))
    if kind in ("cross", "three cross"):
        ends = starts[::-1] + rng.uniform(-15, 15, (2, 2))
    if kind == "three cross":
        starts = np.append(starts, [[320.0 + rng.uniform(-60, 60), 110.0]], axis=0)
        ends = np.append(ends, [[320.0 + rng.uniform(-60, 60), 370.0]], axis=0)
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
    """Count the identity switches, the detections of the pasted faces, and the faces shown."""
    last, n_switches, n_found = {}, 0, 0
    for result, places in zip(results, paths, strict=True):
        left = list(result.instances)
        for who in reversed(
            range(len(places))
        ):  # the face in front first: it may occlude the other
            distances = [float(np.hypot(*(_middle(face) - places[who]))) / IED for face in left]
            if distances and min(distances) < NEAR:
                person = left.pop(int(np.argmin(distances))).person
                n_switches += last.get(who, person) != person
                last[who], n_found = person, n_found + 1
    return n_switches, n_found, int(np.isfinite(paths[..., 0]).sum())


def _middle(face):
    return np.mean([[p.x, p.y] for p in list(face.keypoints.values())[:6]], axis=0)


def cuts(detector, images, pictures, path, n_persons=10, n_scenes=20, n_frames=12):
    """Count the persons who follow each other in one place, before different backgrounds, and have
    a number of their own; and count the numbers."""
    rng, pasted = np.random.default_rng(0), []
    for image in images:  # images whose face is detected with high probability
        face = Pasted(image)
        found = detector.find(face.put(pictures[0], 320.0, 240.0), roll=0.0).instances
        if found and found[0].probability > 0.9:
            pasted.append(face)
        if len(pasted) == n_persons:
            break
    who = np.concatenate([rng.permutation(n_persons) for _ in range(n_scenes // n_persons)])
    rest = np.tile([[[320.0, 240.0]]], (n_frames, 1, 1))

    def frames():
        for scene, person in enumerate(who):
            yield from frames_of([pasted[person]], rest, pictures[scene % len(pictures)], rng)

    write_video(path, frames(), RATE)
    numbers = [{face.person for face in r.instances} for r in detect_video(detector, str(path))]
    seen = {
        person: set().union(
            *(numbers[i] for i in range(len(numbers)) if who[i // n_frames] == person)
        )
        for person in range(n_persons)
    }
    alone = sum(
        len(mine) == 1 and not any(mine & other for k, other in seen.items() if k != person)
        for person, mine in seen.items()
    )
    return alone, len(set().union(*numbers))


def views_of(detector, images):
    """Return the faces detected in photographs, and in copies with another pose, size or light."""
    rigid = detector.finder.rigid
    kinds = {
        "as it is": lambda image: image.pixels(),
        "smaller": lambda image: cv2.resize(image.pixels(), None, fx=0.7, fy=0.7),
        "blurred": lambda image: cv2.GaussianBlur(image.pixels(), (0, 0), 1.5),
        "dim": lambda image: np.round(255 * (image.pixels() / 255) ** 1.6 * 0.7).astype(np.uint8),
        "rolled by 10": lambda image: turned(image.pixels(), 10.0),
        **{
            f"turned by {degrees}": lambda image, degrees=degrees: turned_head(
                image, degrees, rigid
            ).pixels()
            for degrees in (8, 15, 25)
        },
    }
    views = {kind: {} for kind in kinds}
    for number, image in enumerate(images):
        small = turned_head(image, 0.0, rigid)
        for kind, pixels_of in kinds.items():
            pixels = pixels_of(image if kind.startswith("turned") else small)
            faces = detector.find(np.ascontiguousarray(pixels), roll=0.0).instances
            if faces:
                middle = (np.array(pixels.shape[1::-1]) - 1) / 2
                views[kind][number] = min(faces, key=lambda f: np.hypot(*(_middle(f) - middle)))
    return views


def keeps_number(first, second, seconds, away=(0.0, 0.0)):
    """Return whether a second face, with the place and size of the first, is assigned its
    number."""
    tracker = PersonTracker()
    scale = first.reference_length / second.reference_length
    place = first.landmarks.mean(axis=0) + away
    landmarks = (second.landmarks - second.landmarks.mean(axis=0)) * scale + place
    second = replace(second, landmarks=landmarks, reference_length=first.reference_length)
    tracker.update([first], 0.0)
    return tracker.update([second], seconds)[0].person == 1


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--videos", type=int, default=50)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--photographs", type=int, default=100)
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
    print_head("kind", "videos", "identity switches", "spare numbers", "faces reported")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.avi"
        for k, kind in enumerate(KINDS):
            numbers = range(k, args.videos, 3)
            counts = np.zeros(4, int)
            for number in numbers:
                rng = np.random.default_rng(number)
                n_faces = 3 if kind == "three cross" else 2
                chosen = rng.choice(len(images), n_faces, replace=False)
                pasted = [Pasted(images[i]) for i in chosen]
                paths = paths_of(kind, args.frames, rng)
                write_video(
                    path, frames_of(pasted, paths, pictures[number % len(pictures)], rng), RATE
                )
                results = list(detect_video(detector, str(path)))
                n_numbers = len({face.person for r in results for face in r.instances})
                counts += (*switches(results, paths), max(0, n_numbers - n_faces))
            reported = f"{counts[1] / counts[2]:.3f}"
            print_line(kind, len(numbers), counts[0], counts[3], reported)
        alone, n_numbers = cuts(detector, images, pictures, path)
    print(f"ten persons over 20 cuts: {alone} have a unique number; {n_numbers} numbers in total")
    views = views_of(detector, images[: args.photographs])
    plain = list(views["as it is"].items())
    rng = np.random.default_rng(0)
    pairs = [rng.choice(len(plain), 2, replace=False) for _ in range(256)]
    kept = sum(keeps_number(plain[i][1], plain[j][1], 0.4) for i, j in pairs)
    print(
        f"another face at the same position 0.4 seconds later: {kept} of 256 keep the number of "
        "the first face"
    )
    print_head("elsewhere, after two seconds", "same person", "another person")
    for kind, faces in views.items():
        same = [keeps_number(face, faces[k], 2.0, FAR) for k, face in plain if k in faces]
        other = [
            keeps_number(face, faces[k], 2.0, FAR)
            for face, k in zip(
                [plain[i][1] for i, _ in pairs], [plain[j][0] for _, j in pairs], strict=True
            )
            if k in faces
        ]
        print_line(kind, f"{sum(same)} of {len(same)}", f"{sum(other)} of {len(other)}")
    crops(detector, images[:: max(1, len(images) // 40)])


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
