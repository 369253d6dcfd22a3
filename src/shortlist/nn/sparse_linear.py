"""A linear layer that takes rows of which only some entries are stored."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SparseLinear(nn.Linear):
    """``nn.Linear`` that also takes a sparse tensor (rows, in_features), coalesced: whole rows are never made.

    Gradients of weight and bias are exact, and dense. The features get none.

    >>> layer, rows = SparseLinear(4, 2), torch.tensor([[0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    >>> torch.allclose(layer(rows.to_sparse()), layer(rows))
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        if not input.is_sparse:
            return super().forward(input)
        rows, columns = input.indices()
        offsets = torch.searchsorted(rows, torch.arange(len(input), device=rows.device))
        values = input.values().to(self.weight.dtype)
        out = F.embedding_bag(columns, self.weight.t(), offsets, mode="sum", per_sample_weights=values)
        return out if self.bias is None else out + self.bias

    def lie_by_columns(self) -> None:
        """Keep the weights of each feature beside one another in memory: sparse rows then find theirs at once."""
        with torch.no_grad():
            self.weight.data = self.weight.data.t().contiguous().t()
