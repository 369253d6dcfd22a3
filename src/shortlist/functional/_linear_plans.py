"""How a loss goes through the blocks of a linear head's scores: by rows, and twice where it couples the rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import holds_shares
from shortlist.distributed import max_over_processes, sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, wide
from shortlist.functional._linear_head import ALL, Head, blocks
from shortlist.functional.average_k import average_k_loss, largest_entries
from shortlist.functional.binary import binary_loss
from shortlist.functional.expected_positive import expected_positive_loss, expected_positive_rows
from shortlist.functional.noised_topk import noised_topk_loss, rows_of_a_draw
from shortlist.functional.reduction import NotedMean
from shortlist.functional.two_way import two_way_loss
from shortlist.labels.sparse_labels import SparseLabels, dense_labels

Entries = tuple[Tensor, Tensor]  # rows, and a label of each
BY_ROW = ("mask", "sample_weight", "k")  # options that may have one entry per row


@dataclass(eq=False)
class Plan:
    """A loss of rows in one dimension, its target and options; ``run`` gives the value, and what the gradients that the
    heads have gathered are to be multiplied by. ``upstream``: of each row's loss, where they stay apart."""

    loss: Callable[..., Tensor]
    target: Tensor | SparseLabels
    options: dict[str, Any]
    memory: int

    arrays = 2  # of the size of a block of scores: the scores and their gradient

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def check_options(self, no_rows: list[Tensor]) -> None:
        """Let the loss itself say what is wrong with its options, of which a plan looks at a few only."""
        self.loss(*no_rows, self.target[:0], **self.of_rows(slice(0, 0), sync=False))

    @property
    def reduction(self) -> str:
        return self.options.get("reduction", "mean")

    @property
    def world(self) -> int:
        return world_size(self.options.get("sync"))

    def of_rows(self, rows: slice, **changes: Any) -> dict[str, Any]:
        """The options for a block of rows."""
        chosen = {
            name: value[rows] if name in BY_ROW and value.ndim else value
            for name, value in self.options.items()
            if isinstance(value, Tensor)
        }
        return self.options | chosen | changes

    def row_blocks(self, head: Head, multiple: int = 1) -> Iterator[slice]:
        return blocks(len(head), self.arrays * head.num_labels * head.entry_bytes, self.memory, multiple)

    def index_and_weight(self, head: Head) -> tuple[Tensor, Tensor]:
        """Of a loss with one label per row: which (-1 for none), and how much each row counts."""
        if isinstance(self.target, Tensor) and self.target.ndim == 2 and holds_shares(self.target):
            raise ShortlistError(
                f"linear_loss takes class indices or a label matrix with {self.loss.__name__}, not shares of labels: "
                f"make the scores, and call {self.loss.__name__} on them"
            )
        counted = (self.options.get("mask"), self.options.get("weight"), self.options.get("sample_weight"))
        _, index, counts = _targets.single_positive(head.unmade_scores(), self.target, counted, native=False)
        return index, counts

    def random_state(self) -> Tensor | None:
        """Of the generator that the loss draws from; None where it draws nothing."""
        generator = self._generator()
        return None if generator is None else generator.get_state()

    @contextmanager
    def random_state_set(self, state: Tensor | None) -> Iterator[None]:
        """Draw again what was drawn."""
        generator = self._generator()
        if generator is None or state is None:
            yield
            return
        now = generator.get_state()
        generator.set_state(state)
        try:
            yield
        finally:
            generator.set_state(now)

    def _generator(self) -> torch.Generator | None:
        if "generator" not in self.loss.__code__.co_varnames:
            return None
        given: torch.Generator | None = self.options.get("generator")
        if given is not None or self.target.device.type != "cuda":
            return given or torch.default_generator
        return torch.cuda.default_generators[self.target.device.index or 0]


