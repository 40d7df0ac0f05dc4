"""Trains the fast modes (``annealed faces train --mode``): regressor f, cascade c0 and classifier c1 of Algorithm 3.

Algorithm 3 is that of Barbu et al. (2014), section 7.2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.guided_search import Guide, Mode
from ....models.keypoints.window_models import KeypointModel
from ....vision.pyramid import Level, gaussian_pyramid
from ....vision.windows.feature_pool import FeaturePool
from ....vision.windows.level_features import level_channels
from ....vision.windows.patches import extract_patches
from ....vision.windows.sparse_scan import score_windows
from ..data import FaceImage
from .cascade import cascade_for_recall, cheapest_order, soft_cascade
from .classifier import ClassifierTraining
from .fitting import FitSettings, fit_offsets, fit_rows
from .sampling import Windows, cut_windows, positive_windows, unpack_keys
from .settings import TrainingSettings
from .views import SCALES_PER_OCTAVE, NamedView, Near, View, each, gather_near, open_view, since

_COST_ROWS = 2000  # windows from which the cost of a cascade is estimated. A choice

VERIFIER = TrainingSettings(rounds=4, per_round=12_000, negative_distance=0.15, negative_pixels=4.0)
"""Settings of c1. Negatives come nearer to the keypoint than those of the scan: the guide's windows lie around it, and the
precision of the position depends on them (Barbu et al. (2014), section 7.2: at least 4 pixels)."""


@dataclass(frozen=True)
class GuideSettings:
    """Settings of a guide. Distances are in pixels of a pyramid level.

    Parameters
    ----------
    n_offsets : int
        Features of the regressor, shared by dx and dy.
    n_prune : tuple of int
        Features of the nodes of the pruning cascade.
    near : float
        The regressor is trained on windows within this distance of the keypoint.
    positive_radius, negative_distance : float
        Windows within the first are positives of the pruning cascade, beyond the second negatives.
    ied_low, ied_high : float
        Range of the IED in pixels of the levels from which windows near a keypoint are taken.
    per_level : int
        Number of windows near a keypoint from each level of each view.
    n_random : int
        Negatives of each node; from the second one on, windows that the nodes before it do not reject.
    first_rows : int
        Rows of the first stage of a fit.
    shrinkage : float
        Ridge penalty of the regressor; windows of the same face are much alike.
    loss : float
        Share of the held-out positive windows that a node may lose.
    seed : int
        Seed of all random choices.
    """

    n_offsets: int = 1000
    n_prune: tuple[int, ...] = (100, 1000)
    near: float = 10.0
    positive_radius: float = 8.0
    negative_distance: float = 40.0
    ied_low: float = 20.0
    ied_high: float = 40.0
    per_level: int = 2
    n_random: int = 12_000
    first_rows: int = 6_000
    shrinkage: float = 0.1
    loss: float = 0.02
    seed: int = 0


def near_windows(view: View, settings: GuideSettings, rng: np.random.Generator, window: int) -> Near:
    """Some windows around the visible keypoints of a view, on levels where its faces have the right size."""
    s = settings
    seen = view.visible & np.isfinite(view.points).all(axis=1)
    patches, offsets = [np.empty((0, window + 2, window + 2, 3), np.uint8)], [np.empty((0, 2))]
    if not seen.any():
        return Near(patches[0], offsets[0])
    low, high = s.ied_low / view.ied[seen].max(), s.ied_high / view.ied[seen].min()
    for level in gaussian_pyramid(view.pixels, SCALES_PER_OCTAVE, min_scale=low, max_scale=min(high, 1.0)):
        height, width = level.image.shape[:2]
        xy = positive_windows(level, view, (s.ied_low, s.ied_high), s.near)
        xy = xy[(xy >= 0).all(axis=1) & (xy < [width, height]).all(axis=1)]
        xy = xy[rng.permutation(len(xy))[: s.per_level]]
        points = level.from_image(view.points[seen])
        nearest = np.hypot(*(xy[:, None] - points[None]).transpose(2, 0, 1)).argmin(axis=1)
        patches.append(extract_patches(level.image, xy[:, 0], xy[:, 1], window))
        offsets.append(points[nearest] - xy)
    return Near(np.concatenate(patches), np.concatenate(offsets))


def far_windows(
    view: View, nodes: Sequence[KeypointModel], settings: GuideSettings, rng: np.random.Generator, pool: FeaturePool, count: int
) -> np.ndarray:
    """At most ``count`` windows (n, 26, 26, 3) of all levels, far from every keypoint, that no node so far rejects."""
    s = settings
    levels = gaussian_pyramid(view.pixels, SCALES_PER_OCTAVE)
    places = []
    for k, level in enumerate(levels):
        height, width = level.image.shape[:2]
        if nodes:  # a grid like the one that will be pruned
            phase = rng.integers(0, 10, 2)
            ys, xs = (part.ravel() for part in np.mgrid[phase[0] : height : 10, phase[1] : width : 10])
        else:
            index = rng.permutation(height * width)[: max(1, height * width // 100)]
            ys, xs = np.divmod(index, width)
        far = view.is_background(level.to_image(np.column_stack([xs, ys])), 0.0, s.negative_distance / level.scale)
        xs, ys = xs[far], ys[far]
        if nodes and len(xs):
            channels = level_channels(level.image, pool)
            for node in nodes:
                left = score_windows(channels, node.compiled(pool), xs, ys) >= node.threshold
                xs, ys = xs[left], ys[left]
        places.append(np.column_stack([np.full(len(xs), k), xs, ys]))
    found = np.concatenate([np.empty((0, 3), np.int64), *places])
    chosen = found[np.sort(rng.permutation(len(found))[:count])]
    return cut_windows(levels, chosen[:, 0], chosen[:, 1], chosen[:, 2], pool.window)


def train_guide(
    keypoint: str,
    views: Sequence[NamedView],
    held_out_views: Sequence[NamedView],
    settings: GuideSettings,
    pool: FeaturePool,
    prune: bool = True,
    say: Callable[[str], None] = print,
    n_jobs: int = 1,
) -> tuple[Guide, dict[str, float]]:
    """Train the regressor of one keypoint and, if asked for, the cascade that prunes its grid.

    Thresholds are set on the held-out views. Scores there: the median error of the regressor in pixels, and the shares of
    positive and of far windows that pass the cascade.
    """
    s, clock = settings, time.monotonic()

    def near(part: Sequence[NamedView], salt: int) -> Near:
        def sample(number: int, image: FaceImage, flip: bool) -> Near:
            return near_windows(open_view(image, keypoint, flip), s, np.random.default_rng([s.seed, salt, number]), pool.window)

        return gather_near(part, sample, pool.window, n_jobs)

    fitted, reference = near(views, 1), near(held_out_views, 2)
    if not len(fitted.patches) or not len(reference.patches):
        raise ValueError(f"{keypoint}: no visible point of a face with IED above {s.ied_low:g} px to learn from")
    fit = FitSettings(n_features=s.n_offsets, first_rows=s.first_rows, shrinkage=s.shrinkage)
    offsets = fit_offsets(*fitted, pool, fit, [s.seed, 3])
    error = np.hypot(*(offsets.predict(reference.patches, pool) - reference.offsets).T)
    scores = {"offset_error": float(np.median(error))}
    say(f"{keypoint}: regressor on {len(fitted.patches)} windows, median error {np.median(error):.2f} px, {since(clock)}")

    nodes: list[KeypointModel] = []
    good = np.hypot(*fitted.offsets.T) <= s.positive_radius
    positives, held = fitted.patches[good], reference.patches[np.hypot(*reference.offsets.T) <= s.positive_radius]
    for number, k in enumerate(s.n_prune if prune else ()):

        def sample(item: tuple[int, NamedView], number: int = number) -> np.ndarray:
            at, (image, flip) = item
            rng = np.random.default_rng([s.seed, 4, number, at])
            return far_windows(open_view(image, keypoint, flip), nodes, s, rng, pool, -(-2 * s.n_random // len(views)))

        negatives = np.concatenate(list(each(enumerate(views), sample, n_jobs)))
        negatives = negatives[np.random.default_rng([s.seed, 5, number]).permutation(len(negatives))[: s.n_random]]
        if not len(negatives):
            break
        patches = np.concatenate([positives, negatives])
        y = np.repeat([1.0, -1.0], [len(positives), len(negatives)])
        model = fit_rows(patches, y, pool, FitSettings(n_features=k, first_rows=s.first_rows), [s.seed, 6, number])
        # A grid point that is kept costs half of the next node, or the regressor and the 25 windows around its prediction, most of
        # which are rejected early. Both factors are choices.
        after = 0.5 * s.n_prune[number + 1] if number + 1 < len(s.n_prune) else 4.5 * s.n_offsets
        model = cheapest_order(model, pool, held, negatives, lambda model: soft_cascade(model, pool, held, s.loss), after)
        nodes.append(replace(model, threshold=float(model.thresholds[-1])))
        passed = model.partial_scores(negatives, pool)
        share = float((passed >= model.thresholds).all(axis=1).mean())
        scores[f"prune{number}_negatives"] = share
        rows = f"{len(positives)} against {len(negatives)}"
        say(f"{keypoint}: node of {k} features: {rows}, keeps {share:.3f} of the latter, {since(clock)}")
    return Guide(tuple(nodes), offsets), scores


@dataclass
class VerifierTraining(ClassifierTraining):
    """Trains classifiers c1: their windows, random negatives and mined ones, are those that a guide proposes behind c0.

    The rejection thresholds may lose a share ``lost`` of the held-out keypoints.
    """

    guides: dict[str, Guide] = field(default_factory=dict)
    lost: float = 0.005

    role: ClassVar[str] = "verifier"
    mode: ClassVar[Mode] = Mode.PRUNE

    def detector(self, keypoint: str, model: KeypointModel, **more: Any) -> KeypointDetector:
        """Return a detector in which the model scores the windows behind c0."""
        return super().detector(keypoint, model, guides={keypoint: replace(self.guides[keypoint], verifier=model)}, **more)

    def describe(self, keypoint: str) -> dict:
        """Return what a checkpoint must agree on."""
        return {**super().describe(keypoint), "lost": self.lost}

    def candidates(self, keypoint: str) -> Callable[[Level], np.ndarray]:
        """Return what gives the windows of a level that the guide proposes."""
        guide = self.guides[keypoint]

        def windows(level: Level) -> np.ndarray:
            channels = level_channels(level.image, self.pool)
            return np.column_stack(guide.windows(channels, self.pool, True, self.settings.reference_ied))

        return windows

    def cascade(self, model: KeypointModel, reference: Windows, ordinary: np.ndarray) -> KeypointModel:
        """Order the features by expected cost, with thresholds that lose a stated share of the held-out keypoints."""

        def thresholds(model: KeypointModel) -> KeypointModel:
            return cascade_for_recall(model, self.pool, reference.patches, unpack_keys(reference.keys)[0], self.lost)[0]

        some = ordinary[:: max(1, len(ordinary) // _COST_ROWS)]
        return cheapest_order(model, self.pool, reference.patches, some, thresholds, 0.0)
