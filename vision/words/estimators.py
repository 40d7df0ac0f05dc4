"""Transformers that learn a vocabulary of visual words by two-level k-means."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Self

import numpy as np
from sklearn.utils import check_random_state

from ...learners.parameters import check_declared
from ...learners.sklearn_bases import BaseEstimator, TransformerMixin
from .dense_sift import N_VALUES, Descriptors
from .pet_features import PetColumns, Photograph
from .visual_words import CODE, ImageRows, WordCounts, rooted

_BLOCK = 4096  # descriptors per matrix product
_COARSE_STEPS, _FINE_STEPS = 15, 8  # k-means steps on the first and second levels


def nearest_centres(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the index (int32) of the centre that is nearest to each point.

    The centre c nearest to a point x maximises ``x @ c - c @ c / 2``, which is computed by matrix
    products.
    """
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    nearest = np.empty(len(points), np.int32)
    for start in range(0, len(points), _BLOCK):
        nearest[start : start + _BLOCK] = (
            points[start : start + _BLOCK] @ centres.T - half
        ).argmax(axis=1)
    return nearest


def lloyd(points: np.ndarray, centres: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the centres after some steps of k-means; a centre without points is unchanged."""
    for _ in range(n_steps):
        labels = nearest_centres(points, centres)
        counts = np.bincount(labels, minlength=len(centres))
        present = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[present])[:-1]])
        sums = np.add.reduceat(points[np.argsort(labels, kind="stable")], starts, axis=0)
        centres = centres.copy()
        centres[present] = sums / counts[present, None]
    return centres


def shares(counts: np.ndarray, total: int) -> np.ndarray:
    """Divide ``total`` into integers proportional to ``counts`` by the largest remainder method.

    No integer exceeds the corresponding count, provided that ``total`` is at most their sum.

    Examples
    --------
    >>> shares(np.array([1, 10, 29]), 8)
    array([0, 2, 6])
    """
    exact = counts / counts.sum() * total
    whole = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: total - whole.sum()]] += 1
    return whole


class _Transformer(TransformerMixin, BaseEstimator):
    transform = ImageRows.transform  # defined here, so that scikit-learn wraps it for set_output

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "words_")


class VisualWords(_Transformer, WordCounts):
    """Transformer that converts images to normalised frequencies of visual words [1]_.

    Words are counted in the whole image and in its four quarters [2]_. They are learnt by two-level
    k-means on the square roots of SIFT descriptors [3]_: the descriptors are divided into cells,
    and each cell is divided into words.

    Parameters
    ----------
    n_words : int, default 5000
        Size of the vocabulary.
    spatial : bool, default True
        Whether to also compute the frequencies in the four quarters of the image.
    mirror : bool, default True
        Whether to count the words in both the image and its mirror image, since the class of an
        object usually does not depend on the direction that it faces.
    power : float, default 0.25
        Power in (0, 1] to which counts are raised before each row is scaled to length 1. A power
        below 1 prevents a texture that fills the image from dominating.
    n_probes : int, default 8
        Number of nearest cells in which the word nearest to a descriptor is searched for. There are
        about sqrt(``n_words``) cells. Searching more cells is slower but more accurate. With 8 of
        about 70 cells (the default), 99% of the descriptors are assigned to their nearest word.
    descriptors_per_image : int, default 300
        Number of descriptors that are drawn at random from each image to learn the vocabulary.
    lloyd_steps : int, default 1
        Number of steps of k-means on the whole vocabulary after two-level k-means.
    random_state : int, RandomState or None, default None
        Random seed for sampling descriptors and for clustering.

    Attributes
    ----------
    words_ : ndarray of shape (n_words, 128), uint8
        Words, sorted by cell: square roots of descriptors of length 1, multiplied by 255.
    cell_starts_ : ndarray of shape (n_cells + 1,), int64
        Index of the first word of each cell, followed by the number of words.

    References
    ----------
    .. [1] J. Sivic, A. Zisserman, "Video Google: a text retrieval approach to object matching in
           videos", International Conference on Computer Vision (2003).
    .. [2] S. Lazebnik, C. Schmid, J. Ponce, "Beyond bags of features: spatial pyramid matching for
           recognizing natural scene categories", Computer Vision and Pattern Recognition (2006).
    .. [3] R. Arandjelovic, A. Zisserman, "Three things everyone should know to improve object
           retrieval", Computer Vision and Pattern Recognition (2012).

    Examples
    --------
    >>> from sklearn.datasets import load_sample_images
    >>> from annealed.vision import DenseSift, VisualWords
    >>> described = [DenseSift(step=16).describe(image) for image in load_sample_images().images]
    >>> VisualWords(100, random_state=0).fit_transform(described).shape
    (2, 500)
    """

    def fit(self, X: Iterable[Descriptors], y: None = None) -> Self:
        """Learn the vocabulary.

        Parameters
        ----------
        X : iterable of Descriptors
            Descriptors of each image. A generator saves memory, since images are processed one at a
            time.
        y : None
            Ignored.

        Returns
        -------
        VisualWords
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter is out of range, or there are fewer descriptors than words.
        """
        check_declared(self)
        rng = check_random_state(self.random_state)
        drawn = []
        for image in X:
            rows = rng.permutation(len(image.values))[: self.descriptors_per_image]
            drawn.append(image.values[np.sort(rows)])
        values = np.concatenate(drawn) if drawn else np.empty((0, N_VALUES), np.uint8)
        if len(values) < self.n_words:
            raise ValueError(
                f"n_words={self.n_words} exceeds the {len(values)} descriptors sampled "
                f"from {len(drawn)} images; use fewer words or more images"
            )
        points = rooted(values)
        words = lloyd(points, self._two_levels(points, rng), self.lloyd_steps)
        n_cells = max(1, round(np.sqrt(self.n_words)))
        cells = lloyd(words, words[rng.permutation(len(words))[:n_cells]], _COARSE_STEPS)
        labels = nearest_centres(words, cells)
        self.words_ = np.rint(words[np.argsort(labels, kind="stable")] * CODE).astype(np.uint8)
        counts = np.bincount(labels, minlength=n_cells)
        return self.set_vocabulary(
            self.words_, np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64)
        )

    def _two_levels(self, points: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Cluster the points into sqrt(n_words) cells, and each cell into its share of the
        words."""
        n_clusters = max(1, round(np.sqrt(self.n_words)))
        start = points[rng.permutation(len(points))[:n_clusters]]
        labels = nearest_centres(points, lloyd(points, start, _COARSE_STEPS))
        members = [points[labels == c] for c in range(n_clusters)]
        n_of_words = shares(np.array([len(m) for m in members]), self.n_words)
        return np.concatenate(
            [
                lloyd(mine, mine[rng.permutation(len(mine))[:n]], _FINE_STEPS)
                for mine, n in zip(members, n_of_words)
                if n
            ]
        )


class PetFeatures(_Transformer, PetColumns):
    """Transformer that converts photographs to frequencies of visual words and colours.

    The columns are the frequencies of visual words in the whole image and its four quarters, those
    of visual words in the head, and a joint colour histogram. With 5,000 words, there are 25,000 +
    5,000 + 1,000 = 31,000 columns, as in Ma (2017) [1]_. The whole image and the head have
    separate vocabularies. The columns of the head are zero for photographs without a head box. Each
    of these three groups of columns is scaled to length 1.

    Parameters
    ----------
    n_words : int, default 5000
        Size of each vocabulary.
    heads : bool, default True
        Whether to compute the columns of the head.
    side : int, default 400
        Length, in pixels, to which the longer side of each photograph is resized, since descriptors
        have a fixed size.
    head_side : int, default 128
        Side, in pixels, of the square to which the head is resized.
    random_state : int, RandomState or None, default None
        Random seed for learning the vocabularies.

    Attributes
    ----------
    words_ : VisualWords
        Vocabulary of the whole image.
    head_words_ : VisualWords or None
        Vocabulary of the head; None if ``heads`` is False.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), section 4.1.2.

    Examples
    --------
    >>> from sklearn.datasets import load_sample_images
    >>> from annealed.vision import PetFeatures, Photograph
    >>> head = (100, 100, 200, 200)
    >>> photographs = [Photograph(image, head=head) for image in load_sample_images().images]
    >>> PetFeatures(n_words=50, random_state=0).fit_transform(photographs).shape
    (2, 1300)
    """

    def fit(self, X: Sequence[Photograph], y: None = None) -> Self:
        """Learn the vocabularies.

        Parameters
        ----------
        X : sequence of Photograph
            Training photographs.
        y : None
            Ignored.

        Returns
        -------
        PetFeatures
            The fitted transformer.

        Raises
        ------
        ValueError
            If there are fewer descriptors than words, or ``heads`` is set and no photograph has a
            head box.
        """
        self.words_ = VisualWords(self.n_words, random_state=self.random_state).fit(
            self.each(self.describe, X)
        )
        self.head_words_ = None
        if self.heads:
            descriptors = (d for d in self.each(self.describe_head, X) if d is not None)
            if (first := next(descriptors, None)) is None:
                raise ValueError(
                    "none of the photographs has a head box; provide at least one, or use "
                    "heads=False"
                )
            head_words = VisualWords(self.n_words, spatial=False, random_state=self.random_state)
            self.head_words_ = head_words.fit(chain([first], descriptors))
        return self
