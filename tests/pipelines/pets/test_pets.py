"""``annealed pets`` on synthetic pictures."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from annealed.models import load_model
from annealed.models.images.classifier import WHOLE
from annealed.models.images.learning import ALL_COLUMNS
from annealed.pipelines.pets import report as pets_report
from annealed.pipelines.pets.data import read_pets, usable
from helpers import picture, run
from PIL import Image


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One subfolder per class, and the same pictures with labels.csv."""
    root = tmp_path_factory.mktemp("pets")
    lines = ["image,label,breed,head_xmin,head_ymin,head_xmax,head_ymax,split"]
    for i, label in enumerate(["ring", "cross"] * 7):
        (root / "classes" / label).mkdir(parents=True, exist_ok=True)
        path = root / "classes" / label / f"{i:02d}.png"
        Image.fromarray(picture(label, i)).save(path)
        split = "train" if i < 10 else "test"
        lines.append(f"../classes/{label}/{i:02d}.png,{label},b{i % 2},20,10,80,70,{split}")
    (root / "table").mkdir()
    (root / "table" / "labels.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def model_file(folders):
    out = folders / "model.safetensors"
    result = run(
        "pets", "train", "--data", folders / "table", "--out", out, "--words", 60, "--select", 40
    )
    assert result.exit_code == 0, result.output
    assert "cross-validated error" in result.stderr
    return out


def test_train_without_heads_says_so(folders, tmp_path):
    out = tmp_path / "own.safetensors"
    result = run(
        "pets", "train", "--data", folders / "classes", "--out", out, "--words", 30, "--select", 20
    )
    assert result.exit_code == 0 and "head words are not used" in result.stderr
    model = load_model(out)
    assert model.classes == ["cross", "ring"] and set(model.scorers) == {WHOLE}


def test_classify(folders, model_file, tmp_path):
    image = folders / "classes" / "ring" / "12.png"
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    picture_file = tmp_path / "evidence.png"
    result = run(
        "pets", "classify", image, "--model", model_file, "--json", "--overlay", picture_file
    )
    record = json.loads(result.stdout)
    assert (
        result.exit_code == 0
        and set(record) == {"image", "label", "probability"}
        and picture_file.stat().st_size
    )
    result = run("pets", "classify", bad, image, "--model", model_file, "--json")
    assert (
        result.exit_code == 1
        and "error" in json.loads(result.stdout.splitlines()[0])
        and str(bad) in result.stderr
    )
    assert json.loads(result.stdout.splitlines()[1]) == record


def test_evaluate_and_report(folders, model_file, tmp_path, monkeypatch):
    for name, small in (("N_WORDS", 3), ("N_PAIRS", 1), ("N_PATCHES", 2), ("N_EXPLAINED", 2)):
        monkeypatch.setattr(pets_report, name, small)
    monkeypatch.setitem(ALL_COLUMNS, "n_steps", 2)
    report = tmp_path / "report"
    result = run(
        "pets",
        "evaluate",
        "--data",
        folders / "table",
        "--model",
        model_file,
        "--json",
        "--report",
        report,
    )
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["name"] == "pets evaluate" and record["settings"]["test"] == 4
    methods = {(row["heads"], row["method"]) for row in record["rows"]}
    assert {
        ("with", "model (fsa)"),
        ("without", "linear SVM"),
        ("without", "5 nearest neighbours"),
        ("with", "both"),
        ("without", "sdist-sgd, order 2"),
    } <= methods
    names = {path.name for path in report.iterdir()}
    assert {
        "table.md",
        "results.json",
        "words_whole.png",
        "evidence_heads.png",
        "component_whole.png",
    } <= names


def test_bad_folders(folders, tmp_path):
    out = tmp_path / "never.safetensors"
    (tmp_path / "empty").mkdir()
    (tmp_path / "one" / "cats").mkdir(parents=True)
    Image.fromarray(picture("ring", 0)).save(tmp_path / "one" / "cats" / "a.png")
    for data, what in (
        ("empty", "no photographs"),
        ("one", "only one class"),
        ("missing", "no such folder"),
    ):
        result = run("pets", "train", "--data", tmp_path / data, "--out", out)
        assert result.exit_code == 2 and what in result.stderr and result.stderr.count("\n") == 1
    assert not out.exists()
    assert (
        run(
            "pets", "train", "--data", folders / "classes", "--out", out, "--method", "svm"
        ).exit_code
        == 2
    )
    assert "faces" in run("pets", "classify", "x.png", "--model", "faces").stderr


def test_one_damaged_photograph_is_named_and_skipped(folders, tmp_path):
    lines = (folders / "table" / "labels.csv").read_text().splitlines()[:7]
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 broken")
    rows = [line.replace("../classes", str(folders / "classes")) for line in lines]
    rows += ["broken.jpg,ring,,,,,,train", rows[1].replace(",20,10,80,70,", ",20,10,800,70,")]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "model.safetensors"
    result = run(
        "pets", "train", "--data", tmp_path, "--out", out, "--words", 30, "--select", 10, "--quiet"
    )
    assert result.exit_code == 1 and out.exists()
    assert (
        len(result.stderr.splitlines()) == 2
        and "broken.jpg" in result.stderr
        and "extends beyond its image" in result.stderr
    )


def test_names_as_kaggles(tmp_path):
    """Dogs vs. Cats: the folder that holds train/ and test1/, and train/ itself."""
    for name in (
        "train/cat.0.jpg",
        "train/cat.10.jpg",
        "train/cat.2.jpg",
        "train/dog.0.jpg",
        "test1/1.jpg",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(picture("ring", 0)).save(tmp_path / name)
    for folder in (tmp_path, tmp_path / "train"):
        files = read_pets(folder)
        assert [f.path.name for f in files] == ["cat.0.jpg", "cat.2.jpg", "cat.10.jpg", "dog.0.jpg"]
        assert [f.label for f in files] == ["cat", "cat", "cat", "dog"] and not any(
            f.split or f.head for f in files
        )
    result = run(
        "pets", "train", "--data", tmp_path / "test1", "--out", tmp_path / "model.safetensors"
    )
    assert result.exit_code == 2 and "CLASS.NUMBER.jpg" in result.stderr


def test_official_tree(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "annotations" / "xmls").mkdir(parents=True)
    for name in ("Bengal_1", "pug_2"):
        Image.fromarray(picture("ring", 0)).save(tmp_path / "images" / f"{name}.jpg")
    (tmp_path / "annotations" / "list.txt").write_text(
        "#Image CLASS-ID SPECIES BREED\nBengal_1 1 1 1\npug_2 2 2 2\n"
    )
    (tmp_path / "annotations" / "trainval.txt").write_text("Bengal_1 1 1 1\n")
    (tmp_path / "annotations" / "test.txt").write_text("pug_2 2 2 2\n")
    box = "<bndbox><xmin>5</xmin><ymin>6</ymin><xmax>50</xmax><ymax>60</ymax></bndbox>"
    (tmp_path / "annotations" / "xmls" / "Bengal_1.xml").write_text(
        f"<annotation><object>{box}</object></annotation>"
    )
    files, errors = usable(read_pets(tmp_path), 120)
    assert not errors and [(f.label, f.split, f.breed) for f in files] == [
        ("cat", "train", "Bengal"),
        ("dog", "test", "pug"),
    ]
    assert files[0].head == (5, 6, 50, 60) and files[1].head is None


def test_digits_example(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits.py", str(tmp_path)])
    runpy.run_path(str(Path(__file__).resolve().parents[3] / "examples" / "digits.py"))
    printed = capsys.readouterr().out
    assert "with 15 of 64 pixels" in printed
    assert {path.name for path in tmp_path.iterdir()} == {
        "digits_component.png",
        "digits_pixels.png",
    }
