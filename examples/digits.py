"""Which pixels distinguish 7 from 9? A sparse metric, the two classes along it, and the pixels it
uses.

The images correspond to Figures 4.2 and 4.3 of Ma (thesis).

python examples/digits.py FOLDER                        scikit-learn's digits of 8 x 8 pixels
python examples/digits.py FOLDER USPS                   USPS digits of 16 x 16 pixels: a folder with
usps_zip.npz
"""

import sys
from pathlib import Path

import numpy as np
from annealed.learners import SDist
from annealed.pipelines.pets.report import draw_component, first_component
from matplotlib import colormaps
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
if len(sys.argv) > 2:
    data = np.load(Path(sys.argv[2]) / "usps_zip.npz")
    X, y, X_test, y_test = (
        data[name] for name in ("X_train", "digit_train", "X_test", "digit_test")
    )
else:
    X, X_test, y, y_test = train_test_split(
        *load_digits(return_X_y=True), test_size=0.3, random_state=0
    )
side = round(X.shape[1] ** 0.5)

# Seven against nine. The scale of a pixel is informative, so columns are not standardised.
rows, test = np.isin(y, [7, 9]), np.isin(y_test, [7, 9])
# One nonlinear metric: products of two pixels may be added, as in Ma (thesis).
settings = {"standardize": False, "random_state": 0}
model = SDist(5, kappa=10, n_steps=150, max_order=2, **settings).fit(X[rows], y[rows])
nearest = KNeighborsClassifier(3).fit(X[rows], y[rows])
error = 1 - model.score(X_test[test], y_test[test])
print(f"7 against 9: error {error:.4f} with {len(model.selected_features_)} of {X.shape[1]} pixels")
print(
    "             3 nearest neighbours on all pixels: "
    f"{1 - nearest.score(X_test[test], y_test[test]):.4f}"
)

draw_component(folder / "digits_component.png", first_component(model.transform(X[rows])), y[rows])
weight = np.zeros(X.shape[1])  # diagonal of W, summed over the columns that contain a pixel
for column, value in zip(model.columns_, np.diag(model.W_)):
    weight[list(column)] += value
strengths = np.sqrt(weight)
examples = [X[y == digit][0].reshape(side, side) for digit in (7, 9)]
# The larger the weight of a selected pixel, the redder it is; the others are grey.
figure = Figure(figsize=(4.8, 2.7), layout="constrained")
strengths = strengths.reshape(side, side, 1)
red = colormaps["Reds"](0.25 + 0.75 * strengths[..., 0] / strengths.max())[..., :3]
for axes, image, title in zip(figure.subplots(1, 2), examples, "79", strict=True):
    grey = ((image - image.min()) / np.ptp(image))[..., None]
    axes.imshow(np.where(strengths > 0, 0.35 * grey + 0.65 * red, np.repeat(grey, 3, axis=2)))
    axes.set_title(title, fontsize=9)
    axes.axis("off")
figure.savefig(folder / "digits_pixels.png", dpi=130)

# All ten digits.
model = SDist(
    5, kappa=20, n_steps=400, max_order=1, learning_rate=0.1, n_neighbors_predict=1, **settings
).fit(X, y)
print(
    f"ten digits:  error {1 - model.score(X_test, y_test):.4f} with "
    f"{len(model.selected_features_)} of {X.shape[1]} pixels"
)
print(
    "             1 nearest neighbour on all pixels: "
    f"{1 - KNeighborsClassifier(1).fit(X, y).score(X_test, y_test):.4f}"
)
