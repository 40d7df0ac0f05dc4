"""Training of the second node of the cascade for whole objects, on local maxima of the first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .....models.keypoints.windows import (
    DEFAULT_ROLL,
    SAME_OCTAVES,
    SAME_RADIUS,
    FaceCascade,
    KeypointModel,
    ObjectSearch,
    SecondNode,
    evened,
    level_at,
)
from .....vision import FeaturePool, Level, extract_patches, gaussian_pyramid, nearest_pixel
from ..synthetic_views import hard_views, rolled
from .cascade import cheapest_order, rejection_thresholds
from .classifier import TrainingJob
from .fitting import WindowFitSettings, fit_rows
from .views import FACE, SCALES_PER_OCTAVE, NamedView, View, each, open_view, sample_view

# pixels of the first node's level: windows this close to an object's centre show it (heuristic)
_NEAR = 2.6
_FINER = 2.0  # scale of the second node's level relative to that of the first node
_NEVER_FAR = 0.5  # reference lengths from an object within which there are no negatives (heuristic)
_ORDER_ROWS = 2000  # windows per class used to compute the order of features (heuristic)
_SHIFTS = 6  # number of windows per object in addition to the local maxima (heuristic)


@dataclass(frozen=True)
class SecondNodeSettings(WindowFitSettings):
    """Settings of the second node of the cascade, which verifies the detections of the first node.

    Parameters
    ----------
    sides : tuple of int
        Sides of the cells of Haar features, in pixels, for windows of 48 pixels.
    share : float
        Fraction of the held-out windows near an object that each rejection threshold of the first
        node is set to reject.
    per_view : int
        Maximum number of negatives per view. The highest local maxima are used.
    reject : float
        Fraction of the held-out windows of objects that each rejection threshold of the second node
        is set to reject.
    lost_fraction : float
        Fraction of the held-out objects, among those not rejected earlier, that the final threshold
        of each node is set to reject.
    seed : int
        Random seed.

    The other parameters are those of `WindowFitSettings`.
    """

    n_features: int = 1000
    sides: tuple[int, ...] = (4, 8, 12, 16)
    share: float = 0.1
    per_view: int = 30
    reject: float = 0.005
    lost_fraction: float = 0.01
    seed: int = 0


def _pyramid(view: View, job: TrainingJob) -> list[Level]:
    return gaussian_pyramid(view.pixels, SCALES_PER_OCTAVE, max_scale=job.settings.scan.enlarged)


def is_near(view: View, rows: np.ndarray, reference_length: float) -> np.ndarray:
    """Return whether each window contains each visible object.

    Windows are rows with the columns x, y, score and scale. The result has shape (n, n_objects).
    """
    distance = np.hypot(*(rows[:, None, :2] - view.points[None]).transpose(2, 0, 1))
    octaves = abs(np.log2(rows[:, 3:] * view.reference_length / reference_length))
    return (
        (distance <= SAME_RADIUS * view.reference_length) & (octaves <= SAME_OCTAVES) & view.visible
    )


def _windows(
    job: TrainingJob,
    search: ObjectSearch,
    window: int,
    settings: SecondNodeSettings,
    item: tuple[int, NamedView],
) -> tuple[np.ndarray, np.ndarray]:
    """Return windows of the second node in a view as patches (n, 50, 50, 3). The first windows show
    objects, at local maxima of the first node and around the annotations; the second windows are
    other local maxima."""
    number, (image, mirrored) = item
    rng, view = np.random.default_rng([settings.seed, 60, number]), open_view(image, FACE, mirrored)
    levels, unit = _pyramid(view, job), search.reference_length * search.cascade.coarser
    maxima = search.first_maxima(levels)
    shown = [maxima[is_near(view, maxima, unit).any(axis=1)][:, [0, 1, 3]]]
    for point, length in zip(view.points[view.visible], view.reference_length[view.visible]):
        moved = point + length * rng.uniform(-0.1, 0.1, (_SHIFTS, 2))
        octaves = np.log2(unit / length) + rng.uniform(-0.2, 0.2, _SHIFTS)
        steps = np.round(SCALES_PER_OCTAVE * octaves) / SCALES_PER_OCTAVE
        shown.append(np.column_stack([moved, 2.0**steps]))
    far = maxima[view.is_background(maxima[:, :2], _NEVER_FAR)][: settings.per_view, [0, 1, 3]]
    return _cut(levels, np.concatenate(shown), window), _cut(levels, far, window)


def _cut(levels: Sequence[Level], rows: np.ndarray, window: int) -> np.ndarray:
    """Crop windows on the second node's levels at rows (n, 3) with x, y and scale of the first
    node."""
    patches = [np.empty((0, window + 2, window + 2, 3), np.uint8)]
    for scale in np.unique(rows[:, 2]):
        level = level_at(levels, scale * _FINER)
        if level is not None:
            at = nearest_pixel(level.from_image(rows[rows[:, 2] == scale, :2]))
            patches.append(extract_patches(level.image, at[:, 0], at[:, 1], window))
    return np.concatenate(patches)


def _best_scores(
    job: TrainingJob,
    find: Callable[[Sequence[Level]], np.ndarray],
    reference_length: float,
    item: NamedView,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best score of each visible object in a view, -inf if it is lost, and the scores of
    false detections."""
    view = open_view(item[0], FACE, item[1])
    rows = find(_pyramid(view, job))
    near = is_near(view, rows, reference_length)
    scores = np.where(near, rows[:, 2:3], -np.inf).max(axis=0, initial=-np.inf)
    return scores[view.visible], rows[view.is_background(rows[:, :2], _NEVER_FAR), 2]