class ByRows(Plan):
    """A loss of single rows."""

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (head,) = heads
        multiple = rows_of_a_draw(head.num_labels, self.target.device) if self.loss is noised_topk_loss else 1
        if self.reduction == "none":
            parts = [self._apart(head, rows, upstream) for rows in self.row_blocks(head, multiple)]
            return torch.cat(parts).to(head.kind), torch.ones((), device=self.target.device)
        total = observed = wide(head.features.new_zeros(()))
        for rows in self.row_blocks(head, multiple):
            mean, count = self._together(head, rows)
            total, observed = total + mean * count, observed + count
        factor = self.world / self.divisor(observed)
        return (total * factor).to(head.kind), factor

    def divisor(self, observed: Tensor) -> Tensor:
        """What the sum over all rows is divided by, over all processes."""
        if self.reduction == "sum":
            return torch.ones_like(observed)
        everywhere = sum_over_processes(observed, self.world)
        return torch.where(everywhere > 0, everywhere, 1.0)

    def _together(self, head: Head, rows: slice) -> tuple[Tensor, Tensor]:
        """The mean over a block and what it was divided by; its scores are gone when the next block's are made."""
        scores, noted = head.scores(rows), NotedMean()
        with head.graph(scores):
            loss = self.loss(scores, self.target[rows], **self.of_rows(rows, reduction=noted, sync=False))
        if not hasattr(noted, "observed"):
            raise ShortlistError(
                f"{self.loss.__name__} forms a mean of its own, which cannot be put together of blocks: linear_loss "
                f"takes losses of shortlist.functional, and those made as CONTRIBUTING.md shows"
            )
        head.add_of(loss, scores, rows, factor=noted.observed)
        return wide(loss.detach()), wide(noted.observed)

    def _apart(self, head: Head, rows: slice, upstream: Tensor | None) -> Tensor:
        scores = head.scores(rows)
        with head.graph(scores):
            losses = self.loss(scores, self.target[rows], **self.of_rows(rows, sync=False))
            weighted = None if upstream is None else (losses * upstream[rows]).sum()
        if weighted is not None:  # outside of the graph, which would keep what every block has added
            head.add_of(weighted, scores, rows)
        return losses.detach()


class TwoWay(ByRows):
    """The class way by blocks of labels, whose columns it does not couple; then the sample way by blocks of rows."""

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (head,) = heads
        most_rows = int(max_over_processes(torch.tensor(len(head)), self.world))  # the same blocks on every process
        weight, mask = self.options.get("sample_weight"), self.options.get("mask")
        counts = head.features.new_ones(len(head)) if weight is None else weight
        counts = wide(counts)
        value = columns = wide(head.features.new_zeros(()))
        has_present = torch.zeros_like(counts, dtype=torch.bool)
        for labels in blocks(head.num_labels, self.arrays * most_rows * head.entry_bytes, self.memory):
            target, part = dense_labels(self.target[:, labels]), None if mask is None else mask[:, labels]
            value = value + self._columns(head, labels, target, part)
            present = target == 1 if part is None else (target == 1) & part
            has_present |= present.any(-1)
            seen = (present & (counts > 0).unsqueeze(-1)).any(0).int()
            columns = columns + max_over_processes(seen, self.world).sum()
        of_columns = torch.ones_like(columns) if self.reduction == "sum" else 1 / columns.clamp(min=1)
        value = value * of_columns
        if self.options.get("way", "both") == "class":
            return value.to(head.kind), of_columns
        of_rows = self.world / self.divisor(torch.where(has_present, counts, 0.0).sum())
        head.rescale(of_columns / of_rows)
        rows = ByRows(self.loss, self.target, self.options | {"way": "sample"}, self.memory)
        sample, factor = rows.run(heads)
        return (value + wide(sample)).to(head.kind), factor

    def _columns(self, head: Head, labels: slice, target: Tensor, mask: Tensor | None) -> Tensor:
        """The sum of the class way over a block of labels."""
        scores = head.scores(ALL, labels)
        with head.graph(scores):
            loss = self.loss(scores, target, **self.options | {"mask": mask, "way": "class", "reduction": "sum"})
        head.add_of(loss, scores, ALL, labels)
        return wide(loss.detach())


