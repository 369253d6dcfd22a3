"""What scores decide. Where there may be several labels, ``predict`` gives those above a threshold that did best on
held-out rows; of single labels, each has its odds against all others."""

from dataclasses import dataclass

import torch
from torch import Tensor

_FIRST_CUTS = 8  # times as many scores as there are present labels are looked at first


@dataclass(frozen=True)
class Decision:
    """Labels whose linked score is above ``threshold``; with ``at_least_one``, the highest one in any case."""

    threshold: float = 0.5
    at_least_one: bool = False

    def of(self, linked: Tensor) -> Tensor:
        found = linked > self.threshold
        if self.at_least_one:
            found[torch.arange(len(linked)), linked.argmax(1)] = True
        return found


def best_decision(linked: Tensor, target: Tensor) -> Decision:
    """The threshold with the best micro-F1 on these rows, with or without at least one label in every row.

    Unknown labels count neither way; where no label is present at all, the threshold is 0.5.

    >>> scores = torch.tensor([[1.0, 0.75], [0.25, 0.5]])
    >>> best_decision(scores, torch.tensor([[1, 1], [0, 0]]))
    Decision(threshold=0.625, at_least_one=False)
    >>> best_decision(scores, torch.tensor([[1, 0], [0, 1]]))
    Decision(threshold=1.25, at_least_one=True)
    """
    present, known = target == 1, target != -1
    total = int(present.sum())
    if total == 0:
        return Decision()
    highest = torch.zeros_like(present)
    highest[torch.arange(len(linked)), linked.argmax(1)] = True
    best_value, best = -1.0, Decision()
    for sure in (torch.zeros_like(present), highest):
        free = known & ~sure
        of_sure = int((sure & present).sum()), int((sure & known).sum())
        values, edges = _cuts(linked[free], present[free], total, *of_sure)
        at = int(values.argmax())
        if float(values[at]) > best_value:
            threshold = float(edges[at] + edges[at + 1]) / 2
            best_value, best = float(values[at]), Decision(threshold, bool(sure.any()))
    return best


def _cuts(scores: Tensor, present: Tensor, total: int, sure_hits: int, sure_count: int) -> tuple[Tensor, Tensor]:
    """F1 of the labels above the first n scores, n from 0 on, and the scores around each cut.

    No more scores are sorted than could matter: with n labels predicted, F1 is at most 2 total / (n + total).
    """
    count = min(len(scores), _FIRST_CUTS * total)
    while True:
        first = scores.topk(count)
        sorted_scores, hits = first.values.double(), present[first.indices].cumsum(0)
        hits = torch.cat([hits.new_zeros(1), hits]) + sure_hits
        predicted = torch.arange(count + 1) + sure_count
        values = 2 * hits / (predicted + total)
        below = first.values[-1:].double() - 1  # of the last cut; nothing is below all scores
        edges = torch.cat([sorted_scores[:1] + 1, sorted_scores, below]) if count else torch.tensor([1.0, 0.0])
        values[edges[:-1] == edges[1:]] = -1  # a cut between equal scores is none
        if count == len(scores):
            return values, edges
        values[-1] = -1  # what comes next may be equal
        if float(values.max()) >= 2 * total / (count + sure_count + total):
            return values, edges
        count = min(len(scores), 4 * count)


def log_odds(scores: Tensor) -> Tensor:
    """How likely each class is against all others together, as a logarithm; exact also where softmax rounds to 1.

    >>> log_odds(torch.tensor([[0.0, 100.0, 0.0]])).round(decimals=2)
    tensor([[-100.0000,   99.3100, -100.0000]])
    """
    logs = scores.log_softmax(1)
    others = torch.log1p(-logs.exp())
    highest = scores.argmax(1, keepdim=True)
    without = scores.scatter(1, highest, -torch.inf).logsumexp(1, keepdim=True)
    return logs - others.scatter(1, highest, without - scores.logsumexp(1, keepdim=True))
