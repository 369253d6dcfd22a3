"""Set rules: from scores to one set of labels per row."""

from shortlist.sets._blocks import Block, Scores
from shortlist.sets._rule import SetRule
from shortlist.sets.average_k import AverageK
from shortlist.sets.conformal import Conformal
from shortlist.sets.online_conformal import OnlineConformal
from shortlist.sets.penalized import Penalized
from shortlist.sets.pointwise_error import PointwiseError
from shortlist.sets.risk_control import RiskControl
from shortlist.sets.risks import Risk, register_risk
from shortlist.sets.scaling import fit_scaling
from shortlist.sets.threshold import Threshold
from shortlist.sets.top_k import TopK

__all__ = [
    "AverageK",
    "Block",
    "Conformal",
    "OnlineConformal",
    "Penalized",
    "PointwiseError",
    "Risk",
    "RiskControl",
    "Scores",
    "SetRule",
    "Threshold",
    "TopK",
    "fit_scaling",
    "register_risk",
]
