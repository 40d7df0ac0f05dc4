"""Ablation of selection for face keypoints: annealing, random features and gradient histograms on
the same windows.

All models are fitted to the mined windows of the last round of one training run, ``annealed faces
train --out MODEL``, then evaluated on the test photographs after the face cascade and the guide of
MODEL: average precision at 5% and 10% of the inter-eye distance, and the difference from annealing
with a 95% interval from a paired bootstrap over photographs.

    python benchmarks/faces_selection.py --data DATA/faces --model MODEL --keypoint left_eye
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.windows.window_models import Mode
from annealed.pipelines.common.config import read_config
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.evaluate import evaluate_detector
from annealed.pipelines.keypoints.faces import ANCHORS
from annealed.pipelines.keypoints.measures import pooled
from annealed.pipelines.keypoints.training.stages import DetectorSettings, stages_of
from annealed.pipelines.keypoints.training.windows.calibration import calibrate
from annealed.pipelines.keypoints.training.windows.classifier import TrainingJob
from annealed.pipelines.keypoints.training.windows.fitting import fit_rows
from annealed.pipelines.keypoints.training.windows.guided_search import GuidedTraining
from annealed.vision.windows.feature_pool import FeaturePool
from annealed_experiments.faces.curves import mined_rows
from common import new_parser


def bootstrap(ours, theirs, n=2000, seed=0):
    """Return a 95% interval of the difference in average precision, by a bootstrap over
    photographs."""
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(n):
        drawn = rng.integers(0, len(ours), len(ours))
        first, second = (
            pooled([judged[i] for i in drawn]).average_precision for judged in (ours, theirs)
        )
        differences.append(first - second)
    return np.quantile(differences, [0.025, 0.975])


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with train, test and background"
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="model file, with its checkpoints beside it"
    )
    parser.add_argument("--config", type=Path, help="settings of the training of MODEL")
    parser.add_argument(
        "--n-background",
        type=int,
        default=140,
        help="number of photographs without faces in the training of MODEL",
    )
    parser.add_argument("--keypoint", default="left_eye")
    parser.add_argument("--seeds", type=int, default=3, help="number of random draws of features")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1500])
    args = parser.parse_args(argv)

    train, test = read_annotations(args.data / "train"), read_annotations(args.data / "test")
    whole, pool, settings = (
        load_model(args.model),
        FeaturePool(),
        read_config(args.config, DetectorSettings()),
    )
    background = list_images(args.data / "background")[: args.n_background]
    stages = list(stages_of(Mode.PRUNE, ANCHORS))
    folder = args.model.with_name(args.model.name + ".checkpoint")
    job = TrainingJob(train, background, settings, stages, list(ANCHORS), pool, folder)
    training = GuidedTraining(
        job, settings.classifier, face_cascade=whole.face_cascade, guides=whole.guides
    )
    try:
        positives, reference, ordinary, negatives = mined_rows(training, args.keypoint)
    except ValueError as error:
        parser.error(str(error))
    patches = np.concatenate([positives.patches, negatives.patches])
    y = np.repeat([1.0, -1.0], [len(positives), len(negatives)])
    print(
        f"{args.keypoint}: {len(positives)} positive, {len(negatives)} negative windows, "
        f"{len(test)} photographs",
        flush=True,
    )

    def judged(k, candidates):
        s = replace(settings.classifier, n_features=k)
        model = fit_rows(patches, y, pool, s, seed=[s.seed, 2, s.rounds], features=candidates)
        model = training.cascade(model, reference, ordinary.patches)
        views = job.split.held_out_views
        model, _ = calibrate(
            training.detector(args.keypoint, model),
            args.keypoint,
            views,
            s.precision,
            mode=Mode.PRUNE,
        )
        detector: KeypointDetector = training.detector(args.keypoint, model)
        return evaluate_detector(detector, test, [args.keypoint], mode=Mode.PRUNE).judged

    def report(name, k, errors, best=None):
        row = {"keypoint": args.keypoint, "features": name, "k": k}
        for tolerance, label in ((0.05, "ap_5"), (0.1, "ap_10")):
            row[label] = round(pooled(errors[args.keypoint, tolerance]).average_precision, 4)
        if best is not None:
            low, high = bootstrap(best[args.keypoint, 0.1], errors[args.keypoint, 0.1])
            row["gain_of_annealing_ap_10"] = [round(low, 4), round(high, 4)]
        print(json.dumps(row), flush=True)

    for k in args.sizes:
        best = judged(k, None)
        report("annealed", k, best)
        for seed in range(args.seeds):
            chosen = np.sort(np.random.default_rng([7, seed]).permutation(len(pool.features))[:k])
            report(f"random, seed {seed}", k, judged(k, pool.features[chosen]), best)
    report("HOG, no selection", 864, judged(864, pool.features[pool.n_haar :]), best)


if __name__ == "__main__":
    main()
