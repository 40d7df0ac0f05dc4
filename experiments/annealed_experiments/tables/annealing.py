"""Reproduction of Figure 6 and Tables I and V of Barbu et al. (2017) [1]_ on annealing.

References
----------
.. [1] A. Barbu, Y. She, L. Ding and G. Gramajo, "Feature Selection with Annealing for Computer
       Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine Intelligence
       39 (2017).
"""

import functools
from itertools import product
from typing import Any

import numpy as np
from annealed.learners import FSAClassifier, PiecewiseLinear, Refinement, Schedule
from annealed.learners.solvers.schedules import step_counts
from annealed.pipelines.common.timing import timed
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import RFE, SelectorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..cells import cells_of
from ..datasets import load_set
from ..printed_values import printed_columns
from .competitors import l1_columns, measured_fit
from .selectors import FSA, Design

STABILITY: dict[str, list[float]] = {
    "learning_rate": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    "mu": [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0],
    "n_steps": [10, 20, 50, 100, 200, 500, 1000],
}


def fsa_stability(
    runs: int = 10, data_dir=None, *, n_samples: int = 1000, k: int = 10, checkpoint=None
) -> dict[str, Any]:
    """Measure the AUC against each parameter of annealing (Figure 6 of Barbu et al. (2017)).

    The other parameters are fixed, and annealing is followed only by a refit. There are M = 1000
    columns and noise-free labels; the paper has 10 runs per point. The rows have ``parameter``,
    ``value``, ``method``, ``AUC`` and ``PCD`` (percent).
    """
    cells = cells_of(checkpoint, {"table": "fsa-stability"})

    draw = functools.cache(Design("classification", n_samples, 1000, k).draw)

    def measure(settings):
        results = []
        for seed in range(runs):
            train, test = draw(seed), draw(seed + 1_000_000)
            model = FSAClassifier(k, refinement=Refinement(exchange=False), **settings).fit(
                train.X, train.y
            )
            auc = roc_auc_score(test.y, model.decision_function(test.X))
            results.append((auc, train.found(model.get_support(indices=True))))
        return np.mean(results, axis=0).tolist()

    rows = []
    for parameter, values in STABILITY.items():
        for value in values:
            for name, settings in FSA.items():
                point = {"parameter": parameter, "value": value, "method": name}
                key = {
                    "table": "stability",
                    "N": n_samples,
                    "k": k,
                    "runs": runs,
                    "seed": 0,
                    **point,
                }
                change = {parameter: value}
                if parameter in ("mu", "n_steps"):
                    change = {"schedule": clone(settings["schedule"]).set_params(**change)}
                if parameter == "mu":  # the paper couples the rate to mu: eta = 20 mu
                    change["learning_rate"] = (
                        settings["learning_rate"] * value / settings["schedule"].mu
                    )
                auc, share = cells(key, functools.partial(measure, settings | change))
                rows.append({**point, "AUC": auc, "PCD": 100.0 * share})
    settings = {"runs": runs, "N": n_samples, "M": 1000, "k": k, "random_state": 0}
    return {"name": "fsa-stability", "settings": settings, "rows": rows}


SPEEDS = (0.0, 1.0, 10.0, 30.0, 100.0, 300.0)


def fsa_speed(runs: int = 5, data_dir=None, *, n_samples: int = 10_000) -> dict[str, Any]:
    """Measure the computation against mu (Table I of Barbu et al. (2017)).

    The setting has 500 steps, M = 1000 columns, k = 10 and the logistic loss. The time is
    proportional to the area under the schedule; ``passes`` is this area in reads of the whole
    matrix. ``seconds`` is the median processor time of a fit without refit or exchanges. The
    printed numbers are illegible in our copy of the paper.
    """
    draws = [Design("classification", n_samples, 1000, 10).draw(seed) for seed in range(runs)]
    rows = []
    for mu in SPEEDS:
        model = FSAClassifier(
            10, refinement=None, **FSA["FSA"] | {"schedule": Schedule(mu=mu, n_steps=500)}
        )
        seconds, shares = [], []
        for draw in draws:
            seconds.append(timed(model.fit, draw.X, draw.y)[1])
            shares.append(draw.found(model.get_support(indices=True)))
        passes = float(np.sum([1000, *step_counts(Schedule(mu=mu), 1000, 10, 500)[:-1]]) / 1000)
        rows.append(
            {
                "mu": mu,
                "passes": passes,
                "PCD": 100.0 * float(np.mean(shares)),
                "seconds": float(np.median(seconds)),
            }
        )
    return {
        "name": "fsa-speed",
        "settings": {"runs": runs, "N": n_samples, "M": 1000, "k": 10, "n_steps": 500},
        "rows": rows,
    }


def _parts(loss: str) -> dict[str, FSAClassifier]:
    """Return the estimators with more and more parts of the default, for one loss."""
    parts = {
        "loop": None,
        "and refit": Refinement(exchange=False),
        "and exchanges": Refinement(exchange=True, search=False),
        "and longer search": Refinement(),
    }
    if loss != "logistic, flipped labels":  # the longer search needs the loss for flipped labels
        del parts["and longer search"]
    chosen = {"logistic, flipped labels": "auto"}.get(loss, loss)
    return {
        f"{loss}: {part}": FSAClassifier(loss=chosen, refinement=refinement)
        for part, refinement in parts.items()
    }


PARTS = _parts("logistic") | _parts("logistic, flipped labels") | _parts("lorenz")


