"""Metrics of scores and of label sets: torchmetrics classes, with their functional twins in ``metrics.functional``.

Scores (or LabelSets) come first, the target second. The functions need only torch and numpy; the classes need
torchmetrics (``pip install 'shortlist[metrics]'``) and are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shortlist.registry import imported
from shortlist.verticals import METRIC_CLASSES

if TYPE_CHECKING:
    from shortlist.metrics import functional as functional
    from shortlist.metrics.average_k import AverageKAccuracy as AverageKAccuracy
    from shortlist.metrics.average_precision import MeanAveragePrecision as MeanAveragePrecision
    from shortlist.metrics.label_sets import ExactMatch as ExactMatch
    from shortlist.metrics.label_sets import SetCoverage as SetCoverage
    from shortlist.metrics.label_sets import SetFScore as SetFScore
    from shortlist.metrics.label_sets import SetSize as SetSize
    from shortlist.metrics.label_sets import VoteCoverage as VoteCoverage
    from shortlist.metrics.promises import CalibrationError as CalibrationError
    from shortlist.metrics.promises import CoverageGap as CoverageGap
    from shortlist.metrics.propensity import PropensityNDCGAtK as PropensityNDCGAtK
    from shortlist.metrics.propensity import PropensityPrecisionAtK as PropensityPrecisionAtK
    from shortlist.metrics.ranking import NDCGAtK as NDCGAtK
    from shortlist.metrics.ranking import PrecisionAtK as PrecisionAtK
    from shortlist.metrics.ranking import RecallAtK as RecallAtK
    from shortlist.metrics.ranking import TopKAccuracy as TopKAccuracy
    from shortlist.metrics.shot_groups import ShotGroups as ShotGroups

_HOMES = {  # module -> its classes
    "average_k": ("AverageKAccuracy",),
    "average_precision": ("MeanAveragePrecision",),
    "label_sets": ("ExactMatch", "SetCoverage", "SetFScore", "SetSize", "VoteCoverage"),
    "promises": ("CalibrationError", "CoverageGap"),
    "propensity": ("PropensityNDCGAtK", "PropensityPrecisionAtK"),
    "ranking": ("NDCGAtK", "PrecisionAtK", "RecallAtK", "TopKAccuracy"),
    "shot_groups": ("ShotGroups",),
}
_HOME = {name: f"shortlist.metrics.{module}:{name}" for module, names in _HOMES.items() for name in names}
_HOME = dict(sorted(_HOME.items())) | METRIC_CLASSES  # those of vertical rooms last

__all__ = ["functional", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "functional":
        return import_module("shortlist.metrics.functional")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(sorted(__all__))}")
    try:
        value = imported(_HOME[name])
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.split(".")[0] == "torchmetrics":
            raise ModuleNotFoundError(
                f"shortlist.metrics.{name} needs torchmetrics: pip install 'shortlist[metrics]'", name="torchmetrics"
            ) from missing
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
