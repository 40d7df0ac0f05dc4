"""The folder of the public data: the given one, or the environment variable ``ANNEALED_DATA``."""

import os
from pathlib import Path


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Folder of the public data sets.

    Parameters
    ----------
    data_dir : path or None, default None
        Folder given by the user; None takes the environment variable ``ANNEALED_DATA``.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If neither is set: the package has no default.
    """
    chosen = data_dir or os.environ.get("ANNEALED_DATA")
    if not chosen:
        raise ValueError(
            "the folder of real data is not set; use --data or the environment variable "
            "ANNEALED_DATA"
        )
    return Path(chosen)