def fsa_parts(runs: int = 30, data_dir=None, *, checkpoint=None) -> dict[str, Any]:
    """Measure the detected columns with more and more parts of the default settings.

    The parts are the loop of annealing, the refit, the exchanges of columns, and the longer search
    for noisy labels, with three losses. The papers have only the loop and a refit. The seeds,
    from 5000, are not those of the other tables. DR and PCD are in percent.
    """
    cells = cells_of(checkpoint, {"table": "fsa-parts"})
    rows = []
    for (N, k), noise in product(((300, 10), (1000, 30)), (0.0, 0.1)):
        draw = functools.cache(Design("classification", N, 1000, k, label_noise=noise).draw)
        head = {"case": f"{'noisy' if noise else 'clean'} {N}, {k}"}
        for name, model in PARTS.items():

            def share(seed, model=model, k=k, draw=draw):
                data = draw(seed)
                fitted = clone(model).set_params(n_features_to_select=k).fit(data.X, data.y)
                return data.found(fitted.get_support(indices=True))

            key = {**head, "method": name}
            shares = np.array(
                [
                    cells(key | {"seed": seed}, functools.partial(share, seed))
                    for seed in range(5000, 5000 + runs)
                ]
            )
            dr, pcd = 100.0 * float((shares == 1.0).mean()), 100.0 * float(shares.mean())
            rows.append(key | {"runs": runs, "DR": dr, "PCD": pcd})
    settings = {"runs": runs, "M": 1000, "seeds": f"5000 to {4999 + runs}"}
    return {"name": "fsa-parts", "settings": settings, "rows": rows}


def _lorenz(k: int, **settings: Any) -> FSAClassifier:
    return FSAClassifier(k, refinement=None, **FSA["FSL"] | settings)


class _L1(SelectorMixin, BaseEstimator):
    """Selector of the k columns that L1-penalised logistic regression selects."""

    def __init__(self, k: int):
        self.k = k

    def fit(self, X, y):
        self.mask_ = np.isin(
            np.arange(X.shape[1]), l1_columns(X, y, self.k, 1e-3, 1e3, random_state=0)
        )
        return self

    def _get_support_mask(self):
        return self.mask_


_RIDGE = LogisticRegression(solver="liblinear")
# Lines of Table V that our data allow, by data set: label, number of features, model. The lines
# named FSA are those of the paper, with the Lorenz loss on dense columns and without a refit; those
# with a star are also trained on the validation rows.
CHALLENGE: dict[str, list[tuple[str, int, Any]]] = {
    "gisette_valid": [
        (
            "RFE",
            700,
            make_pipeline(StandardScaler(), RFE(_RIDGE, n_features_to_select=700, step=0.2)),
        ),
        ("FSA*", 500, _lorenz(500)),
        ("FSA", 500, _lorenz(500)),
        ("FSA, 2 bins", 320, _lorenz(320, response=PiecewiseLinear(2))),
        ("FSA, 5 bins", 200, _lorenz(200, response=PiecewiseLinear(5))),
        ("annealed", 500, FSAClassifier(500)),
    ],
    "dexter": [
        ("FSA*", 300, _lorenz(300)),
        ("FSA*", 93, _lorenz(93)),
        ("FSA", 93, _lorenz(93)),
        ("FSA", 300, _lorenz(300)),
        (
            "L1",
            93,
            make_pipeline(StandardScaler(with_mean=False), _L1(93), LogisticRegression(C=1.0)),
        ),
        ("annealed", 93, FSAClassifier(93)),
        ("annealed", 300, FSAClassifier(300)),
    ],
}


def fsa_challenge(runs: int = 1, data_dir=None, *, checkpoint=None) -> dict[str, Any]:
    """Compute errors on Dexter and a part of Gisette (Table V of Barbu et al. (2017)).

    Errors are in percent on training and validation rows. Dexter has the official 300 training and
    300 validation rows. Gisette has 700 and 300 of the official validation rows, instead of the
    paper's 6,000 and 1,000. Lines with a star are also trained on the validation rows. Test errors
    would require the labels of the challenge's test rows, which are not public. URL Reputation was
    not available. The parts are fixed, so ``runs`` is not used.
    """
    cells = cells_of(checkpoint, {"table": "fsa-challenge"})
    rows = []
    for name, lines in CHALLENGE.items():
        for method, k, model in lines:
            cell = cells(
                {"data": name, "method": method, "k": k},
                functools.partial(_errors, name, data_dir, clone(model), method),
            )
            paper = printed_columns(
                "fsa-challenge", method.replace(",", ""), (name, k), ("train", "valid")
            )
            rows.append({"data": name, "method": method, "k": k, **cell, **paper})
    return {"name": "fsa-challenge", "settings": {}, "rows": rows}


def _errors(name: str, data_dir, model, method: str) -> dict[str, float]:
    X, y, X_valid, y_valid = load_set(name, data_dir)
    X, X_valid = X.astype(np.float32), X_valid.astype(np.float32)
    if method.startswith("FSA") and issparse(X):
        X, X_valid = X.toarray(), X_valid.toarray()
    rows, labels = X, y
    if method.endswith("*"):
        rows, labels = np.concatenate([X, X_valid]), np.concatenate([y, y_valid])
    result = measured_fit(model, rows, labels, X_valid, y_valid)
    errors = {
        "train": 100.0 * float(np.mean(model.predict(X) != y)),
        "valid": 100.0 * result["error"],
    }
    return errors | {"seconds": result["seconds"]}
