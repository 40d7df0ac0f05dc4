"""
Keypoints, and the features that detect them
============================================

Detections of the shipped detectors in a photograph (NASA, public domain), and the first features of
the eye classifier, drawn on the window that it accepted. Each is a difference of sums of grey
values, or an entry of an orientation histogram.
"""

import numpy as np
from annealed.models import load_model
from annealed.vision.windows.feature_layout import Column
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle
from skimage.data import astronaut
from skimage.transform import resize

image = astronaut()
detector = load_model("faces")
result = detector.detect(image)
for detection in result[:3]:
    print(
        f"{detection.keypoint}: ({detection.x:.0f}, {detection.y:.0f}), score {detection.score:.2f}"
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.imshow(image)
for name in detector.keypoints:
    places = np.array([(d.x, d.y) for d in result if d.keypoint == name]).reshape(-1, 2)
    left.scatter(*places.T, s=25, label=name)
left.set(xlim=(120, 330), ylim=(230, 20), title="all nine keypoints")
left.legend(fontsize=7, loc="lower left")

# Orange: cells of the first Haar features, by decreasing importance; blue: blocks of orientation
# histograms.
eye = next(d for d in result if d.keypoint == "left_eye")
half = eye.size / 2
window = image[round(eye.y - half) : round(eye.y + half), round(eye.x - half) : round(eye.x + half)]
right.imshow(resize(window, (24, 24)), extent=(0, 24, 24, 0))
kinds = list(detector.pool.kinds.values())
for row in detector.models["left_eye"].features[:20]:
    is_haar = row[Column.KIND] < len(kinds)
    cells = np.array(kinds[row[Column.KIND]]) if is_haar else np.ones((2, 2))
    height, width = cells.shape * row[[Column.CELL_HEIGHT, Column.CELL_WIDTH]]
    right.add_patch(
        Rectangle(
            row[[Column.X, Column.Y]],
            width,
            height,
            fill=False,
            color="C1" if is_haar else "C0",
            alpha=0.8,
        )
    )
title = right.set_title("the first 20 features of the eye")
