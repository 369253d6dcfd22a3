"""A similarity memory for partial labels: label graph, dictionary, joint nonnegative pursuit."""

from shortlist.imcl.approximate import AtomIndex
from shortlist.imcl.completion import complete, squash
from shortlist.imcl.dictionary import Dictionary
from shortlist.imcl.label_graph import LabelGraph, disagreement
from shortlist.imcl.memory import Explanation, SimilarityMemory
from shortlist.imcl.nonnegative import nonnegative_least_squares
from shortlist.imcl.pursuit import JointNonnegativePursuit, PursuitResult

__all__ = [
    "AtomIndex",
    "Dictionary",
    "Explanation",
    "JointNonnegativePursuit",
    "LabelGraph",
    "PursuitResult",
    "SimilarityMemory",
    "complete",
    "disagreement",
    "nonnegative_least_squares",
    "squash",
]
