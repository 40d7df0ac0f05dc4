"""Search of a pyramid with the window classifiers of keypoints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
from .object_search import WHOLE, ObjectSearch
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
        """Return the pyramid levels on which windows of the given sizes are searched.

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
        """Return the side of the smallest window that is searched, in image pixels.

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
        return [maxima[keypoint] for maxima in self._scored(levels, [keypoint], mode, objects)]

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
        windows, objects = [], self.objects(levels)
        for number in range(len(levels)):
            places, near = [np.empty((0, 2), np.int64)], (levels, number, [keypoint], Buffers())
            for channels, corner, points in self._near_faces(*near, objects):
                x, y = self._guided(channels, keypoint, points[keypoint])
                places.append(np.column_stack([x, y]) + corner)
            windows.append(np.unique(np.concatenate(places), axis=0))
        return windows

    def _guided(
        self, channels: LevelChannels, keypoint: str, points: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, ...]:
        place = self.models[keypoint].localisation if keypoint in self.models else None
        return self.guides[keypoint].windows(
            channels, self.pool, points, self.reference_length, place
        )

    def _near_faces(
        self,
        levels: Sequence[Level],
        number: int,
        names: Sequence[str],
        buffers: Buffers,
        objects: np.ndarray | None,
    ) -> Iterator[tuple[LevelChannels, np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]]:
        """Yield the parts of a level near faces: the tables of each part, its first pixel x, y, and
        the grid points of some keypoints in it."""
        cascade, level = self.face_cascade, levels[number]
        if cascade is None:
            raise ValueError(
                "the detector has no face cascade; use a detector trained with --mode prune+regress"
            )
        if objects is None:
            centres = self._face_centres(cascade.level(levels, number), cascade, buffers)
        else:  # objects of this level and of its neighbours
            octaves = abs(np.log2(objects[:, 3] / level.scale))
            centres = objects[octaves < 1.5 / self.scales_per_octave, :2]
        centres = level.from_image(centres)
        if not len(centres):
            return
        shape = level.shape
        windows = [
            cascade.grid_points(centres, name, shape, self.guides[name].grid, self.reference_length)
            for name in names
        ]
        name_of = np.repeat(np.arange(len(names)), [len(xs) for xs, _ in windows])
        points = np.column_stack([np.concatenate(axis) for axis in zip(*windows)])
        if not len(points):
            return
        # A part contains complete windows around its points, since its border pixels would be
        # repeated beyond its edge.
        margin = max(self.guides[name].margin for name in names) + self.pool.window // 2 + 1
        for rows, columns, members in regions(points, margin, shape, STRIP_PIXELS):
            corner = np.array([columns.start, rows.start])
            xy = points[members] - corner
            inside = {name: tuple(xy[name_of[members] == i].T) for i, name in enumerate(names)}
            expected = max(1.0, len(names) / 2)
            sides = columns.stop - columns.start, rows.stop - rows.start
            part = level.part(columns.start, rows.start, *sides)
            yield level_channels(part, self.pool, None, 0, buffers, expected), corner, inside

    def _face_centres(self, coarse: Level, cascade: FaceCascade, buffers: Buffers) -> np.ndarray:
        """Return the image coordinates (n, 2) of the windows of a level that the face cascade does
        not reject."""
        centres = [np.empty((0, 2))]
        for channels in self.strips(coarse, buffers=buffers):
            ys, xs = np.nonzero(
                scan_level(channels, cascade.classifier.compiled(self.pool)) > -np.inf
            )
            centres.append(coarse.to_image(np.column_stack([xs, ys + channels.first])))
        return np.concatenate(centres)

    def objects(self, levels: Sequence[Level]) -> np.ndarray | None:
        """Return the whole objects detected by the cascade, or None if there is no cascade.

        The result has shape (n, 4), with the columns x, y, score and scale.
        """
        cascade = self.face_cascade
        if cascade is None or not (cascade.second or cascade.pool):
            return None
        detector = self.pool, self.reference_length, self.scales_per_octave
        return ObjectSearch(cascade, *detector).find(levels)

    def _scored(
        self,
        levels: Sequence[Level],
        names: Sequence[str],
        mode: str,
        objects: np.ndarray | None,
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield the windows (n, 4) of some keypoints on each level, as in :meth:`score_levels`."""
        buffers = Buffers()
        for number, level in enumerate(levels):
            maxima: dict[str, list[np.ndarray]] = {name: [np.empty((0, 4))] for name in names}

            def keep(
                name: str,
                xy: np.ndarray,
                score: np.ndarray,
                level: Level = level,
                maxima: dict = maxima,
            ) -> None:
                maxima[name].append(
                    np.column_stack([level.to_image(xy), np.full(len(xy), level.scale), score])
                )

            if mode == Mode.PRUNE:
                near = self._near_faces(levels, number, names, buffers, objects)
                for channels, corner, points in near:
                    for name in names:
                        xy, score = self._score_guided(channels, name, points[name])
                        keep(name, xy + corner, score)
            else:
                for channels in self.strips(level, mode, buffers):
                    for name in names:
                        keep(name, *self._score_strip(channels, name, mode))
            yield {name: np.concatenate(parts) for name, parts in maxima.items()}

    def _score_guided(
        self, channels: LevelChannels, keypoint: str, points: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pixels (n, 2) of the accepted windows predicted from some grid points, and
        their scores."""
        xs, ys = self._guided(channels, keypoint, points)
        score = score_windows(channels, self.models[keypoint].compiled(self.pool), xs, ys)
        passed = score > -np.inf
        return np.column_stack([xs, ys])[passed], score[passed]

    def _score_strip(
        self, channels: LevelChannels, keypoint: str, mode: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Score a strip of a level, in its own rows, at all windows or all grid points."""
        if mode != Mode.SCAN:
            return self._score_guided(
                channels, keypoint, self.guides[keypoint].grid_points(channels)
            )
        scores = scan_level(channels, self.models[keypoint].compiled(self.pool))
        ys, xs = np.nonzero(scores > -np.inf)
        return np.column_stack([xs, ys + channels.first]), scores[ys, xs]

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
        scored = list(self._scored(levels, names, mode, objects))
        maxima = {} if objects is None else {WHOLE: objects}
        for name in names:
            x, y, scale, score = np.concatenate(
                [np.empty((0, 4)), *(windows[name] for windows in scored)]
            ).T
            place = self.models[name].localisation
            maxima[name] = suppress_non_maxima(
                x,
                y,
                scale,
                score,
                place,
                self.reference_length,
                self.suppression,
                thresholds[name],
                max_detections,
            )
        return maxima
