"""Simulated and real tables of sparse Fourier features."""

from functools import partial
from typing import Any

import numpy as np
from annealed.learners import SparseFourierClassifier
from annealed.pipelines.common.config import check_names
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ..cells import cells_of
from ..datasets import load_set, random_split
from ..tables.competitors import measured_fit
from ..tables.simulated import bayes_error, simulated_case
from .competitors import competitors
from .neighbours import NeighbourFourierClassifier

SIZES = (10, 50, 200, 1000)
COMPETITOR_RUNS = 1
PARITY_SPREAD = 0.5
# Grid of the cross-validation on training rows. The ranges of order, scale and moves were narrowed
# on two folds of Madelon's training rows.
MADELON: dict[str, Any] = {
    "n_steps": 200_000,
    "max_components": 100,
    "max_order": 6,
    "frequency_scale": 1.0,
    "n_chains": 4,
}
MADELON_CHOICES: list[dict[str, Any]] = [
    {"expected_components": 15.0},
    {"expected_components": 30.0},
]
ANNEALED: dict[str, Any] = {
    "n_components": 100,
    "n_rounds": 6,
    "max_order": 5,
    "frequency_scale": 1.0,
    "n_chains": 4,
}
IONOSPHERE: dict[str, Any] = {
    "max_components": 100,
    "max_order": 4,
    "n_chains": 4,
    "n_steps": 50_000,
}
IONOSPHERE_CHOICES: list[dict] = [
    {"frequency_scale": s, "expected_components": e} for s in (0.3, 0.6, 1.0) for e in (10.0, 30.0)
]


