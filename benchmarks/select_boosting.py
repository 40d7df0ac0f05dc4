"""`annealed select` compared with LightGBM's default fit on 100,000 rows of 50 columns, 20 of which
are categories, with missing values.

    pip install lightgbm
    OMP_NUM_THREADS=1 python benchmarks/select_boosting.py [--rows 100000] [--seed 0]

Both read the same CSV file in a separate process with one thread; the ROC AUC is that of 20,000
other rows. Six numeric columns and four categories have an effect; in the second table, so have a
product and a curve.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from common import measure_command, new_parser, print_head, print_line
from sklearn.metrics import roc_auc_score

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
BOOSTING = """
import sys
import lightgbm
import pandas as pd

train, test = (pd.read_csv(path) for path in sys.argv[1:3])
words = [name for name in train if train[name].dtype.kind not in "if" and name != "target"]
train[words], test[words] = train[words].astype("category"), test[words].astype("category")
for name in words:
    test[name] = test[name].cat.set_categories(train[name].cat.categories)
model = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1).fit(train.drop(columns="target"), train["target"] == "yes")
pd.Series(model.predict_proba(test.drop(columns="target"))[:, 1]).to_csv(sys.argv[3], index=False)
"""


def table(n, seed, bent):
    """Return a table and its target."""
    rng, weights = np.random.default_rng(seed), np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((n, 30)), columns=[f"x{j}" for j in range(30)])
    line = frame.iloc[:, :6].to_numpy() @ weights.normal(0, 0.5, 6)
    for j in range(20):
        levels, effects = (
            np.array([f"level {i}" for i in range(3 + j)]),
            weights.normal(0, 0.6, 3 + j),
        )
        drawn = rng.integers(0, 3 + j, n)
        frame[f"k{j}"] = levels[drawn]
        line = line + (effects[drawn] if j < 4 else 0.0)
    if bent:
        line = line + 0.7 * frame["x0"] * frame["x1"] + 1.5 * (np.abs(frame["x6"]) > 1.5)
    frame["target"] = np.where(rng.random(n) < 1 / (1 + np.exp(-line)), "yes", "no")
    return frame.mask(rng.random(frame.shape) < 0.02 * (frame.columns != "target"))


def measure(command):
    """Return the processor seconds and the peak memory in GiB of a command on one thread."""
    peak, seconds, _ = measure_command(list(map(str, command)), ENVIRONMENT)
    return seconds, peak / 2**30


def main(argv=None):
    """Print a table."""
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    print_head("table", "method", "columns", "ROC AUC", "processor seconds", "GiB")
    for name, bent in (("sums of effects", False), ("with a product and a step", True)):
        with tempfile.TemporaryDirectory() as folder:
            train, test, out, model = (
                Path(folder) / file
                for file in ("train.csv", "test.csv", "out.csv", "model.safetensors")
            )
            table(args.rows, args.seed, bent).to_csv(train, index=False)
            held = table(20_000, args.seed + 1000, bent)
            held.to_csv(test, index=False)
            truth = held["target"] == "yes"
            annealed = [sys.executable, "-m", "annealed.pipelines.cli"]
            for response in ("linear", "piecewise"):
                words = [
                    "select",
                    train,
                    "--target",
                    "target",
                    "-k",
                    "10",
                    "--response",
                    response,
                    "--out",
                    model,
                    "--quiet",
                ]
                used = measure([*annealed, *words])
                measure([*annealed, "predict", model, test, "--allow-empty", "--out", out])
                scores = pd.read_csv(out)["probability of yes"]
                print_line(
                    name,
                    f"`annealed select -k 10 --response {response}`",
                    10,
                    f"{roc_auc_score(truth, scores):.4f}",
                    *(f"{u:.2f}" for u in used),
                )
                model.unlink(), out.unlink()
            used = measure([sys.executable, "-c", BOOSTING, train, test, out])
            scores = pd.read_csv(out).iloc[:, 0]
            print_line(
                name,
                "LightGBM, default settings",
                50,
                f"{roc_auc_score(truth, scores):.4f}",
                *(f"{u:.2f}" for u in used),
            )


if __name__ == "__main__":
    main()
