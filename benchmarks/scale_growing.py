"""Stability of the selected columns when the first out-of-core steps read a growing sample of the
rows.

    python benchmarks/scale_growing.py --runs 10

Data: 20,000 x 2,000 numbers in a column-major file with twenty true columns, in three designs; the
memory limit is a tenth of the file. Either the first step reads all rows and the two steps after it
read a quarter and a half of them, or the first two steps read a quarter each, with means and scales
from the first quarter. Prints the number of runs that select the same columns as a fit that reads
all rows, the share of common columns, the share of true columns, and the number of reads of the
whole file.
"""

import tempfile
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier, FSARegressor, Refinement
from annealed.learners.designs.base import moments
from annealed.learners.designs.dense import first_sums
from annealed.learners.designs.out_of_core import BlockDesign, random_part
from common import new_parser, print_head, print_line
from scale_subsample import Counting

N, M, K, PARTS = 20_000, 2_000, 20, 32
SHARES = {
    "all rows": (),
    "from the second step": (1.0, 0.25, 0.5),
    "from the first step": (0.25, 0.25),
}


class Growing(BlockDesign):
    """Patches of a design: shares of the rows by step."""

    shares: tuple = ()
    step = 0
    whole_first_read = BlockDesign._first_read

    def _first_read(self, residual):
        if not Growing.shares or Growing.shares[0] == 1.0:
            return Growing.whole_first_read(self, residual)
        size = self.n_samples // PARTS
        chosen = np.sort(self.random.permutation(PARTS)[: round(PARTS * Growing.shares[0])]) * size
        stretches = [slice(int(start), int(start) + size) for start in chosen]
        scale = self.weight.sum() / sum(self.weight[rows].sum() for rows in stretches)
        m, q = self.n_features, residual.shape[1]
        shift = np.zeros(m, self.source.dtype)
        total, square, product, left = np.zeros(m), np.zeros(m), np.zeros((m, q)), np.zeros(q)
        for number, rows in enumerate(stretches):
            left += residual[rows].sum(axis=0) * scale
            for part in np.array_split(np.arange(m), PARTS):
                block = self.source._empty(size, len(part))
                self.source.read(rows, self.columns[part], block)
                if number == 0:
                    shift[part] = block[0]
                for i in range(q):
                    sums = first_sums(
                        block,
                        shift[part],
                        self.weight[rows] * scale * (i == 0),
                        residual[rows, i] * scale,
                    )
                    total[part] += sums[0]
                    square[part] += sums[1]
                    product[part, i] += sums[2]
        self._moments = moments(total, square, shift)
        product = product + shift[:, None].astype(np.float64) * left
        return self._standardised(
            product[:, None], np.broadcast_to(left / self.n_samples, residual.shape)
        )

    def _some(self, tiles, sample_weight):
        Growing.step += 1
        share = Growing.shares[Growing.step] if Growing.step < len(Growing.shares) else 1.0
        chosen, scale = random_part([rows for rows, _ in tiles], sample_weight, share, self.random)
        return [tiles[i] for i in chosen], sample_weight * scale


def made(design, seed):
    """Return columns, target and true columns."""
    rng = np.random.default_rng(seed)
    if design == "autoregressive 0.9, noise":
        X = rng.standard_normal((N, M)).astype(np.float32)
        for j in range(1, M):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
        true = 9 + 90 * np.arange(K)
        return X, X[:, true].sum(1) + 10 * rng.standard_normal(N) > 0, true
    if design == "independent, 40 % of labels wrong":
        X = rng.standard_normal((N, M)).astype(np.float32)
        true = np.sort(rng.choice(M, K, replace=False))
        return (
            X,
            (X[:, true] @ np.where(np.arange(K) % 2, 1.0, -1.0) > 0) ^ (rng.random(N) < 0.4),
            true,
        )
    X = rng.standard_t(3, (N, M)).astype(np.float32)
    X[:, ::2] = rng.random((N, M // 2)) < rng.choice([0.005, 0.02, 0.1], M // 2)
    true = np.sort(rng.choice(M, K, replace=False))
    return (
        X,
        X[:, true] / X[:, true].std(0) @ rng.uniform(0.5, 1, K) + 20 * rng.standard_normal(N),
        true,
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--runs", type=int, default=10)
    a = parser.parse_args(argv)
    BlockDesign._first_read, BlockDesign._some = Growing._first_read, Growing._some
    print_head(
        "design", "exchanges", "sample", "the same columns", "share of them", "true ones", "reads"
    )
    path = Path(tempfile.mkdtemp()) / "X.bin"
    for design in (
        "autoregressive 0.9, noise",
        "independent, 40 % of labels wrong",
        "rare and heavy-tailed columns, regression",
    ):
        results = {}
        for seed in range(a.runs):
            X, y, true = made(design, seed)
            np.asfortranarray(X).ravel(order="K").tofile(path)
            for exchange in (True, False):
                for sample, Growing.shares in SHARES.items():
                    Growing.step = 0
                    source = Counting(path, 0, X.shape, X.dtype, (4, 4 * N)).set_limits(
                        X.nbytes // 10, 1.0
                    )
                    model = FSAClassifier if y.dtype == bool else FSARegressor
                    model = model(
                        K, random_state=seed, refinement=Refinement(exchange=exchange)
                    ).fit(source, y)
                    columns = model.get_support(indices=True)
                    whole = (
                        results[exchange, "all rows"][-1][0] if sample != "all rows" else columns
                    )
                    cells = (
                        columns,
                        np.isin(columns, whole).mean(),
                        np.isin(columns, true).mean(),
                        source.bytes_read / X.nbytes,
                    )
                    results.setdefault((exchange, sample), []).append(cells)
        for (exchange, sample), runs in results.items():
            share, right, reads = (np.mean([run[i] for run in runs]) for i in (1, 2, 3))
            same = f"{sum(run[1] == 1 for run in runs)} of {a.runs}"
            print_line(
                design,
                "yes" if exchange else "no",
                sample,
                same,
                f"{share:.1%}",
                f"{right:.1%}",
                f"{reads:.2f}",
            )
    path.unlink()


if __name__ == "__main__":
    main()
