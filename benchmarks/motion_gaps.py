"""Motion segmentation of Hopkins155 with entries removed in runs, as when tracks are lost: error by
the share of removed entries.

python benchmarks/motion_gaps.py DATA [PARTITIONS]          DATA holds hopkins155; about seven
minutes of processor time

The number of motions is given. Rankings learn from the complete sequences of nine folds of videos
and segment the incomplete sequences of the tenth. Settings are those of the table in
experiments/pages/motion_results.md and were fixed before.
"""

from pathlib import Path

import numpy as np
from annealed.pipelines.motion.benchmark import prepare
from annealed.pipelines.motion.evaluate import folds, picked_errors
from annealed.pipelines.motion.methods import GRID, HINDSIGHT, fit_fsa
from annealed.vision.tracks.io import TrackSequence, read_sequences
from common import new_parser

SHARES = (0.0, 0.1, 0.2, 0.3)
ROWS = {
    "frame pairs": ("pairs", "pairs", GRID[0].settings),
    "subspaces": ("joined", "subspaces", HINDSIGHT),
}


def without_runs(sequence, share, seed):
    """Return the sequence with a share of its entries removed in runs, as when tracks are lost.

    Parameters
    ----------
    sequence : TrackSequence
        Complete.
    share : float
        Share of all entries, 0 to less than 1.
    seed : int

    Returns
    -------
    TrackSequence
        Whole ends of tracks are removed: the points are chosen at random, each loses between a
        fifth and four fifths of its frames, at its beginning or end. At least three frames of each
        are left.
    """
    rng = np.random.default_rng(seed)
    tracks = np.array(sequence.tracks)
    n_frames, n_points, _ = tracks.shape
    wanted, removed = share * n_frames * n_points, 0
    for p in rng.permutation(n_points):
        if removed >= wanted:
            break
        length = min(
            int(rng.uniform(0.2, 0.8) * n_frames), n_frames - 3, int(np.ceil(wanted - removed))
        )
        frames = slice(0, length) if rng.random() < 0.5 else slice(n_frames - length, n_frames)
        tracks[frames, p] = np.nan
        removed += max(length, 0)
    return TrackSequence(sequence.name, tracks, sequence.labels)


def errors(complete, damaged, family, part, settings, partition):
    """Return the error in percent of each incomplete sequence when its video was held out."""
    fold = folds(complete.videos, partition)
    train, test = complete.sets[family], damaged.sets[family]
    values = np.empty(len(fold))
    for number in np.unique(fold):
        scorer = fit_fsa(
            [train[i] for i in np.flatnonzero(fold != number)],
            settings,
            complete.columns("all", part),
        )
        inside = np.flatnonzero(fold == number)
        held_out = [test[i] for i in inside]
        values[inside] = picked_errors(held_out, scorer(held_out))
    return values


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder with hopkins155")
    parser.add_argument("partitions", type=int, nargs="?", default=3)
    data, partitions = vars(parser.parse_args(argv)).values()
    sequences = read_sequences(data / "hopkins155")
    families = tuple(dict.fromkeys(family for family, _, _ in ROWS.values()))
    complete = prepare(sequences, families)
    for share in SHARES:
        damaged = complete
        if share:
            damaged = prepare(
                [without_runs(one, share, seed) for seed, one in enumerate(sequences)], families
            )
        for name, (family, part, settings) in ROWS.items():
            results = np.array(
                [errors(complete, damaged, family, part, settings, p) for p in range(partitions)]
            )
            best = np.mean([100 * one.known_errors.min() for one in damaged.sets[family]])
            by_number = ", ".join(
                f"{k} motions {results[:, damaged.n_motions == k].mean():.3f}" for k in (2, 3)
            )
            spread = results.mean(axis=1).std(ddof=1) if partitions > 1 else 0.0
            print(
                f"{share:.0%} removed, {name}: {results.mean():.3f} (sd {spread:.3f}; "
                f"{by_number}; best candidate {best:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
