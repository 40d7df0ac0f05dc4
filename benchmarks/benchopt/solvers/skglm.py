"""L1 penalty by skglm: the first k columns along a path of penalties, and a refit on them."""

import numpy as np
from benchopt import BaseSolver
from skglm import SparseLogisticRegression
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    name = "skglm"
    sampling_strategy = "run_once"
    requirements = ["pip::skglm"]

    def set_objective(self, X: np.ndarray, y: np.ndarray, k: int) -> None:
        self.X, self.y, self.k = X, y, k

    def run(self, _: int) -> None:
        largest = np.abs(self.X.T @ (self.y - self.y.mean())).max() / (2 * len(self.y))
        model = SparseLogisticRegression(warm_start=True)
        chosen = np.zeros(0, int)
        for alpha in largest * np.geomspace(1, 1e-3, 50):
            selected = np.flatnonzero(model.set_params(alpha=alpha).fit(self.X, self.y).coef_)
            if len(selected) > self.k:
                break
            chosen = selected
        refit = LogisticRegression(C=np.inf, max_iter=1000).fit(self.X[:, chosen], self.y)
        self.coef = np.zeros(self.X.shape[1])
        self.coef[chosen], self.intercept = refit.coef_[0], float(refit.intercept_[0])

    def get_result(self) -> dict[str, object]:
        return {"coef": self.coef, "intercept": self.intercept}
