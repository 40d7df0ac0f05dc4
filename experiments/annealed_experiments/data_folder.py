"""The folder of the public data: the one given, else that of the environment variable
``ANNEALED_DATA``."""

import os
from pathlib import Path


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Folder of the public data sets.

    Parameters
    ----------
    data_dir : path or None, default None
        What a user gave; None takes the environment variable ``ANNEALED_DATA``.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If neither is given: the package has no default.
    """
    chosen = data_dir or os.environ.get("ANNEALED_DATA")
    if not chosen:
        raise ValueError(
            "the folder of the real data is not known; expected --data or the environment variable ANNEALED_DATA"
        )
    return Path(chosen)
