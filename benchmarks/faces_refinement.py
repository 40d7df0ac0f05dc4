"""Ablation of selection and augmentation in the cascade that refines whole faces, on photographs
held out from training.

Whole cascades are retrained on the photographs to which a model was fitted, with its own shapes:
with values selected by annealing, with the same number of random values, and with all values, each
fitted by ridge regression, with and without augmentation. Each replaces the model's cascade on the
held-out tenth. Prints the mean error of all points after each stage, in inter-eye distances, from
simulated starts, and the average precision at 5% / 10% of the refined keypoints, from detected
starts.

    python benchmarks/faces_refinement.py --data DATA/faces/train
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.faces import ANCHORS
from annealed.pipelines.keypoints.training.instances.augmentation import AugmentationSettings
from annealed.pipelines.keypoints.training.instances.refinement import (
    PLAIN,
    RegressionSettings,
    describe_runs,
    move_runs,
    start_runs,
    train_regressor,
)
from annealed.pipelines.keypoints.training.instances.shapes import search_all
from annealed.pipelines.keypoints.training.windows.views import held_out
from common import new_parser
from faces_parts import PAIRS, Scores, refined


def at_random(seed):
    """Return a random selection of as many values as annealing keeps."""

    def choose(values, target, settings):
        return np.sort(
            np.random.default_rng([seed, len(target.T)]).permutation(values.shape[1])[
                : settings.n_features
            ]
        )

    return choose


def everything(values, target, settings):
    """Select all values."""
    return np.arange(values.shape[1])


def errors_by_stage(regressor, images, shape, settings):
    """Compute the mean error of all points after 0, 1, ... stages, from simulated starts on varied
    copies."""
    runs = start_runs(images, shape, settings.augmentation, settings.starts, [settings.seed, 60])
    eyes = runs.truth @ regressor.to_keypoints[:2].T
    ied = abs(eyes[:, 0] - eyes[:, 1])
    errors = [float((abs(runs.now - runs.truth).mean(axis=1) / ied).mean())]
    for stage in regressor.stages:
        values, units = describe_runs(runs, regressor, stage.ied, stage.cell)
        move_runs(runs, regressor, stage, values, units)
        errors.append(float((abs(runs.now - runs.truth).mean(axis=1) / ied).mean()))
    return errors


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="photographs that the model was trained on"
    )
    parser.add_argument("--model", default="faces")
    parser.add_argument("--draws", type=int, default=3, help="number of random selections")
    parser.add_argument(
        "--copies",
        type=int,
        default=2,
        help="number of varied copies of each face and of its mirror image",
    )
    parser.add_argument("--starts", type=int, default=1, help="number of starts on each copy")
    args = parser.parse_args(argv)
    images = read_annotations(args.data)
    fitted = [image for image in images if not held_out(image, 0.1)]
    back = [image for image in images if held_out(image, 0.1)]
    detector, default = load_model(args.model), RegressionSettings()
    varied = AugmentationSettings(copies=args.copies)
    settings = replace(default, augmentation=varied, starts=args.starts, mean_starts=0)
    finder, unit = detector.finder, detector.reference_length
    searched = list(search_all(detector, ANCHORS, back))
    plain = replace(settings, augmentation=PLAIN, starts=args.starts * args.copies)
    selections = {
        "annealed": None,
        **{f"random, draw {i + 1}": at_random(i) for i in range(args.draws)},
        "all": everything,
    }
    n_stages, tested = (
        len(settings.ied),
        replace(settings, augmentation=AugmentationSettings(), starts=2),
    )
    print(
        f"| values | augmentation | error after 0 to {n_stages} stages | "
        + " | ".join(PAIRS)
        + " |\n"
        + "|---" * (3 + len(PAIRS))
        + "|"
    )
    for augmented, how in ((False, plain), (True, settings)):
        for name, selection in selections.items():
            regressor, _ = train_regressor(
                fitted, finder.assembler.shape, how, lambda line: None, selection
            )
            errors = errors_by_stage(regressor, back, finder.assembler.shape, tested)
            trial, scores = replace(finder, regressor=regressor), Scores()
            for image, view in zip(back, searched, strict=True):
                scores.add(
                    name,
                    image,
                    refined(trial, trial.find(view.maxima, view.levels, unit, 0.0).instances),
                )
            cells = " | ".join(scores.cells(name))
            steps = ", ".join(f"{error:.3f}" for error in errors)
            print(f"| {name} | {'yes' if augmented else 'no'} | {steps} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
