"""Image classifiers: learning, saving, evidence; scorers against their estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, Prior, Schedule
from annealed.models import ClassifierSettings, ImageClassifier, load_model
from annealed.models.images.classifier import HEADS, WHOLE
from annealed.models.images.learning import temperature
from annealed.models.images.scorers import AdditiveScorer, MetricScorer
from annealed.vision import PetFeatures, Photograph
from helpers import photographs

N_WORDS = 40


@pytest.fixture(scope="module")
def trained():
    items, labels = photographs(16)
    features = PetFeatures(N_WORDS, side=120, head_side=64, random_state=0)
    return ImageClassifier(
        features, ClassifierSettings(method="both", n_features_to_select=30)
    ).fit(items, labels)


def test_classifier_learns(trained):
    items, labels = photographs(12, first=100)
    assert np.mean(np.array(trained.predict(items)) == labels) >= 0.75
    assert set(trained.scorers) == {WHOLE, HEADS}
    assert len(trained.selected(WHOLE)) == 30 and not any(
        "head" in name for name in trained.selected_names(WHOLE)
    )
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
    # The evidence of windows that extend beyond the image is spread over their inner part.
    assert explained.heat.sum() == pytest.approx(
        sum(value for _, value in explained.contributions), abs=1e-6
    )


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


@pytest.mark.parametrize("method", ["fsa", "piecewise", "sdist", "both", "sdist-sgd"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_methods(table, method, n_classes):
    X, y = table[0][table[1] < n_classes], table[1][table[1] < n_classes]
    scorers = ClassifierSettings(method, n_features_to_select=5).learn(X, y)
    probabilities = np.mean([s.probabilities(X) for s in scorers], axis=0)
    assert (probabilities.argmax(axis=1) == y).mean() > 0.85
    for scorer in scorers:
        kind = type(scorer)
        read = kind.read(
            "file", {f"a.{k}": v for k, v in scorer.arrays().items()}, "a", n_classes, X.shape[1]
        )
        np.testing.assert_array_equal(read.probabilities(X), scorer.probabilities(X))
        with pytest.raises(ValueError, match="damaged"):
            kind.read("file", {f"a.{k}": v for k, v in scorer.arrays().items()}, "a", n_classes, 1)
        if isinstance(scorer, AdditiveScorer):
            baseline = scorer.scores(sp.csr_matrix((1, X.shape[1])))
            np.testing.assert_allclose(
                scorer.scores(X),
                baseline + scorer.model.contributions(X, reference=0.0).sum(axis=1),
                atol=1e-9,
            )


def test_scorers_agree_with_their_estimators(table):
    from annealed.learners import FSAClassifier, SDist

    X, y = table[0].toarray()[table[1] < 2], table[1][table[1] < 2]
    for response in ("linear", "piecewise"):
        fsa = FSAClassifier(4, response=response).fit(X, y)
        scores = AdditiveScorer.of(fsa).scores(X)
        np.testing.assert_allclose(
            scores[:, 1] - scores[:, 0], fsa.decision_function(X), rtol=1e-5, atol=1e-6
        )
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
    with pytest.raises(ValueError, match="only one class"):
        ImageClassifier().fit(items, ["cat"] * 4)
    with pytest.raises(ValueError, match="has only one photograph"):
        ImageClassifier().fit(items, ["cat", "cat", "cat", "dog"])
    with pytest.raises(ValueError, match="method='svm'"):
        ImageClassifier(settings=ClassifierSettings("svm")).fit(items, labels)
    with pytest.raises(ValueError, match="not fitted"):
        ImageClassifier().predict_proba(items)


def test_sparse_columns_are_fitted_as_dense_ones_in_double_precision(table):
    X, y = table
    settings = ClassifierSettings(n_features_to_select=8)
    dense = FSAClassifier(
        8,
        prior=Prior(shrinkage=settings.shrinkage),
        schedule=Schedule(mu=settings.mu, n_steps=settings.n_steps),
        refinement=None,
    ).fit(X.toarray().astype(np.float64), y)
    for columns in (X, X.tocsc(), X.astype(np.float32)):
        (scorer,) = settings.learn(columns, y)
        assert set(scorer.selected) == set(np.flatnonzero(dense.support_))
        np.testing.assert_allclose(scorer.scores(X), AdditiveScorer.of(dense).scores(X), atol=1e-5)
