"""Modules over `shortlist.functional`: one per loss, the LML layer, and the heads."""

from shortlist.memories import CurriculumLabelingLoss, ROLELoss
from shortlist.nn.average_k_head import AverageKHead
from shortlist.nn.linear_loss import LinearLoss
from shortlist.nn.lml_layer import LML
from shortlist.nn.losses import (
    AssumeNegativeLoss,
    AsymmetricLoss,
    AverageKLoss,
    BinaryLoss,
    ExpectedPositiveLoss,
    LMLLoss,
    LSEPLoss,
    MultilabelSoftmaxLoss,
    NoisedTopKLoss,
    PartialBinaryLoss,
    PartialSelectiveLoss,
    RMLLoss,
    SmoothTopKLoss,
    TopKHingeLoss,
    TruncatedEntropyLoss,
    TwoWayLoss,
    WARPLoss,
)

__all__ = [
    "LML",
    "AssumeNegativeLoss",
    "AsymmetricLoss",
    "AverageKHead",
    "AverageKLoss",
    "BinaryLoss",
    "CurriculumLabelingLoss",
    "ExpectedPositiveLoss",
    "LMLLoss",
    "LSEPLoss",
    "LinearLoss",
    "MultilabelSoftmaxLoss",
    "NoisedTopKLoss",
    "PartialBinaryLoss",
    "PartialSelectiveLoss",
    "RMLLoss",
    "ROLELoss",
    "SmoothTopKLoss",
    "TopKHingeLoss",
    "TruncatedEntropyLoss",
    "TwoWayLoss",
    "WARPLoss",
]
