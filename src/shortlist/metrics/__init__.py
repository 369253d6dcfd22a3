"""Metrics of scores and of label sets: torchmetrics classes, with their functional twins in ``metrics.functional``.

Scores (or LabelSets) come first, the target second. The functions need only torch and numpy; the classes need
torchmetrics (``pip install 'shortlist[metrics]'``) and are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shortlist.verticals import METRIC_CLASSES, Table

if TYPE_CHECKING:
    from shortlist.metrics import functional as functional
    from shortlist.metrics.average_k import AverageKAccuracy as AverageKAccuracy
    from shortlist.metrics.average_precision import MeanAveragePrecision as MeanAveragePrecision
    from shortlist.metrics.label_sets import ExactMatch as ExactMatch
    from shortlist.metrics.label_sets import SetCoverage as SetCoverage
    from shortlist.metrics.label_sets import SetFScore as SetFScore
    from shortlist.metrics.label_sets import SetSize as SetSize
    from shortlist.metrics.ranking import NDCGAtK as NDCGAtK
    from shortlist.metrics.ranking import PrecisionAtK as PrecisionAtK
    from shortlist.metrics.ranking import RecallAtK as RecallAtK
    from shortlist.metrics.ranking import TopKAccuracy as TopKAccuracy
    from shortlist.metrics.shot_groups import ShotGroups as ShotGroups

_HOME = {
    "AverageKAccuracy": "average_k",
    "ExactMatch": "label_sets",
    "MeanAveragePrecision": "average_precision",
    "NDCGAtK": "ranking",
    "PrecisionAtK": "ranking",
    "RecallAtK": "ranking",
    "SetCoverage": "label_sets",
    "SetFScore": "label_sets",
    "SetSize": "label_sets",
    "ShotGroups": "shot_groups",
    "TopKAccuracy": "ranking",
}

_ELSEWHERE: Table[Any] = Table(elsewhere=METRIC_CLASSES)  # of vertical rooms

__all__ = ["functional", *_HOME, *_ELSEWHERE]


def __getattr__(name: str) -> Any:
    if name == "functional":
        return import_module("shortlist.metrics.functional")
    if name not in _HOME and name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(sorted(__all__))}")
    try:
        own = name in _HOME
        value = getattr(import_module(f"shortlist.metrics.{_HOME[name]}"), name) if own else _ELSEWHERE[name]
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
