"""Ten speed measurements of the documentation, tracked by asv from commit to commit.

Data are simulated here. The warm-up calls of asv compile the code.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def classes(n: int, m: int, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Return normal columns (n, m), and two classes (n,) that ten of them predict."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, m)).astype(dtype)
    return X, (X[:, :10].sum(axis=1) + rng.standard_normal(n) > 0).astype(int)


class Fits:
    """Time in seconds of fits."""

    timeout = 300

    def setup(self) -> None:
        from annealed.learners import FSAClassifier, FSAPath, FSARegressor
        from sklearn.datasets import load_breast_cancer

        self.X, self.y = classes(10_000, 1000)
        self.small = load_breast_cancer(return_X_y=True)
        rng = np.random.default_rng(1)
        self.words = sp.random_array((5000, 20_000), density=0.005, format="csr", rng=rng)
        self.of_words = (self.words[:, :50].sum(axis=1) > 0).astype(int)
        self.classifier, self.regressor, self.path = (
            FSAClassifier(30),
            FSARegressor(30),
            FSAPath(FSAClassifier(), [5, 10, 20, 30]),
        )
        self.of_small = FSAClassifier(10)

    def time_classification(self) -> None:
        """Classify 10,000 x 1,000, k = 30."""
        self.classifier.fit(self.X, self.y)

    def time_regression(self) -> None:
        """Fit a numeric target on the same data."""
        self.regressor.fit(self.X, self.y.astype(float))

    def time_path(self) -> None:
        """Fit four sizes from one path."""
        self.path.fit(self.X, self.y)

    def time_sparse_words(self) -> None:
        """Fit 5,000 x 20,000 sparse values, one in 200 nonzero."""
        self.classifier.fit(self.words, self.of_words)

    def time_small(self) -> None:
        """Fit 569 x 30, k = 10."""
        self.of_small.fit(*self.small)


class Memory:
    """Peak memory of a fit, in bytes."""

    def setup(self) -> None:
        self.X, self.y = classes(10_000, 2000)

    def peakmem_classification(self) -> None:
        """Fit 10,000 x 2,000 float32 (80 MB), k = 30."""
        from annealed.learners import FSAClassifier

        FSAClassifier(30).fit(self.X, self.y)


class Vision:
    """Time in seconds for a photograph and for tracks, after loading."""

    timeout = 300

    def setup(self) -> None:
        import cv2
        from annealed.models import load_model
        from skimage.data import astronaut

        self.image = cv2.resize(astronaut(), (640, 480))
        self.detector, self.ranker = load_model("faces"), load_model("motion")
        rng = np.random.default_rng(0)
        start, motion = (
            rng.uniform(0, 300, (200, 2)),
            np.repeat([[3.0, 1.0], [-2.0, 2.0]], 100, axis=0),
        )
        frames = np.arange(20.0)[:, None, None]
        self.tracks = start + frames * motion + 0.1 * rng.standard_normal((20, 200, 2))

    def time_detection(self) -> None:
        """Detect nine keypoints in a photograph of 640 x 480."""
        self.detector.find(self.image)

    def time_motion(self) -> None:
        """Segment 200 tracks of two motions."""
        self.ranker.segment(self.tracks)


class Commands:
    """Time in seconds of whole processes."""

    timeout = 300

    def setup(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.table = Path(self.folder.name) / "table.csv"
        X, y = classes(500, 20)
        names = ",".join([*(f"x{i}" for i in range(20)), "y"])
        np.savetxt(
            self.table,
            np.column_stack([X, y]),
            delimiter=",",
            header=names,
            comments="",
            fmt="%.6g",
        )

    def teardown(self) -> None:
        self.folder.cleanup()

    def time_help(self) -> None:
        """Run ``annealed --help``."""
        self.run("--help")

    def time_select(self) -> None:
        """Run ``annealed select`` on 500 x 20."""
        self.run("select", str(self.table), "--target", "y", "-k", "5", "--quiet")

    def run(self, *words: str) -> None:
        """Run a command and discard its output."""
        subprocess.run(
            [sys.executable, "-m", "annealed.pipelines.cli", *words],
            check=True,
            stdout=subprocess.DEVNULL,
        )
