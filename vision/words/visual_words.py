"""Visual words: a vocabulary of descriptors by two-level k-means, and images as frequencies of
words in spatial bins."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .dense_sift import N_VALUES, Descriptors

_BLOCK = 4096  # descriptors per matrix product
_CODE = 255.0  # words are stored as bytes: rooted descriptors lie in [0, 1]
_COARSE_STEPS, _FINE_STEPS = 15, 8  # of k-means on the first and second level
BINS = ("", "top left", "top right", "bottom left", "bottom right")


def rooted(descriptors: np.ndarray) -> np.ndarray:
    """Square roots of descriptors, of length 1 (float32): between them Euclidean distances are
    Hellinger distances.

    From Arandjelovic and Zisserman (2012); the reference is that of :class:`VisualWords`.
    """
    roots = np.sqrt(descriptors, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", roots, roots))
    roots /= np.maximum(lengths, 1e-6)[:, None]
    return roots


def nearest_centres(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Nearest centre of each point (int32), by matrix products over blocks of points: argmin d^2 =
    argmax x'c - c'c / 2."""
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    found = np.empty(len(points), np.int32)
    for start in range(0, len(points), _BLOCK):
        found[start : start + _BLOCK] = (points[start : start + _BLOCK] @ centres.T - half).argmax(axis=1)
    return found


def lloyd(points: np.ndarray, centres: np.ndarray, n_steps: int) -> np.ndarray:
    """Centres after so many steps of k-means; a centre without points stays where it is."""
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
    """Whole numbers that sum to ``total``, in proportion to ``counts`` and never above them
    (largest remainders).

    Examples
    --------
    >>> shares(np.array([1, 10, 29]), 8)
    array([0, 2, 6])
    """
    exact = counts / counts.sum() * total
    whole = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: total - whole.sum()]] += 1
    return whole


