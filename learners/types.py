"""Type aliases for the arguments of the learners."""

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

# (n_samples, n_features): array, data frame or sparse matrix; scikit-learn checks it
Matrix: TypeAlias = Any
# targets, weights or labels: anything that numpy.asarray accepts, including a series
ArrayLike: TypeAlias = npt.ArrayLike | Any
ClassWeight: TypeAlias = dict[Any, Any] | Literal["balanced"] | None
Seed: TypeAlias = "int | np.random.RandomState | None"
