"""How alike an input is to each of some examples: a hidden layer that makes a linear head a kernel method."""

import math

import torch
from torch import Tensor, nn


class Similarities(nn.Module):
    """exp(-distance squared) to each landmark, an example of the training data, once columns have been multiplied by
    ``scale``. Nothing of it is trained.

    >>> layer = Similarities(in_features=2, landmarks=3)
    >>> layer.scale.fill_(0.5)
    tensor([0.5000, 0.5000])
    >>> layer.landmarks.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 2.0]]))
    tensor([[0., 0.],
            [1., 0.],
            [2., 2.]])
    >>> layer(torch.tensor([[2.0, 0.0]]))
    tensor([[0.3679, 1.0000, 0.0067]])
    """

    scale: Tensor
    landmarks: Tensor

    def __init__(self, in_features: int, landmarks: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(in_features))
        self.register_buffer("landmarks", torch.zeros(landmarks, in_features))
        self.out_features = landmarks

    @classmethod
    def to_some(cls, rows: Tensor, count: int, scale: Tensor, seed: int) -> "Similarities | None":
        """To so many of the rows, drawn at random; similarities are 1 / e at the median distance between them. None
        where most rows are equal."""
        drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:count]
        landmarks = rows[drawn] * scale
        distance = float(torch.pdist(landmarks).median()) if count > 1 else 0.0
        if not distance > 0 or not math.isfinite(distance):
            return None
        found = cls(rows.shape[1], count)
        found.scale.copy_(scale / distance)
        found.landmarks.copy_(landmarks / distance)
        return found

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1) * self.scale
        products = x @ self.landmarks.T
        squares = (x**2).sum(1, keepdim=True) + (self.landmarks**2).sum(1)
        return torch.exp(-(squares - 2 * products).clamp(min=0))
