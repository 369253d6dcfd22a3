"""Pretrained weights of a ResNet or a VGG under torchvision's names."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.models import build_backbone
from shortlist.models.resnet import ResNet
from shortlist.models.torchvision_weights import load_weights, resnet_names
from shortlist.models.vgg import VGG16


def saved_under_their_names(path: Path) -> tuple[ResNet, dict[str, Tensor]]:
    torch.manual_seed(1)
    resnet = ResNet(18).eval()
    for value in resnet.state_dict().values():
        if value.is_floating_point() and value.ndim == 1:
            value.uniform_(0.5, 1.5)  # scales, shifts and statistics that differ from their start
    own = resnet.state_dict()
    state = dict(zip(resnet_names(own), own.values(), strict=True))
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


def test_resnet101_has_the_published_weights_under_their_names() -> None:
    with torch.device("meta"):
        resnet = ResNet(101)
    names = resnet_names(resnet.state_dict())
    assert len(set(names)) == len(names)
    assert {"layer3.22.conv3.weight", "layer4.2.bn3.running_var", "layer1.0.downsample.0.weight"} <= set(names)
    assert not any(name.startswith(("layer3.23.", "layer4.3.")) for name in names)
    assert sum(weight.numel() for weight in resnet.parameters()) == 44_549_160 - 2_049_000  # less its classifier


def test_vgg16_has_the_published_weights_under_their_names() -> None:
    with torch.device("meta"):
        vgg = VGG16()
    shapes = {name: tuple(value.shape) for name, value in vgg.state_dict().items()}
    convolutions = [name for name, shape in shapes.items() if len(shape) == 4]
    assert [int(name.split(".")[1]) for name in convolutions] == [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]
    assert shapes["classifier.0.weight"] == (4096, 25_088)
    assert shapes["classifier.3.bias"] == (4096,)
    assert sum(weight.numel() for weight in vgg.parameters()) == 138_357_544 - 4_097_000  # less its classifier


def test_vgg16_loads_a_file_and_computes_what_its_names_say(tmp_path: Path) -> None:
    torch.manual_seed(0)
    small = {"widths": (2, 3, 4, 4, 4), "hidden": 5}
    state = {name: torch.rand_like(value) - 0.3 for name, value in VGG16(**small).state_dict().items()}
    last = {"classifier.6.weight": torch.zeros(10, 5), "classifier.6.bias": torch.zeros(10)}
    torch.save(state | last, tmp_path / "vgg.pth")
    vgg = VGG16(**small).eval()
    load_weights(vgg, tmp_path / "vgg.pth")
    x = torch.rand(2, 3, 64, 64)
    y, layer = x, 0
    for count in (2, 2, 3, 3, 3):
        for _ in range(count):
            y = F.relu(F.conv2d(y, state[f"features.{layer}.weight"], state[f"features.{layer}.bias"], padding=1))
            layer += 2
        y, layer = F.max_pool2d(y, 2), layer + 1
    torch.testing.assert_close(vgg.maps(x), y)
    y = F.adaptive_avg_pool2d(y, 7).flatten(1)
    for layer in (0, 3):
        y = F.relu(F.linear(y, state[f"classifier.{layer}.weight"], state[f"classifier.{layer}.bias"]))
    torch.testing.assert_close(vgg(x), y)


def test_fixed_parts_do_not_learn() -> None:
    vgg = VGG16(widths=(2, 2, 2, 2, 2), hidden=3, fixed_convolutions=True)
    assert [name.split(".")[0] for name, weight in vgg.named_parameters() if weight.requires_grad] == ["classifier"] * 4
    resnet = ResNet(18, stem="small", fixed_norms=True).train()
    before = resnet.stem[0][1].running_mean.clone()
    resnet(torch.rand(4, 3, 8, 8))
    assert torch.equal(resnet.stem[0][1].running_mean, before)
    assert resnet.training
