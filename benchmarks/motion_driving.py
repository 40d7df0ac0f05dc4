"""Error of a motion ranking on synthetic scenes that are not used in training, compared with the
best candidate: driving scenes of other kinds, and 60 perspective sequences.

    python benchmarks/motion_driving.py [--scenes 40] [--model motion]      some minutes

The number of motions is given. Lens, depth and errors of the kinds are defined in
annealed.pipelines.motion.driving, and those of the perspective sequences in
annealed.pipelines.motion.synthetic.
"""

import numpy as np
from annealed.models import load_model
from annealed.pipelines.motion.benchmark import shuffled_tracks
from annealed.pipelines.motion.driving import TEST_KINDS, driving_sequence
from annealed.pipelines.motion.evaluate import picked_errors
from annealed.pipelines.motion.synthetic import TEST_SEEDS, perspective_sequence
from common import new_parser, print_head, print_line

ERRORS = {"walk": "random walk", "mixed": "a tenth with large errors", "heavy": "heavy tails"}


def errors_of(ranker, sequences):
    """Return the error of the ranking and that of the best candidate of each sequence, in
    percent."""
    sets = []
    for number, sequence in enumerate(sequences):
        tracks, shuffled = shuffled_tracks(sequence, number)
        sets.append(
            ranker.candidate_set(tracks, sequence.n_motions, shuffled, ranker.function.selected)
        )
    errors = picked_errors(sets, ranker.function.scores_of_sets(sets))
    return np.array([*zip(errors, (100 * one.known_errors.min() for one in sets))])


def print_errors(errors, *scene):
    print_line(*scene, len(errors), *(f"{mean:.1f}" for mean in errors.mean(axis=0)))


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--scenes", type=int, default=40)
    parser.add_argument("--model", default="motion")
    args = parser.parse_args(argv)
    ranker, every = load_model(args.model), []
    scene = "kind", "focal length / image width", "tracking errors", "scenes"
    print_head(*scene, "wrong, %", "best candidate, %")
    for kind, settings in TEST_KINDS.items():
        every.append(errors_of(ranker, (driving_sequence(kind, i) for i in range(args.scenes))))
        low, high = settings.lens
        print_errors(every[-1], kind, f"{low} to {high}", ERRORS[settings.errors])
    print_errors(np.concatenate(every), "all driving scenes", "", "")
    print_errors(errors_of(ranker, map(perspective_sequence, TEST_SEEDS)), "perspective", "", "")


if __name__ == "__main__":
    main()
