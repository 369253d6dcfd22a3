"""A plain convolutional network for small images, small enough to train on one processor."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError


class ConvNet(nn.Module):
    """3x3 convolutions that each halve the resolution, with batch norm, up to the pooled features.

    >>> import torch
    >>> backbone = ConvNet(widths=(8, 16)).eval()
    >>> backbone(torch.zeros(1, 3, 32, 32)).shape, backbone.out_features
    (torch.Size([1, 16]), 16)
    """

    def __init__(self, *, widths: Sequence[int] = (32, 64, 128), in_channels: int = 3) -> None:
        super().__init__()
        if not widths or min(widths) < 1:
            raise ShortlistError(f"widths must be one or more numbers of channels, got {tuple(widths)}")
        channels = [in_channels, *widths]
        self.convs = nn.ModuleList(
            nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False)
            for inside, outside in zip(channels, widths, strict=False)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in widths)
        self.out_features = widths[-1]

    def maps(self, x: Tensor) -> Tensor:
        """The features before they are pooled: (images, out_features, height, width)."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu(norm(conv(x)))
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).mean((2, 3))