def _with_threshold(
    model: KeypointModel, views: Iterable[tuple[np.ndarray, np.ndarray]], lost_fraction: float
) -> tuple[KeypointModel, dict[str, float]]:
    """Return the model with the threshold that loses a given fraction of the objects that are not
    rejected, and a description."""
    parts = list(views)
    scores, false = (np.concatenate(part) for part in zip(*parts))
    passed = scores[scores > -np.inf]
    threshold = np.quantile(passed, lost_fraction, method="lower") if len(passed) else 0.0
    return replace(model, threshold=float(threshold)), {
        "objects": len(scores),
        "passed": len(passed),
        "detected": int((scores >= threshold).sum()),
        "false_per_view": float((false >= threshold).sum()) / len(parts),
        "threshold": float(threshold),
    }


def train_second_node(
    cascade: FaceCascade, reference_length: float, settings: SecondNodeSettings, job: TrainingJob
) -> tuple[FaceCascade, dict[str, float]]:
    """Set the thresholds of a cascade's first node for a sparse grid, and train its second node.

    The function also returns a description of the results on held-out views.
    """
    s, split, window = settings, job.split, job.pool.window
    empty = [view for view in split.views if not len(view[0].instances)]
    turned = [(rolled(view[0], DEFAULT_ROLL * (-1) ** i), False) for i, view in enumerate(empty)]
    light = [(replace(image, view=evened), False) for image, mirrored in empty if not mirrored]
    images, flips = [*split.fitted, *hard_views(split.fitted, s.seed)], split.fitted[0].schema.flips
    views = [(image, flips[i % len(flips)]) for i, image in enumerate(images)]
    further = hard_views(split.calibration, s.seed)
    held_out = [(image, False) for image in [*split.calibration, *further]]

    # the first node's thresholds are quantiles over all windows that show an object
    near = replace(job.settings.face_cascade, positive_radius=_NEAR)
    unseen = each(
        held_out, lambda view: sample_view(*view, 0, FACE, near, 0, window)[0].patches, job.n_jobs
    )
    patches = np.concatenate(list(unseen))
    first = rejection_thresholds(cascade.classifier, job.pool, patches, s.share, 0.0)
    first, pool = replace(first, threshold=-np.inf), FeaturePool(2 * window, sides=s.sides)
    search = ObjectSearch(
        replace(cascade, classifier=first), job.pool, reference_length, SCALES_PER_OCTAVE
    )
    best = partial(_best_scores, job, search.first_maxima, reference_length * cascade.coarser)
    first, _ = _with_threshold(first, each(held_out, best, job.n_jobs), s.lost_fraction)
    cascade = replace(cascade, classifier=first)
    search = replace(search, cascade=cascade)

    cut = partial(_windows, job, search, pool.window, s)
    parts = each(enumerate([*views, *empty, *turned, *light]), cut, job.n_jobs)
    rows = [np.concatenate(part) for part in zip(*parts)]
    if not len(rows[0]) or not len(rows[1]):
        raise ValueError(
            f"there are {len(rows[0])} windows with an object and {len(rows[1])} without; "
            "expected at least one of each to train the second node"
        )
    job.say(f"second node: {len(rows[0])} positive and {len(rows[1])} negative windows")
    y = np.repeat([1.0, -1.0], [len(part) for part in rows])
    model = fit_rows(np.concatenate(rows), y, pool, s, [s.seed, 61])
    shown, others = (part[:: max(1, len(part) // _ORDER_ROWS)] for part in rows)
    unseen = each(enumerate(held_out), lambda view: cut(view)[0], job.n_jobs)
    patches = np.concatenate(list(unseen))
    limits = partial(rejection_thresholds, pool=pool, positives=patches, share=s.reject, margin=0.0)
    model = cheapest_order(model, pool, shown, others, limits, 0.0)
    cascade = replace(cascade, second=SecondNode(replace(model, threshold=-np.inf), pool, _FINER))
    search = replace(search, cascade=cascade)

    best = partial(_best_scores, job, search.find, reference_length)
    model, facts = _with_threshold(model, each(held_out, best, job.n_jobs), s.lost_fraction)
    job.say("second node: " + ", ".join(f"{name} {value:g}" for name, value in facts.items()))
    return replace(cascade, second=SecondNode(model, pool, _FINER)), facts
