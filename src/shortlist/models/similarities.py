"""How alike an input is to each of some examples: a hidden layer that makes a linear head a kernel method."""

import math

import torch
from torch import Tensor, nn

from shortlist.checks import whole

MOST_LANDMARKS = 500


class Similarities(nn.Module):
    """exp(-distance squared) to each landmark, an example of the training data, once ``centre`` has been subtracted
    from columns (against rounding) and they have been multiplied by ``scale``; ``with_columns``, then also the columns
    as they come. Nothing of it is trained: `to_some` takes landmarks from the training rows, and before that everything
    is NaN.

    >>> layer = Similarities(in_features=2, landmarks=3)
    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 2.0]])
    >>> buffers = {"centre": torch.zeros(2), "scale": torch.full((2,), 0.5), "landmarks": rows / 2}
    >>> layer.load_state_dict(buffers)
    <All keys matched successfully>
    >>> layer(torch.tensor([[2.0, 0.0]]))
    tensor([[0.3679, 0.7788, 0.3679]])
    """

    centre: Tensor
    scale: Tensor
    landmarks: Tensor

    def __init__(
        self, in_features: int, landmarks: int, *, one_scale: bool = False, with_columns: bool = False
    ) -> None:
        super().__init__()
        whole(landmarks, "landmarks", 1)
        self.register_buffer("centre", torch.full((in_features,), math.nan))
        self.register_buffer("scale", torch.full((in_features,), math.nan))
        self.register_buffer("landmarks", torch.full((landmarks, in_features), math.nan))
        self.one_scale, self.with_columns = one_scale, with_columns

    @property
    def out_features(self) -> int:
        return len(self.landmarks) + self.with_columns * len(self.scale)

    @classmethod
    def to_some(cls, rows: Tensor, count: int, scale: Tensor, seed: int) -> "Similarities | None":
        """To so many of the rows, drawn at random; similarities are 1 / e at the median distance between them. None
        where most rows are equal."""
        drawn = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:count]]
        centre = drawn.mean(0)
        landmarks = (drawn - centre) * scale
        distance = float(torch.pdist(landmarks).median()) if count > 1 else 0.0
        if not distance > 0 or not math.isfinite(distance):
            return None
        found = cls(rows.shape[1], count)
        found.load_state_dict({"centre": centre, "scale": scale / distance, "landmarks": landmarks / distance})
        return found

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        return torch.cat([self.to_landmarks(x), x], 1) if self.with_columns else self.to_landmarks(x)

    def to_landmarks(self, x: Tensor) -> Tensor:
        x = (x - self.centre) * self.scale
        products = x @ self.landmarks.T
        squares = (x**2).sum(1, keepdim=True) + (self.landmarks**2).sum(1)
        return torch.exp(-(squares - 2 * products).clamp(min=0))
