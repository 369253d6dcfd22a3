"""Objectives by name: how features become scores and a training loss, and which scores predict."""

from shortlist.objectives.average_k import AverageK
from shortlist.objectives.base import LinearObjective, Objective, count_labels
from shortlist.objectives.cnn_rnn import CnnRnn
from shortlist.objectives.counted import NoisedTopK, PartialSelective
from shortlist.objectives.curriculum import Curriculum
from shortlist.objectives.fast0tag import Fast0Tag
from shortlist.objectives.imcl import Imcl
from shortlist.objectives.latent_noise import LatentNoise
from shortlist.objectives.loss_functions import LossFunctionObjective
from shortlist.objectives.registry import (
    OBJECTIVES,
    build,
    check_kind,
    check_target,
    default_monitor,
    make_config,
    objective_class,
    register,
)
from shortlist.objectives.role import Role
from shortlist.objectives.scenes import SceneLML, SceneObjective, SceneSoftmax, SceneTruncatedEntropy
from shortlist.objectives.wsabie import Wsabie

__all__ = [
    "OBJECTIVES",
    "AverageK",
    "CnnRnn",
    "Curriculum",
    "Fast0Tag",
    "Imcl",
    "LatentNoise",
    "LinearObjective",
    "LossFunctionObjective",
    "NoisedTopK",
    "Objective",
    "PartialSelective",
    "Role",
    "SceneLML",
    "SceneObjective",
    "SceneSoftmax",
    "SceneTruncatedEntropy",
    "Wsabie",
    "build",
    "check_kind",
    "check_target",
    "count_labels",
    "default_monitor",
    "make_config",
    "objective_class",
    "register",
]
