"""VGG-16 up to its second hidden layer, with the names that torchvision gives its weights."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError

_DEPTHS = (2, 2, 3, 3, 3)  # 3x3 convolutions before each halving of the resolution


class VGG16(nn.Module):
    """VGG-16 (Simonyan and Zisserman 2015) without its last layer: 4,096 features, "fc7", after ReLU.

    Images of about 224 pixels; of other sizes the last maps are averaged to 7 x 7, as torchvision does.

    Args:
        dropout: the share of each hidden layer that is left out in training.
        fixed_convolutions: only the two hidden layers train.
        widths, hidden: channels of the five stages, and of the hidden layers.

    >>> import torch
    >>> backbone = VGG16(widths=(4, 4, 8, 8, 8), hidden=16).eval()
    >>> backbone(torch.zeros(1, 3, 64, 64)).shape, backbone.out_features
    (torch.Size([1, 16]), 16)
    """

    def __init__(
        self,
        *,
        dropout: float = 0.5,
        fixed_convolutions: bool = False,
        in_channels: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512, 512),
        hidden: int = 4096,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ShortlistError(f"dropout is a share from 0 to below 1, got {dropout}")
        layers: list[nn.Module] = []
        channels = in_channels
        for depth, width in zip(_DEPTHS, widths, strict=True):
            for _ in range(depth):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(channels * 7 * 7, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout),
        )  # fmt: skip
        self.out_features = hidden
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)
        self.features.requires_grad_(not fixed_convolutions)

    def maps(self, x: Tensor) -> Tensor:
        """The last maps, 32 times smaller than the images."""
        return self.features(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(F.adaptive_avg_pool2d(self.maps(x), 7).flatten(1))
