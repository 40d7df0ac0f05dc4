"""Visual words: assignment of descriptors to words, and word frequencies in spatial bins."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ...learners.parameters import check_integer, check_real, checked
from .dense_sift import Descriptors

CODE = 255.0  # words are stored as bytes: rooted descriptors lie in [0, 1]
BINS = ("", "top left", "top right", "bottom left", "bottom right")


def rooted(descriptors: np.ndarray) -> np.ndarray:
    """Compute the square roots of descriptors as float32 vectors of length 1.

    Euclidean distances between these vectors are Hellinger distances between the descriptors; see
    Arandjelovic and Zisserman (2012), cited in :class:`VisualWords`.
    """
    roots = np.sqrt(descriptors, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", roots, roots))
    roots /= np.maximum(lengths, 1e-6)[:, None]
    return roots


def sparse_rows(rows: Iterable[np.ndarray], n_columns: int) -> sp.csr_matrix:
    """Concatenate rows into a sparse matrix.

    Joining many small matrices instead would require twice the memory.

    Parameters
    ----------
    rows : iterable of ndarray of shape (n_columns,)
        Rows of the matrix. They are read once.
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
    # byte arrays grow in place; NumPy arrays are copied
    data, columns, ends = (bytearray(), bytearray(), [0])
    for row in rows:
        present = np.flatnonzero(row)
        data += row[present].astype(np.float32).tobytes()
        columns += present.astype(np.int32).tobytes()
        ends.append(ends[-1] + len(present))
    values, positions = np.frombuffer(data, np.float32), np.frombuffer(columns, np.int32)
    return sp.csr_matrix((values, positions, np.array(ends)), shape=(len(ends) - 1, n_columns))


class ImageRows:
    """Base class for transformers that convert images to sparse rows, given a vocabulary.

    Images are processed one at a time. Trained models use subclasses that do not import
    scikit-learn.
    """

    each: Callable[..., Iterator[Any]] = map  # applies a function to all images; may be replaced

    def row(self, image: Any) -> np.ndarray:
        """Return the feature values of one image.

        Parameters
        ----------
        image : Photograph or Descriptors
            Image, as in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_features,), float32
            Feature values of the image.
        """
        raise NotImplementedError

    def transform(self, X: Iterable[Any]) -> sp.csr_matrix:
        """Convert images to rows of the feature matrix.

        Parameters
        ----------
        X : iterable of Photograph or Descriptors
            Images: photographs or descriptors, depending on the transformer.

        Returns
        -------
        CSR matrix of shape (n_images, n_features), float32
            One row per image.

        Raises
        ------
        ValueError
            If a head box lies outside its image.
        """
        self.check_fitted()
        return sparse_rows(self.each(self.row, X), len(self.get_feature_names_out()))

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns.

        Examples are ``word 17``, ``word 17 top left``, ``head word 17``, and ``colour 3 0 9`` (for
        red, green and blue).

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

    def settings(self) -> dict[str, Any]:
        """Return the parameters of the constructor.

        Returns
        -------
        dict
            Parameters by name.
        """
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def check_fitted(self) -> None:
        """Raise scikit-learn's NotFittedError if the vocabulary is empty."""
        if not hasattr(self, "words_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} has no words yet; call fit first")


