"""Set rules: from scores to one set of labels per row."""

from shortlist.sets._blocks import Block, Scores
from shortlist.sets._rule import SetRule
from shortlist.sets.average_k import AverageK
from shortlist.sets.conformal import Conformal
from shortlist.sets.penalized import Penalized
from shortlist.sets.pointwise_error import PointwiseError
from shortlist.sets.threshold import Threshold
from shortlist.sets.top_k import TopK

__all__ = ["AverageK", "Block", "Conformal", "Penalized", "PointwiseError", "Scores", "SetRule", "Threshold", "TopK"]
