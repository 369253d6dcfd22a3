"""Pretrained networks of the package timm, for images: ``timm:NAME``."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from shortlist.errors import MissingPackageError, ShortlistError


def image_model(model: str, in_shape: Sequence[int], *, pretrained: bool = True) -> nn.Module:
    """A network of the package timm, ``timm:resnet50.a1_in1k``, for images; `pip install 'shortlist[timm]'` brings
    it, with torchvision. Its weights are downloaded where they are not yet on this machine.

    Args:
        pretrained: start from the weights that timm has for this name; otherwise from new ones.
    """
    if len(in_shape) != 3:
        raise ShortlistError(f"backbone 'timm:{model}' looks at images, in_shape (channels, height, width)")
    try:
        import timm
    except ImportError as error:
        raise MissingPackageError(
            f"backbone 'timm:{model}' needs timm, which cannot be imported here ({error}): "
            "pip install 'shortlist[timm]'"
        ) from error
    try:
        network = timm.create_model(model, pretrained=pretrained, num_classes=0, in_chans=in_shape[0])
    except (RuntimeError, ValueError, OSError) as error:  # an unknown name, no weights, no network
        raise ShortlistError(f"timm has no {model!r} that can be used here: {error}") from error
    return ImageModel(network, timm.data.resolve_model_data_config(network), in_shape, model)


class ImageModel(nn.Module):
    """A network of timm's without its last layer, with the scale of pixels that it was trained on."""

    def __init__(self, network: nn.Module, how: dict[str, Any], in_shape: Sequence[int], model: str) -> None:
        super().__init__()
        self.network = network
        self.pixel_mean, self.pixel_std = tuple(how["mean"]), tuple(how["std"])
        try:
            with torch.no_grad():
                found = self.eval()(torch.zeros(1, *in_shape))
        except (AssertionError, ValueError, RuntimeError) as error:
            size = how["input_size"][-1]
            raise ShortlistError(
                f"timm:{model} does not take images of {tuple(in_shape)}: it wants {size} pixels, "
                f"data.train.size={size}; {error}"
            ) from error
        self.out_features = int(found.shape[1])
        self.train()

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.network(images)
        return features.flatten(1)
