"""OpenCV 4's Haar eye cascades on the photographs of an .npz file, one JSON line per setting (started by faces_speed.py).

OpenCV 5 has no cascades: run this in an environment of its own with ``opencv-python-headless<5``.

    python benchmarks/opencv_eyes.py photographs.npz
"""

import json
import sys
import time

import cv2
import numpy as np

CASCADES = ("haarcascade_eye.xml", "haarcascade_eye_tree_eyeglasses.xml")
SETTINGS = [(1.1, 3), (1.1, 10), (1.2, 3)]  # scale factor, neighbours


def main():
    cv2.setNumThreads(1)
    images = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in np.load(sys.argv[1])["images"]]
    for name in CASCADES:
        cascade = cv2.CascadeClassifier(cv2.data.haarcascades + name)
        for factor, neighbours in SETTINGS:
            boxes, seconds = [], []
            for image in images:
                times = []
                for _ in range(3):
                    start = time.process_time()
                    found = cascade.detectMultiScale(image, scaleFactor=factor, minNeighbors=neighbours)
                    times.append(time.process_time() - start)
                seconds.append(min(times[1:]))
                boxes.append(np.asarray(found).reshape(-1, 4).tolist())
            row = {"name": f"{name[:-4]}, factor {factor}, {neighbours} neighbours", "seconds": seconds, "boxes": boxes}
            print(json.dumps({"opencv": cv2.__version__, **row}), flush=True)


if __name__ == "__main__":
    main()
