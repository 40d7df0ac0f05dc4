"""A container-like run: the file system read-only but for one folder, no home, nothing compiled
before."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from annealed.pipelines.keypoints.detect import sample_photograph
from helpers import rigid_motions
from PIL import Image

pytestmark = pytest.mark.slow
# In a name space of its own: all of / once more, read-only, but for /out and for /dev, which a
# container has of its own. No home.
INSIDE = """
set -e
mount --rbind / {root}
for place in $(awk -v at={root} 'index($2, at) == 1 && index($2, at "/dev") != 1 {{ print $2 }}' /proc/self/mounts | sort -u); do
  mount -o remount,bind,ro $place 2>/dev/null || true
done
mount --bind {out} {root}{out}
exec env -i PATH="$PATH" HOME=/nowhere TMPDIR=/nowhere PYTHONPATH="$PYTHONPATH" chroot {root} sh -c 'cd {out} && exec "$@"' sh "$@"
"""
FIT = """
import numpy as np
from annealed.learners import FSAClassifier, FSARegressor, SDist
for folder in ("/", {package!r}, "/tmp", "/root"):
    try:
        open(folder + "/annealed-test", "w")
    except OSError:
        continue
    raise SystemExit(folder + " can be written")
X = np.random.default_rng(0).normal(size=(30_000, 80))
y = X[:, 3] > X[:, 5]
print(FSAClassifier(2).fit(X, y).get_support(indices=True).tolist())
print(FSARegressor(2, response="piecewise").fit(X, X[:, 3] - X[:, 5]).get_support(indices=True).tolist())
print(SDist(n_steps=5).fit(X[:300, :8], y[:300]).predict(X[:300, :8]).shape)
"""


@pytest.fixture
def container(tmp_path):
    """A function that runs Python inside; skips where no name space can be made."""
    root, out = tmp_path / "root", tmp_path / "out"
    root.mkdir()
    out.mkdir()

    def run(*words):
        script = INSIDE.format(root=root, out=out)
        command = [
            "unshare",
            "--mount",
            "--map-root-user",
            "sh",
            "-c",
            script,
            "sh",
            sys.executable,
            *map(str, words),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)

    if shutil.which("unshare") is None or run("-c", f"open({str(out / 'x')!r}, 'w')").returncode:
        pytest.skip("needs unshare and the right to make name spaces of mounts")
    return out, run


def said(done):
    """Lines on stderr, but for that on compiling."""
    return [
        line
        for line in done.stderr.splitlines()
        if not line.startswith("annealed: compiling (first run only")
    ]


def one_line(done):
    """None, or what is wrong with what a command said."""
    lines = said(done)
    return (
        f"exit code {done.returncode}: {done.stderr[-400:]}" if done.returncode or lines else None
    )


def test_a_read_only_container(tally, container):
    out, run = container
    rng = np.random.default_rng(0)
    Image.fromarray(sample_photograph()).save(out / "a.png")
    tracks, labels = rigid_motions(n_points=20, n_frames=10)
    np.savez(out / "t.npz", tracks=tracks, labels=labels)
    X = rng.normal(size=(300, 6))
    pd.DataFrame(X, columns=list("abcdef")).assign(y=X[:, 1] - X[:, 4]).to_csv(
        out / "t.csv", index=False
    )
    package = os.path.dirname(__import__("annealed").__file__)
    kind, main = "read-only container", ("-m", "annealed.pipelines.cli")
    done = run(
        "-c",
        (
            "import annealed.learners, annealed.vision, annealed.models; "
            "annealed.learners.FSAClassifier; print(1)"
        ),
    )
    tally.note(kind, "import", one_line(done) or (None if done.stdout == "1\n" else done.stdout))
    done = run("-c", FIT.format(package=package))
    tally.note(
        kind,
        "fits",
        one_line(done) or (None if done.stdout == "[3, 5]\n[3, 5]\n(300,)\n" else done.stdout),
    )
    commands = {
        "faces detect": ("faces", "detect", "a.png", "--overlay", "o.png", "--json"),
        "faces detect, again": ("faces", "detect", "a.png", "--json"),
        "motion segment": ("motion", "segment", "t.npz", "--motions", "2", "--json"),
        "pets classify": ("pets", "classify", "a.png", "--json"),
        "select": (
            "select",
            "t.csv",
            "--target",
            "y",
            "-k",
            "2",
            "--out",
            "m.safetensors",
            "--json",
        ),
        "predict": ("predict", "m.safetensors", "t.csv", "--json"),
        "models list": ("models", "list", "--json"),
    }
    for name, words in commands.items():
        done = run(*main, *words)
        failure = one_line(done)
        if failure is None:
            failure = (
                None
                if all(json.loads(line) for line in done.stdout.splitlines()) and done.stdout
                else "no answer"
            )
        if failure is None and "detect" in name and json.loads(done.stdout)["seconds"] > 5:
            failure = (
                f"{json.loads(done.stdout)['seconds']} s: what compiling took is counted "
                "as detection"
            )
        tally.note(kind, name, failure)
    # Where it may not write: one line, and nothing is left.
    for name, words in {
        "overlay": ("faces", "detect", "a.png", "--overlay", "/o.png"),
        "model": ("select", "t.csv", "--target", "y", "-k", "2", "--out", "/m.safetensors"),
        "report": ("motion", "evaluate", "--data", ".", "--report", "/report"),
    }.items():
        done = run(*main, *words)
        good = done.returncode == 2 and len(said(done)) == 1
        tally.note(
            kind,
            f"{name} that cannot be written",
            None if good else f"{done.returncode}: {done.stderr[-300:]}",
        )
    left = {path.name for path in out.iterdir()} - {
        "x",
        "a.png",
        "o.png",
        "t.npz",
        "t.csv",
        "m.safetensors",
    }
    tally.note(kind, "nothing else is written", f"{left}" if left else None)
    tally.check(kind)
