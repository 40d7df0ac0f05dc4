"""Designs on torch tensors in single precision, on the CPU or a GPU."""

from typing import Self

import numpy as np
import torch

from ..sources.matrix import CHUNK
from .base import Design, moments
from .piecewise_linear import CodedDesign, block_moments, encoded, evenly_spaced
from .responses import PiecewiseLinear

BLOCK_BYTES = 256 << 20  # bytes of values processed at once
BLOCK_ROWS = 16384  # maximum number of rows summed in single precision


class TorchDesign(Design):
    """Design with one linear term per column of a tensor, on its device.

    Parameters
    ----------
    X : torch.Tensor of shape (n_samples, n_features)
        Columns in float32.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    """

    def __init__(self, X: torch.Tensor, sample_weight: np.ndarray):
        self.X = X
        self.n_samples, self.n_features = X.shape
        total, square = np.zeros(self.n_features), np.zeros(self.n_features)
        weight = self._on_device(sample_weight[:, None])
        shift = X[0].clone()
        for rows in self._blocks():
            centred = X[rows] - shift
            total += (weight[rows] * centred).sum(0).double().cpu().numpy()
            square += (weight[rows] * centred * centred).sum(0).double().cpu().numpy()
        self.mean, self.inv = moments(total, square, shift.cpu().numpy())

    def _on_device(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(self.X.device)

    def _blocks(self) -> list[slice]:
        """Return row ranges.

        Sums within a range use single precision, and sums over ranges use double precision.
        """
        step = max(
            CHUNK, min(BLOCK_ROWS, BLOCK_BYTES // (4 * max(1, self.n_features))) // CHUNK * CHUNK
        )
        return [
            slice(start, min(start + step, self.n_samples))
            for start in range(0, self.n_samples, step)
        ]

    def scores(self, coef: np.ndarray) -> np.ndarray:
        if not coef.any():
            return np.zeros((self.n_samples, coef.shape[2]))
        raw = coef[:, 0] * self.inv[:, None]
        return (self.X @ self._on_device(raw)).double().cpu().numpy() - self.mean[:, 0] @ raw

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        on_device = self._on_device(residual)
        product = np.zeros((self.n_features, residual.shape[1]))
        for rows in self._blocks():
            product += (self.X[rows].T @ on_device[rows]).double().cpu().numpy()
        return self._standardised(product[:, None], residual)

    def keep(self, kept: np.ndarray) -> Self:
        new = super().keep(kept)
        new.X = self.X[:, torch.from_numpy(np.asarray(kept)).to(self.X.device)]
        return new

    def matrix(self) -> np.ndarray:
        block = self.X.cpu().numpy() - self.mean[:, 0].astype(np.float32)
        return block * self.inv.astype(np.float32)


class TorchPiecewiseDesign(CodedDesign):
    """Design with piecewise-linear responses computed from one-byte codes in a torch tensor.

    A score is a sum of table entries over the features, with a table of 256 numbers per feature. A
    gradient is a histogram of codes.

    Parameters
    ----------
    codes : torch.Tensor of shape (n_features, n_samples), uint8
        Position of each value relative to the knots; 255 for NaN.
    lines : ndarray of shape (n_features, n_bins + 1)
        Knots of each feature.
    missing : bool
        Whether NaN has a separate coefficient.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    """

    per_feature = ("mean", "inv", "knots")

    def __init__(
        self, codes: torch.Tensor, lines: np.ndarray, missing: bool, sample_weight: np.ndarray
    ):
        self.codes, self.knots = codes, lines
        self.n_features, self.n_samples = codes.shape
        self._set_bins(lines.shape[1] - 1, missing)
        self.mean, self.inv = block_moments(self._histograms(sample_weight), self.basis)

    @classmethod
    def of(cls, X: torch.Tensor, sample_weight: np.ndarray, response: PiecewiseLinear) -> Self:
        """Encode a tensor with the same codes as the other designs, several columns at a time."""
        n, m = X.shape
        lines = np.empty((m, response.n_bins + 1))
        step = max(1, BLOCK_BYTES // (4 * n))
        blocks = [slice(first, min(m, first + step)) for first in range(0, m, step)]
        for part in blocks:
            lines[part] = response.knots(X[:, part].contiguous().cpu().numpy(), sample_weight)
        even, missing = evenly_spaced(lines), False
        codes = torch.empty((m, n), dtype=torch.uint8, device=X.device)
        for part in blocks:
            block, some = encoded(X[:, part].contiguous().cpu().numpy(), lines[part], even)
            missing |= some
            lanes = np.ascontiguousarray(
                block.transpose(1, 0, 2).reshape(part.stop - part.start, -1)[:, :n]
            )
            codes[part] = torch.from_numpy(lanes).to(X.device)
        return cls(codes, lines, missing, sample_weight)

    def _codes_of(self, feature: int) -> np.ndarray:
        return self.codes[feature].cpu().numpy()

    def _blocks(self) -> list[slice]:
        step = max(1, BLOCK_BYTES // (16 * self.n_samples))
        return [
            slice(first, min(self.n_features, first + step))
            for first in range(0, self.n_features, step)
        ]

    def _histograms(self, column: np.ndarray) -> np.ndarray:
        on_device = torch.from_numpy(np.ascontiguousarray(column, dtype=np.float64)).to(
            self.codes.device
        )
        out = torch.zeros((self.n_features, 256), dtype=torch.float64, device=self.codes.device)
        for part in self._blocks():
            codes = self.codes[part].long()
            out[part].scatter_add_(1, codes, on_device.expand(len(codes), -1))
        return out.cpu().numpy()

    def _table_scores(self, table: np.ndarray) -> np.ndarray:
        on_device = torch.from_numpy(table).to(self.codes.device)
        total = torch.zeros(self.n_samples, dtype=torch.float64, device=self.codes.device)
        for part in self._blocks():
            total += on_device[part].gather(1, self.codes[part].long()).sum(0)
        return total.cpu().numpy()

    def keep(self, kept: np.ndarray) -> Self:
        new = super().keep(kept)
        new.codes = self.codes[torch.from_numpy(np.asarray(kept)).to(self.codes.device)]
        return new
