"""Training of the cascade that refines all points of a face."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .....learners.designs.dense import DenseDesign
from .....learners.objective.losses import get_loss
from .....learners.solvers import anneal, annealing_step, as_schedule
from .....models.keypoints.instances import RegressionStage, ShapeModel, ShapeRegressor
from .....models.keypoints.schema import Schema
from .....vision.point_histograms import VALUES_PER_POINT
from ...data import AnnotatedImage, annotated
from .augmentation import AugmentationSettings, InstanceCopy, copies, start_of

#: Unmodified photographs and their mirror images.
PLAIN = AugmentationSettings(copies=1, blurred=0.0, compressed=0.0, brightened=0.0)


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of the cascade that refines the points of a face in stages.

    Parameters
    ----------
    augmentation : AugmentationSettings
        Augmentation of the training faces.
    starts : int
        Number of initial shapes for each copy of a face.
    mean_starts : int
        Number of these initial shapes that are replaced by the aligned mean shape, from which a
        detector starts its second refinement.
    ied : tuple of int
        For each stage, the reference length in the cropped face, in pixels.
    cell : tuple of int
        For each stage, the side of a histogram cell, in pixels.
    n_features : int
        Number of histogram values that each stage selects, out of 128 per point.
    n_components : int
        Number of principal displacements. Each stage predicts a linear combination of them.
    ridge : float
        Ridge penalty of the final fit, per thousand rows.
    n_steps : int
        Number of annealing steps.
    mu : float
        Speed of the annealing schedule, eq. (3) of Barbu et al. (2017).
    seed : int
        Random seed.
    """

    augmentation: AugmentationSettings = field(default_factory=lambda: PLAIN)
    starts: int = 8
    mean_starts: int = 3
    ied: tuple[int, ...] = (24, 32, 40, 56, 72)
    cell: tuple[int, ...] = (6, 6, 5, 5, 5)
    n_features: int = 2500
    n_components: int = 40
    ridge: float = 9.0
    n_steps: int = 60
    mu: float = 30.0
    seed: int = 0


# Maximum memory for the histograms of all initial shapes, in single precision, 1 GiB (heuristic).
# If more is needed, only every n-th photograph is used.
MAX_VALUES = 2**28


@dataclass
class Runs:
    """Refinements (runs) in progress.

    The fields are the copies and, for each run, the index of its copy, its current shape, the
    annotated points, and the reference length in pixels.
    """

    copies: list[InstanceCopy]
    copy: np.ndarray
    now: np.ndarray
    truth: np.ndarray
    reference_length: np.ndarray

    def errors(self, matrix: np.ndarray) -> np.ndarray:
        """Compute the distances from the annotated keypoints, in reference lengths.

        The result has shape (n_runs, n_keypoints).
        """
        return abs((self.now - self.truth) @ matrix.T) / self.reference_length[:, None]

    def moves(self, regressor: ShapeRegressor) -> np.ndarray:
        """Compute the remaining displacements, in the coordinate system of each shape.

        The result has shape (n_runs, n_points, 2).
        """
        units = np.array([regressor.align(points).scale_rotation for points in self.now])
        return _parts((self.truth - self.now) / units[:, None])


def _parts(points: np.ndarray) -> np.ndarray:
    """Return the real and imaginary parts (..., 2)."""
    return np.stack([points.real, points.imag], axis=-1)


