"""First steps of a user in an installed package: ``python smoke.py learners|vision|no-weights``,
away from the checkout."""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

PART = sys.argv[1]
ANNEALED = Path(sys.executable).with_name("annealed")


def annealed(*words: str, code: int = 0) -> str:
    """Run the command; its exit code must be ``code``. Return stdout, or stderr where it fails."""
    done = subprocess.run([ANNEALED, *words], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stderr if code else done.stdout


def tables() -> None:
    """Five lines of Python, and the command for tables."""
    from annealed.learners import FSAClassifier
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = FSAClassifier(n_features_to_select=5).fit(X, y)
    assert model.get_support().sum() == 5 and model.score(X, y) > 0.95
    X.assign(ill=y).to_csv("table.csv", index=False)
    printed = json.loads(
        annealed(
            "select",
            "table.csv",
            "--target",
            "ill",
            "-k",
            "5",
            "--report",
            "report",
            "--json",
            "--quiet",
        )
    )
    assert len(printed["selected"]) == 5 and Path("report/select.html").is_file()


def sees() -> None:
    """Keypoints of the sample, two motions, a cat."""
    import numpy as np
    from skimage.data import chelsea
    from skimage.io import imsave

    faces = json.loads(annealed("faces", "detect", "--json", "--overlay", "found.png", "--quiet"))
    assert (
        len({d["keypoint"] for d in faces["detections"]}) == 9
        and Path("found.png").stat().st_size > 1000
    )
    rng = np.random.default_rng(0)
    speed = np.where(np.arange(60)[:, None] < 30, [2.0, 1.0], [-1.0, 2.0])
    tracks = (
        rng.uniform(0, 200, (60, 2))
        + np.arange(20)[:, None, None] * speed
        + 0.1 * rng.standard_normal((20, 60, 2))
    )
    np.savez("tracks.npz", tracks=tracks)
    labels = json.loads(
        annealed("motion", "segment", "tracks.npz", "--motions", "2", "--json", "--quiet")
    )["labels"]
    assert sorted(np.bincount(labels).tolist()) == [30, 30]
    imsave("cat.png", chelsea(), check_contrast=False)
    assert (
        json.loads(annealed("pets", "classify", "cat.png", "--json", "--quiet"))["label"] == "cat"
    )


with tempfile.TemporaryDirectory() as folder:
    import os

    os.chdir(folder)
    assert annealed("--version").strip() == f"annealed {version('annealed')}"
    if PART == "no-weights":
        assert "a shipped model (none)" in annealed("faces", "detect", "--quiet", code=2)
    else:
        tables()
    if PART == "vision":
        sees()
    if PART == "learners":
        assert "pip install '.[vision]' in the annealed checkout" in annealed(
            "faces", "detect", code=2
        )
    os.chdir("/")
print(
    PART,
    sys.version.split()[0],
    *(f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "numba")),
)
