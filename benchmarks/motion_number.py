"""Accuracy and calibration of the chosen number of motions on training sequences that are held out.

    python benchmarks/motion_number.py --data DATA/hopkins155 --cache FOLDER
        [--table kinds|probabilities|temperatures]

This takes about half an hour of processor time, mostly for the candidates and features, which are
stored in FOLDER. The ranking and the choice of the number are trained with the settings and scenes
of the shipped model, without one tenth of the videos (ten folds), or without one kind of scene at a
time. A left-out kind shows how the model behaves on unfamiliar videos.

Prints a table of the results by kind of scene, of the share of correct numbers by their
probability, or of the logarithmic loss by the temperature, which divides the utilities.
"""

import pickle
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from annealed.models.motion.candidate_set import joined
from annealed.models.motion.ranking_function import (
    TEMPERATURE,
    MotionChooser,
    RankingFunction,
)
from annealed.pipelines.motion.benchmark import shuffled_tracks
from annealed.pipelines.motion.driving import TRAINING_KINDS, driving_sequence
from annealed.pipelines.motion.evaluate import folds, picked_errors
from annealed.pipelines.motion.segment import (
    OWN_WEIGHT,
    OWN_WEIGHT_OF_NUMBERS,
    shipped_columns,
    shipped_settings,
)
from annealed.pipelines.motion.synthetic import TRAINING_SEEDS, perspective_sequence
from annealed.vision.tracks.io import read_sequences
from common import new_parser, print_head, print_line

PER_KIND = 24  # number of training scenes, as by default


class Cache:
    """Candidate sets by sequence and number of motions, each in its own file."""

    def __init__(self, folder):
        self.folder, self.ranker = folder, shipped_settings()
        self.columns = shipped_columns(self.ranker.features)
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name, sequence_of, every=False):
        """Return the set for the true number of motions and, with ``every``, the set for all
        numbers."""
        path = self.folder / f"{name}{'_every' if every else ''}.pickle"
        if not path.exists():
            sequence = sequence_of()
            tracks, shuffled = shuffled_tracks(sequence, 0)
            sets = self.ranker.sets_by_number(tracks, shuffled, self.columns) if every else None
            if sets is None:
                made = self.ranker.candidate_set(tracks, sequence.n_motions, shuffled, self.columns)
            else:
                made = joined(list(sets.values()))
            path.write_bytes(pickle.dumps(made))
        return pickle.loads(path.read_bytes())


def read_training(data, cache):
    """Return the kind, the true number of motions, the candidates with this number and those with
    all numbers of each training sequence."""
    makers = [("Hopkins155", one.name, lambda one=one: one) for one in read_sequences(data)]
    makers += [
        ("perspective", f"perspective_{seed}", partial(perspective_sequence, seed))
        for seed in TRAINING_SEEDS
    ]
    makers += [
        (kind, f"driving_{kind}_{seed}", partial(driving_sequence, kind, seed))
        for seed in range(PER_KIND)
        for kind in TRAINING_KINDS
    ]
    rows = []
    for kind, name, make in makers:
        number, mixed = make().n_motions, cache(name, make, True)
        same = mixed.n_motions == number
        rows.append((kind, number, mixed.only(same) if same.any() else cache(name, make), mixed))
    return [list(column) for column in zip(*rows)]


def held_out(given, mixed, numbers, groups, n_own, cache):
    """Return the probabilities of the numbers of each sequence, and its errors in percent with the
    true and the chosen number, by models that are trained without the sequence's group."""
    chances, errors = [{}] * len(mixed), np.zeros((len(mixed), 2))
    features = cache.ranker.features.features()
    for group in np.unique(groups):
        train = np.flatnonzero(groups != group).tolist()
        own = [i for i in train if i < n_own]
        ranking = RankingFunction.learn(
            [given[i] for i in own * (OWN_WEIGHT - 1) + train], cache.ranker.settings, cache.columns
        )
        train += own * (OWN_WEIGHT_OF_NUMBERS - 1)
        chooser = MotionChooser.learn(
            [mixed[i] for i in train], [numbers[i] for i in train], ranking, features
        )
        for i in np.flatnonzero(groups == group).tolist():
            chances[i] = chooser.probabilities(mixed[i], ranking)
            sets = [given[i], mixed[i].only(mixed[i].n_motions == next(iter(chances[i])))]
            errors[i] = picked_errors(sets, ranking.scores_of_sets(sets))
    return chances, errors


