"""Feature selection with annealing."""

import numpy as np
from annealed.learners import FSAClassifier
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "annealed"
    sampling_strategy = "run_once"
    parameters = {"refinement": ["default", None]}  # None: the paper's algorithm

    def set_objective(self, X: np.ndarray, y: np.ndarray, k: int) -> None:
        settings = {} if self.refinement == "default" else {"refinement": self.refinement}
        self.X, self.y, self.model = X, y, FSAClassifier(k, loss="logistic", **settings)

    def run(self, _: int) -> None:
        self.model.fit(self.X, self.y)

    def get_result(self) -> dict[str, object]:
        return {"coef": self.model.coef_.ravel(), "intercept": float(self.model.intercept_[0])}
