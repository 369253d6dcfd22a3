"""Labels: the label matrix and its converters, and ``LabelSets``."""

from shortlist._label_sets import LabelSets

__all__ = ["LabelSets"]