def start_runs(
    images: Sequence[AnnotatedImage],
    shape: ShapeModel,
    settings: AugmentationSettings,
    starts: int,
    seed: Sequence[int],
    mean_starts: int = 0,
) -> Runs:
    """Create augmented copies of the faces, and their initial shapes.

    The last ``mean_starts`` shapes of each copy are mean shapes.
    """
    some = annotated(images)
    n_starts = len(some[0].schema.flips) * settings.copies * starts
    n_values = sum(image.points.size for image in some) * n_starts * VALUES_PER_POINT
    faces = list(copies(some[:: max(1, -(-n_values // MAX_VALUES))], settings, [*seed, 0]))
    n_anchors = len(shape.anchors)
    matrix = images[0].schema.to_keypoints(len(faces[0].points))
    now = []
    for number, face in enumerate(faces):
        anchors = (matrix @ face.points)[:n_anchors]
        for start in range(starts):
            rng = np.random.default_rng([*seed, 1, number, start])
            points = start_of(anchors, face.reference_length, shape, settings, rng)
            if start >= starts - mean_starts:
                points = shape.align(points, np.arange(len(points))).to_image(shape.mean_points)
            now.append(points[n_anchors:])
    which = np.repeat(np.arange(len(faces)), starts)
    truth, ied = (
        np.stack([face.points for face in faces]),
        np.array([face.reference_length for face in faces]),
    )
    return Runs(faces, which, np.array(now), truth[which], ied[which])


def describe_runs(
    runs: Runs, regressor: ShapeRegressor, ied: int, cell: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the gradient histograms of all runs, and the scale and rotation of their shapes.

    The histograms around n points form a float32 array of shape (n_runs, 128 n). The scale and
    rotation are given by a complex number.
    """
    values = np.empty((len(runs.now), VALUES_PER_POINT * len(regressor.mean)), np.float32)
    units = np.empty(len(runs.now), complex)
    levels, of = [], -1
    for row, (copy, points) in enumerate(zip(runs.copy, runs.now)):
        if copy != of:
            levels, of = (
                runs.copies[copy].levels(regressor.align(runs.truth[row]).reference_length, ied),
                copy,
            )
        histograms, transform = regressor.describe(levels, points, ied, cell)
        values[row], units[row] = histograms.ravel(), transform.scale_rotation
    return values, units


def move_runs(
    runs: Runs,
    regressor: ShapeRegressor,
    stage: RegressionStage,
    values: np.ndarray,
    units: np.ndarray,
) -> None:
    """Apply one stage to all runs, given the result of :func:`describe_runs`."""
    histograms = values.reshape(len(values), -1, VALUES_PER_POINT)
    runs.now = np.stack([regressor.move(stage, *row) for row in zip(runs.now, histograms, units)])


def unrefined(shape: ShapeModel, schema: Schema) -> ShapeRegressor:
    """Return a cascade without stages, which does not change the mean shape."""
    n_anchors, n = len(shape.anchors), len(shape.mean) - len(shape.anchors)
    empty, offset = np.empty((0, n, 2), np.float32), np.zeros((n, 2), np.float32)
    return ShapeRegressor(
        shape.mean[n_anchors:], empty, (), schema.to_keypoints(n), offset, schema.point_order(n)
    )


def train_regressor(
    images: Sequence[AnnotatedImage],
    shape: ShapeModel,
    settings: RegressionSettings,
    say: Callable[[str], None] = print,
    selection: Callable[[np.ndarray, np.ndarray, RegressionSettings], np.ndarray] | None = None,
) -> tuple[ShapeRegressor, dict]:
    """Train the cascade on photographs and their mirror images.

    The function also returns the training errors of each stage. Histogram values are selected by
    annealing unless ``selection`` is given. ``selection`` takes the values, of shape (n_rows, p),
    the targets, of shape (n_rows, q), and the settings, and returns k indices in ascending order.
    """
    s = settings
    runs = start_runs(images, shape, s.augmentation, s.starts, [s.seed, 40], s.mean_starts)
    regressor = unrefined(shape, images[0].schema)
    matrix = regressor.to_keypoints
    regressor = replace(regressor, basis=principal_displacements(runs, regressor, s.n_components))
    facts: dict = {"runs": len(runs.now), "median_error": [float(np.median(runs.errors(matrix)))]}
    say(
        f"refinement: {len(runs.now)} starts, median error {facts['median_error'][0]:.4f} "
        "reference lengths"
    )
    for number, (ied, cell) in enumerate(zip(s.ied, s.cell, strict=True)):
        values, units = describe_runs(runs, regressor, ied, cell)
        moves = _parts((runs.truth - runs.now) / units[:, None]).reshape(len(values), -1)
        target = moves @ regressor.basis.reshape(len(regressor.basis), -1).T.astype(
            float
        )  # coefficients with respect to the basis
        kept = (selection or annealed)(values, target, s)
        stage = fit_stage(values, target, kept, ied, cell, s)
        move_runs(runs, regressor, stage, values, units)
        regressor = replace(regressor, stages=(*regressor.stages, stage))
        facts["median_error"].append(float(np.median(runs.errors(matrix))))
        say(
            f"refinement: stage {number + 1}, median error {facts['median_error'][-1]:.4f} "
            "reference lengths"
        )
    return replace(regressor, offset=annotation_offset(runs, regressor)), facts


def annotation_offset(runs: Runs, regressor: ShapeRegressor) -> np.ndarray:
    """Compute the systematic displacement that remains after the last stage.

    The result, a float32 array of shape (n_points, 2) in reference lengths, is half the difference
    between the median errors in photographs and in their mirror images. Symmetric errors, which are
    common to both, are not corrected.
    """
    if not len(regressor.mirror):
        return regressor.offset
    moves = runs.moves(regressor)
    mirrored = np.array([runs.copies[copy].mirrored for copy in runs.copy])
    return ((np.median(moves[~mirrored], axis=0) - np.median(moves[mirrored], axis=0)) / 2).astype(
        np.float32
    )


def principal_displacements(runs: Runs, regressor: ShapeRegressor, n: int) -> np.ndarray:
    """Compute the n orthonormal displacements that best explain the errors before the first stage.

    The result is a float32 array of shape (n, n_points, 2). All stages use the same displacements,
    since these span the differences between shapes.
    """
    flat = runs.moves(regressor).reshape(len(runs.now), -1)
    chosen = np.linalg.eigh(flat.T @ flat / len(flat))[1][:, ::-1][:, :n].T
    return chosen.reshape(len(chosen), -1, 2).astype(np.float32)


def fit_stage(
    values: np.ndarray,
    target: np.ndarray,
    kept: np.ndarray,
    ied: int,
    cell: int,
    s: RegressionSettings,
) -> RegressionStage:
    """Fit the responses to the selected histogram values by ridge regression."""
    coefficients, intercept = ridge_fit(values[:, kept], target, s.ridge * len(values) / 1000)
    return RegressionStage(
        ied,
        cell,
        kept.astype(np.int32),
        coefficients.astype(np.float16),
        intercept.astype(np.float32),
    )


def annealed(values: np.ndarray, target: np.ndarray, s: RegressionSettings) -> np.ndarray:
    """Select histogram values by annealing with the squared loss.

    All outputs share the selected values (Barbu et al. (2014), section 7.2).
    """
    k = s.n_features
    if k >= values.shape[1]:
        return np.arange(values.shape[1])
    loss, weight = get_loss("squared"), np.full(len(values), 1 / len(values))
    unit = np.sqrt((target**2).sum(axis=1).mean())
    counts = as_schedule("inverse", s.mu)(values.shape[1], k, s.n_steps)
    counts = counts[: int(np.argmax(counts == k)) + 1]
    return anneal(
        DenseDesign(values, weight),
        target / unit,
        loss,
        counts,
        sample_weight=weight,
        learning_rate=annealing_step(loss, weight, 1.0),
    ).kept


def ridge_fit(
    values: np.ndarray, target: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the coefficients, of shape (k, q), and the q intercepts of a ridge regression.

    The computation uses single precision.
    """
    mean, centre = values.mean(axis=0, dtype=np.float64), target.mean(axis=0)
    centred = values - mean.astype(np.float32)
    gram = centred.T @ centred
    gram[np.diag_indices(len(gram))] += np.float32(penalty)
    product = centred.T @ (target - centre).astype(np.float32)
    coefficients = cho_solve(cho_factor(gram, overwrite_a=True), product)
    return coefficients, centre - mean @ coefficients
