"""Error of the shipped motion ranking on 60 synthetic perspective sequences that were not used in
training, compared with the best candidate.

    python benchmarks/motion_perspective.py [SEQUENCES]          some minutes of processor time for
    all 60

Prints the numbers of experiments/pages/motion_results.md, "Strong perspective", and of the model
card; the number of motions is given.
"""

import time

import numpy as np
from annealed.models import load_model
from annealed.pipelines.motion.synthetic import TEST_SEEDS, perspective_sequence
from annealed.vision.tracks.tracks import Tracks
from common import new_parser


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("sequences", type=int, nargs="?", default=len(TEST_SEEDS))
    n_sequences = parser.parse_args(argv).sequences
    ranker = load_model("motion")
    started = time.process_time()
    errors = []
    for seed in TEST_SEEDS[:n_sequences]:
        one = perspective_sequence(seed).shuffled(seed)  # points are sorted by body
        candidates = ranker.candidate_set(Tracks.completed(one.tracks), one.n_motions, one)
        scores = ranker.function.scores(candidates.features)
        errors.append((candidates.known_errors[np.argmax(scores)], candidates.known_errors.min()))
        print(f"{one.name}: {errors[-1][0]:.3f}, best candidate {errors[-1][1]:.3f}", flush=True)
    ranking, best = 100 * np.mean(errors, axis=0)
    seconds = time.process_time() - started
    print(
        f"{len(errors)} sequences: {ranking:.1f} % wrong, best candidate {best:.1f} %; "
        f"{seconds:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
