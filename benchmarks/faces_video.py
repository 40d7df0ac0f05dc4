"""Faces in videos: photographs held out from training, moved, rotated and zoomed over the frames of
a video of 640 x 480.

Each video shows one face. Prints the share of the frames in which it is reported, the mean error of
the six detected keypoints in inter-eye distances, and the processor time per frame, including
reading, for faces tracked from frame to frame and for a search in every frame.

    python benchmarks/faces_video.py --data DATA/faces/train
"""

import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.training.windows.views import held_out
from annealed.pipelines.keypoints.video import detect_video
from annealed.vision.images import read_image
from common import new_parser

SIZE = (640, 480)
RATE = 25.0
NEAR = (
    0.5  # IED: maximum mean distance of the anchors of a reported face from those of the face shown
)


def movement(image, n_frames, rng):
    """Yield transforms (2, 3) from the photograph to the frames: a face of 60 to 110 pixels
    between the eyes sways about the middle."""
    middle = image.instances[0, :6].mean(axis=0)
    scale = rng.uniform(60, 110) / float(image.reference_length[0])
    speed, phase = rng.uniform(0.5, 1.5, 4), rng.uniform(0, 2 * np.pi, 4)
    for frame in range(n_frames):
        x, y, roll, zoom = np.sin(speed * 2 * np.pi * frame / n_frames + phase) * [80, 50, 10, 0.2]
        matrix = cv2.getRotationMatrix2D(tuple(middle.tolist()), roll, scale * np.exp(zoom))
        matrix[:, 2] += [SIZE[0] / 2 + x - middle[0], SIZE[1] / 2 + y - middle[1]]
        yield matrix


def frames_of(image, matrices):
    """Yield the frames of a video."""
    pixels = read_image(image.path)
    for matrix in matrices:
        yield cv2.warpAffine(
            pixels, matrix, SIZE, flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REPLICATE
        )


def followed(detector, path):
    """Return the faces of each frame, and the processor seconds per frame; the first frame, which
    compiles, is not counted."""
    results, start = [], 0.0
    for answer in detect_video(detector, str(path)):
        if not results:
            start = time.process_time()
        results.append(answer.instances)
    return results, (time.process_time() - start) / (len(results) - 1)


def searched(detector, path):
    """Return the same for a search in every frame."""
    capture, results, start = cv2.VideoCapture(str(path)), [], time.process_time()
    while True:
        good, frame = capture.read()
        if not good:
            return results, (time.process_time() - start) / len(results)
        results.append(
            detector.find(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), np.uint8)).instances
        )


def errors_of(results, image, matrices):
    """Return the mean error of the anchors in each frame, in IED, where the face was reported."""
    errors = []
    for faces, matrix in zip(results, matrices, strict=True):
        truth = image.instances[0] @ matrix[:, :2].T + matrix[:, 2]
        ied = np.hypot(*(truth[0] - truth[1]))
        places = [np.array([[p.x, p.y] for p in face.keypoints.values()]) for face in faces]
        distances = [float(np.hypot(*(place - truth)[:6].T).mean() / ied) for place in places]
        if distances and min(distances) < NEAR:
            errors.append(min(distances))
    return errors


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="faces")
    parser.add_argument("--videos", type=int, default=12)
    parser.add_argument("--frames", type=int, default=60)
    args = parser.parse_args(argv)
    cv2.setNumThreads(1)
    detector = load_model(args.model)
    images = [
        image
        for image in read_annotations(args.data)
        if held_out(image, 0.1) and len(image.reference_length) == 1
    ]
    images = [image for image in images if np.isfinite(image.instances).all()][
        :: max(1, len(images) // args.videos)
    ][: args.videos]
    print(
        "| | face reported | mean error | seconds per frame | frames per second "
        "|\n|---|---|---|---|---|"
    )
    rows = {"followed": followed, "searched in every frame": searched}
    shown, errors, seconds = (
        dict.fromkeys(rows, 0),
        {name: [] for name in rows},
        {name: [] for name in rows},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "moved.avi"
        for number, image in enumerate(images):
            matrices = list(movement(image, args.frames, np.random.default_rng(number)))
            write_video(path, frames_of(image, matrices), RATE)
            for name, process in rows.items():
                results, took = process(detector, path)
                error = errors_of(results, image, matrices)
                shown[name] += len(error)
                errors[name] += error
                seconds[name].append(took)
    for name in rows:
        took = float(np.median(seconds[name]))
        share = shown[name] / (len(images) * args.frames)
        slowest = max(seconds[name])
        print(
            f"| {name} | {share:.3f} | {np.mean(errors[name]):.3f} | {took:.3f} (slowest video "
            f"{slowest:.3f}) "
            f"| {1 / took:.0f} ({1 / slowest:.0f}) |"
        )


if __name__ == "__main__":
    main()
