"""Ablation of the families of candidates, groups of features and kinds of training scenes of the
shipped motion ranking.

    python benchmarks/motion_ablation.py --data DATA/hopkins155 --cache FOLDER

This takes about 15 minutes of processor time, mostly for the candidates and features, which are
stored in FOLDER. Prints the percentage of wrong tracks of the ranking, with the number of motions
given, and of the best candidate: on rendered streets (benchmarks/motion_videos.py, seeds 5 to 8),
on driving scenes of kinds that are not used in training, on synthetic perspective sequences, and on
Hopkins155 (folds by video).
"""

from functools import partial
from pathlib import Path

import numpy as np
from annealed.models.motion.ranking_function import RankingFunction
from annealed.pipelines.motion.driving import TEST_KINDS, TRAINING_KINDS, driving_sequence
from annealed.pipelines.motion.evaluate import folds, picked_errors
from annealed.pipelines.motion.segment import OWN_WEIGHT
from annealed.pipelines.motion.synthetic import TEST_SEEDS, TRAINING_SEEDS, perspective_sequence
from annealed.vision.tracks.completion import thin_tracks
from annealed.vision.tracks.io import TrackSequence, read_sequences
from common import new_parser, print_head, print_line
from motion_number import PER_KIND, Cache
from motion_videos import rendered_tracks

NEW_KINDS = ("axis", "static", "hand-held")
DEVIATING = "dominant motion: likelihood"
# name; families and kinds that are left out, and a part of the names of the features that are left
# out
VARIANTS = {
    "as shipped": ((), (), ()),
    "without the essential-matrix family": (("dominant, essential",), (), ()),
    "without the homography family": (("dominant, homography",), (), ()),
    "without both families": (("dominant",), (), ()),
    "without the outlier features": ((), (), (f"{DEVIATING}, outliers",)),
    "without the features of points behind the camera": ((), (), (f"{DEVIATING}, points behind",)),
    "without the depth features": ((), (), ("depth",)),
    "without the features of neighbouring points": ((), (), ("neighbours: prior",)),
    "without the new features": ((), (), ("dominant motion", "neighbours: prior")),
    "without the new scenes": ((), NEW_KINDS, ()),
    "without all of these": (
        ("dominant",),
        NEW_KINDS,
        ("dominant motion", "neighbours: prior"),
    ),
}


def street(layout, seed):
    """Return the tracks of a rendered street that are long enough to be segmented."""
    tracks, truth = rendered_tracks(layout, seed)
    tracks, kept = thin_tracks(tracks, 10)
    labels = np.unique(truth[kept], return_inverse=True)[1]
    return TrackSequence(f"{layout}_{seed}", tracks, labels)


def without(sets, families):
    """Return sets without the candidates of some families."""
    return [
        one.only(np.array([not c.family.startswith(families) for c in one.candidates]))
        for one in sets
    ]


def print_variants(groups, tests, columns, names, settings, n_folds):
    """Print a row for each of VARIANTS."""
    print_head("", *tests, "Hopkins155")
    for label, (families, kinds, left_out) in VARIANTS.items():
        used = np.array([c for c in columns if not any(part in names[c] for part in left_out)])
        made = [one for kind, sets in groups.items() if kind not in ("own", *kinds) for one in sets]
        own, extra = without(groups["own"], families), without(made, families)
        function = RankingFunction.learn(own * OWN_WEIGHT + extra, settings, used)
        cells = []
        for sets in tests.values():
            left = without(sets, families)
            best = np.mean([100 * one.known_errors.min() for one in left])
            errors = picked_errors(left, function.scores_of_sets(left))
            cells.append(f"{errors.mean():.1f} ({best:.1f})")
        fold = folds(np.array([one.video for one in own]), 0, n_folds)
        errors = np.zeros(len(own))
        for q in np.unique(fold):
            train = [one for one, f in zip(own, fold) if f != q] * OWN_WEIGHT + extra
            test = [one for one, f in zip(own, fold) if f == q]
            scores = RankingFunction.learn(train, settings, used).scores_of_sets(test)
            errors[fold == q] = picked_errors(test, scores)
        print_line(label, *cells, f"{errors.mean():.3f}")


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument(
        "--scenes", type=int, default=8, help="number of test scenes of each driving kind"
    )
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args(argv)
    cache = Cache(args.cache)
    own = {one.name: one for one in read_sequences(args.data)}
    training = {
        f"driving_{kind}_{seed}": partial(driving_sequence, kind, seed)
        for seed in range(PER_KIND)
        for kind in TRAINING_KINDS
    } | {f"perspective_{seed}": partial(perspective_sequence, seed) for seed in TRAINING_SEEDS}
    groups = {"own": [cache(name, lambda one=one: one) for name, one in own.items()]}
    for name, make in training.items():
        groups.setdefault(name.split("_")[-2], []).append(cache(name, make))
    tests = {
        layout: [cache(f"{layout}_{seed}", partial(street, layout, seed)) for seed in (5, 6, 7, 8)]
        for layout in ("driving", "avenue")
    }
    tests["driving scenes"] = [
        cache(f"driving_{kind}_{seed}", partial(driving_sequence, kind, seed))
        for kind in TEST_KINDS
        for seed in range(args.scenes)
    ]
    tests["perspective"] = [
        cache(f"perspective_{seed}", partial(perspective_sequence, seed))
        for seed in TEST_SEEDS[:20]
    ]
    columns, settings = cache.columns, cache.ranker.settings
    names = cache.ranker.features.get_feature_names_out()
    print_variants(groups, tests, columns, names, settings, args.folds)


if __name__ == "__main__":
    main()
