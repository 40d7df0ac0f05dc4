"""What a command imports, and that few photographs and sequences meet no compiler."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from annealed.pipelines.common import image_folders
from PIL import Image

# Those that take a tenth of a second and more.
HEAVY = {
    "joblib",
    "matplotlib",
    "numba",
    "numpy.ma",
    "pandas",
    "scipy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.spatial",
    "scipy.stats",
    "skimage.io",
    "sklearn",
    "torch",
}
RUN = """
import sys
from annealed.pipelines.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def modules(*arguments, cache=None):
    """What a command has imported, and its output."""
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split()), done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("start")


def test_help_imports_no_numbers(folder):
    loaded, _ = modules("--help")
    assert not loaded & (HEAVY | {"numpy", "cv2", "PIL", "pydantic"})


def test_one_photograph(folder):
    loaded, shown = modules("faces", "detect", "--json", cache=folder / "cache")
    assert loaded & HEAVY == set() and len(json.loads(shown)["faces"]) == 1
    assert not (folder / "cache").exists()
    assert "annealed.pipelines.cli.motion" not in loaded and "PIL.TiffImagePlugin" not in loaded


def test_one_sequence(folder):
    rng = np.random.default_rng(0)
    drift = np.where((np.arange(40) < 20)[:, None], [2.0, 1.0], [-1.0, 3.0])
    tracks = rng.normal(size=(40, 2)) * 50 + np.arange(10)[:, None, None] * drift
    np.savez(folder / "tracks.npz", tracks=tracks)
    loaded, _ = modules(
        "motion", "segment", folder / "tracks.npz", "--json", cache=folder / "cache"
    )
    assert loaded & HEAVY <= {"numpy.ma", "scipy", "scipy.linalg", "scipy.spatial"}


def test_one_animal(folder):
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(
        folder / "cat.png"
    )
    loaded, _ = modules("pets", "classify", folder / "cat.png", "--json", cache=folder / "cache")
    assert loaded & HEAVY <= {"numpy.ma", "scipy"}


def test_a_table(folder):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    table, model = folder / "table.csv", folder / "model.safetensors"
    np.savetxt(
        table, np.column_stack([rows, rows[:, 0] > 0]), delimiter=",", header="a,b,c,y", comments=""
    )
    loaded, _ = modules("select", table, "--target", "y", "-k", 1, "--out", model, "--json")
    assert not loaded & {"numba", "matplotlib", "torch", "cv2"}
    loaded, _ = modules("predict", model, table, "--json")
    assert not loaded & {"numba", "matplotlib", "torch", "cv2", "sklearn"}


def test_few_photographs_by_number_and_size(folder, monkeypatch):
    Image.new("RGB", (100, 50)).save(folder / "small.png")
    small, missing = str(folder / "small.png"), str(folder / "missing.png")
    assert (
        image_folders.are_few([])
        and image_folders.are_few([small] * 8)
        and image_folders.are_few([missing])
    )
    assert not image_folders.are_few([small] * 9)
    monkeypatch.setattr(image_folders, "MAX_FEW_PIXELS", 9_999)
    assert image_folders.are_few([small]) and not image_folders.are_few([small] * 2)
