"""Objectives by name: how features become scores and a training loss, and which scores predict."""

from shortlist.objectives.average_k import AverageK
from shortlist.objectives.base import LinearObjective, Objective, count_labels
from shortlist.objectives.loss_functions import LossFunctionObjective
from shortlist.objectives.registry import (
    OBJECTIVES,
    build,
    check_target,
    default_monitor,
    make_config,
    objective_class,
    register,
)

__all__ = [
    "OBJECTIVES",
    "AverageK",
    "LinearObjective",
    "LossFunctionObjective",
    "Objective",
    "build",
    "check_target",
    "count_labels",
    "default_monitor",
    "make_config",
    "objective_class",
    "register",
]
