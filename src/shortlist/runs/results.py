"""How good scores and the sets made of them are, against the recorded labels and, where known, the whole truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.metrics.functional import set_summary
from shortlist.metrics.functional.set_summary import judged
from shortlist.metrics.named import find_metric, usual_metrics
from shortlist.sets import SetRule
from shortlist.sets.named import needed, no_answer


def skipped_images(*skipped: Mapping[str, str]) -> list[dict[str, str]]:
    """The images that were left out because they cannot be decoded, as commands tell them.

    >>> skipped_images({"a.png": "cut off"}, {})
    [{'id': 'a.png', 'reason': 'cut off'}]
    """
    return [{"id": name, "reason": reason} for images in skipped for name, reason in images.items()]


def results_of(
    scores: Tensor,
    target: Tensor,
    link: str,
    rules: Mapping[str, SetRule],
    *,
    truth: LabelSets | None = None,
    metrics: Sequence[str] = (),
    k: float | None = None,
    allow_import: Sequence[str] = (),
    rows: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Metrics of the scores, and of each rule's sets: the numbers of `set_summary`, and their 95 % intervals.

    ``coverage`` is the mean share of an example's recorded labels that its set holds. Where ``truth`` has all right
    labels of every example, ``truth-coverage`` and ``truth-exact`` are measured against these. ``judged`` says how many
    rows and labels (entries of the label matrix) were known; ``promises``, what rules promise of new rows; ``left_out``
    the rules that cannot answer, and why. ``rows``: their "groups" and "weights", for rules that need them.

    >>> import torch
    >>> from shortlist.sets import TopK
    >>> found = results_of(torch.eye(3), torch.tensor([0, 1, 1]), "softmax", {"top-k-1": TopK(1)}, k=1)
    >>> found["rules"]
    {'top-k-1': {'size': 1.0, 'coverage': 0.6666..., 'precision': 0.6666..., 'recall': 0.6666..., ...}}
    >>> found["intervals"]["top-k-1"]["coverage"]
    [0.2076..., 0.9385...]
    """
    if not bool((target >= 0).any()):
        raise ShortlistError("every label is unknown: there is nothing to evaluate against")
    several = target.ndim == 2 and bool(((target == 1).sum(1) > 1).any())
    names = metrics or usual_metrics(not several, scores.shape[1], k)
    wanted = [find_metric(name, scores.shape[1], "labels", allow_import=allow_import) for name in names]
    result: dict[str, Any] = {
        "examples": len(scores),
        "judged": judged(target, (scores.shape[0], scores.shape[1])),
        "metrics": {metric.name: metric(scores, target, link) for metric in wanted},
        "rules": {},
        "intervals": {},
        "promises": {name: rule.promise for name, rule in rules.items() if rule.promise},
        "left_out": {},
    }
    for name, rule in rules.items():
        why = no_answer(rule, rows)
        if why:
            result["left_out"][name] = why
            continue
        sets = rule.predict(scores, **needed(rule, rows))
        found = set_summary(sets, target)
        if truth is not None:
            of_truth = set_summary(sets, truth)
            found |= {f"truth-{key}": of_truth[key] for key in ("coverage", "exact")}
        result["rules"][name] = {key: estimate.value for key, estimate in found.items()}
        result["intervals"][name] = {key: [estimate.low, estimate.high] for key, estimate in found.items()}
    return result
