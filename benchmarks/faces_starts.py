"""Ablation of refining a face twice, from two starts, on a third of the training photographs, with
cascades trained on the others.

Starts are simulated, from anchors with errors and from the mean shape at the position of the first
result. Prints the shares of the faces whose keypoints lie within 5% / 10% of the inter-eye distance
(IED), the mean error of the chin (cut at 0.15 IED), and the average precision of the keypoints when
they are ranked by logistic regressions (cross-validated by photograph) on the distance of both
results, on the yaw, and on both. Photographs and their mirror images are evaluated; a sideways
offset common to both is the annotators' bias, which is removed by subtracting its median.

    python benchmarks/faces_starts.py --data DATA/faces/train
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.instances.shape_models import pose_of
from annealed.pipelines.keypoints.data import annotated, read_annotations
from annealed.pipelines.keypoints.training.instances.refinement import (
    PLAIN,
    RegressionSettings,
    describe_runs,
    move_runs,
    start_runs,
    train_regressor,
)
from common import new_parser
from faces_parts import PAIRS
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

EXACT = 0.003  # IED, added to the distance of the two results before taking the logarithm


def refined(runs, regressor):
    """Return the runs after all stages."""
    runs = replace(runs, now=runs.now.copy())
    for stage in regressor.stages:
        move_runs(runs, regressor, stage, *describe_runs(runs, regressor, stage.ied, stage.cell))
    return runs


def errors_of(runs, points, matrix):
    """Return distances (n_runs, n_keypoints) in IED, without the annotators' sideways bias."""
    truth = runs.truth @ matrix.T
    ied = abs(truth[:, :1] - truth[:, 1:2])
    off = (points @ matrix.T - truth) / ied
    sides = np.where([runs.copies[copy].mirrored for copy in runs.copy], -1, 1)[:, None]
    return abs(off - sides * np.median(sides * off.real, axis=0))


def average_precision(score, error, tolerance):
    """Evaluate as usual: keypoints between the tolerance and 0.1 IED count neither as hits nor as
    false positives."""
    counted = (error <= tolerance) | (error > 0.1)
    hit = (error <= tolerance)[counted][np.argsort(-score[counted], kind="stable")]
    return float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].sum() / len(error))


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="photographs that the model was trained on"
    )
    parser.add_argument("--model", default="faces", help="model whose shapes are used")
    parser.add_argument("--starts", type=int, default=3)
    args = parser.parse_args(argv)
    images, finder = read_annotations(args.data), load_model(args.model).instances
    shape = finder.assembler.shape
    fitted, tested = [image for i, image in enumerate(images) if i % 3], images[::3]
    print(
        "| starts in training | refined | "
        + " | ".join(PAIRS)
        + " | chin |\n"
        + "|---" * (3 + len(PAIRS))
        + "|"
    )
    for mean_starts in (0, args.starts // 3):
        settings = RegressionSettings(
            augmentation=PLAIN, starts=args.starts, mean_starts=mean_starts
        )
        regressor, _ = train_regressor(fitted, shape, settings, lambda line: None)
        matrix = regressor.to_keypoints
        first = refined(start_runs(tested, shape, PLAIN, 1, [1, 0]), regressor)
        again = np.array(
            [regressor.align(points).to_image(regressor.mean_points) for points in first.now]
        )
        second = refined(replace(first, now=again), regressor)
        answers = {"once": first.now, "twice": (first.now + second.now) / 2}
        for name, points in answers.items():
            error = errors_of(first, points, matrix)
            cells = [
                f"{(error[:, list(k)] <= 0.05).mean():.3f} / "
                f"{(error[:, list(k)] <= 0.1).mean():.3f}"
                for k in PAIRS.values()
            ]
            chin = np.minimum(error[:, 8], 0.15).mean()
            print(
                f"| {args.starts - mean_starts} + {mean_starts} | {name} | {' | '.join(cells)} | "
                f"{chin:.4f} |",
                flush=True,
            )
    truth = first.truth @ matrix.T
    apart = np.log(
        abs((second.now - first.now) @ matrix.T) / abs(truth[:, :1] - truth[:, 1:2]) + EXACT
    )
    yaw = np.array([abs(pose_of(finder.rigid.fit(points)[0]).yaw) for points in answers["twice"]])
    # and the mirror images
    n_rows = [2 * int(np.isfinite(image.points).all(axis=1).sum()) for image in annotated(tested)]
    photograph = np.repeat(np.arange(len(n_rows)), n_rows)
    print("\n| ranked by | " + " | ".join(PAIRS) + " |\n" + "|---" * (1 + len(PAIRS)) + "|")
    for name in ("turn to a side", "distance of the answers", "both"):
        cells = []
        for pair in PAIRS.values():
            results = []
            for k in pair:
                inputs = {"turn to a side": [yaw], "distance of the answers": [apart[:, k]]}.get(
                    name, [yaw, apart[:, k]]
                )
                model = make_pipeline(StandardScaler(), LogisticRegression())
                hit, folds = error[:, k] <= 0.1, GroupKFold(5)
                score = cross_val_predict(
                    model,
                    np.stack(inputs, 1),
                    hit,
                    groups=photograph,
                    cv=folds,
                    method="predict_proba",
                )[:, 1]
                results.append(
                    [average_precision(score, error[:, k], tolerance) for tolerance in (0.05, 0.1)]
                )
            cells.append("{:.3f} / {:.3f}".format(*np.mean(results, axis=0)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
