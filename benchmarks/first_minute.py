"""Processor seconds of the first calls, each in a fresh interpreter with an empty cache: imports,
fits and detection; and of whole commands, run for the first and the second time.

python benchmarks/first_minute.py [--runs 5] [--python OTHER/bin/python] [CASE ...]
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from common import new_parser, print_head, print_line

FIT = """
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
rng = np.random.RandomState(0)
X = rng.standard_normal((200, 50)); f = X[:, 0] + X[:, 1]; y = f > 0
"""
DETECT = """
from annealed.models import load_model
from skimage.data import astronaut
image = astronaut(); detector = load_model("faces")
"""
MOTION = """
import numpy as np
from annealed.models import load_model
rng = np.random.RandomState(0)
drift = np.where((np.arange(60) < 30)[:, None], [2.0, 1.0], [-1.0, 3.0])
tracks = rng.standard_normal((60, 2)) * 50 + np.arange(20)[:, None, None] * drift + 0.1 * rng.standard_normal((20, 60, 2))
ranker = load_model("motion")
"""
PETS = """
from annealed.models import load_model
from annealed.vision import Photograph
from skimage.data import astronaut
classifier = load_model("pets"); photographs = [Photograph(astronaut())]
"""
LEARNER = "from annealed.learners import {0}"
PAMI = """
from scipy.signal import lfilter
e = rng.standard_normal(({0}, 1000)); e[:, 1:] *= np.sqrt(1 - 0.81)
A = lfilter([1.0], [1.0, -0.9], e, axis=1).astype(np.float32); b = np.where(A[:, 9:100:10].sum(axis=1) > 0, 1, -1)
"""
CASES = {  # code before timing, the import, the call
    "import sklearn.feature_selection": ("", "import sklearn.feature_selection", "pass"),
    "import annealed": ("", "import annealed", "pass"),
    "import FSAClassifier": ("", LEARNER.format("FSAClassifier"), "pass"),
    "fit 200 x 50": (FIT, LEARNER.format("FSAClassifier"), "FSAClassifier(5).fit(X, y)"),
    "fit breast_cancer": (
        FIT + "d = load_breast_cancer(return_X_y=True)",
        LEARNER.format("FSAClassifier"),
        "FSAClassifier(5).fit(*d)",
    ),
    "fit diabetes": (
        FIT + "d = load_diabetes(return_X_y=True)",
        LEARNER.format("FSARegressor"),
        "FSARegressor(5).fit(*d)",
    ),
    "fit 1000 x 1000, PAMI (17)": (
        FIT + PAMI.format(1000),
        LEARNER.format("FSAClassifier"),
        "FSAClassifier(10).fit(A, b)",
    ),
    "fit 4000 x 1000": (
        FIT + PAMI.format(4000),
        LEARNER.format("FSAClassifier"),
        "FSAClassifier(10).fit(A, b)",
    ),
    "fit 200 x 50, piecewise": (
        FIT,
        LEARNER.format("FSAClassifier"),
        "FSAClassifier(5, response='piecewise').fit(X, y)",
    ),
    "ranker": (
        FIT + "q = np.repeat(np.arange(20), 10)",
        LEARNER.format("FSARanker"),
        "FSARanker(5).fit(X, np.digitize(f, [-1, 1]), qid=q)",
    ),
    "path": (FIT, LEARNER.format("FSAClassifierCV"), "FSAClassifierCV().fit(X, y)"),
    "sDist 200 x 10": (FIT, LEARNER.format("SDist"), "SDist().fit(X[:, :10], y)"),
    "FoBa": (
        FIT,
        LEARNER.format("ForwardBackwardClassifier"),
        "ForwardBackwardClassifier(5).fit(X, y)",
    ),
    "FOBOS": (FIT, LEARNER.format("FOBOSClassifier"), "FOBOSClassifier(random_state=0).fit(X, y)"),
    "detection": (DETECT, "pass", "detector.detect(image)"),
    "motion": (MOTION, "pass", "ranker.segment(tracks)"),
    "pets": (PETS, "pass", "classifier.predict_proba(photographs)"),
}
FILES = """
import numpy as np
from PIL import Image
from skimage.data import astronaut
rng = np.random.RandomState(0)
X = rng.standard_normal((500, 20))
np.savetxt("table.csv", np.column_stack([X, X[:, 0] > X[:, 1]]), delimiter=",", header=",".join("abcdefghijklmnopqrsty"), comments="")
drift = np.where((np.arange(200) < 100)[:, None], [2.0, 1.0], [-1.0, 3.0])
np.savez("tracks.npz", tracks=rng.standard_normal((200, 2)) * 50 + np.arange(20)[:, None, None] * drift)
Image.fromarray(astronaut()).save("photograph.png")
"""
COMMANDS = {
    "annealed --help": "--help",
    "annealed faces detect": "faces detect photograph.png --json",
    "annealed motion segment, 200 tracks": "motion segment tracks.npz --json",
    "annealed pets classify": "pets classify photograph.png --json",
    "annealed select, 500 x 20": "select table.csv --target y -k 5 --json",
}
PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
before, importing, call = json.loads(sys.argv[1])
if {early}:
    exec(before)
start = time.process_time(); exec(importing); imported = time.process_time() - start
exec("" if {early} else before)
times = []
for _ in range(2):
    start = time.process_time(); exec(call); times.append(time.process_time() - start)
print(json.dumps([imported, *times]))
"""


def run(command, folder):
    """Return the output of a command on one thread, in a folder that also holds the compiled
    code."""
    threads = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1")
    environment = {
        **os.environ,
        **threads,
        "NUMBA_CACHE_DIR": f"{folder}/cache",
        "ANNEALED_QUIET": "1",
    }
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:80]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def seconds_of(command, folder):
    """Return the processor seconds of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(python, case):
    """Return the seconds of the import, of the first and of the second call; for a command, those
    of the whole process in the first and the second run."""
    with tempfile.TemporaryDirectory() as folder:
        if case in COMMANDS:
            run([python, "-c", FILES], folder)
            command = [python, "-m", "annealed.pipelines.cli", *COMMANDS[case].split()]
            return [0.0, seconds_of(command, folder), seconds_of(command, folder)]
        early = not CASES[case][0].startswith(
            FIT
        )  # the data of a fit may load modules that its import would load
        return json.loads(
            run(
                [python, "-c", PROGRAM.format(early=early), json.dumps(CASES[case])], folder
            ).splitlines()[-1]
        )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"cases to time, from: {'; '.join([*COMMANDS, *CASES])}",
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="Python interpreter of another installation, for comparison",
    )
    options = parser.parse_args(argv)
    print_head("call", "import", "first call", "second call")
    for case in options.cases or [*COMMANDS, *CASES]:
        runs = [measure(options.python, case) for _ in range(options.runs)]
        row = [f"{statistics.median(column):.3f}" for column in zip(*runs, strict=True)]
        calls = (
            ["", *row[1:]]
            if case in COMMANDS
            else row
            if CASES[case][2] != "pass"
            else [row[0], "", ""]
        )
        print_line(case, *calls)


if __name__ == "__main__":
    main()
