"""Time of LinearChainCRF at the size of Liu et al. (2014), and a comparison with crfsuite on the
same columns.

python benchmarks/crf.py            without data: one gradient and a whole fit
python benchmarks/crf.py DATA       DATA holds sensors_adl, for crfsuite (python-crfsuite)

Times are processor seconds.
"""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from annealed.learners import LinearChainCRF
from annealed.learners.sequences.problem import ChainProblem
from annealed.models.sensors.features import minute_features
from annealed.pipelines.sensors.readers import read_home
from common import new_parser, print_head, print_line, timed

EVERY = {"feature.possible_states": True, "feature.possible_transitions": True}
STRICT = {
    "c1": 0.0,
    "c2": 1.0,
    "max_iterations": 100_000,
    "epsilon": 1e-7,
    "delta": 1e-9,
    "period": 10,
}


def compare(home):
    import pycrfsuite

    minutes, days = home.minutes, home.minutes.days
    first = np.r_[True, days[1:] != days[:-1]]
    X = np.c_[minute_features(minutes, ("on", "start", "last"))[0], np.ones(len(days)), first]
    ours, seconds = timed(
        lambda: LinearChainCRF(2.0, fit_intercept=False).fit(X, minutes.activities, sequence=days)
    )
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
    print_line(
        home.name,
        f"{ours.objective_:.6f}",
        f"{loss:.6f}",
        f"{abs(ours.objective_ / loss - 1):.0e}",
        f"{100 * equal:.3g}%",
        f"{seconds:.2f}",
        f"{theirs_seconds:.2f}",
    )


def paper_size(n_columns):
    """Time one gradient and a whole fit on 270,000 minutes of 188 days with 14 activities.

    40 columns have 560 weights, as in the paper (and 196 transitions); 560 columns have 7,840
    weights.
    """
    rng = np.random.default_rng(0)
    n, n_classes, minutes = 270_000, 14, 1440
    y = np.repeat(rng.integers(n_classes, size=n // 10), 10)
    X = np.empty((n, n_columns))
    class_of_column = np.arange(n_columns) % n_classes
    for rows in np.array_split(np.arange(n), 27):
        X[rows] = rng.random((len(rows), n_columns)) < 0.05 + 0.1 * (
            class_of_column == y[rows, None]
        )
    offsets = np.r_[np.arange(0, n, minutes), n]
    problem = ChainProblem(X, y, n_classes, offsets, np.ones(len(offsets) - 1))
    fit = problem.start()
    problem.value_and_gradient(fit)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        problem.value_and_gradient(fit)
        seconds.append(time.process_time() - start)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, fitted = timed(lambda: LinearChainCRF(tol=1e-6).fit(X, y, lengths=np.diff(offsets)))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"270,000 x 14, {n_columns} columns: one gradient {min(seconds):.2f} s; "
        f"a fit {fitted:.0f} s, {model.n_iter_} iterations"
    )
    print(
        f"  X takes {X.nbytes / 2**20:.0f} MB and the fit {(most - before) / 1024:.0f} MB more, "
        f"{most / 1024:.0f} MB in total at the peak",
        flush=True,
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "data",
        nargs="?",
        type=Path,
        help="folder with sensors_adl, for the comparison with crfsuite (python-crfsuite)",
    )
    data = parser.parse_args(argv).data
    if data is None:
        for n_columns in (40, 560):
            paper_size(n_columns)
        return
    print_head(
        "home",
        "objective",
        "objective of crfsuite",
        "relative difference",
        "equal Viterbi labels",
        "seconds",
        "seconds of crfsuite",
    )
    for name in ("ordonezA", "ordonezB"):
        compare(read_home(data / "sensors_adl", name))


if __name__ == "__main__":
    main()
