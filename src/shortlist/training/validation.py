"""The metrics of an epoch on validation data: each process scores its share, and only counts and sums travel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from shortlist.data import Dataset
from shortlist.distributed import gathered, world_size
from shortlist.metrics.functional import label_propensities
from shortlist.metrics.named import Metric
from shortlist.metrics.streams import Stream, values_of
from shortlist.training.learner import Learner, score_batches
from shortlist.training.scored import Scored

if TYPE_CHECKING:
    from shortlist.training.one_process import Engine


def validated(
    fabric: Engine, learner: Learner, dataset: Dataset, answers: Any, metrics: Sequence[Metric], train_set: Dataset
) -> dict[str, float]:
    """The value of each metric against the data's ``answers``, the same on every process. Scores are held whole only
    where they are small and there is one process, or where a metric must be given all of them."""
    link = learner.objective.link
    asked = any(metric.asks_for("propensities") for metric in metrics)
    propensities = label_propensities(train_set.label_counts(), len(train_set)) if asked else None
    world, rank = fabric.world_size, fabric.global_rank
    share = dataset.subset(torch.arange(len(dataset)).tensor_split(world)[rank]) if world > 1 else dataset
    compute = partial(score_batches, learner, share, context=fabric.autocast)
    scored = Scored(compute, len(share), learner.objective.num_labels)
    streams: dict[str, Stream] = {}
    if world > 1 or not scored.is_small:
        found = {one.name: one.stream(link, propensities) for one in metrics}
        streams = {name: stream for name, stream in found.items() if stream is not None}
    rest = [one for one in metrics if one.name not in streams]
    values: dict[str, float] = {}
    if streams:
        values = values_of(
            streams,
            lambda: ((scores, share.target[at]) for at, scores in scored.batches()),
            merged_over_processes if world > 1 else dict,
        )
    if rest:
        scores = torch.cat(gathered(scored.whole(), world))
        values |= {one.name: one(scores, answers, link, propensities) for one in rest}
    return {one.name: values[one.name] for one in metrics}


def merged_over_processes(streams: dict[str, Stream]) -> dict[str, Stream]:
    """What all processes have seen, in the order of their ranks; equal on every one of them."""
    merged: dict[str, Stream]
    merged, *others = gathered(streams, world_size(None))
    for part in others:
        for name, stream in merged.items():
            stream.merge(part[name])
    return merged
