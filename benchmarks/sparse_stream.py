"""Sparse rows on disk: annealing out of core compared with Vowpal Wabbit with an L1 penalty.

    python benchmarks/sparse_stream.py --rows 100000 --columns 100000

Each row has a hundred ones. Each of twenty true columns is nonzero in a quarter of the rows; the
other ones are placed at random. Both methods read files that were written before, annealing those
of `write_csr`. Vowpal Wabbit makes three passes, with the best of several penalties on a tenth of
the rows; its seconds are given for one run and for all. Prints processor seconds, the peak memory
of a process, the number of nonzero columns and of true columns among them, and the error on 20,000
other rows. Requires vowpalwabbit.
"""

import re
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from annealed.learners import FSAClassifier, on_disk, write_csr
from common import new_parser, print_head, print_line
from scale import status

N_TEST, K, NON_ZERO = 20_000, 20, 100
LARGEST: list[int] = []  # peak memory of each run of Vowpal Wabbit, in bytes
PENALTIES = (0, 1e-7, 1e-6, 1e-5, 1e-4)


def made(n: int, m: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Return the ones, labels and the true columns."""
    rng = np.random.default_rng(0)
    true = np.sort(rng.choice(m, K, replace=False))
    nonzero = rng.random((n, K)) < 0.25
    others = rng.integers(0, m, (n, NON_ZERO - K // 4))
    others = np.where(np.isin(others, true), (others + 1) % m, others)
    rows = np.concatenate([np.repeat(np.arange(n), others.shape[1]), np.nonzero(nonzero)[0]])
    X = sp.coo_matrix(
        (
            np.ones(len(rows), np.float32),
            (rows, np.concatenate([others.ravel(), true[np.nonzero(nonzero)[1]]])),
        ),
        (n, m),
    ).tocsr()
    X.data[:] = 1
    score = nonzero @ np.where(np.arange(K) % 2, -1.0, 1.0)
    return X, np.where(score + 0.5 * rng.standard_normal(n) > 0, 1, -1), true


def write_text(path: Path, X: sp.csr_matrix, y: np.ndarray) -> None:
    names = np.char.mod("%d", X.indices)
    with path.open("w") as file:
        for i, label in enumerate(y):
            file.write(f"{label} | {' '.join(names[X.indptr[i] : X.indptr[i + 1]])}\n")


def vowpal_wabbit(*options: object) -> float:
    """Return the processor seconds of a run in a separate process, which prints its peak memory."""
    code = (
        "import re, sys; from vowpalwabbit import Workspace; "
        "Workspace(' '.join(sys.argv[1:])).finish();"
        "print('VmHWM', *re.findall(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()))"
    )
    start = children_seconds()
    process = subprocess.run(
        [sys.executable, "-c", code, "--quiet", *map(str, options)],
        check=True,
        capture_output=True,
        text=True,
    )
    LARGEST.append(int(process.stdout.split()[-1]) * 1024)
    return children_seconds() - start


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def annealed(here: Path, memory_limit: str) -> tuple[FSAClassifier, float, int]:
    """Return a fit, its processor seconds, and the peak memory of its process."""
    y = np.load(here / "y.npy")
    FSAClassifier(2).fit(on_disk(here / "X.csr")[:1000], y[:1000])  # compiles
    start = time.process_time()
    model = FSAClassifier(K).fit(on_disk(here / "X.csr", memory_limit=memory_limit), y)
    return model, time.process_time() - start, status("status", "VmHWM") * 1024


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--memory-limit", default="50MB", help="memory limit of annealing")
    parser.add_argument("--penalties", type=float, nargs="+", default=PENALTIES)
    a = parser.parse_args(argv)
    print_head("method", "seconds", "memory", "columns", f"true ones of {K}", "test error")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        X, y, true = made(a.rows + N_TEST, a.columns)
        test, test_y = X[a.rows :], y[a.rows :]
        sp.save_npz(here / "X.npz", X[: a.rows], compressed=False)
        write_csr(here / "X.npz", here / "X.csr")
        small, ten = slice(0, a.rows - a.rows // 10), slice(a.rows - a.rows // 10, a.rows)
        for name, rows in (
            ("all", slice(0, a.rows)),
            ("fit", small),
            ("choose", ten),
            ("test", slice(a.rows, None)),
        ):
            write_text(here / name, X[rows], y[rows])
        np.save(here / "y.npy", y[: a.rows])
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            model, seconds, largest = process.submit(annealed, here, a.memory_limit).result()
        memory, error = f"{largest / 1e9:.2f} GB", float((model.predict(test) != test_y).mean())
        print_line(
            "annealing",
            f"{seconds:.1f}",
            memory,
            int(model.support_.sum()),
            int(model.support_[true].sum()),
            f"{error:.4f}",
        )

        def fit(rows, penalty):
            options = (
                "--loss_function",
                "logistic",
                "-b",
                22,
                "--l1",
                penalty,
                "--passes",
                3,
                "--cache_file",
                here / "cache",
                "-k",
            )
            return vowpal_wabbit("-d", here / rows, *options, "-f", here / "model")

        def error_on(rows, labels):
            vowpal_wabbit("-t", "-d", here / rows, "-i", here / "model", "-p", here / "found")
            return float((np.where(np.loadtxt(here / "found") > 0, 1, -1) != labels).mean())

        recovered, total = [], 0.0
        for penalty in a.penalties if len(a.penalties) > 1 else ():
            total += fit("fit", penalty)
            recovered.append(error_on("choose", y[ten]))
        best = a.penalties[int(np.argmin(recovered)) if recovered else 0]
        seconds = fit("all", best)
        vowpal_wabbit(
            "-t", "-d", here / "all", "-i", here / "model", "--invert_hash", here / "weights"
        )
        lines = re.findall(r"^(\d+):\d+:([-+.e\d]+)$", (here / "weights").read_text(), re.MULTILINE)
        weights = {int(name) for name, value in lines if float(value) != 0}
        memory = f"{max(LARGEST) / 1e9:.2f} GB"
        cells = (
            f"{seconds:.1f} ({total + seconds:.1f})",
            memory,
            len(weights),
            len(weights & set(true.tolist())),
        )
        print_line(f"Vowpal Wabbit, --l1 {best:g}", *cells, f"{error_on('test', test_y):.4f}")


if __name__ == "__main__":
    main()
