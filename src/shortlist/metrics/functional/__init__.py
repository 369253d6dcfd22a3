"""Every metric as a function: scores (or sets) first, target second, options by keyword."""

from typing import Any

from shortlist.metrics.functional.average_k import average_k_accuracy
from shortlist.metrics.functional.average_precision import mean_average_precision
from shortlist.metrics.functional.calibration_error import calibration_error, reliability
from shortlist.metrics.functional.label_sets import exact_match, set_coverage, set_f_score, set_size, vote_coverage
from shortlist.metrics.functional.promises import (
    coverage_by_class,
    coverage_by_group,
    coverage_by_size,
    coverage_gap,
    same_scores,
    worst_slab_coverage,
)
from shortlist.metrics.functional.propensity import (
    label_propensities,
    propensity_ndcg_at_k,
    propensity_precision_at_k,
)
from shortlist.metrics.functional.ranking import ndcg_at_k, precision_at_k, recall_at_k, top_k_accuracy
from shortlist.metrics.functional.set_summary import set_summary
from shortlist.metrics.functional.shot_groups import shot_group_of, shot_groups
from shortlist.registry import imported
from shortlist.verticals import METRIC_FUNCTIONS

__all__ = [
    "average_k_accuracy",
    "calibration_error",
    "coverage_by_class",
    "coverage_by_group",
    "coverage_by_size",
    "coverage_gap",
    "exact_match",
    "label_propensities",
    "mean_average_precision",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_ndcg_at_k",
    "propensity_precision_at_k",
    "recall_at_k",
    "reliability",
    "same_scores",
    "scene_mean_recall_at_k",  # of a vertical room: see __getattr__
    "scene_recall_at_k",
    "set_coverage",
    "set_f_score",
    "set_size",
    "set_summary",
    "shot_group_of",
    "shot_groups",
    "top_k_accuracy",
    "vote_coverage",
    "worst_slab_coverage",
]


def __getattr__(name: str) -> Any:
    if name not in METRIC_FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return imported(METRIC_FUNCTIONS[name])
