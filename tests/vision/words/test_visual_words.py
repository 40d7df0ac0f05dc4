"""Visual words of synthetic images."""

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.vision import DenseSift, VisualWords
from annealed.vision.words.estimators import nearest_centres
from annealed.vision.words.visual_words import rooted
from helpers import picture
from sklearn.base import clone


@pytest.fixture(scope="module")
def described():
    return [DenseSift(step=10).describe(picture("ring", seed)) for seed in range(3)]


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
    assert (
        counts[30 + 2 * 30 + assigned[-1]] == ((assigned == assigned[-1]) & (quarters == 2)).sum()
    )
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
    np.testing.assert_array_equal(
        first, VisualWords(30, random_state=3).fit(d for d in described).words_
    )


@pytest.mark.parametrize(
    "bad, what",
    [({"n_words": 10**6}, "descriptors"), ({"n_words": 0}, "n_words=0"), ({"power": 2}, "power=2")],
)
def test_words_refuse(described, bad, what):
    with pytest.raises(ValueError, match=what):
        VisualWords(**bad).fit(described)
