"""Pretrained weights for a ResNet or a VGG, from a file with the names that torchvision gives them."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require

_COUNT = "num_batches_tracked"  # older files do without it, and so does prediction


def load_weights(network: nn.Module, path: PathLike, names: Sequence[str] | None = None) -> None:
    """Load what torchvision calls the state dict of this network (.safetensors, or .pth read as tensors only).

    ``names``: what the file calls each of the network's own weights; the same if not given. The classification layer of
    the file is left out. A ResNet must have the stem for large images.

    >>> from shortlist.models.resnet import ResNet
    >>> load_weights(ResNet(18), "nowhere.pth")
    Traceback (most recent call last):
    shortlist.ShortlistError: nowhere.pth: there is no such file of pretrained weights
    """
    file = Path(path)
    if not file.is_file():
        raise ShortlistError(f"{file}: there is no such file of pretrained weights")
    found: dict[str, Tensor] = (
        require("safetensors.torch").load_file(file)
        if file.suffix == ".safetensors"
        else torch.load(file, map_location="cpu", weights_only=True)
    )
    own = network.state_dict()
    theirs = dict(zip(own, own if names is None else names, strict=True))
    missing = [name for name in theirs.values() if name not in found and not name.endswith(_COUNT)]
    if missing:
        kind = type(network).__name__
        raise ShortlistError(f"{file}: these are not the weights of this {kind}: {missing[0]!r} is missing")
    wrong = [name for key, name in theirs.items() if name in found and found[name].shape != own[key].shape]
    if wrong:
        raise ShortlistError(f"{file}: {wrong[0]!r} has shape {tuple(found[wrong[0]].shape)}: it is of another network")
    network.load_state_dict({key: found.get(name, own[key]) for key, name in theirs.items()})


def resnet_names(own: dict[str, Tensor]) -> list[str]:
    """What torchvision calls each weight of our ResNet.

    >>> from shortlist.models.resnet import ResNet
    >>> names = resnet_names(ResNet(18).state_dict())
    >>> names[0], names[6], [name for name in names if "downsample" in name][0]
    ('conv1.weight', 'layer1.0.conv1.weight', 'layer2.0.downsample.0.weight')
    """
    names = []
    layer, block, number = 1, 0, "0"
    for key in own:
        parts = key.split(".")
        if parts[0] == "stem":
            names.append(f"{('conv1', 'bn1')[int(parts[2])]}.{parts[3]}")
            continue
        if parts[1] != number:  # a new block; a shortcut with weights begins a layer
            number, block = parts[1], block + 1
            if f"blocks.{number}.shortcut.0.weight" in own:
                layer, block = layer + 1, 0
        if parts[2] == "shortcut":
            names.append(f"layer{layer}.{block}.downsample.{parts[3]}.{parts[4]}")
        else:
            names.append(f"layer{layer}.{block}.{('conv', 'bn')[int(parts[4])]}{int(parts[3]) + 1}.{parts[5]}")
    return names