class ExpectedPositive(Plan):
    """The mean number of expected labels first; then its square has a known slope."""

    arrays = 5

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (head,) = heads
        index, counts = self.index_and_weight(head)
        mask, k, beta = self.options.get("mask"), self.options["k"], self.options.get("beta", 0.01)
        positives = expected = wide(counts.new_zeros(()))
        parts = list(self.row_blocks(head))

        def terms(rows: slice, scores: Tensor) -> tuple[Tensor, Tensor]:
            positive, chances = expected_positive_rows(scores, index[rows], None if mask is None else mask[rows])
            weighted = torch.where(counts[rows] > 0, positive * counts[rows], 0.0)
            return weighted.sum(), (counts[rows] * chances).sum()

        for rows in parts:
            positive, chances = terms(rows, head.scores(rows))
            positives, expected = positives + wide(positive), expected + wide(chances)
        total = sum_over_processes(wide(counts.sum()), self.world)
        divisor = torch.where(total > 0, total, 1.0)
        excess = torch.where(total > 0, sum_over_processes(expected, self.world) / divisor - k, 0.0)
        scale = head.num_labels if self.options.get("normalize", False) else 1
        value = self.world * positives / divisor / scale + beta * excess**2 / scale**2
        factor = self.world / (divisor * scale)
        slope = (2 * beta * excess / scale).to(counts.dtype)
        for rows in parts if head.learns else ():
            scores = head.scores(rows)
            with head.graph(scores):
                positive, chances = terms(rows, scores)
                loss = positive + slope * chances
            head.add_of(loss, scores, rows)
            del scores, positive, chances, loss  # before the next block is made
        if self.reduction == "sum":
            value, factor = value * total, factor * total
        return value.to(head.kind), factor


