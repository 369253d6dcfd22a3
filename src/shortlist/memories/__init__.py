"""Losses that remember something about every training example, and are told when a step or a round is over."""

from shortlist.memories.curriculum import CurriculumLabelingLoss
from shortlist.memories.role import ROLELoss

__all__ = ["CurriculumLabelingLoss", "ROLELoss"]
