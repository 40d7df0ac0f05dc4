"""Merging of motions that share a geometric model until a given number of motions remains."""

import numpy as np

from .pairs.measures import moment_sums, motion_costs
from .tracks import Tracks


def merged(tracks: Tracks, labels: np.ndarray, n_motions: int) -> np.ndarray:
    """Merge pairs of motions until ``n_motions`` motions remain.

    Each step merges the pair whose union increases the total geometric robust information criterion
    (GRIC) by the smallest amount [1]_.

    Parameters
    ----------
    tracks : Tracks
    labels : ndarray of shape (P,), int
        Motion of each point, in the canonical order of the tracks.
    n_motions : int
        Number of motions to return.

    Returns
    -------
    ndarray of shape (P,), int
        Motion of each point, from 0 to n_motions - 1.

    References
    ----------
    .. [1] P. H. S. Torr, "Geometric motion segmentation and model selection", Philosophical
           Transactions of the Royal Society A 356 (1998).
    """
    members = np.unique(labels)[:, None] == labels
    if len(members) <= n_motions:
        return np.argmax(members, axis=0)
    sums = moment_sums(tracks.pairs, members)
    while len(members) > n_motions:
        i, j = np.triu_indices(len(members), 1)
        alone = _costs(tracks, members, sums)
        unions = members[i] | members[j]
        of_unions = {name: array[i] + array[j] for name, array in sums.items()}
        best = int(np.argmin(_costs(tracks, unions, of_unions) - (alone[i] + alone[j])))
        kept = np.delete(np.arange(len(members)), [i[best], j[best]])
        members = np.concatenate([members[kept], unions[best : best + 1]])
        sums = {
            name: np.concatenate([array[kept], of_unions[name][best : best + 1]])
            for name, array in sums.items()
        }
    return np.argmax(members, axis=0)


def _costs(tracks: Tracks, members: np.ndarray, sums: dict[str, np.ndarray]) -> np.ndarray:
    """Return the costs of motions; costs that are not cached are computed in one batch."""
    keys = [one.tobytes() for one in np.packbits(members, axis=1)]
    known: dict[bytes, float] = tracks.cached("costs of motions", dict)
    new = np.array([i for i, key in enumerate(keys) if key not in known], int)
    if len(new):
        costs = motion_costs(
            tracks.pairs, members[new], {name: array[new] for name, array in sums.items()}
        )
        known.update(zip([keys[i] for i in new], costs.tolist()))
    return np.array([known[key] for key in keys])
