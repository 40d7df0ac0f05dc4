"""
Evidence on a cat
=================

The shipped classifier of cats and dogs counts visual words. Each word has a weight, so the score
can be traced back to pixels: red speaks for the label, blue against it. The photograph is
scikit-image's (CC0).
"""

import numpy as np
from annealed.models import load_model
from annealed.vision import Photograph
from matplotlib import pyplot as plt
from scipy.ndimage import gaussian_filter
from skimage.data import chelsea

explained = load_model("pets").explain(Photograph(chelsea()))
print(f"{explained.label}, probability {explained.probability:.2f}")
for name, evidence in explained.contributions[:5]:
    print(f"{evidence:+.3f}  {name}")

heat = gaussian_filter(explained.heat, 6)
limit = np.abs(heat).max()
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.imshow(explained.image)
right.imshow(explained.image.mean(axis=2), cmap="gray", vmin=-60, vmax=320)
shown = right.imshow(heat, cmap="seismic", vmin=-limit, vmax=limit, alpha=0.5)
for ax in (left, right):
    ax.axis("off")
