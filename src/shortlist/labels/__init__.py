"""Labels: the label matrix (1 present, 0 absent, -1 unknown), its converters, votes, and ``LabelSets``."""

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
from shortlist.labels.votes import from_pair_answers, from_votes

__all__ = [
    "LabelSets",
    "SparseLabels",
    "check_label_matrix",
    "from_chexpert",
    "from_indices",
    "from_nan",
    "from_pair_answers",
    "from_sets",
    "from_signed",
    "from_votes",
]
