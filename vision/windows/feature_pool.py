"""Pool of Haar and HOG features on colour windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...learners.parameters import check_integer
from .feature_layout import (
    HAAR_KINDS,
    Column,
    HogLayout,
    Program,
    WindowLayout,
    compile_program,
    haar_features,
    hog_features,
    window_layout,
)
from .patch_values import block_tables, evaluate_rows
from .responses import CompiledModel, Responses, compile_model


@dataclass(frozen=True)
class FeaturePool:
    """Features of a square RGB window.

    A *feature* is a row of eight integers: its kind (an index in ``kinds``, or ``len(kinds)`` for
    HOG), its colour channel (0 to 2), the x and y of its upper left pixel in the window, the width
    and height of its cells in pixels, a cell and an orientation. For HOG features, the position is
    that of the block, the cell is an index in the block, in row-major order, and the orientation is
    the index of the bin. The last two are 0 for Haar features. Any feature that fits into the
    window can be evaluated, even if it is not in ``features``.

    A *patch* is a uint8 array of shape (window + 2, window + 2, 3). It contains the window and a
    margin of one pixel, which is used only to compute gradients. Sides are in pixels.

    Haar features have the value ``sum_cells weight * (sum of the cell's pixels) / (sigma * A)``.
    Here ``A = cell area * sum |weight| / 2``, and sigma is the square root of the variance in the
    window, averaged over the three channels; sigma is at least 1. HOG features are entries of
    orientation histograms, divided by the norm of the block (see `HogLayout`). Gradients are
    central differences ``I[x + 1] - I[x - 1]`` (not halved), with magnitudes rounded to multiples
    of a quarter of a grey level. Every pixel belongs to one cell and one bin.

    Parameters
    ----------
    window : int, default 24
        Side of the window in pixels.
    kinds : mapping of str to nested tuples of int
        Weights of the cells of each kind of Haar feature, as a tuple of rows. The weights of a kind
        sum to zero.
    sides : tuple of int
        Widths and heights of the cells of Haar features.
    steps : tuple of int, optional
        Distance between neighbouring positions for each entry of ``sides``; by default, ``max(1,
        side // 2)``. The distance in x is the entry for the width of the cells, and the distance in
        y is the entry for their height.
    hog : HogLayout or None
        Layout of the orientation histograms. If None, the pool contains only Haar features.

    Raises
    ------
    ValueError
        If the sides, steps or weights are invalid.

    Examples
    --------
    >>> from annealed.vision import FeaturePool
    >>> pool = FeaturePool()
    >>> pool.features.shape
    (61608, 8)
    >>> pool.name(pool.features[0])
    'red 2h at (0, 0), cells 2x2'
    """

    window: int = 24
    kinds: Mapping[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=lambda: dict(HAAR_KINDS)
    )
    sides: tuple[int, ...] = (2, 3, 4, 6, 8, 12)
    steps: tuple[int, ...] | None = None
    hog: HogLayout | None = field(default_factory=HogLayout)

    def __post_init__(self) -> None:
        check_integer("window", self.window, 2, 64)
        if any(side < 1 for side in self.sides) or any(step < 1 for step in self._steps):
            raise ValueError(
                f"sides={self.sides}, steps={self._steps} are not valid; "
                "expected positive numbers of pixels"
            )
        if len(self._steps) != len(self.sides):
            raise ValueError(
                f"there are {len(self._steps)} steps for {len(self.sides)} sides; "
                "expected one step for each side"
            )
        for name, rows in self.kinds.items():
            weights = np.array(rows)
            if weights.ndim != 2 or weights.size == 0 or weights.sum() != 0 or not weights.any():
                raise ValueError(
                    f"kind {name!r} has the weights {rows}; "
                    "expected rows of equal length whose entries sum to zero"
                )

    @property
    def _steps(self) -> tuple[int, ...]:
        return (
            tuple(max(1, side // 2) for side in self.sides)
            if self.steps is None
            else tuple(self.steps)
        )

    @cached_property
    def _cells(self) -> npt.NDArray[np.int64]:
        """Number of rows and columns of cells of each kind, with HOG last: (n_kinds + 1, 2)."""
        block = self.hog.block if self.hog else 0
        return np.array([*(np.shape(rows) for rows in self.kinds.values()), (block, block)])

    @cached_property
    def features(self) -> npt.NDArray[np.int32]:
        """All features of the pool, as an array of shape (n, 8).

        Haar features, sorted by channel, kind, cell and position, are followed by HOG features.
        """
        haar = haar_features(self.window, self.kinds, self.sides, self._steps)
        hog = [] if self.hog is None else hog_features(self.window, len(self.kinds), self.hog)
        features = np.array([*haar, *hog], dtype=np.int32).reshape(-1, 8)
        features.setflags(write=False)
        return features

    @property
    def n_haar(self) -> int:
        """Number of Haar features, which precede the HOG features in ``features``."""
        return int(np.count_nonzero(self.features[:, Column.KIND] < len(self.kinds)))

    def check(self, features: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Validate features and return them as an int32 array of shape (n, 8).

        Parameters
        ----------
        features : array_like of shape (n, 8), int
            Features, one per row, in the format of :attr:`FeaturePool.features`.

        Returns
        -------
        ndarray of shape (n, 8), int32
            The same features, as a contiguous array.

        Raises
        ------
        ValueError
            If a feature does not exist or does not fit into the window.
        """
        checked = np.atleast_2d(np.asarray(features))
        if checked.size == 0:
            return np.empty((0, 8), np.int32)
        if (
            checked.ndim != 2
            or checked.shape[1] != 8
            or not np.issubdtype(checked.dtype, np.integer)
        ):
            raise ValueError(
                f"features have shape {checked.shape} and dtype {checked.dtype}; "
                "expected integers of shape (n, 8)"
            )
        kind, channel, x, y, width, height, cell, orientation = checked.T
        is_hog = kind == len(self.kinds)
        good = (kind >= 0) & (kind <= len(self.kinds)) & (channel >= 0) & (channel < 3)
        good &= (x >= 0) & (y >= 0) & (cell >= 0) & (orientation >= 0) & (width > 0) & (height > 0)
        rows, columns = self._cells[kind * good].T
        good &= (x + columns * width <= self.window) & (y + rows * height <= self.window)
        if self.hog is None:
            good &= ~is_hog
        else:
            fits = (width == self.hog.cell) & (height == self.hog.cell)
            good &= ~is_hog | (
                fits & (cell < self.hog.block**2) & (orientation < self.hog.orientations)
            )
        if not good.all():
            bad = checked[np.argmin(good)].tolist()
            raise ValueError(
                f"feature {bad} is not in this pool, whose features describe windows of "
                f"{self.window} pixels"
            )
        return np.ascontiguousarray(checked, dtype=np.int32)

    def name(self, feature: npt.ArrayLike) -> str:
        """Return a readable name for a feature.

        Parameters
        ----------
        feature : array_like of shape (8,), int
            Feature, in the format of a row of :attr:`FeaturePool.features`.

        Returns
        -------
        str
            Name such as ``red 2h at (0, 0), cells 2x2``.
        """
        (row,) = self.check(feature).tolist()
        channel = ("red", "green", "blue")[row[Column.CHANNEL]]
        place = f"at ({row[Column.X]}, {row[Column.Y]})"
        if row[Column.KIND] == len(self.kinds):
            return (
                f"{channel} hog block {place}, "
                f"cell {row[Column.CELL]}, orientation {row[Column.ORIENTATION]}"
            )
        return (
            f"{channel} {list(self.kinds)[row[Column.KIND]]} {place}, "
            f"cells {row[Column.CELL_WIDTH]}x{row[Column.CELL_HEIGHT]}"
        )

    def mirrored(
        self, features: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int8]]:
        """Mirror features horizontally.

        The value of a mirrored feature in a patch is its sign times the value of the feature in the
        mirrored patch (``patch[:, ::-1]``). If the side of the window is even, the positions found
        by a mirrored model are one pixel too far to the right, since the reference pixel of a
        window (see `extract_patches`) is not exactly in its centre: if the mirrored model reports
        x, the keypoint is at x - 1.

        Parameters
        ----------
        features : array_like of shape (n, 8), int
            Features to mirror, one per row.

        Returns
        -------
        mirrored : ndarray of shape (n, 8), int32
            Mirrored features.
        signs : ndarray of shape (n,), int8
            -1 if mirroring changes the sign of the feature, otherwise 1.

        Raises
        ------
        ValueError
            If the mirror image of a kind, with either sign, is not in the pool.
        """
        original = self.check(features)
        mirrored, signs, kind = (
            original.copy(),
            np.ones(len(original), np.int8),
            original[:, Column.KIND],
        )
        weights = [np.array(rows) for rows in self.kinds.values()]
        for number in np.unique(kind[kind < len(weights)]):
            flipped = weights[number][:, ::-1]
            matches = [
                (k, s)
                for s in (1, -1)
                for k, other in enumerate(weights)
                if np.array_equal(s * other, flipped)
            ]
            if not matches:
                raise ValueError(
                    f"kind {list(self.kinds)[number]!r} has no mirror image in the pool"
                )
            mirrored[kind == number, Column.KIND], signs[kind == number] = matches[0]
        extent = self._cells[kind, 1] * original[:, Column.CELL_WIDTH]
        mirrored[:, Column.X] = self.window - original[:, Column.X] - extent
        if self.hog is not None:
            rows, block = kind == len(weights), self.hog.block
            cell = original[rows, Column.CELL]
            mirrored[rows, Column.CELL] = cell // block * block + block - 1 - cell % block
            mirrored[rows, Column.ORIENTATION] = (
                -original[rows, Column.ORIENTATION] % self.hog.orientations
            )
        return mirrored, signs

    def compile(self, features: npt.ArrayLike) -> Program:
        """Convert features to the form that the compiled loops in `annealed.vision.windows` use.

        Parameters
        ----------
        features : array_like of shape (n, 8), int
            Features, one per row, in the format of :attr:`FeaturePool.features`.

        Returns
        -------
        Program
            Compiled features, which can be evaluated in any number of windows.
        """
        return compile_program(self.check(features), self.kinds, self.hog)

    def compile_model(
        self,
        features: npt.ArrayLike,
        responses: Responses,
        intercept: npt.ArrayLike,
        thresholds: npt.ArrayLike | None = None,
    ) -> CompiledModel:
        """Compile a sparse additive model for scanning.

        The parameters and errors are the same as in `annealed.vision.scan`.

        Parameters
        ----------
        features : array_like of shape (n, 8), int
            Features, one per row, in the format of :attr:`FeaturePool.features`.
        responses : Responses
            Response functions of these features, for a single output.
        intercept : float
            Intercept of the model.
        thresholds : array_like of shape (n,), optional
            A window is rejected as soon as its running sum after feature t is below
            ``thresholds[t]``. By default, no window is rejected.

        Returns
        -------
        CompiledModel
            Compiled model, which can scan any number of pyramid levels.
        """
        return compile_model(self.compile(features), responses, intercept, thresholds)

    @cached_property
    def layout(self) -> WindowLayout:
        """Layout of the window in the form required by the compiled loops; used only for HOG."""
        return window_layout(self.window, self.hog or HogLayout())

    def check_patches(self, patches: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Validate patches and return them as rows of bytes.

        Parameters
        ----------
        patches : ndarray of shape (n, window + 2, window + 2, 3), uint8
            Patches from `extract_patches`.

        Returns
        -------
        ndarray of shape (n, (window + 2)**2 * 3), uint8
            One row per patch.

        Raises
        ------
        ValueError
            If the array is not uint8 or does not have shape (n, window + 2, window + 2, 3).
        """
        side = self.window + 2
        if patches.dtype != np.uint8 or patches.ndim != 4 or patches.shape[1:] != (side, side, 3):
            raise ValueError(
                f"patches have shape {patches.shape} and dtype {patches.dtype}; "
                f"expected uint8 of shape (n, {side}, {side}, 3)"
            )
        return np.ascontiguousarray(patches).reshape(len(patches), side * side * 3)

    def evaluate(
        self, patches: npt.NDArray[np.uint8], features: npt.ArrayLike | Program | None = None
    ) -> npt.NDArray[np.float32]:
        """Evaluate features in patches.

        Parameters
        ----------
        patches : ndarray of shape (n, window + 2, window + 2, 3), uint8
            Patches from `extract_patches`.
        features : array_like of shape (m, 8), int, or Program, optional
            Features to evaluate; by default, all features of the pool.

        Returns
        -------
        ndarray of shape (n, m), float32

        Raises
        ------
        ValueError
            If the patches have the wrong shape, or a feature does not fit into the window.
        """
        rows = self.check_patches(patches)
        if not isinstance(features, Program):
            features = self.compile(self.features if features is None else features)
        program = features
        out = np.empty((len(rows), len(program.channel)), np.float32)
        evaluate_rows(rows, np.arange(len(rows)), program, block_tables(program, self.layout), out)
        return out

    def partial_scores(
        self,
        patches: npt.NDArray[np.uint8],
        features: npt.ArrayLike,
        responses: Responses,
        intercept: float,
    ) -> npt.NDArray[np.float32]:
        """Compute the running sums of a sparse additive model, as in `annealed.vision.scan`.

        Parameters
        ----------
        patches : ndarray of shape (n, window + 2, window + 2, 3), uint8
            Patches from `extract_patches`.
        features : array_like of shape (m, 8), int
            Features of the model, one per row.
        responses : Responses
            Responses to the m features, with one output.
        intercept : float
            Intercept of the model.

        Returns
        -------
        ndarray of shape (n, m), float32
            Running sums. Column t is the intercept plus the responses to features 0 to t. The last
            column is the score.

        Raises
        ------
        ValueError
            If ``features`` and ``responses`` have different lengths, the patches have the wrong
            shape, or a feature does not fit into the window.
        """
        return responses.running_sums(self.evaluate(patches, features), intercept)

    def to_dict(self) -> dict[str, Any]:
        """Return the pool as plain data for a file header.

        Returns
        -------
        dict
            Dictionary that can be written as JSON.
        """
        return {
            "window": self.window,
            "kinds": {name: [list(row) for row in rows] for name, rows in self.kinds.items()},
            "sides": list(self.sides),
            "steps": list(self._steps),
            "hog": None if self.hog is None else dict(vars(self.hog)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "FeaturePool":
        """Create a pool from the output of `to_dict`.

        Parameters
        ----------
        data : mapping
            Plain data from `to_dict`.

        Returns
        -------
        FeaturePool
            Pool that is equal to the original one.

        Raises
        ------
        ValueError
            If an entry is missing or invalid.
        """
        try:
            return cls(
                window=int(data["window"]),
                kinds={
                    str(k): tuple(tuple(int(v) for v in row) for row in rows)
                    for k, rows in data["kinds"].items()
                },
                sides=tuple(int(side) for side in data["sides"]),
                steps=tuple(int(step) for step in data["steps"]),
                hog=None if data["hog"] is None else HogLayout(**data["hog"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"invalid definition of the feature pool: {error!r}") from None
