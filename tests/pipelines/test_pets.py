"""Dense SIFT, visual words, the columns of photographs, image classifiers and ``annealed pets``, on pictures drawn here."""

import json
import runpy
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import scipy.sparse as sp
from annealed.models import ClassifierSettings, ImageClassifier, load_model
from annealed.models.images.classifier import HEADS, WHOLE, temperature
from annealed.models.images.scorers import AdditiveScorer, MetricScorer
from annealed.pipelines.pets import report as pets_report
from annealed.pipelines.pets.data import read_pets, usable
from annealed.vision import DenseSift, PetFeatures, Photograph, VisualWords, colour_histogram
from annealed.vision.words.visual_words import nearest_centres, rooted
from helpers import run
from PIL import Image
from sklearn.base import clone

N_WORDS = 40


def picture(label, seed, shape=(90, 120)):
    """Noise, with rings for one class and crosses for the other."""
    rng = np.random.default_rng(seed)
    image = cv2.GaussianBlur(rng.integers(60, 190, (*shape, 3)).astype(np.uint8), (0, 0), 2.0)
    for _ in range(4):
        x, y = (int(rng.integers(15, side - 15)) for side in (shape[1], shape[0]))
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        if label == "ring":
            cv2.circle(image, (x, y), 9, colour, 3)
        else:
            cv2.line(image, (x - 9, y), (x + 9, y), colour, 3)
            cv2.line(image, (x, y - 9), (x, y + 9), colour, 3)
    return image


def photographs(n, heads=True, first=0):
    labels = ["ring", "cross"] * (n // 2)
    box = (20, 10, 80, 70) if heads else None
    return [Photograph(picture(label, first + i), box) for i, label in enumerate(labels)], labels


@pytest.fixture(scope="module")
def trained():
    items, labels = photographs(16)
    features = PetFeatures(N_WORDS, side=120, head_side=64, random_state=0)
    return ImageClassifier(features, ClassifierSettings(method="both", n_features_to_select=30)).fit(items, labels)


@pytest.fixture(scope="module")
def described():
    return [DenseSift(step=10).describe(picture("ring", seed)) for seed in range(3)]


# -- dense SIFT -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size, shape", [(2.0, (61, 83)), (5.5, (61, 83)), (13.0, (40, 90))])
def test_sift_is_opencvs(size, shape):
    image = picture("cross", 1, shape)
    ours = DenseSift(sizes=(size,), step=7).describe(image)
    keypoints = [cv2.KeyPoint(float(x), float(y), size, 0.0) for x, y in ours.positions]
    found, theirs = cv2.SIFT_create().compute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), keypoints)
    assert len(found) == len(keypoints)
    difference = np.abs(theirs - ours.values.astype(np.float32))
    assert difference.max() <= 2 and difference.mean() < 0.02  # OpenCV's angles and exponentials are approximate


def test_sift_of_the_mirror_image():
    image = picture("ring", 2, (60, 81))
    mirrored = DenseSift(step=10).describe(image[:, ::-1])
    ours = DenseSift(step=10).describe(image).mirrored()
    by_place = {(x, y, s): v.astype(int) for (x, y), s, v in zip(mirrored.positions, mirrored.sizes, mirrored.values)}
    for (x, y), s, value in zip(ours.positions, ours.sizes, ours.values):
        assert np.abs(by_place[x, y, s] - value).max() <= 1


def test_sift_grid_is_centred_and_flat_images_are_zero():
    described = DenseSift(sizes=(4.0,), step=8).describe(np.full((1, 30, 3), 9, np.uint8))
    np.testing.assert_array_equal(described.positions[:, 0], [2, 10, 18, 26])
    assert not described.values.any()


@pytest.mark.parametrize("bad", [{"sizes": ()}, {"sizes": (0.0,)}, {"step": 0}, {"sigma": 0.5}])
def test_sift_refuses(bad):
    with pytest.raises(ValueError, match="expected"):
        DenseSift(**bad)


# -- words ----------------------------------------------------------------------------------------------------------------


def test_words_are_the_nearest(described):
    words = VisualWords(50, n_probes=7, random_state=0).fit(described)
    values = described[0].values
    exact = nearest_centres(rooted(values), words.words_.astype(np.float32) / 255)
    np.testing.assert_array_equal(words.assign(values), exact)  # all cells are searched
    few = clone(words).set_params(n_probes=3).fit(described).assign(values)
    assert (few == exact).mean() > 0.9