def most_probable(chances):
    """Return the most probable number of each sequence and its probability."""
    return [np.array(column) for column in zip(*(next(iter(one.items())) for one in chances))]


def loss_of(chances, numbers, kinds, temperature):
    """Return the mean logarithmic loss over the kinds of scenes at another temperature."""
    losses = []
    for one, number in zip(chances, numbers):
        powers = {k: p ** (TEMPERATURE / temperature) for k, p in one.items()}
        losses.append(np.log(sum(powers.values()) / powers[min(number, max(powers))]))
    return np.mean([np.mean(np.array(losses)[kinds == kind]) for kind in np.unique(kinds)])


def print_kinds(results, numbers, kinds):
    """Print the results by kind of scene."""
    labels = "right", "mean probability"
    columns = (f"{label}, {title} left out" for title in results for label in labels)
    errors = "wrong, %, number given", "wrong, %, number chosen"
    print_head("kind", "sequences", *columns, *errors)
    own = kinds == "Hopkins155"
    groups = {kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())}
    groups |= {f"Hopkins155, {k} motions": own & (numbers == k) for k in (2, 3)}
    groups |= {"synthetic": ~own, "all": own | ~own}
    for name, rows in groups.items():
        shown = []
        for chances, _ in results.values():
            chosen, probability = most_probable(chances)
            shown += f"{(chosen == numbers)[rows].mean():.3f}", f"{probability[rows].mean():.2f}"
        shown += (f"{error:.2f}" for error in results["videos"][1][rows].mean(axis=0))
        print_line(name, rows.sum(), *shown)


def print_probabilities(results, numbers, kinds):
    """Print the share of correct numbers by their probability."""
    labels = "sequences", "mean probability", "right"
    columns = (f"{label}, {title} left out" for title in results for label in labels)
    print_head("probability", *columns)
    for low, high in pairwise((0.0, 0.5, 0.7, 0.8, 0.9, 1.01)):
        shown = []
        for chances, _ in results.values():
            chosen, probability = most_probable(chances)
            inside = (probability >= low) & (probability < high)
            means = probability[inside].mean(), (chosen == numbers)[inside].mean()
            shown += inside.sum(), *(f"{mean:.2f}" for mean in means)
        print_line(f"{low:g} to {min(high, 1):g}", *shown)


def print_temperatures(results, numbers, kinds):
    """Print the mean logarithmic loss over the kinds of scenes for several temperatures."""
    print_head("temperature", *(f"log loss, {title} left out" for title in results))
    for temperature in (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0):
        losses = (loss_of(one, numbers, kinds, temperature) for one, _ in results.values())
        print_line(temperature, *(f"{loss:.3f}" for loss in losses))


TABLES = {
    "kinds": print_kinds,
    "probabilities": print_probabilities,
    "temperatures": print_temperatures,
}


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--table", choices=TABLES, default="kinds")
    args = parser.parse_args(argv)
    cache = Cache(args.cache)
    kinds, numbers, given, mixed = read_training(args.data, cache)
    kinds, numbers = np.array(kinds), np.array(numbers)
    groups = {"videos": folds(np.array([one.video for one in mixed]), 0), "kinds": kinds}
    n_own = int((kinds == "Hopkins155").sum())
    results = {
        title: held_out(given, mixed, numbers, group, n_own, cache)
        for title, group in groups.items()
    }
    TABLES[args.table](results, numbers, kinds)


if __name__ == "__main__":
    main()
