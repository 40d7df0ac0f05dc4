"""Logistic regression with at most k columns: loss, and recovery of the true columns.

benchopt run benchmarks/benchopt
"""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "Logistic regression with at most k columns"
    min_benchopt_version = "1.6"
    sampling_strategy = "run_once"

    def set_data(self, X: np.ndarray, y: np.ndarray, true: np.ndarray) -> None:
        """Set X (n, m), y (n,) of -1 and +1, and the indices (k,) of the columns that determine
        y."""
        self.X, self.y, self.true = X, y, true

    def get_objective(self) -> dict[str, object]:
        return {"X": self.X, "y": self.y, "k": len(self.true)}

    def get_one_result(self) -> dict[str, object]:
        return {"coef": np.zeros(self.X.shape[1]), "intercept": 0.0}

    def evaluate_result(self, coef: np.ndarray, intercept: float) -> dict[str, float]:
        """Return the mean logistic loss, the share of the true columns that are selected, and the
        number of nonzero coefficients; more than k of them are not a valid solution."""
        margin = self.y * (self.X @ coef + intercept)
        chosen = np.flatnonzero(coef)
        loss = float(np.logaddexp(0, -margin).mean()) if len(chosen) <= len(self.true) else np.inf
        return {
            "value": loss,
            "found": float(np.isin(self.true, chosen).mean()),
            "n_columns": len(chosen),
        }
