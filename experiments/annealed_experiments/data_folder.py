"""Folder of the public data, from an argument or the environment variable ``ANNEALED_DATA``."""

import os
from pathlib import Path


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Return the folder of the public data sets.

    Parameters
    ----------
    data_dir : path or None, default None
        Given folder; None means the environment variable ``ANNEALED_DATA``.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If neither is set, since the package has no default.
    """
    chosen = data_dir or os.environ.get("ANNEALED_DATA")
    if not chosen:
        raise ValueError(
            "the folder of real data is not set; use --data or the environment variable "
            "ANNEALED_DATA"
        )
    return Path(chosen)
