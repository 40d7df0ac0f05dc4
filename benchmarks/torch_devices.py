"""Fits on torch tensors of each available device, beside the fit in memory.

    python benchmarks/torch_devices.py [--sizes 100000x1000 1000000x1000] [--repeats 3]

Prints for each size, response and device the wall-clock seconds of a fit (median), their ratio to
the fit in memory, whether the selected columns are the same, and the maximum difference of the
decision function, relative to its maximum. On a GPU, one fit of a small table precedes the others,
so that the start of the device is not counted.
"""

import time

import numpy as np
import torch
from annealed.learners import FSAClassifier
from common import new_parser, print_head, print_line

N_COLUMNS = 20


def table(n_rows, n_columns, seed=0):
    """Return float32 columns, and classes that depend on the first 20 of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    score = X[:, :N_COLUMNS] @ rng.uniform(0.5, 1.5, N_COLUMNS)
    return X, score + rng.logistic(size=n_rows) > 0


def fit(X, y, response, repeats):
    """Return the model and the median of the seconds of its fits."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        model = FSAClassifier(N_COLUMNS, response=response).fit(X, y)
        seconds.append(time.perf_counter() - start)
    return model, float(np.median(seconds))


def main(argv=None):
    """Print the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", default=["100000x1000"])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args(argv)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    if "cuda" in devices:
        print(torch.cuda.get_device_name())
    print_head("table", "response", "device", "seconds", "ratio", "same columns", "difference")
    for device in devices:
        X, y = table(1000, 50)
        FSAClassifier(5).fit(torch.from_numpy(X).to(device), y)
    for size in args.sizes:
        X, y = table(*map(int, size.split("x")))
        for response in ("linear", "piecewise"):
            reference, base = fit(X, y, response, args.repeats)
            print_line(size, response, "in memory", f"{base:.2f}", "1.00", "", "")
            expected = reference.decision_function(X[:10_000])
            for device in devices:
                tensor = torch.from_numpy(X).to(device)
                model, seconds = fit(tensor, y, response, args.repeats)
                same = np.array_equal(model.get_support(), reference.get_support())
                score = model.decision_function(X[:10_000])
                difference = abs(score - expected).max() / abs(expected).max()
                cells = f"{seconds:.2f}", f"{seconds / base:.2f}", str(same), f"{difference:.1e}"
                print_line(size, response, f"torch, {device}", *cells)


if __name__ == "__main__":
    main()
