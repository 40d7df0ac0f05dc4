"""LMNN of metric-learn for the tables of ``annealed reproduce sdist-simulated`` and ``sdist-real``, in an environment of its own.

    python benchmarks/lmnn.py CHECKPOINT [--seconds S] [--data DIR]

metric-learn 0.7 needs scikit-learn < 1.6, which this package does not support; so this script imports neither the package nor anything
newer. It writes LMNN's cells into the checkpoint that ``annealed reproduce ... --checkpoint`` reads, with the same rows, scaling and
votes. A cell whose fit takes more than S seconds of processor time is given up, and with it all larger ones.
"""

import argparse
import json
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from metric_learn import LMNN
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1] / "pipelines" / "reproduce"))
from metric_data import NOISE_SCALE, VOTES, load_set, random_split, simulated_case

SEEDS = range(3)


class TooLong(Exception):
    """A fit took more than its share of processor time."""


def give_up(*_):
    """Handle the timer's signal."""
    raise TooLong


def measure(standardize, votes, X, y, X_test, y_test, limit):
    """Error of a vote of the nearest rows in LMNN's metric, and processor seconds of the fit."""
    steps = [StandardScaler()] if standardize else []
    model = make_pipeline(*steps, LMNN(n_neighbors=3, random_state=0), KNeighborsClassifier(votes))
    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    return {"error": float(np.mean(model.predict(X_test) != y_test)), "seconds": seconds}


def cells(data):
    """All cells, small ones first: (size, key, standardize, votes, function that makes the rows)."""
    for n, p in sorted([(n, p) for n in (100, 500, 5000) for p in (50, 500, 1000)], key=lambda s: s[0] * s[1] ** 2):
        for case in ("xor", "rings"):
            for scale in (NOISE_SCALE, 1.0):
                for seed in SEEDS:
                    key = {"case": case, "noise_scale": scale, "N": n, "p": p, "method": "LMNN", "seed": seed, "votes": VOTES}
                    yield (n, p), key, False, VOTES, lambda c=case, n=n, p=p, s=seed, w=scale: simulated_case(c, n, p, s, noise_scale=w)
    for name in ("ionosphere",):
        X, y, X_test, y_test = load_set(name, data)
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        for seed in SEEDS:
            yield X.shape, {"data": name, "method": "LMNN", "seed": seed}, True, 3, lambda seed=seed, X=X, y=y: random_split(X, y, seed)


def main():
    """Make the missing cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--data", default="../shared/data")
    given = parser.parse_args()
    known = {line.split(', {"error"')[0] for line in given.checkpoint.read_text().splitlines()} if given.checkpoint.exists() else set()
    too_long = []
    for (n, p), key, standardize, votes, rows in cells(given.data):
        head = "[" + json.dumps(key, sort_keys=True)
        if head in known or any(n >= m and p >= q for m, q in too_long):
            continue
        try:
            value = measure(standardize, votes, *rows(), given.seconds)
        except TooLong:
            too_long.append((n, p))
            print(f"given up: {key}", flush=True)
            continue
        with given.checkpoint.open("a") as file:
            file.write(f"{head}, {json.dumps(value, sort_keys=True)}]\n")


if __name__ == "__main__":
    main()
