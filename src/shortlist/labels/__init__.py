"""Labels: the label matrix (1 present, 0 absent, -1 unknown), its converters, and ``LabelSets``."""

from shortlist.labels.converters import (
    check_label_matrix,
    from_chexpert,
    from_indices,
    from_nan,
    from_sets,
    from_signed,
)
from shortlist.labels.label_sets import LabelSets
from shortlist.labels.sparse_labels import SparseLabels

__all__ = [
    "LabelSets",
    "SparseLabels",
    "check_label_matrix",
    "from_chexpert",
    "from_indices",
    "from_nan",
    "from_sets",
    "from_signed",
]