def test_word_counts(described):
    words = VisualWords(30, mirror=False, power=1.0, random_state=0).fit(described)
    assigned, quarters = words.assign(described[0].values), described[0].quarters()
    counts = words.counts(described[0])
    assert counts[:30].sum() == len(assigned)
    np.testing.assert_array_equal(counts[30:].reshape(4, 30).sum(axis=0), counts[:30])
    assert counts[30 + 2 * 30 + assigned[-1]] == ((assigned == assigned[-1]) & (quarters == 2)).sum()
    X = words.transform(described)
    assert sp.issparse(X) and X.shape == (3, 150)
    np.testing.assert_allclose(sp.linalg.norm(X, axis=1), 1.0, rtol=1e-6)
    assert words.get_feature_names_out()[37] == "word 7 top left"


def test_mirrored_images_have_the_same_words(described):
    words = VisualWords(30, random_state=0).fit(described)
    ours, mirrored = (words.counts(d) for d in (described[0], described[0].mirrored()))
    np.testing.assert_array_equal(ours, mirrored)


def test_vocabulary_is_repeatable_and_takes_generators(described):
    first = VisualWords(30, random_state=3).fit(described).words_
    np.testing.assert_array_equal(first, VisualWords(30, random_state=3).fit(d for d in described).words_)


@pytest.mark.parametrize(
    "bad, what", [({"n_words": 10**6}, "descriptors"), ({"n_words": 0}, "n_words=0"), ({"power": 2}, "power=2")]
)
def test_words_refuse(described, bad, what):
    with pytest.raises(ValueError, match=what):
        VisualWords(**bad).fit(described)


# -- columns of photographs -----------------------------------------------------------------------------------------------


def test_colour_histogram():
    image = np.array([[[255, 0, 128], [0, 26, 25]]], np.uint8)
    found = colour_histogram(image)
    assert found.shape == (1000,) and found.sum() == 2 and found[905] == 1 and found[10] == 1


def test_columns_are_named(trained):
    features = trained.features
    names = features.get_feature_names_out()
    assert len(names) == len(set(names)) == 6 * N_WORDS + 1000
    assert names[5 * N_WORDS] == "head word 0" and names[-1] == "colour 9 9 9"
    X = features.transform(photographs(2)[0] + photographs(2, heads=False)[0])
    assert sp.issparse(X) and X.dtype == np.float32
    heads = X[:, 5 * N_WORDS : 6 * N_WORDS]
    assert heads[:2].nnz and not heads[2:].nnz


def test_size_of_a_photograph_hardly_matters(trained):
    image = picture("ring", 5)
    large = cv2.resize(image, None, fx=2, fy=2, interpolation=cv2.INTER_LINEAR)
    small, doubled = (trained.features.row(Photograph(im)) for im in (image, large))
    assert small @ doubled > 0.85 * (small @ small)


@pytest.mark.parametrize("box", [(0, 0, 200, 50), (-9, 0, 50, 50), (30, 30, 20, 50), (float("nan"), 0, 5, 5)])
def test_boxes_outside_are_refused(trained, box):
    with pytest.raises(ValueError, match="head box"):
        trained.features.row(Photograph(picture("ring", 1), box))


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (7, 5)])
def test_tiny_images_have_columns(trained, shape):
    row = trained.features.row(Photograph(np.full((*shape, 3), 7, np.uint8)))
    assert np.isfinite(row).all()


# -- classifiers ----------------------------------------------------------------------------------------------------------


def test_classifier_learns(trained):
    items, labels = photographs(12, first=100)
    assert np.mean(np.array(trained.predict(items)) == labels) >= 0.75
    assert set(trained.scorers) == {WHOLE, HEADS}
    assert len(trained.selected(WHOLE)) == 30 and not any("head" in name for name in trained.selected_names(WHOLE))
    probabilities = trained.predict_proba([*items[:2], Photograph(items[0].image)])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.isfinite(probabilities).all()


def test_saved_classifier_is_the_same(trained, tmp_path):
    items, _ = photographs(4, first=50)
    path = tmp_path / "model.safetensors"
    trained.save(path)
    loaded = load_model(path)
    assert isinstance(loaded, ImageClassifier) and loaded.info[WHOLE] == trained.info[WHOLE]
    np.testing.assert_array_equal(loaded.predict_proba(items), trained.predict_proba(items))
    loaded.save(tmp_path / "again.safetensors")
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        load_model(path)


def test_evidence_adds_up(trained):
    item = photographs(2, first=70)[0][0]
    explained = trained.explain(item)
    assert explained.label in trained.classes and explained.heat.shape == explained.image.shape[:2]
    sizes = [abs(value) for _, value in explained.contributions]
    assert sizes == sorted(sizes, reverse=True)
    # With windows that stick out of the image nothing is lost: their evidence is spread over what is inside.
    assert explained.heat.sum() == pytest.approx(sum(value for _, value in explained.contributions), abs=1e-6)


