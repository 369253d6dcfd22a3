"""Objectives by name: how features become scores and a training loss, and which scores predict."""

from shortlist.labels.counts import count_labels
from shortlist.objectives.average_k import AverageK
from shortlist.objectives.base import LinearObjective, Objective
from shortlist.objectives.cnn_rnn import CnnRnn
from shortlist.objectives.counted import NoisedTopK, PartialSelective
from shortlist.objectives.curriculum import Curriculum
from shortlist.objectives.fast0tag import Fast0Tag
from shortlist.objectives.imcl import Imcl
from shortlist.objectives.latent_noise import LatentNoise
from shortlist.objectives.loss_functions import (
    LML,
    LSEP,
    RML,
    WARP,
    AssumeNegative,
    Asymmetric,
    Binary,
    CrossEntropy,
    ExpectedPositive,
    LossFunctionObjective,
    MultilabelSoftmax,
    PartialBinary,
    SmoothTopK,
    TopKHinge,
    TruncatedEntropy,
    TwoWay,
)
from shortlist.objectives.registry import (
    OBJECTIVES,
    build,
    check_kind,
    check_target,
    default_monitor,
    make_config,
    register,
)
from shortlist.objectives.role import Role
from shortlist.objectives.wsabie import Wsabie

__all__ = [
    "LML",
    "LSEP",
    "OBJECTIVES",
    "RML",
    "WARP",
    "AssumeNegative",
    "Asymmetric",
    "AverageK",
    "Binary",
    "CnnRnn",
    "CrossEntropy",
    "Curriculum",
    "ExpectedPositive",
    "Fast0Tag",
    "Imcl",
    "LatentNoise",
    "LinearObjective",
    "LossFunctionObjective",
    "MultilabelSoftmax",
    "NoisedTopK",
    "Objective",
    "PartialBinary",
    "PartialSelective",
    "Role",
    "SmoothTopK",
    "TopKHinge",
    "TruncatedEntropy",
    "TwoWay",
    "Wsabie",
    "build",
    "check_kind",
    "check_target",
    "count_labels",
    "default_monitor",
    "make_config",
    "register",
]
