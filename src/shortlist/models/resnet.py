"""ResNet-18, ResNet-50 and ResNet-101, with the stem for 224-pixel images or one for small images."""

import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import check_choice
from shortlist.errors import ShortlistError

_BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}  # of each of the four stages, by depth


def _conv(inside: int, outside: int, size: int, stride: int = 1) -> nn.Sequential:
    """Convolution that keeps the resolution (but for the stride), and batch norm."""
    conv = nn.Conv2d(inside, outside, size, stride=stride, padding=size // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside))


class _Block(nn.Module):
    """A residual block: the shortcut is the identity, or a 1x1 convolution where the shape changes."""

    def __init__(self, inside: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        if bottleneck:  # the stride in the 3x3 convolution, as nearly everyone does since 2016
            convs = [_conv(inside, width, 1), _conv(width, width, 3, stride), _conv(width, 4 * width, 1)]
        else:
            convs = [_conv(inside, width, 3, stride), _conv(width, width, 3)]
        self.convs = nn.ModuleList(convs)
        self.out_features = 4 * width if bottleneck else width
        same = stride == 1 and inside == self.out_features
        self.shortcut = nn.Identity() if same else _conv(inside, self.out_features, 1, stride)
        norm = convs[-1][1]
        assert isinstance(norm, nn.BatchNorm2d)
        nn.init.zeros_(norm.weight)  # every block starts as its shortcut

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for conv in self.convs[:-1]:
            y = F.relu(conv(y))
        return F.relu(self.convs[-1](y) + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network (He et al. 2016) up to the pooled features: 512 for depth 18, 2048 for depth 50 and 101.

    ``stem="imagenet"``: 7x7 convolution with stride 2 and max pooling, for images of about 224 pixels; ``"small"``: one
    3x3 convolution, for images of about 32 pixels. ``fixed_norms``: in training, too, batch norm uses its running
    statistics, and leaves them as they are.

    >>> import torch
    >>> backbone = ResNet(18, stem="small").eval()
    >>> backbone(torch.zeros(1, 3, 8, 8)).shape, backbone.out_features
    (torch.Size([1, 512]), 512)
    """

    def __init__(self, depth: int, *, stem: str = "imagenet", in_channels: int = 3, fixed_norms: bool = False) -> None:
        super().__init__()
        if depth not in _BLOCKS:
            raise ShortlistError(f"depth must be 18, 50 or 101, got {depth}")
        check_choice(stem, "stem", ("small", "imagenet"))
        if stem == "imagenet":
            self.stem = nn.Sequential(_conv(in_channels, 64, 7, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))
        else:
            self.stem = nn.Sequential(_conv(in_channels, 64, 3), nn.ReLU())
        channels = 64
        blocks = []
        for stage, count in enumerate(_BLOCKS[depth]):
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(_Block(channels, 64 * 2**stage, stride, bottleneck=depth > 18))
                channels = blocks[-1].out_features
        self.blocks = nn.Sequential(*blocks)
        self.fixed_norms = fixed_norms
        self.out_features = channels
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def train(self, mode: bool = True) -> "ResNet":
        super().train(mode)
        if self.fixed_norms:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def maps(self, x: Tensor) -> Tensor:
        """The features before they are pooled: (images, out_features, height, width)."""
        return self.blocks(self.stem(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).mean((2, 3))
