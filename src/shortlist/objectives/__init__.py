"""Objectives by name: how features become scores and a training loss, and which scores predict."""

from shortlist.objectives.average_k import AverageK
from shortlist.objectives.base import LinearObjective, Objective, count_labels
from shortlist.objectives.cnn_rnn import CnnRnn
from shortlist.objectives.counted import NoisedTopK, PartialSelective
from shortlist.objectives.curriculum import Curriculum
from shortlist.objectives.fast0tag import Fast0Tag
from shortlist.objectives.latent_noise import LatentNoise
from shortlist.objectives.loss_functions import LossFunctionObjective
from shortlist.objectives.registry import (
    OBJECTIVES,
    build,
    check_target,
    check_kind,
    default_monitor,
    make_config,
    objective_class,
    register,
)
from shortlist.objectives.role import Role
from shortlist.objectives.wsabie import Wsabie
from shortlist.objectives.scenes import SceneLML, SceneObjective, SceneSoftmax, SceneTruncatedEntropy

__all__ = [
    "OBJECTIVES",
    "AverageK",
    "CnnRnn",
    "Curriculum",
    "Fast0Tag",
    "LatentNoise",
    "LinearObjective",
    "LossFunctionObjective",
    "NoisedTopK",
    "Objective",
    "PartialSelective",
    "Role",
    "Wsabie",
    "build",
    "SceneLML",
    "SceneObjective",
    "SceneSoftmax",
    "SceneTruncatedEntropy",
    "check_target",
    "count_labels",
    "check_kind",
    "default_monitor",
    "make_config",
    "objective_class",
    "register",
]