def test_words_are_found_where_they_lie(trained):
    item = photographs(2)[0][0]
    columns, windows = trained.occurrences(item)
    X = trained.features.transform([item])
    assert set(columns.tolist()) == {int(c) for c in X.indices if c < 6 * N_WORDS}
    heads = windows[columns >= 5 * N_WORDS]
    assert (heads[:, 0] >= 20).all() and (heads[:, 0] <= 80).all() and (heads[:, 1] <= 70).all()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = rng.random((120, 30)).astype(np.float32)
    X[np.arange(120), y] += 1.0
    X[X < 0.2] = 0
    return sp.csr_matrix(X), y


@pytest.mark.parametrize("method", ["fsa", "piecewise", "sdist", "both"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_methods(table, method, n_classes):
    X, y = table[0][table[1] < n_classes], table[1][table[1] < n_classes]
    scorers = ClassifierSettings(method, n_features_to_select=5).learn(X, y)
    probabilities = np.mean([s.probabilities(X) for s in scorers], axis=0)
    assert (probabilities.argmax(axis=1) == y).mean() > 0.85
    for scorer in scorers:
        kind = type(scorer)
        read = kind.read("file", {f"a.{k}": v for k, v in scorer.arrays().items()}, "a", n_classes, X.shape[1])
        np.testing.assert_array_equal(read.probabilities(X), scorer.probabilities(X))
        with pytest.raises(ValueError, match="damaged"):
            kind.read("file", {f"a.{k}": v for k, v in scorer.arrays().items()}, "a", n_classes, 1)
        if isinstance(scorer, AdditiveScorer):
            baseline = scorer.scores(sp.csr_matrix((1, X.shape[1])))
            np.testing.assert_allclose(
                scorer.scores(X), baseline + scorer.model.contributions(X, reference=0.0).sum(axis=1), atol=1e-9
            )


def test_scorers_agree_with_their_estimators(table):
    from annealed.learners import FSAClassifier, SDist

    X, y = table[0].toarray()[table[1] < 2], table[1][table[1] < 2]
    for response in ("linear", "piecewise"):
        fsa = FSAClassifier(4, response=response).fit(X, y)
        scores = AdditiveScorer.of(fsa).scores(X)
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], fsa.decision_function(X), rtol=1e-5, atol=1e-6)
    sdist = SDist(max_order=2, n_steps=20, kappa=3).fit(X.astype(float), y)
    scorer = MetricScorer.of(sdist, X.astype(float), y)
    np.testing.assert_allclose(scorer.transform(X), sdist.transform(X.astype(float)), atol=1e-9)
    assert (scorer.probabilities(X).argmax(axis=1) == sdist.predict(X.astype(float))).all()
    assert all(a != b for a, b in scorer.pairs())


def test_temperature():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 2))
    y = (rng.random(4000) < 1 / (1 + np.exp(-(scores[:, 1] - scores[:, 0])))).astype(int)
    assert temperature(5 * scores, y) == pytest.approx(5, rel=0.15)


def test_unusable_training(trained):
    items, labels = photographs(4)
    with pytest.raises(ValueError, match="one class only"):
        ImageClassifier().fit(items, ["cat"] * 4)
    with pytest.raises(ValueError, match="has one photograph"):
        ImageClassifier().fit(items, ["cat", "cat", "cat", "dog"])
    with pytest.raises(ValueError, match="method='svm'"):
        ImageClassifier(settings=ClassifierSettings("svm")).fit(items, labels)
    with pytest.raises(ValueError, match="not trained"):
        ImageClassifier().predict_proba(items)


