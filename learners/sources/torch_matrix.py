"""Matrices that are torch tensors, on the CPU or on a GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import Matrix
from .matrix import OutOfCoreMatrix


class TorchMatrix(OutOfCoreMatrix):
    """Float32 tensor on its device, as an out-of-core matrix.

    Parameters
    ----------
    X : torch.Tensor of shape (n_samples, n_features)
        Tensor of dense real numbers; copied unless it is float32.

    Raises
    ------
    ValueError
        If the tensor is not two-dimensional, or is sparse or complex.
    """

    def __init__(self, X: Matrix) -> None:
        import torch

        if X.ndim != 2:
            raise ValueError(f"X has shape {tuple(X.shape)}; expected rows and columns")
        if X.layout != torch.strided or X.is_complex():
            raise ValueError(
                f"X is a {X.layout} tensor of {X.dtype}; expected a dense tensor of real numbers"
            )
        self.tensor = X.detach().to(dtype=torch.float32)
        self.shape, self.dtype = (int(X.shape[0]), int(X.shape[1])), np.dtype(np.float32)

    def scores(self, function: Callable[..., Any], columns: np.ndarray, n_outputs: int) -> Any:
        return function(self.chosen(columns))

    def chosen(self, columns: np.ndarray) -> Any:
        import torch

        return self.tensor[:, torch.from_numpy(columns).to(self.tensor.device)].cpu().numpy()