class AverageK(Plan):
    """The candidates of the whole batch first; with them known, every row's loss is its own."""

    arrays = 6

    def run(self, heads: list[Head], upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sets, proposals = heads
        index, counts = self.index_and_weight(sets)
        parts = list(self.row_blocks(sets))
        candidates, usable = self._candidates(proposals, index, counts, parts)
        rows_of = candidates // sets.num_labels
        totals = torch.stack([counts.sum(), counts[rows_of].sum(), (counts * (usable - 1)).sum()]).double()
        totals[2] -= totals[1]
        totals = sum_over_processes(totals, self.world)
        alpha = float(self.options.get("alpha", 1.0))
        shares = torch.tensor([1.0, alpha, alpha], dtype=totals.dtype, device=totals.device)
        shares = self.world * shares / torch.where(totals > 0, totals, 1.0)
        value = totals.new_zeros(())
        for rows in parts:
            inside = (rows_of >= rows.start) & (rows_of < rows.stop)
            chosen = (rows_of[inside] - rows.start, candidates[inside] % sets.num_labels)
            known, weight = index[rows] >= 0, counts[rows]
            own = (known.nonzero().squeeze(-1), index[rows][known])
            value = value + self._of_proposals(proposals, rows, own, weight * shares[0].to(weight.dtype))
            value = value + self._of_sets(sets, rows, own, chosen, weight, shares.to(weight.dtype))
        factor = torch.ones_like(totals[0]) if self.reduction == "mean" else totals[0]
        return (value * factor).to(sets.kind), factor

    def _log_shares(self, head: Head, rows: slice, observed: Tensor) -> Tensor:
        mask = self.options.get("mask")
        scores = bounded(head.scores(rows))
        scores = scores if mask is None else scores.masked_fill(~mask[rows], float("-inf"))
        return scores.masked_fill_(~observed.unsqueeze(-1), 0.0).log_softmax(-1)

    def _candidates(self, head: Head, index: Tensor, counts: Tensor, parts: list[slice]) -> tuple[Tensor, Tensor]:
        """Flat positions of the candidates in their order, and how many labels of each row are usable."""
        mask, observed, labels = self.options.get("mask"), counts > 0, head.num_labels
        usable = torch.full_like(counts, labels) if mask is None else mask.sum(-1).to(counts.dtype)
        everywhere = sum_over_processes(observed.sum(), self.world)
        wanted = (wide(everywhere) * (self.options["k"] - 1.0) + 0.5).floor().long()
        values, places, eligible = counts.new_empty(0), index.new_empty(0), wanted.new_zeros(())
        for rows in parts:
            shares = self._log_shares(head, rows, observed[rows])
            fits = ~shares.isnan() & observed[rows].unsqueeze(-1)
            fits = fits if mask is None else fits & mask[rows]
            fits[torch.arange(len(fits), device=fits.device), index[rows].clamp(min=0)] = False
            eligible = eligible + fits.sum()
            if len(values) >= int(wanted):
                fits &= shares > values.min() if len(values) else torch.zeros_like(fits)
            elif int(fits.sum()) > int(wanted):
                fits = largest_entries(shares, fits, wanted, 1)
            here = fits.flatten().nonzero().squeeze(-1)
            values = torch.cat([values, shares.flatten()[here]])
            places = torch.cat([places, here + rows.start * labels])
            if len(values) > int(wanted):
                kept = largest_entries(values, torch.ones_like(places, dtype=torch.bool), wanted, 1)
                values, places = values[kept], places[kept]
        count = torch.minimum(wanted, sum_over_processes(eligible, self.world))
        chosen = largest_entries(values, torch.ones_like(places, dtype=torch.bool), count, self.world)
        return places[chosen], usable

    def _of_proposals(self, head: Head, rows: slice, own: Entries, weight: Tensor) -> Tensor:
        """Cross-entropy, and its gradient."""
        shares = self._log_shares(head, rows, weight > 0)
        terms = -shares[own] * weight[own[0]]
        loss = torch.where(weight[own[0]] > 0, terms, 0.0).sum()
        if head.learns:
            gradient = shares.exp_().mul_(torch.where(weight > 0, weight, 0.0).unsqueeze(-1))
            gradient.masked_fill_((weight == 0).unsqueeze(-1), 0.0)
            gradient[own] -= weight[own[0]]
            if (mask := self.options.get("mask")) is not None:
                gradient.masked_fill_(~mask[rows], 0.0)  # a NaN in the row, too, leaves what is masked alone
            head.add(gradient, rows)
        return wide(loss)

    def _of_sets(
        self, head: Head, rows: slice, own: Entries, chosen: Entries, weight: Tensor, shares: Tensor
    ) -> Tensor:
        """Negatives by the kernel of the binary loss, to which the few others are unknown; those by hand."""
        mask, scores = self.options.get("mask"), head.scores(rows)
        target = torch.zeros(scores.shape, dtype=torch.int8, device=scores.device)
        target[own], target[chosen] = -1, -1
        part = None if mask is None else mask[rows]
        with head.graph(scores):
            negatives = (
                binary_loss(scores, target, mask=part, sample_weight=weight, reduction="sum", sync=False) * shares[2]
            )
        value = wide(negatives.detach())
        gradient = torch.autograd.grad(negatives, scores)[0] if head.learns else None
        for entries, share in ((own, shares[0]), (chosen, shares[1])):
            there, of_row = bounded(scores.detach()[entries]), weight[entries[0]] * share
            value = value + wide(torch.where(of_row > 0, -F.logsigmoid(there) * of_row, 0.0).sum())
            if gradient is not None:
                gradient[entries] = torch.where(of_row > 0, -(-there).sigmoid() * of_row, 0.0)
        if gradient is not None:
            head.add(gradient, rows)
        return value


_COUPLED = {average_k_loss: AverageK, expected_positive_loss: ExpectedPositive}


def plan_of(loss: Callable[..., Tensor], target: Tensor | SparseLabels, options: dict[str, Any], memory: int) -> Plan:
    if loss is two_way_loss:
        kind: type[Plan] = ByRows if options.get("way") == "sample" else TwoWay
    else:
        kind = _COUPLED.get(loss, ByRows)
    return kind(loss, target, options, memory)
