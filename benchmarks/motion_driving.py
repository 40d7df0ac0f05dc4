"""Error of a motion ranking on synthetic driving scenes of kinds that are not used in training,
compared with the best candidate.

    python benchmarks/motion_driving.py [--scenes 40] [--model motion]      some minutes

The number of motions is given. Lens, depth and errors of the kinds are defined in
annealed.pipelines.motion.driving.
"""

import numpy as np
from annealed.models import load_model
from annealed.pipelines.motion.benchmark import shuffled_tracks
from annealed.pipelines.motion.driving import TEST_KINDS, driving_sequence
from annealed.pipelines.motion.evaluate import picked_errors
from common import new_parser, print_head, print_line

ERRORS = {"walk": "random walk", "mixed": "a tenth with large errors", "heavy": "heavy tails"}


def sets_of(ranker, sequences):
    """Return candidates with features and errors."""
    sets = []
    for number, sequence in enumerate(sequences):
        tracks, shuffled = shuffled_tracks(sequence, number)
        sets.append(
            ranker.candidate_set(tracks, sequence.n_motions, shuffled, ranker.function.selected)
        )
    return sets


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--scenes", type=int, default=40)
    parser.add_argument("--model", default="motion")
    args = parser.parse_args(argv)
    ranker, every = load_model(args.model), []
    scene = "kind", "focal length / image width", "tracking errors", "scenes"
    print_head(*scene, "wrong, %", "best candidate, %")
    for kind, settings in TEST_KINDS.items():
        sets = sets_of(ranker, (driving_sequence(kind, seed) for seed in range(args.scenes)))
        errors = picked_errors(sets, ranker.function.scores_of_sets(sets))
        every += [*zip(errors, (100 * one.known_errors.min() for one in sets))]
        means = (f"{mean:.1f}" for mean in np.mean(every[-len(sets) :], axis=0))
        low, high = settings.lens
        print_line(kind, f"{low} to {high}", ERRORS[settings.errors], len(sets), *means)
    print_line("all", "", "", len(every), *(f"{mean:.1f}" for mean in np.mean(every, axis=0)))


if __name__ == "__main__":
    main()
