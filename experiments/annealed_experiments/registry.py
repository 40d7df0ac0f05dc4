"""Tables and figures of the papers by name."""

import json
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from annealed.pipelines.common.outputs import save_figure

# Name -> (module of this package, function, description). A function takes ``runs`` and
# ``data_dir`` and returns {"name", "settings", "rows"}. The module is imported on demand.
TABLES: dict[str, tuple[str, str, str]] = {
    "fsa-classification": (
        "tables.selectors",
        "fsa_classification",
        "simulated classes: Barbu et al. (2017), Table II; III: --noisy",
    ),
    "fsa-regression": (
        "tables.selectors",
        "fsa_regression",
        "simulated regression: Barbu et al. (2017), Table IV",
    ),
    "fsa-wide": (
        "tables.selectors",
        "fsa_wide",
        "other sizes, up to 10,000 columns: Barbu et al. (2014), Tables 1, 2 and 3",
    ),
    "fsa-off-design": (
        "tables.selectors",
        "fsa_off_design",
        "random supports and signs, equicorrelated columns",
    ),
    "fsa-large": (
        "tables.selectors",
        "fsa_large",
        "up to 100,000 rows of equicorrelated columns: Barbu et al. (2017), eq. (18)",
    ),
    "fsa-speed": ("tables.annealing", "fsa_speed", "time against mu: Barbu et al. (2017), Table I"),
    "fsa-parts": (
        "tables.annealing",
        "fsa_parts",
        "loop, refit, exchanges and longer search of the default settings",
    ),
    "fsa-challenge": (
        "tables.annealing",
        "fsa_challenge",
        "Dexter and a part of Gisette: Barbu et al. (2017), Tables V and VI",
    ),
    "fsa-stability": ("tables.annealing", "fsa_stability", "AUC against rate, mu and steps"),
    "public-tables": (
        "tables.public_tables",
        "public_tables",
        "test error on public tables at equal numbers of features",
    ),
    "mslr-synthetic": (
        "tables.minimax",
        "mslr_synthetic",
        "minimax sparse logistic regression on simulated data",
    ),
    "mslr-leukemia": (
        "tables.minimax",
        "mslr_leukemia",
        "missed test samples and seconds by number of genes",
    ),
    "mslr-real": (
        "tables.minimax",
        "mslr_real",
        "texts at equal numbers of columns: Tan et al. (2013), Tables II and III",
    ),
    "sdist-simulated": (
        "tables.metric",
        "sdist_simulated",
        "XOR and double rings: Ma (thesis), Tables 2.1 and 2.2",
    ),
    "sdist-real": (
        "tables.metric",
        "sdist_real",
        "Madelon, Ionosphere, part of SECOM, USPS 7/9: Ma (thesis), Table 2.4",
    ),
    "sensors": (
        "tables.sensors",
        "sensors",
        "error by number of sensors, and which: Liu et al. (2014), Figure 2 and Table 2",
    ),
    "sensors-simulated": (
        "tables.sensors",
        "sensors_simulated",
        "true sensors found in ten simulated homes",
    ),
    "sensors-features": (
        "tables.sensors",
        "sensors_features",
        "single features in simulated homes: Liu et al. (2014), Figure 2",
    ),
    "kernel-simulated": (
        "kernels.tables",
        "kernel_simulated",
        "XOR, rings, parity: Ma (thesis), section 4.2, and other kernels",
    ),
    "kernel-real": (
        "kernels.tables",
        "kernel_real",
        "Madelon, Ionosphere: Ma (thesis), section 4.2",
    ),
    "motion-table": (
        "tables.motion",
        "motion_table",
        "motion segmentation: Barbu et al. (2014), Table 5; (2017), Table VII",
    ),
    "faces-curves": ("faces.curves", "faces_curves", "learners on the same windows of faces"),
    "faces-keypoints": (
        "faces.curves",
        "faces_keypoints",
        "all keypoints of the shipped model on the test photographs",
    ),
    "faces-nine": (
        "faces.nine",
        "faces_nine",
        "faces of nine keypoints with a 3-D pose and pruning: Barbu et al. (2017), Figure 7",
    ),
    "faces-modes": (
        "faces.curves",
        "faces_modes",
        "modes of search of face keypoints: Barbu et al. (2014), Table 4",
    ),
    "online-tables": (
        "tables.online",
        "online_tables",
        "sparse online learners: Ma (thesis), Tables 3.2 to 3.4",
    ),
}


