"""The LML projection as a layer."""

import torch
from torch import Tensor

from shortlist.functional import lml


class LML(torch.nn.Module):
    """The Limited Multi-Label projection as a layer: probabilities that sum to k (`shortlist.functional.lml`).

    >>> LML(k=2)(torch.tensor([2.0, 1.0, 0.0, -1.0]))
    tensor([0.8176, 0.6225, 0.3775, 0.1824])
    """

    def __init__(self, k: int, *, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__()
        self.k, self.dim, self.temperature = k, dim, temperature

    def forward(self, scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return lml(scores, self.k, dim=self.dim, mask=mask, temperature=self.temperature)

    def extra_repr(self) -> str:
        return f"k={self.k}, dim={self.dim}, temperature={self.temperature}"
