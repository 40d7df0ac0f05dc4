"""Effect of reading only a part of the rows in the early steps on the selected features and the
bytes read.

    python benchmarks/scale_subsample.py --rows 3000 --runs 6

The simulated data of the papers are stored in a column-major file, with a memory limit of a tenth
of its size. Prints the share of the true columns that are selected, the number of runs that select
all of them, and the bytes read divided by the file's size.
"""

import tempfile
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier, Refinement
from annealed.learners.sources.raw import RawSource
from annealed_experiments.tables.simulated import simulate
from common import new_parser
from layouts import bytes_of_read


class Counting(RawSource):
    """Counter of the requested bytes."""

    bytes_read = 0

    def read(self, rows, columns, out):
        self.bytes_read += (rows.stop - rows.start) * bytes_of_read(self, columns) // self.shape[0]
        super().read(rows, columns, out)


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("-k", type=int, default=30)
    parser.add_argument("--design", choices=["ar1", "equicorrelated"], default="ar1")
    parser.add_argument("--runs", type=int, default=6)
    a = parser.parse_args(argv)
    path = Path(tempfile.mkdtemp()) / "X.bin"
    for name, exchange in (("refit", False), ("exchanges", True)):
        for share in (1.0, 0.5, 0.2, 0.1, 0.05):
            recovered, read = [], []
            for seed in range(a.runs):
                data = simulate(
                    "classification", a.rows, a.features, a.k, columns=a.design, random_state=seed
                )
                np.asfortranarray(data.X).ravel(order="K").tofile(path)
                source = Counting(path, 0, data.X.shape, data.X.dtype, (4, 4 * a.rows)).set_limits(
                    data.X.nbytes // 10, share
                )
                model = FSAClassifier(
                    a.k, random_state=seed, refinement=Refinement(exchange=exchange)
                )
                recovered.append(data.found(model.fit(source, data.y).get_support(indices=True)))
                read.append(source.bytes_read / data.X.nbytes)
            print(
                f"{name:9s} {share:4.2f} found {np.mean(recovered):.3f} all "
                f"{np.sum(np.equal(recovered, 1))}/{a.runs} reads {np.mean(read):.2f}"
            )
    path.unlink()


if __name__ == "__main__":
    main()
