"""How good scores and the sets made of them are, against the recorded labels and, where known, the whole truth."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.labels.counts import LabelCounts
from shortlist.labels.sparse_labels import joined
from shortlist.metrics.named import Metric, find_metric, usual_metrics
from shortlist.runs.judge import Judge
from shortlist.sets import SetRule
from shortlist.sets.named import no_answer
from shortlist.training.scored import Scored, pick

_ALL_UNKNOWN = "every label is unknown: there is nothing to evaluate against"


def skipped_images(*skipped: Mapping[str, str]) -> list[dict[str, str]]:
    """The images that were left out because they cannot be decoded, as commands tell them.

    >>> skipped_images({"a.png": "cut off"}, {})
    [{'id': 'a.png', 'reason': 'cut off'}]
    """
    return [{"id": name, "reason": reason} for images in skipped for name, reason in images.items()]


def results_of(
    scores: Tensor | Scored,
    target: Any,
    link: str,
    rules: Mapping[str, SetRule],
    *,
    truth: LabelSets | NDArray[Any] | None = None,
    metrics: Sequence[str] = (),
    k: float | None = None,
    allow_import: Sequence[str] = (),
    rows: Mapping[str, Any] | None = None,
    propensities: Any = None,
    over: Callable[[Judge], Judge] | None = None,
    label_names: Sequence[str] | None = None,
    by_label: str | None = None,
) -> dict[str, Any]:
    """Metrics of the scores, and of each rule's sets: the numbers of `set_summary`, and their 95 % intervals.

    ``coverage`` is the mean share of an example's recorded labels that its set holds. Where ``truth`` has all right
    labels of every example, ``truth-coverage`` and ``truth-exact`` are measured against these; where it has votes,
    ``truth-coverage`` is the share of them that the sets cover. ``judged`` says how many rows and labels (entries of
    the label matrix) were known; ``empty``, how many sets of each rule hold no label; ``promises``, what rules promise
    of new rows; ``left_out`` the rules that cannot answer, and why. Of single labels ``commonest`` says what always
    answering the commonest one would reach, and ``never_first`` which of them the model never puts first. ``by_label``
    names the rule of which precision, recall and F1 of each label are told, too. ``rows``: their "groups" and
    "weights", for rules that need them. Scores that are not small are passed over batch by batch,
    and never held whole but for a metric that must have all of them. ``over`` takes a judge over all rows, where these
    are in many places; the target is then perhaps only counted.

    >>> import torch
    >>> from shortlist.sets import TopK
    >>> found = results_of(torch.eye(3), torch.tensor([0, 1, 1]), "softmax", {"top-k-1": TopK(1)}, k=1)
    >>> found["rules"]
    {'top-k-1': {'size': 1.0, 'coverage': 0.6666..., 'precision': 0.6666..., 'recall': 0.6666..., ...}}
    >>> found["intervals"]["top-k-1"]["coverage"]
    [0.2076..., 0.9385...]
    """
    scored = scores if isinstance(scores, Scored) else Scored.of(scores)
    if over is None and not bool((target >= 0).any()):
        raise ShortlistError(_ALL_UNKNOWN)
    wanted = wanted_metrics(target, scored.num_labels, metrics, k, allow_import)
    streams = {} if scored.is_small and over is None else {one.name: one.stream(link, propensities) for one in wanted}
    streamed = {name: stream for name, stream in streams.items() if stream is not None}
    left_out = {name: why for name, rule in rules.items() if (why := no_answer(rule, rows))}
    rest = [one for one in wanted if one.name not in streamed]
    if rest and over is not None:
        raise ShortlistError(f"the metric {rest[0].name!r} is given all scores at once: ask for it without an engine")
    judge = Judge(streamed, {name: rule for name, rule in rules.items() if name not in left_out}, truth, by_label)

    def here(looking: Judge) -> Judge:
        first_row = 0
        for at, part in scored.batches():
            facts = {name: pick(values, at) for name, values in (rows or {}).items()}
            looking.see(part, pick(target, at), pick(truth, at), facts, first_row)
            first_row += len(part)
        return looking

    judge = last = (over or here)(judge)
    if over is not None and not judge.judged["rows"]:
        raise ShortlistError(_ALL_UNKNOWN)
    while (again := last.look_again()) is not None:
        last = (over or here)(again)
    judge.values = last.values
    if rest:  # of small scores all; else those that must be given all scores at once
        parts, targets = zip(*[(part, pick(target, at)) for at, part in scored.batches()], strict=True)
        whole, known = (parts[0], targets[0]) if len(parts) == 1 else (torch.cat(parts), joined(list(targets)))
        judge.values |= {one.name: one(whole, known, link, propensities) for one in rest}
    promises = {name: rule.promise for name, rule in rules.items() if rule.promise}
    found = judge.results([one.name for one in wanted], truth is not None, label_names)
    return {**found, "promises": promises, "left_out": left_out}


def wanted_metrics(
    target: Any, num_labels: int, metrics: Sequence[str], k: float | None, allow_import: Sequence[str]
) -> list[Metric]:
    """The metrics that are asked for, or the usual ones for such a target."""
    if isinstance(target, LabelCounts):
        several = target.several
    else:
        several = target.ndim == 2 and bool(((target == 1).sum(1) > 1).any())
    names = metrics or usual_metrics(not several, num_labels, k)
    return [find_metric(name, num_labels, "labels", allow_import=allow_import) for name in names]
