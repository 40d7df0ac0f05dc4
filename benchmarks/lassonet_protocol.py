"""LassoNet's protocol: selection of 50 columns, and the error of extremely randomised trees on
them, compared with LassoNet itself.

    python benchmarks/lassonet_protocol.py --data DIR [--tables usps warpAR10P]
        [--methods annealed LassoNet all] [--splits 5] [--path-multiplier 1.1]

I. Lemhadri, F. Ruan, L. Abraham, R. Tibshirani, "LassoNet: A neural network with feature sparsity",
JMLR 22 (2021). DIR holds ``usps/usps_zip.npz``, which has its own test part, and
``tables/NAME.npz``, a fifth of which is held out, ``--splits`` times. LassoNet (the package
``lassonet``, with torch) has M = 10 and one hidden layer of a third of the columns, the narrowest
that its authors try; it follows its path to the first model of at most 50 columns, and selects the
50 columns that remained longest. Its penalty grows by ``--path-multiplier`` per step (the package's
default of 1.02 takes five times as many steps as 1.1). Columns are standardised; times are
processor seconds of the selection alone on one thread.
"""

import contextlib
import time
import warnings
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier
from common import new_parser
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

K = 50


class Enough(Exception):
    """Raised when the path has reached K columns."""


def annealed(X, y, _):
    return np.flatnonzero(FSAClassifier(K).fit(X, y).support_)


def lassonet(X, y, path_multiplier):
    import torch
    from lassonet import LassoNetClassifier

    torch.set_num_threads(1)
    model = LassoNetClassifier(
        hidden_dims=(X.shape[1] // 3,),
        M=10,
        path_multiplier=path_multiplier,
        verbose=0,
        random_state=0,
        torch_seed=0,
        device="cpu",
    )
    # number of models on the path that use a column; columns dropped together are ordered by
    # weight, largest first
    stayed = np.zeros(X.shape[1])

    def stop(_, history):
        selected = history[-1].selected.numpy()
        stayed[selected] = np.floor(stayed[selected]) + 1
        if selected.sum() <= K:
            raise Enough
        weight = model.model.skip.weight.detach().norm(dim=0).numpy()
        stayed[selected] += 0.5 * weight[selected] / weight.max()

    with contextlib.suppress(Enough):
        model.path(X.astype(np.float32), y, callback=stop)
    return np.sort(np.argsort(-stayed, kind="stable")[:K])


METHODS = {"annealed": annealed, "LassoNet": lassonet, "all": lambda X, y, _: np.arange(X.shape[1])}


def splits(data, name, count):
    """Yield standardised training and test parts."""
    if name == "usps":
        table = np.load(data / "usps" / "usps_zip.npz")
        parts = [(table["X_train"], table["digit_train"], table["X_test"], table["digit_test"])]
    else:
        table = np.load(data / "tables" / f"{name}.npz")
        X, y = table["X"], np.unique(table["y"], return_inverse=True)[1]
        cut = [
            train_test_split(X, y, test_size=0.2, stratify=y, random_state=i) for i in range(count)
        ]
        parts = [(train, label, test, truth) for train, test, label, truth in cut]
    for train, label, test, truth in parts:
        scaler = StandardScaler().fit(train)
        yield scaler.transform(train), label, scaler.transform(test), truth


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=["usps", "warpAR10P"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--path-multiplier", type=float, default=1.1)
    args = parser.parse_args(argv)
    for name in args.tables:
        for method in args.methods:
            errors, columns, seconds = [], [], []
            for X, y, Z, truth in splits(args.data, name, args.splits):
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    chosen = METHODS[method](X, y, args.path_multiplier)
                seconds.append(time.process_time() - start)
                columns.append(len(chosen))
                for seed in range(5):
                    trees = ExtraTreesClassifier(100, random_state=seed).fit(X[:, chosen], y)
                    errors.append(100 * np.mean(trees.predict(Z[:, chosen]) != truth))
            print(
                f"{name}, {method}: error {np.mean(errors):.1f}% on {np.mean(columns):.0f} "
                "columns, "
                f"{np.median(seconds):.2f} s a fit, {len(columns)} splits",
                flush=True,
            )


if __name__ == "__main__":
    main()
