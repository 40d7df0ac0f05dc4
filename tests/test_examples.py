"""The training scripts on small data in the original formats; each script fits on a screen."""

import runpy
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from annealed.models import load_model
from annealed.pipelines.keypoints.training import stages
from annealed.pipelines.keypoints.training.windows.fitting import TrainingSettings
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from helpers import picture, rigid_motions
from originals import points68, write_pts, write_truth
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run_example(name, *arguments):
    sys.argv = [name, *map(str, arguments)]
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Scripts write into the present folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("train_*.py")), ids=lambda path: path.name)
def test_a_script_is_short(path):
    assert len(path.read_text().splitlines()) < 50


def test_cats_and_dogs(tmp_path, capsys):
    folder = tmp_path / "dogs-vs-cats" / "train"
    folder.mkdir(parents=True)
    for i in range(8):
        for label, drawn in (("cat", "ring"), ("dog", "cross")):
            Image.fromarray(picture(drawn, 2 * i + (label == "dog"))).save(
                folder / f"{label}.{i}.jpg"
            )
    run_example("train_cats_and_dogs.py", folder.parent, 30)
    printed = capsys.readouterr().out
    assert (
        "16 photographs, 0 cannot be read" in printed and "error on 4 other photographs" in printed
    )
    assert (
        load_model("cats_and_dogs.safetensors").classes == ["cat", "dog"]
        and Path("evidence.png").stat().st_size
    )


def test_motion(tmp_path, capsys):
    for i in range(4):
        write_truth(tmp_path / "Hopkins155", f"cars{i}", *rigid_motions(2, 15, 8, seed=i))
    run_example("train_motion.py", tmp_path / "Hopkins155")
    assert "3 sequences to learn from" in capsys.readouterr().out and load_model(
        "motion.safetensors"
    )


LAYOUT = np.array(
    [
        [0.5, -0.4],
        [-0.5, -0.4],
        [0.2, 0.1],
        [-0.2, 0.1],
        [0.35, 0.45],
        [-0.35, 0.45],
        [1.1, -0.3],
        [-1.1, -0.3],
        [0, 1.1],
    ]
)


def painted_face(path, seed):
    """Dots at nine keypoints on a blurred ground, and a file of 68 points beside it."""
    rng = np.random.default_rng(seed)
    pixels = cv2.resize(
        rng.integers(90, 160, (10, 12, 3), dtype=np.uint8),
        (160, 140),
        interpolation=cv2.INTER_CUBIC,
    )
    nine = rng.uniform((65, 50), (95, 75)) + rng.uniform(26, 34) * LAYOUT
    for x, y in nine:
        cv2.circle(pixels, (round(x), round(y)), 4, (10, 10, 10), -1)
    write_pts(path.with_suffix(".pts"), points68(nine))
    cv2.imwrite(str(path), pixels)


def test_faces(tmp_path, capsys, monkeypatch):
    tree = tmp_path / "300W"
    for i in range(24):
        place = ("afw", "helen/trainset", "lfpw/testset")[i % 3]
        painted_face(tree / place / f"{i}_1.png", i)
    shutil.copy(tree / "afw" / "0_1.png", tree / "afw" / "0_2.png")
    shutil.copy(tree / "afw" / "0_1.pts", tree / "afw" / "0_2.pts")
    (tmp_path / "background").mkdir()
    Image.fromarray(picture("ring", 0)).save(tmp_path / "background" / "a.png")
    few = {
        "n_features": 20,
        "first_rows": 300,
        "n_steps": 5,
        "final_steps": 8,
        "n_random": 200,
        "per_round": 100,
        "views_per_round": 8,
    }
    small = replace(stages.DetectorSettings(), held_out=0.25, scan=TrainingSettings(**few))
    pool = FeaturePool(
        kinds={kind: HAAR_KINDS[kind] for kind in ("2h", "2v", "centre")}, sides=(3, 6), hog=None
    )
    monkeypatch.setattr(stages, "DetectorSettings", lambda: small)
    monkeypatch.setattr(stages, "FeaturePool", lambda: pool)
    run_example("train_faces.py", tree, tmp_path / "background", 2, 14, "chin")
    printed = capsys.readouterr().out
    assert (
        "14 photographs to train on, 8 to test" in printed
        and "chin         within 0.10 of the eyes' distance: AP" in printed
    )
    assert list(load_model("faces.safetensors").models) == ["chin"]
