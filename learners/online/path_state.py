"""What the parallel paths of stabilised truncated SGD carry from stage to stage, and rows that shrink with the columns in use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..compilation import writable
from .kernels import Paths, Rows, renumber_columns

POOL = 64  # updates per path from which a stage's gravity is taken: a choice


@dataclass
class PathState:
    """What the paths of one binary problem carry from stage to stage."""

    columns: np.ndarray  # (n_active,): the features in use, in ascending order; those below are in their places
    coef: np.ndarray  # (n_paths, n_active)
    intercept: np.ndarray  # (n_paths,)
    pool: np.ndarray  # (n_paths, POOL)
    pooled: np.ndarray  # (n_paths,)
    strides: np.ndarray  # (n_paths,)
    bursts: np.ndarray  # (n_active, 2): see Counts in kernels; kept until a feature is judged
    rngs: list[np.random.RandomState]  # one generator per path
    n_features: int
    total: np.ndarray  # (n_active + 1,): sum over ``summed`` paths and stages of the coefficients and, at last, intercept
    summed: int = 0
    rows: int = 0  # of all stages so far, in each path
    seen: int = 0  # rows of the present stage so far, in each path
    gravity: float = 0.0
    history: list[tuple[int, float]] = field(default_factory=list)  # (features active, gravity) of each stage

    @classmethod
    def new(cls, n_paths: int, n_features: int, rng: np.random.RandomState) -> PathState:
        """All coefficients zero and all features active."""
        return cls(
            columns=np.arange(n_features),
            coef=np.zeros((n_paths, n_features)),
            intercept=np.zeros(n_paths),
            pool=np.zeros((n_paths, POOL)),
            pooled=np.zeros(n_paths, np.int64),
            strides=np.ones(n_paths, np.int64),
            bursts=np.zeros((n_features, 2), np.int32),
            rngs=[np.random.RandomState(seed) for seed in rng.randint(2**31 - 1, size=n_paths)],
            n_features=n_features,
            total=np.zeros(n_features + 1),
        )

    @property
    def paths(self) -> Paths:
        """What the stages write to."""
        return Paths(self.coef, self.intercept, self.pool, self.pooled, self.strides)

    @property
    def n_active(self) -> int:
        """Features in use."""
        return len(self.columns)

    def keep(self, stay: np.ndarray) -> None:
        """Drop all other features (boolean ``stay``) for good."""
        kept = np.flatnonzero(stay)
        self.columns = self.columns[kept]
        self.coef = self.coef.take(kept, axis=1)
        self.bursts = self.bursts[kept]
        self.total, self.summed = np.zeros(len(kept) + 1), 0

    def sum_up(self) -> None:
        """Take the present coefficients into the sum over paths and stages."""
        self.total[:-1] += self.coef.sum(axis=0)
        self.total[-1] += self.intercept.sum()
        self.summed += len(self.coef)


class ShrinkingRows:
    """Rows of a CSR matrix of which the columns in use are numbered anew as others leave: a row costs what is left of it."""

    def __init__(self, X: Any, y: np.ndarray, weight: np.ndarray, columns: np.ndarray):
        start, end = X.indptr[:-1].astype(np.int64), X.indptr[1:].astype(np.int64)
        self.rows = Rows(X.data.copy(), X.indices.astype(np.uint32), start, end, y, writable(weight))
        place = np.full(X.shape[1], -1, np.int32)
        place[columns] = np.arange(len(columns))
        renumber_columns(self.rows, place)

    def keep(self, stay: np.ndarray) -> None:
        """Forget all other columns (boolean ``stay``)."""
        renumber_columns(self.rows, np.where(stay, np.cumsum(stay) - 1, -1).astype(np.int32))
