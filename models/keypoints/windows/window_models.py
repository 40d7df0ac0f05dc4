"""Sparse additive models of windows, and the guided search.

One type of model predicts whether a window contains a keypoint, and another type predicts the
position of the keypoint. Both are instances of `annealed.learners.common.additive.AdditiveModel` in
single precision. They are evaluated by the compiled loops in `annealed.vision.windows`, which
compute features on demand and reject windows early. The regression-guided search, Algorithm 3 of
Barbu et al. (2014), evaluates a sparse grid near faces instead of all windows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

import numpy as np

from ....vision.pyramid import nearest_pixel
from ....vision.windows import (
    CompiledModel,
    FeaturePool,
    LevelChannels,
    Responses,
    predict_windows,
    windows_around,
)
from ...files import check_settings

#: Default reference length of detectors: the geometric mean of 20 and 40 pixels.
DEFAULT_REFERENCE_LENGTH = 28.3


@dataclass(frozen=True)
class Localisation:
    """Parameters for computing the position of a keypoint from windows around a maximum.

    Distances are in units of the detector's reference length on the pyramid level of the maximum.

    Parameters
    ----------
    radius : float, default 0.18
        Maximum distance from the maximum of the windows that are averaged.
    octaves : float, default 0.6
        Maximum difference in scale between these windows and the maximum, in octaves.
    sharpness : float, default 1.5
        Sharpness of the weights ``exp(sharpness * (score - largest score))``.
    margin : float, default 3.0
        Maximum difference between the score of a window and that of the maximum. Windows with lower
        scores are ignored.
    offset_x, offset_y : float, default 0.0
        Vector from the weighted mean of the window positions to the keypoint.
    annotation_x : float, default 0.0
        Systematic shift of the annotations to the right, which is the same for a keypoint and its
        mirror image and therefore cannot be learnt from photographs and their mirror images.

    Raises
    ------
    ValueError
        If a number is not finite, or one of the first four parameters is negative.
    """

    radius: float = 0.18
    octaves: float = 0.6
    sharpness: float = 1.5
    margin: float = 3.0
    offset_x: float = 0.0
    offset_y: float = 0.0
    annotation_x: float = 0.0

    def __post_init__(self) -> None:
        values = asdict(self)
        if not all(isinstance(v, int | float) and np.isfinite(v) for v in values.values()):
            raise ValueError(f"{self} is not valid; expected finite numbers")
        if min(self.radius, self.octaves, self.sharpness, self.margin) < 0:
            raise ValueError(
                f"{self} is not valid; expected radius, octaves, sharpness and margin of at least 0"
            )

    def to_dict(self) -> dict[str, float]:
        """Return the parameters as plain data for a file header."""
        values = asdict(self)
        values["mark_x"] = values.pop("annotation_x")  # the name in model files
        return values

    @classmethod
    def from_dict(cls, data: Any) -> Localisation:
        """Create the object from the output of :meth:`to_dict`.

        A ValueError is raised if an entry is missing, unknown or invalid.
        """
        example = cls().to_dict()
        limits = dict.fromkeys(("radius", "octaves"), (0, 10)) | dict.fromkeys(
            ("offset_x", "offset_y", "mark_x"), (-10, 10)
        )
        record = {"mark_x": 0.0, **data} if isinstance(data, dict) else data
        try:
            values = check_settings(record, example, limits)
        except ValueError as error:
            raise ValueError(f"localisation: {error}") from None
        values["annotation_x"] = values.pop("mark_x")
        return cls(**values)


@dataclass(frozen=True)
class WindowModel:
    """Sum of piecewise-linear responses to a few window features, eq. (12) of [1]_.

    ``features``, of shape (k, 8), are evaluated in the given order. ``responses`` has one output
    for a classifier, and the two outputs dx and dy for a regressor.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017), section 2.5.
    """

    features: np.ndarray
    responses: Responses
    intercept: float | np.ndarray

    def take(self, order: np.ndarray) -> Self:
        """Return the model restricted to some of its features.

        Parameters
        ----------
        order : ndarray of shape (m,), int
            Indices of the features, in the new order.

        Returns
        -------
        WindowModel
            Model of the same class.
        """
        return replace(self, features=self.features[order], responses=self.responses.take(order))

    def compiled(self, pool: FeaturePool) -> CompiledModel:
        """Return the compiled model, which is cached.

        Parameters
        ----------
        pool : FeaturePool
            Pool to which the features belong.

        Returns
        -------
        CompiledModel
        """
        if "_compiled" not in self.__dict__:
            thresholds = getattr(self, "thresholds", None)  # classifiers only
            self.__dict__["_compiled"] = pool.compile_model(
                self.features, self.responses, self.intercept, thresholds
            )
        return self.__dict__["_compiled"]

    def _mirrored(self, pool: FeaturePool) -> Self:
        features, signs = pool.mirrored(self.features)
        return replace(self, features=features, responses=self.responses.mirrored(signs))

    def _outputs(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Return the outputs (n, q) for windows given as patches (n, 26, 26, 3), without
        rejection."""
        values = pool.evaluate(patches, self.compiled(pool).program)
        intercept = np.atleast_1d(self.intercept)
        sums = [
            self.responses.running_sums(values, intercept[q], q)[:, -1]
            for q in range(self.responses.n_outputs)
        ]
        return np.stack(sums, axis=1)


