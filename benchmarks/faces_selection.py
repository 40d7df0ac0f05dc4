"""What selection is worth for face keypoints: annealing, random features and gradient histograms on the same windows.

All models are fitted to the mined windows of the last round of one training (its checkpoint folder), then evaluated on the test
photographs: average precision at 5% and 10% of the inter-eye distance, and the difference to annealing with a 95% interval from
a paired bootstrap over photographs.

    python benchmarks/faces_selection.py --data DATA/faces --checkpoint MODEL.checkpoint --keypoint left_eye
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from annealed.models.keypoints.detector import KeypointDetector
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.faces.average_precision import pooled
from annealed.pipelines.faces.data import read_faces
from annealed.pipelines.faces.evaluate import evaluate_detector
from annealed.pipelines.faces.training.calibration import calibrate
from annealed.pipelines.faces.training.cascade import rejection_thresholds, with_order
from annealed.pipelines.faces.training.classifier import Job
from annealed.pipelines.faces.training.fitting import fit_rows
from annealed.pipelines.faces.training.settings import TrainingSettings
from annealed.pipelines.faces.training.views import SCALES_PER_OCTAVE
from annealed.vision.windows.feature_pool import FeaturePool


def bootstrap(ours, theirs, n=2000, seed=0):
    """95% interval of the difference in average precision, photographs drawn with replacement."""
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(n):
        drawn = rng.integers(0, len(ours), len(ours))
        first, second = (pooled([judged[i] for i in drawn]).average_precision for judged in (ours, theirs))
        differences.append(first - second)
    return np.quantile(differences, [0.025, 0.975])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train, test and background")
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder that a training left beside its model file")
    parser.add_argument("--keypoint", default="left_eye")
    parser.add_argument("--seeds", type=int, default=3, help="draws of random features")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1500])
    args = parser.parse_args()

    train, test = read_faces(args.data / "train"), read_faces(args.data / "test")
    pool = FeaturePool()
    finished = KeypointDetector.load(args.checkpoint / f"{args.keypoint}.part.safetensors")
    settings = TrainingSettings(**finished.info["made_from"]["settings"])
    job = Job(train, list_images(args.data / "background")[:140], settings, pool, args.checkpoint, print, 1)
    positives, reference, _ = job._first_rows(args.keypoint)
    negatives, _, _ = job._load_rows(args.checkpoint / f"{args.keypoint}.rows.safetensors", args.keypoint)
    patches = np.concatenate([positives.patches, negatives.patches])
    y = np.repeat([1.0, -1.0], [len(positives), len(negatives)])
    print(f"{args.keypoint}: {len(positives)} positive, {len(negatives)} negative windows, {len(test)} photographs", flush=True)

    def judged(k, candidates):
        s = replace(settings, n_features=k)
        model = fit_rows(patches, y, pool, s, seed=[s.seed, 2, s.rounds], features=candidates)
        model = with_order(model, pool, reference.patches, negatives.patches)
        model = rejection_thresholds(model, pool, reference.patches, s.reject, s.reject_margin)
        detector = KeypointDetector({args.keypoint: model}, pool, SCALES_PER_OCTAVE)
        model, _ = calibrate(detector, args.keypoint, job.held_out_views, s.precision)
        detector = KeypointDetector({args.keypoint: model}, pool, SCALES_PER_OCTAVE)
        return evaluate_detector(detector, test, [args.keypoint]).judged

    def report(name, k, found, best=None):
        row = {"keypoint": args.keypoint, "features": name, "k": k}
        for tolerance, label in ((0.05, "ap_5"), (0.1, "ap_10")):
            row[label] = round(pooled(found[args.keypoint, tolerance]).average_precision, 4)
        if best is not None:
            low, high = bootstrap(best[args.keypoint, 0.1], found[args.keypoint, 0.1])
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
