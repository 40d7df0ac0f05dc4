"""Cascaded shape regression, which moves all points of a face together.

Each stage crops the face, rotates it upright and scales it to a fixed size. It then computes
gradient histograms around all points and predicts the displacement of the whole shape from a few of
their values, which were selected by annealing. The predictions for the face and its mirror image
are averaged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....vision.point_histograms import (
    MIRRORED_VALUES,
    VALUES_PER_POINT,
    cut_frame,
    point_histograms,
)
from ....vision.pyramid import Level
from .shape_models import SimilarityTransform

# margin of a frame around the mean shape in reference lengths, beyond the cells of its outermost
# points (heuristic)
_AROUND = 0.3


@dataclass(frozen=True)
class RegressionStage:
    """Stage of the cascade in a :class:`ShapeRegressor`.

    A stage is a linear regression from selected histogram values to the displacement of the shape.

    Parameters
    ----------
    ied : int
        Reference length, in pixels, to which faces are scaled for this stage.
    cell : int
        Side of a histogram cell in pixels.
    features : ndarray of shape (k,), int32
        Indices of the selected histogram values: 128 times the index of the point, plus the index
        in its histogram.
    coefficients : ndarray of shape (k, q), float16
        Coefficient of each feature for each of the q basis displacements.
    intercept : ndarray of shape (q,), float32
    """

    ied: int
    cell: int
    features: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray

    @cached_property
    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        return self.features.astype(np.int64), self.coefficients.astype(np.float32)

    def displacement(self, histograms: np.ndarray) -> np.ndarray:
        """Predict the q coefficients of the displacement from the histograms of all points.

        The histograms have shape (..., 128 n).
        """
        features, coefficients = self._linear
        return histograms.take(features, axis=-1) @ coefficients + self.intercept


@dataclass(frozen=True)
class ShapeRegressor:
    """Cascade of regression stages that correct the points of a face.

    The method is that of Xiong and De la Torre [1]_, with feature selection.

    Parameters
    ----------
    mean : ndarray of shape (n, 2), float64
        Mean shape in units of the reference length.
    basis : ndarray of shape (q, n, 2), float32
        Basis displacements in units of the reference length. Each stage predicts a linear
        combination of them.
    stages : tuple of RegressionStage
    to_keypoints : ndarray of shape (n_keypoints, n), float64
        Averaging matrix that maps the points to the keypoints.
    offset : ndarray of shape (n, 2), float32
        Systematic offset of the annotations, in units of the reference length, which stages trained
        on photographs and their mirror images cannot learn.
    mirror : ndarray of shape (n,), int32
        Index of each point in the mirror image of a face; empty if mirror images are not used.
    described : int, default -1
        Index of the stage whose input histograms :meth:`refine` returns. The number of stages means
        the histograms around the refined points, in the frame of the last stage.

    References
    ----------
    .. [1] X. Xiong, F. De la Torre, "Supervised Descent Method and its Applications to Face
           Alignment", Proc. CVPR (2013).
    """

    mean: np.ndarray
    basis: np.ndarray
    stages: tuple[RegressionStage, ...]
    to_keypoints: np.ndarray
    offset: np.ndarray
    mirror: np.ndarray
    described: int = -1

    @cached_property
    def mean_points(self) -> np.ndarray:
        """Mean shape as n complex numbers."""
        return self.mean[:, 0] + 1j * self.mean[:, 1]

    @cached_property
    def _complex_basis(self) -> np.ndarray:
        return self.basis[..., 0] + 1j * self.basis[..., 1]

    @cached_property
    def _mirrored_values(self) -> np.ndarray:
        """Position of each histogram value in the mirror image of a face."""
        return (VALUES_PER_POINT * self.mirror[:, None] + MIRRORED_VALUES).ravel()

    def align(self, points: np.ndarray) -> SimilarityTransform:
        """Fit the similarity transform from the mean shape to n image points by least squares.

        The points are complex numbers.
        """
        return SimilarityTransform.least_squares(self.mean_points, points)

    def describe(
        self, levels: Sequence[Level], points: np.ndarray, ied: int, cell: int
    ) -> tuple[np.ndarray, SimilarityTransform]:
        """Compute gradient histograms, of shape (n, 128), around n image points.

        The points are complex numbers. The histograms are computed in the coordinate system of the
        face; the transform to the image is also returned.
        """
        transform = self.align(points)
        margin = _AROUND + 2.0 * cell / ied
        low, high = self.mean.min(axis=0) - margin, self.mean.max(axis=0) + margin
        frame = cut_frame(
            levels, transform.scale_rotation, transform.translation, (*low, *high), ied
        )
        return point_histograms(frame, transform.to_shape(points), cell), transform

    def move(
        self, stage: RegressionStage, points: np.ndarray, histograms: np.ndarray, unit: complex
    ) -> np.ndarray:
        """Compute the n image points after one stage, as complex numbers.

        The predictions for the face and its mirror image are averaged. ``unit`` is the scale and
        rotation of the face, as a complex number.
        """
        values = histograms.ravel()
        if not len(self.mirror):
            return points + unit * (stage.displacement(values) @ self._complex_basis)
        both = np.stack([values, values.take(self._mirrored_values)])
        move, mirrored = stage.displacement(both) @ self._complex_basis
        return points + unit * (move - np.conj(mirrored[self.mirror])) / 2

    def refine(
        self,
        levels: Sequence[Level],
        points: np.ndarray,
        stops: Callable[[np.ndarray, np.ndarray], bool] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Apply all stages.

        Parameters
        ----------
        levels : list of Level
            Pyramid of the image, from large to small.
        points : ndarray of shape (n,), complex
            Initial points, in image pixels.
        stops : function, optional
            Function that is called after the stage ``described``, if there is one, with the points
            and the input histograms of this stage. It returns whether to skip the later stages.

        Returns
        -------
        points : ndarray of shape (n,), complex
            Refined points in image pixels.
        histograms : ndarray of shape (n, 128), float32
            Histograms, as specified by ``described``.
        """
        shown = np.empty((0, 0), np.float32)
        for number, stage in enumerate(self.stages):
            histograms, transform = self.describe(levels, points, stage.ied, stage.cell)
            points = self.move(stage, points, histograms, transform.scale_rotation)
            if self.described in (number, number - len(self.stages)):
                shown = histograms
                if stops is not None and stops(points, shown):
                    break
        offset = self.offset[:, 0] + 1j * self.offset[:, 1]
        points = points + self.align(points).scale_rotation * offset
        if self.stages and self.described == len(self.stages):
            shown, _ = self.describe(levels, points, self.stages[-1].ied, self.stages[-1].cell)
        return points, shown


@dataclass(frozen=True)
class ShapeClassifier:
    """Linear classifier that predicts whether a refined shape is a face.

    It uses selected values of the gradient histograms around the points.

    Parameters
    ----------
    features : ndarray of shape (k,), int32
        Indices of the selected histogram values: 128 times the index of the point, plus the index
        in its histogram.
    coefficients : ndarray of shape (k,), float32
    intercept : float
    """

    features: np.ndarray
    coefficients: np.ndarray
    intercept: float

    def score(self, histograms: np.ndarray) -> float:
        """Compute the score of a refined shape from its histograms, of shape (n, 128)."""
        return float(histograms.ravel()[self.features] @ self.coefficients) + self.intercept
