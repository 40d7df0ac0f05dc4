"""Normal columns with a common factor, two classes."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n, m, k": [(300, 1000, 10), (2000, 5000, 50)], "correlation": [0.0, 0.5]}

    def get_data(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        common = rng.standard_normal((self.n, 1))
        X = (
            np.sqrt(1 - self.correlation) * rng.standard_normal((self.n, self.m))
            + np.sqrt(self.correlation) * common
        )
        true = rng.choice(self.m, self.k, replace=False)
        margin = X[:, true].sum(axis=1)
        y = np.where(rng.random(self.n) < 1 / (1 + np.exp(-margin)), 1, -1)
        return {"X": X, "y": y, "true": true}
