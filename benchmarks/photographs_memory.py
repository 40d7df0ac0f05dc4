"""Memory of training an image classifier: synthetic sparse columns in place of photographs.

    python benchmarks/photographs_memory.py [--photographs 25000] [--density 0.25]

The columns are those of 5,000 visual words without head boxes (26,000); the share of nonzero
entries is that of real photographs. The vocabulary needs little memory (300 descriptors, 0.13 MB,
per photograph) and is not included. Prints the peak resident memory.
"""

import resource
import time

import numpy as np
from annealed.models import ClassifierSettings, ImageClassifier
from annealed.vision import PetFeatures, VisualWords
from common import new_parser


class SyntheticFeatures(PetFeatures):
    """Draw columns at random, row by row; the first fifty differ between the classes."""

    def fit(self, X, y=None):
        self.words_ = VisualWords(self.n_words).set_vocabulary(
            np.zeros((self.n_words, 128), np.uint8), np.array([0, self.n_words])
        )
        self.head_words_ = None
        return self

    def row(self, image):
        label, seed = image
        rng = np.random.default_rng(seed)
        n = self.n_whole + 1000
        columns = np.flatnonzero(rng.random(n, dtype=np.float32) < self.density)
        values = np.zeros(n, np.float32)
        values[columns] = rng.random(len(columns), dtype=np.float32) + (columns < 50) * 0.3 * label
        return values / np.linalg.norm(values)


def peak() -> float:
    """Return the peak resident memory in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(n: int, density: float) -> None:
    features = SyntheticFeatures(heads=False)
    features.density = density
    labels = np.arange(n) % 2
    photographs = [(int(label), i) for i, label in enumerate(labels)]
    print(f"{n} photographs, {density:.2f} of 26,000 columns; {peak():.2f} GiB before")
    start = time.process_time()
    model = ImageClassifier(features, ClassifierSettings())
    model.fit(photographs, ["cat" if label else "dog" for label in labels])
    print(
        f"peak {peak():.2f} GiB, {time.process_time() - start:.0f} s of processor time; "
        f"{model.info['whole']}"
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--photographs", type=int, default=25_000)
    parser.add_argument("--density", type=float, default=0.25)
    options = parser.parse_args(argv)
    measure(options.photographs, options.density)


if __name__ == "__main__":
    main()
