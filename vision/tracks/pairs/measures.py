"""Measures of a segmentation, based on models fitted to each motion in each pair of frames."""

from collections.abc import Callable, Sequence

import numpy as np

from .frame_pairs import FramePair, FramePairs
from .geometry import GEOMETRIES, Geometry, distances, fit, own_distances

LEVELS = (0.25, 0.5, 1.0, 2.0, 4.0)  # pixels
RANGES = ("all gaps", "short gaps", "long gaps")
RESIDUALS = (
    "mean residual",
    "rms residual",
    "median residual",
    *(f"share above {t:g} px" for t in LEVELS),
)
RIVALS = (
    "share fitted better by another motion",
    "share fitted clearly better",
    "worst motion's share fitted better",
    "mean log ratio to the best other",
    "mean margin to the best other",
)
NEIGHBOURS = (3, 5, 10, 15, 20, 30)
CUTS = ("normalised cut", *(f"cut, {k} neighbours" for k in NEIGHBOURS))
SIGMA = 0.5  # pixels: standard deviation of track noise in GRIC (heuristic)
_FLOOR = 0.01  # pixels: keeps the logarithm of a perfect fit finite
_FAR = 10.0  # pixels: distances in margins are clipped here, so that no single point dominates
_MAX_CORRECTION = 4.0


