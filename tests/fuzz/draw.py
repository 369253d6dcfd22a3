"""Rows of scores, targets and weights, ordinary and extreme; the same for the same seed and batch."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

DTYPES = [torch.float32] * 5 + [torch.float64] * 3 + [torch.float16, torch.bfloat16]
WIDTHS = [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65, 130]
ROWS = [1, 2, 5, 16, 40, 40, 80, 80]
SCALES = [0.01, 1.0, 1.0, 3.0, 10.0, 100.0, 1e4]


class Draw:
    """Random choices of one batch."""

    def __init__(self, seed: int, batch: int) -> None:
        self.random = np.random.default_rng([seed, batch])
        self.seed = int(self.random.integers(2**31))

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def of(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def number(self, low: float, high: float) -> float:
        """Somewhere between the two, evenly in the logarithm."""
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))

    def scores(self, rows: int, n: int, dtype: torch.dtype) -> Tensor:
        """Every row of a kind of its own."""
        x = self.random.standard_normal((rows, n)) * self.random.choice(SCALES, (rows, 1))
        kind = self.random.integers(0, 16, rows)
        some = self.random.random((rows, n))
        for row in range(rows):
            here = x[row]
            match kind[row]:
                case 0:  # ties
                    x[row] = np.round(here.clip(-3, 3))
                case 1:  # all equal
                    x[row] = here[0]
                case 2:  # far from 0
                    x[row] = here + self.of([4096.0, -4096.0, 1e6])
                case 3:
                    x[row][some[row] < 0.15] = np.inf
                    x[row][some[row] > 0.85] = -np.inf
                case 4:
                    x[row][some[row] < 0.15] = 1e37
                    x[row][some[row] > 0.85] = -1e37
                case 5:
                    x[row] = np.sort(here)
                case 6:
                    x[row] = np.sort(here)[::-1]
                case 7:
                    x[row] = self.of([np.inf, -np.inf, 0.0, 1e37, -1e37])
                case 8:  # denormal numbers, zeros of both signs
                    x[row] = np.sign(here) * self.of([1e-40, 0.0, -0.0])
                case 9 if self.chance(0.3):
                    x[row][self.random.integers(n)] = np.nan
                case _:
                    pass
        scores = torch.from_numpy(np.ascontiguousarray(x)).to(dtype)
        whole_numbers = scores.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize])
        whole_numbers[scores.isnan()] += int(self.random.integers(64))  # a NaN may hold any bits
        return scores

    def index(self, rows: int, n: int) -> Tensor:
        """Class indices, some unknown, of any integer type that holds them."""
        y = self.random.integers(0, n, rows)
        y[self.random.random(rows) < 0.1] = -1
        return torch.from_numpy(y).to(self.of([torch.int64, torch.int64, torch.int32, torch.int16]))

    def matrix(self, rows: int, n: int) -> Tensor:
        """A label matrix: mixed rows, and rows all unknown, all absent, all present, or with one label present."""
        y = self.random.integers(-1, 2, (rows, n))
        kind = self.random.integers(0, 12, rows)
        for row in range(rows):
            if kind[row] < 3:
                y[row] = kind[row] - 1
            elif kind[row] < 6:
                y[row] = 0 if kind[row] < 5 else -1
                y[row, self.random.integers(n)] = 1
        return torch.from_numpy(y).to(self.of([torch.int64, torch.int8, torch.int32, torch.float32, torch.float64]))

    def single_positive(self, rows: int, n: int) -> Tensor:
        """Class indices, or a label matrix with at most one present label per row."""
        y = self.index(rows, n)
        if self.chance(0.7):
            return y
        matrix = torch.from_numpy(self.random.integers(-1, 1, (rows, n)))
        known = y >= 0
        matrix[known, y[known].long()] = 1
        return matrix

    def mask(self, rows: int, n: int) -> Tensor | None:
        if not self.chance(0.25):
            return None
        shape = self.of([(rows, n), (rows, n), (1, n), (n,)])
        return torch.from_numpy(self.random.random(shape) < self.of([0.2, 0.6, 0.95]))

    def weights(self, count: int) -> Tensor | None:
        """Weights of 0, denormal (they count as 0), tiny, ordinary and large.

        Not further apart: e^(x - peak) below float32's smallest number is 0 before a weight of e^60 could save it.
        """
        if not self.chance(0.3):
            return None
        w = self.random.random(count)
        for value in (0.0, 1e-40, 1e-20, 1e6):
            w[self.random.random(count) < 0.08] = value
        return torch.from_numpy(w).float()

    def k(self, low: int, high: int) -> int:
        return int(min(max(self.of([1, 2, 3, high - 1, high, (low + high) // 2]), low), high))


@dataclass
class Batch:
    """One call: scores first, then what ``functions.py`` adds."""

    name: str
    scores: Tensor
    tensors: dict[str, Tensor | None] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0  # of the random numbers that the function itself draws

    def described(self) -> str:
        tensors = ", ".join(f"{k} {tuple(t.shape)} {t.dtype}" for k, t in self.tensors.items() if t is not None)
        plain = {k: f"{tuple(v.shape)} {v.dtype}" if isinstance(v, Tensor) else v for k, v in self.options.items()}
        options = ", ".join(f"{k}={v!r}" for k, v in plain.items())
        return f"{self.name}(scores {tuple(self.scores.shape)} {self.scores.dtype}, {tensors}; {options})"


def strided(x: Tensor) -> Tensor:
    """The same values in memory of another order."""
    return x.t().contiguous().t() if x.ndim == 2 else x