def sparse_rows(rows: Iterable[np.ndarray], n_columns: int) -> sp.csr_matrix:
    """Join rows to a sparse matrix.

    The values grow in place. Joining many small matrices would take the memory twice, and much of
    theirs would not be given back.

    Parameters
    ----------
    rows : iterable of ndarray of shape (n_columns,)
        Read once, one at a time.
    n_columns : int

    Returns
    -------
    CSR matrix of shape (n_rows, n_columns), float32

    Examples
    --------
    >>> sparse_rows(iter([np.array([0.0, 2.0]), np.array([1.0, 0.0])]), 2).toarray()
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    data, columns, ends = bytearray(), bytearray(), [0]  # they grow in place; arrays of NumPy 2.5 are copied
    for row in rows:
        present = np.flatnonzero(row)
        data += row[present].astype(np.float32).tobytes()
        columns += present.astype(np.int32).tobytes()
        ends.append(ends[-1] + len(present))
    values, positions = np.frombuffer(data, np.float32), np.frombuffer(columns, np.int32)
    return sp.csr_matrix((values, positions, np.array(ends)), shape=(len(ends) - 1, n_columns))


class ImageRows(TransformerMixin, BaseEstimator):
    """Transformers that turn images into sparse rows, one image at a time; fitted when they have
    words."""

    def row(self, image: Any) -> np.ndarray:
        """Columns of one image.

        Parameters
        ----------
        image : Photograph or Descriptors
            As in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_features,), float32
            The columns.
        """
        raise NotImplementedError

    def transform(self, X: Iterable[Any]) -> sp.csr_matrix:
        """Columns of images.

        Parameters
        ----------
        X : iterable of Photograph or Descriptors
            As in :meth:`fit`.

        Returns
        -------
        CSR matrix of shape (n_images, n_features), float32
            One row per image.

        Raises
        ------
        ValueError
            For a head box outside its image.
        """
        check_is_fitted(self)
        return sparse_rows((self.row(image) for image in X), len(self.get_feature_names_out()))

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Names of the columns: ``word 17``, ``word 17 top left``, ``head word 17``, ``colour 3 0
        9`` (red, green, blue).

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "words_")


class VisualWords(ImageRows):
    """Images as normalised frequencies of visual words [1]_.

    Over the whole image and its four quarters [2]_.

    Words are centres of two-level k-means on rooted SIFT descriptors [3]_.

    Parameters
    ----------
    n_words : int, default 5000
        Size of the vocabulary.
    spatial : bool, default True
        Also the frequencies in the four quarters of the image: the 1 x 1 and 2 x 2 grids of Ma
        (thesis), section 4.1.2.
    mirror : bool, default True
        Count the words of the image and of its mirror image: which way an animal looks does not say
        what it is.
    power : float, default 0.25
        In (0, 1]. Counts are raised to this power before rows are scaled to length 1, so that one
        texture that fills the image does not dominate; 1 keeps the frequencies in proportion.
    n_probes : int, default 8
        Words are searched in so many of about sqrt(``n_words``) cells, the nearest first. More is
        slower and more exact: with 8 of 70 cells, 99 descriptors in 100 get the word that is
        nearest of all.
    descriptors_per_image : int, default 300
        How many of each image, drawn at random, the vocabulary is learnt from.
    lloyd_steps : int, default 1
        Steps of k-means over the whole vocabulary, after its two levels.
    random_state : int, RandomState or None, default None
        Of the sample of descriptors and of the clusters.

    Attributes
    ----------
    words_ : ndarray of shape (n_words, 128), uint8
        Rooted descriptors times 255, cell by cell.
    cell_starts_ : ndarray of shape (n_cells + 1,), int64
        Words ``cell_starts_[i]`` to ``cell_starts_[i + 1]`` make up cell i.

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

    def __init__(
        self,
        n_words=5000,
        *,
        spatial=True,
        mirror=True,
        power=0.25,
        n_probes=8,
        descriptors_per_image=300,
        lloyd_steps=1,
        random_state=None,
    ):
        self.n_words = n_words
        self.spatial = spatial
        self.mirror = mirror
        self.power = power
        self.n_probes = n_probes
        self.descriptors_per_image = descriptors_per_image
        self.lloyd_steps = lloyd_steps
        self.random_state = random_state

    def fit(self, X: Iterable[Descriptors], y=None) -> Self:
        """Learn the vocabulary.

        Parameters
        ----------
        X : iterable of Descriptors
            Of one image each; may be a generator, so that not all are in memory at once.
        y : None
            Ignored.

        Returns
        -------
        VisualWords
            The fitted transformer itself.

        Raises
        ------
        ValueError
            For a parameter out of range, or fewer descriptors than words.
        """
        self._check_parameters()
        rng = check_random_state(self.random_state)
        drawn = []
        for image in X:
            rows = rng.permutation(len(image.values))[: self.descriptors_per_image]
            drawn.append(image.values[np.sort(rows)])
        values = np.concatenate(drawn) if drawn else np.empty((0, N_VALUES), np.uint8)
        if len(values) < self.n_words:
            raise ValueError(
                f"n_words={self.n_words}: more than the {len(values)} descriptors drawn from {len(drawn)} images; "
                "expected fewer words or more images"
            )
        points = rooted(values)
        words = lloyd(points, self._two_levels(points, rng), self.lloyd_steps)
        n_cells = max(1, round(np.sqrt(self.n_words)))
        cells = lloyd(words, words[rng.permutation(len(words))[:n_cells]], _COARSE_STEPS)
        labels = nearest_centres(words, cells)
        self.words_ = np.rint(words[np.argsort(labels, kind="stable")] * _CODE).astype(np.uint8)
        counts = np.bincount(labels, minlength=n_cells)
        return self.adopt(self.words_, np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64))

    def adopt(self, words: np.ndarray, cell_starts: np.ndarray) -> Self:
        """Take over a vocabulary; what the search needs follows from the words.

        Parameters
        ----------
        words : ndarray of shape (n_words, 128)
            The words, those of a cell side by side.
        cell_starts : ndarray of int
            First word of each cell, and the number of words.

        Returns
        -------
        VisualWords
            The fitted transformer itself.
        """
        self.words_, self.cell_starts_ = words, cell_starts
        self._centres = words.astype(np.float32) / np.float32(_CODE)
        sizes = np.diff(cell_starts)[:, None]
        self._cells = (np.add.reduceat(self._centres, cell_starts[:-1], axis=0) / sizes).astype(np.float32)
        return self

    def _check_parameters(self) -> None:
        for name in ("n_words", "n_probes", "descriptors_per_image"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or value < 1:
                raise ValueError(f"{name}={value!r}; expected an integer of at least 1")
        if not isinstance(self.lloyd_steps, numbers.Integral) or self.lloyd_steps < 0:
            raise ValueError(f"lloyd_steps={self.lloyd_steps!r}; expected an integer of at least 0")
        if not 0 < self.power <= 1:
            raise ValueError(f"power={self.power!r}; expected a number in (0, 1]")

    def _two_levels(self, points: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """sqrt(n_words) clusters, and within each its share of the words."""
        n_clusters = max(1, round(np.sqrt(self.n_words)))
        start = points[rng.permutation(len(points))[:n_clusters]]
        labels = nearest_centres(points, lloyd(points, start, _COARSE_STEPS))
        members = [points[labels == c] for c in range(n_clusters)]
        words = []
        for mine, n in zip(members, shares(np.array([len(m) for m in members]), self.n_words)):
            if n:
                words.append(lloyd(mine, mine[rng.permutation(len(mine))[:n]], _FINE_STEPS))
        return np.concatenate(words)

    def assign(self, values: np.ndarray) -> np.ndarray:
        """Word of each descriptor.

        Parameters
        ----------
        values : ndarray of shape (n, 128), uint8

        Returns
        -------
        ndarray of shape (n,), int32
        """
        check_is_fitted(self)
        points = rooted(values)
        n_cells = len(self._cells)
        n_probes = min(self.n_probes, n_cells)
        to_cells = points @ self._cells.T - 0.5 * np.einsum("ij,ij->i", self._cells, self._cells)
        # The points that search each cell: all (cell, point) pairs, sorted by cell.
        probed = np.argpartition(-to_cells, n_probes - 1, axis=1)[:, :n_probes].ravel()
        searchers = np.argsort(probed, kind="stable") // n_probes
        ends = np.concatenate([[0], np.cumsum(np.bincount(probed, minlength=n_cells))])
        half = 0.5 * np.einsum("ij,ij->i", self._centres, self._centres)
        best = np.full(len(points), -np.inf, np.float32)
        found = np.zeros(len(points), np.int32)
        for cell in range(n_cells):
            rows = searchers[ends[cell] : ends[cell + 1]]
            first, last = self.cell_starts_[cell], self.cell_starts_[cell + 1]
            if not len(rows):
                continue
            scores = points[rows] @ self._centres[first:last].T - half[first:last]
            words = scores.argmax(axis=1)
            scores = scores[np.arange(len(rows)), words]
            better = scores > best[rows]
            best[rows[better]] = scores[better]
            found[rows[better]] = first + words[better]
        return found

    def occurrences(self, image: Descriptors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the words of an image lie.

        Parameters
        ----------
        image : Descriptors
            Of one image.

        Returns
        -------
        keypoints : ndarray of shape (n,), int64
            Rows of ``image``; with ``mirror`` each occurs twice, the second time as seen in the
            mirror.
        words : ndarray of shape (n,), int32
        quarters : ndarray of shape (n,), int64
            0 to 3: top left, top right, bottom left, bottom right (in the mirror image for the
            second time).
        """
        n = len(image.values)
        views = [image, image.mirrored()] if self.mirror else [image]
        words = self.assign(np.concatenate([v.values for v in views]))
        quarters = np.concatenate([v.quarters() for v in views])
        return np.tile(np.arange(n), len(views)), words, quarters

    def counts(self, image: Descriptors) -> np.ndarray:
        """Occurrences (n_features,) of the words of one image, bin after bin.

        Parameters
        ----------
        image : Descriptors
            Of one image.

        Returns
        -------
        ndarray of shape (n_features,)
            Occurrences.
        """
        _, words, quarters = self.occurrences(image)
        total = np.bincount(words, minlength=self.n_words)
        if not self.spatial:
            return total
        by_quarter = np.bincount(quarters * self.n_words + words, minlength=4 * self.n_words)
        return np.concatenate([total, by_quarter])

    def row(self, image: Descriptors) -> np.ndarray:
        return frequencies(self.counts(image), self.power)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        bins = BINS if self.spatial else BINS[:1]
        return np.array([f"word {w} {b}".rstrip() for b in bins for w in range(self.n_words)], dtype=object)


def frequencies(counts: np.ndarray, power: float) -> np.ndarray:
    """Counts to the given power, of length 1 (float32); zeros stay zeros."""
    values = counts.astype(np.float64) ** power
    return (values / max(float(np.linalg.norm(values)), 1e-12)).astype(np.float32)
