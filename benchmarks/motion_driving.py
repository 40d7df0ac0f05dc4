"""Error of a motion ranking on synthetic driving scenes of kinds that are not used in training,
compared with the best candidate; or, with ``--folds``, error of the shipped recipe on Hopkins155.

    python benchmarks/motion_driving.py [--scenes 40] [--model motion]      some minutes
    python benchmarks/motion_driving.py --folds 2 --data DATA/hopkins155    half an hour

The number of motions is given. Lens, depth and errors of the kinds are defined in
annealed.pipelines.motion.driving.
"""

import time
from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.models.motion.ranking_function import RankingFunction
from annealed.pipelines.motion.benchmark import shuffled_tracks
from annealed.pipelines.motion.driving import TEST_KINDS, TRAINING_KINDS, driving_sequence
from annealed.pipelines.motion.evaluate import folds, picked_errors
from annealed.pipelines.motion.segment import OWN_WEIGHT, shipped_columns, shipped_settings
from annealed.pipelines.motion.synthetic import TRAINING_SEEDS, perspective_sequence
from annealed.vision.tracks.io import read_sequences
from common import new_parser, print_head, print_line


def sets_of(ranker, sequences):
    """Return candidates with features and errors, and the processor time of each sequence."""
    sets, seconds = [], []
    for number, sequence in enumerate(sequences):
        start = time.process_time()
        tracks, shuffled = shuffled_tracks(sequence, number)
        sets.append(ranker.candidate_set(tracks, sequence.n_motions, shuffled))
        seconds.append(time.process_time() - start)
    return sets, seconds


def cross_validated(data, n_partitions):
    """Train rankers on nine tenths of the videos and all synthetic scenes, and test them on the
    other videos."""
    ranker = shipped_settings()
    made = [perspective_sequence(seed) for seed in TRAINING_SEEDS]
    made += [driving_sequence(kind, seed) for kind in TRAINING_KINDS for seed in range(24)]
    extra, _ = sets_of(ranker, made)
    sets, seconds = sets_of(ranker, read_sequences(data))
    videos = np.array([one.video for one in sets])
    for partition in range(n_partitions):
        fold, errors = folds(videos, partition), np.zeros(len(sets))
        for held_out in np.unique(fold):
            train = [one for one, f in zip(sets, fold) if f != held_out]
            function = RankingFunction.learn(
                train * OWN_WEIGHT + extra, ranker.settings, shipped_columns(ranker.features)
            )
            test = [one for one, f in zip(sets, fold) if f == held_out]
            errors[fold == held_out] = picked_errors(test, function.scores_of_sets(test))
        print(f"partition {partition}: {errors.mean():.3f} % wrong", flush=True)
    best = 100 * np.mean([one.known_errors.min() for one in sets])
    print(
        f"best candidate {best:.3f} %; "
        f"seconds per sequence {np.median(seconds):.2f}, at most {max(seconds):.2f}"
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--scenes", type=int, default=40)
    parser.add_argument("--model", default="motion")
    parser.add_argument("--folds", type=int, default=0, metavar="PARTITIONS")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args(argv)
    if args.folds:
        return cross_validated(args.data, args.folds)
    ranker, every = load_model(args.model), []
    print_head("kind", "scenes", "% wrong", "best candidate", "seconds a scene")
    for kind in TEST_KINDS:
        sets, seconds = sets_of(
            ranker, [driving_sequence(kind, seed) for seed in range(args.scenes)]
        )
        errors = picked_errors(sets, ranker.function.scores_of_sets(sets))
        best = [100 * one.known_errors.min() for one in sets]
        every += [*zip(errors, best)]
        print_line(
            kind,
            len(sets),
            f"{errors.mean():.1f}",
            f"{np.mean(best):.1f}",
            f"{np.median(seconds):.2f}",
        )
    wrong, best = np.mean(every, axis=0)
    print_line("all", len(every), f"{wrong:.1f}", f"{best:.1f}", "")


if __name__ == "__main__":
    main()