@dataclass(frozen=True)
class KeypointModel(WindowModel):
    """Classifier that predicts whether a window contains a keypoint.

    The classifier is a soft cascade, with a rejection threshold after each feature.

    Parameters
    ----------
    features : ndarray of shape (k, 8), int32
        Features of the window, in the order in which they are evaluated.
    responses : Responses
        Response functions of these features, for a single output.
    intercept : float
        Initial value of the sum.
    thresholds : ndarray of shape (k,), float32
        Rejection thresholds. A window is rejected if its running sum after feature t is below
        ``thresholds[t]``, which may be -inf.
    localisation : Localisation
        Computation of the position of the keypoint from the windows that contain it.
    threshold : float, default 0.0
        Default minimum score of a detection.
    """

    thresholds: np.ndarray
    localisation: Localisation = field(default_factory=Localisation)
    threshold: float = 0.0

    def mirrored(self, pool: FeaturePool, reference_length: float) -> KeypointModel:
        """Return the model for the mirror image of this keypoint.

        Parameters
        ----------
        pool : FeaturePool
            Pool to which the features belong.
        reference_length : float
            Reference length of the detector, in pixels of a pyramid level.

        Returns
        -------
        KeypointModel
        """
        # A window has an even side: its pixel lies right of the centre, in the mirror image left of
        # it.
        place = replace(
            self.localisation, offset_x=-self.localisation.offset_x - 1.0 / reference_length
        )
        return replace(self._mirrored(pool), localisation=place)

    def scores(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Score windows without rejection.

        Parameters
        ----------
        patches : ndarray of shape (n, window + 2, window + 2, 3), uint8
            Windows, each with a margin of one pixel.
        pool : FeaturePool
            Pool to which the features belong.

        Returns
        -------
        ndarray of shape (n,), float32
        """
        return self._outputs(patches, pool)[:, 0]

    def partial_scores(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Return the running sum after each feature, without rejection.

        Parameters
        ----------
        patches : ndarray of shape (n, window + 2, window + 2, 3), uint8
            Windows, each with a margin of one pixel.
        pool : FeaturePool
            Pool to which the features belong.

        Returns
        -------
        ndarray of shape (n, k), float32
            Running sums. Entry t is the intercept plus the responses to the features up to and
            including t.
        """
        return pool.partial_scores(patches, self.features, self.responses, float(self.intercept))


@dataclass(frozen=True)
class OffsetModel(WindowModel):
    """Regressor that predicts the offset (dx, dy) from a window to a keypoint.

    It is the regressor f in Algorithm 3 of [1]_. The offset is in pixels of the pyramid level, and
    both of its components use the same features.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 7.2.
    """

    def mirrored(self, pool: FeaturePool) -> OffsetModel:
        """Return the model for the mirror image of this keypoint."""
        made = self._mirrored(pool)
        flip = np.array([-1, 1], np.float32)
        # A window has an even side: its pixel lies right of the centre, in the mirror image left of
        # it.
        intercept = (self.intercept * flip - np.array([1, 0], np.float32)).astype(np.float32)
        return replace(
            made,
            responses=replace(made.responses, values=made.responses.values * flip),
            intercept=intercept,
        )

    def predict(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Predict the offset from each window to the keypoint, as a float32 array of shape (n, 2).

        ``patches`` has shape (n, window + 2, window + 2, 3).
        """
        return self._outputs(patches, pool)


class Mode(StrEnum):
    """Search mode, which determines the windows that the classifier of a keypoint scores."""

    #: Scores all windows.
    SCAN = "scan"
    #: Scores windows predicted by a regressor from a sparse grid.
    REGRESS = "regress"
    #: Scores windows predicted by a regressor from grid points near faces that a cascade detects.
    PRUNE = "prune+regress"


STRIP_PIXELS = 1 << 20
"""Maximum number of pixels whose tables are in memory. Heuristic: about 100 MB with orientation
histograms."""

#: Maximum predicted offset in pixels of a level; longer ones are ignored. Heuristic: the regressor
#: is trained on windows within 10 pixels.
MAX_OFFSET = 20

_MAX_LOCALISATION_OFFSET = 2  # maximum shift of windows in pixels of a level


@dataclass(frozen=True)
class Guide:
    """Model that proposes windows for the classifier of a keypoint, as in Algorithm 3 of [1]_.

    ``offsets`` is the regressor f, which predicts the position of the keypoint from the window at
    each point of a grid. The spacing of the grid is ``grid`` pixels of the level. The classifier
    scores all windows whose x and y are within ``reach`` pixels of a prediction.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 7.2.
    """

    offsets: OffsetModel
    grid: int = 10
    reach: int = 2

    @property
    def margin(self) -> int:
        """Maximum distance between a proposed window and its grid point, in pixels of the level."""
        return MAX_OFFSET + self.reach + _MAX_LOCALISATION_OFFSET + 1

    def mirrored(self, pool: FeaturePool) -> Guide:
        """Return the guide for the mirror image of this keypoint."""
        return replace(self, offsets=self.offsets.mirrored(pool))

    def grid_points(self, channels: LevelChannels) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of the grid points in the searched rows of a level, without margins."""
        first = self.grid // 2
        x = np.arange(first, channels.width, self.grid)
        y = np.arange(first, channels.bottom, self.grid)
        y = y[y >= channels.top]
        return np.tile(x, len(y)), np.repeat(y, len(x))

    def windows(
        self,
        channels: LevelChannels,
        pool: FeaturePool,
        points: tuple[np.ndarray, np.ndarray],
        reference_length: float,
        localisation: Localisation | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of the distinct windows that the classifier is to score, sorted by row.

        They are the windows near the keypoint positions that are predicted from the given grid
        points. Since the windows with the highest scores are displaced from the keypoint by
        ``-offset_x`` and ``-offset_y`` of the localisation, the proposed windows are displaced in
        the same way.
        """
        xs, ys = points
        offset = predict_windows(channels, self.offsets.compiled(pool), xs, ys)
        near = np.abs(offset).max(axis=1, initial=0) <= MAX_OFFSET
        place = Localisation() if localisation is None else localisation
        before = reference_length * np.array([place.offset_x, place.offset_y])
        before = np.clip(before, -_MAX_LOCALISATION_OFFSET, _MAX_LOCALISATION_OFFSET)
        at = nearest_pixel(np.column_stack([xs, ys])[near] + offset[near] - before)
        x, y = windows_around(channels, at[:, 0], at[:, 1], self.reach).T
        return x, y


@dataclass(frozen=True)
class SecondNode:
    """Second node of the cascade for whole objects, which verifies local maxima of the first node.

    Parameters
    ----------
    classifier : KeypointModel
        Classifier of windows that are centred on an object. It rejects windows by its rejection
        thresholds, and objects by its threshold.
    pool : FeaturePool
        Feature pool of the classifier; its windows are larger than those of the detector.
    finer : float
        Scale of the level on which the second node is applied, relative to that of the first node.
    """

    classifier: KeypointModel
    pool: FeaturePool
    finer: float


@dataclass(frozen=True)
class FaceCascade:
    """Cascade that detects whole faces, c0 in Algorithm 3 of [1]_, shared by all keypoints.

    If the keypoints of a face are detected on one level of the pyramid, the whole face fits into a
    window on a coarser level. Each window that the classifier accepts on the coarser level predicts
    the positions of all keypoints.

    Parameters
    ----------
    classifier : KeypointModel
        Classifier of windows that are centred on a face. Its rejection thresholds determine which
        windows it accepts.
    expected : dict of str to tuple of float
        Mean vector from the centre of a face to each keypoint, in units of the reference length of
        the detector.
    coarser : float
        Scale of the coarser level, relative to the level of the keypoints.
    second : SecondNode, optional
        Node that verifies the local maxima of the classifier. The classifier then scores only every
        second row of every second level.
    pool : FeaturePool, optional
        Feature pool of the classifier; given only if there is no second node and its windows are
        larger than those of the detector.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 7.2.
    """

    classifier: KeypointModel
    expected: dict[str, tuple[float, float]]
    coarser: float
    second: SecondNode | None = None
    pool: FeaturePool | None = None

    def grid_points(
        self,
        centres: np.ndarray,
        keypoint: str,
        shape: tuple[int, int],
        grid: int,
        reference_length: float,
    ) -> np.ndarray:
        """Return the four grid points around each expected position of a keypoint.

        Parameters
        ----------
        centres : ndarray of shape (n, 2)
            Centres of faces, in pixels of the level of the keypoint.
        keypoint : str
            Name of the keypoint.
        shape : tuple of int
            Number of rows and number of columns of the level.
        grid : int
            Spacing of the grid, in pixels of the level.
        reference_length : float
            Reference length of the detector, in pixels of the level.

        Returns
        -------
        ndarray of shape (m, 2), int
            Distinct grid points x, y, sorted by row.
        """
        first = grid // 2
        sides = [max(0, -(-(side - first) // grid)) for side in shape]
        corner = np.floor(
            (centres + reference_length * np.array(self.expected[keypoint]) - first) / grid
        ).astype(np.int64)
        column = (corner[:, :1] + [0, 1, 0, 1]).ravel()
        row = (corner[:, 1:] + [0, 0, 1, 1]).ravel()
        inside = (column >= 0) & (column < sides[1]) & (row >= 0) & (row < sides[0])
        number = np.flatnonzero(np.bincount(row[inside] * sides[1] + column[inside]))
        return first + grid * np.column_stack(np.divmod(number, max(1, sides[1]))[::-1])


def regions(
    points: np.ndarray, margin: int, max_pixels: int
) -> list[tuple[slice, slice, np.ndarray]]:
    """Return rectangles that cover all pixels of a level within ``margin`` of the given points.

    Each rectangle is given by a slice of rows, a slice of columns and the indices of the points in
    it, and may extend beyond the level. Points whose margins touch are in the same rectangle,
    unless it would have more than about ``max_pixels`` pixels.

    Examples
    --------
    >>> for part in regions(np.array([[5, 5], [90, 5], [9, 6]]), 4, 10_000):
    ...     print(*part)
    slice(1, 11, None) slice(1, 14, None) [0 2]
    slice(1, 10, None) slice(86, 95, None) [1]
    """
    parts = []
    for band in _clusters(points, np.arange(len(points)), 1, 2 * margin) if len(points) else ():
        for cluster in _clusters(points, band, 0, 2 * margin):
            x, y = points[cluster].T
            columns = slice(int(x.min()) - margin, int(x.max()) + margin + 1)
            height = max(2 * margin, max_pixels // (columns.stop - columns.start))
            piece = (y - y.min()) // height
            for number in sorted(set(piece.tolist())):
                of_piece = y[piece == number]
                rows = slice(int(of_piece.min()) - margin, int(of_piece.max()) + margin + 1)
                parts.append((rows, columns, np.sort(cluster[piece == number])))
    return parts


def _clusters(points: np.ndarray, chosen: np.ndarray, axis: int, gap: int) -> list[np.ndarray]:
    """Split some of the points into groups at gaps larger than ``gap`` along one axis."""
    order = chosen[np.argsort(points[chosen, axis], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(points[order, axis]) > gap) + 1)
