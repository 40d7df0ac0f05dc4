"""Two-stage fit of a sparse model to windows, by piecewise-linear FSA on the feature pool."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .....learners.designs.base import Design
from .....learners.objective import Loss, Prior, get_loss
from .....learners.solvers import Annealed, anneal, annealing_step, as_schedule
from .....learners.solvers.accelerated_gradient import accelerated_gradient
from .....models.keypoints.windows.window_models import KeypointModel, OffsetModel
from .....vision.windows import FeaturePool, PatchDesign, Responses, value_range

_RANGE_ROWS = 2000  # number of windows used to estimate the range of each feature (heuristic)


@dataclass(frozen=True)
class WindowFitSettings:
    """Settings for fitting a window model, which happens in two stages.

    Parameters
    ----------
    n_features : int
        Number k of features of the model.
    n_bins : int
        Number of bins of each piecewise-linear response.
    loss : str
        Name of the loss: "logistic", "huberised_hinge" or "lorenz".
    first_rows : int
        Number of rows sampled for the first stage, which starts with all features.
    late : float
        The second stage, which uses all rows, starts when at most ``late`` times k features remain.
    schedule : str
        Name of the annealing schedule; by default, eq. (3) of Barbu et al. (2017).
    mu : float
        Speed of the schedule.
    n_steps : int
        Number of steps of the schedule.
    learning_rate : float
        Step size of the margin losses, for standardised columns and mean gradients. It is not used
        for the squared loss of offsets, whose step size is the reciprocal of a bound on the
        curvature.
    shrinkage : float
        Ridge penalty on standardised responses during annealing and in the final fit.
    smoothness : float
        Weight of the second-order prior on neighbouring bins, eq. (13) of Barbu et al. (2017).
    final_steps : int
        Number of accelerated gradient steps in the final fit.
    """

    n_features: int = 1500
    n_bins: int = 6
    loss: str = "logistic"
    first_rows: int = 16_000
    late: float = 1.5
    schedule: str = "inverse"
    mu: float = 100.0
    n_steps: int = 60
    learning_rate: float = 0.3
    shrinkage: float = 1e-5
    smoothness: float = 0.0
    final_steps: int = 100


@dataclass(frozen=True)
class TrainingSettings(WindowFitSettings):
    """Settings for training a classifier.

    Distances are in reference lengths unless stated otherwise.

    Parameters
    ----------
    rounds : int
        Maximum number of rounds of hard-negative mining. The final fit follows the last round.
    n_random : int
        Number of random negatives for the first fit.
    per_round, per_view : int
        Maximum number of new false alarms per round and per view, respectively.
    views_per_round : int
        Number of views (photographs and mirror images) scanned in each round.
    lowered : float
        Amount by which the rejection thresholds are lowered for mining.
    ied_low, ied_high : float
        Range of reference lengths, in pixels of a pyramid level. Windows near the keypoints of
        faces in this range are positives. The range determines `reference_length`.
    enlarged : float
        Factor, from 1 to 4, by which photographs are enlarged to detect faces below this range.
    positive_radius : float
        Maximum distance between a positive window and the keypoint, in pixels of the level.
    negative_distance : float
        Minimum distance between a negative window and the keypoint of any face.
    negative_pixels : float
        Minimum distance between a negative window and the keypoint of any face, in pixels of the
        window's level. It applies in addition to ``negative_distance``.
    reject : float
        Maximum fraction of the held-out positive windows that each threshold rejects, before
        ``reject_margin`` is subtracted from the threshold.
    reject_margin : float
        Amount that is subtracted from the rejection thresholds.
    lost_fraction : float
        Maximum fraction of the held-out keypoints that are lost because all their windows are
        rejected.
        For the mode "scan", ``reject`` is used instead.
    precision : float
        Target precision at the default threshold, on the held-out photographs.
    copies : str
        Synthetic copies that are added to the training views. "none" adds no copies, and "yaw" adds
        copies with rotated heads. "all" also adds copies that are rotated in the image plane,
        unevenly lit, darkened, blurred or partly covered.
    seed : int
        Random seed.

    The other parameters are those of `WindowFitSettings`.
    """

    rounds: int = 7
    n_random: int = 20_000
    per_round: int = 14_000
    per_view: int = 100
    views_per_round: int = 400
    lowered: float = 0.7
    ied_low: float = 20.0
    ied_high: float = 40.0
    enlarged: float = 1.0
    positive_radius: float = 1.0
    negative_distance: float = 0.5
    negative_pixels: float = 0.0
    reject: float = 0.02
    reject_margin: float = 0.0
    lost_fraction: float = 0.005
    precision: float = 0.9
    copies: str = "yaw"
    seed: int = 0

    @property
    def reference_length(self) -> float:
        """Reference length of the detector, in pixels of a pyramid level.

        It is the geometric mean of ``ied_low`` and ``ied_high``, rounded to a tenth of a pixel.
        """
        return round(math.sqrt(self.ied_low * self.ied_high), 1)


def fit_rows(
    patches: np.ndarray,
    y: np.ndarray,
    pool: FeaturePool,
    settings: WindowFitSettings,
    seed: Sequence[int],
    features: np.ndarray | None = None,
) -> KeypointModel:
    """Select features and fit their responses.

    The classes 1 (windows that contain the keypoint) and -1 (other windows) have the same total
    weight. Windows are uint8 patches of shape (n, 26, 26, 3). Features are selected from
    ``features``, of shape (m, 8), or from the whole pool. The model contains the selected features
    in the order of the pool, and it does not reject any windows. ``seed`` is the random seed for
    sampling the rows.
    """
    if not ((y > 0).any() and (y < 0).any()):
        raise ValueError(
            "all windows belong to one class; expected windows with and without the keypoint"
        )
    rows = _balanced_rows(y, settings.first_rows, np.random.default_rng(seed))
    chosen, values, offset = _select(
        *(patches, y[:, None], balanced_weights, rows, get_loss(settings.loss)),
        *(pool, settings, features),
    )
    never = np.full(len(chosen["features"]), -np.inf, np.float32)
    responses = Responses(chosen["low"], chosen["bin_width"], values[:, :, 0])
    return KeypointModel(chosen["features"], responses, float(offset[0]), never)


def fit_offsets(
    patches: np.ndarray,
    offsets: np.ndarray,
    pool: FeaturePool,
    settings: WindowFitSettings,
    seed: Sequence[int],
) -> OffsetModel:
    """Select features, and fit their two-dimensional responses to offsets.

    An offset is the vector (dx, dy), in pixels, from the pixel of a window to the keypoint. The
    response to a feature is the pair (beta_1 u(x), beta_2 u(x)), where u(x) is the vector of hat
    functions. The two coefficient vectors of a feature are retained or dropped together (section
    7.2 of Barbu et al. (2014)). The loss is the squared error, which does not require a learning
    rate.
    """
    unit = max(float(np.sqrt(np.mean(offsets**2))), 1e-6)
    rows = np.sort(np.random.default_rng(seed).permutation(len(offsets))[: settings.first_rows])
    equal = lambda y: np.full(len(y), 1 / len(y))  # noqa: E731
    chosen, values, offset = _select(
        patches, offsets / unit, equal, rows, get_loss("squared"), pool, settings, None
    )
    responses = Responses(chosen["low"], chosen["bin_width"], (values * unit).astype(np.float32))
    return OffsetModel(chosen["features"], responses, (offset * unit).astype(np.float32))


def _select(
    patches: np.ndarray,
    y: np.ndarray,
    weights: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    loss: Loss,
    pool: FeaturePool,
    s: WindowFitSettings,
    features: np.ndarray | None,
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Anneal on the sampled rows and then on all rows, and fit the selected features. Return the
    features with their bins, the responses (k, B + 1, q) and the intercept (q,).
    """
    features = pool.features if features is None else pool.check(features)
    prior = Prior(shrinkage=s.shrinkage, second_order=s.smoothness)
    k = min(s.n_features, len(features))
    counts = as_schedule(s.schedule, s.mu)(len(features), k, s.n_steps)
    counts = counts[: int(np.argmax(counts == k)) + 1]

    def annealed(
        design: Design, y: np.ndarray, weight: np.ndarray, counts: np.ndarray, **start: Any
    ) -> Annealed:
        return anneal(
            design,
            y,
            loss,
            counts,
            sample_weight=weight,
            learning_rate=annealing_step(loss, weight, s.learning_rate),
            prior=prior,
            **start,
        )

    weight = weights(y[rows])
    sampled = patches[rows]
    low, bin_width = value_range(pool, sampled, features, s.n_bins, _RANGE_ROWS)
    design = PatchDesign(
        sampled, weight, pool=pool, features=features, n_bins=s.n_bins, low=low, bin_width=bin_width
    )
    switch = int(np.argmax(counts <= max(k, s.late * k))) + 1
    state = annealed(design, y[rows], weight, counts[:switch])
    raw, offset = state.design.unstandardise(state.coef, state.intercept)
    kept = state.kept
    del design, state, sampled  # frees a gigabyte of codes

    weight = weights(y)
    table = {"features": features, "low": low, "bin_width": bin_width}
    chosen = {name: values[kept] for name, values in table.items()}
    later = PatchDesign(patches, weight, pool=pool, n_bins=s.n_bins, **chosen).stored()
    coef = raw / np.where(later.inv > 0, later.inv, 1.0)[:, None, None]
    offset = offset + np.einsum("mw,mwq->q", later.mean, raw)
    state = annealed(later, y, weight, counts[switch:], coef=coef, intercept=offset)
    kept = kept[state.kept]
    small = state.design
    # The fit starts from zero. The annealed coefficients overshoot in directions shared by many
    # correlated features, which accelerated steps correct more slowly than they fit from zero.
    zero = np.zeros_like(state.coef), np.zeros_like(state.intercept)
    coef, offset = accelerated_gradient(
        small, y, loss, weight, *zero, prior=prior, n_steps=s.final_steps
    )
    raw, offset = small.unstandardise(coef, offset)
    return {name: values[kept] for name, values in table.items()}, raw.astype(np.float32), offset


def balanced_weights(y: np.ndarray) -> np.ndarray:
    """Return row weights that sum to one half in each class; ``y`` has shape (n,) or (n, 1)."""
    y = y.reshape(-1)
    return np.where(y > 0, 0.5 / max((y > 0).sum(), 1), 0.5 / max((y < 0).sum(), 1))


def _balanced_rows(y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw at most ``n`` rows in ascending order; up to half are positives, and the rest are
    negatives."""
    positive, negative = (
        rng.permutation(np.flatnonzero(y > 0)),
        rng.permutation(np.flatnonzero(y < 0)),
    )
    n_positive = min(len(positive), max(n // 2, n - len(negative)))
    return np.sort(np.concatenate([positive[:n_positive], negative[: n - n_positive]]))