# -- the command line -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One subfolder per class, and the same pictures with labels.csv."""
    root = tmp_path_factory.mktemp("pets")
    lines = ["image,label,breed,head_xmin,head_ymin,head_xmax,head_ymax,split"]
    for i, label in enumerate(["ring", "cross"] * 7):
        (root / "classes" / label).mkdir(parents=True, exist_ok=True)
        path = root / "classes" / label / f"{i:02d}.png"
        Image.fromarray(picture(label, i)).save(path)
        lines.append(f"../classes/{label}/{i:02d}.png,{label},b{i % 2},20,10,80,70,{'train' if i < 10 else 'test'}")
    (root / "table").mkdir()
    (root / "table" / "labels.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def model_file(folders):
    out = folders / "model.safetensors"
    result = run("pets", "train", "--data", folders / "table", "--out", out, "--words", 60, "--select", 40)
    assert result.exit_code == 0, result.output
    assert "cross-validated error" in result.stderr
    return out


def test_train_without_heads_says_so(folders, tmp_path):
    out = tmp_path / "own.safetensors"
    result = run("pets", "train", "--data", folders / "classes", "--out", out, "--words", 30, "--select", 20)
    assert result.exit_code == 0 and "the head's words are left out" in result.stderr
    model = load_model(out)
    assert model.classes == ["cross", "ring"] and set(model.scorers) == {WHOLE}


def test_classify(folders, model_file, tmp_path):
    image = folders / "classes" / "ring" / "12.png"
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    picture_file = tmp_path / "evidence.png"
    result = run("pets", "classify", image, "--model", model_file, "--json", "--overlay", picture_file)
    record = json.loads(result.stdout)
    assert result.exit_code == 0 and set(record) == {"image", "label", "probability"} and picture_file.stat().st_size
    result = run("pets", "classify", bad, image, "--model", model_file, "--json")
    assert result.exit_code == 2 and "error" in json.loads(result.stdout.splitlines()[0]) and str(bad) in result.stderr
    assert json.loads(result.stdout.splitlines()[1]) == record


def test_evaluate_and_report(folders, model_file, tmp_path, monkeypatch):
    for name, small in (("N_WORDS", 3), ("N_PAIRS", 1), ("N_PATCHES", 2), ("N_EXPLAINED", 2)):
        monkeypatch.setattr(pets_report, name, small)
    report = tmp_path / "report"
    result = run("pets", "evaluate", "--data", folders / "table", "--model", model_file, "--json", "--report", report)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["name"] == "pets evaluate" and record["settings"]["test"] == 4
    methods = {(row["heads"], row["method"]) for row in record["rows"]}
    assert {("with", "model (fsa)"), ("without", "linear SVM"), ("without", "5 nearest neighbours"), ("with", "both")} <= methods
    names = {path.name for path in report.iterdir()}
    assert {"table.md", "results.json", "words_whole.png", "evidence_heads.png", "component_whole.png"} <= names


def test_bad_folders(folders, tmp_path):
    out = tmp_path / "never.safetensors"
    (tmp_path / "empty").mkdir()
    (tmp_path / "one" / "cats").mkdir(parents=True)
    Image.fromarray(picture("ring", 0)).save(tmp_path / "one" / "cats" / "a.png")
    for data, what in (("empty", "no photographs"), ("one", "one class only"), ("missing", "no such folder")):
        result = run("pets", "train", "--data", tmp_path / data, "--out", out)
        assert result.exit_code == 2 and what in result.stderr and result.stderr.count("\n") == 1
    assert not out.exists()
    assert run("pets", "train", "--data", folders / "classes", "--out", out, "--method", "svm").exit_code == 2
    assert "faces" in run("pets", "classify", "x.png", "--model", "faces").stderr


def test_one_damaged_photograph_is_named_and_skipped(folders, tmp_path):
    lines = (folders / "table" / "labels.csv").read_text().splitlines()[:7]
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 broken")
    rows = [line.replace("../classes", str(folders / "classes")) for line in lines]
    rows += ["broken.jpg,ring,,,,,,train", rows[1].replace(",20,10,80,70,", ",20,10,800,70,")]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "model.safetensors"
    result = run("pets", "train", "--data", tmp_path, "--out", out, "--words", 30, "--select", 10, "--quiet")
    assert result.exit_code == 2 and out.exists()
    assert len(result.stderr.splitlines()) == 2 and "broken.jpg" in result.stderr and "outside its image" in result.stderr


def test_official_tree(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "annotations" / "xmls").mkdir(parents=True)
    for name in ("Bengal_1", "pug_2"):
        Image.fromarray(picture("ring", 0)).save(tmp_path / "images" / f"{name}.jpg")
    (tmp_path / "annotations" / "list.txt").write_text("#Image CLASS-ID SPECIES BREED\nBengal_1 1 1 1\npug_2 2 2 2\n")
    (tmp_path / "annotations" / "trainval.txt").write_text("Bengal_1 1 1 1\n")
    (tmp_path / "annotations" / "test.txt").write_text("pug_2 2 2 2\n")
    box = "<bndbox><xmin>5</xmin><ymin>6</ymin><xmax>50</xmax><ymax>60</ymax></bndbox>"
    (tmp_path / "annotations" / "xmls" / "Bengal_1.xml").write_text(f"<annotation><object>{box}</object></annotation>")
    files, errors = usable(read_pets(tmp_path), 120)
    assert not errors and [(f.label, f.split, f.breed) for f in files] == [("cat", "train", "Bengal"), ("dog", "test", "pug")]
    assert files[0].head == (5, 6, 50, 60) and files[1].head is None


def test_digits_example(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits.py", str(tmp_path)])
    runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "digits.py"))
    printed = capsys.readouterr().out
    assert "with 20 of 64 pixels" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"digits_component.png", "digits_pixels.png"}
