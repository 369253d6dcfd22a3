"""Pretrained weights of a ResNet under torchvision's names."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.models import build_backbone
from shortlist.models.resnet import ResNet
from shortlist.models.resnet_weights import torchvision_names


def saved_under_their_names(path: Path) -> tuple[ResNet, dict[str, Tensor]]:
    torch.manual_seed(1)
    resnet = ResNet(18).eval()
    for value in resnet.state_dict().values():
        if value.is_floating_point() and value.ndim == 1:
            value.uniform_(0.5, 1.5)  # scales, shifts and statistics that differ from their start
    own = resnet.state_dict()
    state = dict(zip(torchvision_names(own), own.values(), strict=True))
    torch.save({**state, "fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}, path)
    return resnet, state


def resnet18_by_their_names(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """ResNet-18 written from the paper, on weights called conv1, layer2.0.bn1, ...: independent of our module."""

    def conv(x: Tensor, name: str, bn: str, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        y = F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        mean, var, scale, shift = (state[f"{bn}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(y, mean, var, scale, shift)

    x = F.max_pool2d(F.relu(conv(x, "conv1", "bn1", 2)), 3, 2, 1)
    for layer in range(1, 5):
        for block in range(2):
            at, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
            y = F.relu(conv(x, f"{at}.conv1", f"{at}.bn1", stride))
            y = conv(y, f"{at}.conv2", f"{at}.bn2")
            x = F.relu(y + (conv(x, f"{at}.downsample.0", f"{at}.downsample.1", stride) if stride == 2 else x))
    return x.mean((2, 3))


def test_weights_go_where_their_names_say(tmp_path: Path) -> None:
    _, state = saved_under_their_names(tmp_path / "resnet18.pth")
    loaded = build_backbone("resnet18", in_shape=(3, 64, 64), weights=str(tmp_path / "resnet18.pth")).eval()
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(loaded(x), resnet18_by_their_names(state, x))


def test_safetensors_and_files_without_counts_load(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    resnet, state = saved_under_their_names(tmp_path / "resnet18.pth")
    without = {name: value.contiguous() for name, value in state.items() if "num_batches" not in name}
    save_file(without, tmp_path / "resnet18.safetensors")
    loaded = build_backbone("resnet18", in_shape=(3, 64, 64), weights=str(tmp_path / "resnet18.safetensors")).eval()
    x = torch.rand(1, 3, 64, 64)
    assert loaded(x).equal(resnet(x))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [("resnet50", (3, 64, 64), "is missing"), ("resnet18", (3, 32, 32), "'conv1.weight' has shape")],
)
def test_weights_of_another_network_are_an_error(
    tmp_path: Path, name: str, shape: tuple[int, ...], message: str
) -> None:
    path = tmp_path / "resnet18.pth"
    saved_under_their_names(path)
    with pytest.raises(ValueError, match=message):
        build_backbone(name, in_shape=shape, weights=str(path))
