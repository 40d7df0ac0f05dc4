"""Probabilities of rare classes: never worse than a constant on the rows of the fit."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSAClassifierCV, on_disk
from sklearn.metrics import log_loss

pytestmark = pytest.mark.slow
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FORMS = (
    "dense",
    "float32",
    "sparse",
    "weights",
    "piecewise",
    "cross-validation",
    "several classes",
    "path only",
    "on disk",
)


def table(share, seed, several):
    """2,000 rows of which the last of two or three classes has a share; one column tells it apart,
    in part."""
    rng = np.random.default_rng([seed, round(share * 1000)])
    X, y = rng.standard_normal((2000, 15)), np.zeros(2000, int)
    y[: max(2, round(share * 2000))] = 1
    X[y == 1, 4] += 1.5
    if several:
        y[1100:] = 2
        X[y == 2, 7] += 1.0
    return X, y


@pytest.mark.parametrize("form", FORMS)
def test_rare_classes(tally, form, tmp_path):
    for share in SHARES:
        for seed in range(2):
            X, y = table(share, seed, form == "several classes")
            weight = (
                np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
                if form == "weights"
                else np.ones(len(y))
            )
            model = (
                FSAClassifierCV([1, 2, 3], cv=2) if form == "cross-validation" else FSAClassifier(3)
            )
            if form in ("piecewise", "path only"):
                model.set_params(
                    **({"response": "piecewise"} if form == "piecewise" else {"refinement": None})
                )
            data = {"sparse": sp.csr_array, "float32": np.float32}.get(form, np.asarray)(X)
            if form == "on disk":
                np.save(tmp_path / "x.npy", X)
                data = on_disk(str(tmp_path / "x.npy"))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = model.fit(
                    data, y, sample_weight=weight if form == "weights" else None
                ).predict_proba(X)
            shares = np.bincount(y, weight) / weight.sum()
            loss, constant = log_loss(y, p, sample_weight=weight), -float(shares @ np.log(shares))
            # The best constant is one of the models; a ridge of the fit may cost the last digits.
            failure = (
                None
                if loss <= constant * (1.0 + 1e-6)
                else f"{loss:.4g}, a constant {constant:.4g}"
            )
            tally.note("rare classes", f"{form}, share {share}, seed {seed}", failure)
    tally.check("rare classes")