def motions_of(segmentations: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the distinct motions of several segmentations.

    Parameters
    ----------
    segmentations : sequence of ndarray of shape (P,), int
        Motion of each point, in each segmentation.

    Returns
    -------
    members : ndarray of shape (n_motions, P), bool
        Mask of the points of each motion. Row 0 contains all points, and each other row is a
        distinct motion.
    rows : list of ndarray of shape (K,), int
        For each segmentation, the indices of the rows that contain its motions, sorted by label.
    """
    members = [np.ones(len(segmentations[0]), bool)]
    known = {members[0].tobytes(): 0}
    rows = []
    for labels in segmentations:
        motions = []
        for label in np.unique(labels):
            mask = labels == label
            key = mask.tobytes()
            if key not in known:
                known[key] = len(members)
                members.append(mask)
            motions.append(known[key])
        rows.append(np.array(motions))
    return np.array(members), rows


def fit_measures(
    pairs: FramePairs, segmentations: Sequence[np.ndarray]
) -> tuple[Callable[[str, str], np.ndarray], np.ndarray]:
    """Compute the likelihood features of segmentations from models fitted to their motions.

    Parameters
    ----------
    pairs : FramePairs
        Pairs of frames of the sequence.
    segmentations : sequence of ndarray of shape (P,), int
        Motion of each point, in each segmentation.

    Returns
    -------
    measures : callable
        Function that takes the name of a model and the name of a range of frame gaps (from
        ``RANGES``), and returns an array of shape (n_segmentations, 13) with the features
        ``RESIDUALS`` (averages on a logarithmic scale), followed by ``RIVALS``.
    gric : ndarray of shape (n_segmentations, 3, 5)
        Torr's geometric robust information criterion (GRIC) per observation, for each range of
        frame gaps and each model. The last column is for the best model of each motion.
    """
    members, rows = motions_of(segmentations)
    table = np.full((len(rows), max(len(motions) for motions in rows)), -1)
    positions = np.zeros((len(rows), members.shape[1]), np.int64)
    for s, motions in enumerate(rows):
        table[s, : len(motions)] = motions
        positions[s] = np.unique(segmentations[s], return_inverse=True)[1]
    counts = np.array([len(pair.points) for pair in pairs.pairs], np.int64)
    every = np.ones(len(counts), bool)
    is_long = np.array([pair.is_long for pair in pairs.pairs], bool)
    # A range is empty if there are too few frames; all pairs are then used.
    ranges = [chosen if chosen.any() else every for chosen in (every, ~is_long, is_long)]
    observed = (
        np.concatenate([pair.points for pair in pairs.pairs]) if pairs.pairs else np.zeros(0, int)
    )
    distances_of: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    costs = np.zeros((len(pairs.pairs), len(members), len(GEOMETRIES)))
    for g, geometry in enumerate(GEOMETRIES):
        own_distance, other = np.zeros((2, len(rows), len(observed)), np.float32)
        start = 0
        for t, pair in enumerate(pairs.pairs):
            stop = start + len(pair.points)
            apart, correction, costs[t, :, g] = _motion_fits(
                geometry, pair, members[:, pair.points]
            )
            apart *= correction[:, None]
            own_distance[:, start:stop], other[:, start:stop] = _own_and_other(
                apart, table, positions[:, pair.points]
            )
            start = stop
        distances_of[geometry.name] = own_distance, other

    def measures(model: str, name: str) -> np.ndarray:
        inside = np.repeat(ranges[RANGES.index(name)], counts)
        own_distance, other = distances_of[model]
        return _summaries(own_distance[:, inside], other[:, inside], positions[:, observed[inside]])

    return measures, _gric(costs, rows, counts, ranges)


def moment_sums(pairs: FramePairs, members: np.ndarray) -> dict[str, np.ndarray]:
    """Sum the moments over the points of each motion, in each pair of frames.

    The sums for a union of disjoint motions are obtained by adding the sums for these motions.

    Parameters
    ----------
    pairs : FramePairs
        Pairs of frames of the sequence.
    members : ndarray of shape (n_motions, P), bool
        Mask of the points of each motion.

    Returns
    -------
    dict of str to ndarray of shape (n_motions, n_pairs, q, q)
        Sums by model name.
    """
    weights = [members[:, pair.points].astype(float) for pair in pairs.pairs]
    sums = {
        g.name: [np.tensordot(w, pair.moments[g.name], 1) for w, pair in zip(weights, pairs.pairs)]
        for g in GEOMETRIES[:3]
    }
    stacked = {name: np.stack(listed, axis=1) for name, listed in sums.items()}
    return stacked | {"epipolar": stacked["affinity"]}


def motion_costs(pairs: FramePairs, members: np.ndarray, sums: dict[str, np.ndarray]) -> np.ndarray:
    """Compute the GRIC of the best model of each motion, summed over the pairs of frames.

    A model is not fitted if the penalty for its parameters alone exceeds the lowest GRIC so far.

    Parameters
    ----------
    pairs : FramePairs
        Pairs of frames of the sequence.
    members : ndarray of shape (n_motions, P), bool
        Mask of the points of each motion.
    sums : dict of str to ndarray of shape (n_motions, n_pairs, q, q)
        Sums from :func:`moment_sums`.

    Returns
    -------
    ndarray of shape (n_motions,)
    """
    motion, row = np.nonzero(members[:, pairs.point_of_row])
    n_pairs = len(pairs.pairs)
    which = motion * n_pairs + pairs.pair_of_row[row]  # motion and pair of frames of each distance
    sizes = np.bincount(which, minlength=len(members) * n_pairs)
    best = np.where(sizes > 0, np.inf, 0.0)
    # affine models first: their eigenproblems are small
    for geometry in (GEOMETRIES[0], *GEOMETRIES[:0:-1]):
        known = _parameters_cost(geometry, sizes)
        fitted = np.flatnonzero(known < best)
        moments = sums[geometry.name].reshape(len(sizes), *sums[geometry.name].shape[2:])[fitted]
        few = sizes[fitted] < geometry.n_minimal + 2
        moments[few] = pairs.moments_of_all[geometry.name][fitted[few] % n_pairs]
        at = np.full(len(sizes), -1)
        at[fitted] = np.arange(len(fitted))
        inside = at[which] >= 0
        model, place = at[which[inside]], row[inside]
        apart = (
            own_distances(geometry.name, fit(geometry.name, moments)[model], pairs.rows[place])
            * pairs.scale_of_row[place]
        )
        robust = np.bincount(
            model, np.minimum(np.square(apart / SIGMA), _limit(geometry)), len(fitted)
        )
        best[fitted] = np.minimum(best[fitted], robust + known[fitted])
    return best.reshape(len(members), n_pairs).sum(axis=1)


def _limit(geometry: Geometry) -> float:
    return 2.0 * (4 - geometry.dimension)


def _parameters_cost(geometry: Geometry, sizes: np.ndarray) -> np.ndarray:
    """Compute GRIC's penalty for the parameters of the points and of the model."""
    return (
        np.log(4.0) * geometry.dimension * sizes
        + np.log(4.0 * np.maximum(sizes, 1.0)) * geometry.n_parameters
    )


def _motion_fits(
    geometry: Geometry, pair: FramePair, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute distances (n_motions, n) in pixels, corrections for the number of parameters
    (n_motions,), and GRIC (n_motions,).

    A motion with hardly more points than a minimal fit requires takes the model fitted to all
    points.
    """
    weights = members.astype(float)
    sizes = weights.sum(axis=1)
    one = pair.moments[geometry.name]
    width = one.shape[1]
    sums = (weights @ one.reshape(len(one), -1)).reshape(-1, width, width)
    few = sizes < geometry.n_minimal + 2
    sums[few] = sums[0]
    apart = distances(geometry.name, fit(geometry.name, sums), pair.rows) * np.float32(pair.scale)
    equations = geometry.n_equations * np.where(few, len(one), sizes)
    correction = np.sqrt(equations / np.maximum(equations - geometry.n_parameters, 1e-9))
    robust = (weights * np.minimum(np.square(apart / SIGMA), _limit(geometry))).sum(axis=1)
    cost = robust + _parameters_cost(geometry, sizes)
    return (
        apart,
        np.minimum(correction, _MAX_CORRECTION).astype(np.float32),
        np.where(sizes > 0, cost, 0.0),
    )


def _own_and_other(
    apart: np.ndarray, table: np.ndarray, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance of each point to its own motion's model, and the smallest distance to
    another motion's model, (n_segmentations, n) each."""
    by_motion = np.where(table[:, :, None] >= 0, apart[table], np.float32(1e9))
    own_distance = np.take_along_axis(by_motion, positions[:, None], axis=1)[:, 0]
    np.put_along_axis(by_motion, positions[:, None], np.float32(1e9), axis=1)
    return own_distance, by_motion.min(axis=1)


def _summaries(own_distance: np.ndarray, other: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Compute ``RESIDUALS`` and ``RIVALS``, (n_segmentations, 13)."""
    if not own_distance.shape[1]:
        return np.zeros((len(own_distance), len(RESIDUALS) + len(RIVALS)))
    near = np.minimum(own_distance, 1e4)
    columns = [
        np.log(near.mean(axis=1) + _FLOOR),
        np.log(np.sqrt(np.square(near).mean(axis=1)) + _FLOOR),
        np.log(np.median(own_distance, axis=1) + _FLOOR),
        *((own_distance > t).mean(axis=1) for t in LEVELS),
    ]
    better = other < own_distance
    worst = np.zeros(len(own_distance))
    for s in range(len(own_distance)):
        inside = np.bincount(positions[s])
        worst[s] = (np.bincount(positions[s], weights=better[s]) / np.maximum(inside, 1)).max()
    ratio = np.clip(np.log((own_distance + 0.1) / (other + 0.1)), -4.0, 4.0)
    margin = np.minimum(own_distance, _FAR) - np.minimum(other, _FAR)
    clearly = better & (own_distance > 2.0 * other) & (own_distance > SIGMA)
    return np.column_stack(
        [
            *columns,
            better.mean(axis=1),
            clearly.mean(axis=1),
            worst,
            ratio.mean(axis=1),
            margin.mean(axis=1),
        ]
    )


def _gric(
    costs: np.ndarray, rows: list[np.ndarray], counts: np.ndarray, ranges: list[np.ndarray]
) -> np.ndarray:
    """Compute the mean GRIC per observation, (n_segmentations, n_ranges, n_models + 1)."""
    gric = np.zeros((len(rows), len(RANGES), len(GEOMETRIES) + 1))
    both = np.concatenate([costs, costs.min(axis=2, keepdims=True)], axis=2)
    for r, chosen in enumerate(ranges):
        per_motion = both[chosen].sum(axis=0) / max(int(counts[chosen].sum()), 1)
        for s, members in enumerate(rows):
            gric[s, r] = per_motion[members].sum(axis=0)
    return gric


def own_residuals(pairs: FramePairs, labels: np.ndarray, name: str = "fundamental") -> np.ndarray:
    """Compute the distance of each point from the model of its motion.

    The result is the upper quartile of the distances in all pairs of frames. For robustness, each
    model is fitted to those three quarters of the points of a motion that have the smallest
    distances.

    Parameters
    ----------
    pairs : FramePairs
        Pairs of frames of the sequence.
    labels : ndarray of shape (P,), int
        Motion of each point, from 0 to K - 1.
    name : str, default "fundamental"
        Name of the model.

    Returns
    -------
    ndarray of shape (P,)
        Distances in pixels; 0 for a point that is not in any pair.
    """
    geometry = next(g for g in GEOMETRIES if g.name == name)
    members, (rows,) = motions_of([labels])
    position = np.unique(labels, return_inverse=True)[1]
    residuals = np.full((len(pairs.pairs), len(labels)), np.nan)
    for t, pair in enumerate(pairs.pairs):
        inside = members[:, pair.points]
        motion = rows[position[pair.points]]
        for trimmed in (True, True, False):
            apart, correction, _ = _motion_fits(geometry, pair, inside)
            if trimmed:
                limits = np.array(
                    [
                        np.quantile(a[m], 0.75) if m.any() else np.inf
                        for a, m in zip(apart, members[:, pair.points])
                    ]
                )
                inside = members[:, pair.points] & (apart <= limits[:, None])
        residuals[t, pair.points] = apart[motion, np.arange(len(motion))] * correction[motion]
    out = np.zeros(len(labels))
    out[pairs.in_a_pair] = np.nanquantile(residuals[:, pairs.in_a_pair], 0.75, axis=0)
    return out


def cut_measures(kernel: np.ndarray, segmentations: Sequence[np.ndarray]) -> np.ndarray:
    """Compute the prior features of segmentations, ``CUTS``, from a kernel.

    The features are the mean normalised cut over the motions and, for several k, the fraction of
    the k nearest neighbours of a point that belong to another motion.

    Parameters
    ----------
    kernel : ndarray of shape (P, P)
        Non-negative kernel with a zero diagonal. Points whose row is zero are ignored.
    segmentations : sequence of ndarray of shape (P,), int
        Motion of each point, in each segmentation.

    Returns
    -------
    ndarray of shape (n_segmentations, 7)
    """
    used = np.flatnonzero(kernel.any(axis=1))
    if len(used) < 2:
        return np.zeros((len(segmentations), len(CUTS)))
    kernel = kernel if len(used) == len(kernel) else kernel[np.ix_(used, used)]
    most = min(max(NEIGHBOURS), len(used) - 1)
    near = np.argpartition(-kernel, most - 1, axis=1)[:, :most]
    near = np.take_along_axis(
        near, np.argsort(-np.take_along_axis(kernel, near, axis=1), axis=1, kind="stable"), axis=1
    )
    degree = kernel.sum(axis=1)
    members, rows = motions_of([labels[used] for labels in segmentations])
    weights = members.astype(kernel.dtype)
    inside = ((weights @ kernel) * weights).sum(axis=1)
    volume = np.maximum(weights @ degree, 1e-12)
    measures = np.empty((len(segmentations), len(CUTS)))
    for s, labels in enumerate(segmentations):
        mine = labels[used]
        running = np.cumsum((mine[near] != mine[:, None]).mean(axis=0))
        measures[s, 0] = (1.0 - inside[rows[s]] / volume[rows[s]]).mean()
        measures[s, 1:] = [running[min(k, most) - 1] / min(k, most) for k in NEIGHBOURS]
    return measures