# Name -> (module of the folder figures, function, description). A function takes ``data_dir``, and
# in some cases ``runs`` and ``checkpoint``, and returns a matplotlib figure. A name that is also in
# ``TABLES`` draws that table's rows.
FIGURES: dict[str, tuple[str, str, str]] = {
    "fsa-schedules": ("annealing", "schedules", "Barbu et al. (2014), Figure 1; (2017), Figure 3"),
    "fsa-coefficients": ("annealing", "coefficients", "Barbu et al. (2014) and (2017), Figure 2"),
    "fsa-losses": ("annealing", "losses", "Barbu et al. (2017), Figure 4"),
    "fsa-responses": ("annealing", "responses", "Barbu et al. (2014), Figure 4; (2017), Figure 5"),
    "fsa-stability": ("annealing", "stability", "Barbu et al. (2014), Figure 3; (2017), Figure 6"),
    "fsa-large": ("annealing", "large", "Barbu et al. (2017), Figure 1"),
    "mslr-synthetic": ("minimax", "recovery", "Tan et al. (2013), Figures 1, 3, 4"),
    "mslr-leukemia": ("minimax", "leukemia", "Tan et al. (2013), Figures 6(a) and 7(a)"),
    "mslr-conditioning": ("minimax", "conditioning", "Tan et al. (2013), Figure 2"),
    "mslr-convergence": ("minimax", "convergence", "Tan et al. (2013), Figure 5"),
    "mslr-sensitivity": ("minimax", "sensitivity", "Tan et al. (2013), Figure 8, on news20"),
    "sdist-surfaces": ("metric", "surfaces", "Ma (thesis), Figures 2.1 and 2.3"),
    "sdist-base": ("metric", "base_classifier", "Ma (thesis), Figure 2.2"),
    "sdist-real": ("metric", "columns", "Ma (thesis), Figure 2.4"),
    "sdist-sensitivity": ("metric", "sensitivity", "Ma (thesis), Figure 2.5"),
    "online-nonzeros": ("online", "nonzeros", "Ma (thesis), Figures 3.1 and 3.5"),
    "online-rejection": ("online", "rejection", "Ma (thesis), Figure 3.2"),
    "online-sparsity": ("online", "sparsity", "Ma (thesis), Figure 3.3"),
    "online-error": ("online", "error", "Ma (thesis), Figure 3.4"),
    "sensors-features": ("sensors", "by_sensors", "Liu et al. (2014), Figure 2"),
    "motion-table": ("motion", "cumulative", "Barbu et al. (2014), Figure 9"),
    "faces-curves": ("faces", "learners", "Barbu et al. (2014), Figure 5; (2017), Figure 7"),
    "faces-modes": ("faces", "modes", "Barbu et al. (2014), Figure 7"),
    "faces-keypoints": ("faces", "keypoints", "Barbu et al. (2017), Figure 7"),
    "pets-keypoints": ("photographs", "keypoints", "Ma (thesis), Figures 4.4 and 4.5"),
}


# Figures that take more than a minute and are not drawn from stored rows, with their processor
# minutes.
MINUTES = {
    "faces-curves": 10,
    "faces-keypoints": 3,
    "faces-modes": 5,
    "motion-table": 15,
    "sdist-sensitivity": 3,
}


def entries() -> list[tuple[str, str]]:
    """Return every name and its description, tables first. The description of a table's figure
    follows "--figures".
    """
    also = {name: shows for name, (*_, shows) in FIGURES.items()}
    tables = [
        (name, what + (f"; --figures: {also[name]}" if name in also else ""))
        for name, (*_, what) in sorted(TABLES.items())
    ]
    return tables + [
        (name, f"figure only: {shows}")
        for name, shows in sorted(also.items())
        if name not in TABLES
    ]


def draw(
    name: str | None,
    folder: str | Path,
    data_dir=None,
    results: Path | None = None,
    **options: Any,
) -> list[Path]:
    """Draw one figure as ``NAME.png`` in a folder, or all figures except those in ``MINUTES``, and
    return the files.

    ``options`` are ``runs`` and ``checkpoint``. If all figures are drawn, options that a figure
    does not have are ignored. Figures of a table are drawn from its stored rows in the folder
    ``results``, if given.
    """
    if name is not None and name not in FIGURES:
        raise ValueError(f"{name!r} has no figure; expected one of {', '.join(FIGURES)}")
    if options.get("runs", 1) < 1:
        raise ValueError(f"runs={options['runs']!r} is not valid; expected an integer >= 1")
    written = []
    for key in [k for k in FIGURES if k not in MINUTES] if name is None else [name]:
        module, function, _ = FIGURES[key]
        make = getattr(import_module(f".figures.{module}", __package__), function)
        known = signature(make).parameters
        variadic = any(p.kind is p.VAR_KEYWORD for p in known.values())
        for option in set(options) - set(known):
            if name is not None and not variadic:
                raise ValueError(f"{option}: this option is not available for the figure {name}")
        given = {option: value for option, value in options.items() if variadic or option in known}
        stored = None if results is None else results / f"{key}.json"
        if stored is not None and "rows" in known and stored.is_file():
            given = {"rows": json.loads(stored.read_text(encoding="utf-8"))["rows"]}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\d+ features found")
            figure = make(data_dir=data_dir, **given)
        path = Path(folder) / f"{key}.png"
        save_figure(path, figure, dpi=90)
        written.append(path)
    return written


def table(name: str) -> Callable[..., dict[str, Any]]:
    """Return the function of a table in ``TABLES``; for a figure, the error message explains how to
    draw it.
    """
    if name not in TABLES:
        hint = (
            "; use --figures DIR"
            if name in FIGURES
            else f"; expected one of {', '.join(sorted(TABLES))}"
        )
        raise ValueError(f"{name!r} is not a table{hint}")
    module, function, _ = TABLES[name]
    return getattr(import_module(f".{module}", __package__), function)


def has_cells(name: str) -> bool:
    """Return whether a table is computed in cells that can be stored in a file."""
    return "checkpoint" in signature(table(name)).parameters


def reproduce(name: str, runs: int | None = None, data_dir=None, **options) -> dict[str, Any]:
    """Compute a table of ``TABLES``, and return ``name``, ``settings`` and ``rows``, one dict per
    line.

    None for ``runs`` or ``data_dir`` means the default of the table; ``options`` are those of its
    function.
    """
    make = table(name)
    for option in set(options) - set(signature(make).parameters):
        raise ValueError(f"{option}: this option is not available for {name}")
    if runs is not None and runs < 1:
        raise ValueError(f"runs={runs!r} is not valid; expected an integer >= 1")
    given = {"runs": runs, "data_dir": data_dir, **options}
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"\d+ features found"
        )  # the rows report the selected number of columns
        return make(**{key: value for key, value in given.items() if value is not None})
