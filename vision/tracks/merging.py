"""Join the motions of a segmentation that one geometric model explains, until as many are left as
there should be."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .pairs.measures import motion_costs
from .tracks import Tracks


def merged(tracks: Tracks, labels: np.ndarray, n_motions: int) -> np.ndarray:
    """Join two motions at a time, those whose union raises the sum of GRIC least [1]_.

    Parameters
    ----------
    tracks : Tracks
    labels : ndarray of shape (P,), int
        Motion of each point, in the canonical order of the tracks.
    n_motions : int
        How many are to be left.

    Returns
    -------
    ndarray of shape (P,), int
        0 .. n_motions-1.

    References
    ----------
    .. [1] P. H. S. Torr, "Geometric motion segmentation and model selection", Philosophical
           Transactions of the Royal Society A 356 (1998).
    """
    motions = [labels == label for label in np.unique(labels)]
    while len(motions) > n_motions:
        pairs = list(combinations(range(len(motions)), 2))
        unions = [motions[i] | motions[j] for i, j in pairs]
        alone = _costs(tracks, motions)
        raised = _costs(tracks, unions) - [alone[i] + alone[j] for i, j in pairs]
        best = int(np.argmin(raised))
        motions = [one for k, one in enumerate(motions) if k not in pairs[best]] + [unions[best]]
    return np.argmax(motions, axis=0)


def _costs(tracks: Tracks, motions: list[np.ndarray]) -> np.ndarray:
    """Costs of motions; those that are not known yet are found together."""
    keys = [np.packbits(one).tobytes() for one in motions]
    new = {key: one for key, one in zip(keys, motions) if key not in tracks.motion_costs}
    if new:
        tracks.motion_costs.update(zip(new, motion_costs(tracks.pairs, np.array(list(new.values()))).tolist()))
    return np.array([tracks.motion_costs[key] for key in keys])
