"""LinearChainCRF beside crfsuite on the same columns, and one gradient at the size of Liu et al. (2014).

python benchmarks/crf.py DATA          DATA holds sensors_adl; needs python-crfsuite; seconds of processor time
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pycrfsuite
from annealed.learners import LinearChainCRF
from annealed.learners.sequences.problem import ChainProblem
from annealed.models.sensors.features import minute_features
from annealed.pipelines.sensors.readers import read_home

EVERY = {"feature.possible_states": True, "feature.possible_transitions": True}
STRICT = {"c1": 0.0, "c2": 1.0, "max_iterations": 100_000, "epsilon": 1e-7, "delta": 1e-9, "period": 10}


def compare(home):
    minutes, days = home.minutes, home.minutes.days
    first = np.r_[True, days[1:] != days[:-1]]
    X = np.c_[minute_features(minutes, ("on", "start", "last"))[0], np.ones(len(days)), first]
    start = time.process_time()
    ours = LinearChainCRF(1.0, fit_intercept=False).fit(X, minutes.activities, sequence=days)
    seconds = time.process_time() - start
    named = [[f"x{j}" for j in np.flatnonzero(row)] for row in X]
    chunks = np.split(np.arange(len(days)), np.flatnonzero(first)[1:])
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for rows in chunks:
        trainer.append([named[i] for i in rows], minutes.activities[rows].tolist())
    trainer.set_params({**STRICT, **EVERY})
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        trainer.train(f"{folder}/model")
        theirs_seconds = time.process_time() - start
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        theirs = np.concatenate([tagger.tag([named[i] for i in rows]) for rows in chunks])
    equal = (ours.predict(X, sequence=days, method="viterbi") == theirs).mean()
    loss = trainer.logparser.last_iteration["loss"]
    print(f"{home.name}: objective {ours.objective_:.6f}, crfsuite {loss:.6f}, relative {abs(ours.objective_ / loss - 1):.1e}")
    print(f"  equal Viterbi labels {100 * equal:.3f}%; {seconds:.2f} s, crfsuite {theirs_seconds:.2f} s")


def paper_size():
    """270,000 minutes in 188 days, 40 sensors, 14 activities: 560 weights and 196 transitions."""
    rng = np.random.default_rng(0)
    n, n_classes, n_sensors, minutes = 270_000, 14, 40, 1440
    y = np.repeat(rng.integers(n_classes, size=n // 10), 10)
    X = (rng.random((n, n_sensors)) < 0.05 + 0.5 * (np.arange(n_sensors) % n_classes == y[:, None])).astype(float)
    offsets = np.r_[np.arange(0, n, minutes), n]
    problem = ChainProblem(X, y, n_classes, offsets, np.ones(len(offsets) - 1))
    fit = problem.start()
    problem.value_and_gradient(fit)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(3):
        start = time.process_time()
        problem.value_and_gradient(fit)
        seconds.append(time.process_time() - start)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"one gradient at 270,000 x 14 x 40: {min(seconds):.2f} s; X {X.nbytes / 2**20:.0f} MB, {more:.0f} MB more at the peak")


if __name__ == "__main__":
    paper_size()
    for name in ("ordonezA", "ordonezB"):
        compare(read_home(Path(sys.argv[1]) / "sensors_adl", name))
