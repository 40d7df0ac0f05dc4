"""abess at the given size."""

import numpy as np
from abess.linear import LogisticRegression
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "abess"
    sampling_strategy = "run_once"
    requirements = ["pip::abess"]

    def set_objective(self, X: np.ndarray, y: np.ndarray, k: int) -> None:
        self.X, self.y, self.model = X, (y > 0).astype(int), LogisticRegression(support_size=k)

    def run(self, _: int) -> None:
        self.model.fit(self.X, self.y)

    def get_result(self) -> dict[str, object]:
        return {
            "coef": self.model.coef_.ravel(),
            "intercept": float(np.ravel(self.model.intercept_)[0]),
        }
