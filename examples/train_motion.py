"""Learn to rank motion segmentations on the official Hopkins155 tree, and evaluate the ranking on
held-out videos.

    python examples/train_motion.py /path/to/Hopkins155

The tree has folders NAME with NAME_truth.mat; training takes some minutes.
"""

import sys

import numpy as np
from annealed.models.motion.ranker import SegmentationRanker
from annealed.models.motion.ranking_function import RankerSettings
from annealed.vision import misclassification, read_sequences
from annealed.vision.tracks.tracks import Tracks


def main(folder: str, out: str = "motion.safetensors") -> None:
    """Train on nine tenths of the videos, segment the others, save the model."""
    # Hopkins155 sorts the points by motion: shuffle them, so that their order is uninformative.
    sequences = [one.shuffled(seed) for seed, one in enumerate(read_sequences(folder))]
    videos = sorted({one.video for one in sequences})
    held_out = set(np.random.default_rng(0).permutation(videos)[: max(1, len(videos) // 10)])
    ranker = SegmentationRanker(settings=RankerSettings("linear", 60, n_steps=100))
    train = [one for one in sequences if one.video not in held_out]
    ranker.fit(
        [ranker.candidate_set(Tracks.completed(one.tracks), one.n_motions, one) for one in train]
    )
    errors = []
    for one in sequences:
        if one.video in held_out:
            errors.append(
                100
                * misclassification(one.labels, ranker.segment(one.tracks, one.n_motions).labels)
            )
            print(f"{one.name}: {errors[-1]:.2f} % of the points wrong")
    print(
        f"{len(train)} sequences to learn from; "
        f"{np.mean(errors):.2f} % wrong on {len(errors)} of other videos"
    )
    ranker.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