def parity(n: int, p: int, seed: int, n_test: int = 2000):
    """Simulate labels that are the product of the signs of three columns.

    The three columns have normal noise of 0.5, and are among p columns of unit variance.

    Parameters
    ----------
    n, p : int
        Numbers of training rows and columns.
    seed : int
    n_test : int, default 2000

    Returns
    -------
    X, y, X_test, y_test : ndarray
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n + n_test) < 0.5, 1, -1)
    signs = np.where(rng.random((n + n_test, 2)) < 0.5, 1.0, -1.0)
    Z = np.column_stack([signs, signs.prod(axis=1) * y]) + PARITY_SPREAD * rng.standard_normal(
        (n + n_test, 3)
    )
    X = np.hstack([Z / Z.std(axis=0), rng.standard_normal((n + n_test, p - 3))])
    return X[:n], y[:n], X[n:], y[n:]


def parity_bayes_error() -> float:
    """Compute the Bayes error of :func:`parity`, the probability of an odd number of wrong signs.

    Examples
    --------
    >>> round(parity_bayes_error(), 3)
    0.065
    """
    wrong = norm.cdf(-1.0 / PARITY_SPREAD)
    return float(0.5 * (1.0 - (1.0 - 2.0 * wrong) ** 3))


def kernel_simulated(
    runs: int = 10, data_dir=None, *, methods=None, checkpoint=None
) -> dict[str, Any]:
    """Compute the table of XOR, rings, three-way parity and permuted labels, with columns of equal
    scale.

    Parameters
    ----------
    runs : int, default 10
        Number of seeds, from 0. Competitors use one seed, and permuted labels use twice as many.
    data_dir : path or None
        Not used, since the data are simulated.
    methods : list of str or None, default None
        Methods to run; None means all.
    checkpoint : path, Checkpoint or None, default None
        File that stores finished cells.

    Returns
    -------
    dict
        ``name``, ``settings`` and ``rows``.
    """
    every = [
        "chains",
        "chains, logistic",
        "annealed",
        "neighbours (4.4)",
        "RBF-SVM, true columns",
        *competitors(1),
    ]
    check_names("method", methods, every)
    cells = cells_of(checkpoint, {"table": "kernel-simulated"})
    rows: list[dict[str, Any]] = []
    kinds: dict[str, Any] = {
        "chains": {},
        "chains, logistic": {"likelihood": "logistic"},
        "annealed": {"solver": "annealed"},
    }
    ours = {name: SparseFourierClassifier(**kind, random_state=0) for name, kind in kinds.items()}
    for case in ("xor", "rings"):
        for p in SIZES:
            true = {"RBF-SVM, true columns": competitors(2)["RBF-SVM"]}
            text = (
                {
                    "neighbours (4.4)": NeighbourFourierClassifier(
                        likelihood="logistic", random_state=0
                    )
                }
                if p <= 50
                else {}
            )
            for name, model in (ours | text | competitors(p) | true).items():
                seeds = runs if name in ours else min(runs, COMPETITOR_RUNS)
                head = {"case": case, "N": 500, "p": p, "method": name, "bayes": bayes_error(case)}
                draw = partial(_two_columns, case, p, name.endswith("true columns"))
                rows += _row(cells, head, model, draw, range(seeds), {0, 1}, methods)
    triples = {"chains": SparseFourierClassifier(screening="triples", random_state=0)}
    for p in (50, 200):
        for name, model in (triples | competitors(p)).items():
            head = {
                "case": "parity",
                "N": 1000,
                "p": p,
                "method": name,
                "bayes": parity_bayes_error(),
            }
            seeds = runs if name in triples else min(runs, COMPETITOR_RUNS)
            rows += _row(
                cells, head, model, partial(parity, 1000, p), range(seeds), {0, 1, 2}, methods
            )
    head = {"case": "permuted labels", "N": 500, "p": 200, "method": "chains", "bayes": 0.5}
    rows += _row(cells, head, ours["chains"], _permuted, range(2 * runs), set(), methods)
    return {"name": "kernel-simulated", "settings": {"runs": runs}, "rows": rows}


def kernel_real(runs: int = 5, data_dir=None, *, methods=None, checkpoint=None) -> dict[str, Any]:
    """Compute the table of Madelon and Ionosphere.

    Madelon has its own split, and Ionosphere has random 70 / 30 splits. Settings are chosen by
    3-fold cross-validation on training rows.

    Parameters
    ----------
    runs : int, default 5
        Number of splits of Ionosphere.
    data_dir : path or None, default None
        Folder of the real data; None means ``ANNEALED_DATA``.
    methods : list of str or None, default None
        Methods to run; None means all.
    checkpoint : path, Checkpoint or None, default None
        File that stores finished cells.

    Returns
    -------
    dict
        ``name``, ``settings`` and ``rows``; ``seconds`` is the time of one fit with the chosen
        settings.
    """
    check_names("method", methods, ("chains", "annealed"))
    cells = cells_of(checkpoint, {"table": "kernel-real"})
    X, y, X_test, y_test = load_set("madelon", data_dir)
    correlation = np.abs(np.corrcoef(X.T.astype(float))) - np.eye(X.shape[1])
    true = set(
        np.flatnonzero((correlation > 0.2).any(axis=1)).tolist()
    )  # the noise columns are uncorrelated with the other columns
    choices = {
        "chains": [
            SparseFourierClassifier(random_state=0, **MADELON, **choice)
            for choice in MADELON_CHOICES
        ],
        "annealed": [SparseFourierClassifier(solver="annealed", random_state=0, **ANNEALED)],
    }
    rows = []
    for name, models in choices.items():
        head = {"case": "madelon", "N": len(y), "p": X.shape[1], "method": name}
        rows += _row(
            cells, head, models, lambda seed: (X, y, X_test, y_test), range(1), true, methods
        )
    parts = load_set("ionosphere", data_dir)
    everything = np.concatenate(parts[0::2]), np.concatenate(parts[1::2])
    models = [
        SparseFourierClassifier(random_state=0, **IONOSPHERE, **choice)
        for choice in IONOSPHERE_CHOICES
    ]
    head = {"case": "ionosphere", "N": 246, "p": 34, "method": "chains"}
    rows += _row(
        cells, head, models, partial(random_split, *everything), range(runs), set(), methods
    )
    settings = {"madelon": MADELON, "ionosphere": IONOSPHERE}
    return {"name": "kernel-real", "settings": settings, "rows": rows}


def _two_columns(case, p, true_only, seed):
    X, y, X_test, y_test = simulated_case(case, 500, p, seed, noise_scale=1.0)
    columns = slice(2 if true_only else None)
    return X[:, columns], y, X_test[:, columns], y_test


def _permuted(seed):
    X, y, X_test, y_test = simulated_case("xor", 500, 200, seed, noise_scale=1.0)
    return X, np.random.default_rng(seed).permutation(y), X_test, y_test


def _row(cells, head, model, draw, seeds, true, methods) -> list[dict[str, Any]]:
    """Return one row of the table, or no row."""
    if methods and head["method"] not in methods:
        return []
    measured = []
    for seed in seeds:
        key = {"case": head["case"], "p": head["p"], "method": head["method"], "seed": seed}
        measured.append(cells(key, partial(_measure, model, draw, seed, true)))
    errors = [m["error"] for m in measured]
    row = head | {
        "error": float(np.median(errors)),
        "mean_error": float(np.mean(errors)),
        "runs": len(measured),
    }
    row["seconds"] = float(np.median([m["seconds"] for m in measured]))
    for column, what in (
        ("true_columns", "found"),
        ("other_columns", "others"),
        ("chains_with_all", "chains"),
    ):
        if what in measured[0]:
            row[column] = float(np.mean([m[what] for m in measured]))
    if "chosen" in measured[0]:
        row["chosen"] = measured[0]["chosen"]
    return [row]


def _measure(model, draw, seed, true) -> dict[str, Any]:
    X, y, X_test, y_test = draw(seed)
    measured: dict[str, Any] = {}
    if isinstance(model, list):
        measured["chosen"], model = _choose(model, X, y)
    model = clone(model)
    measured |= measured_fit(model, X, y, X_test, y_test)
    if isinstance(model, SparseFourierClassifier):
        selected = set(model.get_support(indices=True).tolist())
        inside = (model.chain_inclusion_probabilities_[:, sorted(true)] > 0.9).all(axis=1)
        measured |= {
            "found": len(selected & true),
            "others": len(selected - true),
            "chains": float(inside.mean()),
        }
    return measured


def _choose(models, X, y):
    """Return the model with the smallest error in 3-fold cross-validation, and its index in the
    list."""
    if len(models) == 1:
        return 0, models[0]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    errors = [
        np.mean([np.mean(clone(m).fit(X[a], y[a]).predict(X[b]) != y[b]) for a, b in folds])
        for m in models
    ]
    best = int(np.argmin(errors))
    return best, models[best]
