"""Features as they are, and a multilayer perceptron on them."""

import math
from collections.abc import Sequence

from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.nn.sparse_linear import SparseLinear


class Identity(nn.Module):
    """The inputs themselves, one flat vector per example.

    >>> import torch
    >>> Identity(in_features=12)(torch.zeros(5, 3, 2, 2)).shape
    torch.Size([5, 12])
    """

    takes_sparse = True

    def __init__(self, in_features: int) -> None:
        super().__init__()
        self.out_features = in_features

    def forward(self, x: Tensor) -> Tensor:
        return x if x.is_sparse else x.flatten(1)


class MLP(nn.Module):
    """Hidden layers of linear map, optional batch normalisation, ReLU and dropout; inputs are flattened.

    No hidden layers leave the features as they are: the objective's head is then the whole, linear model. Rows of a
    sparse tensor need not be made whole: the first layer takes what is stored of them.

    >>> import torch
    >>> MLP(in_features=8, hidden=(32, 16), dropout=0.5)(torch.zeros(4, 8)).shape
    torch.Size([4, 16])
    """

    takes_sparse = True

    def __init__(
        self, in_features: int, *, hidden: Sequence[int] = (256,), dropout: float = 0.0, batch_norm: bool = False
    ) -> None:
        super().__init__()
        if any(size < 1 for size in hidden):
            raise ShortlistError(f"hidden must hold layer sizes of at least 1, got {tuple(hidden)}")
        if not 0 <= dropout < 1:
            raise ShortlistError(f"dropout must be at least 0 and below 1, got {dropout!r}")
        layers: list[nn.Module] = []
        for size in hidden:
            layers.append(SparseLinear(in_features, size, bias=not batch_norm))
            layers += [nn.BatchNorm1d(size)] if batch_norm else []
            layers += [nn.ReLU()] + ([nn.Dropout(dropout)] if dropout else [])
            in_features = size
        self.layers = nn.Sequential(*layers)
        self.out_features = in_features

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x if x.is_sparse else x.flatten(1))


def flat_size(in_shape: Sequence[int]) -> int:
    """Numbers per example.

    >>> flat_size((3, 32, 32))
    3072
    """
    return math.prod(in_shape)
