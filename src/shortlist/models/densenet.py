"""DenseNet-depth-growth for small images: three dense blocks, as in the CIFAR experiments of the top-k papers."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError


class _Layer(nn.Module):
    """Batch norm, ReLU, 3x3 convolution to ``growth`` new channels, concatenated to what came in."""

    def __init__(self, channels: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, growth, 3, padding=1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.dropout(self.conv(F.relu(self.norm(x))))], 1)


class _Transition(nn.Module):
    """Between blocks: batch norm, ReLU, 1x1 convolution, and half the resolution by averaging."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(self.dropout(self.conv(F.relu(self.norm(x)))), 2)


class DenseNet(nn.Module):
    """DenseNet without bottleneck or compression (Huang et al. 2017); ``depth`` = 3 n + 4 counts the weight layers.

    DenseNet-40-12 has 1.0 and DenseNet-40-40 10.5 million parameters. Any image of at least 4 x 4 pixels will do; it
    is meant for 32 x 32.

    >>> backbone = DenseNet(depth=10, growth=4)
    >>> backbone(torch.zeros(2, 3, 8, 8)).shape, backbone.out_features
    (torch.Size([2, 40]), 40)
    """

    def __init__(self, *, depth: int = 40, growth: int = 12, dropout: float = 0.0, in_channels: int = 3) -> None:
        super().__init__()
        layers, rest = divmod(depth - 4, 3)
        if layers < 1 or rest:
            raise ShortlistError(f"depth must be 3 n + 4 with n >= 1 (7, 10, ..., 40, ...), got {depth}")
        if growth < 1:
            raise ShortlistError(f"growth must be at least 1, got {growth}")
        channels = 16
        parts: list[nn.Module] = [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)]
        for block in range(3):
            for _ in range(layers):
                parts.append(_Layer(channels, growth, dropout))
                channels += growth
            if block < 2:
                parts.append(_Transition(channels, dropout))
        self.body = nn.Sequential(*parts, nn.BatchNorm2d(channels), nn.ReLU())
        self.out_features = channels
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def maps(self, x: Tensor) -> Tensor:
        """The features before they are pooled: (images, out_features, height, width)."""
        maps: Tensor = self.body(x)
        return maps

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).mean((2, 3))
