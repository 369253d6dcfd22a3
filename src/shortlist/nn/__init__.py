"""Modules over `shortlist.functional`: one per loss, the LML layer, and the heads."""

from shortlist.nn.average_k_head import AverageKHead
from shortlist.nn.curriculum import CurriculumLabelingLoss
from shortlist.nn.multilabel import (
    AssumeNegativeLoss,
    AsymmetricLoss,
    AverageKLoss,
    BinaryLoss,
    ExpectedPositiveLoss,
    LSEPLoss,
    MultilabelSoftmaxLoss,
    PartialBinaryLoss,
    PartialSelectiveLoss,
    RMLLoss,
    TwoWayLoss,
    WARPLoss,
)
from shortlist.nn.role import ROLELoss
from shortlist.nn.topk import LML, LMLLoss, NoisedTopKLoss, SmoothTopKLoss, TopKHingeLoss, TruncatedEntropyLoss

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
