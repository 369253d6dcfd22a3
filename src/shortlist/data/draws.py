"""Random numbers that belong to an example: the same in whatever batch, order or process it is seen."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Draws:
    """What is drawn for these examples in an epoch. A number depends on the seed, the epoch, the example, the name of
    what it is for, and nothing else.

    >>> draws = Draws(seed=0, epoch=3, rows=torch.tensor([4, 7]))
    >>> draws.uniform("flip").shape, bool((draws.uniform("flip")[1] == Draws(0, 3, torch.tensor([7])).uniform("flip")))
    (torch.Size([2]), True)
    """

    seed: int
    epoch: int
    rows: Tensor

    def uniform(self, what: str, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Float64 (B,) from low (included) to high (left out)."""
        key = np.zeros(1, dtype=np.uint64)
        for word in (self.seed, self.epoch, *what.encode()):
            key = _mixed(key ^ np.uint64(word))
        bits = _mixed(key ^ _mixed(self.rows.cpu().numpy().astype(np.uint64)))
        return torch.from_numpy((bits >> np.uint64(11)) * 2.0**-53) * (high - low) + low

    def whole(self, what: str, count: int) -> Tensor:
        """Int64 (B,) from 0 to count - 1."""
        return (self.uniform(what) * count).long().clamp(max=count - 1)

    def normal(self, what: str) -> Tensor:
        """Float64 (B,) of mean 0 and standard deviation 1."""
        return torch.special.ndtri(self.uniform(what).clamp(min=2.0**-54))


def _mixed(words: Words) -> Words:
    """The step and the finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit depends on every bit."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
