"""The papers' tables by name, for ``annealed reproduce``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

# Name -> (module beside this one, function, what it shows). A function takes ``runs`` and ``data_dir`` and returns
# {"name", "settings", "rows"}; the module is imported when its table is asked for.
TABLES: dict[str, tuple[str, str, str]] = {
    "fsa-classification": ("selectors", "fsa_classification", "simulated classification: PAMI text, Tables II and III"),
    "fsa-regression": ("selectors", "fsa_regression", "simulated regression: PAMI text, Table IV"),
    "fsa-stability": ("selectors", "fsa_stability", "AUC against rate, mu and steps: PAMI text, Figure 6"),
    "mslr-synthetic": ("minimax", "mslr_synthetic", "minimax sparse logistic regression, synthetic setups"),
    "mslr-leukemia": ("minimax", "mslr_leukemia", "missed test samples against the number of genes"),
    "sdist-simulated": ("metric", "sdist_simulated", "XOR and double rings: thesis, Tables 2.1 and 2.2"),
    "sdist-real": ("metric", "sdist_real", "Madelon, Ionosphere, USPS 7/9: thesis, Table 2.4"),
    "online-tables": ("online", "online_tables", "five sparse online learners: thesis, Tables 3.2-3.4"),
}


def table(name: str) -> Callable[..., dict[str, Any]]:
    """Return the function that makes a table.

    Raises
    ------
    ValueError
        If there is no table of that name.
    """
    if name not in TABLES:
        raise ValueError(f"{name!r} is no table; expected one of {', '.join(sorted(TABLES))}")
    module, function, _ = TABLES[name]
    return getattr(import_module(f".{module}", __package__), function)


def has_cells(name: str) -> bool:
    """Whether a table is made in cells that can be kept in a file."""
    return "checkpoint" in signature(table(name)).parameters


def reproduce(name: str, runs: int | None = None, data_dir=None, **options) -> dict[str, Any]:
    """Make a table.

    Parameters
    ----------
    name : str
        One of :data:`TABLES`.
    runs : int or None
        Repetitions; None means the table's own number.
    data_dir : path or None
        Folder of the real data; None means the table's own default.
    **options
        Of the table.

    Returns
    -------
    dict
        ``name``, ``settings`` and ``rows``, one dict per line of the table.

    Raises
    ------
    ValueError
        For an unknown name, fewer than one run, an option that the table does not have, or missing data.
    """
    make = table(name)
    for option in set(options) - set(signature(make).parameters):
        raise ValueError(f"{option}: {name} has no such option")
    if runs is not None and runs < 1:
        raise ValueError(f"runs={runs!r}; expected at least 1")
    given = {"runs": runs, "data_dir": data_dir, **options}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\d+ features found")  # the rows tell what was selected
        return make(**{key: value for key, value in given.items() if value is not None})
