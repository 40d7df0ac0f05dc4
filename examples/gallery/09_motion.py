"""
Which points move together?
===========================

Tracks of synthetic scenes with a moving camera: the ground truth above, the result of the shipped
ranker below. Twenty-five frames are few, and one of the two scenes is segmented wrongly.
"""

import numpy as np
from annealed.models import load_model
from annealed.pipelines.motion.synthetic import SceneSettings, perspective_sequence
from annealed.vision import misclassification
from matplotlib import pyplot as plt


def draw(ax, tracks, labels):
    """Draw the paths of the points, with a dot where each was last visible."""
    for motion in np.unique(labels):
        for track in tracks[:, labels == motion].transpose(1, 2, 0):
            ax.plot(*track, color=f"C{motion}", linewidth=0.8)
            ax.plot(*track[:, np.isfinite(track[0])][:, -1], ".", color=f"C{motion}", markersize=4)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.invert_yaxis()


ranker = load_model("motion")
figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for column, seed in zip(axes.T, (1, 3), strict=True):
    scene = perspective_sequence(
        seed, SceneSettings(motions=(3,), frames=(25, 25), lost_fraction=0.2)
    )
    answer = ranker.segment(scene.tracks, 3)
    draw(column[0], scene.tracks, scene.labels)
    draw(column[1], scene.tracks, answer.labels)
    title = column[1].set_title(
        f"{100 * misclassification(scene.labels, answer.labels):.0f}% of the points wrong"
    )
