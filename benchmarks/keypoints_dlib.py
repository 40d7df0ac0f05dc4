"""Detectors of rendered objects and of heads of pets, ours and dlib's (HOG detector and shape
predictor), trained on the same images: detected objects, PCK at 0.1 of the box's size, AP by OKS of
the reported objects, number of false objects, and seconds of one core.

    pip install dlib-bin
    OMP_NUM_THREADS=1 python benchmarks/keypoints_dlib.py FOLDER [--kinds mug screw gear dial heads]
        [--train 120] [--test 60] [--test-seed 0] [--data DATA] [--photographs]
        [--detectors annealed dlib]

With --photographs, images have 320 x 240 pixels, objects of 60 to 170 pixels of which three of ten
are partly covered, and the photographs of DATA/faces/background, different ones in training and
test, as backgrounds. Images, models and the rows of the table are stored in FOLDER, so that a
second run resumes. dlib's oversampling, tree depth and regularisation are chosen on a fifth of the
training images. Where objects have mirror pairs, both detectors also learn from mirrored copies.
Heads require DATA, with pets/images and faces/background; `data/pet_heads.json` lists the
photographs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from annealed.models.keypoints.detector import KeypointDetector
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import schema_of
from annealed.pipelines.keypoints.measures import oks_rows, score
from annealed.pipelines.keypoints.objects import read_objects
from annealed.pipelines.keypoints.training.train import train_keypoints
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line

RENDER = Path(__file__).resolve().parents[1] / "examples" / "rendered_objects.py"
HEADS = Path(__file__).resolve().parent / "data" / "pet_heads.json"
COLUMNS = {
    "object": "{}",
    "detector": "{}",
    "detected": "{:.3f}",
    "PCK": "{:.3f}",
    "PCK by point": "{}",
    "AP": "{:.3f}",
    "false positives per image": "{:.3f}",
    "false positives per background image": "{:.3f}",
    "training time, s": "{:.0f}",
    "detection time per image, s": "{:.3f}",
}
#: Values of nu, tree depth and oversampling that are tried for dlib's shape predictor.
DLIB_SETTINGS = ((0.1, 4, 50), (0.05, 2, 300), (0.1, 3, 100))


def copy_heads(data, folder, part):
    """Write one part of the annotated heads to a folder like those of rendered objects."""
    coco = json.loads(HEADS.read_text(encoding="utf-8"))
    (folder / "background").mkdir(parents=True)
    images = [image for image in coco["images"] if image["split"] == part]
    for image in images:
        shutil.copy(data / "pets" / "images" / image["file_name"], folder)
    for name in coco["info"]["background"][part]:
        shutil.copy(data / "faces" / "background" / name, folder / "background")
    ids = {image["id"] for image in images}
    annotations = [entry for entry in coco["annotations"] if entry["image_id"] in ids]
    (folder / "annotations.json").write_text(
        json.dumps({**coco, "images": images, "annotations": annotations}), encoding="utf-8"
    )


def dlib_parts(image, dlib):
    """Return the boxes and points of the objects in an image in dlib's format."""
    parts = []
    for points, box in zip(image.instances, image.boxes):
        around = dlib.rectangle(*(round(v) for v in box))
        parts.append(
            dlib.full_object_detection(around, [dlib.point(round(x), round(y)) for x, y in points])
        )
    return parts


