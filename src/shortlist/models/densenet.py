"""DenseNet-depth-growth for small images: three dense blocks, as in the CIFAR experiments of the top-k papers."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.errors import ShortlistError


class _Layer(nn.Module):
    """Batch norm, ReLU, 3x3 convolution to ``growth`` new channels, concatenated to what came in; with a bottleneck,
    batch norm, ReLU and a 1x1 convolution to four times as many channels come first."""

    def __init__(self, channels: int, growth: int, dropout: float, bottleneck: bool) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        if bottleneck:
            parts += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 4 * growth, 1, bias=False)]
            parts.append(nn.Dropout(dropout))
            channels = 4 * growth
        parts += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, growth, 3, padding=1, bias=False)]
        self.body = nn.Sequential(*parts, nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], 1)


class _Transition(nn.Module):
    """Between blocks: batch norm, ReLU, 1x1 convolution, and half the resolution by averaging."""

    def __init__(self, inside: int, outside: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inside)
        self.conv = nn.Conv2d(inside, outside, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(self.dropout(self.conv(F.relu(self.norm(x)))), 2)


class DenseNet(nn.Module):
    """DenseNet with bottlenecks and compression (Huang et al. 2017), as the programs of the top-k papers train it, or
    the plain one: ``bottleneck=False, reduction=1``. ``depth`` counts the weight layers: 6 n + 4, or 3 n + 4 without
    bottlenecks.

    With 100 labels, DenseNet-40-12 has 0.19 and DenseNet-40-40 1.94 million parameters, the plain ones 1.06 and 10.7.
    Any image of at least 4 x 4 pixels will do; it is meant for 32 x 32.

    >>> backbone = DenseNet(depth=10, growth=4)
    >>> backbone(torch.zeros(2, 3, 8, 8)).shape, backbone.out_features
    (torch.Size([2, 9]), 9)
    """

    def __init__(
        self,
        *,
        depth: int = 40,
        growth: int = 12,
        bottleneck: bool = True,
        reduction: float = 0.5,
        dropout: float = 0.0,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        convolutions = 6 if bottleneck else 3  # in one layer of each of the three blocks
        layers, rest = divmod(depth - 4, convolutions)
        if layers < 1 or rest:
            some = ", ".join(str(convolutions * n + 4) for n in (1, 2))
            raise ShortlistError(
                f"depth must be {convolutions} n + 4 with n >= 1 ({some}, ..., 40, ...) "
                f"{'with' if bottleneck else 'without'} bottlenecks, got {depth}"
            )
        whole(growth, "growth", 1)
        if not 0 < reduction <= 1:
            raise ShortlistError(f"reduction must be above 0 and at most 1, got {reduction}")
        channels = 2 * growth if bottleneck else 16
        parts: list[nn.Module] = [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)]
        for block in range(3):
            for _ in range(layers):
                parts.append(_Layer(channels, growth, dropout, bottleneck))
                channels += growth
            if block < 2:
                kept = max(1, int(channels * reduction))
                parts.append(_Transition(channels, kept, dropout))
                channels = kept
        self.body = nn.Sequential(*parts, nn.BatchNorm2d(channels), nn.ReLU())
        self.out_features = channels
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def maps(self, x: Tensor) -> Tensor:
        """The features before they are pooled: (images, out_features, height, width)."""
        return self.body(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).mean((2, 3))
