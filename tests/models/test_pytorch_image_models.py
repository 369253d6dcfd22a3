"""Networks of the package timm, by a stand-in of the same interface: it needs torchvision, which is not here."""

import sys
import types

import pytest
import torch
from torch import nn

from shortlist import ShortlistError
from shortlist.errors import MissingPackageError
from shortlist.models import build_backbone


class _Network(nn.Module):
    """Pooled features of images of one size, as timm's create_model gives them with num_classes=0."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 5, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        assert images.shape[2] == 24, f"Input height ({images.shape[2]}) doesn't match model (24)."
        return self.conv(images).mean((2, 3))


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("timm")
    asked: list[dict] = []

    def create_model(name: str, pretrained: bool, num_classes: int, in_chans: int) -> nn.Module:
        asked.append({"name": name, "pretrained": pretrained, "num_classes": num_classes})
        if name != "tiny.in1k":
            raise RuntimeError(f"Unknown model ({name})")
        return _Network(in_chans)

    how = {"input_size": (3, 24, 24), "mean": (0.5, 0.4, 0.3), "std": (0.1, 0.2, 0.3)}
    module.create_model, module.asked = create_model, asked
    module.data = types.SimpleNamespace(resolve_model_data_config=lambda network: how)
    monkeypatch.setitem(sys.modules, "timm", module)
    return module


def test_a_network_of_timm_is_built_without_its_last_layer_and_says_how_pixels_are_scaled(timm) -> None:
    backbone = build_backbone("timm:tiny.in1k", in_shape=(3, 24, 24), pretrained=False)
    assert timm.asked == [{"name": "tiny.in1k", "pretrained": False, "num_classes": 0}]
    assert (backbone.out_features, backbone.pixel_mean, backbone.pixel_std) == (5, (0.5, 0.4, 0.3), (0.1, 0.2, 0.3))
    assert backbone.training
    assert backbone(torch.zeros(2, 3, 24, 24)).shape == (2, 5)


def test_what_timm_does_not_have_or_take_is_refused_in_words(timm) -> None:
    with pytest.raises(ShortlistError, match=r"timm has no 'huge' that can be used here: Unknown model \(huge\)"):
        build_backbone("timm:huge", in_shape=(3, 24, 24))
    with pytest.raises(ShortlistError, match=r"it wants 24 pixels, data\.train\.size=24"):
        build_backbone("timm:tiny.in1k", in_shape=(3, 32, 32))
    with pytest.raises(ShortlistError, match="looks at images"):
        build_backbone("timm:tiny.in1k", in_shape=(7,))


def test_without_timm_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingPackageError, match=r"needs timm, which .*: pip install 'shortlist\[timm\]'"):
        build_backbone("timm:resnet50", in_shape=(3, 24, 24))
