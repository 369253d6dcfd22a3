"""Backbones: modules from inputs to feature vectors of length ``out_features``."""

from shortlist.models.build import BACKBONES, build_backbone, check_backbone
from shortlist.models.convnet import ConvNet
from shortlist.models.densenet import DenseNet
from shortlist.models.efficientnet import EfficientNetLite0
from shortlist.models.mlp import MLP, Identity
from shortlist.models.resnet import ResNet

__all__ = [
    "BACKBONES",
    "MLP",
    "ConvNet",
    "DenseNet",
    "EfficientNetLite0",
    "Identity",
    "ResNet",
    "build_backbone",
    "check_backbone",
]