def train_dlib(images, dlib):
    """Train dlib's detector and shape predictor; return a function that returns the points and the
    scores of the objects in an image."""
    pixels, parts = [], []
    for image in images:
        picture = read_image(image.path)
        pixels.append(picture)
        parts.append(dlib_parts(image, dlib))
        if image.schema.mirrored:
            pixels.append(np.ascontiguousarray(picture[:, ::-1]))
            parts.append(dlib_parts(image.mirrored(picture.shape[1]), dlib))
    options = dlib.simple_object_detector_training_options()
    options.C, options.num_threads, options.add_left_right_image_flips, options.be_verbose = (
        5,
        1,
        False,
        False,
    )
    detector = dlib.train_simple_object_detector(
        pixels, [[part.rect for part in some] for some in parts], options
    )
    with tempfile.TemporaryDirectory() as folder:  # only a loaded detector returns scores
        detector.save(f"{folder}/detector.svm")
        detector = dlib.fhog_object_detector(f"{folder}/detector.svm")

    def predictor(chosen, nu, depth, oversampling):
        shape = dlib.shape_predictor_training_options()
        shape.nu, shape.tree_depth, shape.oversampling_amount = nu, depth, oversampling
        shape.num_threads, shape.be_verbose = 1, False
        return dlib.train_shape_predictor(
            [pixels[i] for i in chosen], [parts[i] for i in chosen], shape
        )

    copies = len(pixels) // len(images)
    last = [i for i in range(len(pixels)) if i // copies % 5 == 0]
    first = [i for i in range(len(pixels)) if i // copies % 5]
    errors = [
        dlib.test_shape_predictor(
            [pixels[i] for i in last], [parts[i] for i in last], predictor(first, *settings)
        )
        for settings in DLIB_SETTINGS
    ]
    best = predictor(range(len(pixels)), *DLIB_SETTINGS[int(np.argmin(errors))])

    def find(picture):
        boxes, scores, _ = detector.run(picture, 1)
        shapes = [best(picture, box) for box in boxes]
        return [np.array([[p.x, p.y] for p in shape.parts()], float) for shape in shapes], scores

    return find


def train_ours(folder, images, background):
    """Train our detector; return a function that returns the points and the probabilities of the
    objects in an image."""
    made, clock = folder / "ours.safetensors", time.process_time()
    if not made.exists():
        train_keypoints(
            images, background, made, resume=(folder / "ours.safetensors.checkpoint").exists()
        )
        (folder / "ours.seconds").write_text(str(time.process_time() - clock))
    detector, names = KeypointDetector.load(made), images[0].schema.keypoints

    def find(picture):
        instances = detector.find(picture).instances
        points = [np.array([one.keypoints[n][:2] for n in names]) for one in instances]
        return points, [one.probability for one in instances]

    return find


def row_of(kind, name, train, parts, folder):
    """Return the row of the table for one detector of one kind of object; it is stored in the
    folder of the kind."""
    stored = folder / kind / f"{name}.json"
    if stored.exists():
        return json.loads(stored.read_text())
    start = time.process_time()
    find = train()
    seconds = time.process_time() - start
    if name == "annealed":
        seconds = float((folder / kind / "ours.seconds").read_text())
    images, empty = parts["test"]
    find(read_image(images[0].path))
    start = time.process_time()
    results = [find(read_image(path)) for path in [*(image.path for image in images), *empty]]
    each = (time.process_time() - start) / len(results)
    points, scores = zip(*results, strict=True)
    n = len(images)
    *rows, whole = score(images, points[:n], points[n:])
    row = [
        *(kind, name, whole["detected"], whole["pck"]),
        ", ".join(f"{row['keypoint']} {row['pck']:.3f}" for row in rows),
        oks_rows(images, points[:n], scores[:n])[-1]["ap"],
        *(whole["false_per_image"], whole["false_per_background_image"], seconds, each),
    ]
    stored.write_text(json.dumps(row))
    return row


def main(argv=None):
    """Render, train, and print a table."""
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", nargs="+", default=["mug", "screw", "gear", "dial"])
    parser.add_argument("--train", type=int, default=120)
    parser.add_argument("--test", type=int, default=60)
    parser.add_argument("--test-seed", default="0")
    parser.add_argument("--data", type=Path, help="folder with pets and faces")
    parser.add_argument("--photographs", action="store_true")
    parser.add_argument("--detectors", nargs="+", default=["annealed", "dlib"])
    args = parser.parse_args(argv)
    if args.data is None and (args.photographs or "heads" in args.kinds):
        parser.error("--kinds heads and --photographs require --data")
    look = []
    if args.photographs:
        look = ["--image-size", "320", "240", "--sizes", "60", "170", "--covered", "0.3"]
        look += ["--photographs", str(args.data / "faces" / "background")]
    import dlib

    cv2.setNumThreads(1)
    rows = []
    for kind in args.kinds:
        parts = {}
        for part, number, more in (
            ("train", args.train, look),
            ("test", args.test, [*look, "--test", "--seed", args.test_seed]),
        ):
            folder = args.folder / kind / part
            if kind == "heads" and not folder.exists():
                copy_heads(args.data, folder, part)
            elif not folder.exists():
                subprocess.run(
                    [sys.executable, str(RENDER), kind, str(folder), str(number), *more], check=True
                )
            parts[part] = (
                read_objects(folder, schema_of(folder)),
                list_images(folder / "background"),
            )
        trained = {
            "annealed": lambda: train_ours(args.folder / kind, *parts["train"]),  # noqa: B023
            "dlib": lambda: train_dlib(parts["train"][0], dlib),  # noqa: B023
        }
        for name in args.detectors:
            rows.append(row_of(kind, name, trained[name], parts, args.folder))
    print_head(*COLUMNS)
    for row in rows:
        form = zip(COLUMNS.values(), row, strict=True)
        print_line(*(cell.format(value) for cell, value in form))


if __name__ == "__main__":
    main()
