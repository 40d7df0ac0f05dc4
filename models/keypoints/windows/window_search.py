"""Search of a pyramid with the window classifiers of keypoints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np

from ....vision.pyramid import Level, gaussian_pyramid
from ....vision.windows import (
    Buffers,
    FeaturePool,
    LevelChannels,
    level_channels,
    scan_level,
    score_windows,
)
from .non_maximum_suppression import suppress_non_maxima
from .object_search import WHOLE, ObjectSearch, level_at
from .window_models import (
    DEFAULT_REFERENCE_LENGTH,
    STRIP_PIXELS,
    FaceCascade,
    Guide,
    KeypointModel,
    Localisation,
    Mode,
    regions,
)

_REQUESTS_AFTER_GRID = 4.0
"""Number of histograms requested in the mode "regress", as a multiple of the number of grid points,
because of the windows around them (measured)."""


@dataclass(frozen=True)
class WindowSearch:
    """Part of a `KeypointDetector` that applies window classifiers to images.

    The parameters are those of the detector.
    """

    models: dict[str, KeypointModel]
    pool: FeaturePool = field(default_factory=FeaturePool)
    scales_per_octave: int = 4
    suppression: float = 0.3
    guides: dict[str, Guide] = field(default_factory=dict)
    face_cascade: FaceCascade | None = None
    reference_length: float = DEFAULT_REFERENCE_LENGTH
    enlarged: float = 1.0

    def pyramid(
        self, image: np.ndarray, min_size: float | None = None, max_size: float | None = None
    ) -> list[Level]:
        """Return the pyramid levels on which the windows have sizes in the given range.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
        min_size, max_size : float, optional
            Range of window sizes, as in `DetectionOptions`.

        Returns
        -------
        list of Level
            Levels from large to small.

        Raises
        ------
        ValueError
            If the sizes are invalid.
        """
        smallest = self.smallest_window(min_size, max_size)
        min_scale = 0.0 if max_size is None else self.pool.window / max_size
        return gaussian_pyramid(
            image,
            self.scales_per_octave,
            min_scale=min_scale,
            max_scale=self.pool.window / smallest,
        )

    def smallest_window(self, min_size: float | None, max_size: float | None) -> float:
        """Return the side of the smallest window that is scored, in image pixels.

        A ValueError is raised if the sizes are invalid.
        """
        window = self.pool.window
        smallest = window / self.enlarged if min_size is None else min_size
        if not window / 4 <= smallest < np.inf:
            raise ValueError(
                f"min_size={min_size} is not valid; expected at least {window / 4:g} pixels, a "
                "quarter of the window"
            )
        if max_size is not None and not max_size >= smallest:
            raise ValueError(
                f"max_size={max_size} is not valid; expected at least {smallest:g} pixels, the "
                "value of min_size"
            )
        return smallest

    def strips(
        self, level: Level, mode: str = Mode.SCAN, buffers: Buffers | None = None
    ) -> Iterator[LevelChannels]:
        """Yield the feature tables of a level strip by strip, to limit memory use.

        Parameters
        ----------
        level : Level
            Level of the pyramid.
        mode : Mode, default "scan"
            Search mode. Except for "scan", strips have additional rows above and below.
        buffers : Buffers, optional
            Memory to reuse. Each strip is then valid only until the next strip is computed.

        Yields
        ------
        LevelChannels
        """
        height, width = level.image.shape[:2]
        margin = 0 if mode == Mode.SCAN else max(guide.margin for guide in self.guides.values())
        rows = max(1, STRIP_PIXELS // width, 4 * margin)
        expected = 1.0 if mode == Mode.SCAN else _REQUESTS_AFTER_GRID
        for top in range(0, height, rows):
            yield level_channels(
                level.image, self.pool, (top, min(height, top + rows)), margin, buffers, expected
            )

    def score_levels(
        self, levels: Sequence[Level], keypoint: str, mode: str = Mode.SCAN
    ) -> list[np.ndarray]:
        """Score the windows of a pyramid.

        Parameters
        ----------
        levels : list of Level
            Levels from :meth:`pyramid`.
        keypoint : str
            Name of the keypoint.
        mode : Mode, default "scan"
            Search mode.

        Returns
        -------
        list of ndarray of shape (n, 4)
            Windows on each level that are not rejected, with the columns x, y (image pixels), scale
            and score.
        """
        objects = self.objects(levels) if mode == Mode.PRUNE else None
        windows = self._scored(levels, [keypoint], mode, objects)[keypoint]
        return [windows[windows[:, 2] == level.scale] for level in levels]

    def proposed_windows(self, levels: Sequence[Level], keypoint: str) -> list[np.ndarray]:
        """Return the windows that the classifier scores in the mode "prune+regress".

        Parameters
        ----------
        levels : list of Level
            Levels from :meth:`pyramid`.
        keypoint : str
            Name of the keypoint.

        Returns
        -------
        list of ndarray of shape (n, 2), int
            Distinct positions x, y of the windows on each level, in pixels of the level.
        """
        parts = [
            np.column_stack([number, at])
            for *_, number, at in self._windows_near(levels, [keypoint], self.objects(levels))
        ]
        rows = np.unique(np.concatenate([np.empty((0, 3), np.int64), *parts]), axis=0)
        return [rows[rows[:, 0] == number, 1:] for number in range(len(levels))]

    def _guided(
        self, channels: LevelChannels, keypoint: str, points: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, ...]:
        place = self.models[keypoint].localisation if keypoint in self.models else None
        return self.guides[keypoint].windows(
            channels, self.pool, points, self.reference_length, place
        )

    def _windows_near(
        self, levels: Sequence[Level], names: Sequence[str], objects: np.ndarray | None
    ) -> Iterator[tuple[str, LevelChannels, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the windows near faces that the classifiers of some keypoints score.

        The parts of all levels near faces are stacked, so that the features of many windows are
        evaluated at once. For each stack and keypoint, the name of the keypoint, the tables of the
        stack, and the pixels (n, 2) of the windows in the stack are yielded, followed by the number
        of the level of each window and its pixel on this level.
        """
        for parts in self._stacks(levels, names, objects):
            number, corner, images, points = zip(*parts)
            tops = np.cumsum([0, *map(len, images[:-1])])
            width = max(image.shape[1] for image in images)
            padded = [
                cv2.copyMakeBorder(i, 0, 0, 0, width - i.shape[1], cv2.BORDER_REPLICATE)
                for i in images
            ]
            channels = level_channels(
                np.concatenate(padded), self.pool, None, 0, Buffers(), max(1.0, len(names) / 2)
            )
            shapes = np.array([levels[i].shape[::-1] for i in number])
            for name in names:
                inside = [of[name] + [0, top] for of, top in zip(points, tops)]
                xy = np.column_stack(self._guided(channels, name, tuple(np.concatenate(inside).T)))
                part = np.searchsorted(tops, xy[:, 1], side="right") - 1
                at = xy + np.column_stack([0 * tops, -tops])[part] + np.array(corner)[part]
                within = ((at >= 0) & (at < shapes[part])).all(axis=1)
                yield name, channels, xy[within], np.array(number)[part[within]], at[within]

    def _stacks(
        self, levels: Sequence[Level], names: Sequence[str], objects: np.ndarray | None
    ) -> Iterator[list[tuple[int, np.ndarray, np.ndarray, dict[str, np.ndarray]]]]:
        """Yield the parts of the levels near faces, several at a time.

        A part is given by the number of its level, its first pixel x, y, its pixels, and the grid
        points (n, 2) of each keypoint in it. It contains complete windows around its points.
        """
        cascade = self.face_cascade
        if cascade is None:
            raise ValueError(
                "the detector has no face cascade; use a detector trained with --mode prune+regress"
            )
        stack: list[tuple[int, np.ndarray, np.ndarray, dict[str, np.ndarray]]] = []
        margin = max(self.guides[name].margin for name in names) + self.pool.window // 2 + 1
        for number, level in enumerate(levels):
            if objects is None:
                coarse = level_at(levels, level.scale * cascade.coarser) or level
                model = cascade.classifier.compiled(self.pool)
                scores = np.concatenate([scan_level(s, model) for s in self.strips(coarse)])
                centres = coarse.to_image(np.argwhere(scores > -np.inf)[:, ::-1])
            else:  # objects of this level and of its neighbours
                octaves = abs(np.log2(objects[:, 3] / level.scale))
                centres = objects[octaves < 1.5 / self.scales_per_octave, :2]
            if not len(centres):
                continue
            at, shape = level.from_image(centres), level.shape
            grids = [
                cascade.grid_points(at, name, shape, self.guides[name].grid, self.reference_length)
                for name in names
            ]
            points = np.concatenate(grids)
            name_of = np.repeat(np.arange(len(names)), [*map(len, grids)])
            for rows, columns, members in regions(points, margin, STRIP_PIXELS):
                x, y, height = columns.start, rows.start, rows.stop - rows.start
                part = level.part(x, y, columns.stop - columns.start, height)
                width = max(image.shape[1] for _, _, image, _ in [*stack, (0, 0, part, 0)])
                if stack and width * (height + sum(len(i) for _, _, i, _ in stack)) > STRIP_PIXELS:
                    yield stack
                    stack = []
                xy, of = points[members] - [x, y], name_of[members]
                inside = {name: xy[of == i] for i, name in enumerate(names)}
                stack.append((number, np.array([x, y]), part, inside))
        if stack:
            yield stack

    def objects(self, levels: Sequence[Level]) -> np.ndarray | None:
        """Return the whole objects detected by the cascade, or None if there is no cascade.

        The result has shape (n, 4), with the columns x, y, score and scale.
        """
        cascade = self.face_cascade
        if cascade is None or not (cascade.second or cascade.pool):
            return None
        return ObjectSearch(cascade, self.pool, self.reference_length, self.scales_per_octave).find(
            levels
        )

    def _scored(
        self,
        levels: Sequence[Level],
        names: Sequence[str],
        mode: str,
        objects: np.ndarray | None,
    ) -> dict[str, np.ndarray]:
        """Return the windows (n, 4) of some keypoints on all levels, as in
        :meth:`score_levels`."""
        rows: dict[str, list[np.ndarray]] = {name: [np.empty((0, 4))] for name in names}
        scales, buffers = np.array([level.scale for level in levels]), Buffers()

        def keep(name: str, number: np.ndarray | int, at: np.ndarray, score: np.ndarray) -> None:
            scale = np.broadcast_to(scales[number], (1, len(at))).T
            windows = np.concatenate([(at + 0.5) / scale - 0.5, scale, score[:, None]], axis=1)
            rows[name].append(windows[score > -np.inf])

        if mode == Mode.PRUNE:
            for name, channels, xy, number, at in self._windows_near(levels, names, objects):
                model = self.models[name].compiled(self.pool)
                keep(name, number, at, score_windows(channels, model, *xy.T))
        for i, level in enumerate(levels if mode != Mode.PRUNE else ()):
            for channels in self.strips(level, mode, buffers):
                for name in names:
                    keep(name, i, *self._score_strip(channels, name, mode))
        return {name: np.concatenate(parts) for name, parts in rows.items()}

    def _score_strip(
        self, channels: LevelChannels, keypoint: str, mode: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pixels (n, 2) of the accepted windows of a strip of a level, and their scores:
        of all windows, or of those predicted from all grid points."""
        model = self.models[keypoint].compiled(self.pool)
        if mode == Mode.SCAN:
            scores = scan_level(channels, model)
            ys, xs = np.nonzero(scores > -np.inf)
            return np.column_stack([xs, ys + channels.first]), scores[ys, xs]
        points = self.guides[keypoint].grid_points(channels)
        xs, ys = self._guided(channels, keypoint, points)
        return np.column_stack([xs, ys]), score_windows(channels, model, xs, ys)

    def distinct(self, maxima: np.ndarray) -> np.ndarray:
        """Merge the maxima of several searches, without duplicates.

        The result has shape (n, 4), with the columns x, y, score and scale.
        """
        x, y, score, scale = maxima.T
        return suppress_non_maxima(
            x,
            y,
            scale,
            score,
            Localisation(radius=0.0),
            self.reference_length,
            self.suppression / 2,
        )

    def maxima(
        self,
        levels: Sequence[Level],
        names: Sequence[str],
        mode: str,
        thresholds: dict[str, float],
        max_detections: int,
        objects: np.ndarray | None,
    ) -> dict[str, np.ndarray]:
        """Return the local maxima of the scores of the given keypoints.

        All keypoints are scored in one pass over the pyramid. The arrays have shape (n, 4), with
        the columns x, y, score and scale. If whole objects from :meth:`objects` are given, they are
        included with the key `WHOLE`.
        """
        maxima = {} if objects is None else {WHOLE: objects}
        for name, windows in self._scored(levels, names, mode, objects).items():
            x, y, scale, score = windows.T
            maxima[name] = suppress_non_maxima(
                x,
                y,
                scale,
                score,
                self.models[name].localisation,
                self.reference_length,
                self.suppression,
                thresholds[name],
                max_detections,
            )
        return maxima