@dataclass(eq=False, repr=False)
class WordCounts(ImageRows):
    """Word frequencies in images, for a given vocabulary.

    The parameters and attributes are those of :class:`.estimators.VisualWords`, which learns the
    vocabulary.
    """

    n_words: int = checked(5000, check_integer, 1)
    _: KW_ONLY
    spatial: bool = True
    mirror: bool = True
    power: float = checked(0.25, check_real, 0.0, 1.0, above=True)
    n_probes: int = checked(8, check_integer, 1)
    descriptors_per_image: int = checked(300, check_integer, 1)
    lloyd_steps: int = checked(1, check_integer, 0)
    random_state: Any = None

    def set_vocabulary(self, words: np.ndarray, cell_starts: np.ndarray) -> Self:
        """Set the vocabulary, and derive the search tables from it.

        Parameters
        ----------
        words : ndarray of shape (n_words, 128)
            Words, sorted by cell.
        cell_starts : ndarray of int
            Index of the first word of each cell, followed by the number of words.

        Returns
        -------
        WordCounts
            This object.
        """
        self.words_, self.cell_starts_ = words, cell_starts
        self._centres = words.astype(np.float32) / np.float32(CODE)
        sizes = np.diff(cell_starts)[:, None]
        self._cells = (np.add.reduceat(self._centres, cell_starts[:-1], axis=0) / sizes).astype(
            np.float32
        )
        return self

    def assign(self, values: np.ndarray) -> np.ndarray:
        """Assign each descriptor to a word.

        Parameters
        ----------
        values : ndarray of shape (n, 128), uint8
            Descriptors.

        Returns
        -------
        ndarray of shape (n,), int32
            Index of the word for each descriptor.
        """
        self.check_fitted()
        points = rooted(values)
        n_cells = len(self._cells)
        n_probes = min(self.n_probes, n_cells)
        to_cells = points @ self._cells.T - 0.5 * np.einsum("ij,ij->i", self._cells, self._cells)
        # All (cell, point) pairs, sorted by cell, so that each cell is searched once.
        probed = np.argpartition(-to_cells, n_probes - 1, axis=1)[:, :n_probes].ravel()
        searchers = np.argsort(probed, kind="stable") // n_probes
        ends = np.concatenate([[0], np.cumsum(np.bincount(probed, minlength=n_cells))])
        half = 0.5 * np.einsum("ij,ij->i", self._centres, self._centres)
        best = np.full(len(points), -np.inf, np.float32)
        nearest = np.zeros(len(points), np.int32)
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
            nearest[rows[better]] = first + words[better]
        return nearest

    def occurrences(self, image: Descriptors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the keypoint, word and quarter of each occurrence of a word in an image.

        Parameters
        ----------
        image : Descriptors
            Descriptors of one image.

        Returns
        -------
        keypoints : ndarray of shape (n,), int64
            Index of the keypoint for each occurrence. If ``mirror`` is set, each keypoint occurs
            twice: first in the image, and then in the mirror image.
        words : ndarray of shape (n,), int32
            Index of the word for each occurrence.
        quarters : ndarray of shape (n,), int64
            Quarter of the image or mirror image in which the word occurs, as in
            :meth:`.Descriptors.quarters`.
        """
        n = len(image.values)
        views = [image, image.mirrored()] if self.mirror else [image]
        words = self.assign(np.concatenate([v.values for v in views]))
        quarters = np.concatenate([v.quarters() for v in views])
        return np.tile(np.arange(n), len(views)), words, quarters

    def counts(self, image: Descriptors) -> np.ndarray:
        """Count each word in an image and, if ``spatial`` is set, in each of its quarters.

        Parameters
        ----------
        image : Descriptors
            Descriptors of one image.

        Returns
        -------
        ndarray of shape (n_features,)
            Number of occurrences of each word, in the image and then in each quarter.
        """
        _, words, quarters = self.occurrences(image)
        total = np.bincount(words, minlength=self.n_words)
        if not self.spatial:
            return total
        by_quarter = np.bincount(quarters * self.n_words + words, minlength=4 * self.n_words)
        return np.concatenate([total, by_quarter])

    def row(self, image: Descriptors) -> np.ndarray:
        return frequencies(self.counts(image), self.power)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        bins = BINS if self.spatial else BINS[:1]
        return np.array(
            [f"word {w} {b}".rstrip() for b in bins for w in range(self.n_words)], dtype=object
        )


def frequencies(counts: np.ndarray, power: float) -> np.ndarray:
    """Raise counts to a power, and scale the resulting float32 vector to length 1."""
    values = counts.astype(np.float64) ** power
    return (values / max(float(np.linalg.norm(values)), 1e-12)).astype(np.float32)
