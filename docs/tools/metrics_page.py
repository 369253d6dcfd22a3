"""The catalogue of metrics."""

import re

from docstring_parts import section, summary, table, written_by

import shortlist.metrics as metrics
from shortlist.metrics import functional
from shortlist.metrics.named import METRICS, written

INTRODUCTION = f"""\
# Catalogue of metrics

{written_by("the docstrings")}

Every metric is a torchmetrics class in `shortlist.metrics`, for many batches and many processes, and a function in
`shortlist.metrics.functional`, for arrays at hand. Scores (or `LabelSets`) come first, the target second; unknown
labels are left out of the count. In a config, `stop.metric` and `metrics` take
{", ".join(f"`{written(name)}`" for name in METRICS)}, and
[functions of your own](extend.md#your-own-metric).
"""


def page() -> str:
    classes = [name for name in metrics.__all__ if name != "functional"]
    rows = [[f"[`{name}`](#{name.lower()})", _function(name), summary(getattr(metrics, name))] for name in classes]
    parts = [INTRODUCTION, table(["metric", "function", "what it measures"], rows)]
    return "\n".join([*parts, *(section(f"## {name}", getattr(metrics, name)) for name in classes)])


def _function(name: str) -> str:
    """The functional twin, by its name: TopKAccuracy -> top_k_accuracy."""
    words = re.findall(r"NDCG|[A-Z][a-z]*", name)
    twin = "_".join(words).lower()
    if twin not in functional.__all__:
        raise ValueError(f"shortlist.metrics.{name} has no function {twin} in shortlist.metrics.functional")
    return f"`{twin}`"
