"""Access to matplotlib, which is an optional dependency."""

from typing import Any


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed; the message names the extra.
    """
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plots require matplotlib: pip install '.[plots]' in the checkout of annealed",
            name=error.name,
        ) from None
    return pyplot
