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
    "fsa-classification": ("selectors", "fsa_classification", "simulated classes: Barbu et al. (2017), Table II; III: --noisy"),
    "fsa-regression": ("selectors", "fsa_regression", "simulated regression: Barbu et al. (2017), Table IV"),
    "fsa-wide": ("selectors", "fsa_wide", "regression with 10,000 columns: Barbu et al. (2014), Table 3"),
    "fsa-off-design": ("selectors", "fsa_off_design", "random supports and signs, equicorrelated columns"),
    "fsa-large": ("selectors", "fsa_large", "100,000 rows: Barbu et al. (2017), eq. (18)"),
    "fsa-stability": ("figures", "fsa_stability", "AUC against rate, mu and steps: Barbu et al. (2017), Figure 6"),
    "public-tables": ("public_tables", "public_tables", "test error on public tables at equal numbers of features"),
    "ranking": ("public_tables", "ranking", "NDCG@10 of rankers on MQ2008"),
    "mslr-synthetic": ("minimax", "mslr_synthetic", "minimax sparse logistic regression: Tan et al. (2013), Figures 1, 3, 4"),
    "mslr-leukemia": ("minimax", "mslr_leukemia", "missed test samples by number of genes: Tan et al. (2013), Figure 6(a)"),
    "sdist-simulated": ("metric", "sdist_simulated", "XOR and double rings: Ma (thesis), Tables 2.1 and 2.2"),
    "sdist-real": ("metric", "sdist_real", "Madelon, Ionosphere, USPS 7/9: Ma (thesis), Table 2.4"),
    "sensors": (".sensors.tables", "sensors", "error by number of sensors, and which: Liu et al. (2014), Figure 2 and Table 2"),
    "sensors-simulated": (".sensors.tables", "sensors_simulated", "true sensors found in ten simulated homes"),
    "kernel-simulated": ("kernels.tables", "kernel_simulated", "XOR, rings, parity: Ma (thesis), section 4.2, and other kernels"),
    "kernel-real": ("kernels.tables", "kernel_real", "Madelon, Ionosphere: Ma (thesis), section 4.2"),
    "motion-table": (".motion.paper_table", "motion_table", "motion segmentation: Barbu et al. (2014), Table 5"),
    "online-tables": ("online", "online_tables", "five sparse online learners: Ma (thesis), Tables 3.2 to 3.4"),
}


# What is only drawn (:mod:`~.figures`).
PICTURES = {
    "sdist-surfaces": "picture only: Ma (thesis), Figures 2.1 and 2.3",
    "online-nonzeros": "picture only: Ma (thesis), Figures 3.1 and 3.5",
    "online-sparsity": "picture only: Ma (thesis), Figure 3.3",
}


def table(name: str) -> Callable[..., dict[str, Any]]:
    """The function that makes a table of ``TABLES``; the message for a picture says how to draw it."""
    if name not in TABLES:
        hint = "; give --picture FILE" if name in PICTURES else f"; expected one of {', '.join(sorted(TABLES))}"
        raise ValueError(f"{name!r} is no table{hint}")
    module, function, _ = TABLES[name]
    return getattr(import_module(f".{module}", __package__), function)


def has_cells(name: str) -> bool:
    """Whether a table is made in cells that can be kept in a file."""
    return "checkpoint" in signature(table(name)).parameters


def reproduce(name: str, runs: int | None = None, data_dir=None, **options) -> dict[str, Any]:
    """Make a table of ``TABLES``: ``name``, ``settings`` and ``rows``, one dict per line.

    None for ``runs`` and ``data_dir`` means the table's own default; ``options`` are those of its function.
    """
    make = table(name)
    for option in set(options) - set(signature(make).parameters):
        raise ValueError(f"{option}: {name} has no such option")
    if runs is not None and runs < 1:
        raise ValueError(f"runs={runs!r}; expected at least 1")
    given = {"runs": runs, "data_dir": data_dir, **options}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\d+ features found")  # the rows say what was selected
        return make(**{key: value for key, value in given.items() if value is not None})
